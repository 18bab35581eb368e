/* SPDX-License-Identifier: Apache-2.0 */
/* What depends on the caller: umask, directory, limits, threads, signals. */
#include "cases.h"

static void *masked_thread(void *arg)
{
	(void)arg;
	if (unshare(CLONE_FS) < 0)
		abort();
	umask(0077);
	O(open("u-thread", O_WRONLY | O_CREAT, 0666));
	return NULL;
}

static void masks(void)
{
	pthread_t t;
	pid_t pid;

	group = "umask";
	T(umask(0));
	O(open("u0", O_WRONLY | O_CREAT, 0666));
	T(umask(0777));
	O(open("u7", O_WRONLY | O_CREAT, 0666));
	T(mkdir("u7d", 0777));
	T(umask(027));
	O(open("u27", O_WRONLY | O_CREAT, 0777));
	T(mknod("u27f", S_IFIFO | 0666, 0));
	show("u27f");
	pid = fork();
	if (pid == 0) {
		O(open("u-fork", O_WRONLY | O_CREAT, 0666));
		umask(0);
		O(open("u-fork0", O_WRONLY | O_CREAT, 0666));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	show("u-fork");
	show("u-fork0");
	pthread_create(&t, NULL, masked_thread, NULL);
	pthread_join(t, NULL);
	O(open("u-main", O_WRONLY | O_CREAT, 0666));
	umask(022);
}

static void deleted_directory(void)
{
	int home = open(".", O_RDONLY | O_DIRECTORY);

	group = "gone";
	mkdir("gone", 0755);
	if (chdir("gone") < 0)
		abort();
	rmdir("../gone");
	O(open("x", O_WRONLY | O_CREAT, 0644));
	T(mkdir("x", 0755));
	T(rename("x", "y"));
	O(open("../f", O_WRONLY));
	O(open(".", O_RDWR | O_TMPFILE, 0600));
	if (fchdir(home) < 0)
		abort();
	mkdir("moved", 0755);
	if (chdir("moved") < 0)
		abort();
	T(rename("../moved", "../moved2"));
	O(open("x", O_WRONLY | O_CREAT, 0644));
	if (fchdir(home) < 0)
		abort();
	show("moved2/x");
	close(home);
}

static void few_descriptors(void)
{
	struct rlimit old, few;
	int fds[64], n = 0;

	group = "limits";
	getrlimit(RLIMIT_NOFILE, &old);
	few = old;
	few.rlim_cur = 12;
	setrlimit(RLIMIT_NOFILE, &few);
	while (n < 64 && (fds[n] = open("f", O_WRONLY)) >= 0)
		n++;
	line("opened %d, then %s, last %d", n, strerrorname_np(errno), fds[n - 1]);
	O(open("lim", O_WRONLY | O_CREAT, 0644));
	T(mkdir("limd", 0755));
	close(fds[2]);
	O(open("f", O_WRONLY)); /* the lowest free number */
	while (n-- > 0)
		close(fds[n]);
	setrlimit(RLIMIT_NOFILE, &old);
}

static void *late_reader(void *arg)
{
	int fd;

	usleep(60000);
	fd = open(arg, O_RDONLY);
	usleep(60000);
	close(fd);
	return NULL;
}

static void fifos(void)
{
	char name[] = "wait-fifo";
	pthread_t t;
	pid_t pid;
	int status;

	group = "fifo";
	mkfifo(name, 0600);
	pthread_create(&t, NULL, late_reader, name);
	O(open(name, O_WRONLY));
	pthread_join(t, NULL);
	pthread_create(&t, NULL, late_reader, name);
	O(open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	pthread_join(t, NULL);
	pid = fork();
	if (pid == 0)
		_exit(open(name, O_WRONLY));
	usleep(50000);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	line("killed while waiting: %d", WTERMSIG(status));
}

/* Somebody who reads has a lease: an open for writing waits, and still empties the file. */
static void leases(void)
{
	int ready[2], fd, asked;
	sigset_t set;
	pid_t pid;

	group = "lease";
	put("leased", "as it was");
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (pipe(ready) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		fd = open("leased", O_RDONLY);
		/* whoever wrote it may not have closed it yet */
		for (int i = 0; i < 1000 && fcntl(fd, F_SETLEASE, F_RDLCK) < 0; i++)
			usleep(1000);
		line("lease: %d", fcntl(fd, F_GETLEASE) == F_RDLCK);
		write(ready[1], "", 1);
		sigtimedwait(&set, NULL, &(struct timespec){ .tv_sec = 5 });
		usleep(30000);
		_exit(fcntl(fd, F_SETLEASE, F_UNLCK));
	}
	read(ready[0], &(char){ 0 }, 1);
	fd = open("leased", O_WRONLY | O_TRUNC);
	line("opened: %d", fd >= 0);
	close(fd);
	waitpid(pid, &asked, 0);
	line("given up: %d", asked);
	show("leased");
	close(ready[0]);
	close(ready[1]);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void contents(void)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10 };
	int fd = open("data", O_RDWR | O_CREAT, 0644), other;
	char *map;

	group = "contents";
	T(ftruncate(fd, 8192));
	T(fallocate(fd, 0, 0, 16384));
	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	strcpy(map, "mapped");
	munmap(map, 8192);
	show("data");
	T(flock(fd, LOCK_EX | LOCK_NB));
	other = open("data", O_RDWR);
	T(flock(other, LOCK_EX | LOCK_NB));
	T(fcntl(fd, F_SETLK, &l));
	if (fork() == 0) {
		l.l_pid = 0;
		T(fcntl(other, F_SETLK, &l));
		_exit(0);
	}
	wait(NULL);
	line("after the child");
	close(other);
	other = open("data", O_WRONLY | O_APPEND);
	line("append %zd at %ld", write(other, "end", 3), (long)lseek(other, 0, SEEK_END));
	T(lseek(fd, 0, SEEK_CUR));
	T(fchmod(fd, 0600));
	T(fsync(fd));
	show("data");
	close(other);
	close(fd);
}

#define THREADS 8
#define FILES_EACH 40

static void *make_files(void *arg)
{
	char name[64];
	long bad = 0;

	for (int i = 0; i < FILES_EACH; i++) {
		int fd;

		snprintf(name, sizeof(name), "th/%ld-%d", (long)(intptr_t)arg, i);
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0 || write(fd, name, strlen(name)) != (ssize_t)strlen(name))
			bad++;
		close(fd);
	}
	return (void *)bad;
}

