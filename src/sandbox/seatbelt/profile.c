/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile. Seatbelt takes the last rule that matches, so everything is written from the
 * general to the special:
 *
 *   nothing is allowed
 *   what every program needs to start
 *   reading: everything, then the rules by depth, a deny after an allow of the same depth
 *   writing: the allowed places, then every deny, then protected names
 *   the directories above all those: not to be moved away with what they hold
 *   the network: nothing, the proxy's ports, or all
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "sandbox/seatbelt/seatbelt.h"

struct writer {
	struct arena *a;
	const struct policy *p;
	const struct seatbelt_facts *facts;
	struct buf *out;
	struct error *e;
	int r; /* the first failure */
};

static void line(struct writer *w, const char *text)
{
	buf_puts(w->out, text);
	buf_putc(w->out, '\n');
}

static void quote(struct writer *w, const char *s)
{
	if (seatbelt_quote(s, w->out) < 0 && w->r == 0)
		w->r = error_set(w->e, EINVAL,
				 "a path with control characters cannot be written in a Seatbelt "
				 "profile");
}

/* (verb operation (filter "path")) */
static void rule(struct writer *w, const char *verb, const char *operation, const char *filter,
		 const char *path)
{
	buf_printf(w->out, "(%s %s (%s ", verb, operation, filter);
	quote(w, path);
	line(w, "))");
}

static void rule_pattern(struct writer *w, const char *verb, const char *operation,
			 const char *pattern, size_t fold)
{
	_cleanup_buf_ struct buf regex = BUF_INIT(BUF_MAX_TEXT);

	if (seatbelt_regex(pattern, fold, &regex) < 0 && w->r == 0)
		w->r = error_set(w->e, EINVAL,
				 "a pattern with special characters in brackets cannot be written "
				 "in a Seatbelt profile: %s",
				 pattern);
	rule(w, verb, operation, "regex", buf_str(&regex));
}

static void rule_path(struct writer *w, const char *verb, const char *operation,
		      const struct path_rule *r)
{
	if (r->glob)
		rule_pattern(w, verb, operation, r->real, SIZE_MAX);
	else
		rule(w, verb, operation, "subpath", r->real);
}

/* What is of this run alone, at whose end it is removed. */
static void rule_own(struct writer *w, const char *operation)
{
	if (w->facts->tmp)
		rule(w, "allow", operation, "subpath", w->facts->tmp);
	if (w->facts->home)
		rule(w, "allow", operation, "subpath", w->facts->home);
}

/* The directories for everybody's temporary files. */
static void rule_common(struct writer *w, const char *verb, const char *operation)
{
	rule(w, verb, operation, "subpath", "/private/tmp");
	rule(w, verb, operation, "subpath", "/private/var/tmp");
}

/* --- what every program needs ------------------------------------------------------ */

static void write_basics(struct writer *w)
{
	static const char *const text[] = {
		"(version 1)",
		"(deny default (with message \"ambit\"))",
		"",
		"; processes",
		"(allow process-exec process-fork)",
		"(allow signal (target same-sandbox))",
		"(allow process-info* (target same-sandbox))",
		"(allow mach-priv-task-port (target same-sandbox))",
		"(allow process-codesigning-status*)",
		"(allow file-map-executable dynamic-code-generation)",
		"",
		"; what the C library and language runtimes ask of the system",
		"(allow sysctl-read)",
		"(allow system-info)",
		"(allow user-preference-read)",
		"(allow iokit-get-properties)",
		"(allow ipc-posix-sem ipc-posix-shm*)",
		"(allow mach-lookup",
		"  (global-name \"com.apple.system.opendirectoryd.libinfo\")",
		"  (global-name \"com.apple.system.opendirectoryd.membership\")",
		"  (global-name \"com.apple.system.notification_center\")",
		"  (global-name \"com.apple.system.logger\")",
		"  (global-name \"com.apple.logd\")",
		"  (global-name \"com.apple.bsd.dirhelper\")",
		"  (global-name \"com.apple.trustd.agent\")",
		"  (global-name \"com.apple.SecurityServer\")",
		"  (global-name \"com.apple.cfprefsd.agent\")",
		"  (global-name \"com.apple.cfprefsd.daemon\")",
		"  (global-name \"com.apple.PowerManagement.control\"))",
		"",
		"; terminals and the usual devices",
		"(allow pseudo-tty)",
		"(allow file-ioctl file-read* file-write*",
		"  (literal \"/dev/ptmx\") (literal \"/dev/tty\") (literal \"/dev/console\")",
		"  (regex \"^/dev/ttys[0-9]+$\"))",
		"(allow file-read* file-write-data file-ioctl",
		"  (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/random\")",
		"  (literal \"/dev/urandom\") (literal \"/dev/dtracehelper\")",
		"  (regex \"^/dev/fd/[0-9]+$\") (literal \"/dev/stdin\") (literal \"/dev/stdout\")",
		"  (literal \"/dev/stderr\"))",
	};

	for (size_t i = 0; i < ARRAY_LEN(text); i++)
		line(w, text[i]);
}

