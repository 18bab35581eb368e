/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

#define FIELD(name) .offset = offsetof(struct options, name)

/* clang-format off */
const struct option options_table[] = {
	{ 's', "settings", "FILE", GROUP_POLICY, OPTION_TEXT, FIELD(settings), .once = true,
	  .file = true, .help = "use this file instead of the user's and the project's settings" },
	{ 'p', "profile", "NAME", GROUP_POLICY, OPTION_SETTING, "profiles",
	  .help = "add a named profile (npm, pip, strict, ...) or a profile file" },
	{ 0, "allow-read", "PATH", GROUP_POLICY, OPTION_SETTING, "filesystem.allowRead",
	  .help = "let PATH be read (below what is denied)" },
	{ 0, "deny-read", "PATH", GROUP_POLICY, OPTION_SETTING, "filesystem.denyRead",
	  .help = "hide PATH" },
	{ 0, "allow-write", "PATH", GROUP_POLICY, OPTION_SETTING, "filesystem.allowWrite",
	  .help = "let PATH be written to" },
	{ 0, "deny-write", "PATH", GROUP_POLICY, OPTION_SETTING, "filesystem.denyWrite",
	  .help = "keep PATH from being written to, whatever allows it" },
	{ 0, "network", "none|allowlist|host", GROUP_POLICY, OPTION_SETTING, "network.mode",
	  .help = "network access (default: none, or allowlist with an allowed domain)" },
	{ 0, "allow-domain", "DOMAIN", GROUP_POLICY, OPTION_SETTING, "network.allowedDomains",
	  .help = "host, *.host, host:port, IP or CIDR; comma lists and @FILE too" },
	{ 0, "deny-domain", "DOMAIN", GROUP_POLICY, OPTION_SETTING, "network.deniedDomains",
	  .help = "never connect there, whatever allows it" },
	{ 0, "allow-unix", "PATH", GROUP_POLICY, OPTION_SETTING, "network.allowUnixSockets",
	  .help = "let this unix socket be connected to" },
	{ 0, "publish", "PORT", GROUP_POLICY, OPTION_SETTING, "network.publish",
	  .help = "make a port inside reachable on 127.0.0.1 of the host" },
	{ 0, "allow-host-port", "PORT", GROUP_POLICY, OPTION_SETTING, "network.allowHostPorts",
	  .help = "make a port of the host's 127.0.0.1 reachable inside" },
	{ 0, "memory", "SIZE", GROUP_POLICY, OPTION_SETTING, "limits.memory",
	  .help = "most memory, e.g. 512m" },
	{ 0, "cpu", "CORES", GROUP_POLICY, OPTION_SETTING, "limits.cpu",
	  .help = "most processor time, in cores, e.g. 1.5" },
	{ 0, "pids", "COUNT", GROUP_POLICY, OPTION_SETTING, "limits.pids",
	  .help = "most processes and threads" },
	{ 0, "disk", "SIZE", GROUP_POLICY, OPTION_SETTING, "limits.disk",
	  .help = "most bytes written to files, e.g. 1g" },
	{ 0, "output", "SIZE", GROUP_POLICY, OPTION_SETTING, "limits.output",
	  .help = "most bytes of output, e.g. 10m" },
	{ 0, "timeout", "TIME", GROUP_POLICY, OPTION_SETTING, "limits.timeout",
	  .help = "end the command after this time, e.g. 30m (exit code 124)" },
	{ 0, "env", "NAME[=VALUE]", GROUP_POLICY, OPTION_SETTING, "environment.set",
	  .help = "pass a variable on, or set it" },
	{ 0, "env-prefix", "PREFIX", GROUP_POLICY, OPTION_SETTING, "environment.passPrefix",
	  .help = "pass on every variable whose name starts so" },
	{ 0, "clear-env", NULL, GROUP_POLICY, OPTION_SETTING, "environment.inherit", "none",
	  .help = "inherit only PATH, HOME, USER, SHELL, TERM, LANG and the like" },
	{ 0, "backend", "auto|native|bwrap|landlock|seatbelt|podman|docker|none", GROUP_POLICY, OPTION_SETTING,
	  "backend", .help = "what enforces the policy (default: auto)" },
	{ 0, "image", "NAME", GROUP_POLICY, OPTION_SETTING, "container.image",
	  .help = "image for --backend podman or docker; it is never fetched" },
	{ 0, "fallback", "enforce|warn", GROUP_POLICY, OPTION_SETTING, "fallback",
	  .help = "when this machine cannot enforce everything: refuse, or say so and go on" },
	{ 0, "chdir", "DIR", GROUP_POLICY, OPTION_TEXT, FIELD(chdir), .file = true,
	  .help = "run in this directory" },
	{ 0, "tmp", "private|host|shared", GROUP_POLICY, OPTION_SETTING, "filesystem.tmp",
	  .help = "an own /tmp (default), the host's under the rules, or the host's to write to" },
	{ 0, "home", "real|private", GROUP_POLICY, OPTION_SETTING, "filesystem.home",
	  .help = "the home directory (default), or an empty one in its place" },
	{ 0, "set", "KEY=VALUE", GROUP_POLICY, OPTION_SET,
	  .help = "any setting by its dotted name; see ambit-settings(5)" },
	{ 0, "report", "FILE|-|none", GROUP_RUN, OPTION_TEXT, FIELD(report), .file = true,
	  .help = "write a JSON report of the run; - is stderr" },
	{ 0, "log", "FILE", GROUP_RUN, OPTION_TEXT, FIELD(log), .once = true, .file = true,
	  .help = "write down what the command reads and prints, with the time" },
	{ 0, "report-reads", NULL, GROUP_POLICY, OPTION_FLAG, FIELD(report_reads),
	  .help = "tell denied reads and setuid programs too (every open costs a little more)" },
	{ 0, "control-fd", "N", GROUP_RUN, OPTION_TEXT, FIELD(control_fd), .once = true,
	  .help = "read changes of the network lists from this descriptor: a settings file a line" },
	{ 0, "ask", NULL, GROUP_RUN, OPTION_FLAG, FIELD(ask),
	  .help = "ask about hosts that no rule covers, and about protected names" },
	{ 0, "events-fd", "N", GROUP_RUN, OPTION_TEXT, FIELD(events_fd), .once = true,
	  .help = "for programs: write what happens to this descriptor, as JSON lines, not to stderr" },
	{ 0, "env-fd", "N", GROUP_RUN, OPTION_TEXT, FIELD(env_fd), .once = true,
	  .help = "for programs: read the command's variables from this descriptor (NUL after each)" },
	{ 'c', "command", "STRING", GROUP_SHELL, OPTION_TEXT, FIELD(shell), .once = true,
	  .help = "run a shell command line: bash -c, or sh where there is no bash" },
	{ 0, "json", NULL, GROUP_JSON, OPTION_FLAG, FIELD(json),
	  .help = "answer in JSON; for run: --report -" },
	{ 0, "schema", NULL, GROUP_SCHEMA, OPTION_FLAG, FIELD(schema),
	  .help = "print the JSON Schema of the settings file" },
	{ 0, "attack", NULL, GROUP_ATTACK, OPTION_FLAG, FIELD(attack),
	  .help = "run the built-in escape attempts and say what held" },
	{ 'o', "out", "FILE", GROUP_LEARN, OPTION_TEXT, FIELD(out), .once = true, .file = true,
	  .help = "write the policy to this new file (YAML) instead of standard output" },
	{ 0, "update", "FILE", GROUP_LEARN, OPTION_TEXT, FIELD(update), .once = true, .file = true,
	  .help = "run under this policy and add to it what else was needed" },
	{ 'f', "follow", NULL, GROUP_LOG, OPTION_FLAG, FIELD(follow),
	  .help = "go on with the records that come" },
	{ 0, "violations", NULL, GROUP_LOG, OPTION_FLAG, FIELD(violations),
	  .help = "only what was denied" },
	{ 0, "kind", "KIND", GROUP_LOG, OPTION_TEXT, FIELD(kind),
	  .help = "only these: run-start, run-end, violation, network, write, connect, ..." },
	{ 0, "run", "ID", GROUP_LOG, OPTION_TEXT, FIELD(run),
	  .help = "only of the run whose name begins so" },
	{ 0, "since", "TIME", GROUP_LOG, OPTION_TEXT, FIELD(since),
	  .help = "from then on: 10m, 2h, 1d (ago), 2026-01-31, 2026-01-31T12:00:00Z" },
	{ 0, "until", "TIME", GROUP_LOG, OPTION_TEXT, FIELD(until), .help = "up to then" },
	{ 0, "file", "FILE", GROUP_LOG, OPTION_TEXT, FIELD(file), .file = true,
	  .help = "this log instead of the one in the settings" },
	{ 'q', "quiet", NULL, GROUP_GENERAL, OPTION_FLAG, FIELD(quiet),
	  .help = "no warnings, only errors" },
	{ 'v', "verbose", NULL, GROUP_GENERAL, OPTION_FLAG, FIELD(verbose),
	  .help = "say more" },
	{ 0, "debug", NULL, GROUP_GENERAL, OPTION_FLAG, FIELD(debug),
	  .help = "say everything" },
	{ 'h', "help", NULL, GROUP_GENERAL, OPTION_FLAG, FIELD(help),
	  .help = "show this help" },
};
/* clang-format on */
const size_t options_count = ARRAY_LEN(options_table);

