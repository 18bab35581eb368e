/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trust boundary: every byte here was chosen by a program in the sandbox, or by
 * a server it talks to. What is refused, and against what:
 *   bare LF, bare CR, NUL, folded lines, blanks before the colon: a second
 *     reader might see other fields, or another end of the head;
 *   Content-Length with Transfer-Encoding, either one twice, any coding but
 *     exactly "chunked", codings in HTTP/1.0: another end of the body;
 *   two Host fields, Host that disagrees with the target: another recipient;
 *   Connection naming a framing field: a hop would strip what delimits.
 */
#include "proxy/http.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

bool span_is(struct span s, const char *lower)
{
	size_t i = 0;

	for (; i < s.len; i++) {
		if (lower[i] == '\0' || ascii_lower(s.ptr[i]) != lower[i])
			return false;
	}
	return lower[i] == '\0';
}

static bool starts_with(struct span s, const char *lower)
{
	size_t n = strlen(lower);

	return s.len >= n && span_is((struct span){ s.ptr, n }, lower);
}

static bool is_token_char(char c)
{
	return ascii_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct span s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (!is_token_char(s.ptr[i]))
			return false;
	}
	return s.len > 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct span trim(struct span s)
{
	while (s.len > 0 && is_blank(s.ptr[0])) {
		s.ptr++;
		s.len--;
	}
	while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

int http_head_end(const char *data, size_t len, size_t *scanned, struct error *e)
{
	for (size_t i = *scanned; i < len && i < HTTP_HEAD_MAX; i++) {
		if (data[i] == '\0')
			return error_set(e, EINVAL, "NUL byte in the head");
		if (data[i] != '\n')
			continue;
		if (i == 0 || data[i - 1] != '\r')
			return error_set(e, EINVAL, "line feed without carriage return");
		if (i == 1)
			return error_set(e, EINVAL, "empty line in place of a request");
		if (i >= 3 && data[i - 2] == '\n')
			return (int)i + 1;
	}
	if (len >= HTTP_HEAD_MAX)
		return error_set(e, E2BIG, "head longer than %zu bytes", HTTP_HEAD_MAX);
	*scanned = len;
	return 0;
}

/* The line that *rest begins with, without its CRLF; every line here has one. */
static struct span take_line(struct span *rest)
{
	const char *lf = memchr(rest->ptr, '\n', rest->len);
	size_t n = lf ? (size_t)(lf - rest->ptr) + 1 : rest->len;
	struct span line = { rest->ptr, n >= 2 ? n - 2 : 0 };

	rest->ptr += n;
	rest->len -= n;
	return line;
}

bool http_next_field(struct span *rest, struct http_field *ret)
{
	struct span line;
	const char *colon;

	if (rest->len == 0)
		return false;
	line = take_line(rest);
	colon = memchr(line.ptr, ':', line.len);
	if (!colon)
		return false;
	ret->name = (struct span){ line.ptr, (size_t)(colon - line.ptr) };
	ret->value = trim((struct span){ colon + 1, line.len - ret->name.len - 1 });
	return true;
}

/* The next element of a comma-separated list; empty ones are skipped. */
static bool next_element(struct span *rest, struct span *ret)
{
	while (rest->len > 0) {
		const char *comma = memchr(rest->ptr, ',', rest->len);
		size_t n = comma ? (size_t)(comma - rest->ptr) : rest->len;
		size_t skip = comma ? n + 1 : n;

		*ret = trim((struct span){ rest->ptr, n });
		rest->ptr += skip;
		rest->len -= skip;
		if (ret->len > 0)
			return true;
	}
	return false;
}

static bool list_has(struct span list, struct span name)
{
	struct span item;

	while (next_element(&list, &item)) {
		if (item.len != name.len)
			continue;
		size_t i = 0;

		while (i < item.len && ascii_lower(item.ptr[i]) == ascii_lower(name.ptr[i]))
			i++;
		if (i == item.len)
			return true;
	}
	return false;
}

void http_put_field(struct buf *out, const struct http_field *f)
{
	buf_append(out, f->name.ptr, f->name.len);
	buf_append(out, ": ", 2);
	buf_append(out, f->value.ptr, f->value.len);
	buf_append(out, "\r\n", 2);
}

void http_put_upgrade(struct buf *out, struct span protocol)
{
	buf_puts(out, "Connection: Upgrade\r\nUpgrade: ");
	buf_append(out, protocol.ptr, protocol.len);
	buf_puts(out, "\r\n");
}

bool http_is_hop_by_hop(const struct http_head *head, struct span name)
{
	static const char *const always[] = {
		"connection", "proxy-connection",    "keep-alive",         "te",
		"upgrade",    "proxy-authorization", "proxy-authenticate",
	};
	struct span rest = head->fields;
	struct http_field f;

	for (size_t i = 0; i < ARRAY_LEN(always); i++) {
		if (span_is(name, always[i]))
			return true;
	}
	while (head->connection && http_next_field(&rest, &f)) {
		if (span_is(f.name, "connection") && list_has(f.value, name))
			return true;
	}
	return false;
}

/* What one pass over the fields collects. */
struct framing {
	bool has_length, has_coding, upgrade_listed;
};

static int on_host(struct http_head *h, struct framing *f UNUSED, struct span v, struct error *e)
{
	if (h->host.ptr)
		return error_set(e, EINVAL, "more than one Host field");
	h->host = v;
	return 0;
}

static int on_length(struct http_head *h, struct framing *f, struct span v, struct error *e)
{
	uint64_t n = 0;

	if (f->has_length)
		return error_set(e, EINVAL, "more than one Content-Length field");
	if (v.len == 0 || v.len > 18)
		return error_set(e, EINVAL, "Content-Length is not a number");
	for (size_t i = 0; i < v.len; i++) {
		if (!ascii_digit(v.ptr[i]))
			return error_set(e, EINVAL, "Content-Length is not a number");
		n = n * 10 + (uint64_t)(v.ptr[i] - '0');
	}
	f->has_length = true;
	h->length = n;
	return 0;
}

static int on_coding(struct http_head *h, struct framing *f, struct span v, struct error *e)
{
	if (f->has_coding)
		return error_set(e, EINVAL, "more than one Transfer-Encoding field");
	if (!span_is(v, "chunked"))
		return error_set(e, EINVAL, "Transfer-Encoding is not \"chunked\"");
	if (h->minor == 0)
		return error_set(e, EINVAL, "Transfer-Encoding in HTTP/1.0");
	f->has_coding = true;
	return 0;
}

static int on_connection(struct http_head *h, struct framing *f, struct span v, struct error *e)
{
	struct span item;

	if (v.len > HTTP_CONNECTION_MAX)
		return error_set(e, EINVAL, "Connection field too long");
	h->connection = true;
	while (next_element(&v, &item)) {
		if (span_is(item, "close"))
			h->close = true;
		else if (span_is(item, "upgrade"))
			f->upgrade_listed = true;
		else if (span_is(item, "host") || span_is(item, "content-length") ||
			 span_is(item, "transfer-encoding"))
			return error_set(e, EINVAL, "Connection names a framing field");
	}
	return 0;
}

/*
 * One protocol, and what is spoken then is for this very server: not HTTP/2, whose requests
 * say themselves whom they are for, nor TLS, whose hello does. Such an offer is taken out.
 */
static int on_upgrade(struct http_head *h, struct framing *f UNUSED, struct span v,
		      struct error *e UNUSED)
{
	bool fits = v.len > 0 && v.len <= HTTP_UPGRADE_MAX && !h->upgrade.ptr;

	for (size_t i = 0; i < v.len && fits; i++)
		fits = is_token_char(v.ptr[i]) || v.ptr[i] == '/';
	if (fits && !starts_with(v, "h2") && !starts_with(v, "tls") && !starts_with(v, "http"))
		h->upgrade = v;
	return 0;
}

static int check_field(const struct http_field *f, struct error *e)
{
	if (!is_token(f->name))
		return error_set(e, EINVAL, "bad field name");
	for (size_t i = 0; i < f->value.len; i++) {
		unsigned char c = (unsigned char)f->value.ptr[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return error_set(e, EINVAL, "control byte in a field");
	}
	return 0;
}

static int scan_fields(struct http_head *h, struct framing *f, struct error *e)
{
	static const struct {
		const char *name;
		int (*handle)(struct http_head *, struct framing *, struct span, struct error *);
	} known[] = {
		{ "host", on_host },
		{ "content-length", on_length },
		{ "transfer-encoding", on_coding },
		{ "connection", on_connection },
		{ "upgrade", on_upgrade },
	};
	struct span rest = h->fields;
	unsigned n = 0;

	while (rest.len > 0) {
		struct http_field field;
		int r;

		/* a folded line has a blank where its name should begin: not a token */
		if (!http_next_field(&rest, &field))
			return error_set(e, EINVAL, "header line without a colon");
		if (++n > HTTP_FIELDS_MAX)
			return error_set(e, EINVAL, "more than %d header fields", HTTP_FIELDS_MAX);
		r = check_field(&field, e);
		for (size_t i = 0; i < ARRAY_LEN(known) && r == 0; i++) {
			if (span_is(field.name, known[i].name))
				r = known[i].handle(h, f, field.value, e);
		}
		if (r < 0)
			return r;
	}
	if (f->has_length && f->has_coding)
		return error_set(e, EINVAL, "both Content-Length and Transfer-Encoding");
	if (!f->upgrade_listed || h->minor == 0)
		h->upgrade.ptr = NULL;
	h->close = h->close || h->minor == 0;
	return 0;
}

/* "HTTP/1.0" or "HTTP/1.1" */
static bool parse_version(struct span v, unsigned *ret_minor)
{
	if (v.len != 8 || memcmp(v.ptr, "HTTP/1.", 7) != 0 || (v.ptr[7] != '0' && v.ptr[7] != '1'))
		return false;
	*ret_minor = (unsigned)(v.ptr[7] - '0');
	return true;
}

static bool is_target(struct span s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		/* a fragment never goes over the wire; a space would end the target */
		if (c <= 0x20 || c == 0x7f || c == '#')
			return false;
	}
	return s.len > 0;
}

/* "METHOD SP target SP HTTP/1.x": exactly two single spaces */
static int parse_request_line(struct http_head *h, struct error *e)
{
	struct span line = h->start_line, version;
	const char *end = line.ptr + line.len;
	const char *first = memchr(line.ptr, ' ', line.len);
	const char *last = first ? text_find_last(first + 1, (size_t)(end - first - 1), ' ') : NULL;

	if (!last)
		return error_set(e, EINVAL, "not a request line");
	h->method = (struct span){ line.ptr, (size_t)(first - line.ptr) };
	h->target = (struct span){ first + 1, (size_t)(last - first - 1) };
	version = (struct span){ last + 1, (size_t)(end - last - 1) };
	if (!parse_version(version, &h->minor))
		return error_set(e, EINVAL, "not HTTP/1.0 or HTTP/1.1");
	if (!is_token(h->method))
		return error_set(e, EINVAL, "bad method");
	if (!is_target(h->target))
		return error_set(e, EINVAL, "bad request target");
	return 0;
}

static void split_head(const char *data, size_t len, struct http_head *h)
{
	struct span rest = { data, len - 2 }; /* without the empty line */

	h->start_line = take_line(&rest);
	h->fields = rest;
}

bool http_is_preface(const char *data, size_t len)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\n";

	return len == sizeof(preface) - 1 && memcmp(data, preface, len) == 0;
}

