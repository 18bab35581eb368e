// SPDX-License-Identifier: Apache-2.0
/*
 * Rules to BPF. The program is
 *
 *	load the architecture, kill if it is another one
 *	load the number, binary search over ranges of numbers that are treated alike
 *	the argument tests of the few syscalls that have some
 *	one RET per action
 *
 * and it is written from its end to its beginning: BPF jumps only forward, so
 * whatever an instruction jumps to is already in place, and no offset has to be
 * patched later. A place in the program is its distance from the end.
 *
 * What must hold:
 *  - Arguments are loaded only behind the search. Then the kernel can see that a
 *    call is allowed whatever its arguments and skip the filter altogether
 *    (its bitmap of constant actions): read and write cost nothing.
 *  - Whatever has no row is ENOSYS: holes, the numbers of kernels to come, and all
 *    of x32, whose numbers have bit 30 set and so lie beyond the last range.
 *  - Another architecture is killed, not refused: its numbers mean other calls
 *    (int 0x80 in a 64-bit process), so an errno would be given at random.
 *  - 64-bit arguments are compared in both halves, those which the kernel truncates
 *    to int in the low one only: else TIOCSTI | 1 << 32 passes (CVE-2019-10063).
 *
 * Both architectures are little-endian.
 */
#include "sandbox/native/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NUMBER_LIMIT 512 /* above every number in syscalls.def */
#define NO_ROW UINT16_MAX
#define ACTIONS_MAX 12 /* actions whose RET is remembered */
#define NEAR_MAX 254 /* a jump reaches 255; one less, as the other branch may need a hop */

static const uint32_t audit_arch[SECCOMP_ARCH_COUNT] = {
	[SECCOMP_X86_64] = AUDIT_ARCH_X86_64,
	[SECCOMP_AARCH64] = AUDIT_ARCH_AARCH64,
};

static const int16_t numbers[CALL_COUNT][SECCOMP_ARCH_COUNT] = {
#define SYSCALL(name, x86_64, aarch64) { x86_64, aarch64 },
#include "sandbox/native/syscalls.def"
#undef SYSCALL
};

