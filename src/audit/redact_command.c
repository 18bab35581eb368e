/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program is found wherever its name stands in the command, since any word may run those behind
 * it: env, sudo -u me, timeout 5, docker exec db, ssh host. The last one counts.
 */
#include "audit/redact_command.h"

#include <string.h>

#include "base/macros.h"
#include "base/text.h"

#define OPTIONS_MAX 10

struct redact_program {
	const char *names; /* with a space between them */
	const char *flags; /* letters that may stand before the option's: -su */
	const char *subcommand; /* without it the options mean something else */
	bool runs_another; /* its options end where that one begins */
	struct redact_option options[OPTIONS_MAX];
};

static const struct redact_program programs[] = {
	{ .names = "mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mysqlslap mariadb "
		   "mariadb-dump mariadb-admin mariadb-import mariadb-check",
	  .options = { { "-p", REDACT_ATTACHED, 0 } } }, /* -p alone asks for it */
	{ .names = "sshpass", .runs_another = true, .options = { { "-p", REDACT_EITHER, 0 } } },
	{ .names = "curl",
	  .flags = "#012346afgijklnpqsvBGIJLMNORSVZ",
	  .options = { { "-u", REDACT_EITHER, ':' },
		       { "-U", REDACT_EITHER, ':' },
		       { "-b", REDACT_EITHER, '=' },
		       { "-E", REDACT_EITHER, ':' },
		       { "--user", REDACT_EITHER, ':' },
		       { "--proxy-user", REDACT_EITHER, ':' },
		       { "--cookie", REDACT_EITHER, '=' },
		       { "--cert", REDACT_EITHER, ':' } } },
	{ .names = "http https xh xhs",
	  .options = { { "-a", REDACT_EITHER, ':' }, { "--auth", REDACT_EITHER, ':' } } },
	{ .names = "docker podman nerdctl buildah helm oras crane",
	  .subcommand = "login",
	  .options = { { "-p", REDACT_EITHER, 0 } } },
	{ .names = "skopeo",
	  .options = { { "--creds", REDACT_EITHER, ':' },
		       { "--src-creds", REDACT_EITHER, ':' },
		       { "--dest-creds", REDACT_EITHER, ':' } } },
	{ .names = "redis-cli valkey-cli keydb-cli", .options = { { "-a", REDACT_NEXT, 0 } } },
	{ .names = "mongo mongosh mongodump mongorestore mongoexport mongoimport cqlsh",
	  .options = { { "-p", REDACT_EITHER, 0 } } },
	{ .names = "zip unzip zipcloak",
	  .flags = "rqjv0123456789",
	  .options = { { "-P", REDACT_EITHER, 0 } } },
	{ .names = "7z 7za 7zr 7zz rar unrar",
	  .options = { { "-p", REDACT_ATTACHED, 0 }, { "-hp", REDACT_ATTACHED, 0 } } },
	{ .names = "sqlcmd bcp ipmitool", .options = { { "-P", REDACT_EITHER, 0 } } },
	{ .names = "ldapsearch ldapadd ldapmodify ldapdelete ldapcompare ldapwhoami ldapmodrdn",
	  .flags = "xvnLZ",
	  .options = { { "-w", REDACT_EITHER, 0 } } },
	{ .names = "ldappasswd",
	  .flags = "xvnZ",
	  .options = { { "-w", REDACT_EITHER, 0 },
		       { "-s", REDACT_EITHER, 0 },
		       { "-a", REDACT_EITHER, 0 } } },
	{ .names = "openssl", .options = { { "-k", REDACT_NEXT, 0 }, { "-K", REDACT_NEXT, 0 } } },
	{ .names = "smbclient rpcclient", .options = { { "-U", REDACT_EITHER, '%' } } },
	{ .names = "lftp", .options = { { "-u", REDACT_EITHER, ',' } } },
	{ .names = "useradd usermod", .options = { { "-p", REDACT_NEXT, 0 } } },
};

static bool is_word(const char *word, size_t n, const char *text)
{
	return strlen(text) == n && memcmp(word, text, n) == 0;
}

