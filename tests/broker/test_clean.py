# SPDX-License-Identifier: Apache-2.0
"""Whenever ambit is killed: nobody inside goes on, nothing of ours lies in the tree."""
import os
import random
import signal
import subprocess
import time

import pytest
from ambit_test import processes_with, wait_until

KILLS = 100

WORK = r"""
n=0
while :; do
  n=$((n + 1)); d=w$n
  git init -q $d && git -C $d config user.name x && git -C $d config user.email x@x
  tar -C $d -xf src.tar && git -C $d add . && git -C $d commit -q -m x
  git -C $d config core.pager evil 2>/dev/null
  git -C $d worktree add -q ../wt$n; rm -rf $d wt$n
done
"""


def test_killed_at_any_moment(boxes):
    box = boxes("user")
    for i in range(20):
        box.write(f"ws/files/f{i}", "text" * i)
    box.host("tar", "-C", "files", "-cf", "src.tar", ".").ok()
    mark = f"AMBIT_TEST_MARK=kill{os.getpid()}x{id(box)}"
    name, value = mark.split("=")
    moments = random.Random(7)
    left = []
    for _ in range(KILLS):
        with box.start("/bin/sh", "-c", WORK, options=["-q", "--env", name], env={name: value},
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            time.sleep(moments.uniform(0.01, 0.12))
            child.process.send_signal(signal.SIGKILL)
            child.process.wait()
            assert wait_until(lambda: not processes_with(mark)), processes_with(mark)
        left += [os.path.join(d, f) for d, _, files in os.walk(box.ws) for f in files
                 if "ambit" in f]
    assert left == []
    assert (box.ws / "files/f3").read_text() == "text" * 3


def save(path, text):
    """As editors do: write another file, put it in place."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    os.chown(new, path.stat().st_uid, path.stat().st_gid)
    new.rename(path)


def test_saves_during_a_run(boxes):
    """A protected file that the host replaces during the run is seen inside, and still guarded."""
    box = boxes("user")
    box.host("git", "init", "-q", ".").ok()
    for f in ("sub/.envrc", "notes.txt", ".bashrc"):
        box.write(f"ws/{f}", "old\n")
    script = r"""
    echo ready; read go
    cat notes.txt sub/.envrc
    for f in sub/.envrc .bashrc .git/config .git/hooks/pre-commit; do
      echo evil >> $f; echo evil > x; mv -f x $f; ln -f x $f; rm -f x
    done 2>/dev/null
    echo inside >> notes.txt
    """
    with box.start("/bin/sh", "-c", script, options=["-q"]) as child:
        assert child.process.stdout.readline() == b"ready\n"
        save(box.ws / "notes.txt", "saved\n")
        save(box.ws / "sub/.envrc", "saved\n")
        save(box.ws / ".bashrc", "saved\n")
        box.host("git", "config", "user.name", "me").ok()
        box.write("ws/.git/hooks/pre-commit", "#!/bin/sh\n", 0o755)
        r = child.wait(input=b"go\n")
    assert r.out == "saved\nsaved\n"
    assert (box.ws / "notes.txt").read_text() == "saved\ninside\n"
    assert (box.ws / "sub/.envrc").read_text() == "saved\n"
    assert (box.ws / ".bashrc").read_text() == "saved\n"
    assert (box.ws / ".git/hooks/pre-commit").read_text() == "#!/bin/sh\n"
    assert "evil" not in (box.ws / ".git/config").read_text()


def test_lock_of_the_brokers_cannot_be_held(boxes):
    """Sandboxes of a user share a lock; one of them must not make the others wait."""
    box = boxes("user")
    r = box.sh("for f in $XDG_STATE_HOME/ambit/lock /run/user/*/ambit.lock; do "
               "[ -e $f ] && exec 9<$f && flock -n 9 && echo held $f; done 2>/dev/null; true",
               options=["-q"])
    assert "held" not in r.out, r.out
