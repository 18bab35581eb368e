/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places of ambit itself: what it remembers (trusted projects, the audit log). Nobody inside
 * may see or change them, whatever the rules say: who writes the trust store writes the
 * next policy, who holds the lock of the log stops everybody's runs.
 *
 * And the files that the policy of this run was read from (-s, -p, @FILE): the next run is
 * likely to be given the same, so they cannot be written to where others can. Those with names of
 * their own (.ambit.json, .config/ambit) are protected names.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "policy/build.h"

static const char *parent_of(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? "/" : arena_strndup(a, path, (size_t)(slash - path));
}

/* The log, canonical; NULL = none. */
static const char *log_file(struct builder *b)
{
	const char *path = b->p->audit_path;

	if (path && strcmp(path, "none") == 0)
		return NULL;
	if (!path)
		return b->p->state_dir ? path_join(b->a, b->p->state_dir, "audit.jsonl") : NULL;
	if (*path == '~')
		path = path_absolute(b->a,
				     rule_home(b, b->rows[setting_find("audit.path")].origin.layer),
				     path + 2);
	else
		path = path_absolute(b->a, "/", path);
	return path_join(b->a, rule_resolve(b, parent_of(b->a, path), &(bool){ false }),
			 strrchr(path, '/') + 1);
}

static int refuse(const struct builder *b, const char *dir, const char *what, struct error *e)
{
	return error_set(e, EINVAL,
			 "%s lies in %s, which holds records of ambit and is hidden from the "
			 "command: %s",
			 what, dir,
			 b->p->audit_path ? "give the log a directory of its own (audit.path)"
					  : "work elsewhere");
}

/* An allow rule that the lock makes void is a mistake that should be heard of. */
static int check_rules(struct builder *b, const char *dir, struct error *e)
{
	if (path_within(b->p->cwd, dir))
		return refuse(b, dir, "the working directory", e);
	for (size_t i = 0; i < b->p->fs.rules.n; i++) {
		const struct path_rule *r = &b->p->fs.rules.v[i];

		if (r->verdict == VERDICT_ALLOW && !r->glob && path_within(r->real, dir))
			return refuse(b, dir,
				      arena_printf(b->a, "%s (%s)", r->text,
						   origin_text(b->a, &r->origin)),
				      e);
	}
	return 0;
}

static int hide(struct builder *b, const char *dir, struct error *e)
{
	int r = check_rules(b, dir, e);

	if (r < 0)
		return r;
	*ARENA_PUSH(b->a, b->p->fs.rules.v, b->p->fs.rules.n) = (struct path_rule){
		.access = ACCESS_READ,
		.verdict = VERDICT_DENY,
		.locked = true,
		.text = dir,
		.path = dir,
		.real = dir,
		.why = "records of ambit",
		.origin = { .layer = LAYER_DEFAULT, .name = "default" },
	};
	return 0;
}

static bool is_writable(const struct builder *b, const char *path)
{
	struct ruling r;

	decide_by_rules(b->p, b->p->fs.rules.n, ACCESS_WRITE, path, &r);
	return r.verdict == VERDICT_ALLOW;
}

/* A link on the way to the file that the command could lead elsewhere; NULL = none. */
static const char *loose_link(struct builder *b, const char *path)
{
	const char *at = "/";

	for (const char *s = path; *s; s += strcspn(s, "/")) {
		const char *next, *here;

		s += strspn(s, "/");
		here = path_join(b->a, at, arena_strndup(b->a, s, strcspn(s, "/")));
		next = rule_resolve(b, here, &(bool){ false });
		if (strcmp(here, next) != 0 && is_writable(b, here))
			return here;
		at = next;
	}
	return NULL;
}

static int keep_file(struct builder *b, const char *file, struct error *e)
{
	const char *path = path_absolute(b->a, b->p->cwd, file), *link = loose_link(b, path);
	struct path_rule rule = {
		.access = ACCESS_WRITE,
		.verdict = VERDICT_DENY,
		.text = path,
		.path = path,
		.why = "policy of the next run",
		.origin = { .layer = LAYER_DEFAULT, .name = "default" },
	};

	if (link)
		return error_set(e, EINVAL,
				 "%s: %s is a symbolic link that the command could lead elsewhere: "
				 "name the file itself",
				 file, link);
	rule.real = rule_resolve(b, path, &rule.absent);
	if (!rule.absent && is_writable(b, rule.real))
		*ARENA_PUSH(b->a, b->p->fs.rules.v, b->p->fs.rules.n) = rule;
	return 0;
}

int own_finish(struct builder *b, struct error *e)
{
	const char *dir;
	int r = 0;

	for (size_t i = 0; i < b->read_from.n && r == 0; i++)
		r = keep_file(b, b->read_from.v[i].text, e);
	if (r < 0)
		return r;
	if (b->in->state_dir) {
		b->p->state_dir = rule_resolve(b, b->in->state_dir, &(bool){ false });
		r = hide(b, b->p->state_dir, e);
	}
	b->p->audit_file = log_file(b);
	if (r < 0 || !b->p->audit_file)
		return r;
	dir = parent_of(b->a, b->p->audit_file);
	return b->p->state_dir && strcmp(dir, b->p->state_dir) == 0 ? 0 : hide(b, dir, e);
}
