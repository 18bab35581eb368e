# SPDX-License-Identifier: Apache-2.0
"""Protected names are allowed in directories that are new. None of what follows makes an old one new,
or brings such names to where one was; and what was allowed is told."""
import json

import pytest

# Without a sandbox each gets `evil` to sub/a/.envrc, or to sub/e/.envrc, or to what stands for it.
BYPASSES = {
    "moved away": "mv sub old; mkdir -p sub/a; echo evil > sub/a/.envrc",
    "moved away, its parent made anew": "mv sub/a b; rmdir sub; mkdir -p sub/a; echo evil > sub/a/.envrc",
    "moved there and back": "mv sub x; rm -r x/a; mv x sub; mkdir sub/a; echo evil > sub/a/.envrc",
    "removed": "rm -r sub; mkdir -p sub/a; echo evil > sub/a/.envrc",
    "removed through /proc": "rmdir /proc/self/cwd/sub/e; mkdir sub/e; echo evil > sub/e/.envrc",
    "removed through /proc/PID": "rmdir /proc/$$/cwd/sub/e; mkdir sub/e; echo evil > sub/e/.envrc",
    "removed through a descriptor": "exec 9<sub; rmdir /dev/fd/9/e; mkdir sub/e; echo evil > sub/e/.envrc",
    "filled first": "mkdir -p n/a; echo evil > n/a/.envrc; mv sub old; mv -T n sub",
    "filled first, deeper": "mkdir -p n/a; echo evil > n/a/.envrc; mv sub/a old; mv -T n/a sub/a",
    "filled later": "mkdir n; mv sub old; mv n sub; mkdir sub/a; echo evil > sub/a/.envrc",
    "filled later, one level": "mkdir n; mv sub/a old; mv n sub/a; echo evil > sub/a/.envrc",
    "linked in": "echo evil > f; mkdir -p n/a; ln f n/a/.envrc; mv sub old; mv -T n sub",
    "a link in its place": "mkdir n; echo evil > n/.envrc; mv sub/a old; ln -s ../n sub/a",
    "a link moved to its place": "mkdir n; echo evil > n/.envrc; ln -s ../n l; mv sub/a old; mv -T l sub/a",
    "a link above": "mkdir -p n/a; echo evil > n/a/.envrc; mv sub old; ln -s n sub",
    "over an empty one": "mkdir n; echo evil > n/.envrc; mv -T n sub/e",
    "over an empty one, filled later": "mkdir n; mv -T n sub/e; echo evil > sub/e/.envrc",
    "exchanged": "mkdir -p n/a; echo evil > n/a/.envrc; python3 \"$XCHG\" n sub",
    "exchanged the other way": "mkdir -p n/a; echo evil > n/a/.envrc; python3 \"$XCHG\" sub n",
    "exchanged, filled later": "mkdir n; python3 \"$XCHG\" n sub/a; echo evil > sub/a/.envrc",
    "many names first": "mkdir n n/a; for i in $(seq 1100); do mkdir n/$i; : > n/$i/Makefile; done;"
                        " echo evil > n/a/.envrc; mv sub old; mv -T n sub",
    "by way of a protected name": "mkdir n n/.envrc; mv sub/e n/.envrc/e; echo evil > n/.envrc/e/.envrc;"
                                  " mv n/.envrc/e x; mv x sub/e",
    "a link to a name git tries": "mkdir sub/testing; echo evil > sub/testing/.envrc; mv sub/a old; ln -s testing sub/a",
    "in capitals": "mv sub old; mkdir -p sub/a; echo evil > sub/a/.ENVRC; mv sub/a/.ENVRC sub/a/.envrc",
    "a link exchanged": "mkdir n; echo evil > n/.envrc; ln -s ../n sub/l; python3 \"$XCHG\" sub/l sub/a",
    "a link exchanged the other way": "mkdir n; echo evil > n/.envrc; ln -s ../n sub/l; python3 \"$XCHG\" sub/a sub/l",
    "a link that arrives": "mkdir n o; echo evil > o/.envrc; ln -s ../o n/a; mv sub old; mv -T n sub",
    "a link that arrives by exchange": "mkdir n o; echo evil > o/.envrc; ln -s ../o n/a; python3 \"$XCHG\" n sub",
    "in an old one that moves": "mkdir old2/a; echo evil > old2/a/.envrc; mv sub old; mv old2 sub",
}

XCHG = """
import ctypes, sys
c = ctypes.CDLL(None, use_errno=True)
if c.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2):
    sys.exit(ctypes.get_errno())
"""


@pytest.fixture
def old(box):
    """sub/a with a protected name, sub/e and old2 without one; and what exchanges names."""
    box.mkdir("ws/sub/e")
    box.write("ws/sub/a/.envrc", "mine")
    box.write("ws/sub/b/file", "x")
    box.write("ws/old2/file", "x")
    box.write("xchg.py", XCHG)
    return box


