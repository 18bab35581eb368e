/* SPDX-License-Identifier: Apache-2.0 */
/* connect(2), between connect.c, which makes the connection, and inquire.c, which asks first. */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "proxy/inquiry.h"
#include "supervise/broker/internal.h"

/* An address of any family, as the command gave it. */
struct address {
	union {
		struct sockaddr any;
		struct sockaddr_un local;
		struct sockaddr_storage room;
	} u;
	socklen_t len;
};

/* That of connect(2) and bind(2). */
int call_read_address(const struct call *c, struct address *ret) NODISCARD;

#define ADDRESS_TEXT_MAX (INET6_ADDRSTRLEN + sizeof("[]:65535"))

/* "1.2.3.4:80", "[::1]:80", ADDRESS_TEXT_MAX bytes; only for the internet families. The port. */
uint16_t address_describe(const struct address *a, char *ret);

/* Make the connection and answer the call `id`. Takes sock over. From any thread. */
void connect_and_answer(struct broker *b, uint64_t id, int sock, const struct address *to);

/* IPv4, IPv6, or IPv4 in IPv6: address, port and v6 of *ret; false: no such address. */
bool address_read(const struct address *a, struct inquiry *ret);
/* 0, -errno; -EINPROGRESS: it goes on by itself, also for a blocking socket. */
int connect_shortly(int sock, const struct address *to) NODISCARD;

/*
 * Without namespaces (deliver.c): connect the program to the proxy instead, which is told where
 * it was going. 0 or -errno; `as` says what the connection is. From any thread.
 */
int deliver(const struct broker *b, int sock, const struct inquiry *as) NODISCARD;
/* The same for an address of the host's loopback: the proxy's own ports, and those allowed. */
int deliver_local(const struct call *c, int sock, const struct address *to,
		  const struct inquiry *where) NODISCARD;
/* Could a socket of this kind be connected to such an address at all? 0 or -errno. */
int deliver_check(int sock, const struct address *to) NODISCARD;

/*
 * Does the proxy have to be asked about this connection? Then ANSWER_SENT, and *sock is taken
 * over: somebody will answer the call. Else ANSWER_CONTINUE: make it.
 */
int inquire(const struct call *c, int *sock, const struct address *to) NODISCARD;
/* For who learns: a refused port of the loopback (used.c). */
void call_note_wanted_port(const struct call *c, const struct address *to);
