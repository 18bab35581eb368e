/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.x on the wire: heads, authorities and chunked framing. Pure functions
 * over bytes of unknown origin. They are strict where two readers could
 * disagree about where a message ends or whom it is for (request smuggling):
 * such a message is refused, never repaired.
 *
 * Stream parsers return > 0 = bytes consumed, 0 = more is needed, < 0 = -errno
 * with the reason in e; on failure and on "more" nothing is written to *ret.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "policy/match_host.h"

#define HTTP_HEAD_MAX ((size_t)32 << 10)
#define HTTP_FIELDS_MAX 256
#define HTTP_CONNECTION_MAX 256 /* bytes of one Connection field */
#define HTTP_CHUNK_LINE_MAX 256 /* size and extensions of one chunk */
#define HTTP_TRAILER_MAX 8192
#define HTTP_UPGRADE_MAX 32 /* bytes of a protocol's name */

struct span {
	const char *ptr;
	size_t len;
};

enum http_body {
	HTTP_BODY_NONE,
	HTTP_BODY_LENGTH,
	HTTP_BODY_CHUNKED,
	HTTP_BODY_TO_EOF, /* responses only */
};

struct http_head {
	struct span method, target; /* requests */
	struct span start_line; /* without CRLF */
	struct span fields; /* the header lines, each with its CRLF */
	struct span host; /* value of the one Host field; ptr is NULL when there is none */
	struct span upgrade; /* the protocol to change to; NULL = none, or one that may not be */
	uint64_t length; /* HTTP_BODY_LENGTH */
	enum http_body body;
	unsigned status; /* responses */
	unsigned minor; /* of HTTP/1.minor: 0 or 1 */
	bool connection; /* there is a Connection field */
	bool close; /* the sender will not reuse the connection */
};

struct http_field {
	struct span name, value; /* value without surrounding blanks */
};

/*
 * Length of the head that data begins with, its empty line included. *scanned
 * (0 at first) remembers how far earlier calls have looked, so that a head that
 * comes byte by byte is read once. A bare LF, a NUL or an empty first line is
 * -EINVAL at once; more than HTTP_HEAD_MAX is -E2BIG.
 */
int http_head_end(const char *data, size_t len, size_t *scanned, struct error *e) NODISCARD;

/* len is what http_head_end() returned. 0 or -EINVAL. */
int http_parse_request(const char *data, size_t len, struct http_head *ret, struct error *e)
	NODISCARD;
bool http_is_preface(const char *data, size_t len); /* HTTP/2 follows; len as above */
/* to_head: it answers a HEAD request, so that no body follows. */
int http_parse_response(const char *data, size_t len, bool to_head, struct http_head *ret,
			struct error *e) NODISCARD;

/* Take the next field off *rest. False at the end. */
bool http_next_field(struct span *rest, struct http_field *ret);
void http_put_field(struct buf *out, const struct http_field *f); /* with its line's end */
void http_put_upgrade(struct buf *out, struct span protocol); /* the two fields that ask for it */
/* Is the field meant for this hop only? Those named by Connection are. */
bool http_is_hop_by_hop(const struct http_head *head, struct span name);

bool span_is(struct span s, const char *lower); /* ASCII case-insensitive */

/*
 * host, host:port, [v6]:port. default_port 0: the port must be given. User
 * info, zone ids, empty and zero ports are refused.
 */
int http_parse_authority(struct span text, uint16_t default_port, struct host *ret_host,
			 uint16_t *ret_port, struct error *e) NODISCARD;
/* http://authority/path?query. The path comes back as origin-form needs it ("" = "/"). */
int http_split_absolute(struct span target, struct span *ret_authority, struct span *ret_path,
			struct error *e) NODISCARD;

/* Chunked framing, followed without touching the bytes. Zero-initialise. */
struct http_chunked {
	enum {
		CHUNK_SIZE,
		CHUNK_EXTENSION,
		CHUNK_SIZE_LF,
		CHUNK_DATA,
		CHUNK_DATA_CR,
		CHUNK_DATA_LF,
		CHUNK_TRAILER,
		CHUNK_TRAILER_LF,
		CHUNK_DONE,
	} state;
	uint64_t left; /* of the present chunk */
	unsigned digits;
	unsigned line, total; /* bytes of this line, of all trailer lines */
};

/*
 * Bytes of data that belong to the body, at most len; less only when the body
 * ends there (state is then CHUNK_DONE). -EINVAL when it is not chunked framing.
 */
ssize_t http_chunked_feed(struct http_chunked *c, const char *data, size_t len) NODISCARD;

/* Does a client that may speak any protocol begin an HTTP request? Zero-initialise. */
enum http_sniffed {
	HTTP_SNIFF_NOTHING, /* no byte that means anything yet */
	HTTP_SNIFF_WORD, /* in what may be a method */
	HTTP_SNIFF_LINE, /* behind it: a line that is not at its end */
	HTTP_SNIFF_FIELDS, /* behind a first line of several words that names no version */
	HTTP_SNIFF_NO, /* these two are final */
	HTTP_SNIFF_YES,
};

struct http_sniff {
	enum http_sniffed is;
	uint8_t seen; /* bytes of the preface, where the server spoke first */
	uint8_t matched; /* bytes of " HTTP/" */
	uint8_t mark; /* bytes of "://" */
	uint8_t host; /* bytes of "Host" at the beginning of the line */
	bool absolute; /* the line names a host by itself: "://" */
	bool capital; /* the method is not all lower case */
	bool words; /* there is a second one */
	bool odd; /* bytes that no client sends there, though some servers take them */
	bool server_first; /* it has spoken: only HTTP/2 can be */
};

enum http_sniffed http_sniff_feed(struct http_sniff *s, const char *data, size_t len);