def planted(box):
    places = [box.ws / "sub" / d / ".envrc" for d in "ae"]
    return any(p.exists() and p.read_text() == "evil\n" for p in places)


@pytest.mark.parametrize("how", BYPASSES)
def test_old_territory_stays_old(old, how):
    script = f"XCHG={old.home}/xchg.py; {BYPASSES[how]}"
    old.run("sh", "-c", script, options=["--allow-read", old.home])
    assert not planted(old), how


@pytest.mark.parametrize("how", BYPASSES)
def test_control(old, how):
    script = f"XCHG={old.home}/xchg.py; {BYPASSES[how]}"
    old.host("sh", "-c", script)
    assert planted(old), how


def test_an_old_directory_gets_a_protected_name(old):
    """Not by way of a new one, which then takes the place of an old one."""
    old.write("ws/lib/.claude/settings.json", "mine")
    old.write("ws/foo/settings.json", "evil")
    script = "mkdir n; mv foo n/.claude; mv lib old; mv -T n lib"
    old.sh(script)
    assert not (old.ws / "lib/.claude/settings.json").exists() or \
        (old.ws / "lib/.claude/settings.json").read_text() == "mine"


def test_which_repository_git_uses(old):
    old.sh('mkdir n; git init -q --bare evil.git; echo "gitdir: ../evil.git" > n/.git; mv sub old; mv -T n sub')
    assert not (old.ws / "sub/.git").exists()


def test_after_many_have_gone(old):
    """Links and new directories are as before."""
    old.host("sh", "-c", "mkdir many; cd many; seq 14000 | xargs mkdir").ok()
    old.sh("rm -r many; ln -s a l; mkdir n; echo x > n/.envrc; mv n n2; test -e n2/.envrc").ok()


ALLOWED = {
    "moved and brought back": "mv sub x; mv x sub; test -e sub/a/.envrc",
    "built anew": "rm -r sub; mkdir -p sub/a sub/c; echo x > sub/a/file; ln -s a sub/l; mkdir n; echo x > n/.envrc; mv n sub/n",
    "swapped with what is clean": "mkdir -p n/a; echo x > n/a/file; mv sub old; mv n sub; cat sub/a/file",
    "a venv made anew": "rm -r old2; python3 -m venv --without-pip old2; test -L old2/lib64 || test -d old2/lib",
    "a package installed anew": "rm -r node_modules; mkdir -p node_modules/p; echo x > node_modules/p/.envrc",
    "copied where it cannot be moved": "mkdir -p n/c; echo x > n/c/file; mv sub old; mv n sub; test -e sub/c/file",
}


@pytest.mark.parametrize("what", ALLOWED)
def test_what_is_allowed(old, what):
    old.write("ws/node_modules/p/index.js", "x")
    old.run("sh", "-ec", ALLOWED[what]).ok()


def report(box, script):
    path = box.home / "report.json"
    r = box.run("sh", "-c", script, options=["--report", path])
    return r, json.loads(path.read_text())


@pytest.mark.parametrize("script, name", [
    ("echo x > g; ln g Makefile", "Makefile"),
    ("echo x > g; ln -s g Makefile", "Makefile"),
    ("echo x > g; mkdir n; ln g n/.envrc", "n/.envrc"),
    ("mkdir n; ln -s /etc/hostname n/.envrc", "n/.envrc"),
    ("mkdir -p n/a; echo x > n/a/settings.json; mv n/a n/.vscode", "n/.vscode"),
])
def test_links_and_moves_are_told(old, script, name):
    r, told = report(old, script)
    assert str(old.ws / name) in [x["path"] for x in told["runsLater"]], (told["runsLater"], r)


def test_that_there_is_more_is_told(old):
    r, told = report(old, "for i in $(seq 1100); do mkdir d$i; : > d$i/Makefile; done")
    assert any("more files than can be listed" in x["reason"] for x in told["runsLater"]), r


def test_what_moved_away_is_told(old):
    r, told = report(old, "mv sub old")
    assert [x["path"] for x in told["removed"]] == [str(old.ws / "sub/a/.envrc")], r


@pytest.mark.parametrize("script, became", [
    ("mv sub old; mv other sub", {"old/a/.envrc", "sub/a/.envrc"}),
    ("mv sub/a x; mv other/a sub/a", {"x/.envrc", "sub/a/.envrc"}),
    ("mv sub x; mv x sub", set()),
    ("mv other o1; mv o1 o2", {"o2/a/.envrc"}),
    ("mv old2 old3", set()),
])
def test_what_it_became_is_told(old, script, became):
    """Protected content from before, in a place where it did not count: nothing of it is new."""
    old.write("ws/other/a/.envrc", "other")
    r, told = report(old, script)
    assert {x["path"] for x in told["runsLater"]} == {str(old.ws / b) for b in became}, r
    assert all((old.ws / b).exists() and str(old.ws / b) in r.err for b in became), r
