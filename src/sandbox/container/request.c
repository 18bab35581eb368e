/* SPDX-License-Identifier: Apache-2.0 */
/* The block between keeper and ambit-enter. Its writer is trusted; its reader checks all the same. */
#include "sandbox/container/request.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

#define REQUEST_MAGIC 0x616d6231u
#define REQUEST_WORDS_MAX (1u << 20)
#define REQUEST_PLACES_MAX 65536u

struct header {
	uint32_t magic, size; /* of this header */
	uint32_t n_argv, n_env, n_places;
	uint32_t umask;
	uint32_t own_terminal;
	uint32_t landlock;
	uint64_t net;
	sigset_t mask;
};

struct packed_place {
	uint32_t kind, unused;
	uint64_t dev, ino;
};

static bool place_of(const struct mount_step *m, enum place_kind *ret)
{
	switch (m->kind) {
	case MOUNT_RW:
	case MOUNT_PIN:
		*ret = PLACE_SAME;
		return true;
	case MOUNT_RO:
		*ret = PLACE_SAME_RO;
		return true;
	case MOUNT_HIDE_DIR:
		*ret = PLACE_EMPTY;
		return true;
	case MOUNT_HIDE_FILE:
		*ret = PLACE_NULL;
		return true;
	case MOUNT_PRIVATE:
	case MOUNT_TEXT:
	case MOUNT_FOLDER:
	case MOUNT_DEV:
	case MOUNT_PROC:
	case MOUNT_KIND_MAX_:
		break;
	}
	return false;
}

void request_make(struct arena *a, const struct plan *plan, const struct sandbox_command *cmd,
		  struct request *ret)
{
	struct stat st;
	size_t n = 0;

	while (cmd->argv[n])
		n++;
	*ret = (struct request){ .env = plan->env,
				 .cwd = plan->cwd,
				 .mask = cmd->mask,
				 .own_terminal = cmd->own_terminal,
				 .landlock = (uint32_t)plan->engine->landlock };
	ret->argv = arena_array(a, n + 1, sizeof(*ret->argv));
	for (size_t i = 0; i < n; i++)
		ret->argv[i] = cmd->argv[i];
	if (plan->new_net && stat("/proc/self/ns/net", &st) == 0)
		ret->net = st.st_ino;
	for (size_t i = 0; i < plan->n_mounts; i++) {
		const struct mount_step *m = &plan->mounts[i];
		enum place_kind kind;

		if (place_of(m, &kind))
			*ARENA_PUSH(a, ret->places, ret->n_places) = (struct place){
				.kind = kind, .dev = m->dev, .ino = m->ino, .path = m->path
			};
	}
}

static uint32_t put_words(struct buf *b, char *const *words)
{
	uint32_t n = 0;

	for (; words[n]; n++)
		buf_append(b, words[n], strlen(words[n]) + 1);
	return n;
}

int request_write(const struct request *q)
{
	_cleanup_buf_ struct buf head = BUF_INIT(REQUEST_MAX), text = BUF_INIT(REQUEST_MAX);
	struct header h = { .magic = REQUEST_MAGIC,
			    .size = sizeof(h),
			    .n_places = (uint32_t)q->n_places,
			    .umask = q->umask,
			    .own_terminal = q->own_terminal,
			    .landlock = q->landlock,
			    .net = q->net,
			    .mask = q->mask };
	_cleanup_fd_ int fd = memfd_create("ambit-request", MFD_CLOEXEC);
	int r;

	h.n_argv = put_words(&text, q->argv);
	h.n_env = put_words(&text, q->env);
	buf_append(&text, q->cwd, strlen(q->cwd) + 1);
	for (size_t i = 0; i < q->n_places; i++)
		buf_append(&text, q->places[i].path, strlen(q->places[i].path) + 1);
	buf_append(&head, &h, sizeof(h));
	for (size_t i = 0; i < q->n_places; i++) {
		const struct packed_place p = { .kind = q->places[i].kind,
						.dev = q->places[i].dev,
						.ino = q->places[i].ino };

		buf_append(&head, &p, sizeof(p));
	}
	if (fd < 0)
		return -errno;
	if (head.overflow || text.overflow || head.len + text.len > REQUEST_MAX)
		return -E2BIG;
	r = fd_write_all(fd, head.data, head.len);
	if (r == 0)
		r = fd_write_all(fd, text.data, text.len);
	return r < 0 ? r : TAKE_FD(fd);
}

/* The next string of the block, NULL behind the last. */
static char *next_word(char **at, const char *end)
{
	char *word = *at;
	size_t len = strnlen(word, (size_t)(end - word));

	if (word + len >= end)
		return NULL;
	*at = word + len + 1;
	return word;
}

static char **take_words(struct arena *a, char **at, const char *end, uint32_t n)
{
	char **v = n <= REQUEST_WORDS_MAX ? arena_array(a, (size_t)n + 1, sizeof(*v)) : NULL;

	for (uint32_t i = 0; v && i < n; i++) {
		v[i] = next_word(at, end);
		if (!v[i])
			return NULL;
	}
	return v;
}

static bool take_places(struct arena *a, const char *packed, char **at, const char *end,
			struct request *q)
{
	q->places = arena_array(a, q->n_places + 1, sizeof(*q->places));
	for (size_t i = 0; i < q->n_places; i++) {
		struct packed_place p;

		memcpy(&p, packed + i * sizeof(p), sizeof(p));
		q->places[i] = (struct place){
			.kind = p.kind, .dev = p.dev, .ino = p.ino, .path = next_word(at, end)
		};
		if (!q->places[i].path)
			return false;
	}
	return true;
}

int request_parse(struct arena *a, char *block, size_t len, struct request *ret, struct error *e)
{
	const char *end = block + len;
	struct request q = { 0 };
	struct header h;
	char *at;

	if (len < sizeof(h))
		return error_set(e, EPROTO, "the request is cut short");
	memcpy(&h, block, sizeof(h));
	if (h.magic != REQUEST_MAGIC || h.size != sizeof(h))
		return error_set(e, EPROTO, "ambit and ambit-enter are of different versions");
	if (h.n_argv == 0 || h.n_places > REQUEST_PLACES_MAX ||
	    len - sizeof(h) < h.n_places * sizeof(struct packed_place))
		return error_set(e, EPROTO, "the request is not well-formed");
	at = block + sizeof(h) + h.n_places * sizeof(struct packed_place);
	q = (struct request){ .n_places = h.n_places,
			      .mask = h.mask,
			      .umask = h.umask,
			      .own_terminal = h.own_terminal != 0,
			      .landlock = h.landlock,
			      .net = h.net };
	q.argv = take_words(a, &at, end, h.n_argv);
	q.env = q.argv ? take_words(a, &at, end, h.n_env) : NULL;
	q.cwd = q.env ? next_word(&at, end) : NULL;
	if (!q.cwd || !take_places(a, block + sizeof(h), &at, end, &q))
		return error_set(e, EPROTO, "the request is not well-formed");
	*ret = q;
	return 0;
}
