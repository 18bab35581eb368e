/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network lists, changed while the command runs. The new text goes through the
 * whole of policy_load(), so that it is checked as any settings file is and the
 * managed file's locks hold. Of the outcome only the entries that the text itself
 * gave are taken: everything else comes from the policy the run began with. Profiles
 * and @FILE lists are thereby never read a second time for what they allow: they may
 * lie where the command writes.
 */
#include <errno.h>
#include <string.h>

#include "policy/build.h"

#define FILE_LAYERS (1u << LAYER_USER | 1u << LAYER_PROJECT | 1u << LAYER_FILE)
#define LINE_LAYERS (1u << LAYER_FILE)

static bool is_of(const struct origin *o, unsigned layers)
{
	return layers & 1u << o->layer;
}

/* The node of a dotted key; NULL when the text does not have it. */
static const struct node *find_node(struct arena *a, const struct node *root, const char *key)
{
	while (root && root->kind == NODE_MAP) {
		size_t n = strcspn(key, ".");

		root = tree_get(root, arena_strndup(a, key, n));
		if (!key[n])
			return root && root->kind != NODE_NULL ? root : NULL;
		key += n + 1;
	}
	return NULL;
}

static bool is_compared(const struct setting *row)
{
	return !row->live && row->type != SETTING_REFUSED && row->type != SETTING_ACCEPTED &&
	       row->type != SETTING_LOCKED;
}

/* What the text says about other things must be what holds already. */
static int check_others(const struct policy *start, const struct policy *next,
			const struct live_text *line, const struct node *root, struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();

	for (size_t i = 0; i < settings_count; i++) {
		_cleanup_buf_ struct buf was = BUF_INIT(BUF_MAX_TEXT), is = BUF_INIT(BUF_MAX_TEXT);
		const struct setting *row = &settings_table[i];
		const struct node *n = is_compared(row) ? find_node(a, root, row->key) : NULL;

		if (!n)
			continue;
		policy_print_row(start, i, FILE_LAYERS, &was);
		policy_print_row(next, i, LINE_LAYERS, &is);
		if (strcmp(buf_str(&was), buf_str(&is)) != 0)
			return error_set(e, EPERM,
					 "%s:%u:%u: %s cannot change while the command runs",
					 line->name, n->line, n->column, row->key);
	}
	return 0;
}

static void take_hosts(struct arena *a, struct host_rules *to, const struct host_rules *from,
		       unsigned layers)
{
	for (size_t i = 0; i < from->n; i++) {
		if (is_of(&from->v[i].origin, layers))
			*ARENA_PUSH(a, to->v, to->n) = from->v[i];
	}
}

static void take_texts(struct arena *a, struct text_rules *to, const struct text_rules *from,
		       unsigned layers)
{
	for (size_t i = 0; i < from->n; i++) {
		if (is_of(&from->v[i].origin, layers))
			*ARENA_PUSH(a, to->v, to->n) = from->v[i];
	}
}

static const struct policy *combine(struct arena *a, const struct policy *start,
				    const struct policy *next)
{
	const struct policy_network *from[] = { &start->network, &next->network };
	const unsigned layers[] = { ~FILE_LAYERS, LINE_LAYERS };
	struct policy *p = arena_alloc(a, sizeof(*p));
	struct policy_network *net = &p->network;

	*p = *start;
	p->notes = next->notes;
	if (is_of(&start->value_origin[setting_find("network.strictAllowlist")],
		  FILE_LAYERS | 1u << LAYER_DEFAULT))
		net->strict_allowlist = next->network.strict_allowlist;
	net->denied_reasons = next->network.denied_reasons;
	net->allowed = net->denied = (struct host_rules){ 0 };
	net->denied_resolved = (struct text_rules){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		take_hosts(a, &net->allowed, &from[i]->allowed, layers[i]);
		take_hosts(a, &net->denied, &from[i]->denied, layers[i]);
		take_texts(a, &net->denied_resolved, &from[i]->denied_resolved, layers[i]);
	}
	return p;
}

/* Single values of variables and options count above the text; their lists are not read again. */
static void keep_values(struct arena *a, struct policy_inputs *in)
{
	struct setting_text *kept = NULL;
	size_t n = 0;

	for (size_t i = 0; i < in->n_settings; i++) {
		int row = setting_find(in->settings[i].key);

		if (row >= 0 && setting_is_scalar(&settings_table[row]))
			*ARENA_PUSH(a, kept, n) = in->settings[i];
	}
	in->settings = kept;
	in->n_settings = n;
}

int policy_load_live(struct arena *a, const struct policy_inputs *in, const struct policy *start,
		     const struct live_text *line, const struct policy **ret, struct error *e)
{
	size_t mode = (size_t)setting_find("network.mode");
	struct policy_inputs inputs = *in;
	const struct policy *next;
	const struct node *root;
	int r = tree_parse_part(a, line->name, line->text, line->len, line->lines_before, &root, e);

	if (r < 0)
		return r;
	if (start->network.mode != NETWORK_ALLOWLIST)
		return error_set(e, EPERM,
				 "%s: network.mode is %s for the whole run (%s): there are no "
				 "lists to change",
				 line->name, settings_table[mode].values[start->network.mode],
				 origin_text(a, &start->value_origin[mode]));
	inputs.user_file = inputs.project_file = NULL;
	inputs.only_file = line->name;
	inputs.only_text = line->text;
	inputs.only_len = line->len;
	inputs.only_lines_before = line->lines_before;
	keep_values(a, &inputs);
	r = policy_load(a, &inputs, &next, e);
	if (r >= 0)
		r = check_others(start, next, line, root, e);
	if (r < 0)
		return r;
	*ret = combine(a, start, next);
	return 0;
}
