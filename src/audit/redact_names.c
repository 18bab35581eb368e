/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/redact_names.h"

#include <string.h>

#include "base/macros.h"
#include "base/text.h"

#define JWT_HEAD_MAX 2048 /* of the first part; many of them may begin in one text */
#define ID_MAX 24 /* of what stands in front of a token */
#define NAME_MAX_LEN 64 /* longer words are no names of secrets */

/* Anywhere in a name. */
static const char *const telling[] = {
	"password",       "passwd",         "passphrase",       "secret",      "apikey",
	"api_key",        "api-key",        "accesskey",        "access_key",  "access-key",
	"privatekey",     "private_key",    "private-key",      "credential",  "authkey",
	"auth_key",       "auth-key",       "signingkey",       "signing_key", "signing-key",
	"encryption_key", "encryption-key", "authtoken",        "bearer",      "requirepass",
	"accountkey",     "account_key",    "account-key",      "masterkey",   "master_key",
	"master-key",     "storagekey",     "storage_key",      "storage-key", "appkey",
	"app_key",        "app-key",        "subscription-key", "stripe_key",  "openai_key",
	"sharedkey",      "shared_key",     "shared-key",       "service_key", "license_key",
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

/* Ends so, and holds one nevertheless. */
static const char *const secret_ids[] = { "secretid", "secret_id", "secret-id" };

/* NAME_KEY, as variables are called, is a secret, unless it is one of these. */
static const char *const plain_keys[] = {
	"primary",  "foreign", "public",   "pub",    "unique", "sort",   "partition",   "range",
	"cache",    "index",   "map",      "group",  "row",    "object", "s3",          "host",
	"hash",     "routing", "registry", "lookup", "dict",   "item",   "config",      "arrow",
	"function", "hot",     "shortcut", "menu",   "press",  "any",    "no",          "verify",
	"record",   "event",   "message",  "parent", "search", "filter", "idempotency",
};

static const char *const headers[] = {
	"authorization", "proxy-authorization",  "x-api-key",
	"x-auth-token",  "x-amz-security-token", "private-token",
	"x-vault-token", "x-csrf-token",         "x-goog-api-key",
};

static const char *const cookies[] = { "cookie", "set-cookie" };

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

static bool ends_with_any(const char *name, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (text_ends(name, v[i]))
			return true;
	}
	return false;
}

/* STRIPE_KEY, in capitals in s and in small letters in name; not primary_key, --sort-key */
static bool is_key_variable(const char *s, size_t n, const char *name)
{
	char what[NAME_MAX_LEN];

	if (!text_ends(name, "_key"))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s[i] != '_' && !ascii_digit(s[i]) && (s[i] < 'A' || s[i] > 'Z'))
			return false;
	}
	text_copy(what, n - strlen("_key") + 1, name);
	return what[0] && !is_one_of(plain_keys, ARRAY_LEN(plain_keys), last_part(what));
}

enum redact_name redact_name_behind(char before, const char *s, size_t n)
{
	if ((before == '?' || before == '&') && n == 3 && memcmp(s, "key", 3) == 0)
		return REDACT_QUERY;
	if (before == ';' && n == 3 && memcmp(s, "pwd", 3) == 0)
		return REDACT_VALUE; /* of a connection string */
	return redact_name(s, n);
}

