/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File systems that are mounted at more than one place, or show the kernel itself. From Linux 6.8 on the kernel is asked
 * about each mount by itself, which takes a third of the time; before that it is asked for all of them
 * as text.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"

#ifndef SYS_statmount
#define SYS_statmount 457
#define SYS_listmount 458
#endif
#define ROOT_OF_ALL UINT64_MAX /* LSMT_ROOT */
#define AT_ONCE 128
#define ABOUT_DEVICE 0x1u
#define ABOUT_PLACE (0x8u | 0x10u) /* its root, and where that is mounted */
#define CONFIGFS_MAGIC 0x62656570 /* not in linux/magic.h */
#define FUSECTL_MAGIC 0x65735543
#define MOUNTINFO_MAX ((size_t)8 << 20)

/* As the kernel has them; the words come behind. */
struct mount_question {
	uint32_t size, spare;
	uint64_t id, param;
};

struct mount_answer {
	uint32_t size, options;
	uint64_t mask;
	uint32_t major, minor;
	uint64_t magic;
	uint32_t flags, type;
	uint64_t id, parent;
	uint32_t old_id, old_parent;
	uint64_t attributes, propagation, peers, master, from;
	uint32_t root, point;
	uint64_t spare[50];
};
_Static_assert(sizeof(struct mount_answer) == 512, "the kernel's size of it");

struct found {
	uint64_t device, id;
	enum mount_type type;
	const char *root, *point; /* of the text; NULL = to be asked for */
};

static const struct {
	uint64_t magic;
	const char *name;
	enum mount_type type;
} types[] = {
	{ PROC_SUPER_MAGIC, "proc", TYPE_PROC },
	{ SYSFS_MAGIC, "sysfs", TYPE_SYSFS },
	{ DEBUGFS_MAGIC, "debugfs", TYPE_DEBUGFS },
	{ TRACEFS_MAGIC, "tracefs", TYPE_TRACEFS },
	{ SECURITYFS_MAGIC, "securityfs", TYPE_SECURITYFS },
	{ CGROUP_SUPER_MAGIC, "cgroup", TYPE_CONTROL },
	{ CGROUP2_SUPER_MAGIC, "cgroup2", TYPE_CONTROL },
	{ CONFIGFS_MAGIC, "configfs", TYPE_CONTROL },
	{ BPF_FS_MAGIC, "bpf", TYPE_CONTROL },
	{ EFIVARFS_MAGIC, "efivarfs", TYPE_CONTROL },
	{ PSTOREFS_MAGIC, "pstore", TYPE_CONTROL },
	{ BINFMTFS_MAGIC, "binfmt_misc", TYPE_CONTROL },
	{ SELINUX_MAGIC, "selinuxfs", TYPE_CONTROL },
	{ SMACK_MAGIC, "smackfs", TYPE_CONTROL },
	{ FUSECTL_MAGIC, "fusectl", TYPE_CONTROL },
};

/* By the kernel's number for it, or by its name when that is given. */
static enum mount_type type_of(uint64_t magic, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (name ? strcmp(types[i].name, name) == 0 : types[i].magic == magic)
			return types[i].type;
	}
	return TYPE_FILES;
}

static long ask(long call, uint64_t id, uint64_t param, void *ret, size_t size)
{
	struct mount_question q = { .size = sizeof(q), .id = id, .param = param };

	return syscall(call, &q, ret, size, 0);
}

static bool list_by_number(struct arena *a, struct found **ret, size_t *n)
{
	uint64_t ids[AT_ONCE], last = 0;
	struct mount_answer about;
	long got;

	do {
		got = ask(SYS_listmount, ROOT_OF_ALL, last, ids, AT_ONCE);
		for (long i = 0; i < got; i++) {
			struct found *f;

			last = ids[i];
			if (ask(SYS_statmount, last, ABOUT_DEVICE, &about, sizeof(about)) < 0)
				continue; /* gone again, or out of reach */
			f = ARENA_PUSH(a, *ret, *n);
			f->id = last;
			f->device = makedev(about.major, about.minor);
			f->type = type_of(about.magic, NULL);
		}
	} while (got == AT_ONCE);
	return got >= 0 && *n > 0;
}

