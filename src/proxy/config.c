/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row per key. An unknown key, a bad value or a second value for a single
 * one fails the whole text: a half-understood policy is not a policy.
 */
#include "proxy/config.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "proxy/http.h"

#define ASK_MS_MAX 3600000

static int add_rule(struct config *c, struct rule_list *list, const char *value, bool allow_any,
		    struct error *e)
{
	struct host_rule rule;
	struct named_rule *r;

	if (host_rule_parse(value, allow_any, &rule, e) < 0)
		return -EINVAL;
	r = ARENA_PUSH(c->arena, list->v, list->n);
	*r = (struct named_rule){ rule, arena_strdup(c->arena, value), NULL };
	return 0;
}

static int set_allow(struct config *c, const char *value, struct error *e)
{
	return add_rule(c, &c->allow, value, false, e);
}

/* RULE [REASON] */
static int set_deny(struct config *c, const char *value, struct error *e)
{
	size_t n = strcspn(value, " ");
	int r = add_rule(c, &c->deny, arena_strndup(c->arena, value, n), true, e);

	if (r == 0 && value[n])
		c->deny.v[c->deny.n - 1].reason = arena_strdup(c->arena, value + n + 1);
	return r;
}

static int set_deny_address(struct config *c, const char *value, struct error *e)
{
	int r = add_rule(c, &c->deny_address, value, false, e);

	if (r == 0 && c->deny_address.v[c->deny_address.n - 1].rule.host.kind == HOST_NAME)
		return error_set(e, EINVAL, "\"%s\" is not an address or network", value);
	return r;
}

static int parse_switch(const char *value, bool *ret, struct error *e)
{
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return error_set(e, EINVAL, "\"%s\" is neither 0 nor 1", value);
	*ret = value[0] == '1';
	return 0;
}

static int set_private(struct config *c, const char *value, struct error *e)
{
	return parse_switch(value, &c->allow_private, e);
}

static int set_deny_own(struct config *c, const char *value, struct error *e)
{
	return parse_switch(value, &c->deny_own, e);
}

static int set_ask(struct config *c, const char *value, struct error *e)
{
	uint64_t ms;

	if (text_parse_u64(value, ASK_MS_MAX, &ms) < 0)
		return error_set(e, EINVAL, "\"%s\" is not a number of milliseconds", value);
	c->ask_ms = (uint32_t)ms;
	return 0;
}

static int set_require_sni(struct config *c, const char *value, struct error *e)
{
	return parse_switch(value, &c->require_sni, e);
}

static int set_allow_ech(struct config *c, const char *value, struct error *e)
{
	return parse_switch(value, &c->allow_ech, e);
}

/* NAME=ADDRESS */
static int set_hosts(struct config *c, const char *value, struct error *e)
{
	const char *eq = strchr(value, '=');
	struct fixed_host h = { 0 };

	if (!eq || host_parse(value, (size_t)(eq - value), &h.name, e) < 0 ||
	    host_parse(eq + 1, strlen(eq + 1), &h.address, e) < 0 || h.address.kind == HOST_NAME)
		return error_set(e, EINVAL, "\"%s\" is not NAME=ADDRESS", value);
	*ARENA_PUSH(c->arena, c->hosts, c->n_hosts) = h;
	return 0;
}

static char *base64(struct arena *a, const char *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *out = arena_alloc(a, (len + 2) / 3 * 4 + 1), *p = out;

	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = 0;

		for (size_t j = 0; j < 3; j++)
			v = v << 8 | (i + j < len ? (uint8_t)data[i + j] : 0);
		for (size_t j = 0; j < 4; j++)
			*p++ = i + j > len ? '=' : digits[v >> (18 - 6 * j) & 63];
	}
	return out;
}

/* %XX in the user name or password of a URL */
static size_t percent_decode(char *s)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	for (size_t i = 0; s[i]; i++) {
		const char *hi =
			s[i] == '%' && s[i + 1] ? strchr(hex, ascii_lower(s[i + 1])) : NULL;
		const char *lo = hi && s[i + 2] ? strchr(hex, ascii_lower(s[i + 2])) : NULL;

		if (lo) {
			s[n++] = (char)((hi - hex) << 4 | (lo - hex));
			i += 2;
		} else {
			s[n++] = s[i];
		}
	}
	return n;
}

/* Of "user:password" in a URL, or of "user": Basic has the colon in any case. */
static const char *basic_authorization(struct arena *a, struct span login)
{
	bool whole = memchr(login.ptr, ':', login.len);
	char *text = arena_printf(a, "%.*s%s", (int)login.len, login.ptr, whole ? "" : ":");
	size_t n = percent_decode(text);

	return arena_printf(a, "Basic %s", base64(a, text, n));
}

