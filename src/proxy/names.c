/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct name_slot {
	uint32_t number, hash;
	char name[HOST_NAME_MAX_LEN + 1]; /* "" = free */
};

/* Bits that number the names: a /96 leaves 32, of which 31 are plenty. */
#define NUMBER_BITS_MAX 31

static uint32_t load32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store32(uint32_t v, uint8_t *p)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Numbers that the networks have addresses for; the first and last address stay unused. */
static uint32_t capacity(const struct names *t)
{
	return (1u << (32 - t->bits4)) - 2;
}

/*
 * Slots in use: where the network is smaller than the table, so that no two slots ever share a
 * number.
 */
static uint32_t slot_count(const struct names *t)
{
	return capacity(t) < NAMES_MAX ? capacity(t) : NAMES_MAX;
}

static void forget_all(struct names *t)
{
	free(t->slots);
	t->slots = NULL;
	t->next = 0;
}

void names_done(struct names *t)
{
	forget_all(t);
}

static int parse_network(const char *text, enum host_kind kind, uint8_t min_bits, uint8_t max_bits,
			 struct host_rule *ret, struct error *e)
{
	int r = host_rule_parse(text, false, ret, e);

	if (r < 0)
		return r;
	if (ret->type != HOST_RULE_CIDR || ret->host.kind != kind || ret->port ||
	    ret->prefix_len < min_bits || ret->prefix_len > max_bits)
		return error_set(e, EINVAL, "\"%s\" cannot be a synthetic network", text);
	return 0;
}

int names_set_networks(struct names *t, const char *net4, const char *net6, struct error *e)
{
	struct host_rule r4, r6;
	int r;

	r = parse_network(net4, HOST_IPV4, 32 - NUMBER_BITS_MAX, 24, &r4, e);
	if (r == 0)
		r = parse_network(net6, HOST_IPV6, 96, 96, &r6, e);
	if (r < 0)
		return r;
	if (t->bits4 == r4.prefix_len && strcmp(t->net4.name, r4.host.name) == 0 &&
	    strcmp(t->net6.name, r6.host.name) == 0)
		return 0;
	forget_all(t);
	t->net4 = r4.host;
	t->net6 = r6.host;
	t->bits4 = r4.prefix_len;
	return 0;
}

/* FNV-1a: only to skip strcmp, chains cannot grow. */
static uint32_t hash_name(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

uint32_t names_number(struct names *t, const char *name)
{
	uint32_t hash = hash_name(name);
	struct name_slot *slot;

	if (!t->slots)
		t->slots = calloc(NAMES_MAX, sizeof(*t->slots));
	if (!t->slots)
		abort();
	for (size_t i = 0; i < NAMES_MAX && t->slots[i].name[0]; i++) {
		slot = &t->slots[i];
		if (slot->hash == hash && strcmp(slot->name, name) == 0)
			return slot->number;
	}
	slot = &t->slots[t->next % slot_count(t)];
	(void)snprintf(slot->name, sizeof(slot->name), "%s", name);
	slot->number = t->next++ % capacity(t);
	slot->hash = hash;
	return slot->number;
}

void names_address4(const struct names *t, uint32_t number, uint8_t ret[4])
{
	store32(load32(t->net4.addr) + 1 + number, ret);
}

void names_address6(const struct names *t, uint32_t number, uint8_t ret[16])
{
	memcpy(ret, t->net6.addr, 12);
	store32(1 + number, ret + 12);
}

bool names_is_synthetic(const struct names *t, const struct host *a)
{
	if (a->kind == HOST_IPV4)
		return (load32(a->addr) ^ load32(t->net4.addr)) >> (32 - t->bits4) == 0;
	return a->kind == HOST_IPV6 && memcmp(a->addr, t->net6.addr, 12) == 0;
}

const char *names_find(const struct names *t, const struct host *a)
{
	uint32_t number;

	if (!t->slots || !names_is_synthetic(t, a))
		return NULL;
	number = a->kind == HOST_IPV4 ? load32(a->addr) - load32(t->net4.addr) - 1
				      : load32(a->addr + 12) - 1;
	for (size_t i = 0; i < NAMES_MAX && t->slots[i].name[0]; i++) {
		if (t->slots[i].number == number)
			return t->slots[i].name;
	}
	return NULL;
}

bool names_restore(const struct names *t, struct host *host)
{
	const char *name = names_find(t, host);

	if (name && host_parse(name, strlen(name), host, NULL) < 0)
		abort(); /* only canonical names are in the table */
	return name != NULL;
}
