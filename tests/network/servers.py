# SPDX-License-Identifier: Apache-2.0
"""A small internet for the tests: two network namespaces and what lives in them.

    host      where ambit runs; its only way out is a cable to the other one. Services listen on
              its loopback and on its own address: nobody inside a sandbox may reach them.
    internet  at the other end, every address there is answers. A packet socket at the cable's end
              writes down whatever comes out of the host: the canary that cannot be fooled.

Only pytest's main thread moves into `host` (and into a mount namespace with a resolv.conf of its
own, so that the host's getaddrinfo asks our DNS server); the real machine's network and /etc are
not touched. Everything seen is an Event in Internet.events.
"""
import contextlib
import ctypes
import os
import select
import socket
import ssl
import struct
import subprocess
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote, urlsplit

HOST4, HOST6 = "11.0.0.1", "2a0b:1::1"
GATE4, GATE6 = "11.0.0.2", "2a0b:1::2"
MARK_PORTS = range(20000, 60000)  # of GATE4: packets of our own (catch_up)
DNS = "11.3.3.53"

# name -> addresses; a list of lists is one answer after the other (the last one stays)
NAMES = {
    "allowed.test": ["11.1.1.1"],
    "v6.test": ["2a0b:99::1"],
    "dual.test": ["11.1.1.3", "2a0b:99::3"],
    "other.test": ["11.2.2.2", "2a0b:99::2"],
    "evil.test": ["11.6.6.6"],
}
HTTP_PORTS, TLS_PORTS = (80, 8080), (443, 8443)
CANARY_PORTS = (22, 23, 25, 853, 3128, 61080)
LOOPBACK_PORTS = (22, 80, 443, 3128, 5432, 6379, 9222)

CLONE_FS, CLONE_NEWNS, CLONE_NEWNET = 0x200, 0x20000, 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _check(r):
    if r != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _setns(fd, kind):
    _check(_libc.setns(fd, kind))


@dataclass(frozen=True)
class Event:
    kind: str  # packet, dns, http, tls, data (to any server), host (to the host's own services)
    what: tuple

    def __str__(self):
        return f"{self.kind} {self.what}"


def ip(*args):
    subprocess.run(["ip", *args], check=True)


# --- DNS ----------------------------------------------------------------------------

A, TXT, AAAA = 1, 16, 28


def dns_query(name, kind=A):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">6H", 0x1234, 0x100, 1, 0, 0, 0) + labels + struct.pack(">BHH", 0, kind, 1)


def _dns_question(data):
    labels, at = [], 12
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin1"))
        at += 1 + data[at]
    kind, = struct.unpack_from(">H", data, at + 1)
    return ".".join(labels).lower(), kind, data[12:at + 5]


def dns_answer(data, lookup):
    name, kind, question = _dns_question(data)
    addresses = lookup(name, kind)
    rcode = 3 if addresses is None else 0
    wanted = [a for a in addresses or () if (":" in a) == (kind == AAAA) and kind in (A, AAAA)]
    body = b"".join(
        struct.pack(">HHHIH", 0xc00c, kind, 1, 0, 16 if kind == AAAA else 4) +
        socket.inet_pton(socket.AF_INET6 if kind == AAAA else socket.AF_INET, a) for a in wanted)
    head = struct.pack(">2s5H", data[:2], 0x8580 | rcode, 1, len(wanted), 0, 0)
    return head + question + body


# --- HTTP ---------------------------------------------------------------------------

class Web(BaseHTTPRequestHandler):
    """/ says who was asked; /to?URL redirects there; /big?N is N bytes; /git/... a repository."""
    protocol_version = "HTTP/1.1"

    def __init__(self, conn, internet, where):
        self.internet, self.where = internet, where
        super().__init__(conn, where, None)

    def log_message(self, *args):
        pass

    def answer(self, body, status=200, **fields):
        self.send_response(status)
        for k, v in fields.items():
            self.send_header(k.replace("_", "-"), v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        host = self.headers.get("Host", "")
        self.internet.note("http", host, self.where[1], self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        if url.path == "/to":
            self.answer(b"elsewhere\n", 302, Location=unquote(url.query))
        elif url.path == "/big":
            self.answer(b"x" * int(url.query))
        elif url.path.startswith("/git/"):
            self.git(url, body)
        else:
            self.answer(f"hello from {host}{self.path} {body.decode('latin1')}\n".encode())

    do_HEAD = do_POST = do_PUT = do_GET

    def git(self, url, body):
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.internet.repositories),
               "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": url.path[4:], "QUERY_STRING": url.query,
               "REQUEST_METHOD": self.command, "CONTENT_LENGTH": str(len(body)),
               "CONTENT_TYPE": self.headers.get("Content-Type", ""), "HOME": "/nonexistent",
               "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", "")}
        out = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True,
                             cwd="/").stdout
        head, _, body = out.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        status = fields.pop("Status", "200").split()[0]
        self.answer(body, int(status), **fields)


