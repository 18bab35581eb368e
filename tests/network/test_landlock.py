# SPDX-License-Identifier: Apache-2.0
"""Allowed domains without namespaces (--backend landlock): the broker makes each connection and
gives it to the proxy. The same attempts as with namespaces, and those that only exist without.
"""
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

import test_programs
from ambit_test import skip_impossible, wait_until
from servers import HOST4
# collected here once more, on this backend
from test_attacks import (  # noqa: F401
    attempts, test_i2_abstract_socket, test_i8_loopback, test_killed_proxy, test_n1_icmp_and_raw,
    test_n2_nothing_is_asked_before_it_must, test_n4_sni, test_n5_literals, test_n6_rebinding, test_n7_metadata,
    test_n13_nothing_listens_outside, test_n16_flood, test_n16_race_to_another_address,
    test_synthetic_addresses_are_not_guessed, test_two_sandboxes_do_not_meet)
from test_live import talk, test_lists_follow_at_once  # noqa: F401
from test_more_attacks import test_n17_link_local  # noqa: F401
from test_programs import test_half_close, test_large_both_ways, test_many_connections  # noqa: F401

PYTHON = "/usr/bin/python3"


@pytest.fixture(autouse=True)
def on_landlock(box):
    box.env["AMBIT_BACKEND"] = "landlock"


# --- what people run --------------------------------------------------------------------

WORKS = ["curl", "curl-https", "curl-socks", "wget", "git", "node-fetch", "urllib", "asyncio", "static-glibc",
         "go", "go-tcp-resolver", "ssh"]
PROGRAMS = [(p, way) for p, way in test_programs.WAYS if p.id in WORKS]
# their resolvers speak UDP only; they fail at once, and work by the proxy variables where they know them
NO_NAMES = [p for p in test_programs.PROGRAMS if p.id in ("static-musl", "go-static", "go-udp-resolver")]


@pytest.mark.parametrize("program, way", PROGRAMS, ids=[f"{p.id}-{w}" for p, w in PROGRAMS])
def test_program(net, box, built, servers, direct, program, way):
    if program.needs and not test_programs.is_there(program.needs):
        skip_impossible(f"{program.needs} is not installed")
    prefix = direct if way == "direct" else []
    r = box.run(*prefix, *program.command("allowed.test", net)).ok()
    assert program.hello in r.out and "denied" not in r.err, str(r)
    assert not net.leaks(), str(r)
    r = box.run(*prefix, *program.command("other.test", net))
    assert r.code != 0 and program.hello not in r.out, str(r)
    assert "ambit: denied connect to other.test" in r.err, str(r)
    assert not net.leaks(), str(r)


@pytest.mark.parametrize("program", NO_NAMES, ids=[p.id for p in NO_NAMES])
def test_program_without_names(net, box, built, direct, program):
    if not test_programs.is_there(program.needs):
        skip_impossible(f"{program.needs} is not installed")
    r = box.run(*direct, *program.command("allowed.test", net))
    assert r.code != 0 and program.hello not in r.out and not net.leaks(), str(r)
    assert r.seconds < test_programs.FAST + program.start, str(r)


def test_nameserver_of_the_host_is_not_asked(net, box):
    """Any address at port 53 is the proxy's resolver; other names do not exist."""
    net.forget()
    r = box.sh("getent hosts allowed.test >/dev/null && echo found; getent hosts x.other.test; :").ok()
    assert r.out == "found\n" and "denied connect to x.other.test" in r.err, str(r)
    assert not net.events, net.events


def test_names_are_told_without_network(net, box):
    box.options = []
    r = box.run("getent", "hosts", "allowed.test")
    assert r.code == 2 and "names cannot be looked up" in r.err, str(r)


# --- ports of the host -------------------------------------------------------------------

@pytest.fixture
def service(box):
    """A server on the machine's own loopback that says hello. -> its port"""
    script = ("import socket\ns = socket.create_server(('127.0.0.1', 0))\nprint(s.getsockname()[1], flush=True)\n"
              "while True:\n c, _ = s.accept(); c.sendall(b'hello\\n'); c.close()\n")
    with box.start(PYTHON, "-c", script, sandbox=False) as child:
        yield int(child.process.stdout.readline())


def test_port_of_the_host(box, service):
    box.options = []
    script = f"exec 3<>/dev/tcp/127.0.0.1/{service} && cat <&3"
    assert box.host("bash", "-c", script).out == "hello\n"  # the control
    assert box.run("bash", "-c", script, options=["--allow-host-port", str(service)]).ok().out == "hello\n"
    r = box.run("bash", "-c", script, options=["--allow-domain", "allowed.test"])
    assert r.code != 0 and not r.out, str(r)
    assert f"denied connect to 127.0.0.1:{service} — a port of this machine " \
           f"(allow with: --allow-host-port {service})" in r.err, str(r)


