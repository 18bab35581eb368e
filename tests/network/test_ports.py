# SPDX-License-Identifier: Apache-2.0
"""Ports both ways: --publish, --allow-host-port, and network.allowLocalBinding."""
import contextlib
import hashlib
import json
import os
import resource
import socket
import threading
import time
from pathlib import Path

import pytest

from ambit_test import wait_until
from servers import HOST4, HOST6

PYTHON = "/usr/bin/python3"
SERVE = Path(__file__).parent / "probes/serve.py"
AT_ONCE = 3.0  # seconds; it takes a millisecond on a machine with nothing else to do


def free_port(family=socket.AF_INET):
    with socket.socket(family) as s:
        s.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture
def serve(box):
    """serve(how, (address, port)..., options=[...]): a server inside, until the block ends."""
    probe = box.write("serve.py", SERVE.read_bytes())

    @contextlib.contextmanager
    def start(how, *where, options=(), **kw):
        words = [str(w) for pair in where for w in pair]
        with box.start(PYTHON, str(probe), how, *words, options=options, **kw) as child:
            line = child.process.stdout.readline()
            assert line == b"up\n", (line, child.process.stderr.read())
            yield child

    return start


def talk(address, port, data, timeout=20):
    """Send all, end our side, read all, at the same time."""
    with socket.create_connection((address, port), timeout) as s:
        def send():
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        got = []
        while more := s.recv(1 << 16):
            got.append(more)
        sender.join()
        return b"".join(got)


def is_closed(address, port):
    """Connected, and ended by the other side at once."""
    start = time.monotonic()
    data = b""
    with contextlib.suppress(ConnectionResetError):
        with socket.create_connection((address, port), 5) as s:
            data = s.recv(1)
    return data == b"" and time.monotonic() - start < AT_ONCE


def is_refused(address, port):
    try:
        socket.create_connection((address, port), 5).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass
    return False


# --- --publish --------------------------------------------------------------------------

@pytest.mark.parametrize("network", [[], ["--network", "none"], ["--allow-domain", "a.test"],
                                     ["--deny-write", "."]], ids=" ".join)
@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_publish(box, serve, network, bound):
    """Reachable by both loopback addresses of the host, whichever the server inside has."""
    port = free_port()
    with serve("echo", (bound, port), options=["--publish", str(port), *network]):
        assert talk("127.0.0.1", port, b"four") == b"four"
        assert talk("::1", port, b"six") == b"six"
    assert wait_until(lambda: is_refused("127.0.0.1", port) and is_refused("::1", port))


def test_publish_several(box, serve):
    """Some as they are, one under another number, one by the settings."""
    one, two, three, other = (free_port() for _ in range(4))
    where = [("127.0.0.1", p) for p in (one, two, three)]
    settings = box.write("s.yaml", f"network: {{publish: ['{other}:{three}', {one}]}}")
    with serve("echo", *where, options=["-s", str(settings), "--publish", str(one), "--publish",
                                        str(two)]):
        for port in (one, two, other):
            assert talk("127.0.0.1", port, b"%d" % port) == b"%d" % port
            assert talk("::1", port, b"%d" % port) == b"%d" % port
        assert is_refused("127.0.0.1", three)


def test_publish_large(box, serve):
    """Both ways at once, byte for byte; the end of one direction is not the end of the other."""
    port = free_port()
    data = os.urandom(1 << 20) * 24
    with serve("echo", ("127.0.0.1", port), options=["--publish", str(port)]):
        got = talk("127.0.0.1", port, data)
    assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest()


def test_publish_sent_and_gone(box, serve):
    """What a server had sent before the command ended arrives."""
    port = free_port()
    with serve("once", ("127.0.0.1", port), options=["--publish", str(port)]) as child:
        assert len(talk("127.0.0.1", port, b"")) == 3_000_000
        assert child.wait().code == 0


def test_publish_many(box, serve):
    """Two hundred at once, none lost."""
    port = free_port()
    with serve("echo", ("127.0.0.1", port), options=["--publish", str(port)]):
        conns = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(200)]
        for i, s in enumerate(conns):
            s.sendall(b"%d" % i)
        for i, s in enumerate(conns):
            assert s.recv(100) == b"%d" % i
            s.close()


def test_publish_is_bounded(box, serve):
    """More than it may hold: the others wait their turn, and memory does not grow."""
    port = free_port()

    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))

    with serve("echo", ("127.0.0.1", port), options=["--publish", str(port)],
               preexec_fn=few_files):
        conns = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(150)]
        for i, s in enumerate(conns):
            s.sendall(b"%d" % i)
        served = [s for s in conns[:5] if s.recv(10)]
        assert len(served) == 5
        conns[-1].settimeout(0.3)
        with pytest.raises(TimeoutError):
            conns[-1].recv(10)
        for s in conns[:-1]:
            s.close()
        conns[-1].settimeout(10)
        assert conns[-1].recv(10) == b"149"


