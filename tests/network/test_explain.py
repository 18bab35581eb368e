# SPDX-License-Identifier: Apache-2.0
"""What explain, plan and policy say about the network is what happens; profiles name what tools
really use."""
import json
import re
import shutil
import subprocess

import pytest

from ambit_test import skip_impossible

PYTHON = "/usr/bin/python3"


def explain(box, *words):
    r = box.ambit("explain", "--json", *words)
    assert r.code in (0, 1), str(r)
    answer = json.loads(r.out)
    assert (answer["verdict"] == "allowed") == (r.code == 0), answer
    return answer


RULES = [[], ["--allow-domain", "allowed.test"], ["--allow-domain", "allowed.test:443"],
         ["--allow-domain", "allowed.test,other.test", "--deny-domain", "allowed.test:80"],
         ["--allow-domain", "11.1.1.1:80"], ["--allow-domain", "11.0.0.0/8"],
         ["--allow-domain", "[2a0b:99::1]:80"], ["--allow-domain", "0.0.0.0/0,::/0"],
         ["--allow-domain", "127.0.0.1:5432"], ["--network", "none"]]
TARGETS = ["allowed.test:80", "allowed.test:443", "other.test:80", "11.1.1.1:80", "11.1.1.1:8080",
           "[2a0b:99::1]:80", "10.1.2.3:80", "169.254.169.254:80", "[fd00:ec2::254]:80"]


@pytest.mark.parametrize("rules", RULES, ids=" ".join)
def test_explain_connect_is_true(net, box, rules):
    """Each answer against a connection that is tried."""
    box.options = list(rules)
    script = """
import socket, sys
for target in sys.argv[1:]:
    host, _, port = target.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), 5) as s:
            s.settimeout(0.3)
            s.sendall(b"GET / HTTP/1.0\\r\\nHost: " + host.encode() + b"\\r\\n\\r\\n")
            try:
                print("allowed" if b" 403 " not in s.recv(100) else "denied")
            except TimeoutError:
                print("allowed")
            except ConnectionResetError:  # a TLS port wants a hello
                print("allowed" if port == "443" else "denied")
    except OSError:
        print("denied")
"""
    said = [explain(box, *rules, "connect", t)["verdict"] for t in TARGETS]
    done = box.run(PYTHON, "-c", script, *TARGETS).ok().out.split()
    assert dict(zip(TARGETS, said)) == dict(zip(TARGETS, done))


def test_explain_loopback(net, box):
    """The host's own services: by allowHostPorts, and not otherwise."""
    fetch = "curl -sS -m 2 --noproxy '*' http://{}/"
    box.options = ["--network", "none"]
    for target in ("127.0.0.1:5432", "localhost:5432", "[::1]:5432"):
        a = explain(box, "connect", target)
        assert a["verdict"] == "denied" and a["rule"] == "network.allowHostPorts", a
        assert a["hint"] == "--allow-host-port 5432", a
        assert "secret" not in box.sh(fetch.format(target)).out
        options = a["hint"].split()
        a = explain(box, *options, "connect", target)
        assert a["verdict"] == "allowed" and a["entry"] == "5432", a
        assert a["source"] == "--allow-host-port", a
        assert box.sh(fetch.format(target), options=options).out == "secret\n"
    assert explain(box, "--network", "host", "connect", "127.0.0.1:5432")["verdict"] == "allowed"


def test_explain_hints_work(net, box):
    """A hint that is followed changes the answer, whatever the target."""
    for target in ("other.test:8080", "11.9.9.9:80", "[2a0b:99::9]:443", "10.1.2.3:22",
                   "169.254.169.254:80", "127.0.0.1:81", "localhost:82"):
        for rules in ([], ["--allow-domain", "allowed.test"], ["--allow-domain", "0.0.0.0/0"],
                      ["--network", "none"]):
            a = explain(box, *rules, "connect", target)
            if a["verdict"] == "denied":
                hint = subprocess.run(["sh", "-c", f"printf '%s\\n' {a['hint']}"], text=True,
                                      capture_output=True).stdout.splitlines()
                again = explain(box, *rules, *hint, "connect", target)
                assert again["verdict"] == "allowed", (rules, a, again)


def test_explain_unix_is_true(net, box):
    """A file, a directory of sockets, an abstract name."""
    import socket
    directory = box.home / "socks"
    directory.mkdir()
    directory.chmod(0o755)
    connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(" \
              "sys.argv[1].replace('@', chr(0), 1)); print('in')"
    abstract = f"@ambit-explain-{box.who.name}"
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as two:
        one.bind(str(directory / "one"))
        (directory / "one").chmod(0o777)
        two.bind("\0" + abstract[1:])
        one.listen()
        two.listen()
        path = str(directory / "one")
        for options in ([], ["--allow-unix", path], ["--allow-unix", str(directory)],
                        ["--allow-unix", abstract], ["--set", "network.allowAllUnixSockets=true"],
                        ["--network", "host"], ["--network", "host", "--allow-unix", abstract],
                        ["--network", "host", "--set", "network.allowAllUnixSockets=true"]):
            for target in (path, abstract):
                said = explain(box, *options, "unix", target)
                box.options = []
                r = box.run(PYTHON, "-c", connect, target, options=options)
                assert (said["verdict"] == "allowed") == (r.out == "in\n"), (options, said, str(r))
        r = box.run("true", options=["--allow-unix", abstract])
        assert r.code == 0 and "only with --network host" in r.err, str(r)


