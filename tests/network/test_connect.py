# SPDX-License-Identifier: Apache-2.0
"""connect(2) as programs see it: a refused destination fails in the call, at once, with an error
number that says what happened, and the report knows which program it was. Everything twice: with
nftables, and on a kernel that has none, where the broker brings connections to the proxy."""
import json
from pathlib import Path

import pytest

import test_programs
from ambit_test import compile_c, wait_until
from servers import HOST4

PYTHON = "/usr/bin/python3"
HERE = Path(__file__).parent


@pytest.fixture(scope="package")
def without_nft(internet):
    program = internet.directory / "without_nft"
    compile_c(HERE / "probes/without_nft.c", program)
    return program


@pytest.fixture(params=["nft", "no-nft"])
def kernel(request, net, box, without_nft):
    """The box runs with or without nftables; the name of which."""
    if request.param == "no-nft":
        with_nft = box.argv
        box.argv = lambda *command, options=(): [without_nft, *with_nft(*command, options=options)]
    return request.param


TRY = """
import errno, json, select, socket, sys, time
out = []
for how, host, port in json.loads(sys.argv[1]):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = socket.socket(family)
    start = time.monotonic()
    try:
        if how == "poll":
            s.setblocking(False)
            r = s.connect_ex((host, port))
            if r == errno.EINPROGRESS:
                select.select([], [s], [], 5)
                r = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if r:
                raise OSError(r, "")
        else:
            s.settimeout(None)
            s.connect((host, port))
        said = "connected"
    except OSError as e:
        said = errno.errorcode.get(e.errno, str(e))
    out.append([said, time.monotonic() - start])
print(json.dumps(out))
"""


def attempt(box, *tries, **options):
    r = box.run(PYTHON, "-c", TRY, json.dumps(tries), **options).ok()
    return json.loads(r.out), r


REFUSED = ["11.9.9.9", "2a0b:99::9", "::ffff:11.9.9.8", "169.254.169.254", "fd00:ec2::254", "10.1.2.3",
           HOST4, "192.0.2.1", "255.255.255.255", "224.0.0.1"]


@pytest.mark.parametrize("how", ["block", "poll"])
def test_refused_address(net, box, kernel, how):
    """Addresses that are not allowed, ports of all kinds, also where 403 could have been said."""
    tries = [(how, host, port) for host in REFUSED for port in (22, 80, 443, 61080)]
    found, r = attempt(box, *tries)
    assert {said for said, _ in found} == {"EACCES"}, list(zip(tries, found))
    assert max(took for _, took in found) < 0.5, found
    assert not net.leaks(), str(r)
    assert "denied connect to 11.9.9.9:22 — " in r.err and "denied connect to [2a0b:99::9]:80" in r.err


def test_refused_class(net, box, kernel):
    """A rule for every address does not mean the machine itself, nor the cloud's metadata."""
    box.options = ["--allow-domain", "0.0.0.0/0", "--allow-domain", "::/0"]
    found, r = attempt(box, *[("block", h, 80) for h in (
        "169.254.169.254", "fd00:ec2::254", "10.1.2.3", HOST4)])
    assert {said for said, _ in found} == {"EACCES"}, found
    found, r = attempt(box, ("block", "11.9.9.9", 80))  # control
    assert found[0][0] == "connected", found


def test_refused_port_of_a_name(net, box, kernel):
    """The name resolves, since it is allowed at another port."""
    box.options = ["--allow-domain", "allowed.test:443"]
    found, r = attempt(box, ("block", "allowed.test", 22), ("poll", "allowed.test", 80),
                       ("block", "allowed.test", 443), ("block", "allowed.test", 61080))
    assert [said for said, _ in found] == ["EACCES", "EACCES", "connected", "EACCES"], found
    assert "denied connect to allowed.test:22 — " in r.err, r.err
    assert "--allow-domain allowed.test:22" in r.err, r.err
    assert not net.leaks(ports=(443,)), str(r)