def test_publish_nobody_listens(box, serve):
    """Closed at once while nobody listens, and served as soon as somebody does."""
    port = free_port()
    script = f"read line; exec {PYTHON} serve.py echo 127.0.0.1 {port}"
    box.write("ws/serve.py", SERVE.read_bytes())
    with box.start("sh", "-c", script, options=["--publish", str(port)]) as child:
        assert wait_until(lambda: not is_refused("127.0.0.1", port) and not is_refused("::1", port))
        assert is_closed("127.0.0.1", port) and is_closed("::1", port)
        child.process.stdin.write(b"\n")
        child.process.stdin.flush()
        assert child.process.stdout.readline() == b"up\n"
        assert talk("127.0.0.1", port, b"now") == b"now"


def test_publish_slow_reader(box, serve):
    """A server that never reads: the host's client is held back, nothing piles up in between."""
    port = free_port()
    with serve("hold", ("127.0.0.1", port), options=["--publish", str(port)]) as child:
        with socket.create_connection(("127.0.0.1", port), 5) as s:
            s.settimeout(0.5)
            sent = 0
            with pytest.raises(TimeoutError):
                while sent < 1 << 28:
                    sent += s.send(b"x" * (1 << 20))
        for pid in Path(f"/proc/{child.process.pid}/task/{child.process.pid}/children") \
                .read_text().split():
            status = Path(f"/proc/{pid}/status").read_text()
            assert int(status.split("VmHWM:")[1].split()[0]) < 48_000, status


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "0.0.0.0"])
def test_publish_port_in_use(box, address):
    """Refused before anything runs."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as s:
        s.bind((address, 0))
        s.listen()
        port = s.getsockname()[1]
        r = box.run("touch", "ran", options=["--publish", str(port)])
    assert r.code == 125 and f"{port} of the host is in use" in r.err, str(r)
    assert f"--publish HOSTPORT:{port}" in r.err, str(r)
    assert not (box.ws / "ran").exists()


def test_publish_needs_root(box):
    if box.who.name == "root":
        return
    r = box.run("touch", "ran", options=["--publish", "81"])
    assert r.code == 125 and "needs root" in r.err, str(r)
    with box.start(PYTHON, "-c", "print('up', flush=True); input()",
                   options=["--publish", f"{free_port()}:81"]) as child:
        assert child.process.stdout.readline() == b"up\n"


@pytest.mark.parametrize("options, what", [
    (["--publish", "0"], "must be a port"), (["--publish", "70000"], "must be a port"),
    (["--publish", "80:"], "must be a port"), (["--publish", "x"], "must be a port"),
    (["--publish", "4000:80", "--publish", "4000:81"], "for another one inside"),
    (["--publish", "4000:80", "--network", "host"], "on the host itself"),
    (["--publish", "4000", "--set", "network.allowLocalBinding=false"], "allowLocalBinding"),
])
def test_publish_refused(box, options, what):
    r = box.run("true", options=options)
    assert r.code == 125 and what in r.err and "network.publish" in r.err, str(r)


def test_publish_with_host_network(box, serve):
    """The command listens on the host itself: there is nothing to do."""
    port = free_port()
    with serve("echo", ("127.0.0.1", port), options=["--publish", str(port), "--network", "host"]):
        assert talk("127.0.0.1", port, b"x") == b"x"


def test_n15_published_on_loopback_only(net, box, serve):
    """From another machine, or by the machine's own address, nothing is to be had; an unpublished
    port is not there at all. Control: the same server without a sandbox."""
    box.options = []
    one, two = free_port(), free_port()
    outside = [(HOST4, one), (HOST6, one), (HOST4, two), ("127.0.0.1", two), ("::1", two)]

    def answers(address, port):
        try:
            return talk(address, port, b"x", 2) == b"x"
        except OSError:
            return False

    def from_lan(port):
        with net.inside():
            return answers(HOST4, port)

    where = [(a, p) for p in (one, two) for a in ("0.0.0.0",)]
    with serve("echo", *where, options=["--publish", str(one)]):
        assert answers("127.0.0.1", one)
        assert not [w for w in outside if answers(*w)]
        assert not from_lan(one) and not from_lan(two)
    with serve("echo", *where, sandbox=False):
        assert answers(HOST4, one) and answers(HOST4, two) and from_lan(one)


SPY = """
import os, socket, sys, time
port = int(sys.argv[1])
s = socket.socket()
s.bind(("127.0.0.1", port))
s.listen(100)
seeds = []
for name in ("tcp", "tcp6"):
    for line in open(f"/proc/self/net/{name}"):
        words = line.split()
        if words[3] == "0A" and int(words[1].rsplit(":", 1)[1], 16) != port:
            seeds.append((":" * 2 + "1" if name == "tcp6" else "127.0.0.1",
                          int(words[1].rsplit(":", 1)[1], 16)))
