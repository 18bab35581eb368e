# SPDX-License-Identifier: Apache-2.0
"""What people run: an allowed name works, another fails at once and it is said why.

Each program is tried with the proxy variables as the sandbox sets them and with none (so that
only the transparent way is left), as root and as the plain user.
"""
import importlib.util
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from ambit_test import skip_impossible, wait_until
from servers import HOST4

HERE = Path(__file__).parent
PYTHON = "/usr/bin/python3"
FAST = 4.0  # seconds in which a refusal must be there, on a machine that is busy with other things

ASYNC = """
import asyncio, sys
async def main(host):
    r, w = await asyncio.open_connection(host, 80, happy_eyeballs_delay=0.25)
    w.write(f"GET / HTTP/1.0\\r\\nHost: {host}\\r\\n\\r\\n".encode())
    print((await r.read()).decode())
asyncio.run(main(sys.argv[1]))
"""
SOCKET = """
import socket, sys
with socket.create_connection((sys.argv[1], 80), timeout=5) as s:
    s.sendall(f"GET / HTTP/1.0\\r\\nHost: {sys.argv[1]}\\r\\n\\r\\n".encode())
    while data := s.recv(4096):
        print(data.decode())
"""
URLLIB = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=5).read().decode())"
NODE_FETCH = "fetch(process.argv[1]).then(r => r.ok ? r.text() : Promise.reject(r.status))" \
             ".then(console.log)"
NODE_HTTP = "require('http').get(process.argv[1], r => {r.pipe(process.stdout); " \
            "process.exitCode = r.statusCode == 200 ? 0 : 1})"
NODE_NET = "const s = require('net').connect(80, process.argv[1], () => s.end(" \
           "`GET / HTTP/1.0\\r\\nHost: ${process.argv[1]}\\r\\n\\r\\n`)); s.pipe(process.stdout)"
NODE_CARES = "require('dns').promises.resolve4(process.argv[1]).then(a => console.log('hello', a))"
BASH = 'exec 3<>/dev/tcp/$0/80 && printf "GET / HTTP/1.0\\r\\nHost: $0\\r\\n\\r\\n" >&3 && cat <&3'


SSH = "install -m 600 {dir}/ssh-key key; ssh -F none -p 2222 -i key -l root -o BatchMode=yes " \
      "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"


@dataclass(frozen=True)
class Program:
    id: str
    argv: tuple  # {host}, {ca}, {dir} are filled in
    hello: str = "hello"
    proxied: bool = True  # looks at the proxy variables at all
    needs: str = ""  # a command, or "module X" of Python
    start: float = 0.0  # seconds that it needs to begin with, on a busy machine

    def command(self, host, net):
        words = {"host": host, "ca": net.certificate, "dir": net.directory}
        return [w.format(**words) if "{" in w and w.isascii() and "\n" not in w and
                any("{%s}" % k in w for k in words) else w for w in self.argv]