static bool is_in_list(const char *list, const char *word, size_t n)
{
	while (*list) {
		size_t len = strcspn(list, " ");

		if (len == n && memcmp(list, word, n) == 0)
			return true;
		list += len + (list[len] == ' ');
	}
	return false;
}

static const struct redact_program *find_program(const char *word, size_t n)
{
	const char *slash = text_find_last(word, n, '/');

	if (slash) {
		n -= (size_t)(slash + 1 - word);
		word = slash + 1;
	}
	for (size_t i = 0; n > 0 && i < ARRAY_LEN(programs); i++) {
		if (is_in_list(programs[i].names, word, n))
			return &programs[i];
	}
	return NULL;
}

/* Where in the word the value of this option would begin; 0 = it is another. */
static size_t value_of(const struct redact_program *program, const struct redact_option *o,
		       const char *word, size_t n)
{
	size_t len = strlen(o->name), flags = 1;

	if (o->name[1] == '-') {
		if (n < len || memcmp(word, o->name, len) != 0 || (n > len && word[len] != '='))
			return 0;
		return n > len ? len + 1 : len;
	}
	if (n >= len && memcmp(word, o->name, len) == 0)
		return len;
	while (program->flags && flags < n && strchr(program->flags, word[flags]))
		flags++;
	return len == 2 && flags < n && word[flags] == o->name[1] ? flags + 1 : 0;
}

const struct redact_option *redact_command_option(const struct redact_command *c, const char *word,
						  size_t n, size_t *ret_value)
{
	const struct redact_program *program = c->program;

	if (!program || n < 2 || word[0] != '-' || (program->subcommand && !c->has_subcommand))
		return NULL;
	for (size_t i = 0; i < OPTIONS_MAX && program->options[i].name; i++) {
		const struct redact_option *o = &program->options[i];
		size_t value = value_of(program, o, word, n);

		if (!value)
			continue;
		if (!(o->where & (value < n ? REDACT_ATTACHED : REDACT_EITHER)))
			continue;
		*ret_value = value;
		return o;
	}
	return NULL;
}

/* npm config set NAME, git config section.NAME */
static void pass_setting(struct redact_command *c, const char *word, size_t n)
{
	switch (c->setting) {
	case SETTING_NOT:
	case SETTING_NAMED:
		c->setting = is_in_list("config configure user-secrets", word, n) ? SETTING_MAYBE
										  : SETTING_NOT;
		return;
	case SETTING_MAYBE:
		c->setting = is_word(word, n, "set")        ? SETTING_BEGUN
			     : memchr(word, '.', n) != NULL ? SETTING_NAMED
							    : SETTING_NOT;
		return;
	case SETTING_BEGUN:
		c->setting = SETTING_NAMED;
		return;
	}
}

void redact_command_pass(struct redact_command *c, const char *word, size_t n)
{
	const struct redact_option *pending = c->pending, *o;
	const struct redact_program *program;
	size_t value;

	c->pending = NULL;
	c->was_option = false;
	if (pending || n == 0)
		return;
	if (word[0] == '-') {
		o = redact_command_option(c, word, n, &value);
		c->was_option = o != NULL;
		c->pending = o && value == n && (o->where & REDACT_NEXT) ? o : NULL;
		return;
	}
	pass_setting(c, word, n);
	program = find_program(word, n);
	if (program || (c->program && c->program->runs_another)) {
		c->program = program;
		c->has_subcommand = false;
	} else if (c->program && c->program->subcommand &&
		   is_word(word, n, c->program->subcommand)) {
		c->has_subcommand = true;
	}
}

bool redact_looks_like_option(const char *word, size_t n)
{
	size_t i = 1;

	if (n < 2 || word[0] != '-')
		return false;
	if (n == 2)
		return true;
	if (word[1] != '-') {
		while (i < n && (ascii_alpha(word[i]) || word[i] == '-'))
			i++;
		return i == n || word[i] == '=';
	}
	while (i < n && ((word[i] >= 'a' && word[i] <= 'z') || ascii_digit(word[i]) ||
			 word[i] == '-' || word[i] == '_'))
		i++;
	return i == n || word[i] == '=';
}
