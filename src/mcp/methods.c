/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol. Two eras live side by side, request by request:
 *
 *   legacy   2024-11-05 to 2025-11-25: initialize, then requests without a version
 *   modern   2026-07-28: no state; every request names its version in _meta
 *
 * A request that names a version is modern. server/discover is answered at once, since clients
 * of both eras wait for it before anything else.
 *
 * Trust: every line is the client's and may be anything. Nothing here acts on a message that
 * was not understood as a whole.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "mcp/server.h"

#define META_PREFIX "io.modelcontextprotocol/"
#define MODERN_VERSION "2026-07-28"
#define CACHE_MS 300000 /* the tools do not change while the server runs */

static const char *const legacy_versions[] = { "2024-11-05", "2025-03-26", "2025-06-18",
					       "2025-11-25" };
enum { VERSION_BATCHES = 1, VERSION_LINKS = 2, VERSION_LATEST = 3 };

static const char *const severities[] = { "debug", "info",     "notice", "warning",
					  "error", "critical", "alert",  "emergency" };
_Static_assert(ARRAY_LEN(severities) == SEVERITY_NONE, "a name for each severity");

enum { LEGACY = 1, MODERN = 2, BOTH = 3 };

typedef void method_fn(struct server *s, const struct rpc_message *m, struct request *rq);

/* A tools/list that came before the languages were known. */
struct waiting_list {
	struct waiting_list *next;
	struct arena *a;
	struct request request;
};

/* --- replies ------------------------------------------------------------------------------ */

static void batch_leave(struct server *s, struct batch *b)
{
	if (--b->open)
		return;
	if (b->count && b->text.overflow) {
		buf_done(&b->text);
		b->text = (struct buf)BUF_INIT(BUF_MAX_TEXT);
		rpc_error(&b->text, NULL, RPC_INTERNAL_ERROR, "the results are too large", NULL);
		frame_put(&s->out, buf_str(&b->text), b->text.len);
	} else if (b->count) {
		buf_putc(&b->text, ']');
		frame_put(&s->out, buf_str(&b->text), b->text.len);
	}
	buf_done(&b->text);
	free(b);
}

static void send_text(struct server *s, const struct request *rq, const struct buf *text)
{
	struct batch *b = rq->batch;

	if (!b) {
		frame_put(&s->out, buf_str(text), text->len);
		return;
	}
	buf_putc(&b->text, b->count++ ? ',' : '[');
	buf_append(&b->text, buf_str(text), text->len);
	batch_leave(s, b);
}

static void put_server_info(const struct server *s, struct json *j)
{
	json_begin_object(j);
	json_kstring(j, "name", "ambit");
	json_kstring(j, "title", "ambit: code in a sandbox");
	json_kstring(j, "version", s->req->version);
	json_end_object(j);
}

void reply_begin(const struct server *s, const struct request *rq, struct reply *r)
{
	*r = (struct reply){ .text = BUF_INIT(SERVER_REPLY_MAX), .json = { .out = &r->text } };
	rpc_begin_result(&r->json, &rq->id);
	json_begin_object(&r->json);
	if (!rq->modern)
		return;
	json_kstring(&r->json, "resultType", "complete");
	json_key(&r->json, "_meta");
	json_begin_object(&r->json);
	json_key(&r->json, META_PREFIX "serverInfo");
	put_server_info(s, &r->json);
	json_end_object(&r->json);
}

void reply_begin_cacheable(const struct server *s, const struct request *rq, struct reply *r)
{
	reply_begin(s, rq, r);
	if (!rq->modern)
		return;
	json_kint(&r->json, "ttlMs", CACHE_MS);
	json_kstring(&r->json, "cacheScope", "private");
}

void reply_send(struct server *s, const struct request *rq, struct reply *r)
{
	json_end_object(&r->json);
	rpc_end(&r->json);
	if (r->text.overflow)
		reply_error(s, rq, RPC_INTERNAL_ERROR, "the result is too large", NULL);
	else
		send_text(s, rq, &r->text);
	buf_done(&r->text);
}

