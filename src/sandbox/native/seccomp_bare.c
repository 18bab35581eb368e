/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a plan without namespaces, in place of those for the same calls in
 * seccomp_rules.c. There the network, the ipc and the pid namespace are the wall, and read-only
 * mounts; here it is this filter and the broker behind it:
 *
 *  - modes, owners, times and attributes of files, which Landlock does not know, go to the
 *    broker, also by descriptor; what a filter cannot tell apart (ioctl on files) is refused;
 *  - unless it has the host's network, only TCP sockets exist, and the broker decides on
 *    connect(), bind() and listen(); TCP Fast Open would connect without it;
 *  - System V ipc and message queues are the host's;
 *  - limits and priorities can be set for oneself only.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "sandbox/native/seccomp_rows.h"

#define FAST_OPEN 0x20000000 /* MSG_FASTOPEN */
#define IOPRIO_OF_PROCESS 1
#define FASTOPEN_CONNECT 30 /* TCP_FASTOPEN_CONNECT: the first bytes go with the first packet */
#define UPPER_PROTOCOL 31 /* TCP_ULP */
#define BIND_TO_IFINDEX 62 /* SO_BINDTOIFINDEX */

/* clang-format off */
static const struct seccomp_rule files[] = {
#define IN GROUP_PATHS
	NOTIFY(fchown), NOTIFY(fsetxattr), NOTIFY(fremovexattr), NOTIFY(utimensat),
	NOTIFY(futimesat),
#undef IN
	/* newer than the programs that would need them */
#define IN GROUP_OPAQUE
	DENY(setxattrat, ENOSYS), DENY(removexattrat, ENOSYS), DENY(file_setattr, ENOSYS),
#undef IN

#define IN GROUP_TERMINAL
	DENY(ioctl, EPERM, INT_IS(1, TIOCSTI)),
	DENY(ioctl, EPERM, INT_IS(1, TIOCLINUX)),
	DENY(ioctl, EPERM, INT_IS(1, TIOCSETD)),
#undef IN
#define IN GROUP_IO
	PLAIN_IOCTLS,
#undef IN
#define IN GROUP_ATTRIBUTES
	DENY(ioctl, ENOTTY),
#undef IN

#define IN GROUP_SHARED_IPC
	DENY(shmget, ENOSYS), DENY(shmat, ENOSYS), DENY(shmdt, ENOSYS), DENY(shmctl, ENOSYS),
	DENY(semget, ENOSYS), DENY(semop, ENOSYS), DENY(semtimedop, ENOSYS), DENY(semctl, ENOSYS),
	DENY(msgget, ENOSYS), DENY(msgsnd, ENOSYS), DENY(msgrcv, ENOSYS), DENY(msgctl, ENOSYS),
	DENY(mq_open, ENOSYS), DENY(mq_unlink, ENOSYS), DENY(mq_timedsend, ENOSYS),
	DENY(mq_timedreceive, ENOSYS), DENY(mq_notify, ENOSYS), DENY(mq_getsetattr, ENOSYS),
#undef IN

#define IN GROUP_IDENTITY
	ALLOW(prlimit64, INT_IS(0, 0)),
#undef IN
#define IN GROUP_OTHERS
	DENY(prlimit64, EPERM),
#undef IN
#define IN GROUP_SCHEDULING
	ALLOW(setpriority, INT_IS(0, PRIO_PROCESS), INT_IS(1, 0)),
#undef IN
#define IN GROUP_OTHERS
	DENY(setpriority, EPERM),
#undef IN
#define IN GROUP_SCHEDULING
	ALLOW(ioprio_set, INT_IS(0, IOPRIO_OF_PROCESS), INT_IS(1, 0)),
#undef IN
#define IN GROUP_OTHERS
	DENY(ioprio_set, EPERM),
#undef IN
#define SELF_ONLY(name) ALLOW(name, INT_IS(0, 0)), DENY(name, EPERM)
#define IN GROUP_OTHERS
	PINNED(sched_setaffinity, INT_IS(0, 0)), DENY(sched_setaffinity, EPERM),
	SELF_ONLY(sched_setparam), SELF_ONLY(sched_setscheduler),
	SELF_ONLY(sched_setattr),
#undef IN
};