#define NEAREST_MAX 3 /* edits; a longer way off is another word */

void nearest_try(struct nearest *n, const char *word, const char *candidate)
{
	unsigned d = text_distance(word, candidate);

	if (d > NEAREST_MAX || d > strlen(candidate) / 2 || (n->name && n->distance <= d))
		return;
	*n = (struct nearest){ candidate, d };
}

/* State of one parse. */
struct parser {
	struct arena *arena;
	const struct option_scope *scope;
	char *const *next; /* the following argument */
	struct options *out;
	struct error *e;
};

/* Text from the command line inside a message: escaped, so that it stays one line. */
static const char *shown(struct parser *p, const char *s, size_t n)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	text_append_safe_n(&b, s, n);
	return arena_strdup(p->arena, buf_str(&b));
}

static int refuse_unknown(struct parser *p, const char *name, size_t len)
{
	const char *word = arena_strndup(p->arena, name, len);
	struct nearest near = { 0 };

	for (size_t i = 0; i < options_count; i++) {
		const struct option *o = &options_table[i];

		if (o->groups & p->scope->groups)
			nearest_try(&near, word, o->name);
	}
	return error_set(p->e, EINVAL, "unknown option --%s%s%s%s (see: ambit help %s)",
			 shown(p, name, len), near.name ? "; did you mean --" : "",
			 near.name ? near.name : "", near.name ? "?" : "", p->scope->command);
}

