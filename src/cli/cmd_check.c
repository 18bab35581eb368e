/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "policy/inputs.h"
#include "sandbox/backend.h"
#include "sandbox/landlock/landlock.h"
#include "supervise/attack.h"
#include "supervise/limit.h"

#define JSON_INDENT 2

/* The backends that were not shown above, a line each. */
static void print_others(struct arena *a, struct buf *out)
{
	for (size_t i = 0; i < backends_count; i++) {
		const struct backend *b = backends_table[i];
		struct properties props = { 0 };
		struct error e = { 0 };
		const char *between = "";

		if (b == &backend_native)
			continue;
		buf_printf(out, "\nbackend %s: ", b->name);
		if (backend_try(a, b, &e) < 0 || b->probe(a, &props, &e) < 0) {
			text_append_safe(out, e.text);
			continue;
		}
		buf_printf(out, "%zu of %zu", check_count(&props), props.n);
		for (size_t k = 0; k < props.n; k++) {
			if (props.v[k].enforced)
				continue;
			buf_printf(out, "%s%s", *between ? between : "; not ", props.v[k].name);
			between = ", ";
		}
	}
	buf_putc(out, '\n');
}

static void print_json(struct arena *a, const struct properties *props, struct buf *out)
{
	struct json j = { .out = out, .indent = JSON_INDENT };

	json_begin_object(&j);
	json_kstring(&j, "backend", backend_native.name);
	json_kbool(&j, "complete", check_count(props) == props->n);
	check_print_json(props, &j);
	json_key(&j, "others");
	json_begin_array(&j);
	for (size_t i = 0; i < backends_count; i++) {
		const struct backend *b = backends_table[i];
		struct properties other = { 0 };
		struct error e = { 0 };
		bool works;

		if (b == &backend_native)
			continue;
		works = backend_try(a, b, &e) == 0 && b->probe(a, &other, &e) == 0;
		json_begin_object(&j);
		json_kstring(&j, "backend", b->name);
		json_kbool(&j, "works", works);
		json_kstring(&j, "missing", works ? NULL : e.text);
		check_print_json(&other, &j);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	buf_putc(out, '\n');
}

static const char *const outcome_words[] = {
	[ATTACK_HELD] = "held",
	[ATTACK_ESCAPED] = "ESCAPED",
	[ATTACK_UNCLEAR] = "unclear",
	[ATTACK_NOT_HERE] = "n-a",
};

static size_t count_outcome(const struct attack_results *results, enum attack_outcome outcome)
{
	size_t n = 0;

	for (size_t i = 0; i < results->n; i++)
		n += results->v[i].outcome == outcome;
	return n;
}

static const char *describe_outcome(const struct attack_result *r)
{
	switch (r->outcome) {
	case ATTACK_ESCAPED:
		return "it worked";
	case ATTACK_UNCLEAR:
		return "no answer came back";
	case ATTACK_NOT_HERE:
		return "does not work here even without a sandbox";
	case ATTACK_HELD:
		break;
	}
	return r->inside.said == ATTACK_SAID_FAILED ? r->inside.detail : "had no effect outside";
}

static void print_attack_text(const struct attack_results *results, struct buf *out)
{
	size_t none = count_outcome(results, ATTACK_NOT_HERE), width = strlen("attempt");

	for (size_t i = 0; i < results->n; i++) {
		size_t n = strlen(results->v[i].name);

		width = n > width ? n : width;
	}
	buf_printf(out, "%-*s  result   what happened\n", (int)width, "attempt");
	for (size_t i = 0; i < results->n; i++) {
		const struct attack_result *r = &results->v[i];

		buf_printf(out, "%-*s  %-7s  %s: ", (int)width, r->name, outcome_words[r->outcome],
			   r->what);
		text_append_safe(out, describe_outcome(r));
		buf_putc(out, '\n');
	}
	buf_printf(out, "%zu of %zu attempts held", count_outcome(results, ATTACK_HELD),
		   results->n - none);
	if (none > 0)
		buf_printf(out, "; %zu do not work here even without a sandbox", none);
	buf_putc(out, '\n');
}

static void print_answer(struct json *j, const char *key, const struct attack_answer *answer)
{
	static const char *const said[] = { [ATTACK_SAID_NOTHING] = NULL,
					    [ATTACK_SAID_FAILED] = "failed",
					    [ATTACK_SAID_WORKED] = "worked" };

	json_key(j, key);
	json_begin_object(j);
	json_kstring(j, "said", said[answer->said]);
	json_kstring(j, "detail", answer->detail);
	json_key(j, "canaryTouched");
	if (answer->canary == ATTACK_NO_CANARY)
		json_null(j);
	else
		json_bool(j, answer->canary == ATTACK_TOUCHED);
	json_end_object(j);
}

static void print_attack_json(const struct attack_results *results, struct buf *out)
{
	struct json j = { .out = out, .indent = JSON_INDENT };
	size_t none = count_outcome(results, ATTACK_NOT_HERE);

	json_begin_object(&j);
	json_kstring(&j, "backend", "native");
	json_kint(&j, "held", (int64_t)count_outcome(results, ATTACK_HELD));
	json_kint(&j, "of", (int64_t)(results->n - none));
	json_key(&j, "attempts");
	json_begin_array(&j);
	for (size_t i = 0; i < results->n; i++) {
		const struct attack_result *r = &results->v[i];

		json_begin_object(&j);
		json_kstring(&j, "name", r->name);
		json_kstring(&j, "what", r->what);
		json_kstring(&j, "result", outcome_words[r->outcome]);
		json_kstring(&j, "happened", describe_outcome(r));
		print_answer(&j, "control", &r->control);
		print_answer(&j, "inside", &r->inside);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	buf_putc(out, '\n');
}

/* In the home: the places for temporary files are not those of the host inside. */
static int check_attack(const struct invocation *inv, int *ret_status, struct error *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	const char *home = inputs_variable(inv->environ_in, "HOME");
	const char *const places[] = { home ? home : "/var/tmp", "/var/tmp", "/tmp", NULL };
	struct attack_request req = { .places = places };
	struct attack_results results = { 0 };
	struct plan_facts facts;
	int r;

	plan_gather_facts(inv->arena, inv->environ_in, &facts);
	landlock_gather(&facts);
	if (facts.nested)
		return error_set(
			e, EPERM,
			"this is inside another sandbox: whatever is tried here is stopped "
			"by that one too, which proves nothing");
	r = inputs_self(inv->arena, &req.program, e);

	if (r == 0)
		r = attack_run(inv->arena, &req, &results, e);
	if (r < 0)
		return r;
	if (inv->options.json)
		print_attack_json(&results, &out);
	else
		print_attack_text(&results, &out);
	if (count_outcome(&results, ATTACK_HELD) + count_outcome(&results, ATTACK_NOT_HERE) <
	    results.n)
		*ret_status = EXIT_DENIED;
	return output_write(&out, e);
}

int cmd_check(const struct invocation *inv, int *ret_status, struct error *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(BUF_MAX_TEXT);
	struct properties props = { 0 };
	bool none;
	int r = invocation_no_words(inv, e);

	if (r < 0)
		return r;
	if (inv->options.attack)
		return check_attack(inv, ret_status, e);
	r = backend_native.probe(inv->arena, &props, e);
	if (r < 0)
		return r;
	none = check_count(&props) == 0;
	limits_probe(inv->arena, &props);
	if (inv->options.json)
		print_json(inv->arena, &props, &out);
	else
		check_print_text(&props, &out);
	if (!inv->options.json)
		print_others(inv->arena, &out);
	if (none)
		*ret_status = EXIT_AMBIT;
	else if (check_count(&props) < props.n)
		*ret_status = EXIT_DENIED;
	return output_write(&out, e);
}
