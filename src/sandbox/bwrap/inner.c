/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table says what is written and read, in which order. The bytes come from the supervisor
 * that started us and nobody else can write them; all the same nothing is believed: every length
 * is checked against what is left, flags are 0 or 1, nothing may follow the last field.
 */
#include "sandbox/bwrap/inner.h"

#include <errno.h>
#include <string.h>

#define INNER_MAGIC "ambit-init 1\n"

enum field_kind {
	FIELD_FLAG,
	FIELD_BYTES, /* of `size`, as they are */
	FIELD_TEXT, /* const char * */
	FIELD_TEXTS, /* const char **, with a count */
	FIELD_WORDS, /* char **, ended by NULL */
	FIELD_PORTS, /* uint16_t *, with a count */
	FIELD_STEPS, /* the mounts */
};

struct field {
	enum field_kind kind;
	size_t at, size; /* size: of the value, or where the count is */
};

#define AT(member) offsetof(struct inner, member)
#define FLAG(member)                                                                               \
	{                                                                                          \
		FIELD_FLAG, AT(member), 0                                                          \
	}
#define BYTES(member)                                                                              \
	{                                                                                          \
		FIELD_BYTES, AT(member), sizeof(((struct inner *)0)->member)                       \
	}
#define LIST(kind, member, count)                                                                  \
	{                                                                                          \
		kind, AT(member), AT(count)                                                        \
	}

static const struct field fields[] = {
	FLAG(plan.new_net),
	FLAG(plan.egress),
	FLAG(plan.loopback),
	FLAG(plan.landlock),
	FLAG(plan.all_unix),
	FLAG(plan.no_listen),
	FLAG(plan.cut_unguarded),
	FLAG(plan.wait_killable),
	FLAG(plan.broker),
	FLAG(plan.outer_proc),
	FLAG(plan.watch),
	FLAG(plan.root_writable),
	BYTES(plan.uid),
	BYTES(plan.gid),
	BYTES(plan.n_publish), /* whether there are any is all that is asked */
	LIST(FIELD_PORTS, plan.host_ports, plan.n_host_ports),
	{ FIELD_TEXT, AT(plan.cwd), 0 },
	{ FIELD_WORDS, AT(plan.env), 0 },
	LIST(FIELD_TEXTS, plan.writable, plan.n_writable),
	LIST(FIELD_TEXTS, plan.guarded, plan.n_guarded),
	LIST(FIELD_TEXTS, plan.relayed, plan.n_relayed),
	LIST(FIELD_STEPS, plan.mounts, plan.n_mounts),
	{ FIELD_WORDS, AT(cmd.argv), 0 },
	BYTES(cmd.mask),
	FLAG(cmd.own_terminal),
	FLAG(has_tty),
	FLAG(limited),
	FLAG(has_group),
	FLAG(limits.groups),
	FLAG(limits.measured),
	FLAG(limits.no_memfd),
	FLAG(limits.no_fallocate),
	FLAG(limits.first_victim),
	FLAG(limits.last_look),
	FLAG(limits.counted),
	FLAG(limits.pinned),
	BYTES(limits.processes),
	BYTES(limits.file_size),
	BYTES(limits.cpus),
};

/* ---- writing ---- */

static void put_number(struct buf *out, uint64_t n)
{
	buf_append(out, &n, sizeof(n));
}

static void put_text(struct buf *out, const char *text)
{
	put_number(out, strlen(text));
	buf_append(out, text, strlen(text));
}

static void put_texts(struct buf *out, const char *const *v, size_t n)
{
	put_number(out, n);
	for (size_t i = 0; i < n; i++)
		put_text(out, v[i]);
}

static void put_steps(struct buf *out, const struct mount_step *v, size_t n)
{
	put_number(out, n);
	for (size_t i = 0; i < n; i++) {
		put_number(out, v[i].kind);
		put_number(out, v[i].directory);
		put_number(out, v[i].dev);
		put_number(out, v[i].ino);
		put_text(out, v[i].path);
	}
}

static void put_words(struct buf *out, char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	put_texts(out, (const char *const *)words, n);
}

static void put_field(struct buf *out, const struct inner *in, const struct field *f)
{
	const char *base = (const char *)in, *at = base + f->at;

	switch (f->kind) {
	case FIELD_FLAG:
		buf_putc(out, *(const bool *)at ? 1 : 0);
		return;
	case FIELD_BYTES:
		buf_append(out, at, f->size);
		return;
	case FIELD_TEXT:
		put_text(out, *(const char *const *)at);
		return;
	case FIELD_TEXTS:
		put_texts(out, *(const char *const *const *)at, *(const size_t *)(base + f->size));
		return;
	case FIELD_WORDS:
		put_words(out, *(char *const *const *)at);
		return;
	case FIELD_PORTS:
		put_number(out, *(const size_t *)(base + f->size));
		buf_append(out, *(const uint16_t *const *)at,
			   *(const size_t *)(base + f->size) * sizeof(uint16_t));
		return;
	case FIELD_STEPS:
		put_steps(out, *(const struct mount_step *const *)at,
			  *(const size_t *)(base + f->size));
		return;
	}
}

