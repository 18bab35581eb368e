# SPDX-License-Identifier: Apache-2.0
"""What the command was given open, to read: opening it again by /proc does not make it writable where
its name means something else in the sandbox, or nothing."""
import os
import shlex
import shutil
import tempfile
from pathlib import Path

import pytest

REOPEN = """
import os
for how in (os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_TRUNC):
    for path in ("/proc/self/fd/0", "/dev/stdin", f"/proc/{os.getpid()}/fd/0", "/dev/fd/0"):
        try:
            os.write(os.open(path, how), b"changed")
        except OSError:
            pass
"""


def reopen(box, path, *options, sandboxed=True, cwd=None):
    argv = ["/usr/bin/python3", "-c", REOPEN]
    argv = box.argv(*argv, options=options) if sandboxed else argv
    r = box.host("sh", "-c", f"exec {shlex.join(map(str, argv))} < {shlex.quote(str(path))}", cwd=cwd)
    assert r.code == 0, str(r)
    return "changed" in path.read_text()


@pytest.fixture
def in_tmp(box):
    """A project in /tmp, of which the sandbox has its own."""
    d = Path(tempfile.mkdtemp(prefix="ambit-inherited.", dir="/tmp"))
    d.chmod(0o755)
    for p in (d, d / "ws"):
        p.mkdir(exist_ok=True)
        os.chown(p, box.who.uid, box.who.gid)
    yield d
    shutil.rmtree(d)


def test_beside_the_project_in_a_private_home(box):
    f = box.write("notes.txt", "mine")
    assert not reopen(box, f, "--home", "private")
    assert not reopen(box, f)
    assert reopen(box, f, sandboxed=False)


def test_beside_the_project_in_tmp(box, in_tmp):
    f = box.write(in_tmp / "notes.txt", "mine")
    assert not reopen(box, f, cwd=in_tmp / "ws")
    assert reopen(box, f, sandboxed=False, cwd=in_tmp / "ws")


def test_hidden_in_the_project(box):
    f = box.write("ws/prod.key", "mine")
    assert not reopen(box, f, "--deny-read", "prod.key")
    assert reopen(box, f, sandboxed=False)


def test_removed_meanwhile(box, in_tmp):
    """No name is left that could be looked at."""
    f = box.write(in_tmp / "notes.txt", "mine")
    os.link(f, in_tmp / "kept")
    script = f"exec 0< {f}; rm {f}; exec {shlex.join(map(str, box.argv('/usr/bin/python3', '-c', REOPEN)))}"
    box.host("sh", "-c", script, cwd=in_tmp / "ws").ok()
    assert (in_tmp / "kept").read_text() == "mine"


def test_in_the_project_it_is_as_outside(box):
    """`> /dev/stdout`, with a file of the project for it."""
    argv = box.argv("sh", "-c", "echo one; echo two > /dev/stdout; echo three >> /proc/self/fd/1")
    box.host("sh", "-c", f"exec {shlex.join(map(str, argv))} > out").ok()
    bare = box.host("sh", "-c", "(echo one; echo two > /dev/stdout; echo three >> /proc/self/fd/1) > bare")
    assert bare.code == 0
    assert (box.ws / "out").read_text() == (box.ws / "bare").read_text()
    f = box.write("ws/own", "mine")
    assert reopen(box, f)


def test_a_file_without_a_name(box):
    """One of the command's own, removed or made so."""
    script = ("exec 9<> f; rm f; echo x >> /proc/self/fd/9; cat < /proc/self/fd/9;"
              "python3 -c 'import os; n = os.open(\".\", os.O_TMPFILE | os.O_RDWR);"
              " m = os.open(f\"/proc/self/fd/{n}\", os.O_WRONLY); os.write(m, b\"y\"); print(os.pread(n, 9, 0))'")
    r = box.sh(script).ok()
    assert r.out == "x\nb'y'\n", r
