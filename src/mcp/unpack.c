/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs inside the sandbox, with its rights and no others: writes the files that a call brought
 * along, where the program itself could have written them, then becomes that program.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json_read.h"
#include "mcp/frame.h"
#include "mcp/serve.h"

#define EXIT_UNPACK 125

static int complain(const char *path, int err)
{
	dprintf(STDERR_FILENO, "%s: %s\n", path, strerror(err));
	return -err;
}

static int make_parents(char *path)
{
	for (char *s = path + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		if (mkdir(path, 0777) < 0 && errno != EEXIST)
			return complain(path, errno);
	}
	return 0;
}

static int open_new(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	return fd < 0 ? -errno : fd;
}

static int write_file(const struct json_span *file)
{
	_cleanup_buf_ struct buf path = BUF_INIT(PATH_MAX), text = BUF_INIT(BUF_MAX_TEXT);
	struct json_span name, content;
	_cleanup_fd_ int fd = -1;
	int r;

	if (!json_find(file, "path", &name) || !json_find(file, "content", &content))
		return complain("files", EINVAL);
	json_unquote(&name, &path);
	json_unquote(&content, &text);
	if (path.overflow || !path.len)
		return complain("files", ENAMETOOLONG);
	fd = open_new(path.data);
	if (fd == -ENOENT) {
		r = make_parents(path.data);
		if (r < 0)
			return r;
		fd = open_new(path.data);
	}
	r = fd < 0 ? fd : fd_write_all(fd, buf_str(&text), text.len);
	return r < 0 ? complain(path.data, -r) : 0;
}

int mcp_unpack(char *const *argv)
{
	_cleanup_free_ char *text = NULL;
	struct json_span list, file;
	struct json_walk w;
	size_t len;
	int r = argv[0] && argv[1] ? fd_read_file(AT_FDCWD, argv[0], FRAME_LINE_MAX, &text, &len)
				   : -EINVAL;

	if (r == 0)
		r = json_parse(text, len, &list);
	if (r < 0) {
		(void)complain("files", -r);
		return EXIT_UNPACK;
	}
	w = json_walk(&list);
	while (r == 0 && json_next_member(&w, NULL, &file))
		r = write_file(&file);
	if (r < 0)
		return EXIT_UNPACK;
	(void)execv(argv[1], argv + 1);
	(void)complain(argv[1], errno);
	return EXIT_UNPACK;
}
