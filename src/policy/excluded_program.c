/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program behind an excluded command, and what it finds by itself. A command inside the
 * sandbox may write to the project, perhaps to ~/.local/bin: a `docker` that it leaves there
 * must not be what runs outside, nor the `node` that `#!/usr/bin/env node` finds, nor the script
 * in `sh ./deploy.sh`. So every name on the way from / to the file, through every symbolic link,
 * is asked about: could it be changed from inside?
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "policy/build.h"
#include "policy/excluded.h"
#include "policy/match_path.h"

#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"
#define LINKS_MAX 40 /* as the kernel's */

/* What is private to the sandbox is not the host's file of that name. */
static bool can_be_changed(const struct policy *p, const char *path)
{
	struct ruling r;

	decide_by_rules(p, p->fs.rules.n, ACCESS_WRITE, path, &r);
	return r.verdict == VERDICT_ALLOW && !protect_match(p, r.depth, path);
}

/*
 * Goes from name to name, each in its canonical directory. Directories in a writable place
 * need no question of their own: what lies in them is writable by the same rule, unless a
 * rule protects exactly that, and then the broker keeps those above in their place.
 * NULL: nothing can be changed, and *ret_real is where it leads.
 */
static const char *changeable_part(const struct policy *p, struct arena *a, const char *path,
				   const char **ret_real)
{
	const char *done = "/", *rest = path;
	unsigned links = 0;

	while (*(rest += strspn(rest, "/"))) {
		size_t n = strcspn(rest, "/");
		const char *here = path_absolute(a, done, arena_strndup(a, rest, n));
		char target[PATH_MAX];
		ssize_t len = readlink(here, target, sizeof(target) - 1);

		rest += n;
		if (len < 0) {
			done = here;
			continue;
		}
		if (can_be_changed(p, here) || ++links > LINKS_MAX)
			return here;
		target[len] = '\0';
		rest = path_join(a, target, rest);
		if (target[0] == '/')
			done = "/";
	}
	*ret_real = done;
	return can_be_changed(p, done) ? done : NULL;
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* A relative directory in PATH would be another one in every project. */
static const char *search_path(struct arena *a, const char *name, const char *path)
{
	while (*path) {
		size_t n = strcspn(path, ":");
		const char *file = arena_printf(a, "%.*s/%s", (int)n, path, name);

		if (path[0] == '/' && is_program(file))
			return file;
		path += n + (path[n] == ':');
	}
	return NULL;
}

static const char *from_cwd(const struct policy *p, struct arena *a, const char *name)
{
	return name[0] == '/' ? name : path_join(a, p->cwd, name);
}

static const char *changed_from_inside(struct arena *a, const char *path)
{
	return arena_printf(
		a, "an excluded command, but %s could be changed from inside the sandbox", path);
}

/* Runs the file that its arguments name: python3.11 is python. */
static bool is_interpreter(const char *word)
{
	static const char *const names[] = { "python", "perl", "ruby",  "node",  "nodejs",
					     "php",    "lua",  "deno",  "bun",   "awk",
					     "gawk",   "mawk", "tclsh", "expect" };
	const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i]);

		if (strncmp(name, names[i], n) == 0 &&
		    strspn(name + n, "0123456789.") == strlen(name + n))
			return true;
	}
	return false;
}

const char *excluded_program(const struct policy *p, struct arena *a, const char *name,
			     const char *path, const char **ret_reason)
{
	const char *file, *changeable, *real;

	if (strchr(name, '/'))
		file = from_cwd(p, a, name);
	else
		file = search_path(a, name, path ? path : PATH_DEFAULT);
	if (!file || !is_program(file)) {
		*ret_reason = arena_printf(a, "no program %s is found", name);
		return NULL;
	}
	changeable = changeable_part(p, a, file, &real);
	if (changeable) {
		*ret_reason = changed_from_inside(a, changeable);
		return NULL;
	}
	*ret_reason = "an excluded command";
	return file;
}

const char *excluded_script(const struct policy *p, struct arena *a, char *const *argv)
{
	const char *real;

	if (!command_is_runner(argv[0]) && !is_interpreter(argv[0]))
		return NULL;
	for (char *const *arg = argv + 1; *arg; arg++) {
		const char *file = from_cwd(p, a, *arg);
		struct stat st;

		if (stat(file, &st) == 0 && S_ISREG(st.st_mode) &&
		    changeable_part(p, a, file, &real))
			return changed_from_inside(a, file);
	}
	return NULL;
}

/*
 * Environment.
 */

/* Lists of places where programs look for code. */
static const char *const places[] = {
	"PATH",          "LD_LIBRARY_PATH", "LD_PRELOAD",
	"LD_AUDIT",      "GCONV_PATH",      "BASH_ENV",
	"ENV",           "ZDOTDIR",         "PERL5LIB",
	"RUBYLIB",       "PYTHONPATH",      "PYTHONHOME",
	"PYTHONSTARTUP", "NODE_PATH",       "GIT_EXEC_PATH",
	"DOCKER_CONFIG", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF",
};

/* May something be written below this directory? */
static bool holds_writable(const struct policy *p, const char *dir)
{
	for (size_t i = 0; i < p->fs.rules.n; i++) {
		const struct path_rule *r = &p->fs.rules.v[i];

		if (r->access == ACCESS_WRITE && r->verdict == VERDICT_ALLOW &&
		    (r->glob ? pattern_may_match_below(r->real, dir) : path_within(r->real, dir)))
			return true;
	}
	return false;
}

static bool is_fixed_place(const struct policy *p, struct arena *a, const char *path)
{
	const char *real;

	return path[0] == '/' && !changeable_part(p, a, path, &real) && !holds_writable(p, real);
}

/* NAME=a:b without the entries that could be changed from inside; NULL: none is left. */
static char *fixed_places(const struct policy *p, struct arena *a, const char *entry, size_t name)
{
	const char *separators = text_starts(entry, "LD_") ? ": " : ":";
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	const char *s = entry + name + 1;
	bool any = false;

	buf_append(&out, entry, name + 1);
	while (*s) {
		size_t n = strcspn(s, separators);
		const char *place = arena_strndup(a, s, n);

		if (is_fixed_place(p, a, place)) {
			buf_puts(&out, any ? ":" : "");
			buf_puts(&out, place);
			any = true;
		}
		s += n + (s[n] != '\0');
	}
	return any && !out.overflow ? arena_strdup(a, buf_str(&out)) : NULL;
}

static bool is_list_of_places(const char *entry, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		if (strlen(places[i]) == len && memcmp(places[i], entry, len) == 0)
			return true;
	}
	return false;
}

char **excluded_environment(const struct policy *p, struct arena *a, char *const *env)
{
	char **out = NULL, *entry;
	size_t n = 0;

	for (; *env; env++) {
		size_t len = strcspn(*env, "=");

		entry = *env;
		if (entry[len] && is_list_of_places(entry, len))
			entry = fixed_places(p, a, entry, len);
		if (!entry && len == strlen("PATH") && memcmp(*env, "PATH", len) == 0)
			entry = arena_strdup(a, "PATH=" PATH_DEFAULT);
		if (entry)
			*ARENA_PUSH(a, out, n) = entry;
	}
	*ARENA_PUSH(a, out, n) = NULL;
	return out;
}
