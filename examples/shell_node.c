/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a workflow engine does with a shell step: run it in the sandbox of the project, take
 * its output, and tell the user what was blocked.
 *
 *	cc -o shell_node shell_node.c $(pkg-config --cflags --libs libambit)
 *	./shell_node /path/to/project 'make test'
 */
#include <ambit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void blocked(void *ctx, const struct ambit_violation *v)
{
	(void)ctx;
	fprintf(stderr, "[blocked] %s %s: %s\n", v->kind, v->target, v->reason);
	if (v->hint[0])
		fprintf(stderr, "          would be allowed by %s\n", v->hint);
}

static struct ambit_config *configure(const char *directory)
{
	struct ambit_config *c = ambit_config_new();

	if (!c)
		return NULL;
	if (ambit_config_directory(c, directory) < 0 || ambit_config_deny(c, "**/.env") < 0 ||
	    ambit_config_allow_domain(c, "github.com") < 0 ||
	    ambit_config_limit(c, "timeout", "10m") < 0) {
		ambit_config_free(c);
		return NULL;
	}
	return c;
}

int main(int argc, char **argv)
{
	struct ambit_spawn spawn = { AMBIT_SPAWN_INIT, .violation = blocked };
	struct ambit_result result = { AMBIT_RESULT_INIT };
	struct ambit_process *process;
	struct ambit_config *config;
	struct ambit_error e = { 0 };
	int out[2];
	char text[4096];
	ssize_t n;

	if (argc != 3 || !(config = configure(argv[1])) || pipe(out) < 0)
		return 2;
	spawn.shell = argv[2];
	spawn.stdout_fd = out[1];
	if (ambit_spawn(config, &spawn, &process, &e) < 0) {
		fprintf(stderr, "not run: %s\n", e.text);
		return e.exit_code;
	}
	close(out[1]);
	while ((n = read(out[0], text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)n, stdout);
	ambit_process_wait(process, -1, &result, &e);
	if (!result.started)
		fprintf(stderr, "not run: %s\n", e.text);
	printf("exit code %d, %llu ms, %llu things blocked\n", result.exit_code,
	       (unsigned long long)result.wall_ms, (unsigned long long)result.violations);
	ambit_process_free(process);
	ambit_config_free(config);
	return result.exit_code;
}
