/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of the command. `safe` leaves out three kinds of variables:
 * what looks like a secret, what makes a loader or interpreter run other code
 * than its own, and what leads to a process outside (agents, display, session
 * bus). Search paths of languages (PYTHONPATH, PERL5LIB, GOPATH, ...) stay:
 * builds need them and they point at files that the rules on files judge.
 */
#include <string.h>

#include "base/text.h"
#include "policy/build.h"

enum how {
	IS, /* the whole name */
	BEGINS,
	ENDS, /* but for a number: KEY1, KEY_2 */
	HOLDS,
	WORD, /* between underscores or ends */
};

struct unsafe {
	enum how how;
	const char *text;
	const char *why;
};

#define SECRET "looks like a secret"
#define LOADER "makes the loader run other code"
#define HOOK "makes a shell, interpreter or tool run other code"
#define CLUSTER "leads to cluster credentials"
#define OUTSIDE "leads to a process outside the sandbox"

/*
 * Upper case: names are compared without case. Two tables, so that of most rows only those are looked
 * at whose first letter is the name's.
 */
static const struct unsafe unsafe_parts[] = {
	{ ENDS, "ASKPASS", HOOK },

	{ HOLDS, "SECRET", SECRET },
	{ HOLDS, "PASSWORD", SECRET },
	{ HOLDS, "PASSWD", SECRET },
	{ HOLDS, "PASSPHRASE", SECRET },
	{ HOLDS, "CREDENTIAL", SECRET },
	{ HOLDS, "APIKEY", SECRET },
	{ HOLDS, "API_KEY", SECRET },
	{ HOLDS, "ACCESS_KEY", SECRET },
	{ HOLDS, "PRIVATE_KEY", SECRET },
	{ HOLDS, "PRIVATEKEY", SECRET },
	{ HOLDS, "PRIVKEY", SECRET },
	{ HOLDS, "SEED_PHRASE", SECRET },
	{ HOLDS, "KEYSTORE", SECRET },
	{ HOLDS, "AUTH_CONFIG", SECRET },
	{ HOLDS, "AUTHORIZATION", SECRET },
	{ HOLDS, "AUTH_HEADER", SECRET },
	{ HOLDS, "CONNECTION_STRING", SECRET },
	{ HOLDS, "CONNECTIONSTRING", SECRET },
	{ HOLDS, "CONNSTR", SECRET }, /* Azure: SQLCONNSTR_NAME */
	{ HOLDS, "CONN_STR", SECRET },
	{ HOLDS, "KUBE_CONFIG", CLUSTER },
	{ HOLDS, "SERVICE_ACCOUNT", SECRET },
	{ HOLDS, "WEBHOOK_URL", SECRET }, /* who knows the address may use it */
	{ ENDS, "WEBHOOK", SECRET },
	{ ENDS, "TOKEN", SECRET },
	{ ENDS, "TOKENS", SECRET },
	{ ENDS, "KEY", SECRET },
	{ ENDS, "_KEYS", SECRET },
	{ ENDS, "AUTH", SECRET },
	{ ENDS, "PASS", SECRET },
	{ ENDS, "_PWD", SECRET },
	{ ENDS, "DBPWD", SECRET },
	{ ENDS, "_DSN", SECRET },
	{ ENDS, "_SALT", SECRET },
	{ ENDS, "_HEADERS", SECRET }, /* of requests: OTEL_EXPORTER_OTLP_HEADERS */
	{ ENDS, "CREDS", SECRET },
	{ ENDS, "_SAS", SECRET }, /* Azure: shared access signature */
	/* Bundler: BUNDLE_GEMS__EXAMPLE__COM is the login there */
	{ ENDS, "__COM", SECRET },
	{ ENDS, "__ORG", SECRET },
	{ ENDS, "__IO", SECRET },
	{ WORD, "TOKEN", SECRET },
	{ WORD, "KEY_BASE64", SECRET },
	{ WORD, "KEY_PEM", SECRET },
	{ WORD, "ID_RSA", SECRET }, /* names of SSH's files */
	{ WORD, "ID_ECDSA", SECRET },
	{ WORD, "ID_ED25519", SECRET },
	{ WORD, "TOTP", SECRET },
	{ WORD, "PASS", SECRET },
	{ WORD, "PASSCODE", SECRET },
	{ WORD, "PW", SECRET },
	{ WORD, "PAT", SECRET },
	{ WORD, "JWT", SECRET },
	{ WORD, "HMAC", SECRET },
	{ WORD, "COOKIE", SECRET },
	{ WORD, "COOKIES", SECRET },
	{ WORD, "BEARER", SECRET },
	{ WORD, "MNEMONIC", SECRET },
	{ WORD, "P12", SECRET },
	{ WORD, "PFX", SECRET },
};