held = []
for address, p in seeds:
    for _ in range(200):
        c = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        c.setblocking(False)
        c.connect_ex((address, p))
        held.append(c)
print("up", len(seeds), flush=True)
served = 0
s.settimeout(20)
end = time.monotonic() + 20
while served < 5 and time.monotonic() < end:
    conn, _ = s.accept()
    conn.sendall(conn.recv(100))
    conn.close()
    served += 1
got = 0
for c in held:
    try:
        got += len(c.recv(100))
    except OSError:
        pass
print("served", served, "got", got, flush=True)
"""


def test_seeds_are_of_no_use_inside(box):
    """The command finds the listener from which sockets are made and fills its queue: it gets
    nothing of what the host's clients say, and its own port still works."""
    port = free_port()
    with box.start(PYTHON, "-c", SPY, str(port), options=["--publish", str(port)]) as child:
        line = child.process.stdout.readline().split()
        assert line[0] == b"up" and int(line[1]) >= 2, (line, child.process.stderr.read())
        served, end = 0, time.monotonic() + 20
        while served < 5 and time.monotonic() < end:
            with contextlib.suppress(ConnectionResetError):
                served += talk("127.0.0.1", port, b"secret") == b"secret"
        assert served == 5
        assert child.process.stdout.readline() == b"served 5 got 0\n"


# --- --allow-host-port ------------------------------------------------------------------

@pytest.mark.parametrize("network", [[], ["--network", "none"], ["--allow-domain", "a.test"]],
                         ids=" ".join)
@pytest.mark.parametrize("bound", ["127.0.0.1", "::1", "0.0.0.0", "::"])
def test_host_port(box, serve, network, bound):
    """A service of the host, whichever loopback it has, by both names inside; its neighbour not."""
    port, other = free_port(), free_port()
    talk = """
import socket, sys
for host in ("127.0.0.1", "::1", "localhost"):
    for port in sys.argv[1:]:
        try:
            with socket.create_connection((host, int(port)), 5) as s:
                s.sendall(b"x" * 300000)
                s.shutdown(socket.SHUT_WR)
                n = 0
                while more := s.recv(65536):
                    n += len(more)
                print(n)
        except OSError as e:
            print("refused")
"""
    with serve("echo", (bound, port), (bound, other), sandbox=False):
        r = box.run(PYTHON, "-c", talk, str(port), str(other),
                    options=["--allow-host-port", str(port), *network]).ok()
        assert r.out == "300000\nrefused\n" * 3, str(r)


def test_host_port_without_service(box):
    """Allowed, and nobody there: refused or ended at once."""
    port = free_port()
    r = box.run(PYTHON, "-c", f"""
import socket, time
start = time.monotonic()
try:
    s = socket.create_connection(("127.0.0.1", {port}), 5)
    print(s.recv(1))
except OSError as e:
    print("b''")
print(time.monotonic() - start < {AT_ONCE})""", options=["--allow-host-port", str(port)]).ok()
    assert r.out == "b''\nTrue\n", str(r)


# --- network.allowLocalBinding -----------------------------------------------------------

LISTEN = """
import errno, os, socket, sys
def attempt(name, what):
    try:
        what()
        print(name, "ok")
    except OSError as e:
        print(name, errno.errorcode[e.errno])
def made(family, kind=socket.SOCK_STREAM):
    return socket.socket(family, kind)
def bound(family, where, kind=socket.SOCK_STREAM):
    s = made(family, kind)
    s.bind(where)
    return s
attempt("bind4", lambda: bound(socket.AF_INET, ("127.0.0.1", 8080)))
attempt("bind6", lambda: bound(socket.AF_INET6, ("::", 8080)))
attempt("bind-udp4", lambda: bound(socket.AF_INET, ("0.0.0.0", 8080), socket.SOCK_DGRAM))
attempt("bind-udp6", lambda: bound(socket.AF_INET6, ("::1", 8080), socket.SOCK_DGRAM))
attempt("listen4", lambda: bound(socket.AF_INET, ("127.0.0.1", 0)).listen())
attempt("listen6", lambda: bound(socket.AF_INET6, ("::1", 0)).listen())
attempt("autobind4", lambda: made(socket.AF_INET).listen())
attempt("autobind6", lambda: made(socket.AF_INET6).listen())
attempt("mptcp", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).listen())
attempt("any4", lambda: bound(socket.AF_INET, ("0.0.0.0", 0)))
attempt("any-udp6", lambda: bound(socket.AF_INET6, ("::", 0), socket.SOCK_DGRAM))
for path in ("here.sock", "\\0abstract", "/tmp/there.sock"):
    def unix():
        s = bound(socket.AF_UNIX, path)
        s.listen()
        c = socket.socket(socket.AF_UNIX)
        c.connect(path)
        s.accept()
    attempt("unix", unix)
"""
SERVERS = "bind4 bind6 bind-udp4 bind-udp6 listen4 listen6 autobind4 autobind6 mptcp".split()


