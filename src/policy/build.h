/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of policy_load(): a policy under construction. Private to src/policy.
 *
 *   tree.c   text -> nodes            value.c  node -> single value
 *   apply.c  nodes -> rows            lists.c  node -> entry of a list
 *   merge.c  may this source do that? rules.c  text -> path rule
 *   load.c   which sources, in which order
 *   live.c   the network lists, once more
 */
#pragma once

#include "policy/policy.h"
#include "policy/schema.h"
#include "policy/tree.h"

/* A single value of any type; which member counts follows from the row. */
struct value {
	uint64_t u; /* bool, enum, port, bytes, milliseconds, count */
	double d; /* SETTING_NUMBER */
	const char *s; /* SETTING_STRING; NULL = unset */
};

enum source_mode {
	SOURCE_FULL,
	SOURCE_NARROWING, /* an untrusted project: what widens is left out, with a note */
	SOURCE_TIGHTER_VALUES, /* a profile again, over the files: only single values that narrow */
};

/* One settings file, profile, option or variable while it is applied. */
struct source {
	enum layer layer;
	enum source_mode mode;
	const char *name; /* for origins: the file, profile or option */
	const char *file; /* for error messages */
	const char *base; /* where relative paths start */
	const char *trust_dir; /* of a project: what `ambit trust` would be told */
	bool strict; /* breaking a lock is an error, not a note */
	bool no_escapes; /* in paths, a backslash is a backslash */
	bool by_variable; /* ~ is HOME, though the layer is the managed one */
	bool foreign; /* another program's file: paths that are not there are skipped */
	unsigned *left_out; /* SOURCE_NARROWING: counts what widens, instead of a note for each */
};

struct row_state {
	struct origin origin; /* of the present value */
	bool managed; /* the managed file or its profile gave a value: nobody may go beyond it */
	struct value managed_value;
	struct origin managed_origin;
	bool locked; /* named in the managed file's `locked` */
	struct origin locked_origin;
};

struct builder {
	struct arena *a;
	const struct policy_inputs *in;
	struct policy *p;
	struct row_state *rows; /* settings_count of them */
	const char *account_home; /* canonical; NULL = not asked for yet */
	const char *known; /* a canonical directory, where rule_resolve() was last */
	/* before the untrusted project began: what counts as allowed already */
	size_t lower_rules, lower_hosts;
	bool managed_denies; /* there are locked rules to look out for */
	bool claude_managed_rules; /* only managed permission rules of Claude's count */
	struct text_rules read_from; /* files that this run was told to take the policy from */
};

struct origin source_origin(const struct source *s, const struct node *n);
/* "FILE:LINE:COL: KEY: what", or "--option: KEY: what" */
int source_fail(const struct source *s, const struct node *n, const char *key, struct error *e,
		const char *fmt, ...) PRINTF_LIKE(5, 6);
