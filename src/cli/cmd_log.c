/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit log: read, follow and verify the audit log. What is in the log was partly chosen by
 * commands that ran in sandboxes, so none of it reaches the terminal unescaped; --json gives
 * the lines as they are, which JSON escapes.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/audit.h"
#include "audit/lost.h"
#include "audit/verify.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/log_show.h"
#include "policy/inputs.h"
#include "supervise/report.h"

#define FOLLOW_SHOWN 10 /* records shown before those that come */
#define FOLLOW_LOOK_MS 1000 /* at least this often, should no event come */
#define FLUSH_BYTES ((size_t)64 << 10)
#define PROBLEMS_SHOWN 20

struct viewer {
	const struct invocation *inv;
	struct log_filter filter;
	struct audit_files files;
	struct buf out;
	uint64_t last; /* number of the last line that was looked at */
	const char *recent[FOLLOW_SHOWN]; /* in a ring: the last ones, before following */
	size_t n_recent;
	bool hold; /* records go to the ring */
	struct error *e;
};

/* Nobody may read any more: then this ends like other programs do. */
static int flush(struct viewer *v)
{
	int r = v->out.len ? output_write(&v->out, v->e) : 0;

	buf_done(&v->out);
	return r;
}

static int give(struct viewer *v, const char *text, size_t len)
{
	if (v->hold) {
		v->recent[v->n_recent++ % FOLLOW_SHOWN] = arena_strndup(v->inv->arena, text, len);
		return 0;
	}
	buf_append(&v->out, text, len);
	buf_putc(&v->out, '\n');
	return v->out.len >= FLUSH_BYTES ? flush(v) : 0;
}

/* A damaged line is shown as such: silence would hide it. */
static int show_damaged(struct viewer *v, const struct snapshot_line *line)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	if (!line->whole || v->inv->options.json || v->filter.kind || v->filter.run ||
	    v->filter.violations)
		return 0;
	buf_printf(&b, "%s:%u: not a record (see: ambit log verify)", line->file->name,
		   (unsigned)line->number);
	return give(v, b.data, b.len);
}

static int view_line(void *ctx, const struct snapshot_line *line)
{
	struct viewer *v = ctx;
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json_span record;
	struct chain_line l;

	if (!line->whole || !chain_parse(line->text, line->len, &l) ||
	    json_parse(line->text, line->len, &record) < 0)
		return show_damaged(v, line);
	if (l.seq <= v->last)
		return 0; /* seen before the file was put aside */
	v->last = l.seq;
	if (!log_filter_takes(&v->filter, &l, &record))
		return 0;
	if (v->inv->options.json)
		return give(v, line->text, line->len);
	log_show(&l, &record, &b);
	return give(v, buf_str(&b), b.len);
}

/* lost: records that could not be written. */
static int no_log(const struct viewer *v, const char *path, const struct chain_lost *lost)
{
	if (lost->count)
		return error_set(v->e, ENOENT,
				 "%s: there is no log: since %s, %llu records could not be "
				 "written: %s",
				 output_safe(v->inv->arena, path), lost->since,
				 (unsigned long long)lost->count, strerror(lost->code));
	return error_set(v->e, ENOENT,
			 v->inv->options.file ? "%s: there is no log"
					      : "%s: there is no log yet: nothing was run",
			 output_safe(v->inv->arena, path));
}

/* Nothing at all, and nothing that says that there was something. */
static bool is_missing(const struct snapshot *s)
{
	return s->n == 0 && s->head_state == SNAPSHOT_HEAD_MISSING;
}

static int view_all(struct viewer *v, uint64_t *ret_ino, uint64_t *ret_size)
{
	_cleanup_snapshot_ struct snapshot s = { 0 };
	int r = snapshot_take(&v->files, v->last, &s, v->e);

	if (r == 0 && is_missing(&s) && !v->inv->options.follow)
		r = no_log(v, v->files.path, &s.lost);
	if (r == 0)
		r = snapshot_each(&s, view_line, v, v->e);
	*ret_ino = s.present_ino;
	*ret_size = s.has_present ? s.v[s.n - 1].size : 0;
	return r == 0 ? flush(v) : r;
}

