/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs by URI: exec://RUN/stdout and exec://RUN/stderr, whole. A line of the protocol is
 * bounded, so a long one comes in pieces: ?offset=N, and the URI of the next piece in _meta.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "mcp/excerpt.h"
#include "mcp/server.h"

#define URI_MAX 256
/* Escaped it may be six times as long, and must fit in one line. */
#define PIECE_MAX ((size_t)1 << 20)

static const char *const streams[] = { "stdout", "stderr" };

static void put_resource(struct json *j, const struct run *run, size_t which)
{
	_cleanup_arena_ struct arena *a = arena_new();

	json_begin_object(j);
	json_kstring(j, "uri", arena_printf(a, "exec://%s/%s", run->id, streams[which]));
	json_kstring(j, "name", arena_printf(a, "%s of %s", streams[which], run->id));
	json_kstring(j, "description", run->label);
	json_kstring(j, "mimeType", "text/plain");
	json_kint(j, "size", (int64_t)run->spool[which].size);
	json_end_object(j);
}

void resources_list(struct server *s, const struct rpc_message *m, struct request *rq)
{
	struct reply r;

	(void)m;
	reply_begin(s, rq, &r);
	if (rq->modern) {
		json_kint(&r.json, "ttlMs", 0);
		json_kstring(&r.json, "cacheScope", "private");
	}
	json_key(&r.json, "resources");
	json_begin_array(&r.json);
	for (const struct run *run = s->runs; run; run = run->next) {
		for (size_t i = 0; run->label && i < ARRAY_LEN(streams); i++) {
			if (run->spool[i].size)
				put_resource(&r.json, run, i);
		}
	}
	json_end_array(&r.json);
	reply_send(s, rq, &r);
}

void resources_templates(struct server *s, const struct rpc_message *m, struct request *rq)
{
	struct reply r;

	(void)m;
	reply_begin_cacheable(s, rq, &r);
	json_key(&r.json, "resourceTemplates");
	json_begin_array(&r.json);
	json_begin_object(&r.json);
	json_kstring(&r.json, "uriTemplate", "exec://{run}/{stream}");
	json_kstring(&r.json, "name", "output");
	json_kstring(&r.json, "description",
		     "The whole stdout or stderr of a run that is kept; long ones in pieces, "
		     "?offset=BYTES");
	json_kstring(&r.json, "mimeType", "text/plain");
	json_end_object(&r.json);
	json_end_array(&r.json);
	reply_send(s, rq, &r);
}

/* exec://RUN/STREAM[?offset=N] */
static const struct run *read_uri(const struct server *s, const struct json_span *uri,
				  size_t *ret_which, uint64_t *ret_offset)
{
	_cleanup_buf_ struct buf b = BUF_INIT(URI_MAX);
	char *id, *slash, *query;

	json_unquote(uri, &b);
	if (b.overflow || !text_starts(buf_str(&b), "exec://"))
		return NULL;
	id = b.data + strlen("exec://");
	slash = strchr(id, '/');
	if (!slash)
		return NULL;
	*slash++ = '\0';
	query = strchr(slash, '?');
	*ret_offset = 0;
	if (query) {
		*query++ = '\0';
		if (!text_starts(query, "offset=") ||
		    text_parse_u64(query + strlen("offset="), INT64_MAX, ret_offset) < 0)
			return NULL;
	}
	*ret_which = strcmp(slash, streams[1]) == 0;
	return strcmp(slash, streams[*ret_which]) == 0 ? run_find(s, id) : NULL;
}

static void put_piece(struct json *j, const struct run *run, size_t which, uint64_t offset)
{
	_cleanup_arena_ struct arena *a = arena_new();
	_cleanup_free_ char *data = malloc(PIECE_MAX);
	const struct spool *spool = &run->spool[which];
	const char *uri = arena_printf(a, "exec://%s/%s", run->id, streams[which]);
	size_t n;

	if (!data)
		abort();
	n = spool_read(spool, offset, data, PIECE_MAX);
	if (offset + n < spool->size)
		n = excerpt_whole(data, n);
	json_begin_object(j);
	json_kstring(j, "uri", offset ? arena_printf(a, "%s?offset=%" PRIu64, uri, offset) : uri);
	if (excerpt_is_text(data, n)) {
		json_kstring(j, "mimeType", "text/plain");
		json_key(j, "text");
		json_string_n(j, data, n);
	} else {
		_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

		excerpt_base64(&b, data, n);
		json_kstring(j, "mimeType", "application/octet-stream");
		json_kstring(j, "blob", buf_str(&b));
	}
	json_key(j, "_meta");
	json_begin_object(j);
	json_kint(j, "ambit/bytes", (int64_t)spool->size);
	if (offset + n < spool->size)
		json_kstring(j, "ambit/next",
			     arena_printf(a, "%s?offset=%" PRIu64, uri, offset + n));
	json_end_object(j);
	json_end_object(j);
}

static void refuse(struct server *s, const struct request *rq, const struct json_span *uri)
{
	_cleanup_buf_ struct buf data = BUF_INIT(BUF_MAX_TEXT);

	if (uri->text && uri->len <= URI_MAX)
		buf_printf(&data, "{\"uri\":%.*s}", (int)uri->len, uri->text);
	reply_error(s, rq, rq->modern ? RPC_INVALID_PARAMS : RPC_RESOURCE_NOT_FOUND,
		    "there is no such resource, or it is not kept any more",
		    data.len ? buf_str(&data) : NULL);
}

void resources_read(struct server *s, const struct rpc_message *m, struct request *rq)
{
	const struct run *run = NULL;
	struct json_span uri = { 0 };
	uint64_t offset = 0;
	size_t which = 0;
	struct reply r;

	if (rpc_member(&m->params, "uri", &uri, NULL) && uri.kind == JSON_STRING)
		run = read_uri(s, &uri, &which, &offset);
	if (!run) {
		refuse(s, rq, &uri);
		return;
	}
	reply_begin(s, rq, &r);
	if (rq->modern) {
		json_kint(&r.json, "ttlMs", 0);
		json_kstring(&r.json, "cacheScope", "private");
	}
	json_key(&r.json, "contents");
	json_begin_array(&r.json);
	put_piece(&r.json, run, which, offset);
	json_end_array(&r.json);
	reply_send(s, rq, &r);
}
