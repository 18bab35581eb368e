/* SPDX-License-Identifier: Apache-2.0 */
/* Called as `srt`: a drop-in for the command of sandbox-runtime. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* The version of sandbox-runtime whose behaviour is kept; callers parse it. */
#define SRT_VERSION "0.0.83"

enum {
	SRT_EXIT_ERROR = 1, /* srt itself failed or refused */
};

struct srt_options {
	bool debug, version, help;
	const char *settings, *shell, *control_fd; /* NULL = not given */
	char *const *words; /* the command, NULL-terminated */
};

/* args: what follows argv[0]. Options end at the first word that is none, or at "--". */
int srt_options_parse(struct arena *a, char *const *args, struct srt_options *ret, struct error *e)
	NODISCARD;
void srt_help(struct buf *out);

/*
 * The command for a shell: -c as it is, words quoted. One word with blanks that is no file is
 * taken for a command line, as the usage of sandbox-runtime shows it. -EINVAL without any.
 */
int srt_command(struct arena *a, const struct srt_options *o, const char **ret, struct error *e)
	NODISCARD;

/* All of it; the exit status. */
int srt_main(struct arena *a, char *const *argv, char *const *environ_in);
