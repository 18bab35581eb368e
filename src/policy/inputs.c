/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where settings come from. Trust boundary: the environment and the options are
 * the caller's word and may widen; the managed file has a fixed place that
 * nothing here can move; a project's file comes with the code that is about to
 * be sandboxed, so it is only ever passed on as such, with what `ambit trust` has
 * recorded about it. A place that cannot be looked at is not taken for empty.
 */
#include "policy/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "policy/claude.h"
#include "policy/trust.h"

#define PASSWD_MAX ((size_t)4 << 20)
#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

/* Variables that stand for settings. */
static const struct {
	const char *name, *key;
} variables[] = {
	{ "AMBIT_ALLOWED_DOMAINS", "network.allowedDomains" },
	{ "AMBIT_FALLBACK", "fallback" },
	{ "AMBIT_BACKEND", "backend" },
};

const char *inputs_variable(char *const *environ_in, const char *name)
{
	size_t n = strlen(name);

	for (; *environ_in; environ_in++) {
		const char *v = *environ_in;

		if (strncmp(v, name, n) == 0 && v[n] == '=')
			return v[n + 1] ? v + n + 1 : NULL;
	}
	return NULL;
}

int inputs_working_directory(struct arena *a, char *const *environ_in, const char **ret,
			     struct error *e)
{
	const char *pwd = inputs_variable(environ_in, "PWD");
	struct stat here, there;
	char path[PATH_MAX];

	if (pwd && pwd[0] == '/' && stat(".", &here) == 0 && stat(pwd, &there) == 0 &&
	    here.st_dev == there.st_dev && here.st_ino == there.st_ino) {
		*ret = path_absolute(a, "/", pwd);
		/* "/link/.." is not "/" to the kernel: the clean text must still be the place */
		if (stat(*ret, &there) == 0 && here.st_dev == there.st_dev &&
		    here.st_ino == there.st_ino)
			return 0;
	}
	/* the kernel's "(unreachable)/x" is no path */
	if (!getcwd(path, sizeof(path)) || path[0] != '/')
		return error_set(e, errno ? errno : ENOENT,
				 "the working directory cannot be named: it was removed or lies "
				 "outside the file system");
	*ret = arena_strdup(a, path);
	return 0;
}

int inputs_caller_path(struct arena *a, const char *path, const char **ret, struct error *e)
{
	char here[PATH_MAX];

	if (path[0] == '/') {
		*ret = path;
		return 0;
	}
	if (!getcwd(here, sizeof(here)) || here[0] != '/')
		return error_set(e, ENOENT, "%s: the working directory cannot be named", path);
	*ret = path_join(a, here, path);
	return 0;
}

/* The sixth field of the line whose third is uid: name:x:uid:gid:gecos:home:shell */
static const char *passwd_home(struct arena *a, const char *passwd, unsigned uid)
{
	while (*passwd) {
		size_t len = strcspn(passwd, "\n");
		const char *field = passwd;
		uint64_t id = 0;

		for (unsigned i = 0; i < 6; i++) {
			size_t n = strcspn(field, ":\n");

			if (i == 2 &&
			    (text_parse_u64(arena_strndup(a, field, n), UINT32_MAX, &id) ||
			     id != uid))
				break;
			if (i == 5 && field[0] == '/')
				return arena_strndup(a, field, n);
			if (field[n] != ':')
				break;
			field += n + 1;
		}
		passwd += len + (passwd[len] == '\n');
	}
	return NULL;
}

const char *inputs_home(struct arena *a, const char *home_variable, const char *passwd,
			unsigned uid)
{
	const char *home = home_variable;

	if (!home || home[0] != '/')
		home = passwd ? passwd_home(a, passwd, uid) : NULL;
	return home ? path_absolute(a, "/", home) : NULL;
}

/* The program is static: getpwuid() would want the loader. NULL where others than the file know it. */
static const char *account_home(struct arena *a)
{
	_cleanup_free_ char *passwd = NULL;

	(void)!fd_read_file(AT_FDCWD, "/etc/passwd", PASSWD_MAX, &passwd, NULL);
	return inputs_home(a, NULL, passwd, getuid());
}

static int find_home(struct arena *a, char *const *environ_in, const char **ret, struct error *e)
{
	const char *variable = inputs_variable(environ_in, "HOME");

	*ret = inputs_home(a, variable, NULL, 0);
	if (!*ret)
		*ret = account_home(a);
	if (!*ret)
		return error_set(
			e, ENOENT,
			"the home directory is unknown, so its secrets cannot be hidden: set HOME");
	return 0;
}