void inner_pack(const struct plan *plan, const struct sandbox_command *cmd, struct buf *out)
{
	struct inner in = { .plan = *plan, .cmd = *cmd };

	in.limited = cmd->limits != NULL;
	if (cmd->limits)
		in.limits = *cmd->limits;
	in.has_tty = cmd->tty >= 0;
	in.has_group = cmd->limits && cmd->limits->born_in >= 0;
	buf_puts(out, INNER_MAGIC);
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		put_field(out, &in, &fields[i]);
}

/* ---- reading ---- */

struct reader {
	struct arena *a;
	const char *at;
	size_t left;
};

static int take(struct reader *r, void *to, size_t n)
{
	if (n > r->left)
		return -EBADMSG;
	if (n)
		memcpy(to, r->at, n);
	r->at += n;
	r->left -= n;
	return 0;
}

/* A count of things of which each takes `least` bytes at least. */
static int take_count(struct reader *r, size_t least, size_t *ret)
{
	uint64_t n;

	if (take(r, &n, sizeof(n)) < 0 || n > r->left / least)
		return -EBADMSG;
	*ret = (size_t)n;
	return 0;
}

static int take_text(struct reader *r, const char **ret)
{
	size_t n;
	int err = take_count(r, 1, &n);

	if (err < 0 || memchr(r->at, '\0', n))
		return -EBADMSG;
	*ret = arena_strndup(r->a, r->at, n);
	r->at += n;
	r->left -= n;
	return 0;
}

/* With a NULL behind the last. */
static int take_texts(struct reader *r, const char ***ret, size_t *ret_n)
{
	const char **v;
	size_t n;
	int err = take_count(r, sizeof(uint64_t), &n);

	if (err < 0)
		return err;
	v = arena_array(r->a, n + 1, sizeof(*v));
	for (size_t i = 0; i < n && err == 0; i++)
		err = take_text(r, &v[i]);
	*ret = v;
	*ret_n = n;
	return err;
}

static int take_step(struct reader *r, struct mount_step *m)
{
	uint64_t numbers[4];

	if (take(r, numbers, sizeof(numbers)) < 0 || numbers[0] >= MOUNT_KIND_MAX_ ||
	    numbers[1] > 1)
		return -EBADMSG;
	m->kind = (enum mount_kind)numbers[0];
	m->directory = numbers[1] == 1;
	m->dev = numbers[2];
	m->ino = numbers[3];
	return take_text(r, &m->path);
}

static int take_steps(struct reader *r, struct mount_step **ret, size_t *ret_n)
{
	struct mount_step *v;
	size_t n;
	int err = take_count(r, 5 * sizeof(uint64_t), &n);

	if (err < 0)
		return err;
	v = arena_array(r->a, n + 1, sizeof(*v));
	for (size_t i = 0; i < n && err == 0; i++)
		err = take_step(r, &v[i]);
	*ret = v;
	*ret_n = n;
	return err;
}

static int take_ports(struct reader *r, uint16_t **ret, size_t *ret_n)
{
	size_t n;
	int err = take_count(r, sizeof(**ret), &n);

	if (err < 0)
		return err;
	*ret = arena_array(r->a, n + 1, sizeof(**ret));
	*ret_n = n;
	return take(r, *ret, n * sizeof(**ret));
}

static int take_flag(struct reader *r, bool *ret)
{
	unsigned char byte;

	if (take(r, &byte, 1) < 0 || byte > 1)
		return -EBADMSG;
	*ret = byte == 1;
	return 0;
}

static int take_field(struct reader *r, struct inner *in, const struct field *f)
{
	char *base = (char *)in, *at = base + f->at;

	switch (f->kind) {
	case FIELD_FLAG:
		return take_flag(r, (bool *)at);
	case FIELD_BYTES:
		return take(r, at, f->size);
	case FIELD_TEXT:
		return take_text(r, (const char **)at);
	case FIELD_TEXTS:
		return take_texts(r, (const char ***)at, (size_t *)(base + f->size));
	case FIELD_WORDS:
		return take_texts(r, (const char ***)at, &(size_t){ 0 });
	case FIELD_PORTS:
		return take_ports(r, (uint16_t **)at, (size_t *)(base + f->size));
	case FIELD_STEPS:
		return take_steps(r, (struct mount_step **)at, (size_t *)(base + f->size));
	}
	return -EBADMSG;
}

int inner_unpack(struct arena *a, const void *data, size_t len, struct inner **ret, struct error *e)
{
	struct inner *in = arena_alloc(a, sizeof(*in));
	struct reader r = { .a = a, .at = data, .left = len };
	char magic[sizeof(INNER_MAGIC) - 1];
	int err = take(&r, magic, sizeof(magic));

	if (err < 0 || memcmp(magic, INNER_MAGIC, sizeof(magic)) != 0)
		return error_set(e, EBADMSG,
				 "ambit-init got orders of another version of ambit: install both "
				 "from one build");
	for (size_t i = 0; i < ARRAY_LEN(fields) && err == 0; i++)
		err = take_field(&r, in, &fields[i]);
	if (err < 0 || r.left || !in->cmd.argv[0])
		return error_set(
			e, EBADMSG,
			"ambit-init got orders that it does not understand: install it and "
			"ambit from one build");
	in->plan.backend = BACKEND_BWRAP;
	in->cmd.limits = in->limited ? &in->limits : NULL;
	in->limits.born_in = -1;
	in->cmd.tty = -1;
	for (size_t i = 0; i < ARRAY_LEN(in->cmd.stdio); i++)
		in->cmd.stdio[i] = -1;
	*ret = in;
	return 0;
}