static void threads(void)
{
	pthread_t t[THREADS];
	long bad = 0, ok = 0;
	void *one;
	struct stat st;
	char name[64];

	group = "threads";
	mkdir("th", 0755);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, make_files, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], &one);
		bad += (long)one;
	}
	for (int i = 0; i < THREADS * FILES_EACH; i++) {
		snprintf(name, sizeof(name), "th/%d-%d", i / FILES_EACH, i % FILES_EACH);
		ok += stat(name, &st) == 0 && st.st_size == (off_t)strlen(name);
	}
	line("%ld failed, %ld good files", bad, ok);
}

static void vforks(void)
{
	volatile int good = 0; /* volatile: the child shares our memory */

	group = "vfork";
	for (volatile int i = 0; i < 50; i++) {
		pid_t pid = vfork();
		int status;

		if (pid == 0) {
			int fd = open("vforked", O_WRONLY | O_CREAT | O_APPEND, 0644);

			_exit(fd >= 0 && write(fd, ".", 1) == 1 ? 0 : 1);
		}
		waitpid(pid, &status, 0);
		good += status == 0;
	}
	line("%d good", good);
	show("vforked");
}

static volatile long ticks;

static void on_alarm(int sig)
{
	(void)sig;
	ticks++;
}

/* EINTR is allowed (documented); a result that is wrong is not. */
static void signals(void)
{
	struct sigaction act = { .sa_handler = on_alarm }, old;
	struct itimerval often = { { 0, 900 }, { 0, 900 } }, never = { 0 };
	int wrong = 0, missing = 0, done = 0;
	char name[32];

	group = "signals";
	mkdir("sig", 0755);
	sigaction(SIGALRM, &act, &old);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 1500; i++) {
		int fd;

		snprintf(name, sizeof(name), "sig/%d", i);
		do
			fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
		while (fd < 0 && errno == EINTR);
		wrong += fd < 0;
		missing += access(name, F_OK) < 0;
		close(fd);
		do
			fd = mkdir(name, 0755);
		while (fd < 0 && errno == EINTR);
		wrong += fd == 0 || errno != EEXIST;
		done++;
		unlink(name);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	line("%d done, %d wrong, %d missing, signals %s", done, wrong, missing,
	     ticks ? "came" : "?");
}

void cases_state(void)
{
	masks();
	deleted_directory();
	few_descriptors();
	fifos();
	leases();
	contents();
	threads();
	vforks();
	signals();
}
