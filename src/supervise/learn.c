/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observations, counted and compared with what is allowed anyway. Text in them was chosen by the
 * command: it is bounded where it comes from, and becomes part of a settings file only
 * quoted, or escaped in a comment.
 */
#include "supervise/learn.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "policy/match_path.h"
#include "sandbox/native/egress.h"

#define OBSERVED_MAX 50000 /* of each kind; more would not be a policy */
#define PROC_NET_MAX ((size_t)1 << 20)
#define DNS_PORT 53
#define SUBDOMAINS_MIN 5 /* so many hosts below one name are a rule for all of them */

#define PIDS_LEAST ((uint64_t)64)
#define MEMORY_LEAST ((uint64_t)256 << 20)

struct host_use {
	const char *host, *rule; /* rule: of the user's own, that allowed it */
	uint16_t port;
	uint64_t count, bytes;
};

struct given {
	const char *key, *value, *source;
};

struct learn {
	struct arena *a;
	const struct policy *base;
	const struct view *view;
	struct learned_paths written;
	struct host_use *hosts;
	size_t n_hosts;
	struct learned_paths sockets, ports; /* that the command wanted */
	uint16_t *listens;
	size_t n_listens;
	struct given *given;
	size_t n_given;
};

struct learn *learn_new(struct arena *a, const struct policy *base, const struct view *view)
{
	struct learn *l = arena_alloc(a, sizeof(*l));

	*l = (struct learn){ .a = a, .base = base, .view = view };
	return l;
}

void learn_given(struct learn *l, const char *key, const char *value, const char *source)
{
	*ARENA_PUSH(l->a, l->given, l->n_given) = (struct given){ key, value, source };
}

static void push_path(struct learn *l, struct learned_paths *list, const struct violation *v)
{
	if (list->n >= OBSERVED_MAX)
		return;
	*ARENA_PUSH(l->a, list->v, list->n) = (struct learned_path){
		.path = arena_strdup(l->a, v->path),
		.processes = arena_strdup(l->a, v->process),
		.count = 1,
		.made = v->kind == VIOLATION_MADE,
	};
}

static bool is_writable_anyway(const struct learn *l, const char *path)
{
	struct decision d;

	policy_decide_path(l->base, ACCESS_WRITE, path, &d);
	return d.verdict == VERDICT_ALLOW;
}

void learn_used(struct learn *l, const struct violation *v)
{
	struct stat st;

	if ((v->kind == VIOLATION_USED || v->kind == VIOLATION_MADE) &&
	    !is_writable_anyway(l, v->path))
		push_path(l, &l->written, v);
	/* what is not on the host either is none of ours */
	if (v->kind == VIOLATION_WANTED_UNIX && stat(v->path, &st) == 0 && S_ISSOCK(st.st_mode))
		push_path(l, &l->sockets, v);
	if (v->kind == VIOLATION_WANTED_PORT)
		push_path(l, &l->ports, v);
}

void learn_decision(struct learn *l, const struct egress_record *r)
{
	const char *rule = text_starts(r->rule, "allowedDomains ") ? r->rule + 15 : NULL;
	struct host_use *use = NULL;

	if (r->kind != EGRESS_CONNECT || !r->allow || !r->port || strcmp(r->via, "forward") == 0 ||
	    strcmp(r->via, "publish") == 0)
		return;
	for (size_t i = 0; i < l->n_hosts && !use; i++) {
		if (strcmp(l->hosts[i].host, r->host) == 0 && l->hosts[i].port == r->port)
			use = &l->hosts[i];
	}
	if (!use && l->n_hosts >= OBSERVED_MAX)
		return;
	if (!use) {
		use = ARENA_PUSH(l->a, l->hosts, l->n_hosts);
		*use = (struct host_use){ .host = arena_strdup(l->a, r->host), .port = r->port };
	}
	if (rule && !use->rule)
		use->rule = arena_strdup(l->a, rule);
	use->count++;
	use->bytes += r->sent + r->received;
}

static bool is_listed(const uint16_t *v, size_t n, uint16_t port)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i] == port)
			return true;
	}
	return false;
}

static unsigned hex_value(const char *s)
{
	unsigned v = 0;

	for (; ascii_hex(*s) >= 0; s++)
		v = v * 16 + (unsigned)ascii_hex(*s);
	return v;
}

/*
 * "  sl  local_address rem_address st ...": local is ADDRESS:PORT in hexadecimal digits, and a
 * socket that listens has the state 0A.
 */
