/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container.args: words for the engine that this machine needs and that give nothing away. A list
 * of what is allowed, because every version of an engine knows new ways to open a container.
 * Each word carries its own value, so that what is judged here is what the engine reads.
 */
#include "policy/container.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

#define IMAGE_NAME_MAX 512

/* value NULL: any. */
static const struct {
	const char *name, *value;
} allowed[] = {
	{ "--add-host", NULL },
	{ "--arch", NULL },
	{ "--cgroup-manager", NULL },
	{ "--cgroup-parent", NULL },
	{ "--cgroups", NULL },
	{ "--cpu-shares", NULL },
	{ "--cpuset-cpus", NULL },
	{ "--hostname", NULL },
	{ "--label", NULL },
	{ "--log-level", NULL },
	{ "--oom-score-adj", NULL },
	{ "--os", NULL },
	{ "--platform", NULL },
	{ "--root", NULL },
	{ "--runroot", NULL },
	{ "--runtime", NULL },
	{ "--shm-size", NULL },
	{ "--storage-driver", NULL },
	{ "--ulimit", NULL },
	{ "--variant", NULL },
	{ "--security-opt", "label=disable" },
};

int container_check_argument(const char *text, struct error *e)
{
	size_t len = strcspn(text, "=");

	for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
		if (strlen(allowed[i].name) != len || strncmp(text, allowed[i].name, len) != 0)
			continue;
		if (text[len] != '=')
			return error_set(e, EINVAL, "\"%s\" must carry its value: \"%s=...\"", text,
					 text);
		if (!allowed[i].value || strcmp(text + len + 1, allowed[i].value) == 0)
			return 0;
	}
	return error_set(e, EINVAL,
			 "\"%s\" may not be given to the container engine: it could open the "
			 "sandbox, or says what the policy decides (ambit-settings(5) lists what "
			 "may be)",
			 text);
}

int container_check_image(const char *text, struct error *e)
{
	bool good = ascii_alnum(*text) && strlen(text) <= IMAGE_NAME_MAX;

	for (const char *c = text; *c; c++)
		good &= ascii_alnum(*c) || strchr("._-/:@+", *c) != NULL;
	return good ? 0 : error_set(e, EINVAL, "\"%s\" is not the name of an image", text);
}