static bool has_changed(const struct viewer *v, uint64_t ino, uint64_t size)
{
	struct stat st;

	return fstatat(v->files.dir, v->files.name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (st.st_ino != ino || (uint64_t)st.st_size != size);
}

/*
 * From where the reading stopped: of the present file only what was added, and all that
 * was put aside meanwhile.
 */
static int view_more(struct viewer *v, uint64_t *ino, uint64_t *size)
{
	_cleanup_snapshot_ struct snapshot s = { 0 };
	struct snapshot_file *present;
	int r = snapshot_take(&v->files, v->last, &s, v->e);

	if (r < 0)
		return r;
	present = s.has_present ? &s.v[s.n - 1] : NULL;
	if (present && s.present_ino == *ino && present->size >= *size)
		present->start = *size;
	*ino = s.present_ino;
	*size = present ? present->size : 0;
	r = snapshot_each(&s, view_line, v, v->e);
	return r == 0 ? flush(v) : r;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* How long until no record can come that --until takes; 0 = none can. */
static int time_left(const struct viewer *v)
{
	int64_t left = v->filter.until_ms - now_ms();

	if (!v->filter.until_ms || left >= FOLLOW_LOOK_MS)
		return FOLLOW_LOOK_MS;
	return left < 0 ? 0 : (int)left + 1;
}

static int follow(struct viewer *v)
{
	_cleanup_fd_ int changes = sys_watch_directory(v->files.dir);
	char events[4096];
	uint64_t ino = 0, size = 0;
	size_t shown;
	int r, left = time_left(v);

	v->hold = !v->filter.since_ms;
	r = view_all(v, &ino, &size);
	v->hold = false;
	shown = v->n_recent < FOLLOW_SHOWN ? v->n_recent : FOLLOW_SHOWN;
	for (size_t i = v->n_recent - shown; r == 0 && i < v->n_recent; i++)
		r = give(v, v->recent[i % FOLLOW_SHOWN], strlen(v->recent[i % FOLLOW_SHOWN]));
	if (r == 0)
		r = flush(v);
	/* the time is asked for before the log is looked at: what was in time is shown */
	while (r == 0 && left > 0) {
		struct pollfd fds[] = { { .fd = changes, .events = POLLIN },
					{ .fd = STDOUT_FILENO } };

		(void)poll(fds, ARRAY_LEN(fds), left);
		if (fds[1].revents & (POLLERR | POLLHUP))
			return 0; /* nobody reads any more */
		left = time_left(v);
		while (changes >= 0 && read(changes, events, sizeof(events)) > 0)
			;
		if (has_changed(v, ino, size))
			r = view_more(v, &ino, &size);
	}
	return r;
}

/* ---- verify ---- */

static void print_verdict(const struct verify_result *res, const char *path, struct buf *out)
{
	for (size_t i = 0; i < res->n_problems && i < PROBLEMS_SHOWN; i++) {
		const struct verify_problem *p = &res->problems[i];

		text_append_safe(out, p->file);
		if (p->line)
			buf_printf(out, ":%llu", (unsigned long long)p->line);
		buf_printf(out, ": %s: %s\n", verify_kind_name(p->kind), p->text);
	}
	if (res->n_problems > PROBLEMS_SHOWN)
		buf_printf(out, "and %zu more (--json lists them)\n",
			   res->n_problems - PROBLEMS_SHOWN);
	for (size_t i = 0; i < res->n_notes && i < PROBLEMS_SHOWN; i++) {
		buf_puts(out, "note: ");
		text_append_safe(out, res->notes[i]);
		buf_putc(out, '\n');
	}
	text_append_safe(out, path);
	buf_printf(out, ": %s: %llu records", res->n_problems ? "NOT INTACT" : "intact",
		   (unsigned long long)res->records);
	if (res->records)
		buf_printf(out, " (%llu to %llu) in %zu file%s", (unsigned long long)res->first,
			   (unsigned long long)res->last, res->files, res->files == 1 ? "" : "s");
	buf_putc(out, '\n');
}

static void print_verdict_json(const struct verify_result *res, const char *path, struct buf *out)
{
	struct json j = { .out = out, .indent = 2 };

	json_begin_object(&j);
	json_kstring(&j, "path", path);
	json_kbool(&j, "intact", res->n_problems == 0);
	json_kint(&j, "records", (int64_t)res->records);
	json_kint(&j, "first", (int64_t)res->first);
	json_kint(&j, "last", (int64_t)res->last);
	json_kint(&j, "files", (int64_t)res->files);
	json_key(&j, "problems");
	json_begin_array(&j);
	for (size_t i = 0; i < res->n_problems; i++) {
		json_begin_object(&j);
		json_kstring(&j, "problem", verify_kind_name(res->problems[i].kind));
		json_kstring(&j, "file", res->problems[i].file);
		json_kint(&j, "line", (int64_t)res->problems[i].line);
		json_kstring(&j, "text", res->problems[i].text);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_key(&j, "notes");
	json_begin_array(&j);
	for (size_t i = 0; i < res->n_notes; i++)
		json_string(&j, res->notes[i]);
	json_end_array(&j);
	json_end_object(&j);
	buf_putc(out, '\n');
}

static int verify(struct viewer *v, int *ret_status)
{
	_cleanup_snapshot_ struct snapshot s = { 0 };
	struct verify_result res = { 0 };
	int r = snapshot_take(&v->files, 0, &s, v->e);

	if (r == 0 && is_missing(&s))
		r = no_log(v, v->files.path, &s.lost);
	if (r == 0)
		r = audit_verify(v->inv->arena, &s, &res, v->e);
	if (r < 0)
		return r;
	if (v->inv->options.json)
		print_verdict_json(&res, v->files.path, &v->out);
	else
		print_verdict(&res, v->files.path, &v->out);
	*ret_status = res.n_problems ? EXIT_DENIED : 0;
	return flush(v);
}

/* ---- options ---- */

/* Where the settings say it is; from within its own directory, where no command could run, too. */
static int find_log(const struct invocation *inv, const char **ret, char place[FILES_PATH_MAX],
		    struct error *e)
{
	struct invocation anywhere = *inv;
	const struct policy *p;
	int r;

	if (inv->options.file)
		return inputs_caller_path(inv->arena, inv->options.file, ret, e);
	r = invocation_policy(inv, NULL, &p, e);
	if (r < 0) {
		anywhere.options.chdir = "/";
		r = invocation_policy(&anywhere, NULL, &p, e);
	}
	if (r < 0)
		return r;
	if (!p->audit_file)
		return error_set(e, ENOENT, "there is no audit log: audit.path is none");
	lost_choose_place(p->audit_file, p->state_dir, place);
	*ret = p->audit_file;
	return 0;
}

/* Is it one of these? If not, which is nearest, and what there are. */
static bool is_among(const char *kind, const char *(*name_of)(size_t), struct nearest *near,
		     struct buf *known)
{
	const char *name;

	for (size_t i = 0; (name = name_of(i)); i++) {
		if (strcmp(name, kind) == 0)
			return true;
		nearest_try(near, kind, name);
		buf_printf(known, "%s%s", i ? ", " : "", name);
	}
	return false;
}

/* A kind that nothing has would be an empty answer. */
static int check_kind(const struct viewer *v, const char *kind)
{
	_cleanup_buf_ struct buf records = BUF_INIT(BUF_MAX_TEXT);
	_cleanup_buf_ struct buf denials = BUF_INIT(BUF_MAX_TEXT);
	struct nearest near = { 0 };

	if (is_among(kind, log_event, &near, &records) ||
	    is_among(kind, report_kind, &near, &denials))
		return 0;
	if (near.name)
		return error_set(v->e, EINVAL,
				 "--kind: there are no records '%s'; did you mean %s?",
				 output_safe(v->inv->arena, kind), near.name);
	return error_set(v->e, EINVAL,
			 "--kind: there are no records '%s'; there are %s, and of violations %s",
			 output_safe(v->inv->arena, kind), buf_str(&records), buf_str(&denials));
}

static int read_options(struct viewer *v)
{
	const struct options *o = &v->inv->options;
	int r = o->kind ? check_kind(v, o->kind) : 0;

	v->filter =
		(struct log_filter){ .kind = o->kind, .run = o->run, .violations = o->violations };
	if (r == 0 && o->since)
		r = log_parse_time(o->since, now_ms(), &v->filter.since_ms, v->e);
	if (r == 0 && o->until)
		r = log_parse_time(o->until, now_ms(), &v->filter.until_ms, v->e);
	return r;
}

static int run_log(struct viewer *v, int *ret_status)
{
	const struct options *o = &v->inv->options;
	uint64_t ino, size;

	if (o->n_words == 1 && strcmp(o->words[0], "verify") == 0)
		return verify(v, ret_status);
	if (o->n_words > 0)
		return error_set(
			v->e, EINVAL, "unexpected '%s': ambit log [OPTIONS] [verify]",
			output_safe(v->inv->arena, o->words[strcmp(o->words[0], "verify") == 0]));
	return o->follow ? follow(v) : view_all(v, &ino, &size);
}

static int no_directory(const struct viewer *v, const char *path)
{
	struct chain_lost lost = { 0 };

	fd_close(lost_open_place(v->files.place, &lost));
	return no_log(v, path, &lost);
}

int cmd_log(const struct invocation *inv, int *ret_status, struct error *e)
{
	struct viewer v = {
		.inv = inv, .files = AUDIT_FILES_INIT, .out = BUF_INIT(BUF_MAX_TEXT), .e = e
	};
	const char *path = "";
	int r = find_log(inv, &path, v.files.place, e);

	if (r == 0)
		r = read_options(&v);
	if (r < 0)
		return r;
	r = files_open(path, FILES_READ, &v.files, e);
	if (r == -ENOENT)
		return no_directory(&v, path);
	if (r == 0)
		r = run_log(&v, ret_status);
	files_close(&v.files);
	buf_done(&v.out);
	return r;
}