static const struct option *find_long(const char *name, size_t len)
{
	for (size_t i = 0; i < options_count; i++) {
		const struct option *o = &options_table[i];

		if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
			return o;
	}
	return NULL;
}

static const struct option *find_letter(char letter)
{
	for (size_t i = 0; i < options_count; i++) {
		if (options_table[i].letter == letter)
			return &options_table[i];
	}
	return NULL;
}

/* Is the option one that this command takes and this version has? */
static int check_scope(struct parser *p, const struct option *o)
{
	if (!(o->groups & p->scope->groups))
		return error_set(p->e, EINVAL, "ambit %s takes no --%s (see: ambit help %s)",
				 p->scope->command, o->name, p->scope->command);
	return 0;
}

/* What can be said about an argument without knowing its setting. */
static int check_form(struct parser *p, const struct option *o, const char *value)
{
	size_t name_len = strcspn(value, "=");

	/* an unset shell variable ("$DIR") must not become "the working directory" */
	if (!*value && o->effect != OPTION_TEXT)
		return error_set(p->e, EINVAL, "--%s: the argument is empty", o->name);
	if (!*value && o->file)
		return error_set(p->e, EINVAL, "--%s: the file name is empty", o->name);
	if (o->effect == OPTION_SET && (name_len == 0 || !value[name_len]))
		return error_set(p->e, EINVAL, "--%s wants KEY=VALUE, not '%s'", o->name,
				 shown(p, value, strlen(value)));
	return 0;
}

