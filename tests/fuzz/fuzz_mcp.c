/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client sends to the MCP server, in pieces whose size the first byte gives. Calls are read
 * and queued, but nothing is run: the server believes that it is not ready yet. Two runs have ended
 * before, whose outputs can be asked for. What must hold: all that it answers is one JSON text per
 * line, and when it ends nothing is left.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void warn(const char *text)
{
	(void)text;
}

static void check_output(struct server *s)
{
	const char *line = buf_str(&s->out.bytes), *end = line + s->out.bytes.len;

	while (line < end) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		struct json_span value, version;

		if (!stop || json_parse(line, (size_t)(stop - line), &value) < 0)
			abort();
		if (value.kind == JSON_OBJECT &&
		    (!json_find(&value, "jsonrpc", &version) || !json_equals(&version, "2.0")))
			abort();
		line = stop + 1;
	}
	s->out.bytes.len = 0;
}

/* r1 and r2: something to read, with text that is none at its end. */
static void add_runs(struct server *s)
{
	static const char text[] = "one\ntwo \xc3\xa9\nthree \"quoted\"\n",
			  binary[] = "\x00\x01\xff\xc3";

	for (size_t i = 0; i < 2; i++) {
		struct run *run = run_new(s);

		run->label = "shell";
		run->language = "shell";
		run->state = RUN_ENDED;
		run->result.exit_code = (int)i;
		(void)!spool_append(&run->spool[0], "/tmp", text, sizeof(text) - 1);
		(void)!spool_append(&run->spool[1], "/tmp", i ? binary : "",
				    i ? sizeof(binary) : 0);
	}
}

static void take_lines(struct server *s, bool at_end)
{
	enum frame_event event;
	const char *line;
	size_t len;

	while ((event = frame_next(&s->in, at_end, &line, &len)) != FRAME_NONE) {
		if (event == FRAME_TOO_LONG)
			server_refuse_long_line(s);
		else
			server_take_line(s, line, len);
		calls_step(s, 0);
		check_output(s);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char path[] = "PATH=/usr/bin:/bin";
	static char *environment[] = { path, NULL };
	static struct arena *kept; /* what the languages point to */
	static struct languages languages;
	struct policy policy = { .cwd = "/", .home = "/" };
	const struct mcp_serve req = { .policy = &policy,
				       .environ_in = environment,
				       .version = "0",
				       .self = "/bin/true",
				       .spool_dir = "/tmp",
				       .warn = warn };
	struct run asking = { .state = RUN_NEW };
	_cleanup_arena_ struct arena *a = arena_new();
	struct server *s = arena_alloc(a, sizeof(*s));
	size_t piece = size ? (size_t)data[0] + 1 : 1;

	if (!kept) {
		kept = arena_new();
		languages_find(kept, "/usr/bin:/bin", &languages);
	}
	*s = (struct server){ .req = &req,
			      .a = a,
			      .in = FRAME_IN_INIT,
			      .out = FRAME_OUT_INIT,
			      .log = SEVERITY_NONE,
			      .languages = languages,
			      .asking_node = &asking };
	add_runs(s);
	for (size_t at = 1; at < size; at += piece) {
		frame_feed(&s->in, (const char *)data + at, size - at < piece ? size - at : piece);
		take_lines(s, false);
	}
	take_lines(s, true);
	s->asking_node = NULL;
	server_answer_waiting(s);
	calls_free(s);
	server_end_subscriptions(s);
	check_output(s);
	while (s->runs) {
		struct run *run = s->runs;

		s->runs = run->next;
		run_free(run);
	}
	frame_in_done(&s->in);
	frame_out_done(&s->out);
	return 0;
}