CONFINED = """
import ctypes, errno, json, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def confine():
    rules = (ctypes.c_uint64 * 2)(0, 2)  # connect(2) of TCP, to no port
    ruleset = libc.syscall(444, rules, ctypes.sizeof(rules), 0)
    assert ruleset >= 0 and libc.prctl(38, 1, 0, 0, 0) == 0 and libc.syscall(446, ruleset, 0) == 0
for how, port in json.loads(sys.argv[1]):
    if os.fork() == 0:
        if how == "confined":
            confine()
        r = socket.socket().connect_ex(("allowed.test", port))
        print(errno.errorcode.get(r, "connected"), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.parametrize("order", [["free", "confined"], ["confined", "free"]])
def test_landlock_of_the_program(net, box, kernel, order):
    """Who has given up connecting is not connected by us; others are, whoever came first."""
    r = box.run(PYTHON, "-c", CONFINED, json.dumps(list(zip(order, (80, 443))))).ok()
    said = {"free": "connected", "confined": "EACCES"}
    assert r.out.split() == [said[how] for how in order], r


def test_address_of_no_name(net, box, kernel):
    found, r = attempt(box, ("block", "198.18.0.77", 80), ("block", "fd53:ab17::4d", 443))
    assert [said for said, _ in found] == ["ENETUNREACH"] * 2, found


def test_who_was_refused(net, box, kernel):
    """The report has the program and its number inside."""
    report = box.ws / "report"
    box.run("bash", "-c", "echo $$ > pid; exec 3<>/dev/tcp/11.9.9.9/25",
            options=["--report", str(report)])
    found, = json.loads(report.read_text())["violations"]
    assert found["target"] == "11.9.9.9:25" and found["kind"] == "connect", found
    assert found["process"] == "bash", found
    assert found["pid"] == int((box.ws / "pid").read_text()), found


def test_allowed_goes_on(net, box, kernel):
    """The socket is connected to what it wanted; the port is right where nftables is there."""
    r = box.run(PYTHON, "-c", """
import socket
for family in (socket.AF_INET, socket.AF_INET6):
    where = socket.getaddrinfo("dual.test", 7, family, socket.SOCK_STREAM)[0][4]
    for nonblocking in (False, True):
        s = socket.socket(family)
        s.settimeout(5 if nonblocking else None)
        s.connect(where)
        s.settimeout(5)
        peer = s.getpeername()
        print(peer[0] == where[0], peer[1], s.recv(100).decode().strip())
""", options=["--allow-domain", "dual.test"]).ok()
    port = "7" if kernel == "nft" else "61080"
    assert r.out == f"True {port} server speaks first\n" * 4, str(r)


def test_many_at_once(net, box, kernel):
    """More than may be asked about at a time."""
    r = box.run(PYTHON, "-c", """
import socket, threading
name = socket.gethostbyname("allowed.test")
ok = []
def one(i):
    for host, port in ((name, 7), ("11.9.9.9", 1000 + i)):
        try:
            with socket.create_connection((host, port), 10) as s:
                ok.append(s.recv(100))
        except PermissionError:
            ok.append("refused")
