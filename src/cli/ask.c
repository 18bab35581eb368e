/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --ask: hosts that no rule covers and protected names, put to the person at the terminal. The command has no part
 * in it: it is not asked, it cannot type (TIOCSTI is refused), and what was typed for
 * it does not count. What it can do is write misleading text around the question, which is
 * why the host stands alone in it and every grant is said once more.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "policy/amend.h"
#include "supervise/run.h"

int ask_check(struct error *e)
{
	_cleanup_fd_ int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	return tty < 0 ? error_set(e, ENOTTY, "--ask needs a terminal, or --events-fd") : 0;
}

static void remember(struct run *run, const char *file, const struct amendment *what)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct error e = { 0 };

	text_append_safe(&b, what->entry);
	if (amend_file(file, what, &e) < 0) {
		log_warn("allowed for this run only: %s", e.text);
		return;
	}
	log_warn("%s is allowed from now on: %s.%s in %s", buf_str(&b), what->group, what->list,
		 file);
	buf_done(&b);
	buf_printf(&b, "%s.%s", what->group, what->list);
	session_note_change(run_session(run), &(struct audit_policy_change){ .by = "ask",
									     .action = "allow",
									     .setting = buf_str(&b),
									     .value = what->entry,
									     .scope = "always" });
}

_Static_assert((int)EGRESS_DENY == (int)VIOLATION_REFUSE &&
		       (int)EGRESS_DENY_RUN == (int)VIOLATION_REFUSE_RUN &&
		       (int)EGRESS_ALLOW_ONCE == (int)VIOLATION_ALLOW_ONCE &&
		       (int)EGRESS_ALLOW_RUN == (int)VIOLATION_ALLOW_RUN,
	       "put() answers both");

/*
 * The answers to both kinds of questions are the same. `always`: what would be added to
 * the settings, NULL = that is not offered.
 */
static int put(struct run *run, const char *what, const char *target, const char *file,
	       const struct amendment *always, char *ret_key)
{
	_cleanup_buf_ struct buf question = BUF_INIT(BUF_MAX_TEXT), again = BUF_INIT(BUF_MAX_TEXT);
	bool offered = file && always;

	buf_printf(&question,
		   "\nambit: %s\n\n    %s\n\n"
		   "allow it [o]nce, for this [r]un%s, or [n]ot, or n[e]ver in this run? ",
		   what, target, offered ? ", [a]lways" : "");
	buf_printf(&again, "o or y: once; r: for this run;%s n: not; e: never in this run? ",
		   offered ? " a: always;" : "");
	*ret_key =
		run_prompt(run, buf_str(&question), buf_str(&again), offered ? "oyrane" : "oyrne");
	if (*ret_key == 'y')
		*ret_key = 'o'; /* the least that is a yes */
	switch (*ret_key) {
	case 'o':
		return EGRESS_ALLOW_ONCE;
	case 'r':
	case 'a':
		return EGRESS_ALLOW_RUN;
	case 'e':
		return EGRESS_DENY_RUN;
	default:
		return EGRESS_DENY;
	}
}

/* Before the command goes on: what it prints next comes after this. */
static void confirm(struct run *run, char key, const char *target, const char *file,
		    const struct amendment *always)
{
	if (key == 'a')
		remember(run, file, always);
	else if (key == 'o' || key == 'r')
		log_warn("allowed %s: %s", key == 'o' ? "once" : "for this run", target);
}

void ask_person(struct run *run, const struct egress_record *r, const char *grant_file)
{
	struct amendment always = { .group = "network", .list = "allowedDomains" };
	_cleanup_buf_ struct buf target = BUF_INIT(BUF_MAX_TEXT);
	struct violation what;
	char key;
	int answer;

	if (r->kind != EGRESS_ASK)
		return;
	egress_record_violation(r, &what);
	always.entry = what.path; /* what was asked about, and no other port */
	text_append_safe(&target, what.path);
	answer = put(run, "no rule covers a connection to", buf_str(&target), grant_file, &always,
		     &key);
	confirm(run, key, buf_str(&target), grant_file, &always);
	session_answer(run_session(run), r->id, (enum egress_answer)answer);
}

void ask_person_write(struct run *run, const struct violation *v, const char *grant_file)
{
	static const char prefix[] = "protected name ";
	const struct amendment always = { .group = "filesystem",
					  .list = "unprotect",
					  .entry = v->rule + strlen(prefix) };
	_cleanup_buf_ struct buf target = BUF_INIT(BUF_MAX_TEXT);
	bool named = text_starts(v->rule, prefix);
	char key;
	int answer;

	text_append_safe(&target, v->path);
	buf_puts(&target, " — ");
	text_append_safe(&target, v->reason);
	answer = put(run, "the command wants to write to a protected name:", buf_str(&target),
		     grant_file, named ? &always : NULL, &key);
	confirm(run, key, buf_str(&target), grant_file, &always);
	session_answer_write(run_session(run), v->id, (enum violation_answer)answer);
}
