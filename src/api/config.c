/* SPDX-License-Identifier: Apache-2.0 */
/* The config: settings in the order in which they were given, and nothing else. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/internal.h"
#include "base/path.h"
#include "base/text.h"
#include "policy/schema.h"

struct ambit_config *ambit_config_new(void)
{
	return calloc(1, sizeof(struct ambit_config));
}

void ambit_config_free(struct ambit_config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_settings; i++) {
		free(c->settings[i].key);
		free(c->settings[i].value);
	}
	free(c->settings);
	free(c->directory);
	free(c->file);
	free(c->program);
	free(c);
}

int ambit_config_set(struct ambit_config *c, const char *key, const char *value)
{
	struct api_setting *more, s;

	if (!c || !key || !value || setting_find(key) < 0)
		return -EINVAL;
	more = reallocarray(c->settings, c->n_settings + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->settings = more;
	s = (struct api_setting){ strdup(key), strdup(value) };
	if (!s.key || !s.value) {
		free(s.key);
		free(s.value);
		return -ENOMEM;
	}
	c->settings[c->n_settings++] = s;
	return 0;
}

int ambit_config_allow_read(struct ambit_config *c, const char *path)
{
	return ambit_config_set(c, "filesystem.allowRead", path);
}

int ambit_config_deny_read(struct ambit_config *c, const char *path)
{
	return ambit_config_set(c, "filesystem.denyRead", path);
}

int ambit_config_allow_write(struct ambit_config *c, const char *path)
{
	return ambit_config_set(c, "filesystem.allowWrite", path);
}

int ambit_config_deny_write(struct ambit_config *c, const char *path)
{
	return ambit_config_set(c, "filesystem.denyWrite", path);
}

int ambit_config_deny(struct ambit_config *c, const char *pattern)
{
	int r = ambit_config_deny_read(c, pattern);

	return r < 0 ? r : ambit_config_deny_write(c, pattern);
}

int ambit_config_network(struct ambit_config *c, const char *mode)
{
	return ambit_config_set(c, "network.mode", mode);
}

int ambit_config_allow_domain(struct ambit_config *c, const char *domain)
{
	return ambit_config_set(c, "network.allowedDomains", domain);
}

int ambit_config_deny_domain(struct ambit_config *c, const char *domain)
{
	return ambit_config_set(c, "network.deniedDomains", domain);
}

static int set_number(struct ambit_config *c, const char *key, unsigned value)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", value);
	return ambit_config_set(c, key, text);
}

int ambit_config_proxy_ports(struct ambit_config *c, unsigned http, unsigned socks)
{
	int r = http > UINT16_MAX || socks > UINT16_MAX ? -EINVAL : 0;

	if (r == 0 && http)
		r = set_number(c, "network.httpProxyPort", http);
	if (r == 0 && socks)
		r = set_number(c, "network.socksProxyPort", socks);
	return r;
}

int ambit_config_exclude_command(struct ambit_config *c, const char *command)
{
	return ambit_config_set(c, "excludedCommands", command);
}

int ambit_config_limit(struct ambit_config *c, const char *name, const char *value)
{
	char key[32];

	if (!name || snprintf(key, sizeof(key), "limits.%s", name) >= (int)sizeof(key))
		return -EINVAL;
	return ambit_config_set(c, key, value);
}

static int replace(char **where, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		return -ENOMEM;
	free(*where);
	*where = copy;
	return 0;
}

int ambit_config_directory(struct ambit_config *c, const char *directory)
{
	return c ? replace(&c->directory, directory) : -EINVAL;
}

int ambit_config_file(struct ambit_config *c, const char *path)
{
	return c ? replace(&c->file, path) : -EINVAL;
}

int ambit_config_program(struct ambit_config *c, const char *path)
{
	return c ? replace(&c->program, path) : -EINVAL;
}

/* --- from here to a policy ----------------------------------------------------- */

int api_fail(struct ambit_error *ret, const struct error *e)
{
	if (ret) {
		*ret = (struct ambit_error){ .code = e->code,
					     .exit_code = e->exit_code ? e->exit_code : 125 };
		text_copy(ret->text, sizeof(ret->text), e->text);
	}
	return e->code ? -e->code : -EIO;
}

/* Where this library's own file is: the address of any function of it tells. */
int api_program(const struct ambit_config *c, struct arena *a, const char **ret, struct error *e)
{
	char path[PATH_MAX], *slash;
	Dl_info info;

	if (!c)
		return error_set(e, EINVAL, "there is no config");
	if (c->program) {
		*ret = c->program;
	} else if (!dladdr((void *)(uintptr_t)api_program, &info) ||
		   !realpath(info.dli_fname, path)) {
		return error_set(e, ENOENT, "libambit cannot find its own file");
	} else if (path_within(path, AMBIT_BUILD_DIR)) {
		*ret = AMBIT_BUILD_DIR "/src/cli/ambit";
	} else {
		slash = strrchr(path, '/');
		*slash = '\0';
		*ret = path_absolute(a, path, AMBIT_BIN_FROM_LIB "/ambit");
	}
	if (access(*ret, X_OK) < 0)
		return error_set(e, errno, "%s: %s (ambit_config_program() says where it is)", *ret,
				 strerror(errno));
	return 0;
}

int api_policy(const struct ambit_config *c, struct arena *a, const char *directory,
	       const struct policy **ret, struct error *e)
{
	struct inputs_request req = { 0 };
	struct setting_text *v;
	struct policy_inputs in;
	int r = api_program(c, a, &req.program, e);

	if (r < 0)
		return r;
	v = arena_array(a, c->n_settings + 1, sizeof(*v));
	req.settings = c->file;
	req.chdir = directory ? directory : c->directory;
	req.options = v;
	req.n_options = c->n_settings;

	for (size_t i = 0; i < c->n_settings; i++)
		v[i] = (struct setting_text){ .key = c->settings[i].key,
					      .value = c->settings[i].value,
					      .source = "libambit",
					      .layer = LAYER_OPTION };
	r = inputs_gather(a, &req, environ, &in, e);
	return r < 0 ? r : policy_load(a, &in, ret, e);
}
