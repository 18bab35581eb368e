# SPDX-License-Identifier: Apache-2.0
"""What a rule hides stays hidden while the command runs, whatever is put there outside.

What hides a file is a mount on it, which the kernel drops when another file is renamed to its name.
The command looks again and again, until it can read no more or has read often enough to show that
nobody hides it. Judged by what it read at the end.
"""
import json
import os
import time

import pytest

from ambit_test import wait_until

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
}


def attempt(box, case, options, pause):
    """What the command printed, after something happened outside."""
    hidden, name, there, act = CASES[case]
    path = box.home / "own" / name
    (box.home / "own").mkdir()
    if there:
        write(path, f"{SECRET} old\n")
    if case == "by-pattern":
        write(box.home / "own/other.pem")
    options = [*options, "--deny-read", box.home / "own" / hidden]
    with box.start("/bin/sh", "-c", LOOK, "sh", path, options=options) as child:
        wait_until(lambda: (box.ws / "started").exists())
        time.sleep(pause)
        act(path)
        for top, directories, files in os.walk(box.home / "own"):
            for name in [*directories, *files]:
                os.chown(os.path.join(top, name), box.who.uid, box.who.gid, follow_symlinks=False)
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
    write(path, "old\n") if there else (plain.home / "own").mkdir()
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
