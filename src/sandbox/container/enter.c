/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ambit-enter: pid 1 in a container. It connects to the keeper, is told what to run, looks whether
 * the container is what the plan says, gives up what rights are left, and becomes init
 * (native/init.c) as in every other sandbox of ours.
 *
 * Trust: it is started by the engine, from a read-only mount, before anything of the command's. What
 * it reads comes from the keeper. The image's files are not used: the program is
 * static. A mount that is not what was planned - a directory that was exchanged for a link
 * while the engine looked at it, an engine that does not do as it is told - ends the run here.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "sandbox/container/container.h"
#include "sandbox/container/request.h"
#include "sandbox/native/native.h"

#define TMPFS_TYPE 0x01021994
#define PATH_OF_IMAGE "PATH="

static int reach_keeper(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static ssize_t hear(int sock, int *fds, size_t n)
{
	struct pollfd ready = { .fd = sock, .events = POLLIN };
	char word;

	while (poll(&ready, 1, -1) < 0)
		; /* EINTR */
	return fd_receive_many(sock, &word, sizeof(word), fds, n);
}

static int read_request(struct arena *a, int fd, struct request *ret, struct error *e)
{
	struct stat st;
	char *block;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < 0 || (size_t)st.st_size > REQUEST_MAX)
		return error_set(e, EPROTO, "no request came from the supervisor");
	block = arena_alloc(a, (size_t)st.st_size + 1);
	if (pread(fd, block, (size_t)st.st_size, 0) != st.st_size)
		return error_set(e, EIO, "cannot read the request of the supervisor");
	return request_parse(a, block, (size_t)st.st_size, ret, e);
}

/* --- is it what was planned? ----------------------------------------------------------- */

static bool is_read_only(int fd)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_RDONLY;
}

static bool is_as_planned(const struct place *p, int fd)
{
	struct statfs fs;
	struct stat st;
	bool same;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return false;
	same = st.st_dev == p->dev && st.st_ino == p->ino;
	switch ((enum place_kind)p->kind) {
	case PLACE_SAME:
		return same;
	case PLACE_SAME_RO:
		return same && is_read_only(fd);
	case PLACE_EMPTY:
		return fs.f_type == TMPFS_TYPE && is_read_only(fd);
	case PLACE_NULL:
		return S_ISCHR(st.st_mode);
	}
	return false;
}

static int look_at_places(const struct request *q, struct error *e)
{
	for (size_t i = 0; i < q->n_places; i++) {
		const struct place *p = &q->places[i];
		_cleanup_fd_ int fd = sys_openat2(AT_FDCWD, p->path, O_PATH | O_CLOEXEC, 0,
						  SYS_RESOLVE_NO_SYMLINKS);

		if (fd < 0)
			return error_set(e, -fd, "%s cannot be opened in the container: %s",
					 p->path, strerror(-fd));
		if (!is_as_planned(p, fd))
			return error_set(
				e, ESTALE,
				"%s is not in the container what it should be: it was "
				"exchanged meanwhile, or the engine did not mount it as told",
				p->path);
	}
	return 0;
}

static int look_around(const struct request *q, struct error *e)
{
	_cleanup_fd_ int root = open("/", O_PATH | O_CLOEXEC);
	struct stat st;

	if (getpid() != 1)
		return error_set(e, EPERM, "the container has no process ids of its own");
	if (!is_read_only(root))
		return error_set(e, EPERM, "the root of the container is not read-only");
	if (q->net && (stat("/proc/self/ns/net", &st) < 0 || st.st_ino == q->net))
		return error_set(e, EPERM, "the container has no network of its own");
	return look_at_places(q, e);
}

/* --- and then --------------------------------------------------------------------------- */

/* PATH is the image's, unless the policy has one. */
static void complete_environment(struct arena *a, struct request *q)
{
	const char *path = getenv("PATH");
	size_t n = 0;
	char **v;

	for (; q->env[n]; n++) {
		if (strncmp(q->env[n], PATH_OF_IMAGE, strlen(PATH_OF_IMAGE)) == 0)
			return;
	}
	v = arena_array(a, n + 2, sizeof(*v));
	for (size_t i = 0; i < n; i++)
		v[i] = q->env[i];
	if (path)
		v[n] = arena_printf(a, PATH_OF_IMAGE "%s", path);
	q->env = v;
}

/*
 * Everything in the container may be opened, as far as its mounts let it be, and nothing else: what
 * a descriptor from outside leads to is in no directory of the container's.
 */
static int choose_landlock(struct arena *a, const struct request *q, struct plan *plan,
			   struct error *e)
{
	if (q->landlock == ENGINE_NO_LANDLOCK)
		return 0;
	plan->landlock = sys_landlock_abi() > 0;
	*ARENA_PUSH(a, plan->writable, plan->n_writable) = "/";
	if (plan->landlock || q->landlock == ENGINE_TRY_LANDLOCK)
		return 0;
	return error_set(
		e, ENOTSUP,
		"the engine's system call filter refuses Landlock, without which files "
		"outside that are standard input or output can be opened anew for writing; "
		"accept that with --fallback warn");
}

static int start(struct arena *a, int control, int errors, struct error *e)
{
	int what[2] = { -1, -1 }, stdio[3] = { -1, -1, -1 };
	struct sandbox_command cmd = { .tty = -1 };
	struct plan plan = { .contained = true };
	struct request q;
	int r;

	if (hear(control, what, ARRAY_LEN(what)) <= 0 ||
	    hear(control, stdio, ARRAY_LEN(stdio)) <= 0)
		return error_set(e, EPIPE, "the supervisor is gone");
	r = read_request(a, what[0], &q, e);
	if (r == 0)
		r = look_around(&q, e);
	if (r < 0)
		return r;
	if (chdir(q.cwd) < 0)
		return error_set(e, errno, "cannot enter %s inside the container: %s", q.cwd,
				 strerror(errno));
	complete_environment(a, &q);
	plan.env = q.env;
	plan.cwd = q.cwd;
	cmd.argv = q.argv;
	cmd.mask = q.mask;
	cmd.own_terminal = q.own_terminal && what[1] >= 0;
	cmd.tty = what[1];
	memcpy(cmd.stdio, stdio, sizeof(stdio));
	r = choose_landlock(a, &q, &plan, e);
	if (r == 0)
		r = native_drop_privileges(&plan, e);
	if (r < 0)
		return r;
	return native_init(
		&plan, &cmd,
		&(struct init_sockets){ control, errors, .listener = errors, .keeper = -1 },
		(mode_t)q.umask, e);
}

int main(int argc, char **argv)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_fd_ int control = -1, errors = -1;
	struct error e = { 0 };

	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)umask(0);
	control = argc == 2 ? reach_keeper(argv[1]) : -1;
	errors = control < 0 ? -1 : reach_keeper(argv[1]);
	if (errors < 0)
		return 125; /* nobody is left who wants to know */
	if (start(a, control, errors, &e) < 0)
		(void)!send(errors, &e, sizeof(e), MSG_NOSIGNAL);
	return 125;
}