/* --- files ------------------------------------------------------------------------- */

static unsigned depth_of(const char *path)
{
	unsigned n = 0;

	for (; *path; path++)
		n += *path == '/' && path[1];
	return n;
}

/* A locked deny last of all; else by depth, and the deny after the allow. */
static int by_strength(const void *a, const void *b)
{
	const struct path_rule *x = *(const struct path_rule *const *)a;
	const struct path_rule *y = *(const struct path_rule *const *)b;
	unsigned dx = depth_of(x->real), dy = depth_of(y->real);

	if (x->locked != y->locked)
		return x->locked ? 1 : -1;
	if (dx != dy)
		return dx < dy ? -1 : 1;
	if (x->origin.layer != y->origin.layer)
		return x->origin.layer < y->origin.layer ? -1 : 1;
	if (x->verdict != y->verdict)
		return x->verdict == VERDICT_ALLOW ? -1 : 1;
	return strcmp(x->real, y->real) ? strcmp(x->real, y->real) : (x > y) - (x < y);
}

/*
 * Does it count in this order, where the deepest wins? What an untrusted project allows only where
 * the path is open for others too; that of a pattern cannot be told, so it is left out.
 */
static bool is_counted(const struct writer *w, const struct path_rule *r)
{
	struct decision d;

	if (!r->origin.untrusted || r->verdict == VERDICT_DENY)
		return true;
	policy_decide_path(w->p, ACCESS_READ, r->real, &d);
	return !r->glob && d.verdict == VERDICT_ALLOW;
}

static const struct path_rule **sorted(const struct writer *w, size_t *ret_n)
{
	const struct path_rules *rules = &w->p->fs.rules;
	const struct path_rule **v = arena_array(w->a, rules->n + 1, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < rules->n; i++) {
		if (is_counted(w, &rules->v[i]))
			v[n++] = &rules->v[i];
	}
	if (n > 0)
		qsort(v, n, sizeof(*v), by_strength);
	*ret_n = n;
	return v;
}

static void write_reads(struct writer *w)
{
	size_t n;
	const struct path_rule **v = sorted(w, &n);

	line(w, "\n; reading: everything but what is denied");
	line(w, "(allow file-read*)");
	if (w->p->fs.tmp == TMP_PRIVATE)
		rule_common(w, "deny", "file-read*");
	if (w->p->fs.home == HOME_PRIVATE)
		rule(w, "deny", "file-read*", "subpath", w->p->home);
	for (size_t i = 0; i < n; i++) {
		bool allows = v[i]->verdict == VERDICT_ALLOW;

		if (v[i]->access == ACCESS_READ || allows)
			rule_path(w, allows ? "allow" : "deny", "file-read*", v[i]);
	}
	rule_own(w, "file-read*");
	if (w->facts->self)
		rule(w, "allow", "file-read*", "literal", w->facts->self);
	line(w, "; the way to what may be read can be walked, and not listed; dyld needs /");
	line(w, "(allow file-read-metadata (vnode-type DIRECTORY))");
	line(w, "(allow file-read* (literal \"/\"))");
}

/* The path as the beginning of a pattern. */
static const char *escaped(const struct writer *w, const char *root)
{
	char *copy = arena_alloc(w->a, 2 * strlen(root) + 1), *s = copy;

	for (; *root && strcmp(root, "/") != 0; root++) {
		if (strchr("\\*?[", *root))
			*s++ = '\\';
		*s++ = *root;
	}
	return copy;
}

/*
 * At any depth below a writable place, whatever stands there. Git directories are known by
 * their name here, and without a broker their configuration is closed altogether: in a
 * new clone git has to be run outside, or with allowGitConfig.
 */
static void protect_below(struct writer *w, const char *root)
{
	static const char *const git[] = { ".git/hooks", ".git/modules/**/hooks", ".git/config",
					   ".git/config.worktree", ".git/modules/**/config" };
	const char *start = escaped(w, root);
	const char *any = w->p->fs.protect == PROTECT_ANCHORS ? "" : "/**";

	for (size_t i = 0; i < w->p->fs.n_protected; i++) {
		if (!w->p->fs.protected[i].lifted)
			rule_pattern(w, "deny", "file-write*",
				     arena_printf(w->a, "%s%s/%s", start, any,
						  w->p->fs.protected[i].pattern),
				     strlen(start));
	}
	for (size_t i = 0; i < ARRAY_LEN(git); i++) {
		if (i < 2 || !w->p->fs.allow_git_config)
			rule_pattern(w, "deny", "file-write*",
				     arena_printf(w->a, "%s/**/%s", start, git[i]), strlen(start));
	}
}

/* Whoever can move a directory away can put another in its place. */
static void pin_ancestors(struct writer *w, const char *path, const char *root)
{
	char *dir = arena_strdup(w->a, path);

	for (char *slash; (slash = strrchr(dir, '/')) && slash != dir;) {
		*slash = '\0';
		if (!path_within(dir, root))
			return;
		rule(w, "deny", "file-write-unlink", "literal", dir);
	}
}

