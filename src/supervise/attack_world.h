/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world that the built-in attempts attack, and the table of the attempts.
 * Names in it are fixed; the probes are told the directory and what has a number.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "supervise/attack.h"

#define ATTACK_TOKEN_LEN 16 /* hex digits */

/* Below the directory of the world. */
#define ATTACK_PROJECT "project"
#define ATTACK_HOME "home"
#define ATTACK_SECRET "home/.ssh/id_ed25519"
#define ATTACK_SOCKET "agent.sock" /* in the home: a place that is visible inside */
#define ATTACK_PROGRAM "project/attempts"
#define ATTACK_LOCK "project/lock" /* locked by the daemon for as long as it lives */

#define ATTACK_KEY "ambit-attack" /* in the session keyring: a key with the token */

enum attack_watch {
	WATCH_NOTHING, /* only the attempt itself can tell */
	WATCH_SECRET, /* the token came out */
	WATCH_FILE, /* `file` changed */
	WATCH_TCP,
	WATCH_UNIX,
	WATCH_ABSTRACT,
	WATCH_VICTIM, /* the process of the host died */
	WATCH_DAEMON, /* something still runs after the end */
};

/* What an attempt needs to know. */
struct attack_context {
	struct arena *a;
	const char *dir; /* of the world, canonical */
	const char *token;
	uint16_t port;
	pid_t victim;
	int secret_fd;
	pid_t starter; /* parent of the probes */
	char detail[256]; /* the attempt may say something */
};

struct attack_attempt {
	const char *name, *what;
	int (*run)(struct attack_context *c); /* 0 = it worked, or -errno */
	enum attack_watch watch;
	const char *file;
};

extern const struct attack_attempt attack_attempts[];
extern const size_t attack_attempts_count;

#define ATTACK_WORLD_INIT                                                                          \
	{                                                                                          \
		.tcp = -1, .unix_socket = -1, .abstract = -1, .victim = -1, .victim_talk = -1      \
	}

struct attack_world {
	const char *dir;
	char token[ATTACK_TOKEN_LEN + 1];
	int tcp, unix_socket, abstract; /* listening */
	uint16_t port;
	pid_t victim;
	int victim_talk;
};

/*
 * `dir` must not exist. `program` is copied into it: it may lie where the sandbox hides it.
 * attack_world_end() is due after a failure too.
 */
int attack_world_make(struct arena *a, const char *dir, const char *program,
		      struct attack_world *ret, struct error *e) NODISCARD;
/* Did the attempt reach its canary? Asked once, after the run. */
enum attack_canary attack_world_look(struct arena *a, struct attack_world *w,
				     const struct attack_attempt *t, const char *detail);
/* The files stay, for the caller to remove. */
void attack_world_end(struct attack_world *w);

/* Names that world and probes agree on; at most 15 bytes, as /proc/PID/comm has it. */
void attack_victim_name(const char *token, char ret[16]);
/* A name without a file, as length for bind() and connect(). */
socklen_t attack_abstract_address(const char *token, struct sockaddr_un *ret);
