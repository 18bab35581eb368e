/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May this path be read or written? The order of precedence is in policy.h. One
 * pass over the rules per question; nothing is allocated, so that it can be asked from
 * anywhere.
 */
#include <limits.h>
#include <string.h>

#include "policy/build.h"
#include "policy/match_path.h"

/* A function of its own: zeroing its buffer would cost every plain rule. */
static __attribute__((noinline)) int glob_depth(const char *pattern, const char *path)
{
	char part[PATH_MAX];
	size_t n = strlen(path);

	if (n >= sizeof(part) || !pattern_covers(pattern, path))
		return -1;
	/* the deepest ancestor that matches is the most specific reading */
	memcpy(part, path, n + 1);
	while (!pattern_matches(pattern, part)) {
		char *slash = strrchr(part, '/');

		if (!slash || slash == part)
			return 0;
		*slash = '\0';
	}
	return (int)path_depth(part);
}

/* How deep the part of the path is that the rule names; -1: it does not apply. */
static int match_depth(const struct path_rule *rule, const char *path)
{
	if (rule->glob)
		return glob_depth(rule->real, path);
	return path_within(path, rule->real) ? (int)path_depth(rule->real) : -1;
}

struct contest {
	const struct path_rule *rule;
	int depth;
};

/* Deeper, then later layer, then a plain path, then the deny. */
static void contest_enter(struct contest *c, const struct path_rule *rule, int depth)
{
	const struct path_rule *best = c->rule;
	bool wins = true;

	if (best) {
		if (depth != c->depth)
			wins = depth > c->depth;
		else if (rule->origin.layer != best->origin.layer)
			wins = rule->origin.layer > best->origin.layer;
		else if (rule->glob != best->glob)
			wins = !rule->glob;
		else
			wins = rule->verdict == VERDICT_DENY || best->verdict == VERDICT_ALLOW;
	}
	if (wins)
		*c = (struct contest){ rule, depth };
}

struct scan {
	struct contest read; /* all rules about reading */
	struct contest trusted; /* the same without those of untrusted projects */
	/* the same among those of the managed file, and with those of its profiles: theirs is the
	 * last word, in this order, so that a profile opens nothing that the file itself denies */
	struct contest managed, with_profiles;
	struct contest own; /* the places of ambit itself: nobody has a say there */
	struct contest allow_write, deny_write;
};

static void scan_rules(const struct policy *p, size_t n_rules, const char *path, struct scan *s)
{
	for (size_t i = 0; i < n_rules; i++) {
		const struct path_rule *rule = &p->fs.rules.v[i];
		int depth = match_depth(rule, path);

		if (depth < 0)
			continue;
		if (rule->access == ACCESS_WRITE && rule->verdict == VERDICT_DENY) {
			/* any of them decides; a locked one is the best to name */
			if (!s->deny_write.rule || rule->locked)
				s->deny_write = (struct contest){ rule, depth };
			continue;
		}
		if (rule->access == ACCESS_WRITE && !rule->origin.untrusted)
			contest_enter(&s->allow_write, rule, depth);
		contest_enter(&s->read, rule, depth);
		if (!rule->origin.untrusted)
			contest_enter(&s->trusted, rule, depth);
		if (rule->origin.layer == LAYER_MANAGED)
			contest_enter(&s->managed, rule, depth);
		if (layer_is_managed(rule->origin.layer))
			contest_enter(&s->with_profiles, rule, depth);
		if (rule->origin.layer == LAYER_DEFAULT && rule->locked)
			s->own = (struct contest){ rule, depth };
	}
}

/* Depth of the private directory that path lies in, -1 when in none. */
static int private_depth(const struct policy *p, const char *path)
{
	if (p->fs.home == HOME_PRIVATE && path_within(path, p->home))
		return (int)path_depth(p->home);
	if (p->fs.tmp == TMP_PRIVATE && path_within(path, "/tmp"))
		return 1;
	if (p->fs.tmp == TMP_PRIVATE && path_within(path, "/var/tmp"))
		return 2;
	if (path_within(path, "/run"))
		return 1;
	return -1;
}

