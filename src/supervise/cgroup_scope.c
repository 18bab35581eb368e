/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transient scope, asked of systemd over its socket: the one D-Bus call that is needed, by
 * hand. The user's own manager is asked, or for root the system's. It moves the process
 * into a group with the limits, and removes the group when the last process has left.
 *
 * Trust: the manager is as trusted as the socket it listens on, which lies in a directory of the
 * user's or root's. Its messages are bounded and only their type, serial and text of an error
 * are looked at; what counts is where the kernel says the process is in the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/sys.h"
#include "base/text.h"
#include "supervise/cgroup_internal.h"

#define ANSWER_MS 3000
#define MESSAGE_MAX ((size_t)64 << 10)
#define FIXED_HEADER 16
#define GROUP_MAX 4096 /* path of a group */
#define LOOK_NS 300000 /* between two looks at where the process is */

enum { TYPE_CALL = 1, TYPE_RETURN = 2, TYPE_ERROR = 3 };
enum {
	FIELD_PATH = 1,
	FIELD_INTERFACE = 2,
	FIELD_MEMBER = 3,
	FIELD_REPLY_SERIAL = 5,
	FIELD_DESTINATION = 6,
	FIELD_SIGNATURE = 8
};

/* --- writing: everything is aligned from the start of its buffer -------------------- */

static void align(struct buf *b, size_t to)
{
	while (b->len % to)
		buf_putc(b, '\0');
}

static void put_u32(struct buf *b, uint32_t v)
{
	align(b, 4);
	buf_append(b, &v, sizeof(v));
}

static void put_string(struct buf *b, const char *s)
{
	put_u32(b, (uint32_t)strlen(s));
	buf_append(b, s, strlen(s) + 1);
}

static void put_signature(struct buf *b, const char *s)
{
	buf_putc(b, (char)strlen(s));
	buf_append(b, s, strlen(s) + 1);
}

/* Where the length of an array stands; its elements start aligned to `to`. */
static size_t begin_array(struct buf *b, size_t to)
{
	size_t at;

	put_u32(b, 0);
	at = b->len - 4;
	align(b, to);
	return at;
}

static void end_array(struct buf *b, size_t at, size_t to)
{
	uint32_t n = (uint32_t)(b->len - ((at + 4 + to - 1) / to * to));

	if (!b->overflow)
		memcpy(b->data + at, &n, sizeof(n));
}

static void put_property(struct buf *b, const char *name, const char *type)
{
	align(b, 8);
	put_string(b, name);
	put_signature(b, type);
}

static void put_property_u64(struct buf *b, const char *name, uint64_t v)
{
	put_property(b, name, "t");
	align(b, 8);
	buf_append(b, &v, sizeof(v));
}

static void put_field(struct buf *b, char code, const char *type, const char *value)
{
	align(b, 8);
	buf_putc(b, code);
	put_signature(b, type);
	if (*type == 'g')
		put_signature(b, value);
	else
		put_string(b, value);
}

struct call {
	const char *path, *interface, *member, *destination, *signature;
};

static void put_call(struct buf *out, const struct call *c, uint32_t serial, const struct buf *body)
{
	_cleanup_buf_ struct buf b = BUF_INIT(MESSAGE_MAX);
	size_t fields;

	buf_append(&b, (const char[]){ 'l', TYPE_CALL, 0, 1 }, 4);
	put_u32(&b, (uint32_t)body->len);
	put_u32(&b, serial);
	fields = begin_array(&b, 8);
	put_field(&b, FIELD_PATH, "o", c->path);
	put_field(&b, FIELD_INTERFACE, "s", c->interface);
	put_field(&b, FIELD_MEMBER, "s", c->member);
	put_field(&b, FIELD_DESTINATION, "s", c->destination);
	if (c->signature)
		put_field(&b, FIELD_SIGNATURE, "g", c->signature);
	end_array(&b, fields, 8);
	align(&b, 8);
	buf_append(out, b.data, b.len);
	if (body->len)
		buf_append(out, body->data, body->len);
}

static void put_scope(struct buf *b, const char *name, pid_t child,
		      const struct cgroup_limits *limits)
{
	size_t properties, pids, more;

	put_string(b, name);
	put_string(b, "fail");
	properties = begin_array(b, 8);
	put_property(b, "Description", "s");
	put_string(b, "a command in an ambit sandbox");
	put_property(b, "PIDs", "au");
	pids = begin_array(b, 4);
	put_u32(b, (uint32_t)child);
	end_array(b, pids, 4);
	/* without it a scope that ran out of memory would stay, as failed */
	put_property(b, "CollectMode", "s");
	put_string(b, "inactive-or-failed");
	if (limits->memory) {
		put_property_u64(b, "MemoryMax", limits->memory);
		put_property_u64(b, "MemorySwapMax", 0);
	}
	if (limits->pids)
		put_property_u64(b, "TasksMax", limits->pids);
	if (limits->cpu > 0)
		put_property_u64(b, "CPUQuotaPerSecUSec", (uint64_t)(limits->cpu * 1e6));
	end_array(b, properties, 8);
	more = begin_array(b, 8);
	end_array(b, more, 8);
}

