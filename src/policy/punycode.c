/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generalized variable-length integers and the adaptive bias of RFC 3492.
 * Every step that could leave 32 bits is checked: a label that overflows is
 * not a name, and a wrapped one would be a second spelling of another.
 */
#include "policy/punycode.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"

#define BASE 36u
#define T_MIN 1u
#define T_MAX 26u
#define SKEW 38u
#define DAMP 700u
#define INITIAL_BIAS 72u
#define INITIAL_N 0x80u
#define CODE_POINT_MAX 0x10ffffu

static uint32_t adapt(uint32_t delta, size_t points, bool first)
{
	uint32_t k = 0;

	delta /= first ? DAMP : 2;
	delta += delta / (uint32_t)points;
	for (; delta > (BASE - T_MIN) * T_MAX / 2; k += BASE)
		delta /= BASE - T_MIN;
	return k + (BASE - T_MIN + 1) * delta / (delta + SKEW);
}

static uint32_t threshold(uint32_t k, uint32_t bias)
{
	if (k <= bias + T_MIN)
		return T_MIN;
	return k >= bias + T_MAX ? T_MAX : k - bias;
}

static char digit_char(uint32_t d)
{
	return (char)(d < 26 ? 'a' + d : '0' + (d - 26));
}

/* BASE for what is not a digit. */
static uint32_t digit_value(char c)
{
	if (ascii_digit(c))
		return (uint32_t)(c - '0') + 26;
	return ascii_alpha(c) ? (uint32_t)(ascii_lower(c) - 'a') : BASE;
}

static int put_number(uint32_t q, uint32_t bias, char *ret, size_t cap, size_t *len)
{
	for (uint32_t k = BASE;; k += BASE) {
		uint32_t t = threshold(k, bias);
		bool last = q < t;

		if (*len >= cap)
			return -E2BIG;
		ret[(*len)++] = digit_char(last ? q : t + (q - t) % (BASE - t));
		if (last)
			return 0;
		q = (q - t) / (BASE - t);
	}
}

static uint32_t least_not_below(const uint32_t *in, size_t n, uint32_t bound)
{
	uint32_t least = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		if (in[i] >= bound && in[i] < least)
			least = in[i];
	}
	return least;
}

int punycode_encode(const uint32_t *in, size_t n, char *ret, size_t cap)
{
	uint32_t next = INITIAL_N, delta = 0, bias = INITIAL_BIAS;
	size_t len = 0, basic, done;

	for (size_t i = 0; i < n; i++) {
		if (in[i] > CODE_POINT_MAX)
			return -EINVAL;
		if (in[i] >= INITIAL_N)
			continue;
		if (len >= cap)
			return -E2BIG;
		ret[len++] = (char)in[i];
	}
	basic = done = len;
	if (basic > 0) {
		if (len >= cap)
			return -E2BIG;
		ret[len++] = '-';
	}
	while (done < n) {
		uint32_t m = least_not_below(in, n, next), step;

		if (__builtin_mul_overflow(m - next, (uint32_t)done + 1, &step) ||
		    __builtin_add_overflow(delta, step, &delta))
			return -EINVAL;
		next = m;
		for (size_t i = 0; i < n; i++) {
			if (in[i] < next && ++delta == 0)
				return -EINVAL;
			if (in[i] != next)
				continue;
			if (put_number(delta, bias, ret, cap, &len) < 0)
				return -E2BIG;
			bias = adapt(delta, done + 1, done == basic);
			done++;
			delta = 0;
		}
		delta++;
		next++;
	}
	return (int)len;
}

/* One variable-length integer added to *i. */
static int get_number(const char *in, size_t n, size_t *at, uint32_t bias, uint32_t *i)
{
	uint32_t weight = 1;

	for (uint32_t k = BASE;; k += BASE) {
		uint32_t t = threshold(k, bias), d, step;

		if (*at >= n)
			return -EINVAL;
		d = digit_value(in[(*at)++]);
		if (d >= BASE || __builtin_mul_overflow(d, weight, &step) ||
		    __builtin_add_overflow(*i, step, i))
			return -EINVAL;
		if (d < t)
			return 0;
		if (__builtin_mul_overflow(weight, BASE - t, &weight))
			return -EINVAL;
	}
}

int punycode_decode(const char *in, size_t n, uint32_t *ret, size_t cap)
{
	const char *delimiter = n > 0 ? text_find_last(in, n, '-') : NULL;
	size_t len = delimiter ? (size_t)(delimiter - in) : 0;
	size_t at = delimiter ? len + 1 : 0, basic = len;
	uint32_t next = INITIAL_N, i = 0, bias = INITIAL_BIAS;

	if (len > cap)
		return -E2BIG;
	for (size_t j = 0; j < len; j++) {
		ret[j] = (unsigned char)in[j];
		if (ret[j] >= INITIAL_N)
			return -EINVAL;
	}
	while (at < n) {
		uint32_t before = i;

		if (get_number(in, n, &at, bias, &i) < 0)
			return -EINVAL;
		if (len >= cap)
			return -E2BIG;
		bias = adapt(i - before, len + 1, len == basic);
		len++;
		if (__builtin_add_overflow(next, i / (uint32_t)len, &next) || next > CODE_POINT_MAX)
			return -EINVAL;
		i %= (uint32_t)len;
		memmove(ret + i + 1, ret + i, (len - 1 - i) * sizeof(*ret));
		ret[i++] = next;
	}
	return (int)len;
}