int http_parse_request(const char *data, size_t len, struct http_head *ret, struct error *e)
{
	struct framing framing = { 0 };
	struct http_head h = { 0 };
	int r;

	split_head(data, len, &h);
	r = parse_request_line(&h, e);
	if (r == 0)
		r = scan_fields(&h, &framing, e);
	if (r < 0)
		return r;
	if (!h.host.ptr && h.minor == 1)
		return error_set(e, EINVAL, "no Host field");
	h.body = framing.has_coding               ? HTTP_BODY_CHUNKED
		 : framing.has_length && h.length ? HTTP_BODY_LENGTH
						  : HTTP_BODY_NONE;
	*ret = h;
	return 0;
}

/* "HTTP/1.x SP 3DIGIT [SP reason]" */
static int parse_status_line(struct http_head *h, struct error *e)
{
	struct span s = h->start_line;

	if (s.len < 12 || !parse_version((struct span){ s.ptr, 8 }, &h->minor) || s.ptr[8] != ' ' ||
	    (s.len > 12 && s.ptr[12] != ' '))
		return error_set(e, EINVAL, "not a status line");
	for (size_t i = 9; i < 12; i++) {
		if (!ascii_digit(s.ptr[i]))
			return error_set(e, EINVAL, "not a status line");
		h->status = h->status * 10 + (unsigned)(s.ptr[i] - '0');
	}
	for (size_t i = 12; i < s.len; i++) {
		if ((unsigned char)s.ptr[i] < 0x20 && s.ptr[i] != '\t')
			return error_set(e, EINVAL, "control byte in the status line");
	}
	if (h->status < 100)
		return error_set(e, EINVAL, "status below 100");
	return 0;
}