void reply_error(struct server *s, const struct request *rq, int code, const char *message,
		 const char *data)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	rpc_error(&b, rq->modern && !rq->id.text ? NULL : &rq->id, code, message, data);
	send_text(s, rq, &b);
}

void reply_drop(struct server *s, const struct request *rq)
{
	if (rq->batch)
		batch_leave(s, rq->batch);
}

static void send_notification(struct server *s, struct buf *b, struct json *j)
{
	json_end_object(j);
	rpc_end(j);
	frame_put(&s->out, buf_str(b), b->len);
}

void notify_progress(struct server *s, const struct request *rq, uint64_t progress,
		     const char *message)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json j = { .out = &b };

	rpc_begin_notification(&j, "notifications/progress");
	json_begin_object(&j);
	json_key(&j, "progressToken");
	json_raw(&j, rq->token.text, rq->token.len);
	json_kint(&j, "progress", (int64_t)progress);
	json_kstring(&j, "message", message);
	send_notification(s, &b, &j);
}

void notify_log(struct server *s, const struct request *rq, enum log_severity severity,
		const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json j = { .out = &b };

	if (severity < rq->log)
		return;
	rpc_begin_notification(&j, "notifications/message");
	json_begin_object(&j);
	json_kstring(&j, "level", severities[severity]);
	json_kstring(&j, "logger", "ambit");
	json_kstring(&j, "data", text);
	send_notification(s, &b, &j);
}

/* --- versions and capabilities ---------------------------------------------------------------- */

static void put_capabilities(struct json *j)
{
	static const char *const names[] = { "logging", "prompts", "resources", "tools" };

	json_key(j, "capabilities");
	json_begin_object(j);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		json_key(j, names[i]);
		json_begin_object(j);
		json_end_object(j);
	}
	json_end_object(j);
}

static void list_domains(const struct policy *p, struct buf *b)
{
	buf_puts(b, "network access to ");
	for (size_t i = 0; i < p->network.allowed.n && i < 20; i++)
		buf_printf(b, "%s%s", i ? ", " : "", p->network.allowed.v[i].text);
	buf_printf(b, "%s only", p->network.allowed.n > 20 ? " and others" : "");
}

static void put_instructions(const struct server *s, struct json *j)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	const struct policy *p = s->req->policy;

	if (s->unsandboxed) {
		buf_printf(&b, "Runs code WITHOUT a sandbox (%s): it has all rights of the user.",
			   s->unsandboxed);
	} else {
		buf_printf(&b,
			   "Runs code, each call in a sandbox of its own: writes to %s and a "
			   "private /tmp that ends with the call, no secrets of the user, ",
			   p->cwd);
		if (p->network.mode == NETWORK_ALLOWLIST)
			list_domains(p, &b);
		else
			buf_puts(&b, p->network.mode == NETWORK_HOST ? "the whole network"
								     : "no network");
		buf_puts(&b, ". What the sandbox stops is named in lines that begin with [SANDBOX "
			     "BLOCKED]; trying again does not help, only the user can allow it.");
	}
	json_kstring(j, "instructions", buf_str(&b));
}

static void on_initialize(struct server *s, const struct rpc_message *m, struct request *rq)
{
	struct json_span version;
	struct reply r;

	if (rq->batch) {
		reply_error(s, rq, RPC_INVALID_REQUEST, "initialize cannot be part of a batch",
			    NULL);
		return;
	}
	if (!rpc_member(&m->params, "protocolVersion", &version, NULL) ||
	    version.kind != JSON_STRING) {
		reply_error(s, rq, RPC_INVALID_PARAMS, "protocolVersion is missing", NULL);
		return;
	}
	s->initialized = true;
	s->modern = false;
	s->version = VERSION_LATEST;
	for (unsigned i = 0; i < ARRAY_LEN(legacy_versions); i++) {
		if (json_equals(&version, legacy_versions[i]))
			s->version = i;
	}
	reply_begin(s, rq, &r);
	json_kstring(&r.json, "protocolVersion", legacy_versions[s->version]);
	put_capabilities(&r.json);
	json_key(&r.json, "serverInfo");
	put_server_info(s, &r.json);
	put_instructions(s, &r.json);
	reply_send(s, rq, &r);
}

