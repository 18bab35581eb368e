/* SPDX-License-Identifier: Apache-2.0 */
/* ambit run. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "policy/inputs.h"
#include "sandbox/backend.h"
#include "supervise/events.h"
#include "supervise/run.h"

/* --report none is the absence of a report; --json asks for one on stderr. */
static const char *report_path(const struct options *o)
{
	if (!o->report)
		return o->json ? "-" : NULL;
	return strcmp(o->report, "none") == 0 ? NULL : o->report;
}

#define TOLD_MAX 20 /* lines on stderr; the report has them all */
#define ALIKE_MIN 4 /* files of one directory that are told as one */

/* Who hears of it: the person at stderr, or a program at --events-fd. */
struct listener {
	struct events *events; /* NULL = stderr */
	bool srt; /* who has none of our options: no hints at them */
	unsigned told;
	const char *grant_file; /* for "always"; NULL = not offered */
};

static void ask(void *ctx, struct run *run, const struct egress_record *r)
{
	const struct listener *l = ctx;

	if (l->events)
		events_ask(l->events, r);
	else
		ask_person(run, r, l->grant_file);
}

static void ask_write(void *ctx, struct run *run, const struct violation *v)
{
	const struct listener *l = ctx;

	if (l->events)
		events_ask_write(l->events, v);
	else
		ask_person_write(run, v, l->grant_file);
}

static void hear_program(void *ctx, struct session *s)
{
	const struct listener *l = ctx;

	events_take_answers(l->events, s);
}

static void tell_denied(void *ctx, const struct report_entry *entry)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct report_entry plain = *entry;
	bool limit = strcmp(entry->kind, "limit") == 0;
	struct listener *l = ctx;

	if (l->events)
		events_denied(l->events, entry);
	if ((!limit && ++l->told > TOLD_MAX) || l->events)
		return;
	if (l->srt)
		plain.hint = NULL;
	report_describe(&plain, &b);
	/* why the command was ended is said even with -q */
	if (limit)
		log_error("%s", buf_str(&b));
	else
		log_warn("%s", buf_str(&b));
}

static void tell_note(void *ctx, const char *text)
{
	const struct listener *l = ctx;

	if (l->events)
		events_note(l->events, text);
	else
		log_warn("%s", text);
}

static void tell_chosen(void *ctx, const char *backend, const char *why)
{
	(void)ctx;
	log_info("backend: %s (%s)", backend, why);
}

static void tell_unlogged(void *ctx, const struct error *e)
{
	(void)ctx;
	/* a loss is said even with -q */
	log_error("the audit log cannot be written: %s; the run is not recorded", e->text);
}

/* How many of them, from the first on, are in its directory and there for the same reason. */
static size_t count_alike(const struct report_entry *v, size_t n)
{
	const char *slash = strrchr(v->target, '/');
	size_t dir = slash ? (size_t)(slash - v->target) + 1 : 0, alike = 1;

	if (!slash)
		return 1;
	while (alike < n && strncmp(v[alike].target, v->target, dir) == 0 &&
	       !strchr(v[alike].target + dir, '/') && strcmp(v[alike].reason, v->reason) == 0)
		alike++;
	return alike;
}

static void tell_paths(const char *what, const struct report_entry *v, size_t n, bool why)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	size_t i = 0;

	if (n == 0)
		return;
	buf_printf(&b, "this run %s:", what);
	for (unsigned told = 0; i < n && told < TOLD_MAX; told++) {
		size_t alike = why ? count_alike(&v[i], n - i) : 1;
		bool one = alike < ALIKE_MIN;
		const char *slash = strrchr(v[i].target, '/');

		buf_puts(&b, told ? ", " : " ");
		text_append_safe_n(&b, v[i].target,
				   one ? strlen(v[i].target) : (size_t)(slash - v[i].target));
		if (!one)
			buf_printf(&b, " (%zu files", alike);
		if (why) {
			buf_puts(&b, one ? " (" : ", ");
			text_append_safe(&b, v[i].reason);
			buf_putc(&b, ')');
		}
		i += one ? 1 : alike;
	}
	if (i < n)
		buf_printf(&b, " and %zu more", n - i);
	log_warn("%s", buf_str(&b));
}

