/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of supervise/session*.c only. */
#pragma once

#include "sandbox/backend.h"
#include "sandbox/native/native.h"
#include "supervise/broker/broker.h"
#include "supervise/egress.h"
#include "supervise/journal.h"
#include "supervise/session.h"
#include "supervise/veil.h"

enum source {
	SOURCE_ERRORS,
	SOURCE_CONTROL,
	SOURCE_REPORTS,
	SOURCE_EGRESS,
	SOURCE_LISTENER,
	SOURCE_LIMITS,
	SOURCE_VEIL,
	SOURCE_INIT,
	SOURCE_MAX_
};

struct session {
	struct session_request req;
	struct arena *a;
	const struct plan *plan;
	const char *command; /* the words, for ignoreViolations */
	struct backend_decision chosen;
	struct sandbox_child child;
	pid_t broker;
	pid_t unveiling; /* who closes what the veil watched with */
	struct egress *egress; /* the request's, or our own; NULL = none */
	struct egress_user user; /* at it */
	struct journal journal;
	bool logged; /* its start is in the log */
	bool told; /* that the log cannot be written */
	int events; /* epoll over the sources */
	int sources[SOURCE_MAX_]; /* -1 = not, or no longer, watched; owned elsewhere */
	int listener; /* of the system call filter, until the broker has it */
	int user_ns, mount_ns; /* for the broker to join, and who hides what appears */
	struct veil *veil;
	bool veiled; /* there will be one */
	int changes; /* what it will watch with; -1 = it has it, or there is none */
	uint64_t veil_ms; /* when it begins; 0 = it has, or will not */
	int reports[2]; /* ours, the broker's */
	int lost; /* how many of them could not be sent; -1 = there was no broker */
	int inquiries; /* the broker's end; the other is the proxy's */
	bool redirects; /* connections get to the proxy by the broker only */
	bool ended, failed;
	bool alone; /* init is all that is left, and leaves */
	struct init_usage usage; /* of all that ran inside, once that is known */
	int status; /* wait status of the command */
	struct error failure;
	uint64_t started_ms, deadline_ms; /* deadline 0 = none */
	uint64_t
		over_ms; /* nobody is left inside; the proxy is waited for until then; 0 = not yet */
	struct limits *limits; /* NULL = none, and none to be measured */
	int limit; /* enum limit that was reached first, -1 = none */
	bool frozen; /* everything inside is stopped */
	int frozen_by; /* what stopped the command before that */
	struct standby *standby; /* of a sandbox that waits for its command; NULL = it has one */
};

int session_watch(struct session *s, enum source which, int fd) NODISCARD;
/* What a broker needs; the lock in it is the caller's to close. */
int session_fill_setup(struct session *s, struct broker_setup *ret, struct error *e) NODISCARD;
/* session_hear.c: all that the broker has sent. 0 = it is gone; -1 or -errno = there is no more now. */
ssize_t session_hear_reports(struct session *s);
/* One record of the proxy's about this sandbox, or about itself; ctx is the session. */
void session_on_egress(void *ctx, const struct egress_record *r);
void session_log_start(struct session *s);
/* While the command does not run yet, which might leave none for us. */
void session_reserve_veil(struct session *s);
/* Once its command runs. */
void session_begin_veil(struct session *s);

/* session_start.c: everything up to the command's start. */
int session_launch(struct session *s, struct error *e) NODISCARD;
/* Chooses a backend and compiles for it; `refused`: what the first choice said when it was tried. */
int session_prepare(struct session *s, const struct error *refused, struct error *e) NODISCARD;
/* Once the command is known: what is not enforced, what it is called; then what is logged. */
void session_note_lost(const struct session *s);
void session_name_command(struct session *s);
void session_tell_start(struct session *s);
struct session *session_new(const struct session_request *req);

/* session_standby.c */
int standby_begin(struct session *s, struct error *e) NODISCARD;
void standby_take_root(struct session *s, int fd);
void standby_end(struct session *s);