#define OPTION(level, name) ALLOW(setsockopt, INT_IS(1, level), INT_IS(2, name))
#define NO_FAST_OPEN(name, n)                                                                      \
	DENY(name, EOPNOTSUPP, INT_HAS_ALL(n, FAST_OPEN)), ALLOW(name)
#define TCP(family)                                                                                \
	INET(socket, INT_IS(0, family), INT_TYPE_IS(1, SOCK_STREAM), INT_IS(2, 0)),               \
	INET(socket, INT_IS(0, family), INT_TYPE_IS(1, SOCK_STREAM), INT_IS(2, IPPROTO_TCP))

static const struct seccomp_rule no_network[] = {
#define IN GROUP_NETWORK
	NO_DATAGRAMS(socket, INT_IS(0, AF_UNIX), INT_TYPE_IS(1, SOCK_DGRAM)),
	NO_DATAGRAMS(socket, INT_IS(0, AF_UNIX), INT_TYPE_IS(1, SOCK_RAW)),
	UNIX(socket, INT_IS(0, AF_UNIX)),
	TCP(AF_INET), TCP(AF_INET6),
#undef IN
#define IN GROUP_FAMILIES
	DENY(socket, EAFNOSUPPORT),
#undef IN
#define IN GROUP_NETWORK
	NOTIFY(listen), /* without an address the kernel picks one, open to everybody */
	NO_FAST_OPEN(sendto, 3), NO_FAST_OPEN(sendmsg, 2), NO_FAST_OPEN(sendmmsg, 3),
	/*
	 * The broker connects a socket of the command's to the loopback. No option may send those
	 * packets elsewhere (source routes, also of IPv6; another interface), or data before
	 * there is a connection; so what is not known to be harmless does not exist.
	 */
	DENY(setsockopt, EPERM, INT_IS(1, SOL_SOCKET), INT_IS(2, SO_BINDTODEVICE)),
	DENY(setsockopt, EPERM, INT_IS(1, SOL_SOCKET), INT_IS(2, BIND_TO_IFINDEX)),
	ALLOW(setsockopt, INT_IS(1, SOL_SOCKET)),
	DENY(setsockopt, EOPNOTSUPP, INT_IS(1, IPPROTO_TCP), INT_IS(2, FASTOPEN_CONNECT)),
	DENY(setsockopt, ENOPROTOOPT, INT_IS(1, IPPROTO_TCP), INT_IS(2, UPPER_PROTOCOL)),
	ALLOW(setsockopt, INT_IS(1, IPPROTO_TCP)),
	OPTION(IPPROTO_IP, IP_TOS), OPTION(IPPROTO_IP, IP_TTL), OPTION(IPPROTO_IP, IP_RECVERR),
	OPTION(IPPROTO_IP, IP_MTU_DISCOVER), OPTION(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT),
	OPTION(IPPROTO_IPV6, IPV6_V6ONLY), OPTION(IPPROTO_IPV6, IPV6_TCLASS),
	OPTION(IPPROTO_IPV6, IPV6_UNICAST_HOPS), OPTION(IPPROTO_IPV6, IPV6_RECVERR),
	OPTION(IPPROTO_IPV6, IPV6_MTU_DISCOVER),
#undef IN
#define IN GROUP_FAMILIES
	DENY(setsockopt, ENOPROTOOPT),
#undef IN
};
/* clang-format on */

struct seccomp_rules seccomp_bare_file_rules(void)
{
	return (struct seccomp_rules){ files, ARRAY_LEN(files) };
}

struct seccomp_rules seccomp_bare_network_rules(void)
{
	return (struct seccomp_rules){ no_network, ARRAY_LEN(no_network) };
}
