# SPDX-License-Identifier: Apache-2.0
"""What the tests of ambit-proxy by itself share: they play supervisor, client and server, all on
loopback.

AMBIT_PROXY names the program (default: build/src/proxy/ambit-proxy of this tree).
"""
import array
import contextlib
import json
import os
import resource
import select
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ambit_test import TREE, skip_impossible

PROXY = Path(os.environ.get("AMBIT_PROXY", TREE / "build/src/proxy/ambit-proxy")).absolute()
TIMEOUT = 20
UP = "127.0.0.9"  # where the servers are; web.test and friends resolve to it
BASE = f"private 1\nhosts web.test={UP}\nhosts other.test={UP}\nhosts evil.test={UP}\n" \
       "synthetic4 127.77.0.0/16\n"


class Proxy:
    """The program with its control socket, and everything it has reported."""

    def __init__(self, config, files=None):
        def prepare():
            os.dup2(keep, 3)
            if files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        keep = os.dup(theirs.fileno())
        self.process = subprocess.Popen([PROXY], pass_fds=[3], stderr=subprocess.PIPE,
                                        preexec_fn=prepare)
        os.close(keep)
        theirs.close()
        self.control.settimeout(TIMEOUT)
        self.records = []
        self.listeners = []
        self.config(config)
        self.record(kind="ready")
        # a sanitizer's build is neither confined nor small
        self.sanitized = any("sanitizer" in r["reason"] for r in self.records)
        self.records = [r for r in self.records if not self.sanitized]

    def _receive(self):
        text = self.control.recv(65536).decode()
        self.records += map(json.loads, text.splitlines())
        return text

    def send(self, text, fd=None):
        rights = [] if fd is None else [
            (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        self.control.sendmsg([text.encode()], rights)

    def config(self, text):
        fd = os.memfd_create("config")
        os.write(fd, text.encode())
        self.send("config", fd)
        os.close(fd)

    def sync(self):
        """All that was sent before is in force after this."""
        self.send("sync")
        self.record(kind="error", reason="unknown command")

    def listen(self, verb, address="127.0.0.1", port=0, kind=socket.SOCK_STREAM):
        s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((address, port))
        if kind == socket.SOCK_STREAM:
            s.listen(4096)
        self.send(verb, s.fileno())
        self.listeners.append(s)
        return s.getsockname()[:2]

    def record(self, **wanted):
        """The next record with these fields; waits for it."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            for r in self.records:
                if all(r.get(k) == v for k, v in wanted.items()):
                    self.records.remove(r)
                    return r
            self.control.settimeout(max(0.01, deadline - time.monotonic()))
            with contextlib.suppress(TimeoutError):
                assert self._receive(), "the proxy is gone"
        raise AssertionError(f"no record {wanted} in {self.records}")

    def drain(self):
        while select.select([self.control], [], [], 0.1)[0]:
            self._receive()
        return self.records

    def pss_kb(self):
        """Proportional memory; 0 where it says nothing."""
        if self.sanitized or os.geteuid() != 0:
            return 0
        for line in open(f"/proc/{self.process.pid}/smaps_rollup"):
            if line.startswith("Pss:"):
                return int(line.split()[1])

    def close(self):
        self.control.close()
        for s in self.listeners:
            s.close()
        err = self.process.stderr.read().decode()
        code = self.process.wait(TIMEOUT)
        assert (code, err) == (0, ""), (code, err)


@pytest.fixture
def start():
    """start(config) -> Proxy; ended and checked after the test."""
    if not PROXY.exists():
        pytest.fail(f"{PROXY} is not built")
    running = []

    def go(config, **more):
        running.append(Proxy(BASE + config, **more))
        return running[-1]

    yield go
    for p in running:
        p.close()


class Server:
    """A TCP server on UP; handler(conn) runs in a thread per connection."""

    def __init__(self, handler, port=0, address=UP):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((address, port))
        self.socket.listen(4096)
        self.port = self.socket.getsockname()[1]
        self.accepted = 0
        self.seen = []
        self.handler = handler
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                conn, _ = self.socket.accept()
            except OSError:
                return
            self.accepted += 1
            conn.settimeout(TIMEOUT)
            threading.Thread(target=self._one, args=(conn,), daemon=True).start()

    def _one(self, conn):
        with conn, contextlib.suppress(OSError):
            self.handler(self, conn)

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


@pytest.fixture
def serve():
    servers = []

    def go(handler, port=0, address=UP):
        try:
            servers.append(Server(handler, port, address))
        except PermissionError:
            skip_impossible(f"may not listen on port {port}")
        return servers[-1]

    yield go
    for s in servers:
        s.close()


def read_head(f):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = f.readline()
        if not line:
            return head
        head += line
    return head


def read_body(f, head):
    fields = dict(l.lower().split(b": ", 1) for l in head.split(b"\r\n")[1:] if b": " in l)
    if b"content-length" in fields:
        return f.read(int(fields[b"content-length"]))
    body = b""
    if fields.get(b"transfer-encoding") == b"chunked":
        while True:
            line = f.readline()
            if not line:
                return None
            n = int(line.split(b";")[0], 16)
            body += f.read(n)
            f.readline()
            if n == 0:
                return body
    return body


def http_server(server, conn):
    """Answers every request with its own head and body, keeping the connection."""
    f = conn.makefile("rb")
    while True:
        head = read_head(f)
        if not head:
            return
        body = read_body(f, head)
        if body is None:
            return  # cut short
        server.seen.append((head, body))
        text = head + body
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)


def echo_server(_, conn):
    while data := conn.recv(65536):
        conn.sendall(data)
    conn.shutdown(socket.SHUT_WR)


def client(address):
    return socket.create_connection(address, timeout=TIMEOUT)


def ask(address, request):
    """Send, read one response: (status, head, body)."""
    with client(address) as s:
        s.sendall(request)
        f = s.makefile("rb")
        head = read_head(f)
        body = read_body(f, head) if head else b""
        return (int(head.split()[1]) if head else 0), head, body


def get(url, host=None, extra=b""):
    host = host or url.split("/")[2]
    return f"GET {url} HTTP/1.1\r\nHost: {host}\r\n".encode() + extra + b"\r\n"


def all_of(s):
    data = b""
    while True:
        try:
            part = s.recv(65536)
        except ConnectionResetError:
            return data + b"<RST>"
        if not part:
            return data
        data += part


def is_reset(address, data=b""):
    """A connection that ends in a reset, perhaps before connect() returns."""
    with contextlib.suppress(ConnectionResetError), client(address) as s:
        s.sendall(data)
        return all_of(s) == b"<RST>"
    return True


def connect_through(at, host, port):
    s = client(at)
    s.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    f = s.makefile("rb", buffering=0)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += f.read(1)
    assert b" 200 " in head, head
    return s


def client_hello(name):
    """What a real client sends first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def tls_port(serve, handler=echo_server):
    for port in 8443, 9443, 10443, 4443, 6443:
        with contextlib.suppress(OSError):
            return serve(handler, port)
    skip_impossible("all TLS ports are taken")


def socks(at, host, port, command=1, kind=None):
    s = client(at)
    s.sendall(b"\x05\x01\x00")
    assert s.recv(2) == b"\x05\x00"
    body = host if kind else bytes([len(host)]) + host
    s.sendall(bytes([5, command, 0, kind or 3]) + body + struct.pack(">H", port))
    reply = s.recv(10)
    return s, reply[1] if len(reply) > 1 else None


def query(name, kind=1, ident=0x1234):
    q = struct.pack(">HHHHHH", ident, 0x100, 1, 0, 0, 0)
    for label in name.split("."):
        q += bytes([len(label)]) + label.encode()
    return q + b"\0" + struct.pack(">HH", kind, 1)


def dns_ask(at, message):
    with socket.socket(socket.AF_INET6 if ":" in at[0] else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(TIMEOUT)
        s.connect(at)  # an answer from elsewhere than asked would not arrive
        s.send(message)
        return s.recv(2000)


def resolve(p, name):
    at = p.listen("listener dns-udp", kind=socket.SOCK_DGRAM)
    return socket.inet_ntoa(dns_ask(at, query(name))[-4:])