/* What is left to say when the command has ended. */
static void tell_end(const struct report *r, unsigned told)
{
	if (told > TOLD_MAX)
		log_warn("and %u more things were denied (--report FILE lists them)",
			 told - TOLD_MAX);
	tell_paths("made or changed files that run later outside the sandbox", r->later, r->n_later,
		   true);
	tell_paths("removed protected names, which it cannot make again (git restore brings back "
		   "what git tracks)",
		   r->removed, r->n_removed, false);
}

static int write_report(struct report_file *f, const struct report *r, char *const *argv,
			const struct run_result *result, struct error *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	if (!f->path)
		return 0;
	report_print_json(r, argv, result, &b);
	return report_file_write(f, &b, e);
}

/* Opened before the run, as the report is. */
static int open_log(const char *path, const struct policy *p, struct seslog **ret, struct error *e)
{
	const struct seslog_config config = { .path = path,
					      .format = p->log_format,
					      .max_bytes = p->log_max_size,
					      .keep = p->log_max_files,
					      .redact = p->audit_redact };

	return path ? seslog_open(&config, ret, e) : 0;
}

int run_sandboxed(const struct invocation *inv, struct run_request *req, struct events *events,
		  int *ret_status, struct error *e)
{
	struct report report = { .a = inv->arena };
	struct run_result result = { 0 };
	_cleanup_audit_ struct audit *log = NULL;
	_cleanup_report_file_ struct report_file file;
	const struct policy_inputs *inputs = req->control ? req->control->inputs : NULL;
	struct listener listener = { .events = events,
				     .srt = inv->srt,
				     .grant_file = inputs ? inputs->grant_file : NULL };
	int r = report_file_open(&file, report_path(&inv->options), e);

	if (r == 0)
		r = open_log(inv->options.log, req->policy, &req->log, e);
	if (r < 0)
		return r;
	log = audit_open_for(req->policy);
	req->audit = log;
	req->report = &report;
	req->proxy_program = inputs_helper(inv->arena, "ambit-proxy");
	req->report_reads = inv->options.report_reads || req->observer;
	req->tell = tell_denied;
	req->chosen = tell_chosen;
	req->note = tell_note;
	req->unlogged = tell_unlogged;
	req->ctx = &listener;
	req->last = !req->observer;
	if (inv->options.ask) {
		req->ask = ask;
		req->ask_write = ask_write;
		req->heard = events ? hear_program : NULL;
	}
	r = run_command(req, &result, e);
	seslog_close(TAKE_PTR(req->log));
	req->report = NULL;
	req->ctx = NULL;
	if (r < 0)
		return r;
	*ret_status = result.exit_code;
	if (req->observer)
		req->observer->ended(req->observer->ctx, &report, &result);
	if (events)
		events_end(events, &report, req->argv, &result);
	else
		tell_end(&report, listener.told);
	return write_report(&file, &report, req->argv, &result, e);
}

bool run_has_backend(enum backend_choice choice)
{
	return backend_find(choice) != NULL;
}

static int parse_descriptor(const struct invocation *inv, const char *option, const char *text,
			    int *ret, struct error *e)
{
	uint64_t fd;

	if (text_parse_u64(text, INT_MAX, &fd) < 0)
		return error_set(e, EINVAL, "%s: '%s' is not the number of a descriptor", option,
				 output_safe(inv->arena, text));
	*ret = (int)fd;
	return 0;
}

#define ENVIRONMENT_MAX ((size_t)8 << 20)

