/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's argv: a list of words, never a string for a shell. Every option carries its value
 * in the same word, so that no value can be taken for an option; the fields of --mount are
 * written as the engines read them, as a line of CSV.
 *
 * What the engines do by themselves and we do not want is said in so many words: podman copies
 * what lies below a new tmpfs into it (a hidden file would be shown), gives --read-only
 * containers writable places, keeps the output in a log.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "sandbox/container/container.h"

#define HIDDEN_SIZE "4096"
#define CPUS_MAX 4096.0
#define KERNEL_PAGES "/proc/kpagecount:/proc/kpageflags:/proc/kpagecgroup"

struct words {
	struct compiler *c;
	struct plan_engine *engine;
	bool podman;
};

static void put(struct words *w, const char *word)
{
	*ARENA_PUSH(w->c->a, w->engine->argv, w->engine->n_argv) = word;
}

/* One field of a CSV line. */
static void put_field(struct buf *b, const char *key, const char *value)
{
	bool quoted = strpbrk(value, ",\"\n\r") != NULL;

	buf_puts(b, quoted ? ",\"" : ",");
	buf_printf(b, "%s=", key);
	for (; *value; value++) {
		if (*value == '"')
			buf_putc(b, '"');
		buf_putc(b, *value);
	}
	if (quoted)
		buf_putc(b, '"');
}

enum bind_mode { BIND_RW, BIND_RO };

/*
 * A read-only mount leaves the mounts below it writable, so those are not shown. Docker has a word
 * for that since version 25; an older one refuses it.
 */
static void put_bind(struct words *w, const char *source, const char *target, enum bind_mode mode)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	buf_puts(&b, "--mount=type=bind");
	put_field(&b, "source", source);
	put_field(&b, "destination", target);
	if (mode == BIND_RO)
		buf_printf(&b, ",ro=true,%s",
			   w->podman ? "bind-nonrecursive=true" : "bind-recursive=disabled");
	if (w->podman)
		buf_puts(&b, ",nosuid,nodev");
	put(w, arena_strdup(w->c->a, buf_str(&b)));
}

static void put_hidden(struct words *w, const char *target)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	buf_puts(&b, "--mount=type=tmpfs");
	put_field(&b, "destination", target);
	buf_puts(&b, ",ro=true,tmpfs-mode=0555,tmpfs-size=" HIDDEN_SIZE);
	if (w->podman)
		buf_puts(&b, ",notmpcopyup");
	put(w, arena_strdup(w->c->a, buf_str(&b)));
}

/* For one user only: who may enter does not matter, and the engines cannot give it to him. */
static int put_private(struct words *w, const char *target)
{
	_cleanup_buf_ struct buf b = BUF_INIT(BUF_MAX_TEXT);

	if (strchr(target, ':'))
		return error_set(w->c->e, EINVAL,
				 "%s: a private directory with a colon in its name cannot be given "
				 "to the engine",
				 target);
	buf_printf(&b, "--tmpfs=%s:rw,exec,nosuid,nodev,mode=1777", target);
	if (w->c->plan->scratch_size)
		buf_printf(&b, ",size=%" PRIu64, w->c->plan->scratch_size);
	if (w->podman)
		buf_puts(&b, ",notmpcopyup");
	put(w, arena_strdup(w->c->a, buf_str(&b)));
	return 0;
}

static int put_step(struct words *w, const struct mount_step *m)
{
	switch (m->kind) {
	case MOUNT_RW:
	case MOUNT_PIN:
		put_bind(w, m->path, m->path, BIND_RW);
		return 0;
	case MOUNT_RO:
		put_bind(w, m->path, m->path, BIND_RO);
		return 0;
	case MOUNT_HIDE_DIR:
		put_hidden(w, m->path);
		return 0;
	case MOUNT_HIDE_FILE: /* reads nothing; with nodev it cannot even be opened */
		put_bind(w, "/dev/null", m->path, BIND_RO);
		return 0;
	case MOUNT_PRIVATE:
		return put_private(w, m->path);
	case MOUNT_TEXT: /* refused before */
	case MOUNT_FOLDER:
	case MOUNT_DEV: /* the engine's own */
	case MOUNT_PROC:
	case MOUNT_KIND_MAX_:
		return 0;
	}
	return 0;
}

static void put_limits(struct words *w)
{
	const struct plan_engine *en = w->engine;
	struct arena *a = w->c->a;

	if (en->memory) {
		put(w, arena_printf(a, "--memory=%" PRIu64 "b", en->memory));
		put(w, arena_printf(a, "--memory-swap=%" PRIu64 "b", en->memory));
	}
	if (en->pids) /* and ambit-enter */
		put(w, arena_printf(a, "--pids-limit=%" PRIu64, en->pids + 1));
	if (en->cpu > 0)
		put(w, arena_printf(a, "--cpus=%.3f", en->cpu < CPUS_MAX ? en->cpu : CPUS_MAX));
	put(w, "--ulimit=core=0:0");
}

static void put_identity(struct words *w)
{
	const struct plan *plan = w->c->plan;

	/* without it, rootless podman would give the caller's files to root inside */
	if (w->podman && plan->uid != 0)
		put(w, "--userns=keep-id");
	put(w, arena_printf(w->c->a, "--user=%" PRIu32 ":%" PRIu32, plan->uid, plan->gid));
}

static void put_walls(struct words *w)
{
	static const char *const both[] = {
		"--rm",
		"--pull=never",
		"--read-only",
		"--cap-drop=ALL",
		"--ipc=private",
		"--security-opt=no-new-privileges",
		"--init=false",
		"--log-driver=none",
		"--no-healthcheck",
		"--sig-proxy=false",
		"--workdir=/",
		("--entrypoint=" CONTAINER_ENTER),
	};
	static const char *const podman[] = {
		"--read-only-tmpfs=false", "--systemd=false", "--pid=private", "--uts=private",
		"--http-proxy=false",
		/* what root could read or watch there */
		("--security-opt=mask=/proc/pressure:" KERNEL_PAGES)
	};

	for (size_t i = 0; i < ARRAY_LEN(both); i++)
		put(w, both[i]);
	for (size_t i = 0; w->podman && i < ARRAY_LEN(podman); i++)
		put(w, podman[i]);
	put(w, w->c->plan->new_net ? "--network=none" : "--network=host");
}

int container_argv(struct compiler *c, struct plan_engine *engine)
{
	struct words w = { .c = c, .engine = engine, .podman = c->plan->backend == BACKEND_PODMAN };
	const struct text_rules *args = &c->p->container.args;
	int r = 0;

	put(&w, c->facts->engine);
	put(&w, "run");
	put(&w, arena_printf(c->a, "--name=%s", engine->container));
	put(&w, arena_printf(c->a, "--label=ambit.run=%s", engine->container));
	put_walls(&w);
	put_identity(&w);
	put_limits(&w);
	for (size_t i = 0; i < args->n; i++)
		put(&w, args->v[i].text);
	for (size_t i = 0; i < c->plan->n_mounts && r == 0; i++)
		r = put_step(&w, &c->plan->mounts[i]);
	put_bind(&w, c->facts->enter ? c->facts->enter : "ambit-enter", CONTAINER_ENTER, BIND_RO);
	put_bind(&w, engine->socket, CONTAINER_SOCKET, BIND_RO);
	put(&w, engine->image);
	put(&w, CONTAINER_SOCKET);
	*ARENA_PUSH(c->a, engine->argv, engine->n_argv) = NULL;
	engine->n_argv--;
	return r;
}
