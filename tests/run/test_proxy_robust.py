# SPDX-License-Identifier: Apache-2.0
"""ambit-proxy by itself, under more than it can carry: memory stays bounded, who behaves is served,
nothing crashes. (Slow and endless heads, and full control sockets: test_proxy_program.py.)"""
import contextlib
import os
import resource
import select
import signal
import socket
import time

import pytest

from proxy_program import (  # noqa: F401
    UP, ask, client, connect_through, echo_server, get, http_server, read_head, serve, start,
)


def raise_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


@contextlib.contextmanager
def child(work):
    """work(pipe) in a process of its own; the pipe's other end is given out."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            ours.close()
            raise_limit()
            work(theirs)
        os._exit(0)
    theirs.close()
    ours.settimeout(60)
    try:
        yield ours
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        ours.close()


def accept_all(listener):
    """Takes every connection and closes those whose other side has."""
    def work(_):
        poll, held = select.epoll(), {}
        poll.register(listener, select.EPOLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == listener.fileno():
                    s = listener.accept()[0]
                    held[s.fileno()] = s
                    poll.register(s, select.EPOLLIN)
                else:
                    held.pop(fd).close()

    return work


def connect_many(at, port, count):
    """Opens `count` connections at once, then tells how many got their tunnel."""
    request = f"CONNECT web.test:{port} HTTP/1.1\r\nHost: web.test:{port}\r\n\r\n".encode()

    def work(pipe):
        poll, open_, served, answered = select.epoll(), {}, 0, b""
        for _ in range(count):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(at)
            open_[s.fileno()] = s
            poll.register(s, select.EPOLLOUT)
        end = time.monotonic() + 40
        told = 0
        while time.monotonic() < end and answered != b"end":
            for fd, events in poll.poll(0.2):
                if events & select.EPOLLOUT:
                    open_[fd].send(request)
                    poll.modify(fd, select.EPOLLIN)
                elif b" 200 " in open_[fd].recv(4096):
                    served += 1
                    poll.modify(fd, 0)
                else:
                    poll.unregister(fd)
            if served != told:
                pipe.send(b"%d\n" % served)
                told = served
        pipe.recv(1)

    return work


class Count:
    """The number that a child tells, as far as it was heard."""

    def __init__(self, pipe):
        self.pipe, self.text, self.number = pipe, b"", 0

    def reaches(self, wanted, seconds):
        end = time.monotonic() + seconds
        while self.number < wanted and time.monotonic() < end:
            if select.select([self.pipe], [], [], 0.2)[0]:
                *lines, self.text = (self.text + self.pipe.recv(65536)).split(b"\n")
                self.number = int(lines[-1]) if lines else self.number
        return self.number >= wanted


def test_ten_thousand_parallel_connects(start):
    """As many as the descriptors allow are served, the others wait; when those leave, they come."""
    hard = raise_limit()
    if hard < 4096:
        pytest.skip(f"RLIMIT_NOFILE is {hard}: too low to say anything")
    listener = socket.create_server((UP, 0), backlog=4096)
    port = listener.getsockname()[1]
    p = start("allow web.test\n")
    at = p.listen("listener http")
    room = (hard - 64 - 128) // 2  # two descriptors a connection, and a reserve
    half = min(5000, hard - 100)
    first = min(2 * half, room)
    with child(accept_all(listener)), child(connect_many(at, port, half)) as a:
        with child(connect_many(at, port, half)) as b:
            counts, end = [Count(a), Count(b)], time.monotonic() + 45
            while sum(c.number for c in counts) < first and time.monotonic() < end:
                for c in counts:
                    c.reaches(half, 0.5)
            assert sum(c.number for c in counts) >= first - 200
            assert p.pss_kb() < 24 << 10
        # the second half is gone: there is room, and it is found
        connect_through(at, "web.test", port).close()
        assert counts[0].reaches(half - 200, 20), counts[0].number
    connect_through(at, "web.test", port).close()
    listener.close()


def test_a_server_that_never_answers(start, serve):
    """A full backlog is silence: such dials end by themselves, and are in nobody's way."""
    dead = socket.socket()
    dead.bind((UP, 0))
    dead.listen(0)
    port = dead.getsockname()[1]
    full = []
    for _ in range(8):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex((UP, port))
        full.append(s)
    up = serve(http_server)
    p = start("allow web.test\n")
    at = p.listen("listener http")
    request = f"CONNECT web.test:{port} HTTP/1.1\r\nHost: web.test:{port}\r\n\r\n".encode()
    waiting = []
    for _ in range(300):
        waiting.append(client(at))
        waiting[-1].sendall(request)
    for _ in range(20):
        assert ask(at, get(f"http://web.test:{up.port}/"))[0] == 200
    assert p.pss_kb() < 4096
    waiting[0].settimeout(40)
    head = read_head(waiting[0].makefile("rb"))
    assert b" 504 " in head or b" 502 " in head, head
    for s in waiting + full:
        s.close()
    dead.close()


def test_a_server_that_answers_a_byte_at_a_time(start, serve):
    def drip(_, conn):
        conn.recv(1000)
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello":
            conn.sendall(bytes([byte]))
            time.sleep(0.01)

    up = serve(drip)
    p = start("allow web.test\n")
    status, _, body = ask(p.listen("listener http"), get(f"http://web.test:{up.port}/"))
    assert (status, body) == (200, b"hello")


def test_a_server_without_end(start, serve):
    """Endless heads, endless interim answers, endless chunk lines: cut off, not collected."""
    floods = {
        "head": (b"HTTP/1.1 200 OK\r\n", b"X-Long: " + b"y" * 1000 + b"\r\n"),
        "line": (b"HTTP/1.1 200 OK\r\nX: ", b"y" * 65536),
        "interim": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
        "chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"y" * 65536),
        "trailer": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
                    b"X: " + b"y" * 1000 + b"\r\n"),
    }
    kind = None

    def flood(_, conn):
        conn.recv(1000)
        begin, more = floods[kind]
        conn.sendall(begin)
        for _ in range(1 << 14):
            conn.sendall(more)

    up = serve(flood)
    p = start("allow web.test\n")
    at = p.listen("listener http")
    for kind in floods:
        with client(at) as s:
            s.sendall(get(f"http://web.test:{up.port}/"))
            s.settimeout(10)
            read, end = 0, time.monotonic() + 8
            with contextlib.suppress(ConnectionResetError):
                while (data := s.recv(1 << 16)) and time.monotonic() < end:
                    read += len(data)
            assert kind == "interim" or read < 1 << 20, (kind, read)
        assert p.pss_kb() < 4096, kind


def test_sixty_four_bulk_transfers_at_once(start, serve):
    """Pipes are borrowed, and there are not that many: all of it arrives all the same."""
    size = 4 << 20

    def send(_, conn):
        conn.recv(1)
        conn.sendall(bytes(size))

    up = serve(send)
    p = start("allow web.test\n")
    at = p.listen("listener http")
    tunnels = [connect_through(at, "web.test", up.port) for _ in range(96)]
    for s in tunnels:
        s.sendall(b"x")
    got = dict.fromkeys(tunnels, 0)
    end = time.monotonic() + 30
    while any(n < size for n in got.values()) and time.monotonic() < end:
        for s in select.select([s for s in tunnels if got[s] < size], [], [], 1)[0]:
            got[s] += len(s.recv(1 << 18))
    assert set(got.values()) == {size}
    for s in tunnels:
        s.close()