static void on_discover(struct server *s, const struct rpc_message *m, struct request *rq)
{
	struct reply r;

	(void)m;
	reply_begin_cacheable(s, rq, &r);
	json_key(&r.json, "supportedVersions");
	json_begin_array(&r.json);
	json_string(&r.json, MODERN_VERSION);
	json_end_array(&r.json);
	put_capabilities(&r.json);
	put_instructions(s, &r.json);
	reply_send(s, rq, &r);
}

static void on_ping(struct server *s, const struct rpc_message *m, struct request *rq)
{
	struct reply r;

	(void)m;
	reply_begin(s, rq, &r);
	reply_send(s, rq, &r);
}

static bool read_severity(const struct json_span *value, enum log_severity *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(severities); i++) {
		if (json_equals(value, severities[i])) {
			*ret = (enum log_severity)i;
			return true;
		}
	}
	return false;
}

static void on_set_level(struct server *s, const struct rpc_message *m, struct request *rq)
{
	struct json_span level;

	if (!rpc_member(&m->params, "level", &level, NULL) || !read_severity(&level, &s->log))
		reply_error(s, rq, RPC_INVALID_PARAMS,
			    "level must be one of debug, info, notice, warning, error, critical, "
			    "alert, emergency",
			    NULL);
	else
		on_ping(s, m, rq);
}

/* --- lists ---------------------------------------------------------------------------------- */

static void answer_tools(struct server *s, const struct request *rq)
{
	struct reply r;

	reply_begin_cacheable(s, rq, &r);
	json_key(&r.json, "tools");
	tools_list(s, &r.json);
	reply_send(s, rq, &r);
}

static void on_tools_list(struct server *s, const struct rpc_message *m, struct request *rq)
{
	struct waiting_list *w;

	(void)m;
	if (server_is_ready(s)) {
		answer_tools(s, rq);
		return;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		abort();
	w->a = arena_new();
	w->request = *rq;
	w->request.id.text = arena_strndup(w->a, rq->id.text, rq->id.len);
	w->next = s->lists;
	s->lists = w;
}

void server_answer_waiting(struct server *s)
{
	while (s->lists) {
		struct waiting_list *w = s->lists;

		s->lists = w->next;
		answer_tools(s, &w->request);
		arena_free(w->a);
		free(w);
	}
}

/* There are none; but some clients ask, whatever the capabilities say. */
static void on_prompts_list(struct server *s, const struct rpc_message *m, struct request *rq)
{
	struct reply r;

	(void)m;
	reply_begin_cacheable(s, rq, &r);
	json_key(&r.json, "prompts");
	json_begin_array(&r.json);
	json_end_array(&r.json);
	reply_send(s, rq, &r);
}

static void on_prompts_get(struct server *s, const struct rpc_message *m, struct request *rq)
{
	(void)m;
	reply_error(s, rq, RPC_INVALID_PARAMS, "there is no such prompt", NULL);
}

/* --- subscriptions --------------------------------------------------------------------------- */

static struct subscription *find_subscription(struct server *s, const char *id, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(s->subscriptions); i++) {
		const char *own = s->subscriptions[i].id;

		if (strlen(own) == len && memcmp(own, id, len) == 0)
			return &s->subscriptions[i];
	}
	return NULL;
}

static void put_subscription_id(struct json *j, const char *id)
{
	json_key(j, META_PREFIX "subscriptionId");
	json_raw(j, id, strlen(id));
}

