/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From bytes of unknown origin to one canonical host. Trust boundary: the text
 * comes from programs inside the sandbox (CONNECT lines, SNI, SOCKS) and from
 * settings. Attacks kept out here: a second spelling of a name or address that
 * slips past a rule (case, trailing dot, full-width forms, octal and 32-bit
 * addresses, mapped IPv6), and text that the matcher and the resolver would
 * cut at different places (NUL, CR, LF, '%', '@', zone ids).
 *
 * A text with ':' or a bracket can only be an IPv6 address. Everything else is
 * folded label by label into out->name; if the last label then is a number the
 * whole must be an IPv4 address, as in the URL standard: no resolver gets to
 * interpret a number for us.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "policy/host_idn.h"
#include "policy/match_host.h"

/* A code point makes at least one byte of the name and takes at most four of the text. */
#define HOST_TEXT_MAX_LEN ((size_t)4 * (HOST_NAME_MAX_LEN + 1))

/* The label being collected, and the name as far as it is done. */
struct name_builder {
	uint32_t label[HOST_LABEL_MAX_LEN];
	size_t label_len;
	char *name; /* HOST_NAME_MAX_LEN + 1 bytes */
	size_t name_len;
};

/* RFC 5952; inet_ntop() would write ::1:8080 as ::0.1.128.128. */
static void format_ipv6(const uint8_t *addr, char *ret, size_t size)
{
	size_t best = 8, best_len = 1; /* a single zero is not worth a "::" */
	size_t n = 0;

	for (size_t i = 0, run = 0; i < 8; i++) {
		run = addr[2 * i] | addr[2 * i + 1] ? 0 : run + 1;
		if (run > best_len) {
			best_len = run;
			best = i + 1 - run;
		}
	}
	for (size_t i = 0; i < 8; i++) {
		bool first = i == 0 || i == best + best_len;

		if (i == best) {
			n += (size_t)snprintf(ret + n, size - n, "::");
			i += best_len - 1;
			continue;
		}
		n += (size_t)snprintf(ret + n, size - n, "%s%x", first ? "" : ":",
				      (unsigned)addr[2 * i] << 8 | addr[2 * i + 1]);
	}
}

void host_from_addr(enum host_kind kind, const uint8_t *addr, struct host *ret)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct host out = { .kind = kind };

	if (kind == HOST_IPV6 && memcmp(addr, mapped, sizeof(mapped)) == 0) {
		out.kind = HOST_IPV4;
		addr += sizeof(mapped);
	}
	memcpy(out.addr, addr, out.kind == HOST_IPV4 ? 4 : 16);
	if (out.kind == HOST_IPV4)
		(void)snprintf(out.name, sizeof(out.name), "%u.%u.%u.%u", addr[0], addr[1], addr[2],
			       addr[3]);
	else
		format_ipv6(addr, out.name, sizeof(out.name));
	*ret = out;
}

static int parse_ipv6(const char *text, size_t len, struct host *ret, struct error *e)
{
	char copy[INET6_ADDRSTRLEN];
	uint8_t addr[16];

	if (memchr(text, '%', len))
		return error_set(e, EINVAL, "an IPv6 zone id is not allowed");
	if (text[0] == '[') {
		if (text[len - 1] != ']')
			return error_set(e, EINVAL, "'[' without ']' at the end");
		text++;
		len -= 2;
	}
	/* inet_pton() stops at a NUL: what it reads must be all there is */
	if (len >= sizeof(copy) || memchr(text, '\0', len))
		return error_set(e, EINVAL, "not a valid IPv6 address");
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (inet_pton(AF_INET6, copy, addr) != 1)
		return error_set(e, EINVAL, "not a valid IPv6 address");
	host_from_addr(HOST_IPV6, addr, ret);
	return 0;
}

