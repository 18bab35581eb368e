/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON-RPC 2.0 as MCP uses it. A message is looked at where it stands: ids and parameters are
 * spans of the peer's own text and go back byte for byte, whatever numbers they are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/json_read.h"

#define RPC_ID_MAX 1024 /* bytes of an id, as text */
#define RPC_METHOD_MAX 128

enum rpc_code {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL_ERROR = -32603,
	RPC_RESOURCE_NOT_FOUND = -32002, /* until 2025-11-25; later INVALID_PARAMS */
	RPC_UNSUPPORTED_VERSION = -32022,
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

struct rpc_message {
	enum rpc_kind kind;
	struct json_span id; /* text NULL: none */
	struct json_span params; /* an object; text NULL: none */
	char method[RPC_METHOD_MAX];
};

/*
 * What the object says. 0, or one of the codes above with the reason; the id is set whenever there
 * is a usable one, so that the error can be answered.
 */
int rpc_read(const struct json_span *object, struct rpc_message *ret, const char **ret_why)
	NODISCARD;

/*
 * The member of this name. A name that comes twice means two things to two readers: then, and when
 * there is none, false; `ret_twice` (may be NULL) tells which.
 */
bool rpc_member(const struct json_span *object, const char *name, struct json_span *ret,
		bool *ret_twice);

/* {"jsonrpc":"2.0","id":ID,"result": ... and the closing brace. */
void rpc_begin_result(struct json *j, const struct json_span *id);
void rpc_end(struct json *j);
/* A whole error message. id without text: null; NULL: left out. data: JSON text or NULL. */
void rpc_error(struct buf *out, const struct json_span *id, int code, const char *message,
	       const char *data);
/* {"jsonrpc":"2.0","method":M,"params": ... until rpc_end(). */
void rpc_begin_notification(struct json *j, const char *method);
