/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libambit: run commands in the ambit sandbox from a program.
 *
 *	struct ambit_config *c = ambit_config_new();
 *	struct ambit_process *p;
 *	struct ambit_error e;
 *
 *	ambit_config_directory(c, "/home/me/project");
 *	ambit_config_allow_domain(c, "github.com");
 *	if (ambit_spawn(c, &(struct ambit_spawn){ AMBIT_SPAWN_INIT, .shell = "make test" }, &p, &e))
 *		errx(1, "%s", e.text);
 *	ambit_process_wait(p, -1, &result, &e);
 *	ambit_process_free(p);
 *	ambit_config_free(c);
 *
 * What holds everywhere:
 *  - Functions that can fail return 0 or -errno and fill in *e (which may be NULL).
 *  - Nothing is printed, nothing exits, there is no global state and no signal handler. A
 *    config that is not being changed may be used by any number of threads; a process belongs
 *    to one thread at a time.
 *  - The sandbox is supervised by a process of its own, `ambit run`, found beside this
 *    library: threads, signals and memory of the caller do not matter to it. When the caller
 *    dies, the sandbox dies.
 *  - Structures that callers fill in begin with their size, so that later versions can add
 *    members: use the _INIT macros.
 *
 * The settings, their layers and defaults are those of ambit(1), see ambit-settings(5).
 */
#ifndef AMBIT_H
#define AMBIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AMBIT_API __attribute__((visibility("default")))

struct ambit_error {
	int code; /* an errno */
	int exit_code; /* what `ambit run` would have exited with: 125, 126, 127 */
	char text[1000];
};

AMBIT_API const char *ambit_version(void);

/* --- what this machine can do -------------------------------------------------- */

/* Was this library built for a system that ambit has a sandbox for? */
AMBIT_API bool ambit_is_supported(void);
/* Can a sandbox be had here and now? If not, e says why and what mends it. Tries it (a few ms). */
AMBIT_API bool ambit_is_available(struct ambit_error *e);

/* --- configuration ------------------------------------------------------------- */

struct ambit_config;

AMBIT_API struct ambit_config *ambit_config_new(void);
AMBIT_API void ambit_config_free(struct ambit_config *c);

/*
 * Any setting by its dotted name ("filesystem.allowWrite"); a list gets one entry more.
 * -EINVAL for an unknown name. Values are checked by ambit_config_check() and by the
 * functions that use the config.
 */
AMBIT_API int ambit_config_set(struct ambit_config *c, const char *key, const char *value);
/* The same by their own names. */
AMBIT_API int ambit_config_allow_read(struct ambit_config *c, const char *path);
AMBIT_API int ambit_config_deny_read(struct ambit_config *c, const char *path);
AMBIT_API int ambit_config_allow_write(struct ambit_config *c, const char *path);
AMBIT_API int ambit_config_deny_write(struct ambit_config *c, const char *path);
/* Neither to be read nor written: a path or a pattern such as "**" "/.env". */
AMBIT_API int ambit_config_deny(struct ambit_config *c, const char *pattern);
AMBIT_API int ambit_config_network(struct ambit_config *c, const char *mode);
AMBIT_API int ambit_config_allow_domain(struct ambit_config *c, const char *domain);
AMBIT_API int ambit_config_deny_domain(struct ambit_config *c, const char *domain);
/* Ports of proxies on this machine to use instead of ambit's own; 0 = ambit's. */
AMBIT_API int ambit_config_proxy_ports(struct ambit_config *c, unsigned http, unsigned socks);
AMBIT_API int ambit_config_exclude_command(struct ambit_config *c, const char *command);
/* "memory", "cpu", "pids", "disk", "output", "timeout" */
AMBIT_API int ambit_config_limit(struct ambit_config *c, const char *name, const char *value);

/* Where commands run and what relative paths mean; default: the caller's directory. */
AMBIT_API int ambit_config_directory(struct ambit_config *c, const char *directory);
/* A settings file instead of the user's and the project's. */
AMBIT_API int ambit_config_file(struct ambit_config *c, const char *path);
/* The ambit program, where it is not beside this library. */
AMBIT_API int ambit_config_program(struct ambit_config *c, const char *path);

/* Is this a policy, and can it be enforced here? */
AMBIT_API int ambit_config_check(const struct ambit_config *c, struct ambit_error *e);

/* --- commands ------------------------------------------------------------------ */

/* One line for a POSIX shell that runs `command` (a shell command line) in the sandbox. */
AMBIT_API int ambit_wrap_command(const struct ambit_config *c, const char *command, char **ret,
				 struct ambit_error *e); /* free() it */
/* The variables that a command would see, NULL-terminated. env: NULL = the caller's. */
AMBIT_API int ambit_environment(const struct ambit_config *c, char *const *env, char ***ret,
				struct ambit_error *e);
AMBIT_API void ambit_environment_free(char **env);

/*
 * May an agent run this command line without asking its user? Only when the sandbox is
 * on and can be had, the command stays inside, and autoAllowBashIfSandboxed is set.
 */
