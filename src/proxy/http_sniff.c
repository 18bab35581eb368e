/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is it HTTP that a client speaks on a connection whose protocol nobody named? Followed byte by
 * byte over the first line, and as the most forgiving server would read it: blank lines in
 * front, any kind and number of blanks, any case, any byte within a word. What is found is then given
 * to the strict parser, which refuses what is odd. A first line that does not end in a version is not HTTP/1;
 * a server that got one would answer 400 and hang up.
 *
 * HTTP/2 begins with what looks like a request. Its servers may speak first, as those of HTTP/1
 * never do; then nothing else is looked for.
 */
#include <string.h>

#include "base/text.h"
#include "proxy/http.h"

static const char version[] = "http/"; /* behind a blank */
static const char preface[] = "PRI * HTTP/"; /* up to where it is one request or the other */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
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
	if (ascii_alnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c)))
		return HTTP_SNIFF_WORD;
	s->odd |= is_control(c) || (unsigned char)c >= 0x80;
	return begun && s->odd ? HTTP_SNIFF_WORD : HTTP_SNIFF_NO;
}

static enum http_sniffed on_line(struct http_sniff *s, char c)
{
	if (c == '\n')
		return HTTP_SNIFF_NO;
	if (is_blank(c))
		s->matched = 1;
	else if (s->matched && ascii_lower(c) == version[s->matched - 1])
		s->matched++;
	else
		s->matched = 0;
	s->odd |= is_control(c) && !is_blank(c);
	return s->matched == sizeof(version) ? HTTP_SNIFF_YES : HTTP_SNIFF_LINE;
}

static void on_byte(struct http_sniff *s, char c)
{
	if (s->seen == HTTP_SNIFF_MAX || (s->server_first && c != preface[s->seen])) {
		s->is = HTTP_SNIFF_NO;
		return;
	}
	s->seen++;
	if (s->is == HTTP_SNIFF_LINE) {
		s->is = on_line(s, c);
		return;
	}
	s->is = on_method(s, c);
	s->matched = s->is == HTTP_SNIFF_LINE;
}

enum http_sniffed http_sniff_feed(struct http_sniff *s, const char *data, size_t len)
{
	for (size_t i = 0; i < len && s->is < HTTP_SNIFF_NO; i++)
		on_byte(s, data[i]);
	return s->is;
}