/* Nothing that can be subscribed to ever changes here: acknowledged, and then silent. */
static void on_listen(struct server *s, const struct rpc_message *m, struct request *rq)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json j = { .out = &b };
	struct subscription *sub = find_subscription(s, "", 0);
	struct json_span filter;

	if (rq->batch || find_subscription(s, rq->id.text, rq->id.len) ||
	    !rpc_member(&m->params, "notifications", &filter, NULL) || filter.kind != JSON_OBJECT) {
		reply_error(s, rq, RPC_INVALID_PARAMS,
			    "notifications must be an object, and the id a new one", NULL);
		return;
	}
	if (!sub) {
		reply_error(s, rq, RPC_INTERNAL_ERROR, "too many subscriptions", NULL);
		return;
	}
	memcpy(sub->id, rq->id.text, rq->id.len);
	sub->id[rq->id.len] = '\0';
	rpc_begin_notification(&j, "notifications/subscriptions/acknowledged");
	json_begin_object(&j);
	json_key(&j, "_meta");
	json_begin_object(&j);
	put_subscription_id(&j, sub->id);
	json_end_object(&j);
	json_key(&j, "notifications");
	json_begin_object(&j);
	json_end_object(&j);
	send_notification(s, &b, &j);
}

void server_end_subscriptions(struct server *s)
{
	for (size_t i = 0; i < ARRAY_LEN(s->subscriptions); i++) {
		struct subscription *sub = &s->subscriptions[i];
		_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
		struct json j = { .out = &b };
		const struct json_span id = { JSON_STRING, sub->id, strlen(sub->id) };

		if (!*sub->id)
			continue;
		rpc_begin_result(&j, &id);
		json_begin_object(&j);
		json_kstring(&j, "resultType", "complete");
		json_key(&j, "_meta");
		json_begin_object(&j);
		put_subscription_id(&j, sub->id);
		json_end_object(&j);
		send_notification(s, &b, &j);
		sub->id[0] = '\0';
	}
}

static void on_cancelled(struct server *s, const struct rpc_message *m)
{
	struct subscription *sub;
	struct json_span id;

	if (!rpc_member(&m->params, "requestId", &id, NULL) ||
	    (id.kind != JSON_STRING && id.kind != JSON_NUMBER) || id.len > RPC_ID_MAX)
		return;
	sub = find_subscription(s, id.text, id.len);
	if (sub)
		sub->id[0] = '\0';
	else
		calls_cancel(s, &id);
}

/* --- dispatch --------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	unsigned eras;
	method_fn *handle;
} methods[] = {
	{ "initialize", LEGACY, on_initialize },
	{ "server/discover", MODERN, on_discover },
	{ "ping", LEGACY, on_ping },
	{ "logging/setLevel", LEGACY, on_set_level },
	{ "tools/list", BOTH, on_tools_list },
	{ "tools/call", BOTH, tools_call },
	{ "resources/list", BOTH, resources_list },
	{ "resources/templates/list", BOTH, resources_templates },
	{ "resources/read", BOTH, resources_read },
	{ "prompts/list", BOTH, on_prompts_list },
	{ "prompts/get", BOTH, on_prompts_get },
	{ "subscriptions/listen", MODERN, on_listen },
};

static void refuse_version(struct server *s, const struct request *rq,
			   const struct json_span *asked)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);
	struct json j = { .out = &b };

	json_begin_object(&j);
	json_key(&j, "supported");
	json_begin_array(&j);
	json_string(&j, MODERN_VERSION);
	json_end_array(&j);
	json_key(&j, "requested");
	json_raw(&j, asked->text, asked->len);
	json_end_object(&j);
	reply_error(s, rq, RPC_UNSUPPORTED_VERSION, "this protocol version is not supported",
		    buf_str(&b));
}

/* The _meta of a modern request. false: it was refused. */
static bool take_modern(struct server *s, const struct json_span *meta, struct request *rq)
{
	struct json_span version, capabilities, level;

	rq->modern = true;
	rq->links = true;
	rq->log = SEVERITY_NONE;
	if (!rpc_member(meta, META_PREFIX "protocolVersion", &version, NULL) ||
	    version.kind != JSON_STRING ||
	    !rpc_member(meta, META_PREFIX "clientCapabilities", &capabilities, NULL) ||
	    capabilities.kind != JSON_OBJECT) {
		reply_error(s, rq, RPC_INVALID_PARAMS,
			    "_meta must have " META_PREFIX "protocolVersion and " META_PREFIX
			    "clientCapabilities",
			    NULL);
		return false;
	}
	if (!json_equals(&version, MODERN_VERSION)) {
		refuse_version(s, rq, &version);
		return false;
	}
	if (rpc_member(meta, META_PREFIX "logLevel", &level, NULL) &&
	    !read_severity(&level, &rq->log)) {
		reply_error(s, rq, RPC_INVALID_PARAMS, "_meta: there is no such logLevel", NULL);
		return false;
	}
	s->modern |= !s->initialized;
	return true;
}