/* Who decides about reading. */
static const struct contest *last_word(const struct scan *s)
{
	if (s->own.rule)
		return &s->own;
	if (s->managed.rule && s->managed.rule->locked)
		return &s->managed;
	if (s->with_profiles.rule && s->with_profiles.rule->locked)
		return &s->with_profiles;
	/*
	 * A project's allow rule was admitted because the layers below had it open. What layers
	 * above shut stays shut: its exceptions are from its own denies only.
	 */
	if (s->trusted.rule && s->trusted.rule->verdict == VERDICT_DENY)
		return &s->trusted;
	return &s->read;
}

/* Does a rule bring the path back into the private directory? The project's own word is not enough. */
static bool is_brought_back(const struct scan *s, const struct contest *best, int private)
{
	if (!best->rule || best->depth < private)
		return false;
	return best->rule->verdict == VERDICT_DENY ||
	       (s->trusted.rule && s->trusted.depth >= private);
}

static void rule_on_read(const struct policy *p, const struct scan *s, const char *path,
			 struct ruling *ret)
{
	const struct contest *best = last_word(s);
	int private = private_depth(p, path);

	if (private >= 0 && !is_brought_back(s, best, private)) {
		*ret = (struct ruling){ VERDICT_DENY, NULL, (unsigned)private,
					"the sandbox has its own private directory here", true };
	} else if (!best->rule) {
		*ret = (struct ruling){ VERDICT_ALLOW, NULL, 0, "nothing denies it", false };
	} else {
		*ret = (struct ruling){ best->rule->verdict, best->rule, (unsigned)best->depth,
					best->rule->verdict == VERDICT_DENY ? "hidden by a rule"
									    : "allowed by a rule",
					false };
		if (best->rule->why)
			ret->reason = best->rule->why;
	}
}

static bool is_shared_tmp(const struct policy *p, const char *path)
{
	return p->fs.tmp == TMP_SHARED &&
	       (path_within(path, "/tmp") || path_within(path, "/var/tmp"));
}

void decide_by_rules(const struct policy *p, size_t n_rules, enum access access, const char *path,
		     struct ruling *ret)
{
	struct scan s = { 0 };

	scan_rules(p, n_rules, path, &s);
	rule_on_read(p, &s, path, ret);
	if (access == ACCESS_READ)
		return;
	if (s.deny_write.rule)
		*ret = (struct ruling){ VERDICT_DENY, s.deny_write.rule,
					(unsigned)s.deny_write.depth,
					s.deny_write.rule->why ? s.deny_write.rule->why
							       : "writing is denied by a rule",
					false };
	else if (ret->verdict == VERDICT_ALLOW && !s.allow_write.rule && is_shared_tmp(p, path))
		*ret = (struct ruling){ VERDICT_ALLOW, NULL, 0, "filesystem.tmp is shared", false };
	else if (ret->verdict == VERDICT_ALLOW && !s.allow_write.rule)
		*ret = (struct ruling){ VERDICT_DENY, NULL, 0, "outside the writable directories",
					false };
	else if (ret->verdict == VERDICT_ALLOW)
		*ret = (struct ruling){ VERDICT_ALLOW, s.allow_write.rule,
					(unsigned)s.allow_write.depth, "inside a writable path",
					false };
}

const struct path_rule *decide_locked(const struct policy *p, enum access access, const char *path)
{
	const struct path_rule *rule;
	struct scan s = { 0 };

	scan_rules(p, p->fs.rules.n, path, &s);
	rule = s.deny_write.rule;
	if (access == ACCESS_WRITE && rule && rule->locked)
		return rule;
	rule = last_word(&s)->rule;
	return rule && rule->locked ? rule : NULL;
}

void policy_decide_path(const struct policy *p, enum access access, const char *path,
			struct decision *ret)
{
	struct ruling r;

	decide_by_rules(p, p->fs.rules.n, access, path, &r);
	*ret = (struct decision){ .verdict = r.verdict, .rule = r.rule, .reason = r.reason };
	if (access == ACCESS_READ)
		return;
	/* what is written there is the sandbox's own and goes with it */
	if (r.private_area)
		ret->verdict = VERDICT_ALLOW;
	if (r.verdict != VERDICT_ALLOW)
		return;
	ret->protected = protect_match(p, r.depth, path);
	if (ret->protected) {
		ret->verdict = VERDICT_DENY;
		ret->reason = ret->protected->reason;
	}
}
