# SPDX-License-Identifier: Apache-2.0
"""The backend without namespaces on older kernels: what each Landlock ABI loses is said, and what
is not lost holds. old-kernel is ambit with a Landlock of fewer rights (tests/broker)."""
import json
import os
import signal
import subprocess

import pytest

import ambit_test

LOST = {  # the ABI from which on it is held
    "files": 1, "names": 1, "attributes": 1, "signal-scope": 6,
}


@pytest.fixture
def old(box, monkeypatch):
    program = ambit_test.AMBIT.parents[2] / "tests/broker/old-kernel"
    assert program.exists(), f"{program} is not there: tools/build --tests"
    monkeypatch.setattr(ambit_test, "AMBIT", program)

    def make(abi):
        if abi > ambit_test.landlock_abi():
            ambit_test.skip_impossible(f"this kernel has no Landlock ABI {abi}")
        box.env["AMBIT_TEST_ABI"] = str(abi)
        box.options = ["--backend", "landlock"]
        return box

    return make


@pytest.mark.parametrize("abi", range(8))
def test_check_says_what_is_lost(old, abi):
    told = json.loads(old(abi).ambit("check", "--json").out)
    other = {b["backend"]: b for b in told["others"]}["landlock"]
    assert other["works"] == (abi > 0)
    if abi == 0:
        assert "no Landlock" in other["missing"] or "Landlock ABI 1" in other["missing"]
        return
    held = {p["name"]: p["enforced"] for p in other["properties"]}
    for name, since in LOST.items():
        assert held[name] == (abi >= since), (name, abi)


@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5, 6, 7])
def test_enforce_or_say(old, abi):
    box = old(abi)
    r = box.run("true")
    if abi < 6:
        assert r.code == 125 and "signal-scope" in r.err and "--fallback warn" in r.err, r
        r = box.run("true", options=["--fallback", "warn"])
        assert r.code == 0 and r.err.count("not enforced") == 1, r
    else:
        assert r.code == 0 and r.err == "", r


@pytest.mark.parametrize("abi", [1, 2, 3, 5])
def test_what_holds(old, abi):
    """Files are held by every version, truncation by the broker before ABI 3."""
    box = old(abi)
    box.write("outside", "GOOD", 0o600)
    box.write(".ssh/id", "SECRET")
    script = """
cat ~/.ssh/id; (echo x > ~/outside); (: > ~/outside); truncate -s 0 ~/outside; chmod 777 ~/outside
touch ~/made; ln ~/.ssh/id l && cat l; mv ~/outside moved; rm ~/outside
/usr/bin/python3 -c 'import os; os.open(os.environ["HOME"] + "/outside", os.O_RDONLY | os.O_TRUNC)'
(echo evil > .envrc); mkdir -p a/b; echo 1 > a/f; mv a/f a/b/f; echo 2 > $TMPDIR/t; mv $TMPDIR/t $TMPDIR/u
: > a/b/f; truncate -s 5 a/b/f; truncate -s 7 $TMPDIR/u; stat -c %s a/b/f $TMPDIR/u; git init -q r && echo git
"""
    r = box.sh(script, options=["--fallback", "warn"])
    assert r.out.split() == ["5", "7", "git"], r
    st = (box.home / "outside").stat()
    assert (box.home / "outside").read_text() == "GOOD" and st.st_mode & 0o777 == 0o600, r
    assert not (box.home / "made").exists() and not (box.ws / ".envrc").exists()


def test_signals_are_scoped(old):
    """The control shows what is lost before ABI 6."""
    box = old(7)
    for abi, dies in ((7, False), (5, True)):
        victim = box.who.popen(["sleep", "60"], stdin=subprocess.DEVNULL)
        box = old(abi)
        box.sh(f"kill {victim.pid}", options=["--fallback", "warn"])
        try:
            victim.wait(1)
        except subprocess.TimeoutExpired:
            pass
        assert (victim.poll() is not None) == dies, abi
        if not dies:
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()


@pytest.mark.parametrize("abi", [1, 3, 4, 6])
def test_network(old, abi):
    """Connections are held by the filter and the broker, whatever Landlock knows of TCP."""
    box = old(abi)
    server = ("import socket\na, b = socket.create_server(('127.0.0.1', 0)), socket.create_server(('127.0.0.1', 0))\n"
              "print(a.getsockname()[1], b.getsockname()[1], flush=True)\n"
              "while True:\n c, _ = a.accept(); c.sendall(b'hello'); c.close()\n")
    with box.start("/usr/bin/python3", "-c", server, sandbox=False) as host:
        allowed, other = host.process.stdout.readline().split()
        script = "import socket, sys; print(socket.create_connection(('127.0.0.1', int(sys.argv[1]))).recv(9))"
        options = ["--fallback", "warn", "--allow-host-port", allowed.decode()]
        assert box.run("/usr/bin/python3", "-c", script, allowed.decode(), options=options).ok().out == "b'hello'\n"
        r = box.run("/usr/bin/python3", "-c", script, other.decode(), options=options)
        assert r.code == 1 and "Connection refused" in r.err, r
        assert f"denied connect to 127.0.0.1:{other.decode()}" in r.err, r
