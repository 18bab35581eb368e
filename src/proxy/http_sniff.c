/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is it HTTP that a client speaks on a connection whose protocol nobody named? Followed byte by
 * byte over the first line, and as the most forgiving server would read it: blank lines in
 * front, any kind and number of blanks, any case. What is found is then given to the strict
 * parser, which refuses what is odd. A first line that does not end in a version is not HTTP/1;
 * a server that got one would answer 400 and hang up.
 *
 * The preface of HTTP/2 looks like a request and is none: what follows it is not text.
 */
#include <string.h>

#include "base/text.h"
#include "proxy/http.h"

static const char version[] = "http/"; /* behind a blank */
static const char preface[] = "PRI * HTTP/2.0\r\n";

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* Up to and with the blank behind the method. */
static enum http_sniffed on_method(char c, enum http_sniffed now)
{
	if (is_blank(c) || c == '\n')
		return now == HTTP_SNIFF_NOTHING ? HTTP_SNIFF_NOTHING
		       : c == '\n'               ? HTTP_SNIFF_NO
						 : HTTP_SNIFF_LINE;
	return ascii_alnum(c) || strchr("!#$%&'*+-.^_`|~", c) ? HTTP_SNIFF_WORD : HTTP_SNIFF_NO;
}

static enum http_sniffed on_line(struct http_sniff *s, char c)
{
	if (c == '\n' || (is_control(c) && !is_blank(c)))
		return HTTP_SNIFF_NO;
	if (is_blank(c))
		s->matched = 1;
	else if (s->matched && ascii_lower(c) == version[s->matched - 1])
		s->matched++;
	else
		s->matched = 0;
	s->version = s->version || s->matched == sizeof(version);
	return HTTP_SNIFF_LINE;
}

static void on_byte(struct http_sniff *s, char c)
{
	if (++s->seen > HTTP_SNIFF_MAX) {
		s->is = HTTP_SNIFF_NO;
		return;
	}
	if (s->preface + 1 == s->seen && s->preface < sizeof(preface) - 1 &&
	    c == preface[s->preface])
		s->preface++;
	if (s->is != HTTP_SNIFF_LINE) {
		s->is = c ? on_method(c, s->is) : HTTP_SNIFF_NO;
		s->matched = s->is == HTTP_SNIFF_LINE;
		return;
	}
	s->is = on_line(s, c);
	/* in the preface of HTTP/2 as far as it goes: its end will be the line's */
	if (s->version && s->preface != s->seen)
		s->is = HTTP_SNIFF_YES;
}

enum http_sniffed http_sniff_feed(struct http_sniff *s, const char *data, size_t len)
{
	for (size_t i = 0; i < len && s->is < HTTP_SNIFF_NO; i++)
		on_byte(s, data[i]);
	return s->is;
}
