/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads of hidden files, by what the program says of them. What is hidden is not there for the
 * program, and nobody is asked when it looks: watching every open would make a search through a
 * large project several times slower (--report-reads does it all the same). But programs complain
 * about files that they cannot open, by name, and whether that name is hidden is a fact. Of those that
 * fail without a name, the code may have it.
 *
 * Trust: output and code are the command's. It can only name paths here, and a path is told only when
 * the policy hides it; what a liar gets is a line about his own lie.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "mcp/server.h"

#define LOOK_BYTES ((size_t)32 << 10) /* at the end of each stream */
#define LINE_PATHS_MAX 4
#define TOLD_MAX 20

/* How programs say that a file could not be opened; lower case. */
static const char *const complaints[] = {
	"no such file",   "enoent",         "permission denied", "eacces",
	"does not exist", "not found",      "cannot open",       "could not open",
	"can't open",     "failed to open", "unable to",         "not a directory",
};

static bool complains(const char *line)
{
	for (size_t i = 0; i < ARRAY_LEN(complaints); i++) {
		if (strstr(line, complaints[i]))
			return true;
	}
	return false;
}

/* How long the path is that begins here. */
static size_t path_length(const char *s, char quote)
{
	size_t n = quote ? strcspn(s, (const char[]){ quote, '\0' }) : strcspn(s, " \t\"'`,;()<>|");

	while (!quote && n && strchr(":.!", s[n - 1]))
		n--;
	return n;
}

static void tell(struct run *run, const char *path, const struct path_rule *rule)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct violation v = { .kind = VIOLATION_READ };

	text_copy(v.path, sizeof(v.path), path);
	text_copy(v.rule, sizeof(v.rule), "filesystem.denyRead");
	text_copy(v.source, sizeof(v.source), origin_text(a, &rule->origin));
	text_copy(v.reason, sizeof(v.reason), rule->why ? rule->why : "hidden");
	(void)report_add(&run->report, &run->policy, run->label, &v);
}

static void judge(struct run *run, struct arena *a, const char *text, size_t len)
{
	const char *given = arena_strndup(a, text, len);
	const char *path = *given == '~' ? path_absolute(a, run->policy.home, given + 2)
					 : path_absolute(a, "/", given);
	struct view_entry at;
	struct decision d;

	path_host_view.look(&path_host_view, a, path, &at);
	policy_decide_path(&run->policy, ACCESS_READ, at.real, &d);
	if (d.verdict == VERDICT_DENY && d.rule && !d.rule->absent)
		tell(run, path, d.rule);
}

static void look_at_line(struct run *run, struct arena *a, const char *line)
{
	unsigned found = 0;

	for (const char *s = line; *s && found < LINE_PATHS_MAX; s++) {
		bool begins = *s == '/' || (*s == '~' && s[1] == '/');
		char before = s == line ? ' ' : s[-1];
		size_t n;

		if (!begins || !strchr(" \t\"'`:=(<[", before))
			continue;
		n = path_length(s, strchr("\"'`", before) ? before : '\0');
		found++;
		judge(run, a, s, n);
		s += n ? n - 1 : 0;
	}
}

/* It could not open something and does not say what: see what it was going to open. */
static void look_at_code(struct run *run)
{
	_cleanup_arena_ struct arena *a = arena_new();
	char *rest = run->code ? arena_strdup(a, run->code) : NULL, *line;

	while ((line = strsep(&rest, "\n")) && run->report.n_denied < TOLD_MAX)
		look_at_line(run, a, line);
}

void denied_by_output(struct run *run)
{
	_cleanup_free_ char *text = malloc(LOOK_BYTES + 1), *lower = malloc(LOOK_BYTES + 1);
	size_t told = run->report.n_denied;
	bool complaint = false;

	if (!text || !lower)
		abort();
	for (size_t which = 0; which < 2 && run->report.n_denied < TOLD_MAX; which++) {
		_cleanup_arena_ struct arena *a = arena_new();
		const struct spool *spool = &run->spool[which];
		uint64_t from = spool->size > LOOK_BYTES ? spool->size - LOOK_BYTES : 0;
		size_t n = spool_read(spool, from, text, LOOK_BYTES), next;

		/* a program that succeeded has printed no complaints to its standard output */
		if (which == 0 && !run->result.exit_code)
			continue;
		for (size_t i = 0; i < n; i++) {
			text[i] = text[i] ? text[i] : ' ';
			lower[i] = ascii_lower(text[i]);
		}
		text[n] = lower[n] = '\0';
		for (size_t at = 0; at < n; at = next) {
			size_t len = strcspn(text + at, "\n");

			next = at + len + 1;
			text[at + len] = lower[at + len] = '\0';
			if (complains(lower + at)) {
				complaint = true;
				look_at_line(run, a, text + at);
			}
		}
	}
	if (complaint && run->report.n_denied == told && run->result.exit_code)
		look_at_code(run);
}
