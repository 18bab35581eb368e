/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table lists letters and digits that a label may hold. All of them are
 * starters that neither compose nor decompose, so that every sequence of them
 * is in normal form C already and no second spelling exists. Left out on
 * purpose: combining marks, compatibility forms, ligatures, what folds to more
 * than one letter or to ASCII (dotted capital I, long s, Kelvin), joiners and
 * everything invisible.
 */
#include "policy/host_idn.h"

#include <errno.h>
#include <string.h>

#include "policy/match_host.h"
#include "policy/punycode.h"

#define PREFIX "xn--"
#define PREFIX_LEN (sizeof(PREFIX) - 1)

enum fold {
	FOLD_SHIFT, /* lower case is `shift` away; 0 = has no other case */
	FOLD_EVEN, /* pairs, the even one is the capital */
	FOLD_ODD, /* pairs, the odd one is the capital */
};

static const struct range {
	uint32_t first, last;
	enum fold fold;
	int shift;
} ranges[] = {
	/* Latin */
	{ 0xc0, 0xd6, FOLD_SHIFT, 32 },
	{ 0xd8, 0xde, FOLD_SHIFT, 32 },
	{ 0xdf, 0xf6, FOLD_SHIFT, 0 },
	{ 0xf8, 0xff, FOLD_SHIFT, 0 },
	{ 0x100, 0x12f, FOLD_EVEN, 0 },
	{ 0x131, 0x131, FOLD_SHIFT, 0 },
	{ 0x134, 0x137, FOLD_EVEN, 0 },
	{ 0x138, 0x138, FOLD_SHIFT, 0 },
	{ 0x139, 0x13e, FOLD_ODD, 0 },
	{ 0x141, 0x148, FOLD_ODD, 0 },
	{ 0x14a, 0x177, FOLD_EVEN, 0 },
	{ 0x178, 0x178, FOLD_SHIFT, -121 },
	{ 0x179, 0x17e, FOLD_ODD, 0 },
	{ 0x1a0, 0x1a1, FOLD_EVEN, 0 },
	{ 0x1af, 0x1b0, FOLD_ODD, 0 },
	{ 0x218, 0x21b, FOLD_EVEN, 0 },
	/* Greek */
	{ 0x386, 0x386, FOLD_SHIFT, 38 },
	{ 0x388, 0x38a, FOLD_SHIFT, 37 },
	{ 0x38c, 0x38c, FOLD_SHIFT, 64 },
	{ 0x38e, 0x38f, FOLD_SHIFT, 63 },
	{ 0x390, 0x390, FOLD_SHIFT, 0 },
	{ 0x391, 0x3a1, FOLD_SHIFT, 32 },
	{ 0x3a3, 0x3ab, FOLD_SHIFT, 32 },
	{ 0x3ac, 0x3ce, FOLD_SHIFT, 0 },
	/* Cyrillic */
	{ 0x400, 0x40f, FOLD_SHIFT, 80 },
	{ 0x410, 0x42f, FOLD_SHIFT, 32 },
	{ 0x430, 0x45f, FOLD_SHIFT, 0 },
	{ 0x48a, 0x4bf, FOLD_EVEN, 0 },
	{ 0x4c1, 0x4ce, FOLD_ODD, 0 },
	{ 0x4cf, 0x4cf, FOLD_SHIFT, 0 },
	{ 0x4d0, 0x52f, FOLD_EVEN, 0 },
	/* Armenian, Hebrew, Arabic, Georgian */
	{ 0x531, 0x556, FOLD_SHIFT, 48 },
	{ 0x561, 0x586, FOLD_SHIFT, 0 },
	{ 0x5d0, 0x5ea, FOLD_SHIFT, 0 },
	{ 0x620, 0x63f, FOLD_SHIFT, 0 },
	{ 0x641, 0x64a, FOLD_SHIFT, 0 },
	{ 0x660, 0x669, FOLD_SHIFT, 0 },
	{ 0x671, 0x674, FOLD_SHIFT, 0 },
	{ 0x679, 0x6d3, FOLD_SHIFT, 0 },
	{ 0x6f0, 0x6fc, FOLD_SHIFT, 0 },
	{ 0x10d0, 0x10fa, FOLD_SHIFT, 0 },
	/* Vietnamese */
	{ 0x1ea0, 0x1ef9, FOLD_EVEN, 0 },
	/* Kana, Han, Hangul */
	{ 0x3005, 0x3007, FOLD_SHIFT, 0 },
	{ 0x3041, 0x3096, FOLD_SHIFT, 0 },
	{ 0x309d, 0x309e, FOLD_SHIFT, 0 },
	{ 0x30a1, 0x30fa, FOLD_SHIFT, 0 },
	{ 0x30fc, 0x30fe, FOLD_SHIFT, 0 },
	{ 0x3400, 0x4dbf, FOLD_SHIFT, 0 },
	{ 0x4e00, 0x9ffc, FOLD_SHIFT, 0 },
	{ 0xac00, 0xd7a3, FOLD_SHIFT, 0 },
	{ 0x20000, 0x2a6dd, FOLD_SHIFT, 0 },
};

static uint32_t fold_in_range(const struct range *r, uint32_t c)
{
	switch (r->fold) {
	case FOLD_SHIFT:
		return (uint32_t)((int)c + r->shift);
	case FOLD_EVEN:
		return c | 1;
	case FOLD_ODD:
		return c + (c & 1);
	}
	return c;
}

bool idn_fold(uint32_t c, uint32_t *ret)
{
	/* The fullwidth forms are ASCII: judged as such from here on. */
	if (c >= 0xff01 && c <= 0xff5e)
		c -= 0xff01 - '!';
	if (c == 0x3002 || c == 0xff61)
		c = '.';
	if (c < 0x80) {
		*ret = c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
		if (c < ranges[i].first || c > ranges[i].last)
			continue;
		*ret = fold_in_range(&ranges[i], c);
		return true;
	}
	return false;
}

int idn_alabel_encode(const uint32_t *label, size_t n, char *ret, size_t cap)
{
	int r;

	if (cap < PREFIX_LEN)
		return -E2BIG;
	memcpy(ret, PREFIX, PREFIX_LEN);
	r = punycode_encode(label, n, ret + PREFIX_LEN, cap - PREFIX_LEN);
	return r < 0 ? r : r + (int)PREFIX_LEN;
}

bool idn_alabel_valid(const char *label, size_t n)
{
	uint32_t points[HOST_LABEL_MAX_LEN];
	char again[HOST_LABEL_MAX_LEN];
	bool ascii = true;
	int count, len;

	if (n <= PREFIX_LEN || memcmp(label, PREFIX, PREFIX_LEN) != 0)
		return false;
	count = punycode_decode(label + PREFIX_LEN, n - PREFIX_LEN, points, ARRAY_LEN(points));
	if (count <= 0)
		return false;
	for (int i = 0; i < count; i++) {
		uint32_t folded = points[i];

		/* controls and surrogates are no characters */
		if ((points[i] >= 0x80 && points[i] < 0xa0) ||
		    (points[i] >= 0xd800 && points[i] <= 0xdfff))
			return false;
		/* a capital or a dot in disguise: a client that decodes goes to another name */
		if (idn_fold(points[i], &folded) && folded != points[i])
			return false;
		ascii = ascii && points[i] < 0x80;
	}
	if (ascii)
		return false;
	len = idn_alabel_encode(points, (size_t)count, again, sizeof(again));
	return len == (int)n && memcmp(again, label, n) == 0;
}
