/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard: may this name, in this directory, be made or changed?
 *
 * It is asked with the parent directory as an open descriptor and the last
 * component as a string, and the broker then acts on exactly that pair. A
 * directory can only come to lie on a protected path by mkdir, rename, symlink
 * or link of a name, and those are asked here as well: so looking at the
 * parent's path is not a race.
 *
 * Two kinds of rules:
 *   names   patterns of the policy (.bashrc, .vscode, .claude/settings.json),
 *           at any depth below a writable directory, and the paths that links with such
 *           names, and git's configuration, led to at the start, there or not (struct held_path)
 *   git     a directory is a git directory by its content (`objects` and `refs`
 *           in it), whatever it is called: its configuration, hooks and
 *           commondir are guarded there, and it holds no links from inside
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/policy.h"
#include "sandbox/plan.h"

enum guard_op {
	GUARD_WRITE, /* open for writing, or truncate; creates when `creates` */
	GUARD_MAKE_DIR,
	GUARD_MAKE_OTHER, /* symlink, node, socket, link target */
	GUARD_RENAME_TO,
	GUARD_RENAME_FROM, /* also the source of a link */
};

/* How an allowed operation is to be carried out. */
enum guard_way {
	GUARD_PLAIN,
	GUARD_CONFIG, /* rename onto a git configuration: checked and installed as our own copy;
		       * `protected` may be set: .gitmodules */
	GUARD_COMMONDIR, /* a new worktree's commondir: we write it ourselves */
	GUARD_BIRTH, /* this mkdir makes the parent a git directory: check it first */
};

struct guard_question {
	int parent; /* O_PATH descriptor of the directory */
	const char *path; /* its path inside the sandbox, canonical */
	const char *name; /* last component */
	const char *root; /* the guarded writable directory it lies in */
	enum guard_op op;
	/* RENAME_TO, MAKE_OTHER: what comes is a directory, or a symlink that may stand for one */
	bool directory;
	bool creates; /* GUARD_WRITE with O_CREAT */
};

struct guard_answer {
	bool allowed;
	enum guard_way way;
	const char *reason; /* when denied */
	const struct protected_name *protected; /* the pattern, if one decided */
	const struct path_rule *rule; /* the denyWrite rule, if one decided */
	bool git_config; /* it is about a git configuration */
	const struct protected_name
		*git_name; /* of git's own, by content: lifting it would allow */
	const struct protected_name *new_territory; /* allowed only because its directory is new */
};

struct guard;

struct guard *guard_new(struct arena *a, const struct policy *p, const struct plan *plan);
void guard_ask(struct guard *g, const struct guard_question *q, struct guard_answer *ret);

/* By the text of a path alone: may it be protected, so that it is worth asking? */
bool guard_may_protect(const struct guard *g, const char *path);

/*
 * By the text alone: may the answer depend on what the directory holds? Then whoever asks keeps
 * all others from changing it until the call is done.
 */
bool guard_looks_around(const char *path, const char *name);

/*
 * New territory: directories made in this run, where none was before. Below one, names of editors,
 * shells and agents are allowed (a clone may hold a tracked .vscode); they are listed at
 * the end of the run.
 */
void guard_note_directory(struct guard *g, int dirfd, const char *name);
/*
 * A directory that was there before was removed or moved away: another one in its place is
 * not new territory. `all`: nor is anything below it, of which nobody knows what it held.
 */
void guard_note_gone(struct guard *g, const char *path, bool all);
bool guard_was_there(const struct guard *g, const char *path);
/* The same, but not where so many went that nobody knows. */
bool guard_surely_was_there(const struct guard *g, const char *path);
/* Was it (a directory, a socket) made in this run, through us? name "": the open file itself. */
bool guard_made_here(const struct guard *g, int dirfd, const char *name);
/* The protected name that covers a path in the guarded `root`, or NULL; git's own are not asked. */
const struct protected_name *guard_name_of(const struct guard *g, const char *path,
					   const char *root);
/*
 * Does the directory parent/name hold protected names that came there in this run? They were
 * allowed where it is new, and are not at `path`. True when that cannot be found out. `meets_old`:
 * an old directory is there still.
 */
bool guard_is_tainted(const struct guard *g, int parent, const char *name, const char *path,
		      const char *root, bool meets_old);

/*
 * For GUARD_BIRTH: NULL when the directory may become a git directory, else why not. Its
 * configuration is not looked at here: it is checked and replaced in one go (gitinstall.c).
 */
const char *guard_check_birth(const struct guard *g, const struct guard_question *q);
/*
 * May this open directory get that name? Not .git, unless it is a git directory and has been
 * guarded as one: what is half of one would come to life with `git init` outside.
 */
bool guard_may_be_git_dir(int source, const char *name);
/*
 * Is the open directory a git directory, or, by the first `len` bytes of the path, only called so?
 * `git init` outside would bring a half of one to life. What cannot be looked at is one.
 */
bool guard_is_git_dir(int dirfd, const char *path, size_t len);
/*
 * Is the open directory at `path`, in the guarded `root`, a git directory, or does it lie in one?
 * in_doubt: the answer where it cannot be looked at.
 */
bool guard_in_git_dir(int dirfd, const char *path, const char *root, bool in_doubt);
/* Symbolic links do not get there; false where hooks may be written anyway. */
bool guard_checks_links(const struct guard *g);
bool guard_checks_config(const struct guard *g);
