/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --ask: hosts that no rule covers, put to the person at the terminal. The command has no part
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

int ask_check(struct error *e)
{
	_cleanup_fd_ int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	return tty < 0 ? error_set(e, ENOTTY, "--ask needs a terminal, or --events-fd") : 0;
}

static void describe(const struct egress_record *r, struct buf *out)
{
	text_append_safe(out, r->host);
	if (r->port)
		buf_printf(out, ":%u", (unsigned)r->port);
}

static void remember(const char *file, const struct egress_record *r)
{
	const struct amendment what = { "network", "allowedDomains", r->host };
	struct error e = { 0 };

	if (amend_file(file, &what, &e) < 0)
		log_warn("allowed for this run only: %s", e.text);
	else
		log_warn("%s is allowed from now on: network.allowedDomains in %s", r->host, file);
}

void ask_person(struct run *run, const struct egress_record *r, const char *grant_file)
{
	_cleanup_buf_ struct buf target = BUF_INIT(BUF_MAX_TEXT);
	_cleanup_buf_ struct buf question = BUF_INIT(BUF_MAX_TEXT);
	enum egress_answer answer = EGRESS_DENY;
	char key;

	if (r->kind != EGRESS_ASK)
		return;
	describe(r, &target);
	buf_printf(&question,
		   "\nambit: no rule covers a connection to\n\n    %s\n\n"
		   "allow it [o]nce, for this [r]un%s, or [n]ot, or n[e]ver in this run? ",
		   buf_str(&target), grant_file ? ", [a]lways" : "");
	key = run_prompt(run, buf_str(&question), grant_file ? "orane" : "orne");
	if (key == 'o')
		answer = EGRESS_ALLOW_ONCE;
	else if (key == 'r' || key == 'a')
		answer = EGRESS_ALLOW_RUN;
	else if (key == 'e')
		answer = EGRESS_DENY_RUN;
	session_answer(run_session(run), r->id, answer);
	if (key == 'a')
		remember(grant_file, r);
	else if (answer == EGRESS_ALLOW_ONCE || answer == EGRESS_ALLOW_RUN)
		log_warn("allowed %s: %s", key == 'o' ? "once" : "for this run", buf_str(&target));
}