static bool is_writable(const struct writer *w, const char *path)
{
	const struct path_rules *rules = &w->p->fs.rules;

	for (size_t i = 0; i < rules->n; i++) {
		const struct path_rule *r = &rules->v[i];

		if (r->access == ACCESS_WRITE && r->verdict == VERDICT_ALLOW && !r->glob &&
		    path_within(path, r->real))
			return true;
	}
	return false;
}

/* Allowed, as far as it can be read, and not denied. */
static void write_places(struct writer *w)
{
	size_t n;
	const struct path_rule **v = sorted(w, &n);

	for (size_t i = 0; i < n; i++) {
		bool allows = v[i]->verdict == VERDICT_ALLOW;

		if (v[i]->access == ACCESS_READ && !allows)
			rule_path(w, "deny", "file-write*", v[i]);
		else if (allows && (v[i]->access == ACCESS_WRITE || is_writable(w, v[i]->real)))
			rule_path(w, "allow", "file-write*", v[i]);
	}
	for (size_t i = 0; i < n; i++) {
		if (v[i]->access == ACCESS_WRITE && v[i]->verdict == VERDICT_DENY)
			rule_path(w, "deny", "file-write*", v[i]);
	}
}

static void write_writes(struct writer *w)
{
	const struct path_rules *rules = &w->p->fs.rules;

	line(w, "\n; writing");
	write_places(w);
	if (w->p->fs.tmp == TMP_SHARED) {
		rule_common(w, "allow", "file-write*");
		if (w->facts->shared_tmp)
			rule(w, "allow", "file-write*", "subpath", w->facts->shared_tmp);
	}
	rule_own(w, "file-write*");
	line(w, "\n; names that run later outside, at any depth, there or not");
	for (size_t i = 0; i < rules->n; i++) {
		const struct path_rule *r = &rules->v[i];

		if (r->access == ACCESS_WRITE && r->verdict == VERDICT_ALLOW && !r->glob)
			protect_below(w, r->real);
	}
	line(w, "\n; and the directories above what is denied stay where they are");
	for (size_t i = 0; i < rules->n; i++) {
		const struct path_rule *deny = &rules->v[i];

		if (deny->verdict != VERDICT_DENY || deny->glob)
			continue;
		for (size_t k = 0; k < rules->n; k++) {
			const struct path_rule *r = &rules->v[k];

			if (r->access == ACCESS_WRITE && r->verdict == VERDICT_ALLOW && !r->glob &&
			    path_within(deny->real, r->real))
				pin_ancestors(w, deny->real, r->real);
		}
	}
	line(w, "\n; no way to more rights by a file's mode");
	line(w, "(deny file-write-setugid)");
}

/* --- network ----------------------------------------------------------------------- */

static void write_port(struct writer *w, uint16_t port)
{
	if (port)
		buf_printf(w->out, "(allow network-outbound (remote ip \"localhost:%u\"))\n",
			   (unsigned)port);
}

static void write_network(struct writer *w)
{
	const struct policy_network *n = &w->p->network;

	line(w, "\n; network");
	if (n->mode == NETWORK_HOST) {
		line(w, "(allow network* system-socket)");
		return;
	}
	if (n->mode == NETWORK_ALLOWLIST) {
		line(w, "(allow system-socket (require-all (socket-domain AF_SYSTEM) "
			"(socket-protocol 2)))");
		write_port(w, n->http_proxy_port ? n->http_proxy_port : w->facts->http_port);
		write_port(w, n->socks_proxy_port ? n->socks_proxy_port : w->facts->socks_port);
	}
	for (size_t i = 0; i < n->host_ports.n; i++)
		write_port(w, n->host_ports.v[i].port);
	if (n->allow_local_binding) {
		line(w, "(allow network-bind (local ip \"localhost:*\"))");
		line(w, "(allow network-inbound (local ip \"localhost:*\"))");
	}
	if (n->allow_all_unix_sockets)
		line(w, "(allow network* (subpath \"/\"))");
	for (size_t i = 0; i < n->unix_sockets.n; i++)
		rule(w, "allow", "network-outbound", "literal", n->unix_sockets.v[i].text);
	rule_own(w, "network*");
}

int seatbelt_profile(struct arena *a, const struct policy *p, const struct seatbelt_facts *facts,
		     struct buf *out, struct error *e)
{
	struct writer w = { .a = a, .p = p, .facts = facts, .out = out, .e = e };

	if (p->network.publish.n > 0)
		return error_set(e, ENOTSUP,
				 "network.publish: macOS has no network of the "
				 "command's own to publish from; listen on localhost");
	write_basics(&w);
	write_reads(&w);
	write_writes(&w);
	write_network(&w);
	if (w.r == 0 && out->overflow)
		return error_set(e, E2BIG, "the Seatbelt profile would be too long");
	return w.r;
}
