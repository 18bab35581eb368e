# SPDX-License-Identifier: Apache-2.0
"""I1: unix sockets of the host, reached by deceiving whoever judges connect(2)."""
import contextlib
import json
import os
import shutil
import socket
import tempfile
import threading
import time
from pathlib import Path

import pytest

from ambit_test import SLOW


@contextlib.contextmanager
def listener(path):
    """A socket of the host; yields the list of what was said to it."""
    heard, stop = [], threading.Event()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
        path.chmod(0o777)
        s.listen(4096)
        s.settimeout(0.05)

        def serve():
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    conn, _ = s.accept()
                    conn.settimeout(1)
                    heard.append(conn.recv(16))
                    conn.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield heard
        finally:
            stop.set()
            thread.join()
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("what", ["address", "descriptor"])
def test_dial_race(box, probe, what):
    """The address (or the descriptor) is that of an internet socket when it is looked at, and
    that of a socket of the host when it is used."""
    path = box.home / "agent.sock"
    with listener(path) as heard:
        r = box.run(probe, "dial", path, what, "700").ok()
        tries, _, refused, _ = r.out.replace(",", "").split()
        assert int(tries) > 100 / SLOW and int(refused) > 0, r
        assert heard == [], f"{len(heard)} of {tries} got through"
        for _ in range(10):  # a race: on a busy machine one go may lose every time
            box.host(probe, "dial", path, what, "300").ok()
            if b"EVIL" in heard:
                return
    pytest.fail("the control run failed")


TALK = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.send(b'EVIL')"


def test_planted_link_to_a_socket(box):
    """A rule names a socket in the project; an earlier run put a link to another one in its place."""
    path = box.home / "agent.sock"
    talk = ["/usr/bin/python3", "-c", TALK]
    with listener(path) as heard:
        box.run("ln", "-s", "../agent.sock", "app.sock").ok()
        for to in (path, "app.sock"):
            box.run(*talk, to, options=["--allow-unix", "app.sock"])
        time.sleep(0.2)
        assert heard == []
        box.run(*talk, path, options=["--allow-unix", path]).ok()
        deadline = time.monotonic() + 10
        while not heard and time.monotonic() < deadline:
            time.sleep(0.05)
        assert heard == [b"EVIL"], "the control run failed"


# Everything happens in a directory with run/ok.sock, which may be connected to, and another socket
# of the host's: where that is, what is named, how it is brought there, where it is then.
MOVES = {
    "rename": ("host.sock", "run/ok.sock", "os.rename('host.sock', 'run/ok.sock')", "run/ok.sock"),
    "rename, into a directory": ("host.sock", "run", "os.rename('host.sock', 'run/x')", "run/x"),
    "rename, absent": ("host.sock", "run/new", "os.rename('host.sock', 'run/new')", "run/new"),
    "rename, by another way": ("host.sock", "run", "os.symlink('run', 'l'); os.chdir('l'); "
                               "os.rename('../host.sock', 'x'); os.chdir('..')", "run/x"),
    "rename, /proc": ("host.sock", "run", "os.rename('host.sock', '/proc/self/cwd/run/x')", "run/x"),
    "link": ("host.sock", "run/ok.sock", "os.unlink('run/ok.sock'); os.link('host.sock', 'run/ok.sock')",
             "run/ok.sock"),
    "link, into a directory": ("host.sock", "run", "os.link('host.sock', 'run/x')", "run/x"),
    "link, open": ("host.sock", "run", "linkat(os.open('host.sock', os.O_PATH), 'run/x')", "run/x"),
    "directory": ("spare/ok.sock", "run/ok.sock", "os.rename('run', 'old'); os.rename('spare', 'run')",
                  "run/ok.sock"),
    "directory, named": ("spare/x", "run", "os.rename('run', 'old'); os.rename('spare', 'run')", "run/x"),
    "directory, into it": ("spare/deep/x", "run", "os.rename('spare', 'run/spare')", "run/spare/deep/x"),
    "directory, above": ("spare/run/x", "top/run", "os.rename('top', 'old'); os.rename('spare', 'top')",
                         "top/run/x"),
    "directory, closed": ("spare/deep/x", "run", "os.chmod('spare/deep', 0o300); "
                          "os.rename('spare', 'run/spare'); os.chmod('run/spare/deep', 0o700)",
                          "run/spare/deep/x"),
    "directory, in steps": ("host.sock", "run", "os.mkdir('new'); os.rename('host.sock', 'new/x'); "
                            "os.rename('new', 'run/new')", "run/new/x"),
    "exchange": ("host.sock", "run/ok.sock", "exchange('host.sock', 'run/ok.sock')", "run/ok.sock"),
    "exchange, turned": ("host.sock", "run/ok.sock", "exchange('run/ok.sock', 'host.sock')", "run/ok.sock"),
    "exchange, directories": ("spare/x", "run", "exchange('spare', 'run')", "run/x"),
    "exchange, directories, turned": ("spare/ok.sock", "run/ok.sock", "exchange('run', 'spare')",
                                      "run/ok.sock"),
    "bulk": ("run/host.sock", "run/ok.sock", "os.rename('run/host.sock', 'run/ok.sock')", "run/ok.sock"),
    "bulk, below": ("host.sock", "run", "os.rename('host.sock', 'run/bulk/x')", "run/bulk/x"),
    "bulk, from it": ("spare/x", "run", "os.link('spare/x', 'run/x')", "run/x"),
    "anchors": ("run/host.sock", "run/ok.sock", "os.rename('run/host.sock', 'run/ok.sock')", "run/ok.sock"),
    "shared": ("run/host.sock", "run/ok.sock", "os.link('run/host.sock', 'run/new'); "
               "os.rename('run/new', 'run/ok.sock')", "run/ok.sock"),
}
MOVING = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def check(r):
    if r < 0:
        raise OSError(ctypes.get_errno(), "refused")