static const struct unsafe unsafe_names[] = {
	{ BEGINS, "AWS_", SECRET },
	{ BEGINS, "PGPASS", SECRET },
	{ BEGINS, "OP_SESSION", SECRET }, /* 1Password */
	{ IS, "BW_SESSION", SECRET }, /* Bitwarden */
	{ IS, "FASTLANE_SESSION", SECRET },
	{ IS, "CSC_LINK", SECRET }, /* electron-builder: the certificate itself */
	{ IS, "NIX_CONFIG", SECRET }, /* access-tokens = ... */
	{ IS, "NPM_CONFIG_OTP", SECRET },
	{ BEGINS, "KUBECONFIG", CLUSTER },
	{ IS, "NETRC", SECRET },
	{ IS, "KRB5CCNAME", "leads to tickets of Kerberos" },
	{ IS, "KRB5_KTNAME", "leads to tickets of Kerberos" },
	{ IS, "KRB5_CLIENT_KTNAME", "leads to tickets of Kerberos" },

	{ BEGINS, "LD_", LOADER },
	{ BEGINS, "DYLD_", LOADER },
	{ BEGINS, "GLIBC_TUNABLES", LOADER },
	{ IS, "GCONV_PATH", LOADER },
	{ IS, "LOCPATH", LOADER },
	{ IS, "NLSPATH", LOADER },
	{ IS, "MALLOC_TRACE", LOADER },
	{ IS, "HOSTALIASES", "changes how names are resolved" },
	{ IS, "RES_OPTIONS", "changes how names are resolved" },
	{ IS, "LOCALDOMAIN", "changes how names are resolved" },

	{ IS, "BASH_ENV", HOOK },
	{ IS, "ENV", HOOK },
	{ BEGINS, "BASH_FUNC_", HOOK },
	{ IS, "BASHOPTS", HOOK },
	{ IS, "SHELLOPTS", HOOK },
	{ IS, "PROMPT_COMMAND", HOOK },
	{ IS, "PS4", HOOK },
	{ IS, "IFS", HOOK },
	{ IS, "CDPATH", HOOK },
	{ IS, "ZDOTDIR", HOOK },
	{ IS, "INPUTRC", HOOK },
	{ IS, "PYTHONSTARTUP", HOOK },
	{ IS, "PYTHONHOME", HOOK },
	{ IS, "PYTHONINSPECT", HOOK },
	{ IS, "PYTHONBREAKPOINT", HOOK },
	{ IS, "PYTHONWARNINGS", HOOK },
	{ IS, "NODE_OPTIONS", HOOK },
	{ IS, "PERL5OPT", HOOK },
	{ IS, "PERL5DB", HOOK },
	{ IS, "RUBYOPT", HOOK },
	{ IS, "LUA_INIT", HOOK },
	{ BEGINS, "LUA_INIT_", HOOK },
	{ IS, "JAVA_TOOL_OPTIONS", HOOK },
	{ IS, "JDK_JAVA_OPTIONS", HOOK },
	{ IS, "_JAVA_OPTIONS", HOOK },
	{ IS, "RUSTC_WRAPPER", HOOK },
	{ IS, "RUSTC_WORKSPACE_WRAPPER", HOOK },
	{ IS, "GIT_EXEC_PATH", HOOK },
	{ IS, "GIT_EXTERNAL_DIFF", HOOK },
	{ IS, "GIT_TEMPLATE_DIR", HOOK },
	{ IS, "GIT_PROXY_COMMAND", HOOK },
	{ IS, "GIT_CONFIG", HOOK },
	{ BEGINS, "GIT_CONFIG_", HOOK },
	{ BEGINS, "GIT_SSH", HOOK },
	{ IS, "LESSOPEN", HOOK },
	{ IS, "LESSCLOSE", HOOK },
	{ IS, "RIPGREP_CONFIG_PATH", HOOK },

	{ BEGINS, "SSH_AUTH_SOCK", OUTSIDE },
	{ IS, "SSH_AGENT_PID", OUTSIDE },
	{ IS, "GPG_AGENT_INFO", OUTSIDE },
	{ BEGINS, "GNOME_KEYRING_", OUTSIDE },
	{ BEGINS, "DBUS_", OUTSIDE },
	{ IS, "XDG_RUNTIME_DIR", OUTSIDE },
	{ IS, "SESSION_MANAGER", OUTSIDE },
	{ IS, "DISPLAY", OUTSIDE },
	{ BEGINS, "WAYLAND_", OUTSIDE },
	{ IS, "XAUTHORITY", OUTSIDE },
	{ IS, "ICEAUTHORITY", OUTSIDE },
	{ BEGINS, "PULSE_", OUTSIDE },
	{ BEGINS, "PIPEWIRE_", OUTSIDE },
	{ BEGINS, "HYPRLAND_", OUTSIDE },
	{ IS, "SWAYSOCK", OUTSIDE },
	{ IS, "I3SOCK", OUTSIDE },
	{ IS, "TMUX", OUTSIDE },
	{ IS, "STY", OUTSIDE },
	{ IS, "ZELLIJ", OUTSIDE },
	{ IS, "KITTY_LISTEN_ON", OUTSIDE },
	{ IS, "WEZTERM_UNIX_SOCKET", OUTSIDE },
	{ IS, "ALACRITTY_SOCKET", OUTSIDE },
	{ IS, "NVIM", OUTSIDE },
	{ IS, "NVIM_LISTEN_ADDRESS", OUTSIDE },
	{ BEGINS, "VSCODE_IPC", OUTSIDE },
	{ BEGINS, "VSCODE_GIT_", OUTSIDE },
	{ IS, "VSCODE_NODE_IPC_HOOK", OUTSIDE },
	{ IS, "DOCKER_HOST", OUTSIDE },
	{ IS, "DOCKER_CONTEXT", OUTSIDE },
	{ IS, "CONTAINER_HOST", OUTSIDE },
	{ IS, "LIBVIRT_DEFAULT_URI", OUTSIDE },
	{ IS, "NOTIFY_SOCKET", OUTSIDE },
	{ BEGINS, "LISTEN_FD", OUTSIDE },
	{ IS, "LISTEN_PID", OUTSIDE },
	{ IS, "CLAUDE_CODE_SSE_PORT", OUTSIDE },
};