static int refuse_char(uint32_t c, struct error *e)
{
	static const struct {
		uint32_t c;
		const char *what;
	} known[] = {
		{ '\0', "a NUL byte" },
		{ '\r', "a carriage return" },
		{ '\n', "a line feed" },
		{ ' ', "a space" },
		{ '%', "'%': percent-encoding is not decoded" },
		{ '@', "'@': a user name does not belong here" },
		{ '/', "'/': only a host belongs here, not a path" },
		{ '\\', "a backslash" },
		{ '*', "'*' other than as a leading \"*.\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (known[i].c == c)
			return error_set(e, EINVAL, "a host name cannot hold %s", known[i].what);
	}
	if (c > 0x20 && c < 0x7f)
		return error_set(e, EINVAL, "a host name cannot hold '%c'", (char)c);
	if (c < 0x80)
		return error_set(e, EINVAL, "a host name cannot hold the byte 0x%02x", c);
	return error_set(e, EINVAL,
			 "the character U+%04X is not accepted in a host name: "
			 "write its label in the xn-- form",
			 c);
}

static bool is_label_char(uint32_t c)
{
	return c >= 0x80 || ascii_alnum((char)c) || c == '-' || c == '_';
}

/* The label as it goes into the name. Its length, or -EINVAL. */
static int encode_label(const uint32_t *label, size_t n, char *ret, struct error *e)
{
	bool ascii = true, reserved = n >= 4 && label[2] == '-' && label[3] == '-';
	int len = (int)n;

	if (n == 0)
		return error_set(e, EINVAL, "empty label");
	if (label[0] == '-' || label[n - 1] == '-')
		return error_set(e, EINVAL, "a label cannot begin or end with a hyphen");
	for (size_t i = 0; i < n; i++)
		ascii = ascii && label[i] < 0x80;
	if (ascii) {
		for (size_t i = 0; i < n; i++)
			ret[i] = (char)label[i];
	} else if (reserved) {
		return error_set(e, EINVAL, "\"--\" at this place is reserved for xn-- labels");
	} else {
		len = idn_alabel_encode(label, n, ret, HOST_LABEL_MAX_LEN);
	}
	if (len < 0)
		return error_set(e, EINVAL, "a label is longer than %d bytes", HOST_LABEL_MAX_LEN);
	if (len >= 4 && memcmp(ret, "xn--", 4) == 0 && !idn_alabel_valid(ret, (size_t)len))
		return error_set(e, EINVAL, "an xn-- label does not decode");
	return len;
}

static int end_label(struct name_builder *b, struct error *e)
{
	char label[HOST_LABEL_MAX_LEN];
	int r = encode_label(b->label, b->label_len, label, e);
	size_t dot = b->name_len > 0, len = (size_t)r;

	if (r < 0)
		return r;
	if (b->name_len + dot + len > HOST_NAME_MAX_LEN)
		return error_set(e, EINVAL, "longer than %d bytes", HOST_NAME_MAX_LEN);
	if (dot)
		b->name[b->name_len++] = '.';
	memcpy(b->name + b->name_len, label, len);
	b->name_len += len;
	b->name[b->name_len] = '\0';
	b->label_len = 0;
	return 0;
}

static int add_char(struct name_builder *b, uint32_t c, struct error *e)
{
	uint32_t folded;

	if (!idn_fold(c, &folded))
		return refuse_char(c, e);
	if (folded == '.')
		return end_label(b, e);
	if (!is_label_char(folded))
		return refuse_char(folded, e);
	if (b->label_len == HOST_LABEL_MAX_LEN)
		return error_set(e, EINVAL, "a label is longer than %d bytes", HOST_LABEL_MAX_LEN);
	b->label[b->label_len++] = folded;
	return 0;
}

/* len is at least 1 */
static int parse_name(const char *text, size_t len, char *ret, struct error *e)
{
	struct name_builder b = { .name = ret };

	for (size_t at = 0; at < len;) {
		uint32_t c;
		size_t n = utf8_decode((const unsigned char *)text + at, len - at, &c);
		int r;

		if (n == 0)
			return error_set(e, EINVAL, "not valid UTF-8");
		r = add_char(&b, c, e);
		if (r < 0)
			return r;
		at += n;
	}
	/* The text ended in a dot: the one that stands for the root is not part of the name. */
	return b.label_len == 0 ? 0 : end_label(&b, e);
}

/* Would some resolver take the name for an address? */
static bool ends_in_number(const char *name)
{
	const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;

	if (text_starts(last, "0x"))
		return last[2 + strspn(last + 2, "0123456789abcdef")] == '\0';
	return last[strspn(last, "0123456789")] == '\0';
}

/* A number as inet_aton() reads it: 0x hexadecimal, 0 octal, else decimal. */
static bool parse_ipv4_part(const char *s, size_t n, uint32_t *ret)
{
	unsigned base = 10;
	uint64_t v = 0;

	if (n >= 2 && s[0] == '0') {
		base = s[1] == 'x' ? 16 : 8;
		s += base == 16 ? 2 : 1;
		n -= base == 16 ? 2 : 1;
	}
	if (n == 0)
		return false;
	for (; n > 0; n--, s++) {
		unsigned d = ascii_digit(*s)            ? (unsigned)(*s - '0')
			     : (*s >= 'a' && *s <= 'f') ? (unsigned)(*s - 'a') + 10
							: 16;

		v = v * base + d;
		if (d >= base || v > UINT32_MAX)
			return false;
	}
	*ret = (uint32_t)v;
	return true;
}

/* One to four parts; all but the last are a byte, the last fills what is left. */
static bool parse_ipv4(const char *name, uint8_t *ret)
{
	uint64_t addr = 0;

	for (unsigned left = 4; left > 0; left--) {
		size_t n = strcspn(name, ".");
		uint32_t part;

		if (!parse_ipv4_part(name, n, &part))
			return false;
		if (name[n] == '\0') {
			addr = addr << (8 * left) | part;
			for (unsigned i = 0; i < 4; i++)
				ret[i] = (uint8_t)(addr >> (24 - 8 * i));
			return (uint64_t)part >> (8 * left) == 0;
		}
		if (part > UINT8_MAX)
			return false;
		addr = addr << 8 | part;
		name += n + 1;
	}
	return false;
}

int host_parse(const char *text, size_t len, struct host *ret, struct error *e)
{
	struct host out = { .kind = HOST_NAME };
	uint8_t addr[4];
	int r;

	if (len == 0)
		return error_set(e, EINVAL, "empty host name");
	if (len > HOST_TEXT_MAX_LEN)
		return error_set(e, EINVAL, "longer than %d bytes", HOST_NAME_MAX_LEN);
	if (memchr(text, ':', len) || text[0] == '[')
		return parse_ipv6(text, len, ret, e);
	r = parse_name(text, len, out.name, e);
	if (r < 0)
		return r;
	if (ends_in_number(out.name)) {
		if (!parse_ipv4(out.name, addr))
			return error_set(e, EINVAL, "ends in a number but is not an IPv4 address");
		host_from_addr(HOST_IPV4, addr, &out);
	}
	*ret = out;
	return 0;
}
