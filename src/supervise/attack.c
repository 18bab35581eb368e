/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two runs of the same attempts, and what to make of them.
 *
 *   attack_run ─┬─ fork ── control: fork, exec ────── probes (this program)
 *               └─ fork ── run_command() ── sandbox ─ probes
 *
 * The probes answer on a memory file, not a pipe: a process that survives
 * could hold a pipe open for ever. Both runs happen in a child with a session of
 * its own, so the terminal, the keyring and the descriptors of the caller stay
 * out of it. What would end us is held back until everything is cleaned up.
 */
#include "supervise/attack.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "policy/policy.h"
#include "supervise/attack_world.h"
#include "supervise/run.h"

#define PROBE_FD_MIN 9 /* for the inherited descriptor: above what shells use */
#define ANSWERS_MAX ((size_t)1 << 16)
#define TIME_LIMIT "20s"
#define REMOVE_FDS 16 /* directories open at a time */

/* --- judging --- */

void attack_list(struct arena *a, struct attack_results *ret)
{
	ret->n = attack_attempts_count;
	ret->v = arena_array(a, ret->n, sizeof(*ret->v));
	for (size_t i = 0; i < ret->n; i++) {
		ret->v[i].name = attack_attempts[i].name;
		ret->v[i].what = attack_attempts[i].what;
		ret->v[i].outcome = ATTACK_UNCLEAR;
	}
}

/* The fields of the first line that starts with `name`, else NULL. */
static const char *find_line(const char *lines, const char *name)
{
	size_t n = strlen(name);

	while (*lines) {
		size_t len = strcspn(lines, "\n");

		/* a line that was cut short is no answer */
		if (lines[len] && strncmp(lines, name, n) == 0 && lines[n] == '\t')
			return lines + n + 1;
		lines += len + (lines[len] == '\n');
	}
	return NULL;
}

void attack_read_answer(struct arena *a, const char *lines, const char *name,
			struct attack_answer *ret)
{
	static const struct {
		const char *word;
		enum attack_said said;
	} words[] = { { "worked\t", ATTACK_SAID_WORKED }, { "failed\t", ATTACK_SAID_FAILED } };
	const char *rest = find_line(lines, name);

	*ret = (struct attack_answer){ .said = ATTACK_SAID_NOTHING };
	for (size_t i = 0; rest && i < ARRAY_LEN(words); i++) {
		if (!text_starts(rest, words[i].word))
			continue;
		rest += strlen(words[i].word);
		ret->said = words[i].said;
		ret->detail = arena_strndup(a, rest, strcspn(rest, "\n"));
		return;
	}
}

static bool succeeded(const struct attack_answer *x)
{
	return x->canary == ATTACK_NO_CANARY ? x->said == ATTACK_SAID_WORKED
					     : x->canary == ATTACK_TOUCHED;
}

enum attack_outcome attack_judge(const struct attack_answer *control,
				 const struct attack_answer *inside)
{
	if (succeeded(inside))
		return ATTACK_ESCAPED;
	if (control->said == ATTACK_SAID_NOTHING || inside->said == ATTACK_SAID_NOTHING)
		return ATTACK_UNCLEAR;
	return succeeded(control) ? ATTACK_HELD : ATTACK_NOT_HERE;
}

/* --- the two runs --- */

typedef int start_fn(struct arena *a, const struct attack_world *w, char *const *argv,
		     struct error *e);

static int start_control(struct arena *a, const struct attack_world *w, char *const *argv,
			 struct error *e)
{
	int status = 0;
	pid_t pid;

	/* some kernels let only a parent trace; inside, our place is taken by init */
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chdir(path_join(a, w->dir, ATTACK_PROJECT)) == 0)
			(void)execv(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return error_set(e, errno, "cannot start the attempts: %s", strerror(errno));
	if (status != 0)
		return error_set(e, ECHILD, "%s: the attempts could not be made here", argv[0]);
	return 0;
}

/* The defaults, for the person and the project of the world: nobody's settings count. */
static int start_inside(struct arena *a, const struct attack_world *w, char *const *argv,
			struct error *e)
{
	static const struct setting_text limit = { "limits.timeout", TIME_LIMIT, "check --attack",
						   LAYER_OPTION };
	struct policy_inputs in = { .cwd = path_join(a, w->dir, ATTACK_PROJECT),
				    .home = path_join(a, w->dir, ATTACK_HOME),
				    .settings = &limit,
				    .n_settings = 1,
				    .view = &path_host_view };
	char *env[] = { arena_printf(a, "HOME=%s", in.home), arena_strdup(a, "PATH=/usr/bin:/bin"),
			NULL };
	struct report report = { .a = a };
	struct run_request req = { .argv = argv, .environ_in = env, .report = &report };
	struct run_result result = { 0 };
	int r = policy_load(a, &in, &req.policy, e);

	return r < 0 ? r : run_command(&req, &result, e);
}

/* argv for attack_probes(); the descriptor is the one thing that the command inherits. */
static char *const *probe_words(struct arena *a, const struct attack_world *w)
{
	char **argv = arena_array(a, 8, sizeof(*argv));
	int secret = open(path_join(a, w->dir, ATTACK_SECRET), O_RDONLY | O_CLOEXEC);
	int fd = secret < 0 ? -1 : fcntl(secret, F_DUPFD, PROBE_FD_MIN);

	argv[0] = path_join(a, w->dir, ATTACK_PROGRAM);
	argv[1] = arena_strdup(a, ATTACK_PROBES_WORD);
	argv[2] = arena_strdup(a, w->dir);
	argv[3] = arena_strdup(a, w->token);
	argv[4] = arena_printf(a, "%u", w->port);
	argv[5] = arena_printf(a, "%d", w->victim);
	argv[6] = arena_printf(a, "%d", fd);
	return argv;
}