/* Ends of harmless names that a row of ENDS would match: words, and numbers of tokens for models. */
static const char *const harmless_ends[] = {
	"COMPASS",        "BYPASS",          "SURPASS",    "MONKEY",        "DONKEY",
	"TURKEY",         "WHISKEY",         "JOCKEY",     "HOCKEY",        "HOTKEY",
	"HOTKEYS",        "LESSKEY",         "MAX_TOKENS", "OUTPUT_TOKENS", "INPUT_TOKENS",
	"CONTEXT_TOKENS", "THINKING_TOKENS",
};

/* What stays with `none`. */
static const char *const basic_names[] = { "PATH",  "HOME", "USER", "LOGNAME",
					   "SHELL", "TERM", "LANG", "TZ" };

#define ENV_NAME_MAX 255

bool environment_name_ok(const char *name)
{
	if (!*name || ascii_digit(*name))
		return false;
	for (const char *c = name; *c; c++) {
		if (!ascii_alnum(*c) && *c != '_')
			return false;
	}
	return true;
}

static bool holds_word(const char *name, const char *word)
{
	size_t n = strlen(word);

	for (const char *s = strstr(name, word); s; s = strstr(s + 1, word)) {
		if ((s == name || s[-1] == '_') && (s[n] == '\0' || s[n] == '_'))
			return true;
	}
	return false;
}