/* $variable when it is absolute, as the XDG specification wants, else ~/rest. */
static const char *xdg_dir(struct arena *a, char *const *environ_in, const char *variable,
			   const char *home, const char *rest)
{
	const char *dir = inputs_variable(environ_in, variable);

	return dir && dir[0] == '/' ? path_absolute(a, "/", dir) : path_join(a, home, rest);
}

static const char *state_dir(struct arena *a, char *const *environ_in, const char *home)
{
	return path_join(a, xdg_dir(a, environ_in, "XDG_STATE_HOME", home, ".local/state"),
			 "ambit");
}

const char *inputs_trust_store(struct arena *a, char *const *environ_in, const char *home)
{
	return path_join(a, state_dir(a, environ_in, home), "trust");
}

/* 1, 0 or -errno, by one system call: this is asked for every parent at every start. */
static int is_there(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0)
		return 1;
	return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
}

/*
 * dir/stem.json or dir/stem.yaml. Both at once would leave one unread: an error.
 * What cannot be looked at is one too: it may hold rules.
 */
static int find_settings(struct arena *a, const char *dir, const char *stem, const char **ret,
			 struct error *e)
{
	static const char *const endings[] = { "json", "yaml" };

	*ret = NULL;
	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		const char *path = path_join(a, dir, arena_printf(a, "%s.%s", stem, endings[i]));
		int r = is_there(path);

		if (r < 0)
			return error_set(e, -r, "%s: %s", path, strerror(-r));
		if (r == 0)
			continue;
		if (*ret)
			return error_set(e, EEXIST, "both %s and %s exist: only one may", *ret,
					 path);
		*ret = path;
	}
	return 0;
}

static const char *parent_of(struct arena *a, const char *dir)
{
	const char *slash = strrchr(dir, '/');

	return slash == dir ? "/" : arena_strndup(a, dir, (size_t)(slash - dir));
}

/* A place like /tmp, where everybody can make a .git and settings for others. */
static bool is_for_everybody(const struct stat *st)
{
	return st->st_mode & S_ISVTX && st->st_mode & S_IWOTH;
}

/* Does the search end below this directory? `past` the work tree it goes on among our own. */
static bool ends_below(const char *dir, bool past)
{
	struct stat st;

	if (lstat(dir, &st) < 0)
		return past; /* who may not look at it is not stopped by it */
	return is_for_everybody(&st) || (past && st.st_uid != geteuid());
}

struct project_span inputs_project_span(struct arena *a, const char *dir, const char *home)
{
	struct project_span span = { NULL, dir };
	bool at_home = strcmp(dir, home) != 0 && path_within(dir, home);

	for (const char *d = dir;; d = parent_of(a, d)) {
		bool below_home = strcmp(d, home) != 0 && path_within(d, home);

		if ((d != dir && ends_below(d, span.own != NULL)) ||
		    (span.own && at_home && !below_home))
			break;
		if (is_there(path_join(a, d, ".git")) != 0) {
			span.top = d;
			span.own = span.own ? span.own : d;
		}
		if (below_home)
			span.top = d;
		if (strcmp(d, "/") == 0)
			break;
	}
	if (!span.own)
		span.own = span.top;
	return span;
}

/* Beyond the work tree only what we wrote ourselves counts, or root. */
static bool is_ours(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0);
}

int inputs_project_files(struct arena *a, const char *dir, struct project_span span,
			 const char **ret, const char ***ret_outer, size_t *ret_n_outer,
			 struct error *e)
{
	const char **outer = NULL;
	size_t n = 0;

	*ret = NULL;
	for (const char *d = dir;; d = parent_of(a, d)) {
		bool own = path_within(d, span.own);
		const char *file;
		int r = find_settings(a, d, ".ambit", &file, e);

		if (r < 0)
			return r;
		if (file && own && !*ret)
			*ret = file;
		else if (file && (own || is_ours(file)))
			*ARENA_PUSH(a, outer, n) = file;
		if (strcmp(d, span.top) == 0)
			break;
	}
	for (size_t i = 0; i < n / 2; i++) {
		const char *nearer = outer[i];

		outer[i] = outer[n - 1 - i];
		outer[n - 1 - i] = nearer;
	}
	*ret_outer = outer;
	*ret_n_outer = n;
	return 0;
}

