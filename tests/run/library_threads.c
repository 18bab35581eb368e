/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library_threads DIR-A DIR-B COUNT: that many threads at once, each with a sandbox that may
 * write to one of the two directories only and tries both. Prints what went wrong, or "ok".
 */
#include <ambit.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
	const struct ambit_config *config;
	char name[32];
	char *const *dirs;
	int own; /* index of the directory that it may write to */
	int violations;
	pthread_t thread;
};

static void count(void *ctx, const struct ambit_violation *v)
{
	struct job *job = ctx;

	if (strcmp(v->kind, "write") == 0)
		job->violations++;
}

static void *run(void *arg)
{
	struct job *job = arg;
	char command[4096];
	struct ambit_spawn spawn = { AMBIT_SPAWN_INIT, .shell = command, .violation = count,
				     .ctx = job };
	struct ambit_result result = { AMBIT_RESULT_INIT };
	struct ambit_process *process;
	struct ambit_error e = { 0 };

	snprintf(command, sizeof(command),
		 "exec 2>/dev/null; n=0; echo x > '%s/%s' && n=1; "
		 "echo x > '%s/%s' && n=$((n + 2)); exit $n",
		 job->dirs[0], job->name, job->dirs[1], job->name);
	if (ambit_spawn(job->config, &spawn, &process, &e) < 0) {
		printf("%s: %s\n", job->name, e.text);
		return NULL;
	}
	if (ambit_process_wait(process, 60000, &result, &e) < 0 || !result.started)
		printf("%s: not run: %s\n", job->name, e.text);
	else if (result.exit_code != 1 << job->own || job->violations != 1)
		printf("%s: exit code %d, %d violations\n", job->name, result.exit_code,
		       job->violations);
	ambit_process_free(process);
	return NULL;
}

int main(int argc, char **argv)
{
	struct ambit_config *configs[2];
	int n = argc == 4 ? atoi(argv[3]) : 0;
	struct job *jobs = calloc((size_t)n + 1, sizeof(*jobs));

	if (n <= 0 || !jobs)
		return 2;
	for (int i = 0; i < 2; i++) {
		configs[i] = ambit_config_new();
		if (ambit_config_directory(configs[i], argv[1 + i]) < 0)
			return 2;
	}
	for (int i = 0; i < n; i++) {
		jobs[i] = (struct job){ .config = configs[i % 2], .dirs = argv + 1, .own = i % 2 };
		snprintf(jobs[i].name, sizeof(jobs[i].name), "t%d", i);
		if (pthread_create(&jobs[i].thread, NULL, run, &jobs[i]) != 0)
			return 2;
	}
	for (int i = 0; i < n; i++)
		pthread_join(jobs[i].thread, NULL);
	ambit_config_free(configs[0]);
	ambit_config_free(configs[1]);
	free(jobs);
	puts("ok");
	return 0;
}