int http_parse_response(const char *data, size_t len, bool to_head, struct http_head *ret,
			struct error *e)
{
	struct framing framing = { 0 };
	struct http_head h = { 0 };
	int r;

	split_head(data, len, &h);
	r = parse_status_line(&h, e);
	if (r == 0)
		r = scan_fields(&h, &framing, e);
	if (r < 0)
		return r;
	if (to_head || h.status < 200 || h.status == 204 || h.status == 304)
		h.body = HTTP_BODY_NONE;
	else if (framing.has_coding)
		h.body = HTTP_BODY_CHUNKED;
	else if (framing.has_length)
		h.body = h.length ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
	else
		h.body = HTTP_BODY_TO_EOF;
	*ret = h;
	return 0;
}

static int parse_port(struct span s, uint16_t *ret)
{
	unsigned v = 0;

	if (s.len == 0 || s.len > 5 || s.ptr[0] == '0')
		return -EINVAL;
	for (size_t i = 0; i < s.len; i++) {
		if (!ascii_digit(s.ptr[i]))
			return -EINVAL;
		v = v * 10 + (unsigned)(s.ptr[i] - '0');
	}
	if (v > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)v;
	return 0;
}

int http_parse_authority(struct span text, uint16_t default_port, struct host *ret_host,
			 uint16_t *ret_port, struct error *e)
{
	bool bracket = text.len > 0 && text.ptr[0] == '[';
	const char *colon = text.len ? text_find_last(text.ptr, text.len, ':') : NULL;
	uint16_t port = default_port;
	struct span name = text;
	struct host host;
	int r;

	/* in brackets a colon belongs to the address; the port stands behind "]" */
	if (colon && bracket && (colon == text.ptr || colon[-1] != ']'))
		colon = NULL;
	if (colon) {
		name.len = (size_t)(colon - text.ptr);
		if (parse_port((struct span){ colon + 1, text.len - name.len - 1 }, &port) < 0)
			return error_set(e, EINVAL, "the port is not a number from 1 to 65535");
	}
	/* an address with colons and no brackets leaves it open where the port begins */
	if (!bracket && name.len > 0 && memchr(name.ptr, ':', name.len))
		return error_set(e, EINVAL, "an IPv6 address needs brackets");
	if (port == 0)
		return error_set(e, EINVAL, "the port is missing");
	r = host_parse(name.ptr, name.len, &host, e);
	if (r < 0)
		return r;
	*ret_host = host;
	*ret_port = port;
	return 0;
}

int http_split_absolute(struct span target, struct span *ret_authority, struct span *ret_path,
			struct error *e)
{
	static const char scheme[] = "http://";
	const size_t skip = sizeof(scheme) - 1;
	struct span authority;

	if (target.len < skip || !span_is((struct span){ target.ptr, skip }, scheme))
		return error_set(e, EINVAL, "the request target does not begin with http://");
	authority = (struct span){ target.ptr + skip, 0 };
	while (skip + authority.len < target.len && authority.ptr[authority.len] != '/' &&
	       authority.ptr[authority.len] != '?')
		authority.len++;
	*ret_authority = authority;
	*ret_path =
		(struct span){ authority.ptr + authority.len, target.len - skip - authority.len };
	return 0;
}