def postgres(conn):
    """As much of the protocol as `psql -c 'select 1'` needs; no TLS."""
    def message(kind, body=b""):
        return kind + struct.pack(">I", len(body) + 4) + body

    def read(n):
        data = b""
        while len(data) < n:
            data += conn.recv(n - len(data)) or (_ for _ in ()).throw(EOFError())
        return data

    while True:
        body = read(struct.unpack(">I", read(4))[0] - 4)
        if struct.unpack_from(">I", body)[0] >> 16 != 1234:
            break
        conn.sendall(b"N")  # to the wish for TLS or GSS
    conn.sendall(message(b"R", struct.pack(">I", 0)) +
                 message(b"S", b"server_version\0" + b"15.0\0") + message(b"Z", b"I"))
    while read(1) == b"Q":
        read(struct.unpack(">I", read(4))[0] - 4)
        column = struct.pack(">H", 1) + b"one\0" + struct.pack(">IHIhih", 0, 0, 25, -1, -1, 0)
        row = struct.pack(">HI", 1, 8) + b"postgres"
        conn.sendall(message(b"T", column) + message(b"D", row) +
                     message(b"C", b"SELECT 1\0") + message(b"Z", b"I"))


# --- the whole ----------------------------------------------------------------------

class Internet:
    def __init__(self, directory):
        self.directory = directory
        self.repositories = directory / "repositories"
        self.names = {}
        self.events = []
        self.mark = self.marked = MARK_PORTS[0]
        self.cut = False
        self.silent = ()  # ends of names that the DNS server does not answer
        self._stack = contextlib.ExitStack()
        self._poll = select.epoll()
        self._handlers = {}
        self._sockets = []

    # setting up
    def __enter__(self):
        self._certificates()
        self._repository()
        self._mounts()
        self._cable()
        self._services()
        threading.Thread(target=self._loop, daemon=True).start()
        self.forget()
        return self

    def __exit__(self, *exc):
        self.cut = True
        _check(_libc.unshare(CLONE_FS))
        self._stack.close()

    def _certificates(self):
        def openssl(*args):
            subprocess.run(["openssl", *args], cwd=self.directory, check=True, capture_output=True)

        names = ",".join(f"DNS:{n}" for n in NAMES) + ",IP:11.1.1.1"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes", "-days", "2", "-subj", "/CN=test", "-addext", f"subjectAltName={names}",
                "-keyout", "key.pem", "-out", "cert.pem")
        (self.directory / "cert.pem").chmod(0o644)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # noted even when the handshake fails after it; None when the client names nobody
        self.tls.sni_callback = lambda s, name, c: self.note("tls", name, s.getsockname()[1])
        self.tls.load_cert_chain(self.directory / "cert.pem", self.directory / "key.pem")

    @property
    def certificate(self):
        return str(self.directory / "cert.pem")

    def _repository(self):
        def git(*args):
            subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org",
                            "-c", "init.defaultBranch=main", *args], check=True,
                           capture_output=True)

        work, bare = self.directory / "work", self.repositories / "project.git"
        git("init", "-q", work)
        (work / "README").write_text("cloned\n")
        git("-C", work, "add", ".")
        git("-C", work, "commit", "-qm", "one")
        git("clone", "-q", "--bare", work, bare)

    def _leave(self, name, kind):
        fd = os.open(f"/proc/thread-self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
        self._stack.callback(os.close, fd)
        self._stack.callback(_setns, fd, kind)
        _check(_libc.unshare(kind))

    def _mounts(self):
        self._leave("mnt", CLONE_NEWNS)
        resolv = self.directory / "resolv.conf"
        resolv.write_text(f"nameserver {DNS}\noptions timeout:1 attempts:1\n")
        hosts = self.directory / "hosts"
        hosts.write_text(f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {socket.gethostname()}\n")
        nsswitch = self.directory / "nsswitch.conf"
        nsswitch.write_text("passwd: files\ngroup: files\nhosts: files dns\n")
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        for f in (resolv, hosts, nsswitch):
            subprocess.run(["mount", "--bind", f, os.path.realpath(f"/etc/{f.name}")], check=True)

    def _cable(self):
        self._leave("net", CLONE_NEWNET)
        ip("link", "set", "lo", "up")
        with self._other_namespace() as there:
            ip("link", "set", "lo", "up")
            self.there = there
        ip("link", "add", "up0", "type", "veth", "peer", "name", "down0", "netns",
           f"/proc/{os.getpid()}/fd/{self.there}")
        self._address("up0", HOST4, HOST6)
        with self.inside():
            self._address("down0", GATE4, GATE6)
            # in the main table, where the cable's own network is more specific
            ip("route", "add", "local", "default", "dev", "lo", "table", "main")
            ip("-6", "route", "add", "local", "default", "dev", "lo", "table", "main")
        ip("route", "add", "default", "via", GATE4)
        ip("-6", "route", "add", "default", "via", GATE6)

    @staticmethod
    def _address(device, v4, v6):
        ip("address", "add", f"{v4}/24", "dev", device)
        ip("-6", "address", "add", f"{v6}/64", "dev", device, "nodad")
        ip("link", "set", device, "up")

    @contextlib.contextmanager
    def _other_namespace(self):
        here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        _check(_libc.unshare(CLONE_NEWNET))
        try:
            yield os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            _setns(here, CLONE_NEWNET)
            os.close(here)

    @contextlib.contextmanager
    def inside(self):
        """The calling thread is in `internet` meanwhile."""
        here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        _setns(self.there, CLONE_NEWNET)
        try:
            yield
        finally:
            _setns(here, CLONE_NEWNET)
            os.close(here)

    # services
    def _services(self):
        with self.inside():
            wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
            wire.bind(("down0", 3))
            self._add(wire, self._packet)
            for port in HTTP_PORTS:
                self._listen(port, self._http)
            for port in TLS_PORTS:
                self._listen(port, self._https)
            for port in CANARY_PORTS:
                self._listen(port, self._canary)
            self._listen(5432, lambda conn, where: postgres(conn))
            self._listen(6379, self._redis)
            self._listen(7, self._echo)
            self._listen(9, self._discard)
            self._listen(53, self._dns_tcp)
            self._datagrams(53, self._dns_udp)
        for port in LOOPBACK_PORTS:
            self._listen(port, self._host_service)
        self._listen_unix("\0ambit-test-abstract")

    def _add(self, sock, handler):
        sock.setblocking(False)
        self._sockets.append(sock)
        self._handlers[sock.fileno()] = (sock, handler)
        self._poll.register(sock.fileno(), select.EPOLLIN)

    def _listen(self, port, handler):
        for family in (socket.AF_INET, socket.AF_INET6):
            s = socket.socket(family, socket.SOCK_STREAM)
            if family == socket.AF_INET6:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("", port))
            s.listen(512)
            self._add(s, lambda s, h=handler: self._accept(s, h))

    def _listen_unix(self, name):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.bind(name)
        s.listen(16)
        self._add(s, lambda s: (self.note("host", "abstract"), s.accept()[0].close()))

    def _datagrams(self, port, handler):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO
        s.bind(("", port))
        self._add(s, handler)

    def _accept(self, sock, handler):
        conn, _ = sock.accept()
        conn.settimeout(10)
        threading.Thread(target=self._serve, args=(conn, handler), daemon=True).start()

    def _serve(self, conn, handler):
        with conn, contextlib.suppress(OSError, EOFError, ssl.SSLError, ValueError):
            where = conn.getsockname()[:2]
            handler(conn, where)

    def _loop(self):
        while not self.cut:
            for fd, _ in self._poll.poll(0.2):
                sock, handler = self._handlers[fd]
                with contextlib.suppress(OSError, IndexError, struct.error):
                    handler(sock)

    def _http(self, conn, where):
        Web(conn, self, where)

    def _https(self, conn, where):
        with self.tls.wrap_socket(conn, server_side=True) as tls:
            Web(tls, self, where)

    def _canary(self, conn, where):
        conn.sendall(b"220 canary\r\n")
        self.note("data", where, conn.recv(100))

    def _echo(self, conn, where):
        conn.sendall(b"server speaks first\n")
        while data := conn.recv(65536):
            self.note("data", where, data[:100])
            conn.sendall(data)

    def _discard(self, conn, where):
        while data := conn.recv(65536):
            self.note("data", where, data[:100])

    def _redis(self, conn, where):
        while data := conn.recv(4096):
            conn.sendall(b"+PONG\r\n" if b"PING" in data.upper() else b"-ERR unknown\r\n")

    def _host_service(self, conn, where):
        self.note("host", *where)
        data = conn.recv(100)
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nsecret\n")
        self.note("host", *where, data)

    # DNS
    def _lookup(self, name, kind):
        self.note("dns", name, kind)
        found = self.names.get(name)
        if found and isinstance(found[0], list):
            answer = found[0]
            if len(found) > 1 and kind == A:
                found.pop(0)
            return answer
        return found

    def _dns_udp(self, sock):
        data, control, _, peer = sock.recvmsg(4096, 256)
        name, kind, _ = _dns_question(data)
        if name.endswith(self.silent):
            self.note("dns", name, kind)
            return
        reply = dns_answer(data, self._lookup)
        _, _, info = control[0]  # answer from the address that was asked
        sock.sendmsg([reply], [(socket.IPPROTO_IP, 8, b"\0\0\0\0" + info[8:12] + info[8:12])], 0,
                     peer)

    def _dns_tcp(self, conn, where):
        while head := conn.recv(2):
            reply = dns_answer(conn.recv(struct.unpack(">H", head)[0]), self._lookup)
            conn.sendall(struct.pack(">H", len(reply)) + reply)

    # what was seen
    def note(self, kind, *what):
        self.events.append(Event(kind, what))

    def _packet(self, sock):
        data, (_, protocol, direction, *_) = sock.recvfrom(2048)
        if direction == 4:  # PACKET_OUTGOING: our own answers
            return
        if protocol == 0x800:
            kind, dst, rest = data[9], socket.inet_ntop(socket.AF_INET, data[16:20]), \
                data[(data[0] & 15) * 4:]
        elif protocol == 0x86dd:
            kind, dst, rest = data[6], socket.inet_ntop(socket.AF_INET6, data[24:40]), data[40:]
        else:
            return  # ARP
        if kind == socket.IPPROTO_ICMPV6 and rest[0] in range(130, 144) or kind == 0:
            return  # neighbours, multicast lists: the kernel's own
        name = {6: "tcp", 17: "udp", 1: "icmp", 58: "icmp"}.get(kind, str(kind))
        port = struct.unpack_from(">H", rest, 2)[0] if name in ("tcp", "udp") else 0
        if name == "icmp" and rest[0] in (1, 3):
            return  # "unreachable" is an answer of the host's kernel
        if name == "tcp" and rest[13] & 0x12 != 2:
            return  # only a SYN begins something; the rest may come late
        if (name, dst) == ("udp", GATE4) and port in MARK_PORTS:
            self.marked = max(self.marked, port)
            return
        event = Event("packet", (name, dst, port))
        if not self.events or self.events[-1] != event:
            self.events.append(event)

    def forget(self):
        """Begin anew: the usual names, nothing seen."""
        self.catch_up()
        self.names = {k: list(v) for k, v in NAMES.items()}
        self.silent = ()
        self.events.clear()

    def catch_up(self, seconds=10):
        """All packets sent so far were looked at: one that we send now has been."""
        self.mark += 1
        end = time.monotonic() + seconds
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            while self.marked < self.mark:
                s.sendto(b"", (GATE4, self.mark))  # again: where too many others wait it is lost
                assert time.monotonic() < end, "the internet does not see what comes in"
                for _ in range(50):
                    if self.marked >= self.mark:
                        break
                    time.sleep(0.002)

    def leaks(self, names=("allowed.test",), ports=None, settle=0.03):
        """What was seen and is not covered by leave to talk to these names at these ports."""
        time.sleep(settle)  # servers have a word, too
        self.catch_up()
        addresses = {a for n in names for a in NAMES.get(n, ())}

        def is_fine(e):
            if e.kind == "packet":
                proto, dst, port = e.what
                return (proto == "tcp" and dst in addresses and (not ports or port in ports)) or \
                    (proto in ("udp", "tcp") and (dst, port) == (DNS, 53))
            if e.kind == "dns":
                return e.what[0] in names
            if e.kind == "http":
                host = e.what[0].rsplit(":", 1)[0] if not e.what[0].endswith("]") else e.what[0]
                return host in names and "smuggled" not in e.what[2]
            if e.kind == "tls":
                return e.what[0] in names
            if e.kind == "data":
                return e.what[0][0] in addresses
            return False

        return [e for e in list(self.events) if not is_fine(e)]