@pytest.mark.parametrize("network", [[], ["--allow-domain", "a.test"], ["--network", "host"],
                                     ["--deny-write", "."]], ids=" ".join)
def test_no_local_binding(box, network):
    """No server of the internet families, by no way; unix sockets and clients are free."""
    def run(value):
        r = box.run(PYTHON, "-c", LISTEN, options=[*network, "--set",
                                                   f"network.allowLocalBinding={value}"]).ok()
        return [tuple(line.split()) for line in r.out.splitlines()], r.err

    here = "EROFS" if "--deny-write" in network else "ok"
    clients = [("any4", "ok"), ("any-udp6", "ok"), ("unix", here), ("unix", "ok"), ("unix", "ok")]
    if network == ["--network", "host"]:
        clients[3] = ("unix", "EACCES")  # abstract names are the host's
    found, _ = run("true")  # control
    assert found[:9] == [(n, "ok") for n in SERVERS], found
    with contextlib.suppress(FileNotFoundError):
        (box.ws / "here.sock").unlink()
    found, err = run("false")
    refused = [(n, "EACCES") for n in SERVERS]
    if not network or "--deny-write" in network:
        refused[5] = ("listen6", "EADDRNOTAVAIL")  # without a network lo is down then
    assert found[:9] == refused, found
    assert found[9:] == clients, found
    assert "denied listening on 127.0.0.1:8080 — the policy allows no servers (allow with: " \
           "--set network.allowLocalBinding=true)" in err, err
    assert "denied listening on [::]:8080" in err, err


FLIP = """
import ctypes, os, socket, struct, threading, time
libc = ctypes.CDLL(None, use_errno=True)
inet, unix = socket.socket(), socket.socket(socket.AF_UNIX)
unix.bind("\\0flip")
n = os.dup(unix.fileno())
stop = False
def flip():
    while not stop:
        os.dup2(inet.fileno(), n)
        os.dup2(unix.fileno(), n)
threading.Thread(target=flip, daemon=True).start()
end, tries = time.monotonic() + 1.5, 0
while time.monotonic() < end:
    libc.listen(n, 1)
    tries += 1
stop = True
state = struct.unpack_from("B", inet.getsockopt(socket.IPPROTO_TCP, 11, 8))[0]
print(tries > 100, state == 10)
"""


def test_listen_race(box):
    """listen() while another thread flips the descriptor between a unix and an inet socket."""
    options = ["--set", "network.allowLocalBinding=false"]
    assert box.run(PYTHON, "-c", FLIP).ok().out == "True True\n"  # control
    assert box.run(PYTHON, "-c", FLIP, options=options).ok().out == "True False\n"


def test_no_local_binding_clients(net, box, direct):
    """Clients of all kinds go on working, also those that bind before they connect."""
    box.options += ["--set", "network.allowLocalBinding=false"]
    r = box.run(*direct, "curl", "-sSf", "--local-port", "0", "http://allowed.test/").ok()
    assert "hello" in r.out
    r = box.run(*direct, "curl", "-sSf", "--interface", "0.0.0.0", "http://allowed.test/").ok()
    assert "hello" in r.out


def test_publish_in_reports(box, serve):
    """policy, plan and the JSON of both say what is published."""
    options = ["--publish", "3000", "--publish", "8080:80"]
    found = json.loads(box.ambit("policy", "--json", *options).ok().out)
    assert found["network"]["publish"] == [3000, "8080:80"], found["network"]
    assert "8080:80" in box.ambit("policy", *options).ok().out
    r = box.ambit("plan", *options, "--", "true").ok()
    assert "127.0.0.1:8080" in r.out and "80" in r.out, r.out
    plan = json.loads(box.ambit("plan", "--json", *options, "--", "true").ok().out)
    assert plan["publish"] == [{"host": 3000, "inside": 3000}, {"host": 8080, "inside": 80}], plan