# --- escapes that only exist here -----------------------------------------------------------

OPTIONS = """
import ctypes, errno, socket, struct, sys
SOL, TCP, IP, IP6 = socket.SOL_SOCKET, socket.IPPROTO_TCP, socket.IPPROTO_IP, socket.IPPROTO_IPV6
four, six = socket.AF_INET, socket.AF_INET6
# a routing header of type 4 with one segment, and one of type 2
route = bytes([0, 2, 4, 0, 0, 0, 0, 0]) + socket.inet_pton(six, sys.argv[2])
home = bytes([0, 2, 2, 1, 0, 0, 0, 0]) + socket.inet_pton(six, sys.argv[2])
for name, family, level, option, value in (
        ("device", four, SOL, 25, b"lo\\0"), ("ifindex", four, SOL, 62, struct.pack("i", 1)),
        ("fastopen", four, TCP, 30, struct.pack("i", 1)), ("freebind", four, IP, 15, struct.pack("i", 1)),
        ("unicast-if", four, IP, 50, struct.pack(">i", 1)), ("options", four, IP, 4, bytes([1, 1, 1, 0])),
        ("route2", six, IP6, 57, home), ("route4", six, IP6, 57, route), ("old-options", six, IP6, 6, b""),
        ("v6-freebind", six, IP6, 78, struct.pack("i", 1))):
    s = socket.socket(family)
    try:
        s.setsockopt(level, option, value)
        print(name, "set")
    except OSError as e:
        print(name, errno.errorcode[e.errno])
for address in ("0.0.0.0", "127.0.0.1", "127.9.9.9", sys.argv[1]):
    s = socket.socket()
    try:
        s.bind((address, 0))
        print("bind", "ok")
    except OSError as e:
        print("bind", errno.errorcode[e.errno])
for family, level, option in ((four, SOL, socket.SO_REUSEADDR), (four, SOL, socket.SO_KEEPALIVE),
                              (four, TCP, socket.TCP_NODELAY), (four, IP, socket.IP_TOS),
                              (six, IP6, socket.IPV6_V6ONLY), (six, IP6, socket.IPV6_TCLASS)):
    socket.socket(family).setsockopt(level, option, 1)
"""


def test_options_that_lead_elsewhere(net, box):
    """A socket that the broker connects to the loopback cannot be told to send by another way."""
    control = box.host(PYTHON, "-c", OPTIONS, HOST4, "2a0b:99::9").ok().out.split("\n")
    # routing headers depend on how the kernel was built
    assert {"device set", "ifindex set", "fastopen set", "freebind set", "unicast-if set",
            "options set"} <= set(control), control
    assert control.count("bind ok") == 4
    r = box.run(PYTHON, "-c", OPTIONS, HOST4, "2a0b:99::9").ok()
    lines = r.out.split("\n")
    assert not [line for line in lines if line.endswith(" set")], r.out
    assert lines.count("bind ok") == 3 and "bind EADDRNOTAVAIL" in lines, r.out


KINDS = """
import errno, socket
for family in (2, 10, 16, 17, 38, 40, 1):
    for kind in (1, 2, 3, 5):
        for protocol in (0, 1, 6, 17, 132, 255, 262):
            try:
                s = socket.socket(family, kind, protocol)
                print(family, kind, protocol)
            except OSError:
                pass
"""


def test_kinds_of_sockets(net, box):
    """TCP, and unix sockets that have to connect: nothing else can be made."""
    allowed = {"2 1 0", "2 1 6", "10 1 0", "10 1 6", "1 1 0", "1 5 0"}
    made = box.run(PYTHON, "-c", KINDS).ok().out.splitlines()
    assert set(made) <= allowed | {"1 1 1", "1 5 1"} and allowed <= set(made), made
    assert {"2 2 0", "2 2 17", "10 2 0"} <= set(box.host(PYTHON, "-c", KINDS).ok().out.splitlines())


LISTEN = """
import errno, socket, sys
for family, address in ((2, None), (2, "0.0.0.0"), (2, "127.0.0.1"), (10, None), (10, "::")):
    s = socket.socket(family)
    try:
        if address:
            s.bind((address, 0))
        s.listen()
        print("listens")
    except OSError as e:
        print(errno.errorcode[e.errno])
"""