static void read_listening(struct learn *l, const char *text, uint16_t **ret, size_t *ret_n)
{
	const char *line = strchr(text, '\n');

	for (; line && line[1]; line = strchr(line + 1, '\n')) {
		const char *colon = strchr(line + 1, ':'), *local, *remote;
		unsigned port;

		local = colon ? strchr(colon + 1, ':') : NULL;
		remote = local ? strchr(local + 1, ':') : NULL;
		if (!remote || strncmp(remote + 5, " 0A ", 4) != 0)
			continue;
		port = hex_value(local + 1);
		if (port && port <= UINT16_MAX && !is_listed(*ret, *ret_n, (uint16_t)port))
			*ARENA_PUSH(l->a, *ret, *ret_n) = (uint16_t)port;
	}
}

static void look_at(struct learn *l, const char *proc, uint16_t **ret, size_t *ret_n)
{
	static const char *const tables[] = { "tcp", "tcp6" };

	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		_cleanup_free_ char *text = NULL;
		char path[64];

		(void)snprintf(path, sizeof(path), "%s/net/%s", proc, tables[i]);
		if (fd_read_file(AT_FDCWD, path, PROC_NET_MAX, &text, NULL) == 0)
			read_listening(l, text, ret, ret_n);
	}
}

void learn_look(struct learn *l, pid_t init)
{
	char proc[32];

	(void)snprintf(proc, sizeof(proc), "/proc/%d", init);
	look_at(l, proc, &l->listens, &l->n_listens);
}

/*
 * The rules.
 */

static void add_rule(struct learn *l, struct learned_rules *to, const char *key, const char *value,
		     const char *comment)
{
	for (size_t i = 0; i < to->n; i++) {
		if (strcmp(to->v[i].key, key) == 0 && strcmp(to->v[i].value, value) == 0)
			return;
	}
	*ARENA_PUSH(l->a, to->v, to->n) = (struct learned_rule){ key, value, comment };
}

/* With ~ for the home directory: a policy may be used by somebody else. */
static const char *tilde(struct learn *l, const char *path)
{
	const char *home = l->base->home;

	if (strcmp(home, "/") == 0 || !path_within(path, home))
		return path;
	return arena_printf(l->a, "~%s", path + strlen(home));
}

/* Only a rule for all of its directory would allow it: for a person to decide, or to go around. */
static void refuse_wide(struct learn *l, const struct learned_path *w, struct learned *out)
{
	const char *slash = strrchr(w->path, '/'), *path = tilde(l, w->path);
	const char *dir =
		slash == w->path
			? "/"
			: tilde(l, arena_strndup(l->a, w->path, (size_t)(slash - w->path)));
	enum file_kind kind = l->view->kind(l->view, w->path);

	if (w->replaced_by)
		add_rule(l, &out->refused, "filesystem.allowWrite", pattern_escape(l->a, dir),
			 arena_printf(l->a,
				      "%s replaced %s, by way of %s: a rule for the file does not "
				      "allow that, and %s is shared by many programs",
				      w->processes, path, tilde(l, w->replaced_by), dir));
	else if (kind == FILE_REGULAR)
		add_rule(l, &out->refused, "filesystem.allowWrite", pattern_escape(l->a, path),
			 arena_printf(l->a,
				      "made by %s; only where the file is there already is this a "
				      "rule for it: make an empty one before the run, else all of "
				      "%s would have to be writable",
				      w->processes, dir));
	else if (kind == FILE_DIRECTORY)
		add_rule(l, &out->refused, "filesystem.allowWrite", pattern_escape(l->a, path),
			 arena_printf(l->a,
				      "made by %s; many programs share it: make it before "
				      "the run",
				      w->processes));
	else
		add_rule(
			l, &out->refused, "filesystem.allowWrite", pattern_escape(l->a, dir),
			arena_printf(
				l->a,
				"%s made or removed %s: nothing less would allow it; better let it "
				"write elsewhere",
				w->processes, path));
}

static void add_writes(struct learn *l, struct learned *out)
{
	struct learned_paths rules, wide;

	learn_generalise(l->a, l->view, l->base->home, &l->written, &rules, &wide);
	for (size_t i = 0; i < rules.n; i++) {
		const struct learned_path *r = &rules.v[i];

		add_rule(l, &out->rules, "filesystem.allowWrite",
			 pattern_escape(l->a, tilde(l, r->path)),
			 strcmp(r->path, r->used) == 0
				 ? arena_printf(l->a, "%s", r->processes)
				 : arena_printf(l->a, "%s: %s", r->processes, tilde(l, r->used)));
	}
	/* of several in one directory the first is told: rather the file that stays than the other */
	for (size_t i = 0; i < wide.n; i++) {
		if (wide.v[i].replaced_by)
			refuse_wide(l, &wide.v[i], out);
	}
	for (size_t i = 0; i < wide.n; i++) {
		if (!wide.v[i].replaced_by)
			refuse_wide(l, &wide.v[i], out);
	}
}

