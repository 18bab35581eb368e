/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/journal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/text.h"
#include "policy/schema.h"
#include "supervise/egress_record.h"
#include "supervise/report.h"
#include "supervise/session.h"

#define LIST_MAX 50 /* entries of a list in one record */

void journal_init(struct journal *j, struct audit *log)
{
	*j = (struct journal){ .log = log };
	if (log)
		audit_new_run(j->run);
}

/* One more line: is there room for it? Start and end of a run are always written. */
static bool may_write(struct journal *j, enum journal_kind kind)
{
	if (!j->log)
		return false;
	if (j->lines[kind] < JOURNAL_LINES_MAX) {
		j->lines[kind]++;
		return true;
	}
	j->left_out++;
	return false;
}

static void commit(struct journal *j, struct audit_record *r)
{
	struct error e;
	int err = audit_commit(j->log, r, &e);

	if (err < 0 && !j->failed) {
		j->failed = err;
		j->error = e;
	}
}

static void put_writable(struct journal *j, struct audit_record *r, const struct policy *p)
{
	size_t n = 0;

	(void)j;
	json_key(&r->json, "allowWrite");
	json_begin_array(&r->json);
	for (size_t i = 0; i < p->fs.rules.n && n < LIST_MAX; i++) {
		const struct path_rule *rule = &p->fs.rules.v[i];

		if (rule->access != ACCESS_WRITE || rule->verdict != VERDICT_ALLOW)
			continue;
		json_string(&r->json, rule->real);
		n++;
	}
	json_end_array(&r->json);
}

static void put_hosts(struct audit_record *r, const char *key, const struct host_rules *hosts)
{
	if (!hosts->n)
		return;
	json_key(&r->json, key);
	json_begin_array(&r->json);
	for (size_t i = 0; i < hosts->n && i < LIST_MAX; i++)
		json_string(&r->json, hosts->v[i].text);
	if (hosts->n > LIST_MAX)
		json_string(&r->json, "...");
	json_end_array(&r->json);
}

static const char *network_word(const struct policy *p)
{
	return settings_table[setting_find("network.mode")].values[p->network.mode];
}

void journal_start(struct journal *j, const struct policy *p, char *const *argv,
		   const char *backend)
{
	struct audit_record r;

	if (!j->log)
		return;
	audit_begin(j->log, &r, "run-start", j->run);
	audit_put_argv(j->log, &r, "command", argv);
	json_kstring(&r.json, "cwd", p->cwd);
	json_kint(&r.json, "uid", (int64_t)getuid());
	json_kint(&r.json, "pid", (int64_t)getpid());
	json_kbool(&r.json, "sandboxed", strcmp(backend, "none") != 0);
	json_kstring(&r.json, "backend", backend);
	json_kstring(&r.json, "network", network_word(p));
	put_hosts(&r, "allowedDomains", &p->network.allowed);
	put_writable(j, &r, p);
	commit(j, &r);
}

void journal_denied(struct journal *j, const struct report_entry *entry)
{
	struct audit_record r;

	if (!may_write(j, JOURNAL_VIOLATION))
		return;
	audit_begin(j->log, &r, "violation", j->run);
	json_kstring(&r.json, "kind", entry->kind);
	audit_put_text(j->log, &r, "target", entry->target);
	json_kstring(&r.json, "rule", entry->rule);
	json_kstring(&r.json, "source", entry->source);
	audit_put_text(j->log, &r, "reason", entry->reason);
	json_kstring(&r.json, "process", entry->process);
	json_kint(&r.json, "pid", entry->pid);
	json_kint(&r.json, "time", entry->time_ms);
	audit_put_text(j->log, &r, "hint", entry->hint);
	json_kint(&r.json, "count", (int64_t)entry->count);
	commit(j, &r);
}

/* Salted with the name of the run, which the command does not know: no two of its places meet. */
static uint64_t hash_place(const struct journal *j, const struct egress_record *d)
{
	uint8_t hash[SHA256_LEN];
	struct sha256 sum;
	uint64_t ret;

	sha256_init(&sum);
	sha256_update(&sum, j->run, sizeof(j->run));
	sha256_update(&sum, &d->port, sizeof(d->port));
	sha256_update(&sum, &d->allow, sizeof(d->allow));
	sha256_update(&sum, d->host, strlen(d->host));
	sha256_final(&sum, hash);
	memcpy(&ret, hash, sizeof(ret));
	return ret;
}

/* The same place with the same outcome is one line. */
static bool is_known(struct journal *j, const struct egress_record *d)
{
	uint64_t h = hash_place(j, d);

	for (size_t i = 0; i < j->n_places; i++) {
		if (j->places[i] == h)
			return true;
	}
	if (j->n_places < JOURNAL_PLACES_MAX)
		j->places[j->n_places++] = h;
	return false;
}