static bool ends_in(const char *upper, size_t n, const char *text)
{
	size_t len = strlen(text);

	return n >= len && memcmp(upper + n - len, text, len) == 0;
}

/* n: the name's length, without a number at its end. */
static bool is_unsafe(const struct unsafe *u, const char *upper, size_t n)
{
	switch (u->how) {
	case IS:
		return strcmp(upper, u->text) == 0;
	case BEGINS:
		return text_starts(upper, u->text);
	case ENDS:
		return ends_in(upper, n, u->text);
	case HOLDS:
		return strstr(upper, u->text) != NULL;
	case WORD:
		return holds_word(upper, u->text);
	}
	return true;
}

static bool is_harmless(const char *upper, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(harmless_ends); i++) {
		if (ends_in(upper, n, harmless_ends[i]))
			return true;
	}
	return false;
}

/* A name of 20 or more letters with a digit among them, in the place of a user, is a token. */
#define TOKEN_MIN 20

/*
 * user:password@host behind the ://, or token@host, or token:@host. A password may hold what should
 * be written %2F: then what stands before it is no port. "://" begins the next address of a list.
 */
static bool has_login(const char *s)
{
	const char *colon = NULL;
	size_t user = 0;
	bool digit = false, port = true;

	if (*s == '[')
		s += strcspn(s, "]");
	for (; *s && *s != '@'; s++) {
		if (strchr(" \t\n", *s) || (strchr("/?#", *s) && port) ||
		    (s[0] == ':' && s[1] == '/' && s[2] == '/'))
			return false;
		if (colon)
			port &= ascii_digit(*s);
		else if (*s == ':')
			colon = s;
		user += !colon;
		digit |= !colon && ascii_digit(*s);
	}
	return *s == '@' && ((colon && colon + 1 < s) || (user >= TOKEN_MIN && digit));
}

/* Keys in connection strings and the like (Host=h;Password=p), without blanks, - and _. */
static const char *const secret_keys[] = { "password",    "passwd",    "pwd",
					   "accountkey",  "accesskey", "authtoken",
					   "accesstoken", "apikey",    "clientsecret" };

/* Is what stands before `end` in the text such a key? */
static bool ends_in_key(const char *text, const char *end, const char *key)
{
	const char *k = key + strlen(key);

	while (k > key && end > text) {
		char c = *--end;

		if ((c == '_' || c == '-' || c == ' ') && k < key + strlen(key))
			continue;
		if (ascii_lower(c) != *--k)
			return false;
	}
	/* "pwd" is a word in itself only */
	return k == key && (strlen(key) > 3 || end == text || !ascii_alnum(end[-1]));
}

static bool is_key_of_secret(const char *text, const char *equals)
{
	char last = equals > text ? ascii_lower(equals[-1]) : '\0';

	/* the keys' last letters: most others are turned away here */
	if ((last != 'd' && last != 'y' && last != 'n' && last != 't') || !equals[1] ||
	    strchr(";&, ", equals[1]))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(secret_keys); i++) {
		if (ends_in_key(text, equals, secret_keys[i]))
			return true;
	}
	return false;
}

/*
 * Why the value is a secret, or NULL. Anywhere in it: lists of addresses, and of keys with values, are
 * common.
 */
