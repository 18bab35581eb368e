/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session hears while the command runs: the broker's reports and questions, the proxy's
 * records and questions; to the report, the journal and the owner's hooks. And the answers.
 *
 * Trust: both come from processes of ours that handle hostile input; their fields are bounded,
 * ended here whatever they are, and only shown.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"
#include "supervise/session_internal.h"

/* What a rule hides looks missing inside: only out here one can tell whether there is anything. */
static bool was_denied(const struct violation *v)
{
	return v->kind != VIOLATION_READ ||
	       faccessat(AT_FDCWD, v->path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       (errno != ENOENT && errno != ENOTDIR);
}

static void take_violation(struct session *s, const struct violation *v)
{
	const struct report_entry *entry =
		s->standby || !was_denied(v)
			? NULL
			: report_add(s->req.report, s->req.policy, s->command, v);

	if (!entry || v->kind >= VIOLATION_LATER)
		return;
	journal_denied(&s->journal, entry);
	if (s->req.hooks && s->req.hooks->denied)
		s->req.hooks->denied(s->req.ctx, entry);
}

static void take_question(struct session *s, const struct violation *v)
{
	journal_asked(&s->journal, v->id, true, v->path);
	if (s->req.hooks && s->req.hooks->ask_write)
		s->req.hooks->ask_write(s->req.ctx, v);
	else
		session_answer_write(s, v->id, VIOLATION_REFUSE);
}

/* One message of the broker's, its texts ended whatever they are. What recv() says. */
static ssize_t receive_report(const struct session *s, struct violation *ret)
{
	const size_t head = offsetof(struct violation, path);
	ssize_t n = recv(s->reports[0], ret, sizeof(*ret), MSG_DONTWAIT);

	/* it left with an answer of ours unread; what it sent is still there */
	if (n < 0 && errno == ECONNRESET)
		n = recv(s->reports[0], ret, sizeof(*ret), MSG_DONTWAIT);
	if (n <= (ssize_t)head)
		return n > 0 ? -EPROTO : n;
	ret->path[(size_t)n - head - 1] = '\0';
	ret->process[sizeof(ret->process) - 1] = ret->rule[sizeof(ret->rule) - 1] = '\0';
	ret->source[sizeof(ret->source) - 1] = ret->reason[sizeof(ret->reason) - 1] = '\0';
	return n;
}

ssize_t session_hear_reports(struct session *s)
{
	struct violation v;
	ssize_t n;

	while ((n = receive_report(s, &v)) > 0) {
		if (v.kind == VIOLATION_ASK) {
			take_question(s, &v);
		} else if (v.kind >= VIOLATION_USED && v.kind < VIOLATION_KIND_MAX_) {
			if (s->req.hooks && s->req.hooks->used)
				s->req.hooks->used(s->req.ctx, &v);
		} else if (v.kind >= 0 && v.kind < VIOLATION_KIND_MAX_) {
			take_violation(s, &v);
		}
	}
	return n;
}

/* One record of the proxy's about this sandbox, or about itself. */
void session_on_egress(void *ctx, const struct egress_record *r)
{
	static const struct session_hooks none;
	struct session *s = ctx;
	const struct session_hooks *hooks = s->req.hooks ? s->req.hooks : &none;
	_cleanup_buf_ struct buf notice = BUF_INIT(BUF_MAX_TEXT);
	struct violation v;

	if (s->standby)
		return; /* nothing runs in it that this could be about */
	switch (r->kind) {
	case EGRESS_FAILED:
	case EGRESS_CONNECT:
		journal_decision(&s->journal, r);
		if (!r->allow) {
			egress_record_violation(r, &v);
			take_violation(s, &v);
		}
		if (hooks->decision)
			hooks->decision(s->req.ctx, r);
		break;
	case EGRESS_LOST:
		journal_decision(&s->journal, r);
		if (hooks->decision)
			hooks->decision(s->req.ctx, r);
		break;
	case EGRESS_ASK:
		text_append_safe(&notice, r->host);
		if (r->port)
			buf_printf(&notice, ":%u", (unsigned)r->port);
		journal_asked(&s->journal, r->id, false, buf_str(&notice));
		if (hooks->ask)
			hooks->ask(s->req.ctx, r);
		break;
	case EGRESS_UNASK:
		if (hooks->ask)
			hooks->ask(s->req.ctx, r);
		break;
	case EGRESS_NOTICE:
		text_append_safe(&notice, r->reason);
		if (hooks->note)
			hooks->note(s->req.ctx, buf_str(&notice));
		break;
	case EGRESS_READY:
	case EGRESS_GONE:
	case EGRESS_KIND_MAX_:
		break;
	}
}

void session_note_change(struct session *s, const struct audit_policy_change *c)
{
	journal_change(&s->journal, c);
}

void session_answer_write(struct session *s, uint32_t id, enum violation_answer answer)
{
	struct violation_reply reply = { .id = id, .answer = (int32_t)answer };

	journal_answered(&s->journal, id, true, "ask",
			 answer == VIOLATION_ALLOW_ONCE || answer == VIOLATION_ALLOW_RUN,
			 answer == VIOLATION_ALLOW_ONCE || answer == VIOLATION_REFUSE ? "once"
										      : "run");
	(void)!send(s->reports[0], &reply, sizeof(reply), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void session_answer(struct session *s, uint32_t id, enum egress_answer answer)
{
	journal_answered(&s->journal, id, false, s->req.learn ? "learn" : "ask",
			 answer == EGRESS_ALLOW_ONCE || answer == EGRESS_ALLOW_RUN,
			 answer == EGRESS_ALLOW_ONCE || answer == EGRESS_DENY ? "once" : "run");
	if (s->egress)
		egress_answer(s->egress, id, answer);
}