int inputs_self(struct arena *a, const char **ret, struct error *e)
{
	char path[PATH_MAX];
	int r = sys_program(path, sizeof(path));

	if (r < 0)
		return error_set(e, -r, "this program's own file: %s", strerror(-r));
	*ret = arena_strdup(a, path);
	return 0;
}

const char *inputs_helper(struct arena *a, const char *name)
{
	const char *self;

	if (inputs_self(a, &self, NULL) < 0)
		return NULL;
	/* only there: elsewhere ../proxy may be a directory that a sandboxed command writes to */
	if (path_within(self, AMBIT_BUILD_DIR))
		return path_join(a,
				 strcmp(name, "ambit-proxy") == 0 ? AMBIT_BUILD_DIR "/src/proxy"
								  : AMBIT_BUILD_DIR "/src/sandbox",
				 name);
	return path_absolute(a, parent_of(a, self),
			     arena_printf(a, AMBIT_HELPERS_FROM_BIN "/%s", name));
}

/* The shipped profiles, found from where the program lies: build tree or relocated install. */
static const char *find_profiles(struct arena *a, const char *self)
{
	if (!self && inputs_self(a, &self, NULL) < 0)
		return NULL;
	if (path_within(self, AMBIT_BUILD_DIR))
		return AMBIT_SOURCE_PROFILES;
	return path_absolute(a, parent_of(a, self), AMBIT_PROFILES_FROM_BIN);
}

char *inputs_find_program(struct arena *a, char *const *environ_in, const char *name)
{
	const char *path = inputs_variable(environ_in, "PATH");

	if (!path)
		path = PATH_DEFAULT;
	while (*path && *name && !strchr(name, '/')) {
		size_t n = strcspn(path, ":");
		char *file = arena_printf(a, "%.*s/%s", (int)n, path, name);
		struct stat st;

		/* a relative entry would be another program in every directory */
		if (path[0] == '/' && stat(file, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(file, X_OK) == 0)
			return file;
		path += n + (path[n] == ':');
	}
	return NULL;
}

static void push_setting(struct arena *a, const struct setting_text *like, const char *value,
			 struct setting_text **v, size_t *n)
{
	struct setting_text *s = ARENA_PUSH(a, *v, *n);

	*s = *like;
	s->value = value;
}

/* AMBIT_NO_SANDBOX=1 is the setting `enabled: false`, so that what locks the one locks the other. */
static int push_no_sandbox(struct arena *a, char *const *environ_in, struct policy_inputs *in,
			   struct setting_text **v, struct error *e)
{
	static const struct setting_text off = { .key = "enabled",
						 .source = "AMBIT_NO_SANDBOX",
						 .layer = LAYER_ENVIRONMENT };
	const char *value = inputs_variable(environ_in, "AMBIT_NO_SANDBOX");

	if (!value || strcmp(value, "0") == 0)
		return 0;
	if (strcmp(value, "1") != 0)
		return error_set(e, EINVAL, "AMBIT_NO_SANDBOX must be 0 or 1");
	push_setting(a, &off, "false", v, &in->n_settings);
	return 0;
}

static void push_variables(struct arena *a, char *const *environ_in, struct policy_inputs *in,
			   struct setting_text **v)
{
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		const struct setting_text like = { .key = variables[i].key,
						   .source = variables[i].name,
						   .layer = LAYER_ENVIRONMENT };
		const char *value = inputs_variable(environ_in, variables[i].name);

		if (value)
			push_setting(a, &like, value, v, &in->n_settings);
	}
}

static int gather_settings(struct arena *a, const struct inputs_request *o, char *const *environ_in,
			   struct policy_inputs *in, struct error *e)
{
	struct setting_text *v = NULL;
	int r;

	push_variables(a, environ_in, in, &v);
	r = push_no_sandbox(a, environ_in, in, &v, e);
	for (size_t i = 0; i < o->n_options; i++)
		push_setting(a, &o->options[i], o->options[i].value, &v, &in->n_settings);
	in->settings = v;
	return r;
}

/* --chdir as the kernel understands it, or where we are. */
static int gather_cwd(struct arena *a, const struct inputs_request *o, char *const *environ_in,
		      struct policy_inputs *in, struct error *e)
{
	const char *by = o->chdir_by ? o->chdir_by : "--chdir";
	char path[PATH_MAX];
	struct stat st;

