/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the plan's mounts to bwrap's arguments. bwrap takes them in order, each source from the
 * host's tree as it was, each place in the tree as it is by then, which is how the plan means
 * them. All its mounts are nosuid and nodev but those of devices.
 *
 * What bwrap has no word for is said with what it has:
 *   a file that cannot be opened   /dev/null, mounted nodev: the device cannot be opened
 *   an unwritable directory        a tmpfs, made read-only when everything in it is mounted
 *   /dev                           piece by piece: with --dev the command would get a second
 *                                  user namespace, in which ambit-init and the broker have
 *                                  no rights over the mounts; ambit-init adds /dev/pts
 */
#include <errno.h>
#include <string.h>

#include "sandbox/bwrap/bwrap.h"
#include "sandbox/native/native.h"
#include "sandbox/plan_points.h"

static void put(struct compiler *c, const char *word)
{
	*ARENA_PUSH(c->a, c->plan->bwrap, c->plan->n_bwrap) = word;
}

static void put_option(struct compiler *c, const char *option, const char *one, const char *two)
{
	put(c, option);
	if (one)
		put(c, one);
	if (two)
		put(c, two);
}

static void put_mode(struct compiler *c, unsigned mode)
{
	put_option(c, "--perms", arena_printf(c->a, "%04o", mode), NULL);
}

static void compile_namespaces(struct compiler *c)
{
	static const char *const always[] = {
		"--unshare-user",       "--unshare-pid", "--unshare-ipc",     "--unshare-uts",
		"--unshare-cgroup-try", "--as-pid-1",    "--die-with-parent",
	};
	/* ambit-init gives them up before the command is started */
	static const char *const capabilities[] = { "CAP_SYS_ADMIN", "CAP_NET_ADMIN",
						    "CAP_NET_BIND_SERVICE", "CAP_SETPCAP" };

	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		put(c, always[i]);
	if (c->plan->new_net)
		put(c, "--unshare-net");
	put_option(c, "--cap-drop", "ALL", NULL);
	for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
		put_option(c, "--cap-add", capabilities[i], NULL);
}

/* Each of them: together they may take more, until a look at them all ends the run. */
static void put_size(struct compiler *c)
{
	if (c->plan->scratch_size)
		put_option(c, "--size",
			   arena_printf(c->a, "%llu", (unsigned long long)c->plan->scratch_size),
			   NULL);
}

static void compile_dev(struct compiler *c, const char *path)
{
	static const char *const links[][2] = {
		{ "/proc/self/fd", "/dev/fd" },       { "/proc/self/fd/0", "/dev/stdin" },
		{ "/proc/self/fd/1", "/dev/stdout" }, { "/proc/self/fd/2", "/dev/stderr" },
		{ "pts/ptmx", "/dev/ptmx" },
	};

	put_mode(c, 0755);
	put_size(c);
	put_option(c, "--tmpfs", path, NULL);
	for (size_t i = 0; i < NATIVE_DEVICES; i++)
		put_option(c, "--dev-bind-try", native_devices[i], native_devices[i]);
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		put_option(c, "--symlink", links[i][0], links[i][1]);
	if (c->plan->tty)
		put_option(c, "--dev-bind", c->plan->tty, "/dev/console");
	put_option(c, "--dir", "/dev/pts", NULL);
	put_mode(c, 01777);
	put_option(c, "--dir", "/dev/shm", NULL);
}

static void compile_proc(struct compiler *c, const char *path)
{
	const char *secret;

	/* the one that is there comes with the tree, read-only */
	if (c->plan->outer_proc)
		return;
	put_option(c, "--proc", path, NULL);
	/* ambit-init looks whether one was left out that is there inside */
	for (size_t i = 0; (secret = native_proc_secret(c->plan, i)); i++) {
		if (c->view->kind(c->view, secret) != FILE_ABSENT)
			put_option(c, "--ro-bind", "/dev/null", secret);
	}
	put_option(c, "--remount-ro", path, NULL);
}

static int compile_text(struct compiler *c, const struct mount_step *m, unsigned *texts)
{
	if (*texts == BWRAP_TEXTS_MAX)
		return error_set(c->e, E2BIG, "the bwrap backend can show %d files of text at most",
				 BWRAP_TEXTS_MAX);
	put_mode(c, 0444);
	put_option(c, "--ro-bind-data", arena_printf(c->a, "%u", BWRAP_FD_TEXT + (*texts)++),
		   m->path);
	return 0;
}

static void compile_private(struct compiler *c, const struct mount_step *m)
{
	put_mode(c, m->mode);
	put_size(c);
	put_option(c, "--tmpfs", m->path, NULL);
}

/* Not made writable by a writable tree: whoever wants that has to say so. */
static bool is_kernels(const char *path)
{
	return path_within(path, "/sys") || path_within(path, "/proc");
}

static int compile_step(struct compiler *c, const struct mount_step *m, unsigned *texts)
{
	switch (m->kind) {
	case MOUNT_RW:
		put_option(c, "--bind", m->path, m->path);
		return 0;
	case MOUNT_PIN:
		put_option(c, is_kernels(m->path) ? "--ro-bind" : "--bind", m->path, m->path);
		return 0;
	case MOUNT_RO:
		put_option(c, "--ro-bind", m->path, m->path);
		return 0;
	case MOUNT_HIDE_DIR:
		put_mode(c, 0555);
		put_option(c, "--tmpfs", m->path, NULL);
		return 0;
	case MOUNT_HIDE_FILE:
		put_option(c, "--ro-bind", "/dev/null", m->path);
		return 0;
	case MOUNT_PRIVATE:
		compile_private(c, m);
		return 0;
	case MOUNT_FOLDER:
		put_mode(c, m->mode);
		put_option(c, "--dir", m->path, NULL);
		return 0;
	case MOUNT_TEXT:
		return compile_text(c, m, texts);
	case MOUNT_DEV:
		compile_dev(c, m->path);
		return 0;
	case MOUNT_PROC:
		compile_proc(c, m->path);
		return 0;
	case MOUNT_KIND_MAX_:
		break;
	}
	return error_set(c->e, EINVAL, "unknown step at %s", m->path);
}

int bwrap_compile(struct compiler *c)
{
	const struct plan *plan = c->plan;
	unsigned texts = 0;
	int r = 0;

	compile_namespaces(c);
	put_option(c, plan->root_writable ? "--bind" : "--ro-bind", "/", "/");
	if (plan->root_writable) {
		put_option(c, "--ro-bind-try", "/sys", "/sys");
		put_option(c, "--ro-bind-try", "/proc", "/proc");
	}
	for (size_t i = 0; i < plan->n_mounts && r == 0; i++)
		r = compile_step(c, &plan->mounts[i], &texts);
	for (size_t i = 0; i < plan->n_mounts && r == 0; i++) {
		if (plan->mounts[i].kind == MOUNT_HIDE_DIR)
			put_option(c, "--remount-ro", plan->mounts[i].path, NULL);
	}
	put_option(c, "--chdir", "/", NULL);
	if (r == 0 && plan->n_bwrap > BWRAP_WORDS_MAX)
		return error_set(c->e, E2BIG,
				 "this policy needs %zu words for bwrap, which takes %d: use fewer "
				 "rules, or the native backend",
				 plan->n_bwrap, BWRAP_WORDS_MAX);
	return r;
}
