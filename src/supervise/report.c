/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/report.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "policy/match_path.h"
#include "policy/schema.h"
#include "supervise/hint.h"
#include "supervise/leftover.h"
#include "supervise/run.h"

#define PROTECTED_NAME "protected name "

static const char *const kind_names[] = {
	[VIOLATION_WRITE] = "write",
	[VIOLATION_CREATE] = "write",
	[VIOLATION_MAKE_DIRECTORY] = "write",
	[VIOLATION_RENAME] = "write",
	[VIOLATION_DELETE] = "write",
	[VIOLATION_MODE] = "write",
	[VIOLATION_READ] = "read",
	[VIOLATION_EXEC] = "exec",
	[VIOLATION_CONNECT] = "connect",
	[VIOLATION_UNIX] = "unix",
	[VIOLATION_LISTEN] = "listen",
	[VIOLATION_LATER] = "later",
	[VIOLATION_REMOVED] = "removed",
	[VIOLATION_USED] = "used",
	[VIOLATION_MADE] = "used",
	[VIOLATION_WANTED_UNIX] = "wanted",
	[VIOLATION_WANTED_PORT] = "wanted",
	[VIOLATION_ASK] = "ask",
};
_Static_assert(ARRAY_LEN(kind_names) == VIOLATION_KIND_MAX_, "a name for each kind");

static bool is_ignored(const struct policy *p, const char *command, const char *target)
{
	for (size_t i = 0; i < p->ignore.n; i++) {
		const struct ignore_rule *rule = &p->ignore.v[i];

		if ((strcmp(rule->command, "*") == 0 || strstr(command, rule->command)) &&
		    strstr(target, rule->target))
			return true;
	}
	return false;
}

/* A question for a name: what would be allowed is the name, which is not known. */
static bool is_name_server(const char *target)
{
	size_t n = strlen(target);

	return n > 3 && strcmp(target + n - 3, ":53") == 0;
}

static enum hint_deed deed_of(int kind)
{
	switch (kind) {
	case VIOLATION_MAKE_DIRECTORY:
		return HINT_MAKE_DIRECTORY;
	case VIOLATION_DELETE:
	case VIOLATION_RENAME:
		return HINT_NAME;
	case VIOLATION_MODE:
		return HINT_MODE;
	default:
		return HINT_WRITE;
	}
}

/* A deny that is locked, or was just given as an option for this very path, holds. */
static bool is_read_shut(const struct policy *p, const char *path)
{
	struct decision d;

	policy_decide_path(p, ACCESS_READ, path, &d);
	return d.rule && (d.rule->locked || (d.rule->origin.layer == LAYER_OPTION &&
					     strcmp(d.rule->real, path) == 0));
}

static bool put_connect(struct buf *b, const struct policy *p, const struct violation *v)
{
	if (strcmp(v->rule, "network.allowHostPorts") == 0) {
		const char *port = strrchr(v->path, ':');

		buf_printf(b, "--allow-host-port %s", port ? port + 1 : "");
		return port && !policy_is_locked(p, "network.allowHostPorts");
	}
	if (policy_is_locked(p, "network.allowedDomains"))
		return false;
	if (strcmp(v->rule, "network.mode") == 0) {
		/* which name was asked for is not known */
		if (is_name_server(v->path) || policy_is_locked(p, "network.mode"))
			return false;
		if (strcmp(v->source, "default") != 0)
			buf_puts(b, "--network allowlist ");
	} else if (strcmp(v->rule, "network.allowedDomains") != 0) {
		return false;
	}
	buf_puts(b, "--allow-domain ");
	text_append_shell(b, v->path);
	return true;
}

