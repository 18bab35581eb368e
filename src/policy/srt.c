/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/srt.h"

#include <errno.h>
#include <string.h>

#include "policy/build.h"

/* The keys that sandbox-runtime wants spelt out. */
static const char *const required[][2] = {
	{ "network", "allowedDomains" }, { "network", "deniedDomains" },
	{ "filesystem", "denyRead" },    { "filesystem", "allowWrite" },
	{ "filesystem", "denyWrite" },
};

/* Where npm and Claude Code write their logs; only if they are there. */
static const char *const log_dirs[] = { "/.npm/_logs", "/.claude/debug" };

static const struct origin origin = { .layer = LAYER_DEFAULT, .name = "default" };

static void add_writable(struct builder *b, const char *path, const char *why)
{
	struct path_rule rule = { .access = ACCESS_WRITE,
				  .verdict = VERDICT_ALLOW,
				  .optional = true,
				  .text = path,
				  .path = path,
				  .why = why,
				  .origin = origin };

	rule.real = rule_resolve(b, path, &rule.absent);
	*ARENA_PUSH(b->a, b->p->fs.rules.v, b->p->fs.rules.n) = rule;
}

static void add_variable(struct builder *b, const char *entry)
{
	struct env_settings *set = &b->p->env.set;
	size_t n = strcspn(entry, "=");

	*ARENA_PUSH(b->a, set->v, set->n) =
		(struct env_setting){ arena_strndup(b->a, entry, n), entry + n + 1, origin };
}

void srt_add_defaults(struct builder *b)
{
	const struct srt_inputs *in = b->in->srt;
	struct policy *p = b->p;

	p->fs.tmp = TMP_HOST;
	p->fs.keep_named = true; /* there, allowWrite opens no such name */
	p->env.inherit = ENV_ALL;
	p->network.mode = NETWORK_ALLOWLIST;
	p->network.allow_private_addresses = true;
	p->network.deny_own_addresses = true;
	add_writable(b, in->tmpdir, "temporary files");
	for (size_t i = 0; i < ARRAY_LEN(log_dirs); i++)
		add_writable(b, arena_printf(b->a, "%s%s", p->home, log_dirs[i]), "logs");
	for (char *const *v = in->environment; v && *v; v++)
		add_variable(b, *v);
	/* not one of its names: there, what may be written is the file's to say */
	for (size_t i = 0; i < p->fs.n_protected; i++) {
		if (strcmp(p->fs.protected[i].pattern, ".env") == 0) {
			p->fs.protected[i].lifted = true;
			p->fs.protected[i].lifted_by = origin;
		}
	}
}

int srt_check_file(const struct source *s, const struct node *root, struct error *e)
{
	_cleanup_buf_ struct buf missing = BUF_INIT(512);

	for (size_t i = 0; i < ARRAY_LEN(required); i++) {
		const struct node *group = tree_get(root, required[i][0]);

		if (!group || group->kind != NODE_MAP || !tree_get(group, required[i][1]))
			buf_printf(&missing, "%s%s.%s", missing.len ? ", " : "", required[i][0],
				   required[i][1]);
	}
	if (missing.len == 0)
		return 0;
	return error_set(e, EINVAL, "%s: required: %s", s->file, buf_str(&missing));
}

static bool names_the_same(const struct path_rule *a, const struct path_rule *b)
{
	return !a->glob && !b->glob && strcmp(a->real, b->real) == 0 &&
	       a->origin.layer == b->origin.layer;
}

/* Of a path that is in both lists, allowRead is meant; with us it would be the deny. */
static bool is_reopened(const struct path_rules *rules, const struct path_rule *deny)
{
	if (deny->access != ACCESS_READ || deny->verdict != VERDICT_DENY || deny->locked)
		return false;
	for (size_t i = 0; i < rules->n; i++) {
		const struct path_rule *r = &rules->v[i];

		if (r->access == ACCESS_READ && r->verdict == VERDICT_ALLOW &&
		    names_the_same(r, deny))
			return true;
	}
	return false;
}

/* A default must not open what the file hides. */
static bool is_hidden_default(const struct path_rules *rules, const struct path_rule *def)
{
	if (def->origin.layer != LAYER_DEFAULT || !def->why || strcmp(def->why, "logs") != 0)
		return false;
	for (size_t i = 0; i < rules->n; i++) {
		const struct path_rule *r = &rules->v[i];

		if (r->access == ACCESS_READ && r->verdict == VERDICT_DENY && !r->glob &&
		    path_within(def->real, r->real))
			return true;
	}
	return false;
}

void srt_finish(struct builder *b)
{
	struct path_rules *rules = &b->p->fs.rules, kept = { 0 };

	for (size_t i = 0; i < rules->n; i++) {
		const struct path_rule *r = &rules->v[i];

		if (is_reopened(rules, r) || is_hidden_default(rules, r))
			continue;
		if (r->absent && r->access == ACCESS_WRITE && r->verdict == VERDICT_ALLOW &&
		    r->origin.layer == LAYER_FILE)
			builder_note(b, &r->origin,
				     "allowWrite %s: it does not exist, and is not writable "
				     "unless a directory above it is",
				     r->text);
		*ARENA_PUSH(b->a, kept.v, kept.n) = *r;
	}
	*rules = kept;
}
