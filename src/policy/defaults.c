/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds when nobody said anything: the working directory may be written,
 * everything may be read except what would be worth stealing. This runs at
 * every start, so the home directory is listed once and only what is there is
 * looked at.
 */
#include <string.h>

#include "base/text.h"
#include "policy/build.h"
#include "policy/inputs.h"

struct secret {
	const char *path, *why;
};

#define CLOUD "cloud credentials"
#define BROWSER "browser profile: cookies and passwords"
#define HISTORY "command history"
#define TOKENS "access tokens"
#define AGENT "token of another agent"
#define KEYS "private keys"
#define PASSWORDS "stored passwords"

/* Neighbours share their directory: it is looked at once. */
static const struct secret secrets[] = {
#ifdef __APPLE__
	{ "~/Library/Keychains", PASSWORDS },
	{ "~/Library/Cookies", BROWSER },
	{ "~/Library/HTTPStorages", BROWSER },
	{ "~/Library/Safari", BROWSER },
	{ "~/Library/Containers/com.apple.Safari", BROWSER },
	{ "~/Library/Application Support/Google/Chrome", BROWSER },
	{ "~/Library/Application Support/Chromium", BROWSER },
	{ "~/Library/Application Support/BraveSoftware", BROWSER },
	{ "~/Library/Application Support/Microsoft Edge", BROWSER },
	{ "~/Library/Application Support/Firefox", BROWSER },
	{ "~/Library/Application Support/Arc", BROWSER },
	{ "~/Library/Application Support/Signal", "messages" },
	{ "~/Library/Application Support/Slack", "messages" },
	{ "~/Library/Application Support/discord", "messages" },
	{ "~/Library/Messages", "messages" },
	{ "~/Library/Mail", "messages" },
	{ "~/Library/Application Support/Claude", AGENT },
	{ "~/Library/Application Support/Cursor/User/globalStorage", AGENT },
	{ "~/Library/Application Support/Code/User/globalStorage", AGENT },
#endif
	{ "~/.ssh", KEYS },
	{ "~/.gnupg", KEYS },
	{ "~/.pki", KEYS },
	{ "~/.age", KEYS },
	{ "~/.putty", KEYS },
	{ "~/.aws", CLOUD },
	{ "~/.azure", CLOUD },
	{ "~/.oci", CLOUD },
	{ "~/.aliyun", CLOUD },
	{ "~/.bluemix", CLOUD },
	{ "~/.s3cfg", CLOUD },
	{ "~/.boto", CLOUD },
	{ "~/.kube", "cluster credentials" },
	{ "~/.docker/config.json", "registry credentials" },
	{ "~/.terraform.d", CLOUD },
	{ "~/.terraformrc", CLOUD },
	{ "~/.pulumi/credentials.json", CLOUD },
	{ "~/.vault-token", TOKENS },
	{ "~/.netrc", PASSWORDS },
	{ "~/.authinfo", PASSWORDS },
	{ "~/.authinfo.gpg", PASSWORDS },
	{ "~/.pgpass", PASSWORDS },
	{ "~/.my.cnf", PASSWORDS },
	{ "~/.mylogin.cnf", PASSWORDS },
	{ "~/.password-store", PASSWORDS },
	{ "~/.git-credentials", PASSWORDS },
	{ "~/.npmrc", TOKENS },
	{ "~/.yarnrc.yml", TOKENS },
	{ "~/.pypirc", TOKENS },
	{ "~/.cargo/credentials", TOKENS },
	{ "~/.cargo/credentials.toml", TOKENS },
	{ "~/.gem/credentials", TOKENS },
	{ "~/.composer/auth.json", TOKENS },
	{ "~/.m2/settings.xml", TOKENS },
	{ "~/.m2/settings-security.xml", TOKENS },
	{ "~/.gradle/gradle.properties", TOKENS },
	{ "~/.nuget/NuGet/NuGet.Config", TOKENS },
	{ "~/.huggingface/token", TOKENS },
	{ "~/.cache/huggingface/token", TOKENS },
	{ "~/.kaggle", TOKENS },
	{ "~/.electrum", "wallet" },
	{ "~/.bitcoin", "wallet" },
	{ "~/.ethereum", "wallet" },
	{ "~/.mozilla", BROWSER },
	{ "~/.thunderbird", "mail" },
	{ "~/snap/firefox", BROWSER },
	{ "~/snap/chromium", BROWSER },
	{ "~/.var/app/org.mozilla.firefox", BROWSER },
	{ "~/.var/app/com.google.Chrome", BROWSER },
	{ "~/.var/app/org.chromium.Chromium", BROWSER },
	{ "~/.var/app/com.brave.Browser", BROWSER },
	{ "~/.local/share/keyrings", PASSWORDS },
	{ "~/.local/share/kwalletd", PASSWORDS },
	{ "~/.local/share/fish/fish_history", HISTORY },
	{ "~/.local/share/opencode/auth.json", AGENT },
	{ "~/.config/gcloud", CLOUD },
	{ "~/.config/doctl", CLOUD },
	{ "~/.config/hcloud", CLOUD },
	{ "~/.config/rclone", CLOUD },
	{ "~/.config/gh", TOKENS },
	{ "~/.config/glab-cli", TOKENS },
	{ "~/.config/hub", TOKENS },
	{ "~/.config/git/credentials", PASSWORDS },
	{ "~/.config/composer/auth.json", TOKENS },
	{ "~/.config/containers/auth.json", "registry credentials" },
	{ "~/.config/sops", KEYS },
	{ "~/.config/age", KEYS },
	{ "~/.config/op", PASSWORDS },
	{ "~/.config/1Password", PASSWORDS },
	{ "~/.config/Bitwarden", PASSWORDS },
	{ "~/.config/Bitwarden CLI", PASSWORDS },
	{ "~/.config/keepassxc", PASSWORDS },
	{ "~/.config/google-chrome", BROWSER },
	{ "~/.config/google-chrome-beta", BROWSER },
	{ "~/.config/chromium", BROWSER },
	{ "~/.config/BraveSoftware", BROWSER },
	{ "~/.config/microsoft-edge", BROWSER },
	{ "~/.config/vivaldi", BROWSER },
	{ "~/.config/opera", BROWSER },
	{ "~/.config/Signal", "messages" },
	{ "~/.config/Slack", "messages" },
	{ "~/.config/discord", "messages" },
	{ "~/.config/github-copilot", AGENT },
	{ "~/.config/Cursor/User/globalStorage", AGENT },
	{ "~/.config/Code/User/globalStorage", AGENT },
	{ "~/.claude/.credentials.json", AGENT },
	{ "~/.claude.json", AGENT },
	{ "~/.codex/auth.json", AGENT },
	{ "~/.gemini/oauth_creds.json", AGENT },
	{ "~/.gemini/google_accounts.json", AGENT },
	{ "~/.qwen/oauth_creds.json", AGENT },
	{ "~/.copilot", AGENT },
	{ "~/.cursor", AGENT },
	{ "~/.codeium", AGENT },
	{ "~/.continue", AGENT },
	{ "~/.aider.conf.yml", AGENT },
	{ "~/.bash_history", HISTORY },
	{ "~/.zsh_history", HISTORY },
	{ "~/.zsh_sessions", HISTORY },
	{ "~/.histfile", HISTORY },
	{ "~/.ash_history", HISTORY },
	{ "~/.ksh_history", HISTORY },
	{ "~/.python_history", HISTORY },
	{ "~/.node_repl_history", HISTORY },
	{ "~/.irb_history", HISTORY },
	{ "~/.psql_history", HISTORY },
	{ "~/.mysql_history", HISTORY },
	{ "~/.mariadb_history", HISTORY },
	{ "~/.sqlite_history", HISTORY },
	{ "~/.rediscli_history", HISTORY },
	{ "~/.mongorc.js", HISTORY },
	{ "~/.dbshell", HISTORY },
	{ "~/.lesshst", HISTORY },
	{ "~/.viminfo", HISTORY },
	{ "~/.wget-hsts", HISTORY },
	/* unreadable to most callers, not to root */
	{ "/etc/shadow", PASSWORDS },
	{ "/etc/shadow-", PASSWORDS },
	{ "/etc/gshadow", PASSWORDS },
	{ "/etc/gshadow-", PASSWORDS },
	{ "/etc/sudoers", "who may become root" },
	{ "/etc/sudoers.d", "who may become root" },
	{ "/etc/ssl/private", KEYS },
	{ "/etc/ssh/ssh_host_rsa_key", KEYS },
	{ "/etc/ssh/ssh_host_ecdsa_key", KEYS },
	{ "/etc/ssh/ssh_host_ed25519_key", KEYS },
	{ "/etc/ssh/ssh_host_dsa_key", KEYS },
	{ "/root/.ssh", KEYS },
};

