/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's question about a connection that a program inside is about to make, and the
 * answer: one datagram each. So a refused destination fails in connect(2) with an
 * error of its own, and the record knows which program it was. What is allowed here is judged
 * again when it arrives; what nobody asks about is judged then for the first time.
 *
 * Where there are no namespaces, nothing arrives by itself: the broker makes a connection between
 * the program and itself and hands its end over, in a datagram of the same form.
 */
#pragma once

#include <stdint.h>

/* At most this many without an answer: each of them fits into the socket's buffer. */
#define INQUIRIES_MAX 512

/* What an inquiry is: a question, or a connection that comes with it. */
enum inquiry_kind {
	INQUIRY_QUESTION,
	INQUIRY_CAPTURED, /* to address and port */
	INQUIRY_HTTP, /* to the proxy's own HTTP front */
	INQUIRY_SOCKS,
	/* to a port of the host's loopback, which the broker knows to be allowed: */
	INQUIRY_HOST_PORT,
	INQUIRY_HTTP_PROXY,
	INQUIRY_SOCKS_PROXY,
	INQUIRY_KIND_MAX_,
};

struct inquiry {
	uint64_t id;
	uint8_t address[16]; /* of IPv4 the first four */
	uint16_t port;
	/*
	 * Where the kernel cannot hand connections over with their destination: the port that
	 * this one will come from, to the same address, at the listener's port; else 0.
	 */
	uint16_t source;
	uint8_t v6;
	uint8_t kind; /* enum inquiry_kind */
	uint8_t unused[2];
	int32_t pid; /* as the command sees it */
	char process[16];
};

struct inquiry_answer {
	uint64_t id;
	int32_t error; /* for connect(2); 0 = go on */
	int32_t unused;
};
