/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What single calls cost, in microseconds: ops DIRECTORY [BATCHES].
 *
 * Each call is made in batches; printed are the median of the batches, which a burst of work
 * elsewhere on the machine does not move, and the fastest, which a busy machine moves less.
 * bench/workloads runs it inside and outside.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BATCH 100
#define BATCHES_MAX 1000

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void check(int r, const char *what)
{
	if (r < 0)
		err(1, "%s", what);
}

static const char *name_of(const char *kind, int i)
{
	static char name[32];

	(void)snprintf(name, sizeof(name), "%s%d", kind, i);
	return name;
}

static void op_create(int i)
{
	int fd = open(name_of("f", i), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	check(fd, "create");
	(void)close(fd);
}

static void op_open_write(int i)
{
	int fd = open(name_of("f", i), O_WRONLY | O_CLOEXEC);

	check(fd, "open for writing");
	(void)close(fd);
}

static void op_open_read(int i)
{
	int fd = open(name_of("f", i), O_RDONLY | O_CLOEXEC);

	check(fd, "open for reading");
	(void)close(fd);
}

static void op_stat(int i)
{
	struct stat st;

	check(stat(name_of("f", i), &st), "stat");
}

static void op_rename(int i)
{
	char to[32];

	(void)snprintf(to, sizeof(to), "g%d", i);
	check(rename(name_of("f", i), to), "rename");
}

static void op_unlink(int i)
{
	check(unlink(name_of("g", i)), "unlink");
}

static void op_mkdir(int i)
{
	check(mkdir(name_of("d", i), 0755), "mkdir");
}

static void op_rmdir(int i)
{
	check(rmdir(name_of("d", i)), "rmdir");
}

static void op_unlink_file(int i)
{
	check(unlink(name_of("f", i)), "unlink");
}

/* One after the other on the same batch: each finds what the one before left. */
static const struct {
	const char *name; /* NULL: not told */
	void (*run)(int i);
} ops[] = {
	{ "create+close", op_create },
	{ "open for write+close", op_open_write },
	{ "open for read+close", op_open_read },
	{ "stat", op_stat },
	{ "rename", op_rename },
	{ "unlink", op_unlink },
	{ "mkdir", op_mkdir },
	{ NULL, op_rmdir },
	{ "create+close after umask", op_create },
	{ NULL, op_unlink_file },
};
#define OPS (sizeof(ops) / sizeof(ops[0]))

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static double took[OPS][BATCHES_MAX];
	int batches = argc > 2 ? atoi(argv[2]) : 50;

	if (argc < 2 || batches < 1 || batches > BATCHES_MAX)
		errx(2, "usage: ops DIRECTORY [BATCHES]");
	check(chdir(argv[1]), argv[1]);
	/* the last two only when all others are through: umask(2) is remembered */
	for (size_t half = 0; half < 2; half++) {
		for (int b = 0; b < batches; b++) {
			for (size_t o = half ? OPS - 2 : 0; o < (half ? OPS : OPS - 2); o++) {
				double start = now_us();

				for (int i = 0; i < BATCH; i++)
					ops[o].run(i);
				took[o][b] = (now_us() - start) / BATCH;
			}
		}
		(void)umask(022);
	}
	for (size_t o = 0; o < OPS; o++) {
		qsort(took[o], (size_t)batches, sizeof(took[o][0]), compare);
		if (ops[o].name)
			printf("%s\t%.3f\t%.3f\n", ops[o].name, took[o][batches / 2], took[o][0]);
	}
	return 0;
}