#define SYSCALL(name, x86_64, aarch64)                                                             \
	_Static_assert((x86_64) < NUMBER_LIMIT && (aarch64) < NUMBER_LIMIT, #name);
#include "sandbox/native/syscalls.def"
#undef SYSCALL

/* Numbers from `first` to the next range. Either one action, or a row with tests. */
struct range {
	uint32_t first;
	uint32_t action;
	uint16_t row; /* NO_ROW: the action alone decides */
};

#define TABLES_MAX 3

struct generator {
	struct seccomp_rules tables[TABLES_MAX]; /* a later one overrides; rows count through */
	struct seccomp_options options;
	struct sock_filter *out; /* filled from out[max - 1] down */
	size_t max;
	size_t count; /* also the place of the instruction that was written last */
	struct {
		uint32_t action;
		size_t place;
	} returns[ACTIONS_MAX];
	size_t returns_count;
	uint16_t row_of[NUMBER_LIMIT]; /* number -> its first row */
	struct range ranges[NUMBER_LIMIT + 1];
	size_t ranges_count;
};

/* --- instructions ----------------------------------------------------------- */

/* Beyond `max` it only counts; seccomp_compile() looks at the count in the end. */
static size_t put(struct generator *g, unsigned int code, uint32_t k, size_t jt, size_t jf)
{
	g->count++;
	if (g->count <= g->max)
		g->out[g->max - g->count] = (struct sock_filter){
			.code = (uint16_t)code, .jt = (uint8_t)jt, .jf = (uint8_t)jf, .k = k
		};
	return g->count;
}

/* A place from which the next instruction can jump to what is at `place`. */
static size_t put_hop(struct generator *g, size_t place)
{
	if (g->count - place <= NEAR_MAX || g->count > g->max)
		return place;
	return put(g, BPF_JMP | BPF_JA, (uint32_t)(g->count - place), 0, 0);
}

/* The RET of an action: the one that is there, or a new one if it is too far away. */
static size_t put_return(struct generator *g, uint32_t action)
{
	size_t i = 0;

	while (i < g->returns_count && g->returns[i].action != action)
		i++;
	if (i < g->returns_count && g->count - g->returns[i].place <= NEAR_MAX)
		return g->returns[i].place;

	size_t place = put(g, BPF_RET | BPF_K, action, 0, 0);

	if (i < ACTIONS_MAX) {
		g->returns[i].action = action;
		g->returns[i].place = place;
		if (i == g->returns_count)
			g->returns_count++;
	}
	return place;
}

static size_t put_jump(struct generator *g, unsigned int test, uint32_t k, size_t yes, size_t no)
{
	yes = put_hop(g, yes);
	no = put_hop(g, no);
	return put(g, BPF_JMP | BPF_K | test, k, g->count - yes, g->count - no);
}

static size_t put_load(struct generator *g, size_t offset)
{
	return put(g, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* --- rows ------------------------------------------------------------------- */

static const struct seccomp_rule *row_at(const struct generator *g, size_t i)
{
	size_t table = 0;

	while (i >= g->tables[table].count)
		i -= g->tables[table++].count;
	return &g->tables[table].rows[i];
}

static bool has_tests(const struct seccomp_rule *rule)
{
	return rule->tests[0].mask != 0;
}

static uint32_t ask_if(bool asked)
{
	return asked ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
}

static uint32_t refuse_if(bool refused, uint32_t err)
{
	return refused ? SECCOMP_RET_ERRNO | err : SECCOMP_RET_ALLOW;
}

/* What one of ours becomes with these options. */
static uint32_t chosen_action(const struct seccomp_options *o, enum seccomp_choice choice)
{
	switch (choice) {
	case SECCOMP_WATCH:
		return ask_if(o->notify && o->watch);
	case SECCOMP_NO_DATAGRAMS:
		return refuse_if(o->no_unix || (o->notify && !o->all_unix), EPROTONOSUPPORT);
	case SECCOMP_LISTEN:
		return ask_if(o->notify && o->no_listen);
	case SECCOMP_PINNED:
		return refuse_if(o->pinned, EPERM);
	case SECCOMP_OPENAT2:
		if (o->alone || (o->notify && o->no_openat2))
			return SECCOMP_RET_ERRNO | ENOSYS;
		return ask_if(o->notify);
	case SECCOMP_MEMFD:
		return refuse_if(o->no_memfd, ENOSYS);
	case SECCOMP_RESERVE:
		return refuse_if(o->no_fallocate, EOPNOTSUPP);
	case SECCOMP_UNIX:
		return refuse_if(o->no_unix, EAFNOSUPPORT);
	case SECCOMP_BROKERED:
		return refuse_if(!o->notify, EAFNOSUPPORT);
	case SECCOMP_DIRECT:
		return ask_if(o->notify && !o->direct);
	case SECCOMP_SPECIAL:
		return o->notify ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | EPERM;
	case SECCOMP_CHOICE_END_:
		break;
	}
	return SECCOMP_RET_KILL_PROCESS;
}

static uint32_t effective_action(const struct generator *g, const struct seccomp_rule *rule)
{
	if (rule->group == GROUP_TRACE && !g->options.allow_ptrace)
		return SECCOMP_RET_ERRNO | EPERM;
	if (rule->action >= SECCOMP_WATCH && rule->action < SECCOMP_CHOICE_END_)
		return chosen_action(&g->options, (enum seccomp_choice)rule->action);
	if (rule->action == SECCOMP_RET_USER_NOTIF && !g->options.notify)
		return SECCOMP_RET_ALLOW;
	return rule->action;
}

/* One half of a test; a half that cannot fail needs no instruction. */
static size_t put_half(struct generator *g, size_t offset, uint32_t mask, uint32_t value,
		       size_t yes, size_t no)
{
	if (mask == 0)
		return yes;
	put_jump(g, BPF_JEQ, value, yes, no);
	if (mask != UINT32_MAX)
		put(g, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
	return put_load(g, offset);
}

static size_t put_test(struct generator *g, const struct seccomp_test *test, size_t yes, size_t no)
{
	size_t low = offsetof(struct seccomp_data, args) + test->arg * sizeof(uint64_t);
	size_t high = low + sizeof(uint32_t);

	yes = put_half(g, low, (uint32_t)test->mask, (uint32_t)test->value, yes, no);
	return put_half(g, high, (uint32_t)(test->mask >> 32), (uint32_t)(test->value >> 32), yes,
			no);
}

/* The rows of one syscall, last one first. */
static size_t put_rows(struct generator *g, size_t first)
{
	size_t last = first;

	while (has_tests(row_at(g, last)))
		last++;

	size_t otherwise = put_return(g, effective_action(g, row_at(g, last)));

	for (size_t i = last; i-- > first;) {
		const struct seccomp_rule *row = row_at(g, i);
		size_t yes = put_return(g, effective_action(g, row));

		for (size_t t = SECCOMP_TESTS_MAX; t-- > 0;)
			if (row->tests[t].mask)
				yes = put_test(g, &row->tests[t], yes, otherwise);
		otherwise = yes;
	}
	return otherwise;
}

/* --- ranges ----------------------------------------------------------------- */

/* The rows of one table, of which `before` others count ahead. */
static int index_table(struct generator *g, const struct seccomp_rules *table, size_t before,
		       enum seccomp_arch arch, struct error *e)
{
	const struct seccomp_rule *rows = table->rows;

	for (size_t i = 0; i < table->count; i++) {
		bool goes_on = i > 0 && has_tests(&rows[i - 1]);
		int number = seccomp_call_number(arch, rows[i].call);

		if (goes_on ? rows[i].call != rows[i - 1].call
			    : number >= 0 && g->row_of[number] != NO_ROW &&
				      g->row_of[number] >= before)
			return error_set(e, EINVAL, "seccomp rule %zu is out of place", i);
		if (!goes_on && number >= 0)
			g->row_of[number] = (uint16_t)(before + i);
	}
	if (before + table->count >= NO_ROW ||
	    (table->count > 0 && has_tests(&rows[table->count - 1])))
		return error_set(e, EINVAL, "seccomp rules have no end");
	return 0;
}

static int index_rows(struct generator *g, enum seccomp_arch arch, struct error *e)
{
	size_t before = 0;
	int r = 0;

	memset(g->row_of, 0xff, sizeof(g->row_of)); /* NO_ROW */
	for (size_t i = 0; i < TABLES_MAX && r == 0; i++) {
		r = index_table(g, &g->tables[i], before, arch, e);
		before += g->tables[i].count;
	}
	return r;
}

/* Tests that all lead to the same action are none: without a broker openat() is free. */
static struct range range_of(const struct generator *g, uint32_t number)
{
	struct range range = { number, SECCOMP_RET_ERRNO | ENOSYS, NO_ROW };
	size_t row = number < NUMBER_LIMIT ? g->row_of[number] : NO_ROW;

	if (row == NO_ROW)
		return range;
	range.action = effective_action(g, row_at(g, row));
	for (size_t i = row; has_tests(row_at(g, i)); i++)
		if (effective_action(g, row_at(g, i + 1)) != range.action)
			range.row = (uint16_t)row;
	return range;
}

static bool is_alike(const struct range *a, const struct range *b)
{
	return a->row == NO_ROW && b->row == NO_ROW && a->action == b->action;
}

static void find_ranges(struct generator *g)
{
	for (uint32_t number = 0; number <= NUMBER_LIMIT; number++) {
		struct range next = range_of(g, number);

		if (number > 0 && is_alike(&next, &g->ranges[g->ranges_count - 1]))
			continue;
		g->ranges[g->ranges_count++] = next;
	}
}

static size_t put_search(struct generator *g, size_t first, size_t last)
{
	const struct range *range = &g->ranges[first];

	if (first == last)
		return range->row == NO_ROW ? put_return(g, range->action)
					    : put_rows(g, range->row);

	size_t middle = first + (last - first + 1) / 2;
	size_t above = put_search(g, middle, last);
	size_t below = put_search(g, first, middle - 1);

	return put_jump(g, BPF_JGE, g->ranges[middle].first, above, below);
}

/* --- the whole -------------------------------------------------------------- */

int seccomp_compile(enum seccomp_arch arch, struct seccomp_rules rules,
		    const struct seccomp_options *options, struct sock_filter *out, size_t max,
		    struct error *e)
{
	struct generator g = {
		.tables = { rules },
		.options = options ? *options : SECCOMP_OPTIONS_DEFAULT,
		.out = out,
		.max = max,
	};
	int r;

	if (g.options.bare)
		g.tables[1] = seccomp_bare_file_rules();
	if (g.options.bare && g.options.no_network)
		g.tables[2] = seccomp_bare_network_rules();
	r = index_rows(&g, arch, e);
	if (r < 0)
		return r;
	find_ranges(&g);

	put_search(&g, 0, g.ranges_count - 1); /* begins with what it put last */

	size_t search = put_load(&g, offsetof(struct seccomp_data, nr));
	size_t kill = put_return(&g, SECCOMP_RET_KILL_PROCESS);

	put_jump(&g, BPF_JEQ, audit_arch[arch], search, kill);
	put_load(&g, offsetof(struct seccomp_data, arch));

	if (g.count > max || g.count > BPF_MAXINSNS)
		return error_set(e, E2BIG, "the seccomp filter would have %zu instructions",
				 g.count);
	memmove(out, out + (max - g.count), g.count * sizeof(*out));
	return (int)g.count;
}

int seccomp_build(enum seccomp_arch arch, const struct seccomp_options *options,
		  struct sock_filter *out, size_t max, struct error *e)
{
	return seccomp_compile(arch, seccomp_builtin_rules(), options, out, max, e);
}

int seccomp_call_number(enum seccomp_arch arch, enum seccomp_call call)
{
	return numbers[call][arch];
}

enum seccomp_arch seccomp_native_arch(void)
{
#if defined(__x86_64__) && defined(__LP64__)
	return SECCOMP_X86_64;
#elif defined(__aarch64__) && defined(__LP64__) && !defined(__AARCH64EB__)
	return SECCOMP_AARCH64;
#else
#error "no syscall numbers for this architecture"
#endif
}

int seccomp_load(const struct sock_filter *filter, size_t count, unsigned int flags)
{
	/* The kernel's struct lacks a const that it keeps. */
	struct sock_fprog program = { .len = (unsigned short)count,
				      .filter = (struct sock_filter *)(uintptr_t)filter };

	if (count == 0 || count > BPF_MAXINSNS)
		return -EINVAL;

	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);

	if (r < 0)
		return -errno;
	/* With TSYNC a positive result is the thread that could not follow. */
	if (r > 0 && !(flags & SECCOMP_FILTER_FLAG_NEW_LISTENER))
		return -ESRCH;
	return (int)r;
}