static bool is_reachable_anyway(const struct learn *l, const struct host_use *use)
{
	struct host host;

	if (host_parse(use->host, strlen(use->host), &host, NULL) < 0)
		return false;
	for (size_t i = 0; i < l->base->network.allowed.n; i++) {
		if (host_rule_matches(&l->base->network.allowed.v[i].rule, &host, use->port))
			return true;
	}
	return false;
}

/* What follows the first dot, if it is a name that can belong to one owner. */
static const char *domain_of(const char *host)
{
	const char *dot = strchr(host, '.'), *next = dot ? strchr(dot + 1, '.') : NULL;

	if (!next || ascii_digit(host[strlen(host) - 1]) || strchr(host, ':'))
		return NULL;
	/* of two parts, co.uk and the like belong to many: the first part must be a longer one */
	return strchr(next + 1, '.') || next - dot > 4 ? dot + 1 : NULL;
}

static size_t count_below(const struct learn *l, const char *domain, uint16_t port)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n_hosts; i++) {
		const char *d = domain_of(l->hosts[i].host);

		n += d && l->hosts[i].port == port && strcmp(d, domain) == 0 && !l->hosts[i].rule;
	}
	return n;
}

static void add_hosts(struct learn *l, struct learned *out)
{
	for (size_t i = 0; i < l->n_hosts; i++) {
		const struct host_use *use = &l->hosts[i];
		const char *domain = domain_of(use->host), *value, *comment;

		if (is_reachable_anyway(l, use))
			continue;
		comment = arena_printf(l->a, "%" PRIu64 " connection%s, %" PRIu64 " KB", use->count,
				       use->count == 1 ? "" : "s", (use->bytes + 1023) / 1024);
		if (use->rule) {
			value = use->rule;
		} else if (domain && count_below(l, domain, use->port) >= SUBDOMAINS_MIN) {
			value = arena_printf(l->a, "*.%s:%u", domain, use->port);
			comment = arena_printf(l->a, "%zu hosts, %s among them",
					       count_below(l, domain, use->port), use->host);
		} else {
			value = arena_printf(l->a, strchr(use->host, ':') ? "[%s]:%u" : "%s:%u",
					     use->host, use->port);
		}
		add_rule(l, &out->rules, "network.allowedDomains", value, comment);
	}
}

/* What listens inside for the proxy. */
static bool is_of_proxy(uint16_t port)
{
	return port == EGRESS_HTTP_PORT || port == EGRESS_SOCKS_PORT || port == DNS_PORT ||
	       port == EGRESS_TRANSPARENT_PORT;
}

static void add_ports(struct learn *l, struct learned *out)
{
	uint16_t *host = NULL;
	size_t n_host = 0;

	look_at(l, "/proc/self", &host, &n_host);
	for (size_t i = 0; i < l->ports.n; i++) {
		uint16_t port = (uint16_t)text_leading_u64(l->ports.v[i].path);

		/* somebody listens there, and it is not the command itself */
		if (is_listed(host, n_host, port) && !is_listed(l->listens, l->n_listens, port))
			add_rule(l, &out->refused, "network.allowHostPorts", l->ports.v[i].path,
				 arena_printf(l->a, "a service on this machine that %s asked for",
					      l->ports.v[i].processes));
	}
	for (size_t i = 0; i < l->n_listens; i++) {
		if (is_of_proxy(l->listens[i]))
			continue;
		add_rule(l, &out->refused, "network.publish",
			 arena_printf(l->a, "%u", l->listens[i]),
			 "it listens there; to be reached from outside");
	}
	for (size_t i = 0; i < l->sockets.n; i++)
		add_rule(l, &out->refused, "network.allowUnixSockets", l->sockets.v[i].path,
			 arena_printf(l->a, "%s asked for it; it can do all that the service does",
				      l->sockets.v[i].processes));
}

/* Nothing of the kind is in a list that the user gave. */
static bool is_given(const struct learn *l, const char *key)
{
	for (size_t i = 0; i < l->n_given; i++) {
		if (strcmp(l->given[i].key, key) == 0)
			return true;
	}
	return false;
}

