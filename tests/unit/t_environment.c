/* SPDX-License-Identifier: Apache-2.0 */
/* What of the caller's environment reaches the command. */
#include "policy_fixture.h"

static const char *const *variables;

/* The value of a variable in the result, NULL when it is not there. Twice is a failure. */
static const char *value_of(char **env, const char *name)
{
	const char *found = NULL;
	size_t n = strlen(name);

	for (; *env; env++) {
		if (strncmp(*env, name, n) != 0 || (*env)[n] != '=')
			continue;
		assert_null(found);
		found = *env + n + 1;
	}
	return found;
}

static char **environment(struct fixture *f, struct text_rules *dropped)
{
	union {
		const char *const *in;
		char *const *out;
	} cast = { .in = variables };

	fixture_load(f);
	return policy_environment(f->p, f->a, cast.out, dropped);
}

/* Names as they are met in builds and on the machines of developers. */
static const char *const real_secrets[] = { "GITHUB_TOKEN",
					    "GH_TOKEN",
					    "GITHUB_PAT",
					    "GH_PAT_RELEASES",
					    "GITLAB_TOKEN",
					    "CI_JOB_TOKEN",
					    "CI_JOB_JWT_V2",
					    "CI_REGISTRY_PASSWORD",
					    "CI_DEPLOY_PASSWORD",
					    "ACTIONS_RUNTIME_TOKEN",
					    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
					    "SYSTEM_ACCESSTOKEN",
					    "BUILDKITE_AGENT_ACCESS_TOKEN",
					    "CIRCLE_TOKEN",
					    "NPM_TOKEN",
					    "NODE_AUTH_TOKEN",
					    "YARN_NPM_AUTH_TOKEN",
					    "NPM_CONFIG__AUTH",
					    "npm_config__authToken",
					    "TWINE_PASSWORD",
					    "UV_PUBLISH_TOKEN",
					    "UV_INDEX_HOUSE_PASSWORD",
					    "POETRY_PYPI_TOKEN_PYPI",
					    "POETRY_HTTP_BASIC_HOUSE_PASSWORD",
					    "CARGO_REGISTRY_TOKEN",
					    "GEM_HOST_API_KEY",
					    "BUNDLE_GITHUB__COM",
					    "BUNDLE_GEM__FURY__IO",
					    "HEX_API_KEY",
					    "NUGET_API_KEY",
					    "COMPOSER_AUTH",
					    "GOAUTH",
					    "MAVEN_PASSWORD",
					    "SONATYPE_PASS",
					    "ORG_GRADLE_PROJECT_signingKey",
					    "ORG_GRADLE_PROJECT_signingPassword",
					    "OPENAI_API_KEY",
					    "ANTHROPIC_API_KEY",
					    "ANTHROPIC_AUTH_TOKEN",
					    "ANTHROPIC_CUSTOM_HEADERS",
					    "GEMINI_API_KEY",
					    "HF_TOKEN",
					    "HUGGING_FACE_HUB_TOKEN",
					    "WANDB_API_KEY",
					    "AZURE_CLIENT_SECRET",
					    "ARM_ACCESS_KEY",
					    "AZURE_STORAGE_KEY",
					    "AZURE_STORAGE_CONNECTION_STRING",
					    "APPLICATIONINSIGHTS_CONNECTION_STRING",
					    "ConnectionStrings__Default",
					    "SQLCONNSTR_main",
					    "DB_CONN_STR",
					    "AZURE_BLOB_SAS",
					    "GOOGLE_APPLICATION_CREDENTIALS",
					    "GOOGLE_SERVICE_ACCOUNT_JSON",
					    "GCP_SA_KEY",
					    "GCP_CREDS",
					    "CLOUDSDK_AUTH_ACCESS_TOKEN",
					    "AWS_ACCESS_KEY_ID",
					    "AWS_SECRET_ACCESS_KEY",
					    "DIGITALOCEAN_ACCESS_TOKEN",
					    "HCLOUD_TOKEN",
					    "CLOUDFLARE_API_TOKEN",
					    "CF_API_KEY",
					    "HEROKU_API_KEY",
					    "FLY_API_TOKEN",
					    "VERCEL_TOKEN",
					    "SUPABASE_SERVICE_ROLE_KEY",
					    "STRIPE_SECRET_KEY",
					    "TWILIO_AUTH_TOKEN",
					    "SENDGRID_API_KEY",
					    "SLACK_BOT_TOKEN",
					    "SLACK_WEBHOOK_URL",
					    "DISCORD_WEBHOOK",
					    "SENTRY_DSN",
					    "SENTRY_AUTH_TOKEN",
					    "DD_API_KEY",
					    "NEW_RELIC_LICENSE_KEY",
					    "SNYK_TOKEN",
					    "SONAR_TOKEN",
					    "CODECOV_TOKEN",
					    "DOCKER_PASSWORD",
					    "DOCKER_AUTH_CONFIG",
					    "REGISTRY_AUTH",
					    "KUBECONFIG",
					    "KUBECONFIG_DATA",
					    "KUBE_CONFIG_BASE64",
					    "VAULT_TOKEN",
					    "CONSUL_HTTP_AUTH",
					    "TF_VAR_db_password",
					    "TF_TOKEN_app_terraform_io",
					    "PULUMI_CONFIG_PASSPHRASE",
					    "ANSIBLE_BECOME_PASS",
					    "ANSIBLE_VAULT_PASSWORD_FILE",
					    "SSHPASS",
					    "SSH_PRIVATE_KEY",
					    "DEPLOY_KEY_BASE64",
					    "SSH_KEY_PEM",
					    "SSH_PRIVKEY_FILE",
					    "DEPLOY_ID_RSA",
					    "ID_ED25519",
					    "KEY1",
					    "DEPLOY_KEY_2",
					    "SIGNKEY2",
					    "CREDS1",
					    "SEED_PHRASE",
					    "TOTP_SEED",
					    "GPG_PASSPHRASE",
					    "PGPASSWORD",
					    "PGPASSFILE",
					    "MYSQL_PWD",
					    "REDISCLI_AUTH",
					    "DBPASS",
					    "DB_PASS",
					    "DB_PW",
					    "DBPWD",
					    "SMTPPASS",
					    "DJANGO_SECRET_KEY",
					    "SECRET_KEY_BASE",
					    "RAILS_MASTER_KEY",
					    "MASTERKEY",
					    "JWT_SECRET",
					    "ENCRYPTION_KEYS",
					    "AUTH_SALT",
					    "SESSION_COOKIE",
					    "HMAC_VALUE",
					    "BORG_PASSPHRASE",
					    "RCLONE_CONFIG_PASS",
					    "SOPS_AGE_KEY",
					    "OP_SESSION_house",
					    "OP_SERVICE_ACCOUNT_TOKEN",
					    "BW_SESSION",
					    "OTEL_EXPORTER_OTLP_HEADERS",
					    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
					    "AUTHORIZATION",
					    "PROXY_AUTHORIZATION",
					    "HTTP_AUTH_HEADER",
					    "NIX_CONFIG",
					    "ANDROID_KEYSTORE_BASE64",
					    "FASTLANE_SESSION",
					    "CERT_P12_BASE64",
					    "CSC_LINK",
					    "WALLET_MNEMONIC",
					    "KRB5CCNAME",
					    "SECRET_MONKEY",
					    "TURNKEY_PASSWORD",
					    NULL };

