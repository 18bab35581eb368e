/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON Schema of a settings file, from the table. */
#include "base/json.h"
#include "policy/schema.h"

static void put_type(struct json *j, const char *type)
{
	json_kstring(j, "type", type);
}

static void put_integer(struct json *j, int64_t max)
{
	put_type(j, "integer");
	json_kint(j, "minimum", 0);
	if (max)
		json_kint(j, "maximum", max);
}

static void put_text_item(struct json *j)
{
	put_type(j, "string");
	json_kint(j, "minLength", 1);
}

/* {"path": ..., "literal": true}: a path that is not read as a pattern */
static void put_path_item(struct json *j)
{
	json_key(j, "anyOf");
	json_begin_array(j);
	json_begin_object(j);
	put_text_item(j);
	json_end_object(j);
	json_begin_object(j);
	put_type(j, "object");
	json_kbool(j, "additionalProperties", false);
	json_key(j, "required");
	json_begin_array(j);
	json_string(j, "path");
	json_end_array(j);
	json_key(j, "properties");
	json_begin_object(j);
	json_key(j, "path");
	json_begin_object(j);
	put_text_item(j);
	json_end_object(j);
	json_key(j, "literal");
	json_begin_object(j);
	put_type(j, "boolean");
	json_end_object(j);
	json_end_object(j);
	json_end_object(j);
	json_end_array(j);
}

static void put_list(struct json *j, void (*item)(struct json *))
{
	put_type(j, "array");
	json_key(j, "items");
	json_begin_object(j);
	item(j);
	json_end_object(j);
}

static void put_port_item(struct json *j)
{
	put_type(j, "integer");
	json_kint(j, "minimum", 1);
	json_kint(j, "maximum", UINT16_MAX);
}

static void put_mapped_item(struct json *j)
{
	json_key(j, "anyOf");
	json_begin_array(j);
	json_begin_object(j);
	put_port_item(j);
	json_end_object(j);
	json_begin_object(j);
	put_type(j, "string");
	json_kstring(j, "pattern", "^[0-9]+:[0-9]+$");
	json_end_object(j);
	json_end_array(j);
}

static void put_list_of_text(struct json *j)
{
	put_list(j, put_text_item);
}

static void put_scalar_item(struct json *j)
{
	json_key(j, "type");
	json_begin_array(j);
	json_string(j, "string");
	json_string(j, "number");
	json_string(j, "boolean");
	json_end_array(j);
}

static void put_map(struct json *j, void (*value)(struct json *))
{
	put_type(j, "object");
	json_key(j, "additionalProperties");
	json_begin_object(j);
	value(j);
	json_end_object(j);
}

/* "512m" or a number */
static void put_quantity(struct json *j, const char *pattern)
{
	json_key(j, "type");
	json_begin_array(j);
	json_string(j, "string");
	json_string(j, "number");
	json_end_array(j);
	json_kint(j, "minimum", 0);
	json_kstring(j, "pattern", pattern);
}

static void put_enum(struct json *j, const struct setting *s)
{
	json_key(j, "enum");
	json_begin_array(j);
	for (const char *const *w = s->values; *w; w++) {
		if (**w)
			json_string(j, *w);
	}
	json_end_array(j);
	if (s->def)
		json_kstring(j, "default", s->def);
}

static void put_list_of_words(struct json *j, const struct setting *s)
{
	put_type(j, "array");
	json_key(j, "items");
	json_begin_object(j);
	put_enum(j, s);
	json_end_object(j);
}

/* Only what asks for nothing passes. */
static void put_nothing(struct json *j)
{
	json_key(j, "enum");
	json_begin_array(j);
	json_bool(j, false);
	json_null(j);
	json_begin_array(j);
	json_end_array(j);
	json_begin_object(j);
	json_end_object(j);
	json_end_array(j);
}

static void put_setting(struct json *j, const struct setting *s)
{
	switch (s->type) {
	case SETTING_BOOL:
		put_type(j, "boolean");
		json_kbool(j, "default", s->def != NULL);
		break;
	case SETTING_ENUM:
		put_enum(j, s);
		break;
	case SETTING_STRING:
		put_text_item(j);
		break;
	case SETTING_PORT:
		put_integer(j, UINT16_MAX);
		break;
	case SETTING_SIZE:
		put_quantity(j, "^[0-9.]+([bB]|[kKmMgGtT]([iI]?[bB])?)?$");
		break;
	case SETTING_DURATION:
		put_quantity(j, "^[0-9.]+(ms|s|m|min|h|d)?$");
		break;
	case SETTING_NUMBER:
		put_type(j, "number");
		json_kint(j, "minimum", 0);
		break;
	case SETTING_COUNT:
		put_integer(j, 0);
		break;
	case SETTING_PATHS:
		put_list(j, put_path_item);
		break;
	case SETTING_PORTS:
		put_list(j, s->variant == PORTS_MAPPED ? put_mapped_item : put_port_item);
		break;
	case SETTING_STRINGS:
		if (s->values)
			put_list_of_words(j, s);
		else
			put_list(j, put_text_item);
		break;
	case SETTING_HOSTS:
	case SETTING_SOCKETS:
	case SETTING_NAMES:
	case SETTING_PROFILES:
	case SETTING_LOCKED:
		put_list(j, put_text_item);
		break;
	case SETTING_ENV:
		put_map(j, put_scalar_item);
		break;
	case SETTING_REASONS:
		put_map(j, put_text_item);
		break;
	case SETTING_IGNORE:
		put_map(j, put_list_of_text);
		break;
	case SETTING_REFUSED:
		put_nothing(j);
		break;
	case SETTING_ACCEPTED:
		break;
	}
}

static void schema_leaf(void *ctx, const char *name, size_t row)
{
	const struct setting *s = &settings_table[row];
	struct json *j = ctx;

	json_key(j, name);
	json_begin_object(j);
	json_kstring(j, "description", s->help);
	put_setting(j, s);
	json_end_object(j);
}

static void schema_begin(struct json *j)
{
	put_type(j, "object");
	json_kbool(j, "additionalProperties", false);
	json_key(j, "properties");
	json_begin_object(j);
}

static void schema_open(void *ctx, const char *name)
{
	json_key(ctx, name);
	json_begin_object(ctx);
	schema_begin(ctx);
}

static void schema_close(void *ctx)
{
	json_end_object(ctx);
	json_end_object(ctx);
}

void settings_print_schema(struct buf *out)
{
	struct json j = { .out = out, .indent = 2 };
	const struct setting_visitor v = { schema_open, schema_leaf, schema_close, &j };

	json_begin_object(&j);
	json_kstring(&j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_kstring(&j, "title", "ambit settings");
	schema_begin(&j);
	settings_walk(&v);
	schema_close(&j);
	buf_putc(out, '\n');
}
