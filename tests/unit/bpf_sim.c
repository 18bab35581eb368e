// SPDX-License-Identifier: Apache-2.0
#include "bpf_sim.h"

#include <stdlib.h>
#include <string.h>

#define LOAD (BPF_LD | BPF_W | BPF_ABS)

static bool is_known(uint16_t code)
{
	switch (code) {
	case LOAD:
	case BPF_ALU | BPF_AND | BPF_K:
	case BPF_JMP | BPF_JA:
	case BPF_JMP | BPF_JEQ | BPF_K:
	case BPF_JMP | BPF_JGE | BPF_K:
	case BPF_JMP | BPF_JGT | BPF_K:
	case BPF_JMP | BPF_JSET | BPF_K:
	case BPF_RET | BPF_K:
		return true;
	default:
		return false;
	}
}

const char *bpf_check(const struct sock_filter *filter, size_t count)
{
	if (count == 0 || count > BPF_MAXINSNS)
		return "length";
	for (size_t i = 0; i < count; i++) {
		const struct sock_filter *f = &filter[i];
		size_t left = count - i - 1;

		if (!is_known(f->code))
			return "unknown instruction";
		if (f->code == LOAD && (f->k % 4 != 0 || f->k >= sizeof(struct seccomp_data)))
			return "load outside of struct seccomp_data";
		if (f->code == (BPF_JMP | BPF_JA) && f->k >= left)
			return "jump past the end";
		if (BPF_CLASS(f->code) == BPF_JMP && f->code != (BPF_JMP | BPF_JA) &&
		    (f->jt >= left || f->jf >= left))
			return "branch past the end";
	}
	if (BPF_CLASS(filter[count - 1].code) != BPF_RET)
		return "does not end in a return";
	return NULL;
}

static bool holds(const struct sock_filter *f, uint32_t a)
{
	switch (BPF_OP(f->code)) {
	case BPF_JEQ:
		return a == f->k;
	case BPF_JGE:
		return a >= f->k;
	case BPF_JGT:
		return a > f->k;
	default: /* BPF_JSET */
		return (a & f->k) != 0;
	}
}

struct bpf_result bpf_run(const struct sock_filter *filter, const struct seccomp_data *data)
{
	struct bpf_result result = { 0 };
	uint32_t a = 0;

	for (const struct sock_filter *f = filter;; f++) {
		result.steps++;
		switch (BPF_CLASS(f->code)) {
		case BPF_LD:
			memcpy(&a, (const char *)data + f->k, sizeof(a));
			if (f->k >= offsetof(struct seccomp_data, instruction_pointer))
				result.saw_arguments = true;
			break;
		case BPF_ALU:
			a &= f->k;
			break;
		case BPF_JMP:
			f += BPF_OP(f->code) == BPF_JA ? f->k : holds(f, a) ? f->jt : f->jf;
			break;
		default: /* BPF_RET */
			result.action = f->k;
			return result;
		}
	}
}

size_t bpf_count_dead(const struct sock_filter *filter, size_t count)
{
	bool *alive = calloc(count, sizeof(*alive));
	size_t dead = 0;

	if (!alive)
		abort();
	alive[0] = true;
	for (size_t i = 0; i < count; i++) { /* jumps go forward only */
		const struct sock_filter *f = &filter[i];

		if (!alive[i])
			dead++;
		else if (f->code == (BPF_JMP | BPF_JA))
			alive[i + 1 + f->k] = true;
		else if (BPF_CLASS(f->code) == BPF_JMP)
			alive[i + 1 + f->jt] = alive[i + 1 + f->jf] = true;
		else if (BPF_CLASS(f->code) != BPF_RET)
			alive[i + 1] = true;
	}
	free(alive);
	return dead;
}