static const char *const real_others[] = { "PATH",
					   "HOME",
					   "USER",
					   "LOGNAME",
					   "SHELL",
					   "TERM",
					   "LANG",
					   "LANGUAGE",
					   "LC_CTYPE",
					   "TZ",
					   "PWD",
					   "OLDPWD",
					   "EDITOR",
					   "VISUAL",
					   "PAGER",
					   "MANPATH",
					   "INFOPATH",
					   "HOSTNAME",
					   "HOSTTYPE",
					   "MAIL",
					   "SHLVL",
					   "COLORTERM",
					   "COLUMNS",
					   "LINES",
					   "LS_COLORS",
					   "HISTSIZE",
					   "GOPATH",
					   "GOROOT",
					   "GOFLAGS",
					   "GOPROXY",
					   "GOCACHE",
					   "GOPRIVATE",
					   "CARGO_HOME",
					   "RUSTUP_HOME",
					   "RUSTFLAGS",
					   "JAVA_HOME",
					   "MAVEN_OPTS",
					   "GRADLE_USER_HOME",
					   "NVM_DIR",
					   "PNPM_HOME",
					   "NPM_CONFIG_REGISTRY",
					   "PYTHONPATH",
					   "PYTHONUNBUFFERED",
					   "VIRTUAL_ENV",
					   "CONDA_PREFIX",
					   "PIP_INDEX_URL",
					   "PKG_CONFIG_PATH",
					   "CC",
					   "CXX",
					   "CFLAGS",
					   "LDFLAGS",
					   "MAKEFLAGS",
					   "CMAKE_PREFIX_PATH",
					   "CI",
					   "GITHUB_ACTIONS",
					   "GITHUB_REPOSITORY",
					   "GITHUB_ACTOR",
					   "GITHUB_SHA",
					   "BUILD_NUMBER",
					   "XDG_SESSION_TYPE",
					   "XDG_CONFIG_HOME",
					   "XDG_DATA_DIRS",
					   "SSH_TTY",
					   "SSH_CONNECTION",
					   "SSH_CLIENT",
					   "TOKENIZERS_PARALLELISM",
					   "KEYBOARD",
					   "KEYMAP",
					   "XKB_DEFAULT_LAYOUT",
					   "PASSAGE",
					   "PASSENGER_ROOT",
					   "COMPASS",
					   "BYPASS",
					   "MONKEY",
					   "HOTKEY",
					   "HOTKEY2",
					   "MAX_TOKENS_1",
					   "KEYBOARD_1",
					   "KEY1_LABEL",
					   "RANDOM_SEED",
					   "PYTHONHASHSEED",
					   "VALID_RSA",
					   "PEM_DIR",
					   "LESSKEY",
					   "GIT_AUTHOR_NAME",
					   "GIT_AUTHOR_EMAIL",
					   "AUTHOR",
					   "AUTHORS",
					   "MAX_TOKENS",
					   "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
					   "MAX_THINKING_TOKENS",
					   "NO_COLOR",
					   "FORCE_COLOR",
					   "DEBIAN_FRONTEND",
					   "NIX_PATH",
					   "NIX_SSL_CERT_FILE",
					   "SSL_CERT_FILE",
					   "GPG_TTY",
					   "NODE_ENV",
					   "DOTNET_ROOT",
					   "ANDROID_HOME",
					   "PATTERN",
					   "SPATIAL",
					   "HEADERS_DIR",
					   "BUNDLE_GEMFILE",
					   "BUNDLE_BUILD__NOKOGIRI",
					   "KUBERNETES_SERVICE_HOST",
					   "COOKIECUTTER_CONFIG",
					   "TERM_SESSION_ID",
					   "WEBHOOK_PORT",
					   NULL };