	if (!o->chdir)
		return inputs_working_directory(a, environ_in, &in->cwd, e);
	if (!realpath(o->chdir, path) || stat(path, &st) < 0)
		return error_set(e, errno, "%s %s: %s", by, o->chdir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return error_set(e, ENOTDIR, "%s %s: %s", by, o->chdir, strerror(ENOTDIR));
	in->cwd = arena_strdup(a, path);
	return 0;
}

/* Only the places; they are looked at when somebody asks for Claude's settings. */
static struct claude_files *claude_files(struct arena *a, char *const *environ_in, const char *home)
{
	struct claude_files *f = arena_alloc(a, sizeof(*f));
	const char *dir = xdg_dir(a, environ_in, "CLAUDE_CONFIG_DIR", home, ".claude");

	f->managed = INPUTS_CLAUDE_MANAGED_DIR "/managed-settings.json";
	f->managed_dir = INPUTS_CLAUDE_MANAGED_DIR "/managed-settings.d";
	f->user = path_join(a, dir, "settings.json");
	return f;
}

/* The user's and the project's files, or the one given instead of them. */
static int gather_files(struct arena *a, const struct inputs_request *o, char *const *environ_in,
			struct policy_inputs *in, struct error *e)
{
	const char *config = xdg_dir(a, environ_in, "XDG_CONFIG_HOME", in->home, ".config");
	const char *only =
		o->settings ? o->settings : inputs_variable(environ_in, "AMBIT_SETTINGS");
	const char **dirs = arena_array(a, 2, sizeof(*dirs));
	struct view_entry cwd, home;
	struct project_span span;
	struct claude_files *claude = claude_files(a, environ_in, in->home);
	int r;

	in->claude = claude;
	config = path_join(a, config, "ambit");
	in->state_dir = state_dir(a, environ_in, in->home);
	dirs[0] = path_join(a, config, "profiles");
	in->profile_dirs_user = dirs;
	in->profile_dir = find_profiles(a, o->program);
	r = find_settings(a, INPUTS_MANAGED_DIR, "settings", &in->managed_file, e);
	if (r < 0)
		return r;
	if (o->machine_only)
		return 0;
	if (only)
		return inputs_caller_path(a, only, &in->only_file, e);
	r = find_settings(a, config, "settings", &in->user_file, e);
	if (r < 0)
		return r;
	in->grant_file = in->user_file ? in->user_file : path_join(a, config, "settings.json");
	in->view->look(in->view, a, in->cwd, &cwd);
	in->view->look(in->view, a, in->home, &home);
	claude->cwd = cwd.real;
	span = inputs_project_span(a, cwd.real, home.real);
	claude->top = span.top;
	r = inputs_project_files(a, cwd.real, span, &in->project_file, &in->outer_files,
				 &in->n_outer_files, e);
	if (r < 0 || !in->project_file)
		return r;
	return trust_read(a, inputs_trust_store(a, environ_in, in->home), &in->trusted, e);
}

/* The first of the variables that is set. */
static struct inputs_text first_of(char *const *environ_in, const char *a, const char *b)
{
	const char *text = inputs_variable(environ_in, a);

	return text ? (struct inputs_text){ text, a }
		    : (struct inputs_text){ inputs_variable(environ_in, b), b };
}

static void gather_proxies(char *const *environ_in, struct policy_inputs *in)
{
	in->parent_http = first_of(environ_in, "http_proxy", "HTTP_PROXY");
	in->parent_https = first_of(environ_in, "https_proxy", "HTTPS_PROXY");
	in->parent_no_proxy = first_of(environ_in, "no_proxy", "NO_PROXY");
}

int inputs_gather(struct arena *a, const struct inputs_request *o, char *const *environ_in,
		  struct policy_inputs *ret, struct error *e)
{
	struct policy_inputs in = { .view = &path_host_view,
				    .environ_in = environ_in,
				    .account_home = account_home,
				    .live_network = o->live_network };
	int r = gather_cwd(a, o, environ_in, &in, e);

	gather_proxies(environ_in, &in);
	if (r == 0)
		r = find_home(a, environ_in, &in.home, e);
	if (r == 0)
		r = gather_files(a, o, environ_in, &in, e);
	if (r == 0 && !o->machine_only)
		r = gather_settings(a, o, environ_in, &in, e);
	if (r == 0)
		*ret = in;
	return r;
}