def exchange(a, b):
    check(libc.renameat2(-100, a.encode(), -100, b.encode(), 2))
def linkat(fd, to):
    check(libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, to.encode(), 0x400))
try:
    exec(sys.argv[1])
finally:
    os.chdir(sys.argv[3])
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[2])
    s.send(b"EVIL")
"""
MORE = {"bulk": ["--set", "filesystem.bulk=run"], "bulk, below": ["--set", "filesystem.bulk=run/bulk"],
        "bulk, from it": ["--set", "filesystem.bulk=spare"],
        "anchors": ["--set", "filesystem.protect=anchors"], "shared": ["--tmp", "shared"]}


@contextlib.contextmanager
def services(box, where, at):
    """The two sockets in a new directory: yields it, and what was said to the one at `at`."""
    for d in (where, where / "run/bulk", where / "spare/deep", where / "spare/run", where / "top/run"):
        d.mkdir(parents=True, exist_ok=True)
    with listener(where / "run/ok.sock"), listener(where / at) as heard:
        for d, _, files in os.walk(where):
            for f in [d, *(os.path.join(d, f) for f in files)]:
                os.chown(f, box.who.uid, box.who.gid)
        yield heard


@pytest.mark.parametrize("how", MOVES)
def test_moved_socket(box, how):
    """A socket that may be connected to is a place: nothing of the host's is brought there."""
    at, named, code, to = MOVES[how]
    base = Path(tempfile.mkdtemp(dir="/tmp")) if how == "shared" else box.ws
    os.chown(base, box.who.uid, box.who.gid)
    talk = ["/usr/bin/python3", "-c", MOVING, code, to]
    try:
        with services(box, base / "in", at) as heard:
            report = box.home / "report.json"
            r = box.run(*talk, base / "in", cwd=base / "in",
                        options=["--allow-unix", base / "in" / named, *MORE.get(how, []), "--report", report])
            time.sleep(0.1)
            assert heard == [], r
            rules = [d["rule"] for d in json.loads(report.read_text())["violations"]]
            # what could not be looked at is to be copied: no denial
            assert "network.allowUnixSockets" in rules or "Invalid cross-device link" in r.err, r
        with services(box, base / "out", at) as heard:
            box.host(*talk, base / "out", cwd=base / "out").ok()
            deadline = time.monotonic() + 10
            while not heard and time.monotonic() < deadline:
                time.sleep(0.05)
            assert heard == [b"EVIL"], "the control run failed"
    finally:
        if how == "shared":
            shutil.rmtree(base)


OWN = """
import os, socket, threading
def serve(path):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen(8)
    return s
def talk(path):
    socket.socket(socket.AF_UNIX).connect(path)
a = serve("run/.new")
os.rename("run/.new", "run/mine")  # as servers do
talk("run/mine")
b = serve("s")
os.link("s", "run/s")
talk("run/s")
os.mkdir("n"); os.mkdir("n/deep"); open("n/f", "w").close(); c = serve("n/deep/s")
os.rename("n", "run/n")
talk("run/n/deep/s")
talk("run/ok.sock")
os.rename("run/ok.sock", "run/moved")
talk("run/moved")
os.rename("host.sock", "spare/host.sock")  # not to where it may be connected to
os.rename("spare", "elsewhere")
os.rename("top", "run/top")
open("f", "w").close(); os.rename("f", "run/f"); os.symlink("f", "run/l"); os.rename("run/l", "run/k")
"""


def test_own_sockets_are_moved(box):
    """The other side: a server inside makes its socket by another name, directories are moved."""
    with services(box, box.ws / "in", "host.sock"):
        box.run("/usr/bin/python3", "-c", OWN, cwd=box.ws / "in",
                options=["--allow-unix", box.ws / "in/run"]).ok()


def test_socket_in_shared_memory(box):
    """Without a /dev of its own, the sandbox sees the host's."""
    path = Path("/dev/shm") / f"ambit-test-{os.getpid()}-{box.who.uid}.sock"
    talk = ["/usr/bin/python3", "-c", TALK, path]
    with listener(path) as heard:
        box.run(*talk)
        time.sleep(0.1)
        assert heard == []
        box.host(*talk).ok()
        deadline = time.monotonic() + 10
        while not heard and time.monotonic() < deadline:
            time.sleep(0.05)
        assert heard == [b"EVIL"], "the control run failed"