/* Always -EINVAL: the analysers should know. */
#define source_fail(...) ((void)(source_fail)(__VA_ARGS__), -EINVAL)
/* The same around a message that is in e already. */
int source_wrap(const struct source *s, const struct node *n, const char *key, struct error *e);
void builder_note(struct builder *b, const struct origin *o, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

/* load.c: is this very text of a project's file trusted? Noted for `ambit trust` in any case. */
bool builder_trusts(struct builder *b, const char *file, const char *text, size_t len);

/*
 * load.c: a project's file is one that lies in it. What messages show of another's would be for whoever
 * reads those, and some are read without end (/dev/stdin).
 */
int builder_check_project_file(const struct builder *b, const char *dir, const char *file,
			       struct error *e) NODISCARD;

/* load.c: an absolute path, made canonical. */
const char *builder_canonical(const struct builder *b, const char *path);

/* load.c: the policy is read from this file; relative to the working directory. */
void builder_reads(struct builder *b, const char *file);

/* value.c */
int value_parse(const struct source *s, const struct setting *row, const struct node *n,
		struct value *ret, struct error *e) NODISCARD;
struct value value_get(const struct policy *p, const struct setting *row);
void value_put(struct policy *p, const struct setting *row, struct value v);
bool value_equal(const struct setting *row, struct value a, struct value b);
/* Does going from `from` to `to` allow more? */
bool value_widens(const struct setting *row, struct value from, struct value to);
bool value_narrows(const struct setting *row, struct value from, struct value to);
/* Which of row->values the node is; else an error with the nearest. */
int value_find_word(const struct source *s, const struct setting *row, const struct node *n,
		    uint64_t *ret, struct error *e) NODISCARD;
bool setting_is_scalar(const struct setting *row);
/* The text of a node that must be a string. */
int node_string(const struct source *s, const char *key, const struct node *n, const char **ret,
		struct error *e) NODISCARD;

/*
 * merge.c. 1: take it, 0: leave it out (a note was made where one is due), < 0: error.
 */
int merge_value(struct builder *b, const struct source *s, size_t row, const struct node *n,
		struct value v, struct error *e) NODISCARD;
/* An untrusted project would widen: left out with a note. Always 0. */
int merge_widening(struct builder *b, const struct source *s, const char *key,
		   const struct node *n);
/* covered: what the entry allows is allowed already */
int merge_admit(struct builder *b, const struct source *s, size_t row, const struct node *n,
		bool covered, struct error *e) NODISCARD;
/* Do the managed file's locks bind this source? */
bool merge_is_bound(const struct source *s);
/* The entry goes against a rule of the managed file. */
int merge_violation(struct builder *b, const struct source *s, const char *key,
		    const struct node *n, const struct origin *by, struct error *e) NODISCARD;

/* lists.c: one entry of a list row */
int list_add(struct builder *b, const struct source *s, size_t row, const struct node *n,
	     struct error *e) NODISCARD;
int map_add(struct builder *b, const struct source *s, size_t row, const struct node *n,
	    struct error *e) NODISCARD;

/* print_json.c: one row, lists with the entries of these layers only (a bit each) */
void policy_print_row(const struct policy *p, size_t row, unsigned layers, struct buf *out);

/* apply.c */
int apply_tree(struct builder *b, const struct source *s, const struct node *root, struct error *e)
	NODISCARD;
int apply_node(struct builder *b, const struct source *s, size_t row, const struct node *n,
	       struct error *e) NODISCARD;
int apply_text(struct builder *b, const struct source *s, const char *key, const char *value,
	       struct error *e) NODISCARD;

/* rules.c */
int rule_add(struct builder *b, const struct source *s, size_t row, const struct node *n,
	     struct error *e) NODISCARD;
/* What ~ stands for: HOME, in managed settings the home directory of the account, where that is known. */
const char *rule_home(struct builder *b, enum layer layer);
/* ~ and relative paths made absolute. */
int rule_expand(struct builder *b, const struct source *s, const char *text, const char **ret,
		struct error *e) NODISCARD;
/* The canonical form of an absolute and clean path. */
const char *rule_resolve(struct builder *b, const char *path, bool *ret_absent);
/* Sets real and absent by path. */
void rule_resolve_again(struct builder *b, struct path_rule *rule);

/* network.c */
int network_check_proxy_url(const char *text, struct error *e) NODISCARD;
int network_check_no_proxy(const char *text, struct error *e) NODISCARD;
void network_add_defaults(struct builder *b);
int network_finish(struct builder *b, struct error *e) NODISCARD;

/* defaults.c, protect.c */
void defaults_add_rules(struct builder *b);
void protect_add_defaults(struct builder *b);
int protect_add(struct builder *b, const struct source *s, size_t row, const struct node *n,
		struct error *e) NODISCARD;
int protect_lift(struct builder *b, const struct source *s, size_t row, const struct node *n,
		 struct error *e) NODISCARD;
int protect_finish(struct builder *b, struct error *e) NODISCARD;

/* own.c: the places of ambit itself, last of all */
int own_finish(struct builder *b, struct error *e) NODISCARD;

/*
 * decide.c: by the rules [0, n_rules) alone, without protected names; private
 * areas count as denied (their content is not the host's).
 */
struct ruling {
	enum verdict verdict;
	const struct path_rule *rule; /* NULL: no rule, see reason */
	unsigned depth; /* of the part of the path that the rule names */
	const char *reason;
	bool private_area;
};
void decide_by_rules(const struct policy *p, size_t n_rules, enum access access, const char *path,
		     struct ruling *ret);
/* The locked deny that nothing opens here, also below a private directory; NULL: there is none. */
const struct path_rule *decide_locked(const struct policy *p, enum access access, const char *path);
/* environment.c: an acceptable name for environment.set */
bool environment_name_ok(const char *name);
