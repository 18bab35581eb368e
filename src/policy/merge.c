/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a source may do to the policy that lies below it. Two walls: nothing goes
 * beyond what the managed file fixed, and an untrusted project only narrows.
 * The managed wall answers options and variables with an error, because
 * somebody asked for that very thing just now, and files with a note.
 */
#include <errno.h>
#include <stdio.h>

#include "base/text.h"
#include "policy/build.h"

bool merge_is_bound(const struct source *s)
{
	return s->layer != LAYER_DEFAULT && !layer_is_managed(s->layer);
}

int merge_violation(struct builder *b, const struct source *s, const char *key,
		    const struct node *n, const struct origin *by, struct error *e)
{
	struct origin o = source_origin(s, n);
	const char *where = origin_text(b->a, by);

	if (s->strict)
		return source_fail(s, n, key, e, "refused: fixed by the managed settings, %s",
				   where);
	builder_note(b, &o, "%s: %s is fixed by the managed settings, %s",
		     b->in->trusting ? "without effect" : "ignored", key, where);
	return 0;
}

/* "KEY: VALUE" as it stands in the file, or "KEY: NAME=VALUE". */
static const char *setting_as_written(struct arena *a, const char *key, const struct node *n)
{
	enum setting_type type = settings_table[setting_find(key)].type;
	bool named = type == SETTING_ENV || type == SETTING_REASONS;

	return arena_printf(a, "%s: %s%s%s", key, named ? n->key : "", named ? "=" : "",
			    n->text ? n->text : "");
}

int merge_widening(struct builder *b, const struct source *s, const char *key, const struct node *n)
{
	_cleanup_buf_ struct buf dir = BUF_INIT(BUF_MAX_TEXT);
	struct origin o = source_origin(s, n);

	if (s->left_out) {
		++*s->left_out;
		return 0;
	}
	if (b->in->trusting) {
		*ARENA_PUSH(b->a, b->p->widening.v, b->p->widening.n) = (struct text_rule){
			.text = setting_as_written(b->a, key, n),
			.origin = o,
		};
		return 0;
	}
	text_append_shell(&dir, s->trust_dir);
	builder_note(b, &o, "ignored: %s would widen the policy (accept with: ambit trust %s)", key,
		     buf_str(&dir));
	return 0;
}

int merge_admit(struct builder *b, const struct source *s, size_t row, const struct node *n,
		bool covered, struct error *e)
{
	const struct row_state *state = &b->rows[row];
	const struct setting *def = &settings_table[row];

	if (s->mode == SOURCE_TIGHTER_VALUES)
		return 0;
	if (state->locked && merge_is_bound(s))
		return merge_violation(b, s, def->key, n, &state->locked_origin, e);
	if (s->mode == SOURCE_NARROWING && def->widening == WIDEN_ADDING && !covered)
		return merge_widening(b, s, def->key, n);
	return 1;
}

/* 1: the value may be set */
static int admit_value(struct builder *b, const struct source *s, size_t row, const struct node *n,
		       struct value now, struct value v, struct error *e)
{
	const struct row_state *state = &b->rows[row];
	const struct setting *def = &settings_table[row];

	/* what only an untrusted project said until now has then been said by more than it */
	if (s->mode == SOURCE_TIGHTER_VALUES && !value_narrows(def, now, v) &&
	    !(state->origin.untrusted && value_equal(def, now, v)))
		return 0;
	if (state->locked && merge_is_bound(s) && !value_equal(def, now, v))
		return merge_violation(b, s, def->key, n, &state->locked_origin, e);
	if (state->managed && merge_is_bound(s) && value_widens(def, state->managed_value, v))
		return merge_violation(b, s, def->key, n, &state->managed_origin, e);
	if (s->mode == SOURCE_NARROWING && value_widens(def, now, v))
		return merge_widening(b, s, def->key, n);
	return 1;
}

int merge_value(struct builder *b, const struct source *s, size_t row, const struct node *n,
		struct value v, struct error *e)
{
	struct row_state *state = &b->rows[row];
	const struct setting *def = &settings_table[row];
	int r = admit_value(b, s, row, n, value_get(b->p, def), v, e);

	if (r <= 0)
		return r;
	value_put(b->p, def, v);
	state->origin = source_origin(s, n);
	if (layer_is_managed(s->layer)) {
		state->managed = true;
		state->managed_value = v;
		state->managed_origin = state->origin;
	}
	return 1;
}