static bool is_kept(struct fixture *f, const char *name, const char *value)
{
	const char *const in[] = { arena_printf(f->a, "%s=%s", name, value), NULL };

	variables = in;
	return value_of(environment(f, NULL), name) != NULL;
}

static void test_real_names(void **state)
{
	for (size_t i = 0; real_secrets[i]; i++) {
		if (is_kept(*state, real_secrets[i], "x"))
			fail_msg("%s was kept", real_secrets[i]);
	}
	for (size_t i = 0; real_others[i]; i++) {
		if (!is_kept(*state, real_others[i], "x"))
			fail_msg("%s was dropped", real_others[i]);
	}
}

static void test_values(void **state)
{
	static const char *const secret[] = {
		"postgres://u:p@h/db",
		"http://a.example,http://u:p@b.example",
		"main=redis://h:1/0 second=redis://:p@h:1/0",
		"https://ghp_0123456789abcdefghijABCDEFGHIJ012345@github.com/o/r",
		"https://ghp_0123456789abcdefghijABCDEFGHIJ012345:@github.com/o/r",
		"https://x-access-token:ghs_16C7e42F292c6912E7710c838347Ae178B4a@github.com",
		"https://0123456789abcdef0123456789abcdef@o1.ingest.example/1",
		"https://proxy.example|direct,https://u:p@goproxy.example",
		"Server=h;User Id=u;Password=p;",
		"Driver={x};UID=u;PWD=p",
		"PWD=p;UID=u",
		"DefaultEndpointsProtocol=https;AccountName=n;AccountKey=abc==;",
		"Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey=abc=",
		"jdbc:postgresql://h/db?user=u&password=p",
		"//registry.example/:_authToken=npm_x",
		"-Dhttp.proxyUser=u -Dhttp.proxyPassword=p",
		"https://api.example/?api_key=x",
		"client_secret=x",
		"postgres://u:s3/cret@h",
		"postgres://u:s3#cret@h/db",
		"redis://:pw?x@h",
		"http://h1:80,redis://:pw/x@h",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n",
		"{\"pem\":\"-----BEGIN PRIVATE KEY-----\\nMII\"}",
		NULL
	};
	static const char *const other[] = { "http://proxy.example:3128",
					     "http://user@p:1",
					     "ssh://git@github.com/o/r",
					     "ssh://a-long-name-without-digits@host",
					     "http://host:80/a@b",
					     "http://host:/a@b",
					     "http://host:80?a@b",
					     "http://[::1]:8080/a@b",
					     "http://h1:80,http://h2:80/a@b",
					     "http://$HOST:$PORT/ mail a@b",
					     "-----BEGIN PUBLIC KEY-----\nMII\n",
					     "-----BEGIN CERTIFICATE-----\nMII\n",
					     "http://host/?q=a:b@c",
					     "https://a.example,https://b.example|direct",
					     "/usr/bin:/bin://x",
					     "user@host",
					     "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33",
					     "-O2 -DTOKEN=1 -Dkey=2",
					     "password=",
					     "password=;user=u",
					     "oldpwd=1",
					     "key=value;word=other",
					     "=",
					     "==",
					     "://",
					     "://@",
					     "://:@",
					     "a=://",
					     "",
					     NULL };

	for (size_t i = 0; secret[i]; i++) {
		if (is_kept(*state, "PLAIN", secret[i]))
			fail_msg("%s was kept", secret[i]);
	}
	for (size_t i = 0; other[i]; i++) {
		if (!is_kept(*state, "PLAIN", other[i]))
			fail_msg("%s was dropped", other[i]);
	}
}

