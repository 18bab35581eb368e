/* SPDX-License-Identifier: Apache-2.0 */
/* getaddrinfo, connect, GET: what a static program does that knows no proxy. HOST PORT. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	char text[4096];
	ssize_t n;
	int r, fd;

	if (argc != 3)
		return 2;
	r = getaddrinfo(argv[1], argv[2], &hints, &found);
	if (r != 0) {
		fprintf(stderr, "%s: %s\n", argv[1], gai_strerror(r));
		return 1;
	}
	fd = socket(found->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) < 0) {
		perror(argv[1]);
		return 1;
	}
	snprintf(text, sizeof(text), "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", argv[1]);
	if (write(fd, text, strlen(text)) < 0) {
		perror("write");
		return 1;
	}
	while ((n = read(fd, text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)n, stdout);
	return n < 0;
}