enum redact_name redact_name(const char *s, size_t n)
{
	bool is_option = n > 0 && *s == '-';
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
	if (is_one_of(cookies, ARRAY_LEN(cookies), name))
		return REDACT_COOKIES;
	last = last_part(name);
	if (ends_with_any(name, secret_ids, ARRAY_LEN(secret_ids)))
		return REDACT_VALUE;
	if (is_one_of(harmless, ARRAY_LEN(harmless), last))
		return REDACT_NOT;
	/* PWD is a directory, and a command; --pwd and Pwd= are neither */
	if (!is_option && n == 3 && (memcmp(s, "PWD", 3) == 0 || memcmp(s, "pwd", 3) == 0))
		return REDACT_NOT;
	if (has_telling_part(name) || is_one_of(endings, ARRAY_LEN(endings), last) ||
	    text_ends(name, "token"))
		return REDACT_VALUE;
	if (is_key_variable(s, n, name))
		return REDACT_KEY;
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

enum alphabet { UPPER_DIGITS, HEX, ALNUM, URL_SAFE, DOTTED, BASE64 };

/* What the issuers of tokens put in front, so that they are found. */
static const struct {
	const char *prefix;
	enum alphabet rest;
	size_t min; /* characters that must follow */
} known[] = {
	{ "sk-", URL_SAFE, 16 },
	{ "sk_live_", ALNUM, 10 },
	{ "sk_test_", ALNUM, 10 },
	{ "rk_live_", ALNUM, 10 },
	{ "rk_test_", ALNUM, 10 },
	{ "whsec_", ALNUM, 16 },
	{ "ghp_", ALNUM, 16 },
	{ "gho_", ALNUM, 16 },
	{ "ghu_", ALNUM, 16 },
	{ "ghs_", ALNUM, 16 },
	{ "ghr_", ALNUM, 16 },
	{ "github_pat_", URL_SAFE, 16 },
	{ "glpat-", URL_SAFE, 16 },
	{ "gldt-", URL_SAFE, 16 },
	{ "glrt-", URL_SAFE, 16 },
	{ "glptt-", URL_SAFE, 16 },
	{ "glcbt-", URL_SAFE, 16 },
	{ "glft-", URL_SAFE, 16 },
	{ "glsoat-", URL_SAFE, 16 },
	{ "glagent-", URL_SAFE, 30 },
	{ "AKIA", UPPER_DIGITS, 16 },
	{ "ASIA", UPPER_DIGITS, 16 },
	{ "xoxa-", URL_SAFE, 10 },
	{ "xoxb-", URL_SAFE, 10 },
	{ "xoxc-", URL_SAFE, 10 },
	{ "xoxd-", BASE64, 10 },
	{ "xoxp-", URL_SAFE, 10 },
	{ "xoxr-", URL_SAFE, 10 },
	{ "xoxs-", URL_SAFE, 10 },
	{ "xoxe-", URL_SAFE, 10 },
	{ "xapp-", URL_SAFE, 10 },
	{ "AIza", URL_SAFE, 30 },
	{ "ya29.", URL_SAFE, 16 },
	{ "GOCSPX-", URL_SAFE, 20 },
	{ "npm_", ALNUM, 30 },
	{ "pypi-", URL_SAFE, 40 },
	{ "rubygems_", HEX, 40 },
	{ "hf_", ALNUM, 20 },
	{ "r8_", ALNUM, 30 },
	{ "gsk_", ALNUM, 30 },
	{ "xai-", ALNUM, 40 },
	{ "pplx-", ALNUM, 30 },
	{ "nvapi-", URL_SAFE, 20 },
	{ "dop_v1_", ALNUM, 30 },
	{ "doo_v1_", ALNUM, 30 },
	{ "dor_v1_", ALNUM, 30 },
	{ "shpat_", ALNUM, 20 },
	{ "shpss_", ALNUM, 20 },
	{ "shpca_", ALNUM, 20 },
	{ "shppa_", ALNUM, 20 },
	{ "sq0atp-", URL_SAFE, 20 },
	{ "sq0csp-", URL_SAFE, 20 },
	{ "SG.", DOTTED, 60 },
	{ "lin_api_", ALNUM, 20 },
	{ "figd_", URL_SAFE, 20 },
	{ "ntn_", ALNUM, 30 },
	{ "PMAK-", URL_SAFE, 40 },
	{ "ATATT3x", BASE64, 40 },
	{ "dckr_pat_", URL_SAFE, 16 },
	{ "tskey-", URL_SAFE, 16 },
	{ "hvs.", URL_SAFE, 20 },
	{ "hvb.", URL_SAFE, 20 },
	{ "dp.pt.", ALNUM, 30 },
	{ "ops_eyJ", BASE64, 40 },
	{ "pul-", HEX, 40 },
	{ "dapi", HEX, 32 },
	{ "sbp_", HEX, 40 },
	{ "nfp_", ALNUM, 30 },
	{ "glsa_", URL_SAFE, 30 },
	{ "glc_", BASE64, 30 },
	{ "sntrys_", BASE64, 40 },
	{ "sntryu_", HEX, 40 },
	{ "NRAK-", UPPER_DIGITS, 20 },
	{ "CCIPAT_", URL_SAFE, 30 },
	{ "AGE-SECRET-KEY-1", UPPER_DIGITS, 30 },
	{ "hooks.slack.com/services/", BASE64, 20 },
	{ "hooks.slack.com/workflows/", BASE64, 20 },
	{ "hooks.slack.com/triggers/", BASE64, 20 },
	{ "discord.com/api/webhooks/", BASE64, 40 },
	{ "discordapp.com/api/webhooks/", BASE64, 40 },
};

static bool in_alphabet(char c, enum alphabet a)
{
	switch (a) {
	case UPPER_DIGITS:
		return ascii_digit(c) || (c >= 'A' && c <= 'Z');
	case HEX:
		return ascii_hex(c) >= 0;
	case ALNUM:
		return ascii_alnum(c);
	case URL_SAFE:
		return ascii_alnum(c) || c == '_' || c == '-';
	case DOTTED:
		return ascii_alnum(c) || c == '_' || c == '-' || c == '.';
	case BASE64: /* of both kinds, also in a URL */
		return ascii_alnum(c) || (c && strchr("_-+/=%", c));
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

static bool starts(const char *s, size_t n, const char *text)
{
	return n > 0 && *s == *text && n >= strlen(text) && memcmp(s, text, strlen(text)) == 0;
}

/* ID.atlasv1.secret */
static size_t terraform_len(const char *s, size_t n, size_t *ret_prefix)
{
	static const char mark[] = ".atlasv1.";
	size_t id = span(s, n < ID_MAX ? n : ID_MAX, ALNUM), rest;

	if (id < 10 || !starts(s + id, n - id, mark))
		return 0;
	id += sizeof(mark) - 1;
	rest = span(s + id, n - id, URL_SAFE);
	*ret_prefix = id;
	return rest >= 40 ? id + rest : 0;
}

/* Of a bot of Telegram: 123456789:AA..., in URLs with "bot" in front */
static size_t telegram_len(const char *s, size_t n, size_t *ret_prefix)
{
	size_t id = starts(s, n, "bot") ? 3 : 0, digits = 0;

	while (id + digits < n && digits <= 10 && ascii_digit(s[id + digits]))
		digits++;
	id += digits;
	if (digits < 8 || digits > 10 || id >= n || s[id] != ':')
		return 0;
	id++;
	*ret_prefix = id;
	return span(s + id, n - id < 36 ? n - id : 36, URL_SAFE) == 35 ? id + 35 : 0;
}

size_t redact_known_token(const char *s, size_t n, size_t *ret_prefix)
{
	size_t len = jwt_len(s, n);

	*ret_prefix = 3;
	if (!len)
		len = terraform_len(s, n, ret_prefix);
	if (!len)
		len = telegram_len(s, n, ret_prefix);
	if (len)
		return len;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		size_t prefix, rest;

		if (!starts(s, n, known[i].prefix))
			continue;
		prefix = strlen(known[i].prefix);
		rest = span(s + prefix, n - prefix, known[i].rest);
		if (rest < known[i].min)
			continue;
		*ret_prefix = prefix;
		return prefix + rest;
	}
	return 0;
}
