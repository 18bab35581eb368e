/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax of Claude Code's permission rules. Pure. */
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "policy/claude.h"

static const struct {
	const char *name;
	enum claude_tool tool;
} tools[] = {
	{ "Read", CLAUDE_READ },      { "Edit", CLAUDE_EDIT },         { "Write", CLAUDE_EDIT },
	{ "MultiEdit", CLAUDE_EDIT }, { "NotebookEdit", CLAUDE_EDIT }, { "WebFetch", CLAUDE_FETCH },
	{ "Bash", CLAUDE_BASH },
};

/* "Read" alone is about the tool, not about files: no rule for a sandbox. */
int claude_rule_parse(struct arena *a, const char *text, struct claude_rule *ret, struct error *e)
{
	size_t n = strcspn(text, "("), len = strlen(text);

	*ret = (struct claude_rule){ .tool = CLAUDE_OTHER };
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		if (strlen(tools[i].name) == n && memcmp(tools[i].name, text, n) == 0)
			ret->tool = tools[i].tool;
	}
	if (ret->tool == CLAUDE_OTHER || n == len) {
		ret->tool = CLAUDE_OTHER;
		return 0;
	}
	if (text[len - 1] != ')')
		return error_set(e, EINVAL, "\"%s\": the closing parenthesis is missing", text);
	ret->spec = arena_strndup(a, text + n + 1, len - n - 2);
	if (!*ret->spec)
		return error_set(e, EINVAL, "\"%s\": nothing in the parentheses", text);
	return 0;
}

const char *claude_rule_path(struct arena *a, const char *spec, bool *ret_of_root,
			     const char **ret_deep)
{
	size_t len = strlen(spec);

	*ret_deep = NULL;
	/* "dir/" is the directory, with what is in it */
	while (len > 1 && spec[len - 1] == '/')
		len--;
	spec = arena_strndup(a, spec, len);
	*ret_of_root = *spec == '/' && spec[1] != '/';
	if (*ret_of_root)
		return spec[1] ? spec + 1 : ".";
	if (*spec == '/')
		return spec + 1;
	if (*spec != '~' && !strchr(spec, '/') && strcmp(spec, "**") != 0)
		*ret_deep = arena_printf(a, "**/%s", spec);
	return spec;
}