/* http://[user[:password]@]host[:port][/] */
static int parse_parent(struct config *c, const char *value, struct parent *ret, struct error *e)
{
	const char *rest = text_starts(value, "http://") ? value + 7 : value;
	struct span authority = { rest, strcspn(rest, "/") };
	const char *at = text_find_last(authority.ptr, authority.len, '@');
	struct parent p = { .port = 0 };

	if (strstr(value, "://") && rest == value)
		return error_set(e, EINVAL, "only http:// parent proxies can be used");
	if (rest[authority.len] && strcmp(rest + authority.len, "/") != 0)
		return error_set(e, EINVAL, "a parent proxy has no path");
	if (at) {
		p.authorization =
			basic_authorization(c->arena, (struct span){ rest, (size_t)(at - rest) });
		authority.len -= (size_t)(at + 1 - authority.ptr);
		authority.ptr = at + 1;
	}
	if (http_parse_authority(authority, 80, &p.host, &p.port, e) < 0)
		return error_wrap(e, "parent proxy");
	*ret = p;
	return 0;
}

static int set_parent_http(struct config *c, const char *value, struct error *e)
{
	return parse_parent(c, value, &c->parent_http, e);
}

static int set_parent_https(struct config *c, const char *value, struct error *e)
{
	return parse_parent(c, value, &c->parent_https, e);
}

/* A list with commas or blanks, as in NO_PROXY. */
static int set_no_proxy(struct config *c, const char *value, struct error *e UNUSED)
{
	while (*value) {
		size_t n = strcspn(value, ", \t");

		if (n > 0)
			*ARENA_PUSH(c->arena, c->no_proxy, c->n_no_proxy) =
				arena_strndup(c->arena, value, n);
		value += n + (value[n] != '\0');
	}
	return 0;
}

static int set_synthetic4(struct config *c, const char *value, struct error *e UNUSED)
{
	c->synthetic4 = arena_strdup(c->arena, value);
	return 0;
}

static int set_synthetic6(struct config *c, const char *value, struct error *e UNUSED)
{
	c->synthetic6 = arena_strdup(c->arena, value);
	return 0;
}

static const struct {
	const char *key;
	int (*set)(struct config *, const char *value, struct error *);
} keys[] = {
	{ "allow", set_allow },
	{ "deny", set_deny },
	{ "denyAddress", set_deny_address },
	{ "private", set_private },
	{ "denyOwn", set_deny_own },
	{ "requireSNI", set_require_sni },
	{ "allowECH", set_allow_ech },
	{ "ask", set_ask },
	{ "hosts", set_hosts },
	{ "parentHttp", set_parent_http },
	{ "parentHttps", set_parent_https },
	{ "noProxy", set_no_proxy },
	{ "synthetic4", set_synthetic4 },
	{ "synthetic6", set_synthetic6 },
};

static int parse_line(struct config *c, char *line, struct error *e)
{
	size_t n = strcspn(line, " ");

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (strlen(keys[i].key) == n && memcmp(line, keys[i].key, n) == 0)
			return keys[i].set(c, line + n + (line[n] == ' '), e);
	}
	return error_set(e, EINVAL, "unknown key \"%.*s\"", (int)(n < 40 ? n : 40), line);
}

static int parse_lines(struct config *c, char *text, size_t len, struct error *e)
{
	char *end = text + len;

	for (unsigned number = 1; text < end; number++) {
		char *lf = memchr(text, '\n', (size_t)(end - text));
		char *stop = lf ? lf : end;

		*stop = '\0';
		if (strlen(text) != (size_t)(stop - text))
			return error_set(e, EINVAL, "line %u: NUL byte", number);
		if (*text && parse_line(c, text, e) < 0)
			return error_wrap(e, "line %u", number);
		text = stop + 1;
	}
	return 0;
}

int config_parse(const char *text, size_t len, struct config **ret, struct error *e)
{
	struct arena *arena = arena_new();
	struct config *c = arena_alloc(arena, sizeof(*c));
	char *copy = arena_alloc(arena, len + 1);
	int r;

	*c = (struct config){
		.arena = arena,
		.require_sni = true,
		.allow_ech = true,
		.synthetic4 = "198.18.0.0/15",
		.synthetic6 = "fd53:ab17::/96",
	};
	memcpy(copy, text, len);
	r = parse_lines(c, copy, len, e);
	if (r < 0) {
		arena_free(arena);
		return r;
	}
	*ret = c;
	return 0;
}

void config_free(struct config *c)
{
	if (c)
		arena_free(c->arena);
}
