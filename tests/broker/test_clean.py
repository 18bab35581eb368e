# SPDX-License-Identifier: Apache-2.0
"""Whenever ambit is killed: nobody inside goes on, nothing of ours lies in the tree."""
import contextlib
import os
import random
import re
import shutil
import signal
import time
from pathlib import Path

import pytest
from ambit_test import processes_with, wait_until

KILLS = 100
CHECK_EVERY = 20
SAMPLES = 400

WORK = r"""
while :; do
  git init -q new && git -C new config user.name x && git -C new config user.email x@x
  tar -C new -xf src.tar; tar -C repo -xf src.tar
  git -C repo config user.note $$; date +%N > repo/f1
  git -C repo add . && git -C repo commit -q -m x
  git -C repo config core.pager evil
  git -C repo worktree add -q -f --detach ../wt; git -C repo worktree remove -f ../wt
  git -C repo worktree prune; rm -rf new wt
done >/dev/null 2>&1
"""
# beside it, without a pause: what must never come of it
HAMMER = r"""
(while :; do for f in .envrc repo/.git/hooks/pre-commit repo/.git/config; do
  echo evil >> $f; : > $f; done; done) >/dev/null 2>&1 &
"""
# There and gone so soon that the control may miss them: git init tries whether it can make links, and
# objects are written beside their places (as are files of .git, see is_gits_own).
PASSING = re.compile(r".*/\.git(/t\w{6}|/objects/00/tmp_obj_\w{6})")


def prepare(box):
    for i in range(20):
        box.write(f"ws/files/f{i}", "text" * i)
    box.host("tar", "-C", "files", "-cf", "src.tar", ".").ok()
    box.write("ws/.envrc", "original\n")
    box.host("git", "init", "-q", "repo").ok()
    for key, value in (("user.name", "x"), ("user.email", "x@x"), ("maintenance.auto", "false")):
        box.host("git", "-C", "repo", "config", key, value).ok()
    box.write("ws/repo/.git/hooks/pre-commit", "original\n")
    box.host("git", "-C", "repo", "commit", "-q", "--allow-empty", "-m", "first").ok()


def names_in(top):
    """Everything below; one name for all objects of git's, and one for all worktrees."""
    found = set()
    for d, dirs, files in os.walk(top):
        for name in dirs + files:
            path = os.path.relpath(os.path.join(d, name), top)
            path = re.sub(r"/objects/[0-9a-f]{2}(/[0-9a-f]{38}$|/|$)",
                          lambda m: "/objects/00" + ("/object" if len(m[1]) > 1 else m[1]), path)
            found.add(re.sub(r"/worktrees/wt\d+", "/worktrees/wt", path))
    return found


def native_names(box):
    """All that stands there when the script is stopped: that is what it leaves when it is killed then."""
    moments = random.Random(8)
    found = set()
    with box.start("/bin/sh", "-c", WORK, sandbox=False) as child:
        for _ in range(SAMPLES):
            time.sleep(moments.uniform(0, 0.01))
            os.killpg(child.process.pid, signal.SIGSTOP)
            found |= names_in(box.home)
            os.killpg(child.process.pid, signal.SIGCONT)
    return found


def spoiled(box):
    """Of what must not change."""
    for name in (".envrc", "repo/.git/hooks/pre-commit"):
        if (box.ws / name).read_text() != "original\n":
            yield name
    if "evil" in (box.ws / "repo/.git/config").read_text() or not (box.ws / "repo/.git/config").stat().st_size:
        yield "repo/.git/config"


def is_gits_own(name, native):
    if name.endswith(".lock"):
        return "/.git/" in name and name[:-len(".lock")] in native
    return name in native or PASSING.fullmatch(name) is not None


def broker_of(pid):
    for p in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if p.name.isdigit() and (p / "comm").read_text() == "ambit-broker\n" and \
                    int((p / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                return int(p.name)
    return None


def kill_all(child, moment):
    time.sleep(moment)
    child.process.send_signal(signal.SIGKILL)
    child.process.wait()


def kill_broker(child, moment):
    """The command gets errors from then on, no freedom, and is ended."""
    assert wait_until(lambda: broker_of(child.process.pid)), "there was no broker"
    time.sleep(moment)
    os.kill(broker_of(child.process.pid), signal.SIGKILL)
    r = child.wait()
    assert r.code == 125 and "the broker ended" in r.err, str(r)


def check_repository(box):
    """As somebody finds it who comes back after a crash, and has removed stale locks and a worktree that
    was half made (git leaves it with a HEAD that points at nothing)."""
    shutil.rmtree(box.ws / "repo/.git/worktrees", ignore_errors=True)
    shutil.rmtree(box.ws / "wt", ignore_errors=True)
    config = box.host("git", "-C", "repo", "config", "-l").ok().out
    assert "user.name=x\n" in config and "core.pager" not in config, config
    box.host("git", "-C", "repo", "fsck", "--strict").ok()
    box.host("git", "-C", "repo", "status", "--short").ok()


@pytest.mark.parametrize("kill", [kill_all, kill_broker])
def test_killed_at_any_moment(boxes, kill):
    """One repository through all of it: what a kill leaves in it is what git itself leaves."""
    control, box = boxes("user"), boxes("user")
    for b in (control, box):
        prepare(b)
    native = native_names(control)
    with control.start("/bin/sh", "-c", HAMMER + "wait", sandbox=False):
        assert wait_until(lambda: any(spoiled(control))), "the control run failed"
    mark = f"AMBIT_TEST_MARK=kill{os.getpid()}x{id(box)}"
    name, value = mark.split("=")
    moments = random.Random(7)
    for i in range(KILLS if kill == kill_all else KILLS // 4):
        with box.start("/bin/sh", "-c", HAMMER + WORK, options=["-q", "--env", name], env={name: value}) as child:
            kill(child, moments.uniform(0.01, 0.25))
            assert wait_until(lambda: not processes_with(mark)), processes_with(mark)
        left = names_in(box.home)
        assert [n for n in sorted(left) if not is_gits_own(n, native)] == []
        assert list(spoiled(box)) == []
        for lock in box.ws.rglob("*.lock"):
            lock.unlink()
        if (i + 1) % CHECK_EVERY == 0:
            check_repository(box)
    count = int(box.host("git", "-C", "repo", "rev-list", "--count", "HEAD").ok().out)
    assert count > 1, "it did nothing"
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