void journal_decision(struct journal *j, const struct egress_record *d)
{
	struct audit_record r;

	if (d->kind == EGRESS_LOST) {
		j->lost += d->count;
		return;
	}
	if (d->kind == EGRESS_CONNECT && d->allow)
		j->allowed++;
	else if (d->kind == EGRESS_CONNECT)
		j->denied++;
	j->sent += d->sent;
	j->received += d->received;
	if (!j->log || is_known(j, d) ||
	    !may_write(j, d->allow ? JOURNAL_CONNECTED : JOURNAL_REFUSED))
		return;
	audit_begin(j->log, &r, "network", j->run);
	if (d->kind == EGRESS_CONNECT) {
		json_kstring(&r.json, "host", d->host);
		if (d->port)
			json_kint(&r.json, "port", d->port);
		json_kstring(&r.json, "verdict", d->allow ? "allow" : "deny");
	} else {
		json_kstring(&r.json, "verdict", "failed");
	}
	audit_put_text(j->log, &r, "via", d->via);
	audit_put_text(j->log, &r, "rule", d->rule);
	audit_put_text(j->log, &r, "reason", d->reason);
	audit_put_text(j->log, &r, "address", d->address);
	commit(j, &r);
}

void journal_network(struct journal *j, const char *by, const struct policy *p)
{
	struct audit_record r;

	if (!may_write(j, JOURNAL_CHANGE))
		return;
	audit_begin(j->log, &r, "policy-change", j->run);
	json_kstring(&r.json, "by", by);
	json_kstring(&r.json, "action", "network lists");
	put_hosts(&r, "allowedDomains", &p->network.allowed);
	put_hosts(&r, "deniedDomains", &p->network.denied);
	commit(j, &r);
}

void journal_asked(struct journal *j, uint32_t id, bool write, const char *target)
{
	struct journal_question *q = &j->questions[j->n_questions++ % JOURNAL_QUESTIONS_MAX];

	*q = (struct journal_question){ .id = id, .write = write };
	text_copy(q->target, sizeof(q->target), target);
}

static const char *find_question(const struct journal *j, uint32_t id, bool write)
{
	for (size_t i = 0; i < j->n_questions && i < JOURNAL_QUESTIONS_MAX; i++) {
		if (j->questions[i].id == id && j->questions[i].write == write)
			return j->questions[i].target;
	}
	return "unknown";
}

void journal_change(struct journal *j, const struct audit_policy_change *c)
{
	struct audit_policy_change change = *c;
	struct error e;
	int r;

	if (!may_write(j, JOURNAL_CHANGE))
		return;
	change.run = j->run;
	r = audit_policy_change(j->log, &change, &e);
	if (r < 0 && !j->failed) {
		j->failed = r;
		j->error = e;
	}
}

void journal_answered(struct journal *j, uint32_t id, bool write, const char *by, bool allow,
		      const char *scope)
{
	journal_change(j,
		       &(struct audit_policy_change){
			       .by = by,
			       .action = allow ? "allow" : "deny",
			       .setting = write ? "filesystem.unprotect" : "network.allowedDomains",
			       .value = find_question(j, id, write),
			       .scope = scope,
		       });
}

void journal_end(struct journal *j, const struct run_result *result, const struct report *report,
		 const struct error *e)
{
	struct audit_record r;

	if (!j->log)
		return;
	audit_begin(j->log, &r, "run-end", j->run);
	if (result) {
		json_kint(&r.json, "exitCode", result->exit_code);
		json_kint(&r.json, "signal", result->signal);
		json_kbool(&r.json, "timedOut", result->timed_out);
		json_kint(&r.json, "wallMs", (int64_t)result->wall_ms);
		json_kint(&r.json, "cpuMs", (int64_t)result->cpu_ms);
		json_kint(&r.json, "maxRss", (int64_t)result->max_rss);
	} else {
		audit_put_text(j->log, &r, "error", e->text);
	}
	json_kint(&r.json, "violations", (int64_t)report->n_denied);
	json_kint(&r.json, "connectionsAllowed", (int64_t)j->allowed);
	json_kint(&r.json, "connectionsDenied", (int64_t)j->denied);
	json_kint(&r.json, "bytesSent", (int64_t)j->sent);
	json_kint(&r.json, "bytesReceived", (int64_t)j->received);
	if (j->lost)
		json_kint(&r.json, "connectionsNotTold", (int64_t)j->lost);
	/* what the report has no room for is not told to us either */
	if (j->left_out + report->dropped)
		json_kint(&r.json, "recordsLeftOut", (int64_t)(j->left_out + report->dropped));
	commit(j, &r);
}