/* Variables by which programs look for such places elsewhere; what lies below moves too. */
static const struct {
	const char *variable, *place, *below;
} moved[] = {
	{ "XDG_CONFIG_HOME", "~/.config", "" },
	{ "GNUPGHOME", "~/.gnupg", "" },
	{ "CARGO_HOME", "~/.cargo", "" },
	{ "DOCKER_CONFIG", "~/.docker", "" },
	{ "CLAUDE_CONFIG_DIR", "~/.claude", "" },
	{ "CLAUDE_CONFIG_DIR", "~/.claude.json", "/.claude.json" },
	{ "AWS_SHARED_CREDENTIALS_FILE", "~/.aws", "" },
	{ "AWS_CONFIG_FILE", "~/.aws", "" },
	{ "KUBECONFIG", "~/.kube", "" }, /* a list */
	{ "NETRC", "~/.netrc", "" },
	{ "NPM_CONFIG_USERCONFIG", "~/.npmrc", "" },
	{ "npm_config_userconfig", "~/.npmrc", "" },
};

/* The names in a directory, as a set of hashes: what is not in it is not there. */
struct names {
	uint64_t bits[16];
	bool usable;
};

static unsigned hash_name(const char *s, size_t n)
{
	uint32_t h = 2166136261u;

	while (n-- > 0)
		h = (h ^ (unsigned char)*s++) * 16777619u;
	return (h ^ h >> 16) % (16 * 64);
}

