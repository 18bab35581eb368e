/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling. Hostile: names of processes, their number, what they open and map. Files
 * of /proc are read into buffers of fixed size; the kernel escapes names in them, so no process can
 * fake a line.
 */
#include "supervise/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

#define TEXT_MAX 4096 /* of one file in /proc */
#define HOST_TEXT_MAX ((size_t)1 << 20) /* /proc/stat has a word for each interrupt */
#define SHM_COLUMNS_BEFORE 14 /* of /proc/sysvipc/shm, before "rss" and "swap" */
#define SHM_READS_MAX 512 /* there are at most 4096 segments unless the host says otherwise */

/* A file of a process: its text, false when it is gone. */
static bool read_proc(int proc, const char *pid, const char *name, char text[TEXT_MAX])
{
	char path[64];
	_cleanup_fd_ int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%.20s/%.30s", pid, name);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, TEXT_MAX - 1);
	if (n < 0)
		return false;
	text[n] = '\0';
	return true;
}

/* The number in the line that begins with `key`. */
static uint64_t number(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, n) == 0) {
			line += n;
			line += strspn(line, " \t");
			return text_leading_u64(line);
		}
	}
	return 0;
}

static uint64_t kilobytes(const char *text, const char *key)
{
	return number(text, key) * 1024;
}

struct process {
	uint64_t pid, parent;
	bool inside;
	uint64_t threads, memory;
};

struct processes {
	struct process *v;
	size_t n, room;
};

static void processes_done(struct processes *all)
{
	free(all->v);
}

static struct process *push(struct processes *all)
{
	if (all->n == all->room) {
		all->room = all->room ? all->room * 2 : 64;
		all->v = reallocarray(all->v, all->room, sizeof(*all->v));
		if (!all->v)
			abort();
	}
	return &all->v[all->n++];
}

static int compare_pids(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Whoever has an ancestor inside is inside: orphans become children of init. */
static void mark_tree(const struct usage_source *s, struct processes *all)
{
	qsort(all->v, all->n, sizeof(*all->v), compare_pids);
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < all->n; i++) {
			struct process *p = &all->v[i], parent = { .pid = p->parent };
			const struct process *at = p->inside
							   ? NULL
							   : bsearch(&parent, all->v, all->n,
								     sizeof(parent), compare_pids);

			if (!p->inside && (p->pid == s->init || (at && at->inside)))
				p->inside = more = true;
		}
	}
}

static void find_processes(const struct usage_source *s, struct processes *ret)
{
	const struct dirent *entry;

	*ret = (struct processes){ 0 };
	rewinddir(s->proc);
	while ((entry = readdir(s->proc))) {
		char text[TEXT_MAX];
		struct process *p;

		if (!ascii_digit(entry->d_name[0]) ||
		    !read_proc(dirfd(s->proc), entry->d_name, "status", text))
			continue;
		p = push(ret);
		*p = (struct process){
			.pid = text_leading_u64(entry->d_name),
			.parent = number(text, "PPid:"),
			.inside = !s->tree,
			.threads = number(text, "Threads:"),
			.memory = kilobytes(text, "RssAnon:") + kilobytes(text, "RssShmem:") +
				  kilobytes(text, "VmSwap:"),
		};
	}
	if (s->tree && ret->n > 0)
		mark_tree(s, ret);
}

uint64_t usage_tasks(const struct usage_source *s)
{
	const struct dirent *entry;
	char name[24], text[TEXT_MAX];
	uint64_t last = 0;

	if (!s->proc || s->tree)
		return 0;
	rewinddir(s->proc);
	while ((entry = readdir(s->proc))) {
		uint64_t pid = text_leading_u64(entry->d_name);

		last = ascii_digit(entry->d_name[0]) && pid > last ? pid : last;
	}
	(void)snprintf(name, sizeof(name), "%" PRIu64, last);
	if (last <= s->init || !read_proc(dirfd(s->proc), name, "status", text) ||
	    !strstr(text, "\nState:\tZ"))
		return 0;
	return last - s->init - 1; /* without init and without the dead one */
}

static uint64_t host_number(const char *path, const char *key)
{
	_cleanup_free_ char *text = NULL;

	if (fd_read_file(AT_FDCWD, path, HOST_TEXT_MAX, &text, NULL) < 0)
		return 0;
	return number(text, key);
}

uint64_t usage_started(void)
{
	return host_number("/proc/stat", "processes");
}

uint64_t usage_numbers(void)
{
	return host_number("/proc/sys/kernel/pid_max", "");
}

/* What it has written. Where it keeps that from us, it counts as everything that was. */
static uint64_t written_by(const struct usage_source *s, const struct process *p)
{
	char name[24], text[TEXT_MAX];
	uint64_t written, undone;

	(void)snprintf(name, sizeof(name), "%" PRIu64, p->pid);
	if (!read_proc(dirfd(s->proc), name, "io", text))
		return s->tree && p->pid != s->init ? USAGE_UNKNOWN : 0;
	written = number(text, "write_bytes:");
	undone = number(text, "cancelled_write_bytes:");
	return written > undone ? written - undone : 0;
}

/* Resident and swapped bytes, the last two columns; true lines only (not the heading). */
static uint64_t shm_line(const char *line)
{
	uint64_t sum = 0;

	for (unsigned column = 1; *line && *line != '\n'; column++) {
		line += strspn(line, " ");
		if (column > SHM_COLUMNS_BEFORE && ascii_digit(*line))
			sum += text_leading_u64(line);
		line += strcspn(line, " \n");
	}
	return sum;
}