static const char *why_secret(const char *value)
{
	for (const char *s = value; *s; s++) {
		if (*s == ':' && s[1] == '/' && s[2] == '/' && has_login(s + 3))
			return "holds a password";
		if (*s == '=' && is_key_of_secret(value, s))
			return "holds a password";
		if (*s == 'P' && text_starts(s, "PRIVATE KEY-----"))
			return "holds a private key";
	}
	return NULL;
}

static uint32_t letter_bit(char c)
{
	return 1u << (c >= 'A' && c <= 'Z' ? c - 'A' : 31);
}

/* The set of letters in a word: a row can only match a name that has all of its letters. */
static uint32_t letters_of(const char *s)
{
	uint32_t set = 0;

	for (; *s; s++)
		set |= letter_bit(*s);
	return set;
}

#define FIRST_LETTERS 32 /* by the last five bits: A to Z, and some for '_' */

/* About the rows, worked out once for all variables. */
struct letters {
	uint32_t part[ARRAY_LEN(unsafe_parts)]; /* letters_of() each */
	uint8_t first[FIRST_LETTERS],
		next[ARRAY_LEN(unsafe_names)]; /* + 1, of this letter; 0 = none */
};
_Static_assert(ARRAY_LEN(unsafe_names) < UINT8_MAX, "the rows can be numbered");

static void letters_fill(struct letters *l)
{
	for (size_t i = 0; i < ARRAY_LEN(unsafe_parts); i++)
		l->part[i] = letters_of(unsafe_parts[i].text);
	for (size_t i = 0; i < ARRAY_LEN(unsafe_names); i++) {
		uint8_t *first = &l->first[(unsigned char)*unsafe_names[i].text % FIRST_LETTERS];

		l->next[i] = *first;
		*first = (uint8_t)(i + 1);
	}
}

/* The name in upper case, and which letters it has. */
static size_t raise_name(const char *name, char upper[ENV_NAME_MAX + 1], uint32_t *ret_has)
{
	uint32_t has = 0;
	size_t n = 0;

	for (; name[n]; n++) {
		char c = name[n] >= 'a' && name[n] <= 'z' ? (char)(name[n] - 'a' + 'A') : name[n];

		upper[n] = c;
		has |= letter_bit(c);
	}
	upper[n] = '\0';
	*ret_has = has;
	return n;
}

/* How long the name is without a number at its end. */
static size_t without_number(const char *name, size_t n)
{
	size_t len = n;

	while (len > 0 && ascii_digit(name[len - 1]))
		len--;
	if (len > 0 && len < n && name[len - 1] == '_')
		len--;
	return len;
}

static const char *why_unsafe(const struct letters *letters, const char *name, const char *value)
{
	char upper[ENV_NAME_MAX + 1];
	uint32_t has;
	size_t i, n = without_number(upper, raise_name(name, upper, &has));

	for (i = 0; i < ARRAY_LEN(unsafe_parts); i++) {
		if (!(letters->part[i] & ~has) && is_unsafe(&unsafe_parts[i], upper, n) &&
		    !(unsafe_parts[i].how == ENDS && is_harmless(upper, n)))
			return unsafe_parts[i].why;
	}
	for (i = letters->first[(unsigned char)*upper % FIRST_LETTERS]; i;
	     i = letters->next[i - 1]) {
		if (is_unsafe(&unsafe_names[i - 1], upper, n))
			return unsafe_names[i - 1].why;
	}
	return why_secret(value);
}

static bool is_basic(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(basic_names); i++) {
		if (strcmp(name, basic_names[i]) == 0)
			return true;
	}
	return text_starts(name, "LC_");
}

static bool is_passed(const struct policy_environment *env, const char *name)
{
	for (size_t i = 0; i < env->pass.n; i++) {
		if (strcmp(env->pass.v[i].text, name) == 0)
			return true;
	}
	for (size_t i = 0; i < env->pass_prefix.n; i++) {
		if (text_starts(name, env->pass_prefix.v[i].text))
			return true;
	}
	return false;
}