PROGRAMS = [
    Program("curl", ("curl", "-sSf", "http://{host}/")),
    Program("curl-https", ("curl", "-sSf", "--cacert", "{ca}", "https://{host}/")),
    Program("curl-socks", ("curl", "-sSf", "-x", "socks5h://127.0.0.1:1080", "http://{host}/")),
    Program("curl-fastopen", ("curl", "-sSf", "--noproxy", "*", "--tcp-fastopen", "--cacert",
                              "{ca}", "https://{host}/"), proxied=False),
    Program("wget", ("wget", "-q", "-O-", "--tries=1", "http://{host}/")),
    Program("wget-https", ("wget", "-q", "-O-", "--tries=1", "--ca-certificate={ca}",
                           "https://{host}/")),
    Program("git", ("sh", "-c", "rm -rf clone && git clone -q http://{host}/git/project.git clone "
                    "&& cat clone/README"), "cloned"),
    Program("git-https", ("sh", "-c", "rm -rf clone && GIT_SSL_CAINFO={ca} git clone -q "
                          "https://{host}/git/project.git clone && cat clone/README"), "cloned"),
    Program("node-fetch", ("node", "-e", NODE_FETCH, "http://{host}/"), proxied=False),
    Program("node-http", ("node", "-e", NODE_HTTP, "http://{host}/"), proxied=False),
    Program("node-net", ("node", "-e", NODE_NET, "{host}"), proxied=False),
    Program("node-cares", ("node", "-e", NODE_CARES, "{host}"), proxied=False),
    Program("urllib", (PYTHON, "-c", URLLIB, "http://{host}/")),
    Program("socket", (PYTHON, "-c", SOCKET, "{host}"), proxied=False),
    Program("asyncio", (PYTHON, "-c", ASYNC, "{host}"), proxied=False),
    Program("bash", ("bash", "-c", BASH, "{host}"), proxied=False),
    Program("static-glibc", ("{dir}/lookup-glibc", "{host}", "80"), proxied=False),
    Program("static-musl", ("{dir}/lookup-musl", "{host}", "80"), proxied=False,
            needs="musl-gcc"),
    Program("java", ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp",
                     "{dir}", "Fetch", "http://{host}/"), proxied=False, needs="javac", start=4),
    Program("go", ("{dir}/go-fetch", "http://{host}/"), needs="go"),
    Program("go-https", ("env", "SSL_CERT_FILE={ca}", "{dir}/go-fetch", "https://{host}/"),
            needs="go"),
    Program("go-netgo", ("env", "GODEBUG=netdns=go", "{dir}/go-fetch", "http://{host}/"),
            proxied=False, needs="go"),
    Program("go-static", ("{dir}/go-dial", "{host}", "80"), proxied=False, needs="go"),
    Program("go-udp-resolver", ("{dir}/go-dial", "{host}", "80", "udp", "8.8.8.8:53"),
            proxied=False, needs="go"),
    Program("go-tcp-resolver", ("{dir}/go-dial", "{host}", "80", "tcp", "1.1.1.1:53"),
            proxied=False, needs="go"),
    Program("go-stub-resolver", ("{dir}/go-dial", "{host}", "80", "udp", "127.0.0.53:53"),
            proxied=False, needs="go"),
    Program("go-udp6-resolver", ("{dir}/go-dial", "{host}", "80", "udp",
                                 "[2001:4860:4860::8888]:53"), proxied=False, needs="go"),
    Program("go-tcp6-resolver", ("{dir}/go-dial", "{host}", "80", "tcp",
                                 "[2001:4860:4860::8888]:53"), proxied=False, needs="go"),
    Program("ssh", ("sh", "-c", SSH + ' {host} echo hello'), proxied=False, needs="dropbear"),
    Program("git-ssh", ("sh", "-c", 'rm -rf clone; GIT_SSH_COMMAND="' + SSH.split("; ")[1] + '"; '
                        'export GIT_SSH_COMMAND; ' + SSH.split("; ")[0] + '; '
                        'git clone -q ssh://root@{host}{dir}/repositories/project.git clone && '
                        'cat clone/README'), "cloned", proxied=False, needs="dropbear"),
    Program("redis-cli", ("redis-cli", "-h", "{host}", "ping"), "PONG", proxied=False,
            needs="redis-cli"),
    Program("psql", ("psql", "-h", "{host}", "-U", "me", "-Atc", "select 1"), "postgres",
            proxied=False, needs="psql"),
    Program("openssl", ("sh", "-c", "printf 'GET / HTTP/1.0\\r\\nHost: {host}\\r\\n\\r\\n' | "
                        "openssl s_client -quiet -verify_quiet -CAfile {ca} -servername {host} "
                        "-connect {host}:443 | grep hello"), proxied=False),
]
WAYS = [(p, way) for p in PROGRAMS for way in (("proxy", "direct") if p.proxied else ("direct",))
        if (p.id, way) != ("curl-socks", "direct")]


def is_there(needs):
    if needs.startswith("module "):
        return importlib.util.find_spec(needs.removeprefix("module ")) is not None
    return shutil.which(needs) is not None


@pytest.mark.parametrize("program, way", WAYS, ids=[f"{p.id}-{w}" for p, w in WAYS])
def test_program(net, box, built, servers, direct, program, way):
    if program.needs and not is_there(program.needs):
        skip_impossible(f"{program.needs} is not installed")
    prefix = direct if way == "direct" else []
    r = box.run(*prefix, *program.command("allowed.test", net)).ok()
    assert program.hello in r.out, str(r)
    assert "denied" not in r.err, str(r)
    assert not net.leaks(), str(r)
    if program.id in ("java", "psql") and box.who.name == "root":
        return  # slow to start, and said no to once already
    r = box.run(*prefix, *program.command("other.test", net))
    assert r.code != 0 and program.hello not in r.out, str(r)
    assert "ambit: denied connect to other.test" in r.err, str(r)
    assert "--allow-domain other.test" in r.err, str(r)
    assert r.seconds < FAST + program.start, str(r)
    assert not net.leaks(), str(r)