/* --- reading -------------------------------------------------------------------------- */

/* Exactly n bytes before the deadline. */
static int read_exactly(int fd, void *data, size_t n, int64_t deadline)
{
	for (size_t done = 0; done < n;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		int64_t left = deadline - (int64_t)sys_now_ms();
		ssize_t r;

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(&ready, 1, (int)left) <= 0)
			continue;
		r = recv(fd, (char *)data + done, n - done, MSG_DONTWAIT);
		if (r == 0)
			return -ECONNRESET;
		if (r < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		done += r > 0 ? (size_t)r : 0;
	}
	return 0;
}

/* The answer to our authentication: one line. */
static int read_line(int fd, char *line, size_t size, int64_t deadline)
{
	for (size_t n = 0; n + 1 < size; n++) {
		int r = read_exactly(fd, line + n, 1, deadline);

		if (r < 0)
			return r;
		line[n + 1] = '\0';
		if (line[n] == '\n')
			return 0;
	}
	return -EPROTO;
}

static uint32_t get_u32(const char *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* The serial that the message answers, 0 when it answers none. Fields: n bytes after the header. */
static uint32_t answered_serial(const char *fields, size_t n)
{
	size_t i = 0;

	while ((i = (i + 7) / 8 * 8) + 8 <= n) {
		char code = fields[i], type = fields[i + 2];

		if (fields[i + 1] != 1)
			return 0;
		i += 4; /* code, length, type, end */
		if (type == 'u') {
			i = (i + 3) / 4 * 4;
			if (code == FIELD_REPLY_SERIAL && i + 4 <= n)
				return get_u32(fields + i);
			i += 4;
		} else if (type == 's' || type == 'o') {
			i = (i + 3) / 4 * 4;
			if (i + 4 > n || get_u32(fields + i) > n)
				return 0;
			i += 4 + get_u32(fields + i) + 1;
		} else if (type == 'g') {
			i += (unsigned char)fields[i] + 2u;
		} else {
			return 0;
		}
	}
	return 0;
}

/* Wait for the answer to `serial`; the text of an error goes to e. */
static int read_answer(int fd, uint32_t serial, int64_t deadline, struct error *e)
{
	_cleanup_free_ char *rest = calloc(1, MESSAGE_MAX);

	while (rest) {
		char head[FIXED_HEADER];
		size_t fields, body, all;
		int r = read_exactly(fd, head, sizeof(head), deadline);

		if (r < 0)
			return error_set(e, -r, "systemd does not answer: %s", strerror(-r));
		fields = get_u32(head + 12);
		body = get_u32(head + 4);
		if (head[0] != 'l' || fields > MESSAGE_MAX / 2 || body > MESSAGE_MAX / 4)
			return error_set(e, EPROTO, "systemd answers in an unknown way");
		all = (fields + 7) / 8 * 8 + body;
		r = read_exactly(fd, rest, all, deadline);
		if (r < 0)
			return error_set(e, -r, "systemd does not answer: %s", strerror(-r));
		if (answered_serial(rest, fields) != serial)
			continue;
		if (head[1] == TYPE_RETURN)
			return 0;
		if (head[1] == TYPE_ERROR && body > 5 && get_u32(rest + all - body) == body - 5)
			return error_set(e, EPERM, "systemd refused: %.200s",
					 rest + all - body + 4);
		return error_set(e, EPERM, "systemd refused");
	}
	return error_set(e, ENOMEM, "out of memory");
}

/* --- the manager ------------------------------------------------------------------------ */

/* Its own socket, and the bus as a second way, which wants a greeting first. */
static void socket_paths(const char *root, char private[96], char bus[96])
{
	uid_t uid = geteuid();

	if (uid == 0) {
		(void)snprintf(private, 96, "%.32s/run/systemd/private", root);
		(void)snprintf(bus, 96, "%.32s/run/dbus/system_bus_socket", root);
	} else {
		(void)snprintf(private, 96, "%.32s/run/user/%u/systemd/private", root, uid);
		(void)snprintf(bus, 96, "%.32s/run/user/%u/bus", root, uid);
	}
}

bool cgroup_scope_available(const char *root)
{
	char private[96], bus[96];
	struct stat st;

	socket_paths(root, private, bus);
	return (stat(private, &st) == 0 && S_ISSOCK(st.st_mode)) ||
	       (geteuid() != 0 && stat(bus, &st) == 0 && S_ISSOCK(st.st_mode));
}

static int dial(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	text_copy(to.sun_path, sizeof(to.sun_path), path);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		int err = errno;

		fd_close(fd);
		return -err;
	}
	return fd;
}

