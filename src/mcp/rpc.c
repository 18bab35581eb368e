/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trust: the text was checked to be JSON, nothing more. What holds for a message that is
 * accepted: each member of the envelope stands there once, the id is a string or a number of
 * bounded length, parameters are an object.
 */
#include "mcp/rpc.h"

#include <string.h>

#include "base/buf.h"

enum {
	HAS_VERSION = 1,
	HAS_ID = 2,
	HAS_METHOD = 4,
	HAS_PARAMS = 8,
	HAS_RESULT = 16,
	HAS_ERROR = 32
};

static const struct {
	const char *name;
	unsigned flag;
} envelope[] = {
	{ "jsonrpc", HAS_VERSION }, { "id", HAS_ID },         { "method", HAS_METHOD },
	{ "params", HAS_PARAMS },   { "result", HAS_RESULT }, { "error", HAS_ERROR },
};

static unsigned envelope_flag(const struct json_span *key)
{
	for (size_t i = 0; i < ARRAY_LEN(envelope); i++) {
		if (json_equals(key, envelope[i].name))
			return envelope[i].flag;
	}
	return 0;
}

static int refuse(const char **ret_why, int code, const char *why)
{
	*ret_why = why;
	return code;
}

static bool id_is_usable(const struct json_span *id)
{
	return (id->kind == JSON_STRING || id->kind == JSON_NUMBER) && id->len <= RPC_ID_MAX;
}

static bool take_method(const struct json_span *value, struct rpc_message *m)
{
	_cleanup_buf_ struct buf b = BUF_INIT(RPC_METHOD_MAX - 1);

	if (value->kind != JSON_STRING)
		return false;
	json_unquote(value, &b);
	if (b.overflow)
		return false;
	memcpy(m->method, buf_str(&b), b.len + 1);
	return true;
}

/* The members, each once. */
static int read_envelope(const struct json_span *object, struct rpc_message *m, unsigned *ret_has,
			 const char **ret_why)
{
	struct json_walk w = json_walk(object);
	struct json_span key, value;
	bool version = true, method = true;
	unsigned has = 0;

	while (json_next_member(&w, &key, &value)) {
		unsigned flag = envelope_flag(&key);

		if (has & flag)
			return refuse(ret_why, RPC_INVALID_REQUEST,
				      "a member of the message is there twice");
		has |= flag;
		if (flag == HAS_VERSION)
			version = json_equals(&value, "2.0");
		else if (flag == HAS_ID)
			m->id = value;
		else if (flag == HAS_METHOD)
			method = take_method(&value, m);
		else if (flag == HAS_PARAMS)
			m->params = value;
	}
	*ret_has = has;
	if (m->id.text && !id_is_usable(&m->id)) {
		m->id = (struct json_span){ 0 };
		return refuse(ret_why, RPC_INVALID_REQUEST,
			      "the id must be a string or a number of up to 1024 bytes");
	}
	if (!(has & HAS_VERSION) || !version)
		return refuse(ret_why, RPC_INVALID_REQUEST, "this is not JSON-RPC 2.0");
	return method ? 0
		      : refuse(ret_why, RPC_INVALID_REQUEST, "the method is no name of a method");
}

int rpc_read(const struct json_span *object, struct rpc_message *ret, const char **ret_why)
{
	unsigned has = 0;
	int r;

	*ret = (struct rpc_message){ 0 };
	if (object->kind != JSON_OBJECT)
		return refuse(ret_why, RPC_INVALID_REQUEST, "a message is an object");
	r = read_envelope(object, ret, &has, ret_why);
	if (r)
		return r;
	if (has & (HAS_RESULT | HAS_ERROR)) {
		ret->kind = RPC_RESPONSE;
		return has & HAS_METHOD ? refuse(ret_why, RPC_INVALID_REQUEST,
						 "a message is a request or a response, not both")
					: 0;
	}
	if (!(has & HAS_METHOD))
		return refuse(ret_why, RPC_INVALID_REQUEST, "the message has no method");
	ret->kind = has & HAS_ID ? RPC_REQUEST : RPC_NOTIFICATION;
	if (ret->params.text && ret->params.kind != JSON_OBJECT)
		return refuse(ret_why, RPC_INVALID_PARAMS, "the parameters must be an object");
	return 0;
}

bool rpc_member(const struct json_span *object, const char *name, struct json_span *ret,
		bool *ret_twice)
{
	struct json_span key, value;
	unsigned found = 0;

	if (object->text && object->kind == JSON_OBJECT) {
		struct json_walk w = json_walk(object);

		while (json_next_member(&w, &key, &value)) {
			if (json_equals(&key, name) && ++found == 1)
				*ret = value;
		}
	}
	if (ret_twice)
		*ret_twice = found > 1;
	return found == 1;
}

static void put_id(struct json *j, const struct json_span *id)
{
	json_kstring(j, "jsonrpc", "2.0");
	if (!id)
		return;
	json_key(j, "id");
	if (id->text)
		json_raw(j, id->text, id->len);
	else
		json_null(j);
}

void rpc_begin_result(struct json *j, const struct json_span *id)
{
	json_begin_object(j);
	put_id(j, id);
	json_key(j, "result");
}

void rpc_end(struct json *j)
{
	json_end_object(j);
}

void rpc_error(struct buf *out, const struct json_span *id, int code, const char *message,
	       const char *data)
{
	struct json j = { .out = out };

	json_begin_object(&j);
	put_id(&j, id);
	json_key(&j, "error");
	json_begin_object(&j);
	json_kint(&j, "code", code);
	json_kstring(&j, "message", message);
	if (data) {
		json_key(&j, "data");
		json_raw(&j, data, strlen(data));
	}
	json_end_object(&j);
	json_end_object(&j);
}

void rpc_begin_notification(struct json *j, const char *method)
{
	json_begin_object(j);
	json_kstring(j, "jsonrpc", "2.0");
	json_kstring(j, "method", method);
	json_key(j, "params");
}
