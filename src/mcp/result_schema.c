/* SPDX-License-Identifier: Apache-2.0 */
/* What result.c writes, as schemas: in the subset of JSON Schema that every client reads. */
#include <string.h>

#include "mcp/server.h"

struct output_field {
	const char *name, *type;
	bool required;
	const char *help;
};

static const struct output_field end_fields[] = {
	{ "messages", "array", false, "What the sandbox stopped, and how it ended, in words" },
	{ "jobId", "string", true, "Id of the run, for job_output and exec:// resources" },
	{ "running", "boolean", true, "It still runs in the background" },
	{ "exitCode", "integer", false,
	  "Exit code; 128+N for signal N, 124 timed out, 125 not run" },
	{ "signal", "string", false, "The signal it died of, e.g. SIGSEGV" },
	{ "error", "string", false, "Why it was not run" },
	{ "timedOut", "boolean", true, "It was ended by the time limit" },
	{ "stdoutBytes", "integer", true, "All that it printed" },
	{ "stderrBytes", "integer", true, "All that it printed" },
	{ "durationMs", "integer", true, "Wall clock" },
	{ "cpuMs", "integer", true, "Processor time of all processes" },
	{ "maxRssKb", "integer", true, "Memory of the largest process" },
	{ "sandboxed", "boolean", true, "It was confined" },
	{ "warning", "string", false, "Why it was not confined" },
	{ "blocked", "array", true, "What the sandbox stopped" },
};

static const struct output_field output_fields[] = {
	{ "truncated", "boolean", true, "stdout or stderr here are not the whole" },
	{ "stdout", "string", true, "Standard output, head and tail when it is long" },
	{ "stderr", "string", true, "Standard error" },
};

static void put_field(struct json *j, const struct output_field *f)
{
	json_key(j, f->name);
	json_begin_object(j);
	json_kstring(j, "type", f->type);
	json_kstring(j, "description", f->help);
	if (strcmp(f->type, "array") == 0) {
		json_key(j, "items");
		json_begin_object(j);
		json_kstring(j, "type", strcmp(f->name, "messages") == 0 ? "string" : "object");
		json_end_object(j);
	}
	json_end_object(j);
}

static void put_fields(struct json *j, const struct output_field *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_field(j, &v[i]);
}

static void put_required(struct json *j, const struct output_field *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i].required)
			json_string(j, v[i].name);
	}
}

static void begin_schema(struct json *j)
{
	json_begin_object(j);
	json_kstring(j, "type", "object");
	json_key(j, "properties");
	json_begin_object(j);
}

static void begin_required(struct json *j)
{
	json_end_object(j);
	json_key(j, "required");
	json_begin_array(j);
}

static void end_schema(struct json *j)
{
	json_end_array(j);
	json_end_object(j);
}

static const struct output_field matches_field = { "matches", "array", false,
						   "Places found, by question" };

void result_schema_run(struct json *j)
{
	begin_schema(j);
	put_fields(j, end_fields, ARRAY_LEN(end_fields));
	put_fields(j, output_fields, ARRAY_LEN(output_fields));
	put_field(j, &matches_field);
	begin_required(j);
	put_required(j, end_fields, ARRAY_LEN(end_fields));
	put_required(j, output_fields, ARRAY_LEN(output_fields));
	end_schema(j);
}

void result_schema_batch(struct json *j)
{
	static const struct output_field own[] = {
		{ "messages", "array", false, "How the user can allow what was stopped" },
		{ "commands", "array", true, "One per command, in the order given" },
		{ "passed", "integer", true, "How many ended well" },
		{ "failed", "integer", true, "How many did not" },
		{ "skipped", "integer", true, "How many were not started" },
	};

	begin_schema(j);
	put_fields(j, own, ARRAY_LEN(own));
	put_field(j, &matches_field);
	begin_required(j);
	put_required(j, own, ARRAY_LEN(own));
	end_schema(j);
}

void result_schema_output(struct json *j)
{
	static const struct output_field own[] = {
		{ "label", "string", false, "What was run" },
		{ "nextOffset", "integer", false, "Where to read on" },
		{ "jobs", "array", false, "Without jobId: the runs that are kept" },
	};

	begin_schema(j);
	put_fields(j, own, ARRAY_LEN(own));
	put_fields(j, end_fields, ARRAY_LEN(end_fields));
	put_fields(j, output_fields, ARRAY_LEN(output_fields));
	begin_required(j);
	end_schema(j);
}

void result_schema_kill(struct json *j)
{
	begin_schema(j);
	put_fields(j, end_fields, ARRAY_LEN(end_fields));
	begin_required(j);
	put_required(j, end_fields, ARRAY_LEN(end_fields));
	end_schema(j);
}