/* The command's variables, each with a NUL behind it, as in /proc/PID/environ. */
static int read_environment(const struct invocation *inv, int fd, char *const **ret,
			    struct error *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT(ENVIRONMENT_MAX);
	char chunk[4096], **env = NULL, *copy;
	ssize_t got = 1;
	size_t n = 0;

	if (fd <= STDERR_FILENO)
		return error_set(e, EINVAL, "--env-fd %d: must be 3 or higher", fd);
	while (got > 0 || (got < 0 && errno == EINTR)) {
		got = read(fd, chunk, sizeof(chunk));
		if (got > 0)
			buf_append(&b, chunk, (size_t)got);
	}
	if (got < 0 || b.overflow)
		return error_set(e, b.overflow ? E2BIG : EBADF, "--env-fd %d: %s", fd,
				 b.overflow ? "too long" : "cannot be read from");
	fd_close(fd);
	copy = arena_strndup(inv->arena, buf_str(&b), b.len);
	for (size_t at = 0; at < b.len; at += strlen(copy + at) + 1)
		*ARENA_PUSH(inv->arena, env, n) = copy + at;
	*ARENA_PUSH(inv->arena, env, n) = NULL;
	*ret = env;
	return 0;
}

/* Before anything else is opened: the numbers mean what the caller opened. */
static int open_descriptors(const struct invocation *inv, struct run_request *req,
			    struct events *events, struct error *e)
{
	const struct options *o = &inv->options;
	int fd, r = 0;

	if (o->events_fd) {
		r = parse_descriptor(inv, "--events-fd", o->events_fd, &fd, e);
		if (r == 0)
			r = events_open(events, "--events-fd", fd, e);
	}
	if (r == 0 && o->control_fd) {
		r = parse_descriptor(inv, "--control-fd", o->control_fd, &fd, e);
		if (r == 0)
			r = control_open(req->control, fd, e);
	}
	if (r == 0 && o->env_fd) {
		r = parse_descriptor(inv, "--env-fd", o->env_fd, &fd, e);
		if (r == 0)
			r = read_environment(inv, fd, &req->environ_in, e);
	}
	return r;
}

static int run(const struct invocation *inv, struct run_request *req, struct events *events,
	       int *ret_status, struct error *e)
{
	struct policy_inputs inputs;
	int r = invocation_inputs(inv, &inputs, e);

	if (r == 0)
		r = policy_load(inv->arena, &inputs, &req->policy, e);
	if (r < 0)
		return r;
	invocation_notes(inv, req->policy);
	r = outside_run(inv, req->policy, req->argv, e);
	if (r < 0)
		return r;
	req->control->inputs = &inputs;
	req->control->start = req->policy;
	return run_sandboxed(inv, req, events, ret_status, e);
}

/* One word that is a whole line, and no program of that name. */
static void hint_at_shell(const struct invocation *inv, struct error *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT(ERROR_TEXT_MAX / 2);
	const struct options *o = &inv->options;

	if (e->exit_code != EXIT_NOT_FOUND || o->shell || o->n_words != 1 ||
	    !strpbrk(o->words[0], " \t"))
		return;
	text_append_shell(&b, o->words[0]);
	if (!b.overflow)
		(void)error_set(e, e->code, "%s: not found; for a command line: ambit run -c %s",
				o->words[0], buf_str(&b));
}

int cmd_run(const struct invocation *inv, int *ret_status, struct error *e)
{
	struct control control = { .fd = -1 };
	struct run_request req = { .environ_in = inv->environ_in, .control = &control };
	struct events own = EVENTS_NONE, *events;
	int r = open_descriptors(inv, &req, &own, e);

	events = own.fd >= 0 ? &own : NULL;
	req.owner = events ? own.fd : 0;
	if (r == 0 && inv->options.ask && !events)
		r = ask_check(e);
	if (events)
		log_level = LOG_QUIET;
	if (r == 0)
		r = invocation_argv(inv, &req.argv, e);
	if (r == 0)
		r = run(inv, &req, events, ret_status, e);
	control_close(&control);
	if (r < 0)
		hint_at_shell(inv, e);
	if (r < 0 && events) {
		events_error(events, e);
		*ret_status = e->exit_code ? e->exit_code : EXIT_AMBIT;
		r = 0;
	}
	events_done(&own);
	return r;
}