static int record(struct parser *p, const struct option *o, const char *value)
{
	struct option_use *use;
	char *field = (char *)p->out + o->offset;

	if (value) {
		int r = check_form(p, o, value);
		if (r < 0)
			return r;
	}
	if (o->effect == OPTION_TEXT) {
		if (o->once && *(const char **)(void *)field)
			return error_set(p->e, EINVAL, "--%s is given twice", o->name);
		*(const char **)(void *)field = value;
	} else if (o->effect == OPTION_FLAG) {
		*(bool *)field = true;
	}
	use = ARENA_PUSH(p->arena, p->out->uses, p->out->n_uses);
	*use = (struct option_use){ o, value };
	return 0;
}

/* The argument of `o`: the rest of the same word, or the next word. */
static int take_argument(struct parser *p, const struct option *o, const char *attached)
{
	if (!attached && !*p->next)
		return error_set(p->e, EINVAL, "--%s needs an argument: %s", o->name, o->argument);
	return record(p, o, attached ? attached : *p->next++);
}

/* --name, --name=value, --name value */
static int parse_long(struct parser *p, const char *text)
{
	size_t len = strcspn(text, "=");
	const char *attached = text[len] ? text + len + 1 : NULL;
	const struct option *o = find_long(text, len);
	int r;

	if (!o)
		return refuse_unknown(p, text, len);
	r = check_scope(p, o);
	if (r < 0)
		return r;
	if (o->argument)
		return take_argument(p, o, attached);
	if (attached)
		return error_set(p->e, EINVAL, "--%s takes no argument", o->name);
	return record(p, o, NULL);
}

/* -q, -qv, -s FILE, -sFILE */
static int parse_letters(struct parser *p, const char *text)
{
	for (; *text; text++) {
		const struct option *o = find_letter(*text);
		int r;

		if (!o)
			return error_set(p->e, EINVAL, "unknown option -%s (see: ambit help %s)",
					 shown(p, text, 1), p->scope->command);
		r = check_scope(p, o);
		if (r < 0)
			return r;
		if (o->argument)
			return take_argument(p, o, text[1] ? text + 1 : NULL);
		r = record(p, o, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

static void take_word(struct parser *p)
{
	*ARENA_PUSH(p->arena, p->out->words, p->out->n_words) = *p->next++;
}

int options_parse(struct arena *a, const struct option_scope *scope, char *const *args,
		  struct options *ret, struct error *e)
{
	struct options out = { 0 };
	struct parser p = { .arena = a, .scope = scope, .next = args, .out = &out, .e = e };
	bool more = true; /* options may still come */

	while (*p.next) {
		const char *arg = *p.next;
		int r;

		if (!more || arg[0] != '-' || arg[1] == '\0') {
			more = more && !scope->words_end_options;
			take_word(&p);
			continue;
		}
		p.next++;
		if (strcmp(arg, "--") == 0) {
			more = false;
			continue;
		}
		r = arg[1] == '-' ? parse_long(&p, arg + 2) : parse_letters(&p, arg + 1);
		if (r < 0)
			return r;
	}
	*ARENA_PUSH(a, out.words, out.n_words) = NULL;
	out.n_words--;
	*ret = out;
	return 0;
}