/* The option that would allow it; NULL when nothing should, or none would. */
static const char *hint_for(struct arena *a, const struct policy *p, const struct violation *v)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	bool helps = true;

	if (text_starts(v->rule, PROTECTED_NAME))
		return hint_unprotect(a, p, v->rule + strlen(PROTECTED_NAME));
	if (strcmp(v->rule, "protected git configuration") == 0)
		return hint_git_config(p);
	if (strcmp(v->rule, "filesystem.allowWrite") == 0)
		return hint_write(a, p, v->path, deed_of(v->kind));
	if (v->kind == VIOLATION_CONNECT) {
		helps = put_connect(&b, p, v);
	} else if (v->kind == VIOLATION_UNIX && *v->path == '@') {
		helps = !policy_is_locked(p, "network.allowAllUnixSockets");
		buf_puts(&b, "--set network.allowAllUnixSockets=true");
	} else if (v->kind == VIOLATION_UNIX) {
		helps = !policy_is_locked(p, "network.allowUnixSockets");
		buf_puts(&b, "--allow-unix ");
		text_append_shell(&b, v->path);
	} else if (v->kind == VIOLATION_LISTEN) {
		helps = !policy_is_locked(p, "network.allowLocalBinding");
		buf_puts(&b, "--set network.allowLocalBinding=true");
	} else if (strcmp(v->rule, "filesystem.denyRead") == 0) {
		helps = !policy_is_locked(p, "filesystem.allowRead") && !is_read_shut(p, v->path);
		buf_puts(&b, "--allow-read ");
		text_append_shell(&b, pattern_escape(a, v->path));
	} else {
		helps = false;
	}
	return helps ? arena_strdup(a, buf_str(&b)) : NULL;
}

/* `reason`: NULL = any. */
static struct report_entry *find(struct report_entry *v, size_t n, const char *kind,
				 const char *target, const char *reason)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(v[i].target, target) == 0 && strcmp(v[i].kind, kind) == 0 &&
		    (!reason || strcmp(v[i].reason, reason) == 0))
			return &v[i];
	}
	return NULL;
}

struct list {
	struct report_entry **v;
	size_t *n;
};

static struct list list_for(struct report *r, int kind)
{
	if (kind == VIOLATION_LATER)
		return (struct list){ &r->later, &r->n_later };
	if (kind == VIOLATION_REMOVED)
		return (struct list){ &r->removed, &r->n_removed };
	return (struct list){ &r->denied, &r->n_denied };
}

static int64_t wall_clock_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool is_gone(const char *path)
{
	return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

static bool is_below(const char *path, const char *dir)
{
	return path_within(path, dir) && strcmp(path, dir) != 0;
}

/* A directory went, after more of what was in it than can be listed: it stands for all that. */
static void make_room(struct report *r, const char *dir)
{
	size_t kept = 0;

	if (!is_gone(dir))
		return;
	for (size_t i = 0; i < r->n_removed; i++) {
		if (!is_below(r->removed[i].target, dir))
			r->removed[kept++] = r->removed[i];
	}
	r->n_removed = kept;
}

const struct report_entry *report_add(struct report *r, const struct policy *p, const char *command,
				      const struct violation *v)
{
	const char *kind = kind_names[v->kind];
	struct list list = list_for(r, v->kind);
	/* of git's configuration, one key after the other may be refused */
	struct report_entry *e =
		find(*list.v, *list.n, kind, v->path, list.v == &r->denied ? v->reason : NULL);

	if (e) {
		e->count++;
		return NULL;
	}
	if (is_ignored(p, command, v->path))
		return NULL;
	if (*list.n >= REPORT_ENTRIES_MAX && list.v == &r->removed)
		make_room(r, v->path);
	if (*list.n >= REPORT_ENTRIES_MAX) {
		r->dropped++;
		return NULL;
	}
	e = ARENA_PUSH(r->a, *list.v, *list.n);
	*e = (struct report_entry){
		.kind = kind,
		.target = arena_strdup(r->a, v->path),
		.rule = arena_strdup(r->a, v->rule),
		.source = arena_strdup(r->a, v->source),
		.reason = arena_strdup(r->a, v->reason),
		.hint = hint_for(r->a, p, v),
		.process = arena_strdup(r->a, v->process),
		.pid = v->pid,
		.time_ms = wall_clock_ms(),
		.count = 1,
	};
	if (r->reword && list.v == &r->denied)
		r->reword(r->ctx, e);
	return e;
}

const struct report_entry *report_add_limit(struct report *r, const struct policy *p,
					    enum limit which, const char *reason)
{
	_cleanup_buf_ struct buf target = BUF_INIT(BUF_MAX_TEXT), hint = BUF_INIT(BUF_MAX_TEXT);
	const struct origin *origin = &p->value_origin[setting_find(limit_key(which))];
	struct report_entry *e;

	buf_printf(&target, "%s ", limit_name(which));
	limit_value(&p->limits, which, 1, &target);
	if (find(r->denied, r->n_denied, "limit", buf_str(&target), NULL))
		return NULL;
	buf_printf(&hint, "--%s ", limit_name(which));
	limit_value(&p->limits, which, 2, &hint);
	e = ARENA_PUSH(r->a, r->denied, r->n_denied);
	*e = (struct report_entry){
		.kind = "limit",
		.target = arena_strdup(r->a, buf_str(&target)),
		.rule = limit_key(which),
		.source = origin_text(r->a, origin),
		.reason = reason,
		.hint = arena_strdup(r->a, buf_str(&hint)),
		.process = "",
		.time_ms = wall_clock_ms(),
		.count = 1,
	};
	return e;
}

void report_note(struct report *r, const char *text)
{
	if (r->n_notes < REPORT_ENTRIES_MAX)
		*ARENA_PUSH(r->a, r->notes, r->n_notes) = arena_strdup(r->a, text);
}

static bool is_below_any(const char *path, const struct report_entry *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (is_below(path, v[i].target))
			return true;
	}
	return false;
}