/* Why the variable stays out, or NULL. */
static const char *why_dropped(const struct policy *p, const struct letters *letters,
			       const char *name, const char *value)
{
	for (size_t i = 0; i < p->env.deny.n; i++) {
		if (strcmp(p->env.deny.v[i].text, name) == 0)
			return "denied by a rule";
	}
	if (is_passed(&p->env, name))
		return NULL;
	if (!environment_name_ok(name) || strlen(name) > ENV_NAME_MAX)
		return "not a proper name";
	if (p->env.inherit == ENV_NONE)
		return is_basic(name) ? NULL : "not inherited";
	return p->env.inherit == ENV_SAFE ? why_unsafe(letters, name, value) : NULL;
}

struct list {
	struct arena *a;
	struct letters letters;
	char **v;
	size_t n;
};

/* Where NAME=... stands, or NULL. len counts the '='. */
static char **list_find(const struct list *l, const char *entry, size_t len)
{
	for (size_t i = 0; i < l->n; i++) {
		const char *v = l->v[i];

		if (*v == *entry && strncmp(v, entry, len) == 0)
			return &l->v[i];
	}
	return NULL;
}

static void list_set(struct list *l, const char *name, const char *value)
{
	char *entry = arena_printf(l->a, "%s=%s", name, value);
	char **old = list_find(l, entry, strlen(name) + 1);

	if (old)
		*old = entry;
	else
		*ARENA_PUSH(l->a, l->v, l->n) = entry;
}

static void inherit(const struct policy *p, struct list *l, const char *entry,
		    struct text_rules *dropped)
{
	const char *eq = strchr(entry, '=');
	const char *name, *why;

	if (!eq || eq == entry)
		return;
	/* programs disagree on which of two counts: the first, as in the C library */
	if (list_find(l, entry, (size_t)(eq - entry) + 1))
		return;
	name = arena_strndup(l->a, entry, (size_t)(eq - entry));
	why = why_dropped(p, &l->letters, name, eq + 1);
	if (!why)
		*ARENA_PUSH(l->a, l->v, l->n) = arena_strdup(l->a, entry);
	else if (dropped)
		*ARENA_PUSH(l->a, dropped->v, dropped->n) =
			(struct text_rule){ name, { .layer = LAYER_DEFAULT, .name = why } };
}

/*
 * Programs that know of proxies use them; the others reach the same place all the same.
 * Only loopback is exempt: allowed private hosts are reached through the proxy too.
 */
static void set_proxies(struct list *l)
{
	static const char *const http[] = { "HTTP_PROXY",  "http_proxy", "HTTPS_PROXY",
					    "https_proxy", "GRPC_PROXY", "grpc_proxy" };
	static const char *const socks[] = { "ALL_PROXY", "all_proxy", "FTP_PROXY", "ftp_proxy" };

	for (size_t i = 0; i < ARRAY_LEN(http); i++)
		list_set(l, http[i], "http://127.0.0.1:3128");
	for (size_t i = 0; i < ARRAY_LEN(socks); i++)
		list_set(l, socks[i], "socks5h://127.0.0.1:1080");
	list_set(l, "NO_PROXY", "localhost,127.0.0.1,::1");
	list_set(l, "no_proxy", "localhost,127.0.0.1,::1");
}

char **policy_environment(const struct policy *p, struct arena *a, char *const *environ_in,
			  struct text_rules *ret_dropped)
{
	struct list l = { .a = a };

	letters_fill(&l.letters);
	for (char *const *e = environ_in; e && *e; e++)
		inherit(p, &l, *e, ret_dropped);
	if (p->fs.tmp == TMP_PRIVATE)
		list_set(&l, "TMPDIR", "/tmp");
	if (p->network.mode == NETWORK_ALLOWLIST)
		set_proxies(&l);
	for (size_t i = 0; i < p->env.set.n; i++)
		list_set(&l, p->env.set.v[i].name, p->env.set.v[i].value);
	list_set(&l, "AMBIT", "1");
	list_set(&l, "SANDBOX_RUNTIME", "1");
	*ARENA_PUSH(a, l.v, l.n) = NULL;
	return l.v;
}
