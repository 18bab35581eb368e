/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the list and map settings, type by type. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "policy/build.h"

static void *field(const struct builder *b, size_t row)
{
	return (char *)b->p + settings_table[row].offset;
}

/*
 * Hosts.
 */

/* Reachable already, so that naming it again does not widen. */
static bool host_allowed(const struct builder *b, const struct host_rule *rule)
{
	const struct policy_network *net = &b->p->network;

	if (net->mode == NETWORK_HOST)
		return true;
	for (size_t i = 0; i < b->lower_hosts; i++) {
		if (host_rule_covers(&net->allowed.v[i].rule, rule))
			return true;
	}
	return false;
}

/* The managed deny that makes an allowed entry dead, or NULL. */
static const struct host_rule_entry *managed_host(const struct builder *b,
						  const struct host_rule *rule)
{
	const struct host_rules *denied = &b->p->network.denied;

	for (size_t i = 0; i < denied->n; i++) {
		if (denied->v[i].locked && host_rule_covers(&denied->v[i].rule, rule))
			return &denied->v[i];
	}
	return NULL;
}

static int add_host(struct builder *b, const struct source *s, size_t row, const struct node *n,
		    struct error *e)
{
	const struct setting *def = &settings_table[row];
	struct host_rule_entry entry = { .origin = source_origin(s, n) };
	const struct host_rule_entry *against;
	struct host_rules *list = field(b, row);
	int r = node_string(s, def->key, n, &entry.text, e);

	if (r < 0)
		return r;
	if (host_rule_parse(entry.text, def->variant == HOSTS_DENIED, &entry.rule, e) < 0)
		return source_wrap(s, n, def->key, e);
	r = merge_admit(b, s, row, n,
			s->mode == SOURCE_NARROWING && def->variant == HOSTS_ALLOWED &&
				host_allowed(b, &entry.rule),
			e);
	if (r <= 0)
		return r;
	if (def->variant == HOSTS_ALLOWED && merge_is_bound(s)) {
		against = managed_host(b, &entry.rule);
		if (against)
			return merge_violation(b, s, def->key, n, &against->origin, e);
	}
	entry.locked = def->variant == HOSTS_DENIED && layer_is_managed(s->layer);
	*ARENA_PUSH(b->a, list->v, list->n) = entry;
	return 1;
}

/* Without the blanks around it; those inside are for the parser of hosts to refuse. */
static char *trim(char *text)
{
	static const char blanks[] = " \t\r";

	text += strspn(text, blanks);
	for (size_t n = strlen(text); n > 0 && strchr(blanks, text[n - 1]); n--)
		text[n - 1] = '\0';
	return text;
}

/* One line of an @FILE, without comment and blanks around; NULL at the end. */
static char *next_line(char **rest)
{
	char *line = strsep(rest, "\n");

	if (!line)
		return NULL;
	line[strcspn(line, "#")] = '\0';
	return trim(line);
}

static int add_host_file(struct builder *b, const struct source *s, size_t row, const char *path,
			 struct error *e)
{
	_cleanup_free_ char *text = NULL;
	const char *file = path_absolute(b->a, s->base, path);
	struct source lines = *s;
	struct node n = { .kind = NODE_TEXT };
	char *rest, *line;
	size_t len;
	int r = fd_read_file(AT_FDCWD, file, TREE_TEXT_MAX, &text, &len);