/* The character that the kernel has written as three digits; -1 = it has not. */
static int octal(const char *s)
{
	int v = 0;

	for (size_t i = 0; i < 3; i++) {
		if (s[i] < '0' || s[i] > '7')
			return -1;
		v = v * 8 + (s[i] - '0');
	}
	return v;
}

/* The next word of a line; the kernel writes a blank in it as \040. */
static char *next_word(char **at)
{
	char *word = *at, *to = *at, *s = *at;

	while (*s && *s != ' ' && *s != '\n') {
		int c = *s == '\\' ? octal(s + 1) : -1;

		*to++ = c < 0 ? *s : (char)c;
		s += c < 0 ? 1 : 4;
	}
	*at = *s == ' ' ? s + 1 : s;
	*to = '\0';
	return word;
}

static void list_by_text(struct arena *a, char *text, struct found **ret, size_t *n)
{
	for (char *line = text; line && *line;) {
		char *end = strchr(line, '\n'), *device, *minor;
		struct found *f;

		if (end)
			*end = '\0';
		(void)next_word(&line);
		(void)next_word(&line);
		device = next_word(&line);
		minor = strchr(device, ':');
		if (minor) {
			f = ARENA_PUSH(a, *ret, *n);
			f->device = makedev((unsigned)text_leading_u64(device),
					    (unsigned)text_leading_u64(minor + 1));
			f->root = next_word(&line);
			f->point = next_word(&line);
			/* options, and fields of which there are none or some up to a dash */
			line = strstr(line, " - ");
			if (line) {
				line += 3;
				f->type = type_of(0, next_word(&line));
			}
		}
		line = end ? end + 1 : NULL;
	}
}

static int compare(const void *a, const void *b)
{
	const struct found *p = a, *q = b;

	if (p->device != q->device)
		return p->device < q->device ? -1 : 1;
	return (p->id > q->id) - (p->id < q->id);
}

/* What only those need that are among several, or the kernel's own. */
static bool ask_place(struct arena *a, struct found *f)
{
	struct {
		struct mount_answer about;
		char words[2 * PATH_MAX];
	} at _unfilled_;

	if (f->point) { /* of the text, which goes away */
		f->root = arena_strdup(a, f->root);
		f->point = arena_strdup(a, f->point);
		return true;
	}
	if (ask(SYS_statmount, f->id, ABOUT_PLACE, &at, sizeof(at)) < 0 ||
	    (at.about.mask & ABOUT_PLACE) != ABOUT_PLACE)
		return false;
	at.words[sizeof(at.words) - 1] = '\0';
	f->root = arena_strdup(a, at.words + at.about.root);
	f->point = arena_strdup(a, at.words + at.about.point);
	return true;
}

size_t path_host_mounts(const struct view *v, struct arena *a, const struct view_mount **ret)
{
	_cleanup_free_ char *text = NULL;
	struct view_mount *mounts = NULL;
	struct found *all = NULL;
	size_t n = 0, kept = 0;

	(void)v;
	if (!list_by_number(a, &all, &n)) {
		n = 0;
		if (fd_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &text, NULL) == 0)
			list_by_text(a, text, &all, &n);
	}
	if (n > 0)
		qsort(all, n, sizeof(*all), compare);
	for (size_t i = 0; i < n; i++) {
		bool more = (i > 0 && all[i - 1].device == all[i].device) ||
			    (i + 1 < n && all[i + 1].device == all[i].device);

		if ((more || all[i].type) && ask_place(a, &all[i]))
			*ARENA_PUSH(a, mounts, kept) =
				(struct view_mount){ all[i].device, all[i].type, all[i].root,
						     all[i].point };
	}
	*ret = mounts;
	return kept;
}