/* What lay in a directory that is gone as a whole is not told for itself. */
static void fold_removed(struct report *r)
{
	size_t kept = 0, n = r->n_removed;

	for (size_t i = 0; i < n; i++) {
		const char *path = r->removed[i].target;

		if (!is_below_any(path, r->removed, kept) &&
		    !is_below_any(path, r->removed + i, n - i))
			r->removed[kept++] = r->removed[i];
	}
	r->n_removed = kept;
}

void report_prune(struct report *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n_later; i++) {
		if (leftover_matters(r->a, &r->later[i]))
			r->later[kept++] = r->later[i];
	}
	r->n_later = kept;
	kept = 0;
	for (size_t i = 0; i < r->n_removed; i++) {
		if (is_gone(r->removed[i].target))
			r->removed[kept++] = r->removed[i];
	}
	r->n_removed = kept;
	fold_removed(r);
}

/* Of denials; what was told for another reason is in a list of its own. */
static const struct {
	const char *kind, *phrase;
} denials[] = {
	{ "write", "denied write to" },
	{ "read", "denied read of" },
	{ "exec", "denied exec of the setuid file" },
	{ "connect", "denied connect to" },
	{ "unix", "denied connect to" },
	{ "listen", "denied listening on" },
	{ "limit", "limit" },
};

const char *report_kind(size_t i)
{
	return i < ARRAY_LEN(denials) ? denials[i].kind : NULL;
}

static const char *phrase_of(const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(denials); i++) {
		if (strcmp(kind, denials[i].kind) == 0)
			return denials[i].phrase;
	}
	return denials[0].phrase;
}

/* What has to be escaped would not work as it is printed; only the machine forms have it. */
bool report_can_hint(const struct report_entry *entry)
{
	return entry->hint && text_is_safe(entry->hint);
}

void report_describe(const struct report_entry *entry, struct buf *out)
{
	bool limit = strcmp(entry->kind, "limit") == 0;

	buf_printf(out, "%s ", phrase_of(entry->kind));
	text_append_safe(out, entry->target);
	if (limit)
		buf_puts(out, " reached");
	if (*entry->reason) {
		buf_puts(out, " — ");
		text_append_safe(out, entry->reason);
	}
	if (report_can_hint(entry)) {
		buf_puts(out, limit ? " (raise with: " : " (allow with: ");
		text_append_safe(out, entry->hint);
		buf_puts(out, ")");
	}
}