AMBIT_API bool ambit_should_auto_allow_shell(const struct ambit_config *c, const char *command);
/*
 * May this command line leave the sandbox (excludedCommands)? Only a single simple command
 * can; see ambit-settings(5). e says why not.
 */
AMBIT_API bool ambit_can_bypass(const struct ambit_config *c, const char *command,
				struct ambit_error *e);

/* --- the calling process ------------------------------------------------------- */

/*
 * Confine the calling process itself, and all that it will start, for good, with what needs no
 * other process: Landlock and a system call filter; all capabilities are dropped. Only while it has
 * one thread (-EBUSY otherwise). What such a confinement cannot hold is an error (-ENOTSUP), and
 * nothing is done then: limits, allowed domains, ports, single unix sockets, a private home,
 * denyWrite inside a writable directory, names in protectNames, what `require` lists.
 *
 * What a full sandbox holds besides is in *ret_unenforced afterwards (one line each; may be NULL,
 * free() it): protected names in writable directories, modes and times of files, names of hidden
 * files, other processes. Descriptors that are open stay open. There is no /tmp, unless
 * filesystem.tmp is host or shared. Network none leaves pairs of unix sockets and nothing else.
 *
 * After any other error the process may be confined in part: it should end.
 */
AMBIT_API int ambit_apply(const struct ambit_config *c, char **ret_unenforced,
			  struct ambit_error *e);

/* --- processes ----------------------------------------------------------------- */

struct ambit_violation {
	const char *kind; /* "write", "read", "exec", "connect", "unix", "limit", ... */
	const char *target, *rule, *source, *reason, *process;
	const char *hint; /* the option that would allow it; "" = none */
	int64_t pid; /* inside */
	int64_t time_ms; /* since the epoch */
};

enum ambit_answer { AMBIT_DENY, AMBIT_ALLOW_ONCE, AMBIT_ALLOW_RUN };

struct ambit_spawn {
	size_t size;
	char *const *argv; /* either this, looked up on the command's PATH, */
	const char *shell; /* or a command line for bash -c (sh where there is no bash) */
	int stdin_fd, stdout_fd, stderr_fd; /* -1 = the caller's own; stay the caller's to close */
	const char *directory; /* instead of the config's; NULL = that */
	char *const *env; /* instead of the caller's variables; the rules apply to either */
	/*
	 * Called from ambit_process_wait() and ambit_process_dispatch(), by the thread that
	 * calls those: the first of each denial, as it happens. May be NULL.
	 */
	void (*violation)(void *ctx, const struct ambit_violation *v);
	/* A host name that no rule covers; the connection waits for the answer. May be NULL. */
	enum ambit_answer (*ask)(void *ctx, const char *host, unsigned port);
	/* A protected name that the command wants to write to; it waits. May be NULL. */
	enum ambit_answer (*ask_write)(void *ctx, const char *path, const char *reason);
	void *ctx;
};

#define AMBIT_SPAWN_INIT                                                                           \
	.size = sizeof(struct ambit_spawn), .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1

struct ambit_process;

struct ambit_result {
	size_t size;
	int exit_code; /* as `ambit run` would give it: 128+N after signal N, 124 time limit */
	int signal; /* the command died of it, or 0 */
	bool timed_out;
	bool started; /* false: nothing was run, exit_code is 125, 126 or 127 */
	uint64_t wall_ms, cpu_ms, max_rss; /* max_rss in bytes */
	uint64_t violations; /* how many different ones */
};

#define AMBIT_RESULT_INIT .size = sizeof(struct ambit_result)

/*
 * Start it. Policy errors that need no sandbox to be found come back from here; what
 * fails later comes with the result (started = false) and e of ambit_process_wait().
 */
AMBIT_API int ambit_spawn(const struct ambit_config *c, const struct ambit_spawn *s,
			  struct ambit_process **ret, struct ambit_error *e);
/*
 * Until it has ended and its callbacks were called; timeout_ms -1 = without end, 0 = just look.
 * -ETIMEDOUT when it still runs then. May be called again after the end.
 */
AMBIT_API int ambit_process_wait(struct ambit_process *p, int timeout_ms, struct ambit_result *ret,
				 struct ambit_error *e);
/* For event loops: readable when ambit_process_dispatch() has something to do; that never waits. */
AMBIT_API int ambit_process_fd(const struct ambit_process *p);
/* 1 = it has ended, 0 = it runs. */
AMBIT_API int ambit_process_dispatch(struct ambit_process *p);
/* SIGKILL ends everything inside at once; others go to the command. */
AMBIT_API int ambit_process_kill(struct ambit_process *p, int sig);
/* The supervisor. */
AMBIT_API pid_t ambit_process_pid(const struct ambit_process *p);
/* Ends it if it still runs. */
AMBIT_API void ambit_process_free(struct ambit_process *p);

#ifdef __cplusplus
}
#endif
#endif
