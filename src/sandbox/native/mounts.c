/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carry out the mounts of a plan, inside the new user and mount namespace.
 *
 * Host objects are opened without following symlinks and compared with what the
 * plan judged (device and inode), then mounted by that fd: what was decided
 * about is what is mounted, however the host renames things meanwhile.
 *
 * 1. Trees that must stay writable, that a private directory will cover, and the device
 *    nodes are cloned before anything changes.
 * 2. The whole tree becomes private, read-only, nosuid, nodev with one call.
 *    nodev matters for a root caller: device nodes lying about on disk (in a
 *    chroot, say) must not open.
 * 3. One tmpfs ("scratch") is the source of every private and hidden
 *    directory. It is mounted below the new /dev and so out of sight at once.
 * 4. The steps are attached in order.
 *
 * Nothing is unmounted at the end: what is covered cannot be uncovered without
 * capabilities, and the namespaces go with the last process.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "sandbox/native/native.h"

#define SCRATCH_BLOCK 4096
/* What the sandbox's own directories, devices and texts need of a limited private file system. */
#define SCRATCH_OWN_BYTES ((uint64_t)1 << 20)
#define SCRATCH_OWN_FILES 1024

const char *const native_devices[NATIVE_DEVICES] = { "/dev/null",   "/dev/zero",    "/dev/full",
						     "/dev/random", "/dev/urandom", "/dev/tty" };

struct executor {
	const struct plan *plan;
	struct error *e;
	int *trees; /* per step: grabbed tree, or -1 */
	int devices[NATIVE_DEVICES];
	int tty;
	int scratch; /* a tmpfs, below everything we mount: nosuid, nodev */
	int sealed; /* the same, read-only and noexec */
};

#define ATTR_PLAIN (SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV)
#define ATTR_SEALED (ATTR_PLAIN | SYS_MOUNT_RDONLY | SYS_MOUNT_NOEXEC)

static int fail(struct executor *x, int r, const char *what, const char *path)
{
	return error_set(x->e, -r, "%s %s: %s", what, path, strerror(-r));
}