@pytest.mark.parametrize("host", ["v6.test", "dual.test"])
def test_ipv6(net, box, direct, built, host):
    """A name that has only AAAA, and one that has both; clients bound to one family."""
    box.options = ["--allow-domain", host]
    script = f"""set -e
curl -sSf http://{host}/one
curl -sSf --cacert {net.certificate} https://{host}/two
curl -4 -sSf --noproxy '*' http://{host}/three
curl -6 -sSf --noproxy '*' http://{host}/four
curl -6 -sSf --noproxy '*' --cacert {net.certificate} https://{host}/five
{net.directory}/lookup-glibc {host} 80"""
    r = box.sh(script).ok()
    for path in ("one", "two", "three", "four", "five"):
        assert f"hello from {host}/{path}" in r.out, str(r)
    assert not net.leaks(names=(host,)), str(r)


def test_address_rules(net, box, direct):
    """A rule for an address works without any name, in both families, and only for its port."""
    box.options = ["--allow-domain", "11.1.1.1:80", "--allow-domain", "[2a0b:99::1]:80"]
    r = box.sh("curl -sSf http://11.1.1.1/ && curl -sSf --noproxy '*' http://11.1.1.1/ && "
               "curl -gsSf http://[2a0b:99::1]/ && curl -gsSf --noproxy '*' http://[2a0b:99::1]/")
    assert r.ok().out.count("hello from") == 4, str(r)
    r = box.run("curl", "-sS", "--noproxy", "*", "http://11.1.1.1:8080/")
    assert r.code != 0 and "denied connect to 11.1.1.1:8080" in r.err, str(r)
    assert not net.leaks(names=("allowed.test", "v6.test", "11.1.1.1", "[2a0b:99::1]"),
                         ports=(80,)), str(r)


@pytest.mark.parametrize("way", ["proxy", "direct"])
def test_grpc_without_tls(net, box, servers, direct, way):
    """HTTP/2 without TLS: by its address; to a name it is refused, and says so."""
    if not is_there("module grpc"):
        skip_impossible("module grpc is not installed")
    call = [*(direct if way == "direct" else []), PYTHON, str(HERE / "probes/rpc.py"), "call"]
    r = box.run(*call, "allowed.test:50051")
    assert r.code != 0 and "hello" not in r.out, str(r)
    assert "denied connect to allowed.test:50051" in r.err, str(r)
    assert "HTTP/2 without TLS cannot be judged" in r.err, str(r)
    assert not net.leaks(), str(r)
    r = box.run(*call, "11.1.1.1:50051", options=["--allow-domain", "11.1.1.1:50051"])
    assert "hello there" in r.ok().out and "denied" not in r.err, str(r)


def test_server_speaks_first(net, box, direct):
    """Nothing waits for the client's first byte where the protocol begins with the server."""
    r = box.run("bash", "-c", "exec 3<>/dev/tcp/allowed.test/7; read -r line <&3; echo $line; "
                "echo ping >&3; read -r line <&3; echo $line").ok()
    assert r.out == "server speaks first\nping\n", str(r)


def test_large_both_ways(net, box, direct):
    """Megabytes, down and up, by either way, byte for byte in number."""
    n = 5_000_000
    r = box.sh(f"curl -sSf http://allowed.test/big?{n} | wc -c; "
               f"curl -sSf --noproxy '*' --cacert {net.certificate} https://allowed.test/big?{n} | "
               f"wc -c; head -c {n} /dev/zero | tr '\\0' y | curl -sSf --data-binary @- "
               "--noproxy '*' http://allowed.test/post | wc -c").ok()
    down, tls, up = map(int, r.out.split())
    assert down == tls == n and up > n, str(r)


