/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deniedCommands: command lines to refuse. This spares an agent an attempt; it is not a
 * wall, because every program can run another one. So the line is read generously: quotes
 * vanish, everything that can begin a command begins one, and a path counts as its last
 * component. What is meant as text may be taken for a command then, never the reverse.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "policy/excluded.h"
#include "policy/shell_words.h"

/* Words before a command that are not it. */
static const char *const prefixes[] = { "if",    "then", "else", "elif", "do",  "while",
					"until", "!",    "time", "{",    "for", "coproc" };

#define TEXT_DEPTH_MAX 4 /* sh -c "sh -c '...'" */

struct words {
	struct arena *a;
	char **v;
	size_t n;
};

static bool is_prefix(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		if (strcmp(prefixes[i], word) == 0)
			return true;
	}
	return strchr(word, '=') != NULL;
}

static const char *last_component(const char *word)
{
	const char *slash = strrchr(word, '/');

	return slash && slash[1] ? slash + 1 : word;
}

static bool matches_at(const struct command_entry *entry, char *const *words, size_t n)
{
	if (n < entry->n || (!entry->more && n > entry->n))
		return false;
	for (size_t i = 0; i < entry->n; i++) {
		const char *word = i == 0 && !strchr(entry->words[0], '/')
					   ? last_component(words[0])
					   : words[i];

		if (strcmp(entry->words[i], word) != 0)
			return false;
	}
	return true;
}

static void end_word(struct words *w, struct buf *word)
{
	if (word->len == 0)
		return;
	*ARENA_PUSH(w->a, w->v, w->n) = arena_strdup(w->a, buf_str(word));
	word->len = 0;
}

static bool begins_command(char c)
{
	return strchr(";&|()`\n{}<>", c) != NULL;
}

/* The next command of the text; advances *text. */
static void next_command(const char **text, struct words *w)
{
	_cleanup_buf_ struct buf word = BUF_INIT(SHELL_TEXT_MAX);
	const char *s = *text;

	w->n = 0;
	for (; *s && !begins_command(*s); s++) {
		if (*s == ' ' || *s == '\t' || *s == '\r')
			end_word(w, &word);
		else if (*s == '\\' && s[1])
			buf_putc(&word, *++s);
		else if (!strchr("'\"$\\", *s))
			buf_putc(&word, *s);
	}
	end_word(w, &word);
	*text = *s ? s + 1 : s;
}

static bool in_text(struct arena *a, const struct command_entry *entry, const char *text,
		    unsigned depth);

/* One command: at its first word, and behind everything that runs what follows it. */
static bool in_words(struct arena *a, const struct command_entry *entry, char *const *words,
		     size_t n, unsigned depth)
{
	for (size_t i = 0; i < n; i++) {
		if (matches_at(entry, words + i, n - i))
			return true;
		if (command_is_runner(words[i])) {
			for (size_t k = i + 1; k < n; k++) {
				/* sh -c 'a line of its own' */
				if (matches_at(entry, words + k, n - k) ||
				    (strpbrk(words[k], " \t;&|") && depth < TEXT_DEPTH_MAX &&
				     in_text(a, entry, words[k], depth + 1)))
					return true;
			}
			return false;
		}
		if (!is_prefix(words[i]))
			return false;
	}
	return false;
}

static bool in_text(struct arena *a, const struct command_entry *entry, const char *text,
		    unsigned depth)
{
	struct words w = { .a = a };

	while (*text) {
		next_command(&text, &w);
		if (in_words(a, entry, w.v, w.n, depth))
			return true;
	}
	return false;
}

const struct text_rule *denied_find_argv(const struct policy *p, struct arena *a, char *const *argv)
{
	size_t n = 0;

	while (argv[n])
		n++;
	for (size_t i = 0; i < p->denied_commands.n; i++) {
		struct command_entry entry;

		if (command_entry_parse(a, p->denied_commands.v[i].text, &entry, NULL) == 0 &&
		    in_words(a, &entry, argv, n, 0))
			return &p->denied_commands.v[i];
	}
	return NULL;
}

const struct text_rule *denied_find_text(const struct policy *p, struct arena *a, const char *text)
{
	struct shell_words words;

	if (p->denied_commands.n == 0)
		return NULL;
	/* nothing to be generous about */
	shell_words_parse(a, text, strlen(text), &words);
	if (!words.reason)
		return denied_find_argv(p, a, words.v);
	for (size_t i = 0; i < p->denied_commands.n; i++) {
		struct command_entry entry;

		if (command_entry_parse(a, p->denied_commands.v[i].text, &entry, NULL) == 0 &&
		    in_text(a, &entry, text, 0))
			return &p->denied_commands.v[i];
	}
	return NULL;
}

int denied_check(const char *entry, struct error *e)
{
	_cleanup_arena_ struct arena *a = arena_new();
	struct command_entry parsed;

	return command_entry_parse(a, entry, &parsed, e);
}