static void child(const struct attack_world *w, start_fn *start, int answers, int errors)
{
	struct arena *a = arena_new();
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct error e = { 0 };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setsid();
	if (sys_join_session_keyring() >= 0)
		(void)syscall(SYS_add_key, "user", ATTACK_KEY, w->token, strlen(w->token),
			      KEY_SPEC_SESSION_KEYRING);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(answers, STDOUT_FILENO) < 0)
		(void)error_set(&e, errno, "cannot prepare the attempts: %s", strerror(errno));
	else if (start(a, w, probe_words(a, w), &e) == 0)
		e.code = 0;
	(void)!write(errors, &e, sizeof(e));
	_exit(0);
}

/* Runs the probes in the world; what they wrote comes back. */
static int run_probes(struct arena *a, const struct attack_world *w, start_fn *start,
		      const char **ret, struct error *e)
{
	_cleanup_fd_ int answers = memfd_create("ambit-attack", MFD_CLOEXEC), in = -1, out = -1;
	int errors[2];
	char *text;
	ssize_t n;
	pid_t pid;

	if (answers < 0 || pipe2(errors, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_set(e, errno, "cannot prepare the attempts: %s", strerror(errno));
	in = errors[0];
	out = errors[1];
	pid = fork();
	if (pid == 0)
		child(w, start, answers, out);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		return error_set(e, errno, "cannot start the attempts: %s", strerror(errno));
	if (read(in, e, sizeof(*e)) != sizeof(*e))
		return error_set(e, ECHILD, "the attempts were ended from outside");
	e->exit_code = 0; /* 126 and 127 are for what people run */
	if (e->code)
		return -e->code;
	text = arena_alloc(a, ANSWERS_MAX + 1);
	n = pread(answers, text, ANSWERS_MAX, 0);
	if (n < 0)
		return error_set(e, errno, "cannot read the answers: %s", strerror(errno));
	*ret = text;
	return 0;
}

/* One run in a new world: an answer per attempt. */
static int trial(struct arena *a, const char *dir, const char *program, start_fn *start,
		 struct attack_answer *ret, struct error *e)
{
	struct attack_world w = ATTACK_WORLD_INIT;
	const char *lines = "";
	int r = attack_world_make(a, dir, program, &w, e);

	if (r == 0)
		r = run_probes(a, &w, start, &lines, e);
	for (size_t i = 0; i < attack_attempts_count && r == 0; i++) {
		attack_read_answer(a, lines, attack_attempts[i].name, &ret[i]);
		ret[i].canary = attack_world_look(a, &w, &attack_attempts[i], ret[i].detail);
	}
	attack_world_end(&w);
	return r;
}

static int attack_in(struct arena *a, const char *dir, const char *program,
		     struct attack_results *ret, struct error *e)
{
	struct attack_answer *control = arena_array(a, attack_attempts_count, sizeof(*control));
	struct attack_answer *inside = arena_array(a, attack_attempts_count, sizeof(*inside));
	int r = trial(a, path_join(a, dir, "control"), program, start_control, control, e);

	if (r == 0)
		r = trial(a, path_join(a, dir, "inside"), program, start_inside, inside, e);
	if (r < 0)
		return r;
	attack_list(a, ret);
	for (size_t i = 0; i < ret->n; i++) {
		ret->v[i].control = control[i];
		ret->v[i].inside = inside[i];
		ret->v[i].outcome = attack_judge(&control[i], &inside[i]);
	}
	return 0;
}

/* --- the place --- */

/* Canonical, ours alone, and programs may run there. */
static char *make_place(struct arena *a, const char *const *places)
{
	for (; *places; places++) {
		_cleanup_free_ char *real = realpath(*places, NULL);
		struct statvfs fs;
		char *dir;

		if (!real || statvfs(real, &fs) < 0 || (fs.f_flag & ST_NOEXEC))
			continue;
		dir = path_join(a, real, ".ambit-attack.XXXXXX");
		if (mkdtemp(dir))
			return dir;
	}
	return NULL;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path) < 0 ? -1 : 0;
}

/* What ends us waits, and who loses his parents (a surviving daemon) becomes our child. */
struct hold {
	sigset_t mask;
	int reaper;
};

static void hold_on(struct hold *ret)
{
	static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGXFSZ };
	sigset_t held;

	(void)sigemptyset(&held);
	for (size_t i = 0; i < ARRAY_LEN(ending); i++)
		(void)sigaddset(&held, ending[i]);
	(void)sigprocmask(SIG_BLOCK, &held, &ret->mask);
	ret->reaper = 0;
	(void)prctl(PR_GET_CHILD_SUBREAPER, &ret->reaper, 0, 0, 0);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

static void let_go(const struct hold *h)
{
	(void)prctl(PR_SET_CHILD_SUBREAPER, h->reaper, 0, 0, 0);
	(void)sigprocmask(SIG_SETMASK, &h->mask, NULL);
}

int attack_run(struct arena *a, const struct attack_request *req, struct attack_results *ret,
	       struct error *e)
{
	struct hold hold;
	char *dir;
	int r;

	hold_on(&hold);
	dir = make_place(a, req->places);
	if (!dir)
		r = error_set(e, ENOENT, "no directory was found to make programs and run them in");
	else
		r = attack_in(a, dir, req->program, ret, e);
	if (dir && nftw(dir, remove_one, REMOVE_FDS, FTW_DEPTH | FTW_PHYS) < 0 && r == 0)
		r = error_set(e, errno, "%s: cannot be removed: %s", dir, strerror(errno));
	let_go(&hold);
	return r;
}