static const char *size_text(struct arena *a, uint64_t bytes)
{
	return arena_printf(a, "%" PRIu64 "m", bytes >> 20);
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* What a limit would be, and by what; unsure: there may have been more for a moment. */
static void add_limit(struct learn *l, struct learned *out, const char *key, const char *value,
		      bool sure, const char *comment)
{
	if (is_given(l, key))
		return;
	if (sure)
		add_rule(l, &out->rules, key, value, comment);
	else
		add_rule(l, &out->refused, key, value,
			 arena_printf(l->a, "%s, but only now and then was looked", comment));
}

/*
 * No more than were started in all have been there at once, and that many would do for sure. Where a
 * limit was there already, the command got by with it: only what was seen raises it.
 */
static void add_pids(struct learn *l, const struct run_result *r, struct learned *out)
{
	uint64_t have = l->base->limits.pids, seen = r->peak.pids ? r->peak.pids : 1;
	uint64_t most = r->peak.pids_exact ? seen : r->limit < 0 ? r->peak.tasks : 0;
	uint64_t n = round_up(2 * (have || most < seen ? seen : most), 16);

	if (have >= n)
		return;
	add_limit(l, out, "limits.pids",
		  arena_printf(l->a, "%" PRIu64, n < PIDS_LEAST ? PIDS_LEAST : n), have || most,
		  most && !r->peak.pids_exact
			  ? arena_printf(l->a, "%" PRIu64 " in all, %" PRIu64 " seen at once", most,
					 seen)
			  : arena_printf(l->a, "peak %" PRIu64, seen));
}

static uint64_t machine_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

/*
 * The kernel knows how large the largest process was, and if all that were started had been
 * that large at once, it was no more than the product. Above what the machine has that says
 * nothing. Private files are in what was seen only.
 */
static void add_memory(struct learn *l, const struct run_result *r, struct learned *out)
{
	uint64_t have = l->base->limits.memory, seen = report_memory_peak(r);
	uint64_t most = r->peak.tasks && r->max_rss && r->limit < 0 ? r->max_rss : 0, n;
	bool sure = r->peak.memory_exact || have;

	if (!sure && most && !__builtin_mul_overflow(most, r->peak.tasks, &most) &&
	    most < machine_memory())
		sure = true;
	else
		most = 0;
	n = round_up(2 * seen > most ? 2 * seen : most, (uint64_t)64 << 20);
	if (have >= n)
		return;
	add_limit(l, out, "limits.memory", size_text(l->a, n < MEMORY_LEAST ? MEMORY_LEAST : n),
		  sure,
		  arena_printf(l->a, "peak %s", size_text(l->a, seen + ((uint64_t)1 << 20) - 1)));
}

/* Twice the peak, so that an ordinary day is no accident. */
static void add_limits(struct learn *l, const struct run_result *r, struct learned *out)
{
	const struct policy_limits *have = &l->base->limits;
	uint64_t minutes = round_up(10 * r->wall_ms, 60000) / 60000;

	add_memory(l, r, out);
	add_pids(l, r, out);
	if (!have->timeout_ms || have->timeout_ms < minutes * 60000)
		add_limit(l, out, "limits.timeout",
			  arena_printf(l->a, "%" PRIu64 "m", minutes < 10 ? (uint64_t)10 : minutes),
			  true,
			  arena_printf(l->a, "took %" PRIu64 ".%" PRIu64 " s", r->wall_ms / 1000,
				       r->wall_ms % 1000 / 100));
}

static void add_refused(struct learn *l, const struct report *report, struct learned *out)
{
	for (size_t i = 0; i < report->n_denied; i++) {
		const struct report_entry *e = &report->denied[i];

		/* a program that looks whether it is there */
		if (strcmp(e->kind, "read") == 0 &&
		    l->view->kind(l->view, e->target) == FILE_ABSENT)
			continue;
		add_rule(l, &out->refused, "", e->hint ? e->hint : "nothing allows it",
			 arena_printf(l->a, "%s %s%s%s: %s", e->kind, tilde(l, e->target),
				      *e->process ? " by " : "", e->process, e->reason));
	}
}

void learn_finish(struct learn *l, const struct report *report, const struct run_result *result,
		  struct learned *ret)
{
	*ret = (struct learned){ 0 };
	for (size_t i = 0; i < l->n_given; i++)
		add_rule(l, &ret->rules, l->given[i].key, l->given[i].value, l->given[i].source);
	add_hosts(l, ret);
	add_writes(l, ret);
	add_limits(l, result, ret);
	add_ports(l, ret);
	add_refused(l, report, ret);
}