	if (r < 0)
		return error_set(e, -r, "%s: %s: %s", s->file, file, strerror(-r));
	if (strlen(text) != len)
		return error_set(e, EINVAL, "%s: %s: a NUL byte", s->file, file);
	builder_reads(b, file);
	lines.name = lines.file = file;
	rest = text;
	while ((line = next_line(&rest))) {
		n.line++;
		n.column = 1;
		if (!*line)
			continue;
		n.text = arena_strdup(b->a, line);
		r = add_host(b, &lines, row, &n, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* On the command line: a comma list, each part a host or @FILE. */
static int add_hosts_of_text(struct builder *b, const struct source *s, size_t row,
			     const struct node *n, struct error *e)
{
	char *rest = arena_strdup(b->a, n->text), *part;
	int r = 0;

	while (r >= 0 && (part = strsep(&rest, ","))) {
		struct node one = { .kind = NODE_TEXT };

		part = trim(part);
		one.text = part;
		if (!*part)
			continue;
		r = *part == '@' ? add_host_file(b, s, row, part + 1, e)
				 : add_host(b, s, row, &one, e);
	}
	return r;
}

/*
 * Texts, sockets, ports.
 */

static int add_text(struct builder *b, const struct source *s, size_t row, const struct node *n,
		    struct error *e)
{
	const struct setting *def = &settings_table[row];
	struct text_rules *list = field(b, row);
	struct text_rule entry = { .origin = source_origin(s, n) };
	int r = node_string(s, def->key, n, &entry.text, e);

	if (r < 0)
		return r;
	if (def->values && value_find_word(s, def, n, &(uint64_t){ 0 }, e) < 0)
		return -EINVAL;
	if (def->check && def->check(entry.text, e) < 0)
		return source_wrap(s, n, def->key, e);
	r = merge_admit(b, s, row, n, false, e);
	if (r <= 0)
		return r;
	*ARENA_PUSH(b->a, list->v, list->n) = entry;
	return 1;
}

/* "@name" is in the abstract namespace; everything else is a path. */
static int add_socket(struct builder *b, const struct source *s, size_t row, const struct node *n,
		      struct error *e)
{
	const char *key = settings_table[row].key;
	struct text_rules *list = field(b, row);
	struct text_rules *links = &b->p->network.unix_links;
	struct text_rule entry = { .origin = source_origin(s, n) };
	const char *text, *path = NULL;
	int r = node_string(s, key, n, &text, e);

	if (r < 0)
		return r;
	if (*text == '@') {
		entry.text = text;
	} else {
		if (rule_expand(b, s, text, &path, e) < 0)
			return source_wrap(s, n, key, e);
		entry.text = rule_resolve(b, path, &(bool){ false });
	}
	r = merge_admit(b, s, row, n, false, e);
	if (r <= 0)
		return r;
	if (path && strcmp(path, entry.text) != 0)
		*ARENA_PUSH(b->a, links->v, links->n) = (struct text_rule){ path, entry.origin };
	*ARENA_PUSH(b->a, list->v, list->n) = entry;
	return 1;
}

/* PORT, or HOSTPORT:PORT where the row takes it. */
static int parse_ports(const struct setting *row, const struct node *n, struct port_rule *ret)
{
	bool word = n->kind == NODE_NUMBER || n->kind == NODE_TEXT, mapped = false;
	char first[8] = { 0 };
	uint64_t host = 0, port = 0;
	size_t len;

	if (!word && n->kind != NODE_STRING)
		return -EINVAL;
	len = strcspn(n->text, ":");
	mapped = row->variant == PORTS_MAPPED && n->text[len] == ':';
	if (mapped ? len >= sizeof(first) : !word)
		return -EINVAL;
	if (mapped)
		memcpy(first, n->text, len);
	if (text_parse_u64(mapped ? n->text + len + 1 : n->text, UINT16_MAX, &port) < 0 ||
	    text_parse_u64(mapped ? first : n->text, UINT16_MAX, &host) < 0 || !port || !host)
		return -EINVAL;
	ret->port = (uint16_t)port;
	ret->host_port = (uint16_t)host;
	return 0;
}

static int add_port(struct builder *b, const struct source *s, size_t row, const struct node *n,
		    struct error *e)
{
	const struct setting *def = &settings_table[row];
	struct port_rules *list = field(b, row);
	struct port_rule entry = { .origin = source_origin(s, n) };
	int r = parse_ports(def, n, &entry);

	if (r < 0)
		return source_fail(s, n, def->key, e, "must be a port from 1 to 65535%s",
				   def->variant == PORTS_MAPPED ? ", or \"HOSTPORT:PORT\"" : "");
	r = merge_admit(b, s, row, n, false, e);
	if (r <= 0)
		return r;
	*ARENA_PUSH(b->a, list->v, list->n) = entry;
	return 1;
}

int list_add(struct builder *b, const struct source *s, size_t row, const struct node *n,
	     struct error *e)
{
	const struct setting *def = &settings_table[row];

	switch (def->type) {
	case SETTING_PATHS:
		return rule_add(b, s, row, n, e);
	case SETTING_HOSTS:
		return n->kind == NODE_TEXT ? add_hosts_of_text(b, s, row, n, e)
					    : add_host(b, s, row, n, e);
	case SETTING_STRINGS:
		return add_text(b, s, row, n, e);
	case SETTING_SOCKETS:
		return add_socket(b, s, row, n, e);
	case SETTING_PORTS:
		return add_port(b, s, row, n, e);
	case SETTING_NAMES:
		return def->variant == NAMES_ADD ? protect_add(b, s, row, n, e)
						 : protect_lift(b, s, row, n, e);
	case SETTING_BOOL:
	case SETTING_ENUM:
	case SETTING_STRING:
	case SETTING_PORT:
	case SETTING_SIZE:
	case SETTING_DURATION:
	case SETTING_NUMBER:
	case SETTING_COUNT:
	case SETTING_ENV:
	case SETTING_IGNORE:
	case SETTING_REASONS:
	case SETTING_PROFILES:
	case SETTING_LOCKED:
	case SETTING_REFUSED:
	case SETTING_ACCEPTED:
		break;
	}
	return error_set(e, EINVAL, "%s: not a list", def->key);
}

/*
 * Maps. On the command line NAME=VALUE; n->key is set for both by the caller.
 */

static int add_env(struct builder *b, const struct source *s, size_t row, const struct node *n,
		   struct error *e)
{
	const char *key = settings_table[row].key;
	struct env_settings *list = field(b, row);
	int r;

	if (n->kind == NODE_LIST || n->kind == NODE_MAP || n->kind == NODE_NULL)
		return source_fail(s, n, key, e, "%s must be a string", n->key);
	if (!environment_name_ok(n->key))
		return source_fail(s, n, key, e, "\"%s\" is not a name for a variable", n->key);
	r = merge_admit(b, s, row, n, false, e);
	if (r <= 0)
		return r;
	*ARENA_PUSH(b->a, list->v, list->n) =
		(struct env_setting){ n->key, n->text, source_origin(s, n) };
	return 1;
}

/*
 * The text is shown as the word of whoever refuses: an untrusted project must not put words into
 * the user's mouth, nor anybody into the administrator's.
 */
static int admit_reason(struct builder *b, const struct source *s, const char *key,
			const struct node *n, struct error *e)
{
	const struct host_rules *denied = &b->p->network.denied;

	for (size_t i = 0; i < denied->n; i++) {
		const struct host_rule_entry *entry = &denied->v[i];

		if (strcmp(entry->text, n->key) != 0)
			continue;
		if (entry->locked && merge_is_bound(s))
			return merge_violation(b, s, key, n, &entry->origin, e);
		if (s->mode == SOURCE_NARROWING && entry->origin.layer != s->layer)
			return merge_widening(b, s, key, n);
	}
	return 1;
}

static int add_reason(struct builder *b, const struct source *s, size_t row, const struct node *n,
		      struct error *e)
{
	struct env_settings *list = field(b, row);
	struct env_setting entry = { .name = n->key, .origin = source_origin(s, n) };
	int r = node_string(s, settings_table[row].key, n, &entry.value, e);

	if (r >= 0)
		r = merge_admit(b, s, row, n, true, e);
	if (r > 0)
		r = admit_reason(b, s, settings_table[row].key, n, e);
	if (r <= 0)
		return r;
	*ARENA_PUSH(b->a, list->v, list->n) = entry;
	return 1;
}

static int add_ignore(struct builder *b, const struct source *s, size_t row, const struct node *n,
		      struct error *e)
{
	const char *key = settings_table[row].key;
	struct ignore_rules *list = field(b, row);
	size_t count = n->kind == NODE_TEXT ? 1 : n->n;

	if (n->kind != NODE_LIST && n->kind != NODE_TEXT)
		return source_fail(s, n, key, e, "\"%s\" must be a list of strings", n->key);
	for (size_t i = 0; i < count; i++) {
		const struct node *item = n->kind == NODE_TEXT ? n : &n->v[i];
		struct ignore_rule entry = { .command = n->key, .origin = source_origin(s, item) };
		int r = node_string(s, key, item, &entry.target, e);

		if (r >= 0)
			r = merge_admit(b, s, row, item, false, e);
		if (r < 0)
			return r;
		if (r > 0)
			*ARENA_PUSH(b->a, list->v, list->n) = entry;
	}
	return 0;
}

int map_add(struct builder *b, const struct source *s, size_t row, const struct node *n,
	    struct error *e)
{
	enum setting_type type = settings_table[row].type;

	if (!*n->key)
		return source_fail(s, n, settings_table[row].key, e, "a name must not be empty");
	if (type == SETTING_ENV)
		return add_env(b, s, row, n, e);
	return type == SETTING_REASONS ? add_reason(b, s, row, n, e) : add_ignore(b, s, row, n, e);
}
