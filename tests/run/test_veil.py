# SPDX-License-Identifier: Apache-2.0
"""What a rule hides stays hidden while the command runs, whatever is put there outside.

What hides a file is a mount on it, which the kernel drops when another file is renamed to its name.
The command looks again and again, until it can read no more or has read often enough to show that
nobody hides it. Judged by what it read at the end.
"""
import contextlib
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from ambit_test import processes_with, skip_impossible, wait_until

SECRET = "canary-4711"

LOOK = f"""
: >started
while [ ! -e go ]; do sleep 0.02; done
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    grep -rqs {SECRET} "$@" || break
    sleep 0.2
done
grep -rhs {SECRET} "$@" && echo read
echo end
"""


def write(path, text=f"{SECRET}\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def save(path):
    """As editors and agents do."""
    other = path.with_name(path.name + ".tmp")
    write(other)
    other.rename(path)


def renew(path):
    path.unlink()
    write(path)


def swap_directory(path):
    """`path` is a file in a hidden directory, which is moved away."""
    old = path.parent.with_name("old")
    path.parent.rename(old)
    new = path.parent.with_name("new")
    write(new / path.name)
    new.rename(path.parent)


def refill_directory(path):
    path.unlink()
    path.parent.rmdir()
    write(path)


def link(path):
    """To a place that no rule names."""
    elsewhere = path.with_name("elsewhere")
    write(elsewhere)
    path.symlink_to(elsewhere)


def replace_link(path):
    """The link gives way to what it stood for."""
    path.unlink()
    save(path)


def replace_directory_link(path):
    path.parent.unlink()
    write(path)


def retarget(path):
    write(path.with_name("other"))
    path.unlink()
    path.symlink_to("other")


def fill_target(path):
    """A dangling link, whose target is made."""
    write(Path(os.path.realpath(path)))


def replace_top_link(path):
    path.parent.parent.unlink()
    write(path)


def swap_into_place(path):
    """The directory, by one that has the file already."""
    new = path.parent.with_name("new")
    write(new / path.name)
    path.parent.rename(path.parent.with_name("before"))
    new.rename(path.parent)


def swap_ancestor(path):
    top = path.parent.parent
    top.rename(top.with_name("before"))
    write(path)


def twice(path):
    save(path)
    time.sleep(0.2)
    save(path)


# name: what is hidden, what is read, whether it is there before, what happens outside
CASES = {
    "saved": ("secret", "secret", True, save),
    "saved-twice": ("secret", "secret", True, twice),
    "renewed": ("secret", "secret", True, renew),
    "made": ("secret", "secret", False, write),
    "made-deep": ("a/b/c", "a/b/c/secret", False, write),
    "linked": ("secret", "secret", False, link),
    "directory-moved": ("keys", "keys/secret", True, swap_directory),
    "directory-renewed": ("keys", "keys/secret", True, refill_directory),
    "ancestor-moved": ("a/b/secret", "a/b/secret", True, swap_ancestor),
    "by-pattern": ("*.pem", "new.pem", False, save),
    "pattern-directory-made": ("keys/*.pem", "keys/new.pem", False, write),
    "pattern-directory-swapped": ("keys/*.pem", "keys/new.pem", "keys/other", swap_into_place),
    "pattern-linked": ("*.pem", "new.pem", False, link),
    "pattern-retargeted": ("*.pem", "new.pem", {"new.pem": "dot/a"}, retarget),
    "pattern-directory-unlinked": ("keys/*.pem", "keys/new.pem", {"keys": "dot/keys"},
                                   replace_directory_link),
    "link-replaced": ("secret", "secret", {"secret": "dot/secret"}, replace_link),
    "link-retargeted": ("secret", "secret", {"secret": "dot/secret"}, retarget),
    "link-dangling": ("secret", "secret", {"secret": "dot/none"}, fill_target),
    "link-of-links": ("secret", "secret", {"secret": "dot/one", "dot/one": "dot/two"}, fill_target),
    "directory-unlinked": ("keys", "keys/secret", {"keys": "dot/keys"}, replace_directory_link),
    "ancestor-unlinked": ("conf/gh", "conf/gh/secret", {"conf": "dot/conf"}, replace_top_link),
}


def prepare(own, there, path):
    """there: True, another file that is there, or links and where they lead."""
    own.mkdir()
    (own / "dot/keys").mkdir(parents=True)
    (own / "dot/conf/gh").mkdir(parents=True)
    write(own / "dot/secret", f"{SECRET} old\n")
    for name, target in there.items() if isinstance(there, dict) else ():
        (own / name).symlink_to(os.path.relpath(own / target, (own / name).parent))
    if there is True:
        write(path, f"{SECRET} old\n")
    elif isinstance(there, str):
        write(own / there, "nothing\n")


def give(box):
    for top, directories, files in os.walk(box.home / "own"):
        for name in [*directories, *files]:
            os.chown(os.path.join(top, name), box.who.uid, box.who.gid, follow_symlinks=False)


def attempt(box, case, options, pause):
    """What the command printed, after something happened outside."""
    hidden, name, there, act = CASES[case]
    path = box.home / "own" / name
    prepare(box.home / "own", there, path)
    if case == "by-pattern":
        write(box.home / "own/other.pem")
    options = [*options, "--deny-read", box.home / "own" / hidden]
    with box.start("/bin/sh", "-c", LOOK, "sh", path, options=options) as child:
        wait_until(lambda: (box.ws / "started").exists())
        time.sleep(pause)
        act(path)
        give(box)
        (box.ws / "go").touch()
        return child.wait()


@pytest.mark.parametrize("pause", [0, 0.2], ids=["soon", "late"])
@pytest.mark.parametrize("backend", ["native", "bwrap"])
@pytest.mark.parametrize("case", CASES)
def test_stays_hidden(box, case, backend, pause):
    os.chown(box.home, box.who.uid, box.who.gid)
    report = box.home / "report.json"
    r = attempt(box, case, ["--backend", backend, "--report", report], pause)
    assert r.out == "end\n" and r.code == 0, str(r)
    told = json.loads(report.read_text())["notes"]
    assert len([n for n in told if "hidden again" in n]) == 1, told


@pytest.mark.parametrize("case", CASES)
def test_can_be_read_when_no_rule_hides_it(plain, case):
    """The control: what is looked at is what would be read."""
    hidden, name, there, act = CASES[case]
    path = plain.home / "own" / name
    prepare(plain.home / "own", there, path)
    with plain.start("/bin/sh", "-c", LOOK.replace("|| break", "&& break"), "sh", path) as child:
        wait_until(lambda: (plain.ws / "started").exists())
        act(path)
        (plain.ws / "go").touch()
        assert "read\n" in child.wait().out


def test_what_the_command_makes_itself_stays_its_own(plain):
    """A rule about a file of the project that is not there yet: npm makes it, and reads it."""
    r = plain.run("/bin/sh", "-c", "echo mine >.secret; sleep 0.3; cat .secret",
                  options=["--deny-read", ".secret"])
    assert r.out == "mine\n", str(r)


EXHAUST = """
import os, resource, sys, time
import ctypes
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
libc, n = ctypes.CDLL(None), 0
while libc.inotify_init1(0) >= 0:
    n += 1
open("started", "w").close()
while not os.path.exists("go"):
    time.sleep(0.02)
for i in range(100):
    try:
        text = open(sys.argv[1]).read()
    except OSError:
        break
    time.sleep(0.1)
else:
    print("read", text)
print("end" if n else "none")
"""


def test_the_command_cannot_switch_it_off(plain):
    """By taking all that the user may watch with, before the watch begins."""
    box = plain
    os.chown(box.home, box.who.uid, box.who.gid)
    secret = box.home / "secret"
    write(secret, "old\n")
    with box.start("/usr/bin/python3", "-c", EXHAUST, secret,
                   options=["--deny-read", secret]) as child:
        wait_until(lambda: (box.ws / "started").exists() or child.process.poll() is not None, 30)
        save(secret)
        os.chown(secret, box.who.uid, box.who.gid)
        (box.ws / "go").touch()
        r = child.wait()
    assert SECRET not in r.out, str(r)
    assert r.out == "end\n", str(r)


def test_nothing_is_left_to_watch_with(plain):
    """Another program of the user has it all: then places are looked at now and then."""
    box = plain
    os.chown(box.home, box.who.uid, box.who.gid)
    secret = box.home / "secret"
    write(secret, "old\n")
    with box.start("/usr/bin/python3", "-c", EXHAUST, "/nonexistent", sandbox=False) as other:
        wait_until(lambda: (box.ws / "started").exists(), 30)
        (box.ws / "started").unlink()
        script = "touch started; while [ ! -e go ]; do sleep 0.02; done; i=0; " \
                 "while cat ../secret && [ $i -lt 100 ]; do i=$((i+1)); sleep 0.1; done; echo $i"
        with box.start("sh", "-c", script, options=["--deny-read", secret]) as child:
            wait_until(lambda: (box.ws / "started").exists(), 30)
            time.sleep(0.3)
            save(secret)
            os.chown(secret, box.who.uid, box.who.gid)
            (box.ws / "go").touch()
            r = child.wait()
        assert other.wait().out == "end\n"
    assert int(r.out.splitlines()[-1]) < 90, str(r)  # read at most before the first look



def open_unreadable(path):
    path.chmod(0o644)


@pytest.mark.parametrize("act", [save, open_unreadable])
def test_what_could_not_be_read_at_the_start(box, act):
    """No mount hides it then: the permissions do, for others than root."""
    os.chown(box.home, box.who.uid, box.who.gid)
    secret = box.home / "own/secret"
    write(secret)
    secret.chmod(0)
    give(box)
    with box.start("/bin/sh", "-c", LOOK, "sh", secret,
                   options=["--deny-read", secret]) as child:
        wait_until(lambda: (box.ws / "started").exists())
        time.sleep(0.2)
        act(secret)
        give(box)
        (box.ws / "go").touch()
        r = child.wait()
    assert r.out == "end\n" and r.code == 0, str(r)


def test_pattern_that_matches_a_link(box):
    """What it leads to is hidden, under every name, and through linked directories."""
    own = box.home / "own"
    for name in ("dot/a.pem", "dot/x/key"):
        write(own / name)
    (own / "keys").mkdir()
    (own / "keys/a.pem").symlink_to("../dot/a.pem")
    (own / "p").mkdir()
    (own / "p/x").symlink_to("../dot/x")
    give(box)
    look = f"cat {own}/keys/a.pem {own}/dot/a.pem {own}/p/x/key {own}/dot/x/key"
    assert box.sh(look).out.count(SECRET) == 4
    r = box.sh(look, options=["--deny-read", own / "keys/*.pem", "--deny-read", own / "p/*/key"])
    assert r.out == "", str(r)


def test_second_mount_of_what_is_made_later(box):
    """The home is mounted at another place too: what is made in it is seen there as well."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    os.chown(box.home, box.who.uid, box.who.gid)
    own, other = box.home / "own", box.home / "other"
    own.mkdir()
    other.mkdir()
    subprocess.run(["mount", "--bind", own, other], check=True)
    try:
        with box.start("/bin/sh", "-c", LOOK, "sh", own / "a/secret", other / "a/secret",
                       options=["--deny-read", own / "a"]) as child:
            wait_until(lambda: (box.ws / "started").exists())
            time.sleep(0.2)
            write(own / "a/secret")
            give(box)
            (box.ws / "go").touch()
            r = child.wait()
    finally:
        subprocess.run(["umount", other], check=True)
    assert r.out == "end\n" and r.code == 0, str(r)


def held_by_the_leaving(mark):
    """What the processes hold that are on their way out of a run, but for broker and init."""
    held = []
    for pid in processes_with(mark):
        with contextlib.suppress(OSError):
            p = Path(f"/proc/{pid}")
            if (p / "comm").read_text().startswith("ambit-"):
                continue
            held += [os.readlink(p / "cwd"), *(os.readlink(f) for f in (p / "fd").iterdir())]
    return held


def test_end_lets_go(box):
    """Whoever gives up the watch after a run keeps nothing else: what it ran in can be unmounted at
    once, its output has ended, and it is gone soon."""
    if os.geteuid() != 0:
        skip_impossible("only root can mount a file system for the test")
    held, mark = [], f"0.15{os.getpid():08}"
    for _ in range(10):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"uid={box.who.uid},gid={box.who.gid}",
                        "tmpfs", box.ws], check=True)
        try:
            box.run("sleep", mark).ok()
            held += held_by_the_leaving(mark)
        finally:
            gone = subprocess.run(["umount", box.ws]).returncode == 0
            if not gone:
                subprocess.run(["umount", "-l", box.ws], check=True)
        assert gone
    assert set(held) <= {"/", "anon_inode:inotify"}
    assert wait_until(lambda: not processes_with(mark))