/* The kernel hands out whole lines, a page at a time. */
static uint64_t shm_bytes(int fd)
{
	char text[TEXT_MAX + 1];
	uint64_t sum = 0;
	off_t at = 0;
	ssize_t n;

	for (unsigned i = 0; fd >= 0 && i < SHM_READS_MAX; i++) {
		n = pread(fd, text, TEXT_MAX, at);
		if (n <= 0)
			break;
		text[n] = '\0';
		at += n;
		for (const char *line = text; line && *line; line = strchr(line, '\n')) {
			line += *line == '\n';
			sum += shm_line(line);
		}
	}
	return sum;
}

static void look_at_scratch(int fd, struct usage *ret)
{
	struct statvfs st;

	if (fd < 0 || fstatvfs(fd, &st) < 0)
		return;
	ret->scratch += (uint64_t)(st.f_blocks - st.f_bfree) * st.f_frsize;
	ret->scratch_files += (uint64_t)(st.f_files - st.f_ffree);
}

void usage_look_at_files(const struct usage_source *s, struct usage *ret)
{
	ret->shm = shm_bytes(s->shm);
	ret->scratch = ret->scratch_files = 0;
	look_at_scratch(s->scratch, ret);
	for (size_t i = 0; i < s->n_more; i++)
		look_at_scratch(s->more[i], ret);
}

void usage_look(const struct usage_source *s, bool io, struct usage *ret)
{
	__attribute__((cleanup(processes_done))) struct processes all = { 0 };

	*ret = (struct usage){ 0 };
	if (s->proc)
		find_processes(s, &all);
	for (size_t i = 0; i < all.n; i++) {
		const struct process *p = &all.v[i];

		if (!p->inside)
			continue;
		if (p->pid != s->init) {
			ret->pids += p->threads;
			ret->memory += p->memory;
		}
		/* init has inherited what the processes it reaped have written */
		if (io && ret->written < USAGE_UNKNOWN)
			ret->written += written_by(s, p);
	}
	usage_look_at_files(s, ret);
	ret->memory += ret->scratch + ret->shm;
}

uint64_t usage_memory(const struct usage_source *s, const struct usage *u)
{
	__attribute__((cleanup(processes_done))) struct processes all = { 0 };
	uint64_t own = 0, shared = 0, files;

	if (!s->proc)
		return 0;
	find_processes(s, &all);
	for (size_t i = 0; i < all.n; i++) {
		const struct process *p = &all.v[i];
		char name[24], text[TEXT_MAX];

		if (!p->inside || p->pid == s->init)
			continue;
		(void)snprintf(name, sizeof(name), "%" PRIu64, p->pid);
		if (read_proc(dirfd(s->proc), name, "smaps_rollup", text)) {
			own += kilobytes(text, "Pss_Anon:") + kilobytes(text, "SwapPss:");
			shared += kilobytes(text, "Pss_Shmem:");
		} else if (s->tree) { /* it may be hiding: then nothing of it is shared */
			own += p->memory;
		}
	}
	/*
	 * What is mapped of private files and System V memory is in both sums. The larger of them
	 * is never too much: nobody is ended for what he has not used.
	 */
	files = u->scratch + u->shm;
	return own + (shared > files ? shared : files);
}

static void add_disk(struct usage_source *s, const char *path)
{
	struct usage_disk *d = &s->disks[s->n_disks];
	struct statvfs st;
	struct stat at;

	if (s->n_disks == USAGE_DISKS_MAX)
		return;
	d->fd = open(path, O_PATH | O_CLOEXEC);
	if (d->fd < 0 || fstat(d->fd, &at) < 0 || fstatvfs(d->fd, &st) < 0) {
		fd_close(d->fd);
		return;
	}
	for (size_t i = 0; i < s->n_disks; i++) {
		if (s->disks[i].dev == at.st_dev) {
			fd_close(d->fd);
			return;
		}
	}
	d->dev = at.st_dev;
	d->free_bytes = (uint64_t)st.f_bfree * st.f_frsize;
	d->free_files = st.f_ffree;
	s->n_disks++;
}

void usage_begin(struct usage_source *s, const struct plan *plan, bool disks)
{
	if (disks && plan->root_writable)
		add_disk(s, "/");
	for (size_t i = 0; disks && i < plan->n_mounts; i++) {
		if (plan->mounts[i].kind == MOUNT_RW)
			add_disk(s, plan->mounts[i].path);
	}
}

uint64_t usage_disk_taken(const struct usage_source *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->n_disks; i++) {
		const struct usage_disk *d = &s->disks[i];
		struct statvfs st;
		uint64_t now;

		if (fstatvfs(d->fd, &st) < 0)
			continue;
		now = (uint64_t)st.f_bfree * st.f_frsize;
		sum += now < d->free_bytes ? d->free_bytes - now : 0;
		if (st.f_ffree < d->free_files)
			sum += (d->free_files - st.f_ffree) * USAGE_FILE_BYTES;
	}
	return sum;
}

int usage_watch_tree(struct usage_source *s, pid_t init)
{
	s->tree = true;
	s->init = (uint64_t)init;
	s->proc = opendir("/proc");
	return s->proc ? 0 : -errno;
}

void usage_end(struct usage_source *s)
{
	if (s->proc)
		(void)closedir(s->proc);
	fd_close(s->shm);
	fd_close(s->scratch);
	for (size_t i = 0; i < s->n_more; i++)
		fd_close(s->more[i]);
	for (size_t i = 0; i < s->n_disks; i++)
		fd_close(s->disks[i].fd);
}
