/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/broker/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/text.h"

#define UNCLEAR "?"
#define HOST_MAX 128 /* longer ones are unclear */
#define KEYS_MAX 4

/*
 * What stands before an address. With `always` an address, or a local path, is all that may
 * stand there; with the others other things may, which are passed over.
 */
struct key {
	const char *text;
	bool always;
};

static const struct {
	const char *name;
	struct key keys[KEYS_MAX];
} kinds[] = {
	{ "package-lock.json", { { "\"resolved\"", true }, { "\"version\"", false } } },
	{ "npm-shrinkwrap.json", { { "\"resolved\"", true }, { "\"version\"", false } } },
	{ "yarn.lock", { { "resolved ", true }, { "resolution:", false } } },
	{ "pnpm-lock.yaml", { { "tarball:", true }, { "repo:", true } } },
	{ "Cargo.lock", { { "source =", true } } },
	{ "poetry.lock", { { "url =", true } } },
	{ "uv.lock",
	  { { "registry =", true }, { "url =", true }, { "git =", true }, { "index =", true } } },
	{ "Pipfile.lock", { { "\"url\"", true }, { "\"git\"", true }, { "\"file\"", true } } },
	{ "Gemfile.lock", { { "remote:", true } } },
	/* the addresses of those who ask for money are called so too */
	{ "composer.lock", { { "\"url\"", true } } },
	/* anything with a scheme in it */
	{ "bun.lock", { { NULL, false } } },
	{ "deno.lock", { { NULL, false } } },
	{ "requirements", { { NULL, false } } },
};

static const struct key *keys_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(name, kinds[i].name) == 0)
			return kinds[i].keys;
	}
	/* requirements.txt, requirements-dev.txt, dev-requirements.txt */
	if (text_ends(name, ".txt") && strstr(name, "requirements"))
		return kinds[ARRAY_LEN(kinds) - 1].keys;
	return NULL;
}

bool lockfile_is_one(const char *name)
{
	return keys_of(name) != NULL;
}

static bool has_host(const char *list, const char *host, size_t len)
{
	for (const char *s = list; *s;) {
		size_t n = strcspn(s, " ");

		if (n == len && memcmp(s, host, n) == 0)
			return true;
		s += n + (s[n] == ' ');
	}
	return false;
}

/* Room for "?" is kept. */
static void add_host(char *list, const char *host, size_t len)
{
	size_t used = strlen(list), more = len + (used > 0);

	if (has_host(list, host, len))
		return;
	if (used + more + sizeof(" " UNCLEAR) > LOCKFILE_HOSTS_MAX) {
		if (has_host(list, UNCLEAR, 1))
			return;
		host = UNCLEAR;
		len = 1;
	}
	if (used)
		list[used++] = ' ';
	memcpy(list + used, host, len);
	list[used + len] = '\0';
}

static bool is_host_char(char c)
{
	return ascii_alnum(c) || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' ||
	       c == ']';
}

/* What follows "://", up to the path. */
static void add_authority(char *list, const char *s, size_t len)
{
	char host[HOST_MAX];
	size_t n = 0;

	while (n < len && !strchr("/?#\\", s[n]))
		n++;
	for (size_t i = n; i-- > 0;) {
		if (s[i] == '@') { /* a user stands before it */
			s += i + 1;
			n -= i + 1;
			break;
		}
	}
	for (size_t i = 0; i < n && i < sizeof(host); i++) {
		host[i] = ascii_lower(s[i]);
		if (!is_host_char(s[i]))
			n = 0;
	}
	if (n == 0 || n > sizeof(host))
		add_host(list, UNCLEAR, 1);
	else
		add_host(list, host, n);
}

static bool is_local(const char *s, size_t len)
{
	static const char *const starts[] = {
		"file:", "link:", "workspace:", ".", "false", "true"
	};

	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		size_t n = strlen(starts[i]);

		if (len >= n && memcmp(s, starts[i], n) == 0)
			return true;
	}
	return false;
}

/* The value after a key: an address, or something else. */
static void add_value(char *list, const char *s, size_t len, bool always)
{
	const char *scheme;
	size_t n = 0;

	while (len && strchr(" \t:=\"'{", *s)) {
		s++;
		len--;
	}
	while (n < len && !strchr("\"',} \t\r\n", s[n]))
		n++;
	scheme = memmem(s, n, "://", 3);
	if (scheme)
		add_authority(list, scheme + 3, n - (size_t)(scheme + 3 - s));
	else if (always && !is_local(s, n))
		add_host(list, UNCLEAR, 1);
}

static void add_after_key(char *list, const struct key *key, const char *text, size_t len)
{
	const char *end = text + len, *s = text;

	while ((s = memmem(s, (size_t)(end - s), key->text, strlen(key->text)))) {
		s += strlen(key->text);
		add_value(list, s, (size_t)(end - s), key->always);
	}
}

static void add_all_addresses(char *list, const char *text, size_t len)
{
	const char *end = text + len, *s = text;

	while ((s = memmem(s, (size_t)(end - s), "://", 3))) {
		size_t n = 0;

		s += 3;
		while (n < (size_t)(end - s) && !strchr("\"', \t\r\n", s[n]))
			n++;
		add_authority(list, s, n);
	}
}

/* Other spellings of plain letters, which would hide a key or a host. */
static bool has_escapes(const char *text, size_t len)
{
	const char *end = text + len, *s = text;

	while ((s = memchr(s, '\\', (size_t)(end - s)))) {
		if (++s == end || strchr("uUx/", *s))
			return true;
		s++;
	}
	return memchr(text, '\0', len) != NULL;
}

void lockfile_hosts(const char *name, const char *text, size_t len, char *ret)
{
	const struct key *keys = keys_of(name);

	ret[0] = '\0';
	if (!keys)
		return;
	if (len > LOCKFILE_MAX) {
		add_host(ret, UNCLEAR, 1);
		return;
	}
	if (!keys[0].text)
		add_all_addresses(ret, text, len);
	for (size_t i = 0; i < KEYS_MAX && keys[i].text; i++)
		add_after_key(ret, &keys[i], text, len);
	if (has_escapes(text, len))
		add_host(ret, UNCLEAR, 1);
}

void lockfile_read_hosts(int dirfd, const char *name, char *ret)
{
	_cleanup_fd_ int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	const char *last = strrchr(name, '/');
	_cleanup_free_ char *text = NULL;
	struct stat st;
	ssize_t n;

	ret[0] = '\0';
	if (fd < 0 && errno == ENOENT)
		return;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size > LOCKFILE_MAX || !(text = malloc((size_t)st.st_size + 1))) {
		add_host(ret, UNCLEAR, 1);
		return;
	}
	n = fd_read_full(fd, text, (size_t)st.st_size);
	if (n < 0)
		add_host(ret, UNCLEAR, 1);
	else
		lockfile_hosts(last ? last + 1 : name, text, (size_t)n, ret);
}

void lockfile_new_hosts(const char *before, const char *after, char *ret)
{
	ret[0] = '\0';
	for (const char *s = after; *s;) {
		size_t n = strcspn(s, " ");

		if (!has_host(before, s, n))
			add_host(ret, s, n);
		s += n + (s[n] == ' ');
	}
}