def test_plan_and_policy_show_the_network(box):
    options = ["--publish", "3000", "--publish", "8080:80", "--allow-host-port", "5432",
               "--allow-domain", "a.test", "--deny-domain", "b.a.test", "--allow-unix", "/run/x.sock",
               "--set", "network.requireSNI=false", "--set", "network.allowPrivateAddresses=true"]
    plan = box.ambit("plan", *options, "--", "true").ok().out
    for line in ("network     allowed domains only, through ambit-proxy",
                 "published   127.0.0.1:8080 and [::1]:8080 of the host: port 80 inside",
                 "host port   127.0.0.1:5432 inside: the same of the host",
                 "unix        /run/x.sock"):
        assert line + "\n" in plan, plan
    found = json.loads(box.ambit("plan", "--json", *options, "--", "true").ok().out)
    assert found["egress"] and found["hostPorts"] == [5432] and found["listening"], found
    assert found["unixSockets"] == ["/run/x.sock"] and not found["allUnixSockets"], found
    policy = json.loads(box.ambit("policy", "--json", *options).ok().out)["network"]
    assert policy["mode"] == "allowlist" and policy["publish"] == [3000, "8080:80"], policy
    assert policy["allowHostPorts"] == [5432] and policy["deniedDomains"] == ["b.a.test"], policy
    assert policy["allowLocalBinding"] is True and policy["requireSNI"] is False, policy
    assert policy["allowPrivateAddresses"] is True, policy
    plan = box.ambit("plan", "--set", "network.allowLocalBinding=false", "--", "true").ok().out
    assert "listening   refused, but for unix sockets\n" in plan, plan


def test_require_sni(net, box):
    """The switch: a hello without a name passes when it is off, one for another host never."""
    def s_client(*sni, options=()):
        return box.run("openssl", "s_client", "-connect", "allowed.test:443", *sni,
                       options=options)

    off = ["--set", "network.requireSNI=false"]
    r = s_client("-noservername")
    assert "BEGIN CERTIFICATE" not in r.out and "denied connect" in r.err, str(r)
    assert "BEGIN CERTIFICATE" in s_client("-noservername", options=off).out
    r = s_client("-servername", "evil.test", options=off)
    assert "BEGIN CERTIFICATE" not in r.out and "denied connect" in r.err, str(r)


# --- profiles ----------------------------------------------------------------------------

PROFILES = ["npm", "pip", "cargo", "go", "git", "claude"]


@pytest.mark.parametrize("profile", PROFILES)
def test_profile_names_domains(box, profile):
    """Whole names, each allowed because of the profile, and nothing besides."""
    found = json.loads(box.ambit("policy", "--json", "-p", profile).ok().out)["network"]
    assert found["mode"] == "allowlist" and found["allowedDomains"], found
    for domain in found["allowedDomains"]:
        assert re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}(:\d+)?", domain), domain
        a = explain(box, "-p", profile, "connect", domain)
        assert a["verdict"] == "allowed" and f"profile {profile}" in a["source"], a
        host = domain.split(":")[0]
        for other in (f"x.{host}", f"x{host}", f"{host}.evil.test"):
            if other not in found["allowedDomains"]:
                assert explain(box, "-p", profile, "connect", other)["verdict"] == "denied"
    assert not found["allowPrivateAddresses"] and not found["allowUnixSockets"], found


def hosts_of(text):
    return set(re.findall(r"https://([a-z0-9.-]+)", text))


@pytest.mark.parametrize("profile, argv", [
    ("npm", ["npm", "config", "get", "registry"]),
    ("pip", ["/usr/bin/python3", "-c",  # or the one that python3-venv brings
             "import glob, sys; sys.path += glob.glob('/usr/share/python-wheels/pip-*.whl'); "
             "from pip._internal.models.index import PyPI as p; "
             "print(p.simple_url, 'https://' + p.file_storage_domain)"]),
    ("go", ["go", "env", "GOPROXY"]),
    ("go", ["sh", "-c", "echo https://$(go env GOSUMDB)"]),
])
def test_profile_knows_the_tool(box, tmp_path, profile, argv):
    """What the tool itself has built in, without anybody's settings."""
    if not shutil.which(argv[0]) or (argv[0] == "sh" and not shutil.which("go")):
        skip_impossible(f"{argv[0]} is not installed")
    r = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path,
                       env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)})
    if r.returncode and "No module named" in r.stderr:
        skip_impossible("pip is not installed")
    hosts = hosts_of(r.stdout)
    assert r.returncode == 0 and hosts, r
    for host in hosts:
        assert explain(box, "-p", profile, "connect", host)["verdict"] == "allowed", host
