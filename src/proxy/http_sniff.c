/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is it HTTP that a client speaks on a connection whose protocol nobody named? Followed byte by
 * byte, and as the most forgiving server would read it: blank lines in front, any kind and number
 * of blanks, any case, any byte within a word, lines of any length. What is found is then given to
 * the strict parser, which refuses what is odd.
 *
 * A first line with a version is HTTP, and so is one that names a host by itself (http://...). Any
 * other of several words may be: of those that name no version, or another protocol's, servers in
 * wide use take some for requests, read the fields behind them, and then the next request. So such
 * a connection is followed to its end, and a line that begins with "Host:", or has both an address
 * and a version, says what it is. Other protocols in which clients speak first and in lines
 * (memcached, redis, git, SIP) have no such lines of their own. Memcached may be asked for a key
 * that is an address: in lower case, in which no server takes it for a method. A first line of one
 * word, or one that begins as none can, is no request to anybody.
 *
 * HTTP/2 begins with what looks like a request. Its servers may speak first, as those of HTTP/1
 * never do; then nothing else is looked for.
 */
#include <string.h>

#include "base/text.h"
#include "proxy/http.h"

static const char version[] = " http/"; /* behind any blank */
static const char scheme_end[] = "://";
static const char field[] = "host";
static const char preface[] = "PRI * HTTP/"; /* up to where it is one request or the other */

/* The last six are blanks in Python's eyes. */
static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r' ||
	       (c >= 0x1c && c <= 0x1f) || c == '\x85' || c == '\xa0';
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* Up to and with the blank behind the method. */
static enum http_sniffed on_method(struct http_sniff *s, char c)
{
	bool begun = s->is == HTTP_SNIFF_WORD;

	if (is_blank(c) || c == '\n')
		return !begun ? HTTP_SNIFF_NOTHING : c == '\n' ? HTTP_SNIFF_NO : HTTP_SNIFF_LINE;
	s->capital |= ascii_lower(c) != c;
	if (ascii_alnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c)))
		return HTTP_SNIFF_WORD;
	s->odd |= is_control(c) || (unsigned char)c >= 0x80;
	return begun && s->odd ? HTTP_SNIFF_WORD : HTTP_SNIFF_NO;
}

static void begin_line(struct http_sniff *s)
{
	s->matched = s->mark = s->host = 0;
	s->absolute = false;
}

/* How much of `text` stands there with c, when n bytes of it stood before; 0 = no more. */
static uint8_t follow(const char *text, uint8_t n, char c)
{
	return ascii_lower(c) == text[n] ? (uint8_t)(n + 1) : 0;
}

/* True when the version is complete. */
static bool follow_line(struct http_sniff *s, char c)
{
	if (is_blank(c))
		s->matched = 1;
	else if (s->matched)
		s->matched = follow(version, s->matched, c);
	s->mark = c == scheme_end[0] ? 1 : s->mark ? follow(scheme_end, s->mark, c) : 0;
	if (s->mark == sizeof(scheme_end) - 1) {
		s->absolute = true;
		s->mark = 0;
	}
	return s->matched == sizeof(version) - 1;
}

static enum http_sniffed on_line(struct http_sniff *s, char c)
{
	if (c == '\n' && (!s->words || (s->absolute && s->capital)))
		return s->words ? HTTP_SNIFF_YES : HTTP_SNIFF_NO;
	if (c == '\n') {
		begin_line(s);
		return HTTP_SNIFF_FIELDS;
	}
	s->words |= !is_blank(c);
	s->odd |= is_control(c) && !is_blank(c);
	return follow_line(s, c) ? HTTP_SNIFF_YES : HTTP_SNIFF_LINE;
}

/* True when it is the colon behind "Host". A bare carriage return, too, ends a line to some. */
static bool follow_host(struct http_sniff *s, char c)
{
	const uint8_t all = sizeof(field) - 1, other = sizeof(field);

	if (c == '\r')
		s->host = 0;
	else if (is_blank(c))
		s->host = s->host == 0 || s->host == all ? s->host : other;
	else if (c == ':' && s->host == all)
		return true;
	else if (s->host < all)
		s->host = follow(field, s->host, c) ?: other;
	else
		s->host = other;
	return false;
}

static enum http_sniffed on_field(struct http_sniff *s, char c)
{
	bool version_ends, host;

	if (c == '\n') {
		begin_line(s);
		return HTTP_SNIFF_FIELDS;
	}
	version_ends = follow_line(s, c);
	host = follow_host(s, c);
	return host || (version_ends && s->absolute) ? HTTP_SNIFF_YES : HTTP_SNIFF_FIELDS;
}

static void on_byte(struct http_sniff *s, char c)
{
	if (s->server_first && c != preface[s->seen++]) {
		s->is = HTTP_SNIFF_NO;
	} else if (s->is == HTTP_SNIFF_LINE) {
		s->is = on_line(s, c);
	} else if (s->is == HTTP_SNIFF_FIELDS) {
		s->is = on_field(s, c);
	} else {
		s->is = on_method(s, c);
		s->matched = s->is == HTTP_SNIFF_LINE;
	}
}

enum http_sniffed http_sniff_feed(struct http_sniff *s, const char *data, size_t len)
{
	for (size_t i = 0; i < len && s->is < HTTP_SNIFF_NO; i++)
		on_byte(s, data[i]);
	return s->is;
}