def test_listening(net, box):
    """Also without an address: the kernel would pick one that the whole network reaches."""
    assert box.host(PYTHON, "-c", LISTEN).ok().out == "listens\n" * 5
    assert "listens" not in box.run(PYTHON, "-c", LISTEN).ok().out


SEND = """
import errno, socket, sys
for flags in (0, socket.MSG_FASTOPEN):
    for send in (lambda s, to: s.sendto(b"secret", flags, to), lambda s, to: s.sendmsg([b"secret"], [], flags, to)):
        s = socket.socket()
        try:
            send(s, (sys.argv[1], 80))
            print("sent")
        except OSError as e:
            print(errno.errorcode[e.errno])
"""


def test_sending_without_connecting(net, box):
    net.forget()
    assert box.host(PYTHON, "-c", SEND, "11.9.9.9").out.count("sent") == 2
    assert wait_until(lambda: net.leaks(settle=0)), "the control run is not seen"
    net.forget()
    r = box.run(PYTHON, "-c", SEND, "11.9.9.8").ok()  # another: packets of the control may come late
    assert "sent" not in r.out, str(r)
    assert not [e for e in net.leaks() if e.what[1] == "11.9.9.8"], str(r)


INHERITED = """
import errno, socket, sys
s = socket.socket(fileno=0)
try:
    s.connect((sys.argv[1], 80))
    s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
    print(s.recv(100))
except OSError as e:
    print(errno.errorcode[e.errno])
"""


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_inherited_socket(net, box, kind):
    """One that was made outside is connected by the same rules."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as s:
        p = box.who.popen(box.argv(PYTHON, "-c", INHERITED, "11.9.9.9"), stdin=s, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, cwd=box.ws, env=box._env(None))
        out, err = p.communicate(timeout=30)
    assert out in (b"EACCES\n", b"ENETUNREACH\n"), (out, err)
    assert not net.leaks()


SWAP = """
import os, socket, threading, time
good = (socket.gethostbyname("allowed.test"), 7)
stop, wrong, right = False, 0, 0
a, b = socket.socketpair()
place = socket.socket()
def swap():
    while not stop:
        os.dup2(a.fileno(), place.fileno())
        s = socket.socket()
        os.dup2(s.fileno(), place.fileno())
        s.close()
threading.Thread(target=swap, daemon=True).start()
end = time.monotonic() + 1
targets = [good, ("11.9.9.9", 80), ("127.0.0.1", 1)]
n = 0
while time.monotonic() < end:
    n += 1
    try:
        place.connect(targets[n % 3])
    except OSError:
        continue
    right += 1
stop = True
print(n > 100)
"""


def test_swapped_descriptors(net, box):
    """The number means another socket a moment later: what was judged is what is connected."""
    net.forget()
    r = box.run(PYTHON, "-c", SWAP).ok()
    assert r.out == "True\n" and not net.leaks(), str(r)


def listening(pids):
    """Ports on which one of these processes listens."""
    inodes = set()
    for pid in pids:
        for fd in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                inodes.add(os.readlink(fd))
            except OSError:
                pass
    found = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            f = line.split()
            if f[3] == "0A" and f"socket:[{f[9]}]" in inodes:
                found.append(f[1])
    return found


STRANGERS = """
import socket
for i in range(150):
    s = socket.create_connection(("allowed.test", 7), timeout=20)
    assert s.makefile("rb").readline() == b"server speaks first\\n", i
    s.close()
print("all", flush=True)
input()
"""


def test_strangers_at_the_moment(net, box):
    """Whoever else connects to the listener of the moment gets nothing, and disturbs nobody."""
    stop, got, tried = threading.Event(), [], 0

    def intrude():
        nonlocal tried
        while not stop.is_set():
            for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
                f = line.split()
                address, port = f[1].split(":")
                if f[3] != "0A" or address != "0100007F" or int(port, 16) < 32768:
                    continue
                with socket.socket() as s:
                    s.settimeout(5)
                    try:
                        s.connect(("127.0.0.1", int(port, 16)))
                        tried += 1
                        s.sendall(b"GET http://allowed.test/ HTTP/1.0\r\n\r\n")
                        got.append(s.recv(100))
                    except OSError:
                        pass

    intruder = threading.Thread(target=intrude)
    with box.start(PYTHON, "-c", STRANGERS) as child:
        intruder.start()
        line = child.process.stdout.readline()
        stop.set()
        intruder.join()
        assert line == b"all\n", child.process.stderr.read()
        pids = subprocess.run(["pgrep", "-g", str(child.process.pid)], capture_output=True, text=True).stdout.split()
        assert not listening(pids)
    assert not [g for g in got if g], got