threads = [threading.Thread(target=one, args=(i,)) for i in range(300)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(ok.count(b"server speaks first\\n"), ok.count("refused"))
""").ok()
    assert r.out == "300 300\n", str(r)
    assert not net.leaks(), str(r)


def test_live_change(net, box, kernel):
    """What is allowed later is not refused by what was known before, nor the other way round."""
    control = box.ws / "control"
    script = f"""
import errno, os, socket, sys, time
def go(host):
    s = socket.socket()
    try:
        s.connect((host, 7))
        s.settimeout(5)
        return "open" if s.recv(100) else "closed"
    except OSError as e:
        return errno.errorcode[e.errno]
while True:
    print(go("11.1.1.1"), flush=True)
    input()
"""
    import os
    r, w = os.pipe()
    with box.start(PYTHON, "-c", script, options=["--control-fd", str(r)],
                   pass_fds=[r]) as child:
        os.close(r)

        def tried():
            child.process.stdin.write(b"\n")
            child.process.stdin.flush()
            return child.process.stdout.readline()

        def becomes(rules, *wanted):
            os.write(w, json.dumps({"network": {"allowedDomains": rules}}).encode() + b"\n")
            return wait_until(lambda: tried() in wanted, step=0.1)

        assert child.process.stdout.readline() == b"EACCES\n"
        assert becomes(["allowed.test", "11.1.1.1"], b"open\n")
        assert becomes(["allowed.test"], b"EACCES\n", b"ECONNRESET\n")
    os.close(w)


def test_proxy_killed(net, box, kernel):
    """Connections are refused, and nothing waits for an answer that will not come."""
    import os
    import signal

    from test_attacks import proxy_of
    script = TRY.replace("for how", "print('up', flush=True); input()\nfor how", 1)
    with box.start("sh", "-c", 'getent hosts allowed.test >/dev/null; exec "$@"', "sh", PYTHON, "-c",
                   script, json.dumps([("block", "11.9.9.9", 80), ("poll", "11.1.1.1", 443)])) as child:
        assert child.process.stdout.readline() == b"up\n"
        os.kill(proxy_of(child), signal.SIGKILL)
        r = child.wait(input=b"\n")
    found = json.loads(r.out)
    assert [said for said, _ in found] == ["ECONNREFUSED"] * 2, str(r)
    assert max(took for _, took in found) < 4, found


def test_semantics(net, box, kernel):
    """The corners of connect(2) are those of the kernel."""
    probe = box.write("semantics.py", (HERE / "probes/semantics.py").read_bytes())
    outside = box.host(PYTHON, str(probe)).ok()
    inside = box.run(PYTHON, str(probe)).ok()
    assert inside.out.splitlines() == outside.out.splitlines(), str(inside)


@pytest.mark.parametrize("program", [p for p in test_programs.PROGRAMS if p.id != "curl-socks"],
                         ids=lambda p: p.id)
def test_program_without_nft(net, box, built, servers, direct, without_nft, program):
    """Real programs, where connections come by the broker alone."""
    with_nft = box.argv
    box.argv = lambda *command, options=(): [without_nft, *with_nft(*command, options=options)]
    test_programs.test_program(net, box, built, servers, direct, program, "direct")


def test_fast_open_without_nft(net, box, direct, without_nft):
    """Who sends without connecting is refused: no way past the broker, only no way at all."""
    script = """
import socket
s = socket.socket()
try:
    s.sendto(b"GET / HTTP/1.0\\r\\n\\r\\n", socket.MSG_FASTOPEN, (socket.gethostbyname("allowed.test"), 80))
    print("sent", s.recv(1000)[:12])
except OSError as e:
    print("refused")
"""
    assert box.run(PYTHON, "-c", script).ok().out.startswith("sent b'HTTP/1.1 200")
    r = box.execute([without_nft, *box.argv(PYTHON, "-c", script)]).ok()
    assert r.out == "refused\n", str(r)
    assert "nftables tproxy is not available here" in r.err, str(r)


def test_check_says_how(box, internet, without_nft):
    def egress(*prefix):
        found = json.loads(box.execute([*prefix, *box_check()]).out)
        return next(p for p in found["properties"] if p["name"] == "egress")

    def box_check():
        return [box.argv()[0], "check", "--json"]

    assert egress()["mechanism"] == "all addresses local, nftables tproxy, supervised connect"
    assert egress(without_nft)["mechanism"].startswith("supervised connect alone (nftables tproxy:")


@pytest.mark.parametrize("options, hint", [([], ""), (["--network", "none"], "--network allowlist ")])
def test_no_network_is_told(box, options, hint):
    """Also where there is no network at all, and the kernel is who refuses."""
    found, r = attempt(box, ("block", "11.9.9.9", 80), ("poll", "2a0b:99::9", 443), options=options)
    assert [said for said, _ in found] == ["ENETUNREACH"] * 2, found
    assert f"denied connect to 11.9.9.9:80 — there is no network (allow with: {hint}--allow-domain " \
           "11.9.9.9:80)" in r.err, r.err
    assert f"(allow with: {hint}--allow-domain '[2a0b:99::9]:443')" in r.err, r.err


def test_no_names_without_network(net, box):
    r = box.run("getent", "hosts", "allowed.test", options=["--network", "none"])
    assert r.code == 2 and "names cannot be looked up" in r.err, str(r)
    assert "allow with" not in r.err and "--network allowlist tells" in r.err, str(r)