static void test_safe(void **state)
{
	static const char *const keep[] = { "PATH=/bin",
					    "HOME=/h",
					    "CI=1",
					    "EDITOR=vi",
					    "PYTHONPATH=lib",
					    "GOPATH=/go",
					    "TOKENIZERS_PARALLELISM=false",
					    "GIT_AUTHOR_NAME=x",
					    "KEYBOARD=us",
					    "PASSAGE=1",
					    "COMPASS=n",
					    "OLDPWD=/x",
					    "PWD=/y",
					    "EMPTY=",
					    "_=x",
					    "SSH_CONNECTION=x",
					    "HTTPS_PROXY=http://proxy.example:3128",
					    "URL=http://host:80/a@b",
					    "MONKEY=1",
					    "LC_ALL=C",
					    "XDG_SESSION_TYPE=tty",
					    "http_proxy=http://user@p:1",
					    NULL };
	struct fixture *f = *state;
	char **env;

	variables = keep;
	env = environment(f, NULL);
	for (size_t i = 0; keep[i]; i++) {
		_cleanup_free_ char *name = strndup(keep[i], strcspn(keep[i], "="));

		if (!value_of(env, name))
			fail_msg("%s was dropped", name);
	}
	assert_string_equal(value_of(env, "EMPTY"), "");
	assert_string_equal(value_of(env, "AMBIT"), "1");
	assert_string_equal(value_of(env, "SANDBOX_RUNTIME"), "1");
	assert_string_equal(value_of(env, "TMPDIR"), "/tmp");
}

static void test_unsafe(void **state)
{
	static const char *const drop[] = {
		"GITHUB_TOKEN=x", "NPM_TOKEN=x", "gh_token=x", "TOKEN_FILE=x", "OPENAI_API_KEY=x",
		"SOME_APIKEY=x", "MYSQL_PWD=x", "DB_PASSWORD=x", "dbpassword=x", "DB_PASS=x",
		"CLIENT_SECRET_ID=x", "GOOGLE_APPLICATION_CREDENTIALS=x", "AWS_PROFILE=x",
		"AWS_SESSION_TOKEN=x", "DOCKER_AUTH_CONFIG=x", "SIGNING_KEY=x", "NPM_AUTH=x",
		"AZURE_DEVOPS_EXT_PAT=x", "SENTRY_DSN=x", "CI_JOB_JWT=x",
		"DATABASE_URL=postgres://u:p@h/db", "LD_PRELOAD=x", "LD_LIBRARY_PATH=x",
		"GLIBC_TUNABLES=x", "GCONV_PATH=x", "BASH_ENV=x", "ENV=x", "SHELLOPTS=x", "PS4=x",
		"IFS=x", "PROMPT_COMMAND=x", "PYTHONSTARTUP=x", "NODE_OPTIONS=x", "PERL5OPT=x",
		"RUBYOPT=x", "JAVA_TOOL_OPTIONS=x", "_JAVA_OPTIONS=x", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG=x", "GIT_SSH_COMMAND=x", "GIT_ASKPASS=x", "SSH_ASKPASS=x",
		"GIT_EXEC_PATH=x", "SSH_AUTH_SOCK=x", "DBUS_SESSION_BUS_ADDRESS=x", "DISPLAY=:0",
		"WAYLAND_DISPLAY=x", "XAUTHORITY=x", "DOCKER_HOST=x", "VSCODE_IPC_HOOK_CLI=x",
		"XDG_RUNTIME_DIR=x", "TMUX=x", "KUBECONFIG=x",
		/* not proper names */
		"BASH_FUNC_ls%%=() { :; }", "A B=x", "1A=x", "A.B=x", NULL
	};
	struct fixture *f = *state;
	struct text_rules dropped = { 0 };
	size_t n = 0;
	char **env;

	variables = drop;
	env = environment(f, &dropped);
	for (; drop[n]; n++) {
		_cleanup_free_ char *name = strndup(drop[n], strcspn(drop[n], "="));

		if (value_of(env, name))
			fail_msg("%s was kept", name);
		assert_string_equal(dropped.v[n].text, name);
		assert_true(strlen(dropped.v[n].origin.name) > 5);
	}
	assert_int_equal(dropped.n, n);
}