static void names_read(const struct builder *b, const char *dir, struct names *ret)
{
	const struct view *view = b->in->view;
	const char *const *list = NULL;
	int count = view->peek ? view->peek(view, b->a, dir, &list)
			       : view->list(view, b->a, dir, &list);

	ret->usable = count >= 0; /* or it is large: then each is looked for */
	for (int i = 0; i < count; i++) {
		unsigned h = hash_name(list[i], strlen(list[i]));

		ret->bits[h / 64] |= (uint64_t)1 << h % 64;
	}
}

static bool names_lack(const struct names *names, const char *s)
{
	unsigned h = hash_name(s, strcspn(s, "/"));

	return names->usable && !(names->bits[h / 64] >> h % 64 & 1);
}

/* rest begins with a slash */
static const char *below_home(const struct builder *b, const char *rest)
{
	const char *home = strcmp(b->p->home, "/") == 0 ? "" : b->p->home;
	size_t n = strlen(home), m = strlen(rest);
	char *path = arena_alloc(b->a, n + m + 1);

	memcpy(path, home, n);
	memcpy(path + n, rest, m);
	return path;
}

/* The two directories in which most of the secrets would be. */
struct listing {
	struct names home, config;
};

static void listing_read(const struct builder *b, struct listing *ret)
{
	const struct view *view = b->in->view;
	const char *config = below_home(b, "/.config");

	names_read(b, b->p->home, &ret->home);
	/* through a link the rules below it would have other canonical paths */
	if (view->kind(view, config) == FILE_DIRECTORY)
		names_read(b, config, &ret->config);
}

static bool surely_absent(const struct listing *l, const char *path)
{
	if (*path != '~')
		return false;
	return names_lack(&l->home, path + 2) ||
	       (text_starts(path, "~/.config/") && names_lack(&l->config, path + 10));
}