/* Era, progress token and so on. false: it was refused. */
static bool take_meta(struct server *s, const struct rpc_message *m, struct request *rq)
{
	struct json_span meta = { 0 }, version;
	bool names_version;

	(void)rpc_member(&m->params, "_meta", &meta, NULL);
	names_version = rpc_member(&meta, META_PREFIX "protocolVersion", &version, NULL);
	rq->modern = false;
	rq->links = s->version >= VERSION_LINKS;
	rq->log = s->log;
	if ((names_version || strcmp(m->method, "server/discover") == 0 ||
	     (s->modern && strcmp(m->method, "initialize") != 0)) &&
	    !take_modern(s, &meta, rq))
		return false;
	if (rpc_member(&meta, "progressToken", &rq->token, NULL) &&
	    ((rq->token.kind != JSON_STRING && rq->token.kind != JSON_NUMBER) ||
	     rq->token.len > RPC_ID_MAX))
		rq->token = (struct json_span){ 0 };
	return true;
}

static void dispatch(struct server *s, const struct rpc_message *m, struct request *rq)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	if (!take_meta(s, m, rq))
		return;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (strcmp(methods[i].name, m->method) == 0 &&
		    (methods[i].eras & (rq->modern ? MODERN : LEGACY))) {
			methods[i].handle(s, m, rq);
			return;
		}
	}
	buf_puts(&b, "there is no method ");
	text_append_safe(&b, m->method);
	reply_error(s, rq, RPC_METHOD_NOT_FOUND, buf_str(&b), NULL);
}

static void take_message(struct server *s, const struct json_span *value, struct batch *batch)
{
	struct request rq = { .batch = batch, .modern = s->modern };
	struct rpc_message m;
	const char *why;
	int code = rpc_read(value, &m, &why);

	if (code && m.kind == RPC_NOTIFICATION && !m.id.text && code == RPC_INVALID_PARAMS)
		return; /* notifications are never answered */
	if (!code && m.kind == RPC_NOTIFICATION) {
		if (strcmp(m.method, "notifications/cancelled") == 0)
			on_cancelled(s, &m);
		return;
	}
	if (!code && m.kind == RPC_RESPONSE)
		return; /* we ask nothing */
	rq.id = m.id;
	if (batch)
		batch->open++;
	if (code)
		reply_error(s, &rq, code, why, NULL);
	else
		dispatch(s, &m, &rq);
}

/* An array of messages, which one version of the protocol had. */
static void take_array(struct server *s, const struct json_span *array)
{
	struct request rq = { .modern = s->modern };
	struct json_walk w = json_walk(array);
	struct json_span item;
	struct batch *b;

	if (!s->initialized || s->version != VERSION_BATCHES ||
	    !json_next_member(&w, NULL, &item)) {
		reply_error(s, &rq, RPC_INVALID_REQUEST, "batches are not part of this protocol",
			    NULL);
		return;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		abort();
	b->text.max = FRAME_LINE_MAX - 1; /* and the bracket */
	b->open = 1;
	do {
		take_message(s, &item, b);
	} while (json_next_member(&w, NULL, &item));
	batch_leave(s, b);
}

void server_take_line(struct server *s, const char *line, size_t len)
{
	struct request rq = { .modern = s->modern };
	struct json_span value;

	if (json_parse(line, len, &value) < 0)
		reply_error(s, &rq, RPC_PARSE_ERROR, "this line is not JSON", NULL);
	else if (value.kind == JSON_ARRAY)
		take_array(s, &value);
	else
		take_message(s, &value, NULL);
}

void server_refuse_long_line(struct server *s)
{
	struct request rq = { .modern = s->modern };

	reply_error(s, &rq, RPC_INVALID_REQUEST, "the message is longer than 10 MiB", NULL);
}