/* All that we have to say goes out at once; the answers are read in order. */
static int converse(int fd, bool bus, const struct buf *scope, struct error *e)
{
	static const struct call hello = { "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello",
					   "org.freedesktop.DBus", NULL };
	static const struct call start = { "/org/freedesktop/systemd1",
					   "org.freedesktop.systemd1.Manager", "StartTransientUnit",
					   "org.freedesktop.systemd1", "ssa(sv)a(sa(sv))" };
	_cleanup_buf_ struct buf out = BUF_INIT(MESSAGE_MAX), nothing = BUF_INIT(1);
	int64_t deadline = (int64_t)sys_now_ms() + ANSWER_MS;
	char uid[16], line[256];
	int r;

	(void)snprintf(uid, sizeof(uid), "%u", geteuid());
	buf_putc(&out, '\0');
	buf_puts(&out, "AUTH EXTERNAL ");
	for (const char *c = uid; *c; c++)
		buf_printf(&out, "%02x", (unsigned)*c);
	buf_puts(&out, "\r\nBEGIN\r\n");
	if (bus)
		put_call(&out, &hello, 1, &nothing);
	put_call(&out, &start, 2, scope);
	r = fd_write_all(fd, out.data, out.len);
	if (r == 0)
		r = read_line(fd, line, sizeof(line), deadline);
	if (r < 0)
		return error_set(e, -r, "systemd does not answer: %s", strerror(-r));
	if (!text_starts(line, "OK"))
		return error_set(e, EACCES, "systemd does not let us in");
	return read_answer(fd, 2, deadline, e);
}

/* The kernel's word for where a process is: its path in version 2, "" when unknown. */
static void group_of(const char *root, pid_t pid, char *ret, size_t size)
{
	_cleanup_free_ char *text = NULL;
	char path[96];
	const char *line;
	size_t n;

	*ret = '\0';
	(void)snprintf(path, sizeof(path), "%.32s/proc/%d/cgroup", root, pid);
	if (fd_read_file(AT_FDCWD, path, CGROUP_FILE_MAX, &text, NULL) < 0)
		return;
	line = text_starts(text, "0::") ? text : strstr(text, "\n0::");
	if (!line)
		return;
	line = strchr(line, '/');
	n = line ? strcspn(line, "\n") : size;
	if (n < size) {
		memcpy(ret, line, n);
		ret[n] = '\0';
	}
}

/* As far as it may be read; through the mounted hierarchy. */
static int open_group(const char *root, const char *group, struct error *e)
{
	char path[GROUP_MAX + 64];
	int fd;

	(void)snprintf(path, sizeof(path), "%.32s/sys/fs/cgroup%s", root, group);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? error_set(e, errno, "limits: cannot open the cgroup %s: %s", group,
				  strerror(errno))
		      : fd;
}

static int ask(const char *root, const struct buf *scope, struct error *e)
{
	char private[96], bus[96];
	_cleanup_fd_ int fd = -1;

	socket_paths(root, private, bus);
	fd = dial(private);
	if (fd >= 0)
		return converse(fd, false, scope, e);
	fd = dial(bus);
	return fd < 0 ? error_set(e, -fd, "cannot reach systemd: %s: %s", bus, strerror(-fd))
		      : converse(fd, true, scope, e);
}

int cgroup_scope_start(const char *root, const char *name, pid_t child,
		       const struct cgroup_limits *limits, struct error *e)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	_cleanup_buf_ struct buf body = BUF_INIT(MESSAGE_MAX);
	int64_t deadline = (int64_t)sys_now_ms() + ANSWER_MS;
	char scope[64], group[GROUP_MAX];
	int r;

	(void)snprintf(scope, sizeof(scope), "/%.48s.scope", name);
	put_scope(&body, scope + 1, child, limits);
	r = ask(root, &body, e);
	while (r == 0) {
		group_of(root, child, group, sizeof(group));
		if (text_ends(group, scope))
			return open_group(root, group, e);
		if ((int64_t)sys_now_ms() > deadline)
			return error_set(e, ETIMEDOUT, "systemd made no scope in %d s",
					 ANSWER_MS / 1000);
		(void)nanosleep(&pause, NULL);
	}
	return r;
}