static void add_secret(struct builder *b, const struct secret *s, const struct listing *l)
{
	struct path_rule rule = {
		.access = ACCESS_READ,
		.verdict = VERDICT_DENY,
		.text = s->path,
		.why = s->why,
		.origin = { .layer = LAYER_DEFAULT, .name = "default" },
	};

	/* the home directory is canonical and clean, and so are the texts above */
	rule.path = *s->path == '~' ? below_home(b, s->path + 1) : s->path;
	rule.real = rule.path;
	rule.absent = surely_absent(l, s->path);
	if (!rule.absent)
		rule.real = rule_resolve(b, rule.path, &rule.absent);
	*ARENA_PUSH(b->a, b->p->fs.rules.v, b->p->fs.rules.n) = rule;
}

/*
 * A secret at the place to which a variable moved it. Not where that would hide everything: a
 * directory above the home or the working directory, /dev/null.
 */
static void add_moved(struct builder *b, const char *variable, const char *path, const char *why)
{
	struct path_rule rule = {
		.access = ACCESS_READ,
		.verdict = VERDICT_DENY,
		.text = path,
		.path = path,
		.why = why,
		.origin = { .layer = LAYER_DEFAULT, .name = variable },
	};

	rule_resolve_again(b, &rule);
	if (path_within(b->p->home, rule.real) || path_within(b->p->cwd, rule.real) ||
	    path_within(rule.real, "/proc") ||
	    b->in->view->kind(b->in->view, rule.real) == FILE_OTHER)
		return;
	*ARENA_PUSH(b->a, b->p->fs.rules.v, b->p->fs.rules.n) = rule;
}

/* All secrets of row `m`, whose place is `to` now. */
static void add_moved_to(struct builder *b, size_t m, const char *to)
{
	size_t n = strlen(moved[m].place);

	if (text_starts(to, "~/"))
		to = below_home(b, to + 1);
	if (*to != '/' ||
	    strcmp(path_absolute(b->a, "/", to), below_home(b, moved[m].place + 1)) == 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
		if (path_within(secrets[i].path, moved[m].place))
			add_moved(b, moved[m].variable,
				  path_absolute(b->a, "/",
						arena_printf(b->a, "%s%s%s", to, moved[m].below,
							     secrets[i].path + n)),
				  secrets[i].why);
	}
}

static void add_all_moved(struct builder *b)
{
	for (size_t i = 0; b->in->environ_in && i < ARRAY_LEN(moved); i++) {
		const char *value = inputs_variable(b->in->environ_in, moved[i].variable);
		char *rest = value ? arena_strdup(b->a, value) : NULL;
		bool list = strcmp(moved[i].variable, "KUBECONFIG") == 0;

		for (const char *to; (to = strsep(&rest, list ? ":" : ""));)
			add_moved_to(b, i, to);
	}
}

void defaults_add_rules(struct builder *b)
{
	struct listing l = { 0 };

	*ARENA_PUSH(b->a, b->p->fs.rules.v, b->p->fs.rules.n) = (struct path_rule){
		.access = ACCESS_WRITE,
		.verdict = VERDICT_ALLOW,
		.text = ".",
		.path = b->p->cwd,
		.real = b->p->cwd,
		.why = "the working directory",
		.origin = { .layer = LAYER_DEFAULT, .name = "default" },
	};
	listing_read(b, &l);
	for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
		/* one's own ~/.ssh is in the list already */
		if (text_starts(secrets[i].path, "/root/") && strcmp(b->p->home, "/root") == 0)
			continue;
		add_secret(b, &secrets[i], &l);
	}
	add_all_moved(b);
}

void policy_look_again(const struct policy *p, struct arena *a, const struct view *view,
		       struct path_rules *ret)
{
	const struct policy_inputs in = { .view = view };
	struct policy copy = *p;
	struct builder b = { .a = a, .p = &copy, .in = &in };
	struct listing l = { 0 };

	listing_read(&b, &l);
	ret->v = arena_array(a, p->fs.rules.n, sizeof(*ret->v));
	ret->n = p->fs.rules.n;
	for (size_t i = 0; i < ret->n; i++) {
		struct path_rule *r = &ret->v[i];

		*r = p->fs.rules.v[i];
		if (r->origin.layer == LAYER_DEFAULT && surely_absent(&l, r->text)) {
			r->real = r->path;
			r->absent = true;
		} else {
			rule_resolve_again(&b, r);
		}
	}
}