def test_half_close(net, box):
    """A client that shuts its side still gets the rest."""
    r = box.run(PYTHON, "-c", """
import socket
s = socket.create_connection(("allowed.test", 7))
s.recv(100)
s.sendall(b"x" * 300000)
s.shutdown(socket.SHUT_WR)
n = 0
while data := s.recv(65536):
    n += len(data)
print(n)""").ok()
    assert int(r.out) == 300000, str(r)


def test_many_connections(net, box):
    """Two hundred at once, none lost."""
    r = box.run(PYTHON, "-c", """
import socket
all = [socket.create_connection(("allowed.test", 7), timeout=10) for _ in range(200)]
for i, s in enumerate(all):
    s.sendall(b"%d" % i)
    f = s.makefile("rb")
    assert f.readline() == b"server speaks first\\n"
    assert f.read(len(b"%d" % i)) == b"%d" % i
print("all", len(all))""").ok()
    assert r.out == "all 200\n", str(r)


def test_own_server(net, box, direct):
    """A server inside is reached by clients inside, also where they know a proxy, and by nobody
    outside."""
    script = f"""
{PYTHON} -m http.server 8080 >/dev/null 2>&1 &
echo inside > page
i=0
until curl -sf --noproxy '*' http://127.0.0.1:8080/page; do
	i=$((i+1)); [ $i -lt 200 ] || exit 1; sleep 0.02
done
curl -sSf http://127.0.0.1:8080/page || exit 2
curl -sSf http://localhost:8080/page || exit 3
curl -sSf --noproxy '*' http://localhost:8080/page || exit 4
curl -sSf --noproxy '*' http://allowed.test:8080/ || exit 5
echo ready; read line
kill %1"""
    with box.start("bash", "-c", script) as child:
        lines = iter(child.process.stdout.readline, b"")
        seen = []
        for line in lines:
            seen.append(line)
            if line == b"ready\n":
                break
        assert seen.count(b"inside\n") == 4, (seen, child.process.stderr.read())
        assert b"hello from allowed.test:8080/ \n" in seen, seen
        for address in ("127.0.0.1", HOST4):
            assert box.host("curl", "-sS", "-m", "2", f"http://{address}:8080/page").code == 7
        assert child.wait(input=b"\n").code in (0, 143)


def test_udp_and_icmp_fail_at_once(net, box):
    """QUIC clients must fall back, ping must not hang."""
    r = box.run(PYTHON, "-c", """
import socket, time, errno
for family, to in ((socket.AF_INET, "11.1.1.1"), (socket.AF_INET6, "2a0b:99::1"),
                   (socket.AF_INET, socket.gethostbyname("allowed.test"))):
    start = time.monotonic()
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(5)
    try:
        s.connect((to, 443))
        s.send(b"hello")
        s.recv(100)
    except OSError as e:
        print(errno.errorcode.get(e.errno), time.monotonic() - start < 3)
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    try:
        socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP)
        print("made")
    except PermissionError:
        print("refused")""").ok()
    assert r.out == "ECONNREFUSED True\n" * 3 + "refused\n" * 2, str(r)
    assert not net.leaks(), str(r)


def test_unreachable_server(net, box, direct):
    """Allowed, but nothing listens there: a clean error, quickly, by either way."""
    for prefix in ([], direct):
        r = box.run(*prefix, "curl", "-sSf", "http://allowed.test:81/")
        assert r.code != 0 and r.seconds < FAST, str(r)
        r = box.run(*prefix, "curl", "-sSf", "https://allowed.test:444/")
        assert r.code != 0 and r.seconds < FAST, str(r)


def test_name_without_address(net, box, direct):
    box.options = ["--allow-domain", "nowhere.test"]
    for prefix in ([], direct):
        r = box.run(*prefix, "curl", "-sSf", "http://nowhere.test/")
        assert r.code != 0 and r.seconds < FAST, str(r)


def test_hosts_file(net, box, direct):
    """A name that the host has in /etc/hosts is the host's to resolve, by either way."""
    hosts = Path(net.directory / "hosts")
    before = hosts.read_text()
    hosts.write_text(before + "11.1.1.1 listed.test\n")
    try:
        box.options = ["--allow-domain", "listed.test"]
        box.run("curl", "-sSf", "http://listed.test/").ok()
        box.run(*direct, "curl", "-sSf", "http://listed.test/").ok()
    finally:
        hosts.write_text(before)