void report_write_entry(const struct report_entry *e, struct json *j)
{
	json_kstring(j, "kind", e->kind);
	json_kstring(j, "target", e->target);
	json_kstring(j, "rule", e->rule);
	json_kstring(j, "source", e->source);
	json_kstring(j, "reason", e->reason);
	json_kstring(j, "process", e->process);
	json_kint(j, "pid", e->pid);
	json_kint(j, "time", e->time_ms);
	json_kstring(j, "hint", e->hint);
	json_kint(j, "count", (int64_t)e->count);
}

uint64_t report_memory_peak(const struct run_result *result)
{
	const struct limits_peak *p = &result->peak;

	/* samples miss what is there between them; the kernel's own count has all and needs no help */
	return p->memory_exact || p->memory > result->max_rss ? p->memory : result->max_rss;
}

/* Some limit made us look, though perhaps not in time. */
static bool is_measured(const struct run_result *result)
{
	return result->peak.memory || result->means[LIMIT_MEMORY] || result->means[LIMIT_PIDS] ||
	       result->means[LIMIT_DISK];
}

/* Not measured is null, not nothing. */
static void print_peak(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	if (value)
		json_int(j, (int64_t)value);
	else
		json_null(j);
}

static void print_limits(struct json *j, const struct run_result *result)
{
	json_key(j, "limitsHeldBy");
	json_begin_object(j);
	for (enum limit i = 0; i < LIMIT_MAX_; i++) {
		if (result->means[i])
			json_kstring(j, limit_name(i), result->means[i]);
	}
	json_end_object(j);
	json_key(j, "peak");
	json_begin_object(j);
	print_peak(j, "memory", is_measured(result) ? report_memory_peak(result) : 0);
	print_peak(j, "pids", result->peak.pids);
	print_peak(j, "disk", result->peak.disk);
	print_peak(j, "output", result->peak.output);
	json_end_object(j);
}

static void write_paths(const char *key, const struct report_entry *v, size_t n, struct json *j)
{
	json_key(j, key);
	json_begin_array(j);
	for (size_t i = 0; i < n; i++) {
		json_begin_object(j);
		json_kstring(j, "path", v[i].target);
		json_kstring(j, "reason", v[i].reason);
		json_end_object(j);
	}
	json_end_array(j);
}

void report_write_fields(const struct report *r, char *const *argv, const struct run_result *result,
			 struct json *j)
{
	json_key(j, "command");
	json_begin_array(j);
	for (; *argv; argv++)
		json_string(j, *argv);
	json_end_array(j);
	if (*result->run)
		json_kstring(j, "run", result->run);
	json_kstring(j, "backend", r->backend ? r->backend : "none");
	if (r->lost.n) {
		json_key(j, "notEnforced");
		json_begin_array(j);
		for (size_t i = 0; i < r->lost.n; i++)
			json_string(j, r->lost.v[i].text);
		json_end_array(j);
	}
	json_kint(j, "exitCode", result->exit_code);
	json_kint(j, "signal", result->signal);
	json_kbool(j, "timedOut", result->timed_out);
	json_kint(j, "wallMs", (int64_t)result->wall_ms);
	json_kint(j, "cpuMs", (int64_t)result->cpu_ms);
	json_kint(j, "maxRss", (int64_t)result->max_rss);
	json_kstring(j, "limit", result->limit < 0 ? NULL : limit_name((enum limit)result->limit));
	print_limits(j, result);
	json_key(j, "violations");
	json_begin_array(j);
	for (size_t i = 0; i < r->n_denied; i++) {
		json_begin_object(j);
		report_write_entry(&r->denied[i], j);
		json_end_object(j);
	}
	json_end_array(j);
	json_kint(j, "violationsNotListed", (int64_t)r->dropped);
	json_key(j, "notes");
	json_begin_array(j);
	for (size_t i = 0; i < r->n_notes; i++)
		json_string(j, r->notes[i]);
	json_end_array(j);
	write_paths("runsLater", r->later, r->n_later, j);
	write_paths("removed", r->removed, r->n_removed, j);
}

void report_print_json(const struct report *r, char *const *argv, const struct run_result *result,
		       struct buf *out)
{
	struct json j = { .out = out, .indent = 2 };

	json_begin_object(&j);
	report_write_fields(r, argv, result, &j);
	json_end_object(&j);
	buf_putc(out, '\n');
}
