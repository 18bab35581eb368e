/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/redact_names.h"

#include <string.h>

#include "base/macros.h"
#include "base/text.h"

#define JWT_HEAD_MAX 2048 /* of the first part; many of them may begin in one text */
#define NAME_MAX_LEN 64 /* longer words are no names of secrets */

/* Anywhere in a name. */
static const char *const telling[] = {
	"password",       "passwd",         "passphrase",  "secret",      "apikey",
	"api_key",        "api-key",        "accesskey",   "access_key",  "access-key",
	"privatekey",     "private_key",    "private-key", "credential",  "authkey",
	"auth_key",       "auth-key",       "signingkey",  "signing_key", "signing-key",
	"encryption_key", "encryption-key", "authtoken",   "bearer",
};

/* The whole name, or its last part after _ - or . */
static const char *const endings[] = {
	"pass",      "pwd", "pw",   "auth", "token", "pat", "sig",
	"signature", "otp", "totp", "pin",  "jwt",   "sid", "sessionid",
};

/* A name that ends so is about a secret but holds none. */
static const char *const harmless[] = {
	"file",    "path", "stdin",  "name", "type",   "length", "len",
	"id",      "url",  "policy", "env",  "helper", "store",  "manager",
	"expires", "ttl",  "prompt", "hint", "fd",     "dir",    "required",
};

static const char *const headers[] = {
	"authorization",  "proxy-authorization",  "cookie",        "set-cookie",    "x-api-key",
	"x-auth-token",   "x-amz-security-token", "private-token", "x-vault-token", "x-csrf-token",
	"x-goog-api-key",
};

static bool is_one_of(const char *const *v, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(v[i], name) == 0)
			return true;
	}
	return false;
}

/* The last part of the name: after the last of _ - . */
static const char *last_part(const char *name)
{
	const char *part = name;

	for (; *name; name++) {
		if ((*name == '_' || *name == '-' || *name == '.') && name[1])
			part = name + 1;
	}
	return part;
}

static bool has_telling_part(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(telling); i++) {
		if (strstr(name, telling[i]))
			return true;
	}
	return false;
}

enum redact_name redact_name(const char *s, size_t n)
{
	char name[NAME_MAX_LEN];
	const char *last;

	while (n > 0 && *s == '-') {
		s++;
		n--;
	}
	if (n < 2 || n >= sizeof(name))
		return REDACT_NOT;
	for (size_t i = 0; i < n; i++)
		name[i] = ascii_lower(s[i]);
	name[n] = '\0';
	if (is_one_of(headers, ARRAY_LEN(headers), name))
		return REDACT_HEADER;
	last = last_part(name);
	/* PWD and OLDPWD are directories */
	if (is_one_of(harmless, ARRAY_LEN(harmless), last) || strcmp(name, "pwd") == 0)
		return REDACT_NOT;
	if (has_telling_part(name) || is_one_of(endings, ARRAY_LEN(endings), last) ||
	    text_ends(name, "token"))
		return REDACT_VALUE;
	return text_ends(name, "tokens") ? REDACT_COUNT : REDACT_NOT;
}

bool redact_is_scheme(const char *s, size_t n)
{
	static const char *const schemes[] = { "bearer", "basic",     "digest",
					       "token",  "negotiate", "apikey" };
	char word[16];

	if (n == 0 || n >= sizeof(word))
		return false;
	for (size_t i = 0; i < n; i++)
		word[i] = ascii_lower(s[i]);
	word[n] = '\0';
	return is_one_of(schemes, ARRAY_LEN(schemes), word);
}

enum alphabet { UPPER_DIGITS, ALNUM, URL_SAFE };

/* What the issuers of tokens put in front, so that they are found. */
static const struct {
	const char *prefix;
	enum alphabet rest;
	size_t min; /* characters that must follow */
} known[] = {
	{ "sk-", URL_SAFE, 16 },         { "sk_live_", ALNUM, 10 },
	{ "sk_test_", ALNUM, 10 },       { "rk_live_", ALNUM, 10 },
	{ "whsec_", ALNUM, 16 },         { "ghp_", ALNUM, 16 },
	{ "gho_", ALNUM, 16 },           { "ghu_", ALNUM, 16 },
	{ "ghs_", ALNUM, 16 },           { "ghr_", ALNUM, 16 },
	{ "github_pat_", URL_SAFE, 16 }, { "glpat-", URL_SAFE, 16 },
	{ "gldt-", URL_SAFE, 16 },       { "glrt-", URL_SAFE, 16 },
	{ "AKIA", UPPER_DIGITS, 16 },    { "ASIA", UPPER_DIGITS, 16 },
	{ "xoxa-", URL_SAFE, 10 },       { "xoxb-", URL_SAFE, 10 },
	{ "xoxp-", URL_SAFE, 10 },       { "xoxr-", URL_SAFE, 10 },
	{ "xoxs-", URL_SAFE, 10 },       { "xoxe-", URL_SAFE, 10 },
	{ "xapp-", URL_SAFE, 10 },       { "AIza", URL_SAFE, 30 },
	{ "ya29.", URL_SAFE, 16 },       { "npm_", ALNUM, 30 },
	{ "pypi-", URL_SAFE, 40 },       { "hf_", ALNUM, 20 },
	{ "dop_v1_", ALNUM, 30 },        { "shpat_", ALNUM, 20 },
	{ "SG.", URL_SAFE, 30 },         { "lin_api_", ALNUM, 20 },
	{ "figd_", URL_SAFE, 20 },       { "dckr_pat_", URL_SAFE, 16 },
	{ "tskey-", URL_SAFE, 16 },      { "hvs.", URL_SAFE, 20 },
	{ "nvapi-", URL_SAFE, 20 },      { "AGE-SECRET-KEY-1", UPPER_DIGITS, 30 },
};

static bool in_alphabet(char c, enum alphabet a)
{
	switch (a) {
	case UPPER_DIGITS:
		return ascii_digit(c) || (c >= 'A' && c <= 'Z');
	case ALNUM:
		return ascii_alnum(c);
	case URL_SAFE:
		return ascii_alnum(c) || c == '_' || c == '-';
	}
	return false;
}

static size_t span(const char *s, size_t n, enum alphabet a)
{
	size_t i = 0;

	while (i < n && in_alphabet(s[i], a))
		i++;
	return i;
}

/* header.payload.signature, of which the first two are JSON objects: {" is eyJ in base64 */
static size_t jwt_len(const char *s, size_t n)
{
	size_t head, body;

	if (n < 3 || memcmp(s, "eyJ", 3) != 0)
		return 0;
	head = span(s, n < JWT_HEAD_MAX ? n : JWT_HEAD_MAX, URL_SAFE);
	if (head < 10 || head + 4 >= n || s[head] != '.' || memcmp(s + head + 1, "eyJ", 3) != 0)
		return 0;
	body = head + 1 + span(s + head + 1, n - head - 1, URL_SAFE);
	return body < n && s[body] == '.' ? body + 1 + span(s + body + 1, n - body - 1, URL_SAFE)
					  : body;
}

size_t redact_known_token(const char *s, size_t n, size_t *ret_prefix)
{
	size_t jwt = jwt_len(s, n);

	if (jwt) {
		*ret_prefix = 3;
		return jwt;
	}
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		size_t prefix = strlen(known[i].prefix), rest;

		if (n < prefix || memcmp(s, known[i].prefix, prefix) != 0)
			continue;
		rest = span(s + prefix, n - prefix, known[i].rest);
		if (rest < known[i].min)
			continue;
		*ret_prefix = prefix;
		return prefix + rest;
	}
	return 0;
}