static void test_pass_and_set(void **state)
{
	static const char *const in[] = { "GH_TOKEN=1", "LD_PRELOAD=2", "CLAUDE_TOKEN=3",
					  "A=4",        "A=5",          "no equals",
					  "=empty",     "AMBIT=0",      "TMPDIR=/x",
					  NULL };
	struct fixture *f = *state;
	char **env;

	variables = in;
	fixture_user(f, "environment:\n  pass: [GH_TOKEN]\n  passPrefix: [CLAUDE_]\n"
			"  set: {B: x, A: set, AMBIT: no, N: 5}\n");
	fixture_option(f, "environment.set", "B=y=z");
	env = environment(f, NULL);
	assert_string_equal(value_of(env, "GH_TOKEN"), "1");
	assert_string_equal(value_of(env, "CLAUDE_TOKEN"), "3");
	assert_null(value_of(env, "LD_PRELOAD"));
	assert_string_equal(value_of(env, "A"), "set");
	assert_string_equal(value_of(env, "B"), "y=z");
	assert_string_equal(value_of(env, "N"), "5");
	assert_string_equal(value_of(env, "AMBIT"), "1");
	assert_string_equal(value_of(env, "TMPDIR"), "/tmp");
}

static void test_first_of_two_counts(void **state)
{
	static const char *const in[] = { "A=1", "A=2", NULL };
	struct fixture *f = *state;

	variables = in;
	assert_string_equal(value_of(environment(f, NULL), "A"), "1");
}

static void test_none_and_all(void **state)
{
	static const char *const in[] = { "PATH=/bin", "LC_TIME=C",  "CI=1",      "GH_TOKEN=x",
					  "LD_X=1",    "BAD NAME=1", "TMPDIR=/t", NULL };
	struct fixture *f = *state;
	char **env;

	variables = in;
	fixture_user(f, "environment: {inherit: none, pass: [CI]}");
	env = environment(f, NULL);
	assert_string_equal(value_of(env, "PATH"), "/bin");
	assert_string_equal(value_of(env, "LC_TIME"), "C");
	assert_string_equal(value_of(env, "CI"), "1");
	assert_null(value_of(env, "GH_TOKEN"));
	fixture_user(f, "environment: {inherit: all}\nfilesystem: {tmp: shared}");
	env = environment(f, NULL);
	assert_string_equal(value_of(env, "GH_TOKEN"), "x");
	assert_string_equal(value_of(env, "LD_X"), "1");
	assert_null(value_of(env, "BAD NAME"));
	assert_string_equal(value_of(env, "TMPDIR"), "/t");
}

/* A name longer than the buffer for comparing it. */
static void test_long_name(void **state)
{
	struct fixture *f = *state;
	char name[600];
	const char *in[] = { name, "B=1", NULL };

	memset(name, 'A', sizeof(name));
	memcpy(name + sizeof(name) - 3, "=x", 3);
	variables = in;
	assert_string_equal(value_of(environment(f, NULL), "B"), "1");
	name[sizeof(name) - 3] = '\0';
	assert_null(value_of(environment(f, NULL), name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		policy_test(test_real_names),   policy_test(test_values),
		policy_test(test_safe),         policy_test(test_unsafe),
		policy_test(test_pass_and_set), policy_test(test_first_of_two_counts),
		policy_test(test_none_and_all), policy_test(test_long_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