def test_report_file(net, box, direct):
    """--report holds each denied connection once, with rule and hint."""
    report = box.ws / "report.json"
    box.run("sh", "-c", "curl -s http://other.test/; curl -s --noproxy '*' http://11.2.2.2:8080/",
            options=["--report", str(report)])
    found = json.loads(report.read_text())
    denied = {v["target"]: v for v in found["violations"]}
    assert denied.keys() == {"other.test:80", "11.2.2.2:8080"}, found
    assert denied["other.test:80"]["kind"] == "connect"
    assert denied["other.test:80"]["hint"] == "--allow-domain other.test:80"


def test_network_host(net, box):
    """--network host is the host's own network: nothing in between."""
    r = box.run("curl", "-sSf", "http://other.test/", options=["--network", "host"])
    box.options = []
    r = box.run("sh", "-c", "env | grep -ci _proxy=; curl -sSf http://other.test/ && "
                "curl -sSf http://127.0.0.1:5432/", options=["--network", "host"]).ok()
    assert r.out == "0\nhello from other.test/ \nsecret\n", str(r)


def test_network_none(net, box):
    """--network none and the default: nothing at all leaves, not even a question for a name."""
    box.options = []
    for options in ([], ["--network", "none"], ["--network", "none", "--allow-domain",
                                                "allowed.test"]):
        r = box.run("sh", "-c", "curl -sS -m 5 http://allowed.test/; curl -sS -m 5 "
                    "http://11.1.1.1/; curl -sS -m 5 http://127.0.0.1:5432/", options=options)
        assert r.code != 0 and "hello" not in r.out and "secret" not in r.out, str(r)
        assert r.seconds < FAST, str(r)
    assert not net.leaks(names=()), str(r)
    assert not net.events, str(r)


def test_sent_and_gone(net, box):
    """What a program has sent before it ended arrives, though nobody waits for it."""
    def arrived(kind, text):
        return wait_until(lambda: [e for e in net.events if e.kind == kind and text in e.what[2 if
                                   kind == "http" else 1]])

    box.run("bash", "-c", "echo last words >/dev/tcp/allowed.test/9").ok()
    assert arrived("data", b"last words")
    box.run("bash", "-c", "printf 'GET /sent HTTP/1.0\\r\\nHost: allowed.test\\r\\n\\r\\n' "
            ">/dev/tcp/allowed.test/80").ok()
    assert arrived("http", "/sent")
    r = box.run("bash", "-c", "echo last words >/dev/tcp/11.2.2.2/9")
    assert "denied connect to 11.2.2.2:9" in r.err, str(r)
    assert not net.leaks(), net.leaks()


def test_end_does_not_wait_for_servers(net, box):
    """A connection that the command leaves open costs nothing at its end."""
    for _ in range(10):  # on a busy machine the start alone may take that long
        r = box.run("bash", "-c", "exec 3<>/dev/tcp/allowed.test/7; read -r line <&3").ok()
        if r.seconds < 1:
            break
    assert r.seconds < 1, str(r)


def proxies(pid):
    out = subprocess.run(["pgrep", "-P", str(pid), "-x", "ambit-proxy"], capture_output=True,
                         text=True).stdout
    return [int(p) for p in out.split()]


def test_proxy_starts_when_it_is_needed(net, box):
    script = "echo up; read line; getent hosts allowed.test; read line"
    with box.start("sh", "-c", script) as child:
        assert child.process.stdout.readline() == b"up\n"
        assert not proxies(child.process.pid)
        child.process.stdin.write(b"\n")
        child.process.stdin.flush()
        assert b"allowed.test" in child.process.stdout.readline()
        assert len(proxies(child.process.pid)) == 1
        assert child.wait(input=b"\n").code == 0


def test_proxy_ends_with_the_run(net, box):
    """No process stays, however the run ends."""
    def is_gone(pid):
        try:
            return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            return True

    for end in ("exit", "kill"):
        with box.start("sh", "-c", "getent hosts allowed.test; read line") as child:
            assert b"allowed.test" in child.process.stdout.readline()
            found = proxies(child.process.pid)
            assert len(found) == 1
            if end == "kill":
                child.process.kill()
            else:
                child.wait(input=b"\n")
            assert wait_until(lambda: is_gone(found[0]))