int native_open_exact(const char *path)
{
	return sys_openat2(AT_FDCWD, path, O_PATH | O_CLOEXEC | O_NOFOLLOW, 0,
			   SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
}

/* Clone the tree at m->path; refuses another object than the plan saw. */
static int grab(struct executor *x, const struct mount_step *m)
{
	_cleanup_fd_ int fd = native_open_exact(m->path);
	struct stat st;
	int tree;

	if (fd < 0)
		return fail(x, fd, "cannot open", m->path);
	if (fstat(fd, &st) < 0)
		return fail(x, -errno, "cannot look at", m->path);
	if (m->ino && (st.st_ino != m->ino || st.st_dev != m->dev))
		return error_set(x->e, ESTALE, "%s was replaced while the sandbox was being set up",
				 m->path);
	tree = sys_open_tree(fd, "", SYS_OPEN_TREE_CLONE | AT_EMPTY_PATH | SYS_AT_RECURSIVE);
	return tree < 0 ? fail(x, tree, "cannot clone the mounts of", m->path) : tree;
}

static int attach(struct executor *x, int tree, const char *path)
{
	_cleanup_fd_ int at = native_open_exact(path);
	int r = at < 0 ? at : sys_move_mount(tree, at);

	return r < 0 ? fail(x, r, "cannot mount on", path) : 0;
}

static int set_attributes(struct executor *x, int tree, uint64_t set, const char *path)
{
	/* private: what is mounted there later, outside, would come in as it is */
	int r = sys_mount_setattr(tree, "", AT_EMPTY_PATH | SYS_AT_RECURSIVE, set, 0, MS_PRIVATE);

	return r < 0 ? fail(x, r, "cannot restrict", path) : 0;
}

/* A clone of something in the scratch file system onto path; `view` gives it its attributes. */
static int attach_scratch(struct executor *x, int view, const char *name, const char *path)
{
	_cleanup_fd_ int tree = sys_open_tree(view, name, SYS_OPEN_TREE_CLONE);

	return tree < 0 ? fail(x, tree, "cannot clone for", path) : attach(x, tree, path);
}

static int step_host(struct executor *x, size_t i)
{
	const struct mount_step *m = &x->plan->mounts[i];
	_cleanup_fd_ int tree = x->trees[i] >= 0 ? TAKE_FD(x->trees[i]) : grab(x, m);
	uint64_t set = m->kind == MOUNT_RO ? ATTR_PLAIN | SYS_MOUNT_RDONLY : ATTR_PLAIN;
	int r;

	if (tree < 0)
		return tree;
	r = set_attributes(x, tree, set, m->path);
	return r < 0 ? r : attach(x, tree, m->path);
}

/* Name of a step's own directory in the scratch file system. */
struct scratch_name {
	char text[32];
};

static struct scratch_name scratch_name(size_t step)
{
	struct scratch_name n;

	(void)snprintf(n.text, sizeof(n.text), "%zu", step);
	return n;
}

static int make_scratch_dir(struct executor *x, const char *name, mode_t mode)
{
	if (mkdirat(x->scratch, name, mode) < 0)
		return fail(x, -errno, "cannot make a private directory for", name);
	return 0;
}

static int step_hide(struct executor *x, size_t i)
{
	const struct mount_step *m = &x->plan->mounts[i];
	bool holds = i + 1 < x->plan->n_mounts && path_within(x->plan->mounts[i + 1].path, m->path);
	struct scratch_name own = scratch_name(i);
	int r;

	if (!m->directory)
		return attach_scratch(x, x->sealed, "none", m->path);
	if (!holds)
		return attach_scratch(x, x->sealed, "empty", m->path);
	r = make_scratch_dir(x, own.text, 0555);
	return r < 0 ? r : attach_scratch(x, x->sealed, own.text, m->path);
}

static int step_private(struct executor *x, size_t i)
{
	const struct mount_step *m = &x->plan->mounts[i];
	struct scratch_name own = scratch_name(i);
	int r = make_scratch_dir(x, own.text, m->mode);

	return r < 0 ? r : attach_scratch(x, x->scratch, own.text, m->path);
}

static int step_text(struct executor *x, size_t i)
{
	const struct mount_step *m = &x->plan->mounts[i];
	struct scratch_name own = scratch_name(i);
	_cleanup_fd_ int fd =
		openat(x->scratch, own.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	int r = fd < 0 ? -errno : fd_write_all(fd, m->text, strlen(m->text));

	if (r < 0)
		return fail(x, r, "cannot write", m->path);
	return attach_scratch(x, x->sealed, own.text, m->path);
}

static int make_file(int dir, const char *name, mode_t mode)
{
	return mknodat(dir, name, S_IFREG | mode, 0) < 0 ? -errno : 0;
}

static int fill_dev(struct executor *x, int dev)
{
	static const char *const links[][2] = {
		{ "/proc/self/fd", "fd" },       { "/proc/self/fd/0", "stdin" },
		{ "/proc/self/fd/1", "stdout" }, { "/proc/self/fd/2", "stderr" },
		{ "pts/ptmx", "ptmx" },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(links) && r == 0; i++)
		r = symlinkat(links[i][0], dev, links[i][1]) < 0 ? -errno : 0;
	for (size_t i = 0; i < NATIVE_DEVICES && r == 0; i++)
		r = x->devices[i] < 0 ? 0 : make_file(dev, native_devices[i] + 5, 0644);
	if (r == 0 && x->tty >= 0)
		r = make_file(dev, "console", 0644);
	if (r == 0)
		r = mkdirat(dev, "pts", 0755) < 0 ? -errno : 0;
	if (r == 0)
		r = mkdirat(dev, "shm", 01777) < 0 ? -errno : 0;
	return r < 0 ? fail(x, r, "cannot fill", "/dev") : 0;
}

/* The command writes to devices; their modes and owners are the host's. /dev itself is ours. */
static int seal_devices(struct executor *x, const char *dev)
{
	int r = sys_mount_setattr(AT_FDCWD, dev, SYS_AT_RECURSIVE, SYS_MOUNT_RDONLY, 0, 0);

	if (r == 0)
		r = sys_mount_setattr(AT_FDCWD, dev, 0, 0, SYS_MOUNT_RDONLY, 0);
	return r < 0 ? fail(x, r, "cannot make read-only: devices in", dev) : 0;
}

static int step_dev(struct executor *x, size_t i)
{
	const char *path = x->plan->mounts[i].path;
	struct scratch_name own = scratch_name(i);
	_cleanup_fd_ int dev = -1;
	int r = make_scratch_dir(x, own.text, 0755);

	if (r < 0)
		return r;
	dev = openat(x->scratch, own.text, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dev < 0)
		return fail(x, -errno, "cannot open the new", path);
	r = fill_dev(x, dev);
	if (r == 0)
		r = attach_scratch(x, x->scratch, own.text, path);
	for (size_t d = 0; d < NATIVE_DEVICES && r == 0; d++)
		r = x->devices[d] < 0 ? 0 : attach(x, x->devices[d], native_devices[d]);
	if (r == 0 && x->tty >= 0)
		r = attach(x, x->tty, "/dev/console");
	if (r == 0)
		r = seal_devices(x, path);
	if (r == 0 && mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
			    "newinstance,ptmxmode=0666,mode=620") < 0)
		r = fail(x, -errno, "cannot mount", "/dev/pts");
	return r;
}

/*
 * The whole of /proc is read-only: a root caller could open kernel knobs there,
 * capabilities or not, because they are judged by the global user id. What programs
 * write to in their own directories (comm, oom_score_adj) is given up for that.
 */
static int step_proc(struct executor *x, size_t i)
{
	const char *path = x->plan->mounts[i].path, *secret;
	_cleanup_fd_ int none = -1;
	char from[32];

	/* the one that is there, with all that masks it, is read-only like the rest of the tree */
	if (x->plan->outer_proc)
		return 0;
	if (mount("proc", path, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL) < 0)
		return error_set(x->e, errno, "cannot mount a fresh /proc: %s%s", strerror(errno),
				 errno == EPERM ? " (parts of the host's /proc are masked, as in a "
						  "container): start the container with "
						  "--security-opt systempaths=unconfined, or set "
						  "enableWeakerNestedSandbox"
						: "");
	/* a file of its own: these mounts are not sealed, so its mode could be changed */
	if (make_file(x->scratch, "kernel", 0) < 0)
		return fail(x, -errno, "cannot fill the tmpfs on", "/dev");
	none = openat(x->scratch, "kernel", O_PATH | O_CLOEXEC);
	(void)snprintf(from, sizeof(from), "/proc/self/fd/%d", none);
	/* by path: only the kernel makes names in a fresh /proc */
	for (size_t k = 0; (secret = native_proc_secret(x->plan, k)); k++) {
		if (mount(from, secret, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
			return fail(x, -errno, "cannot hide", secret);
	}
	return 0;
}

/* The mount point of step i, made in the scratch directory of the step that covers it. */
static int make_point(struct executor *x, size_t i)
{
	const struct mount_step *m = &x->plan->mounts[i];
	char rest[PATH_MAX], *s;
	size_t cover = i, skip;
	_cleanup_fd_ int dir = -1;
	int r;

	do {
		cover--; /* compile() put the covering step before this one */
	} while (cover > 0 && (!path_within(m->path, x->plan->mounts[cover].path) ||
			       (x->plan->mounts[cover].kind != MOUNT_PRIVATE &&
				x->plan->mounts[cover].kind != MOUNT_DEV &&
				x->plan->mounts[cover].kind != MOUNT_HIDE_DIR)));
	if (!path_within(m->path, x->plan->mounts[cover].path))
		return fail(x, -ENOENT, "cannot make the mount point", m->path);
	dir = openat(x->scratch, scratch_name(cover).text, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fail(x, -errno, "cannot make the mount point", m->path);
	skip = strlen(x->plan->mounts[cover].path) + 1;
	if (strlen(m->path + skip) >= sizeof(rest))
		return fail(x, -ENAMETOOLONG, "cannot make the mount point", m->path);
	memcpy(rest, m->path + skip, strlen(m->path + skip) + 1);
	for (s = rest; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		if (mkdirat(dir, rest, 0755) < 0 && errno != EEXIST)
			return fail(x, -errno, "cannot make the mount point", m->path);
	}
	r = m->directory ? mkdirat(dir, rest, m->kind == MOUNT_FOLDER ? m->mode : 0755)
			 : mknodat(dir, rest, S_IFREG | 0644, 0);
	if (r < 0 && errno != EEXIST)
		return fail(x, -errno, "cannot make the mount point", m->path);
	return 0;
}

static int run_step(struct executor *x, size_t i)
{
	const struct mount_step *m = &x->plan->mounts[i];
	int r = m->make_point ? make_point(x, i) : 0;

	if (r < 0)
		return r;
	switch (m->kind) {
	case MOUNT_RW:
	case MOUNT_RO:
	case MOUNT_PIN:
		return step_host(x, i);
	case MOUNT_HIDE_DIR:
	case MOUNT_HIDE_FILE:
		return step_hide(x, i);
	case MOUNT_PRIVATE:
		return step_private(x, i);
	case MOUNT_TEXT:
		return step_text(x, i);
	case MOUNT_FOLDER:
		return 0; /* making the point was all */
	case MOUNT_DEV:
		return step_dev(x, i);
	case MOUNT_PROC:
		return step_proc(x, i);
	case MOUNT_KIND_MAX_:
		break;
	}
	return error_set(x->e, EINVAL, "unknown step at %s", m->path);
}

static int grab_all(struct executor *x)
{
	for (size_t i = 0; i < x->plan->n_mounts; i++) {
		const struct mount_step *m = &x->plan->mounts[i];

		x->trees[i] = -1;
		if (m->kind == MOUNT_RW || (m->kind == MOUNT_RO && m->make_point)) {
			x->trees[i] = grab(x, m);
			if (x->trees[i] < 0)
				return x->trees[i];
		}
	}
	for (size_t i = 0; i < NATIVE_DEVICES; i++)
		x->devices[i] = sys_open_tree(AT_FDCWD, native_devices[i], SYS_OPEN_TREE_CLONE);
	if (x->plan->tty)
		x->tty = sys_open_tree(AT_FDCWD, x->plan->tty, SYS_OPEN_TREE_CLONE);
	return 0;
}

static int seal_root(struct executor *x)
{
	uint64_t set = ATTR_PLAIN | (x->plan->root_writable ? 0 : SYS_MOUNT_RDONLY);
	/* never the kernel's own files; a fresh /proc will cover this one, if it can be had */
	static const char *const knobs[] = { "/sys", "/proc" };
	int r = sys_mount_setattr(AT_FDCWD, "/", SYS_AT_RECURSIVE, set, 0, MS_PRIVATE);

	for (size_t i = 0; i < ARRAY_LEN(knobs) && r == 0 && x->plan->root_writable; i++) {
		r = sys_mount_setattr(AT_FDCWD, knobs[i], SYS_AT_RECURSIVE, SYS_MOUNT_RDONLY, 0, 0);
		if (r == -ENOENT)
			r = 0;
	}
	return r < 0 ? fail(x, r, "cannot make read-only:", "/") : 0;
}

/* A second look at the scratch file system, through which nothing can be written. */
static int seal_scratch(struct executor *x)
{
	_cleanup_fd_ int tree = sys_open_tree(x->scratch, "", SYS_OPEN_TREE_CLONE | AT_EMPTY_PATH);
	int r = tree < 0 ? fail(x, tree, "cannot clone", "/dev")
			 : set_attributes(x, tree, ATTR_SEALED, "/dev");

	if (r == 0)
		r = attach(x, tree, "/dev/sealed");
	if (r < 0)
		return r;
	x->sealed = open("/dev/sealed", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return x->sealed < 0 ? fail(x, -errno, "cannot open", "/dev/sealed") : 0;
}

static int make_scratch(struct executor *x)
{
	char options[128] = "mode=0755";
	uint64_t size = x->plan->scratch_size;

	if (size) /* each file costs memory too: as many as there are blocks */
		(void)snprintf(options, sizeof(options), "mode=0755,size=%llu,nr_inodes=%llu",
			       (unsigned long long)size + SCRATCH_OWN_BYTES,
			       (unsigned long long)size / SCRATCH_BLOCK + SCRATCH_OWN_FILES);
	if (mount("ambit", "/dev", "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		return fail(x, -errno, "cannot mount a tmpfs on", "/dev");
	x->scratch = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (x->scratch < 0)
		return fail(x, -errno, "cannot open", "/dev");
	if (mkdirat(x->scratch, "empty", 0555) < 0 || make_file(x->scratch, "none", 0) < 0 ||
	    mkdirat(x->scratch, "sealed", 0555) < 0)
		return fail(x, -errno, "cannot fill the tmpfs on", "/dev");
	return seal_scratch(x);
}

int native_mounts(const struct plan *plan, struct error *e)
{
	_cleanup_free_ int *trees = calloc(plan->n_mounts + 1, sizeof(*trees));
	struct executor x = {
		.plan = plan, .e = e, .trees = trees, .tty = -1, .scratch = -1, .sealed = -1
	};
	int r;

	if (!trees)
		return error_set(e, ENOMEM, "out of memory");
	r = grab_all(&x);
	if (r == 0)
		r = seal_root(&x);
	if (r == 0)
		r = make_scratch(&x);
	for (size_t i = 0; i < plan->n_mounts && r == 0; i++)
		r = run_step(&x, i);
	/* fds that are left over are closed by exec; init closes them itself */
	return r;
}
