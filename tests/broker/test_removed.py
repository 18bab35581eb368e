# SPDX-License-Identifier: Apache-2.0
"""Protected files that were there before the run: what of them is gone is told, by the path that it had;
and none of them gets another name, under which it could be changed."""
import json

import pytest

XCHG = """
import ctypes, os, sys
c = ctypes.CDLL(None, use_errno=True)
if c.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), int(sys.argv[3])):
    sys.exit(os.strerror(ctypes.get_errno()))
"""
GIT = "git -c user.name=x -c user.email=x@x -c core.hooksPath=/dev/null"


def report(box, script):
    path = box.home / "report.json"
    r = box.run("sh", "-c", f"XCHG={box.home}/xchg.py; {script}",
                options=["--allow-read", box.home, "--report", path])
    return r, json.loads(path.read_text())


def removed(box, told):
    return {x["path"].removeprefix(f"{box.ws}/") for x in told["removed"]}


def denied(box, told):
    return {x["target"].removeprefix(f"{box.ws}/") for x in told["violations"]}


@pytest.fixture
def old(box):
    """A repository with protected names at depth."""
    box.host("git", "init", "-q", ".").ok()
    box.host("git", "init", "-q", "repo").ok()
    for f in ("pkg/.vscode/settings.json", "pkg/.vscode/a", "pkg/.cursor/rules/x", "pkg/.cursor/y", "tree/.envrc",
              "d/.envrc", "d/.claude/settings.json", "d/file", "repo/.git/hooks/pre-commit"):
        box.write(f"ws/{f}", "hi\n")
    box.write("xchg.py", XCHG)
    return box


REMOVED = {
    "file in a protected directory": ("rm pkg/.vscode/settings.json", {"pkg/.vscode/settings.json"}),
    "from within": ("cd pkg/.vscode; rm settings.json", {"pkg/.vscode/settings.json"}),
    "part of it": ("rm -r pkg/.cursor/rules", {"pkg/.cursor/rules"}),
    "part of it, moved": ("mv pkg/.cursor/rules x", {"pkg/.cursor/rules"}),
    "all of it": ("rm pkg/.vscode/a pkg/.vscode/settings.json; rmdir pkg/.vscode", {"pkg/.vscode"}),
    "with its parent": ("rm -rf pkg", {"pkg/.vscode", "pkg/.cursor"}),
    "with its parent, moved": ("mv pkg x", {"pkg/.vscode", "pkg/.cursor"}),
    "git rm": ("git rm -qf pkg/.vscode/a", {"pkg/.vscode/a"}),
    "git rm, the last": ("git rm -qf -r pkg/.vscode", {"pkg/.vscode"}),
    # where it was before the run, however it got to where it was removed
    "moved there and back": ("mv tree moved; mv moved tree; rm -rf tree", {"tree/.envrc"}),
    "moved there and back, kept": ("mv tree moved; mv moved tree", set()),
    "moved, removed": ("mv tree moved; rm -rf moved", {"tree/.envrc"}),
    "moved twice, removed": ("mv tree m1; mv m1 m2; rm -rf m2", {"tree/.envrc"}),
    "moved into another": ("mv tree d/t; mv d e; rm -rf e/t", {"tree/.envrc", "d/.envrc", "d/.claude/settings.json"}),
    "moved over an empty one": ("mkdir n; mv -T tree n; rm -rf n", {"tree/.envrc"}),
    "exchanged": ("python3 $XCHG tree pkg 2; rm -rf tree", {"tree/.envrc", "pkg/.vscode", "pkg/.cursor"}),
    "exchanged there and back": ("python3 $XCHG tree pkg 2; python3 $XCHG tree pkg 2", set()),
    "exchanged there and back, removed": ("python3 $XCHG tree pkg 2; python3 $XCHG tree pkg 2; rm -rf tree",
                                          {"tree/.envrc"}),
    "another in its place": ("mv tree x; mv d tree; rm -rf tree",
                             {"tree/.envrc", "d/.envrc", "d/.claude/settings.json"}),
    "a hook, moved": ("mv repo r2; rm r2/.git/hooks/pre-commit", {"repo/.git/hooks/pre-commit"}),
    "one where another was": ("mv tree x; rm -r x; mv d x; rm -r x",
                              {"tree/.envrc", "d/.envrc", "d/.claude/settings.json"}),
    "in a new one": ("mkdir n; mv tree n/t; mv n m; rm -r m/t", {"tree/.envrc"}),
    "in a new one, exchanged": ("mkdir n; mv tree n/t; touch f; python3 $XCHG f n 2; rm -r f/t", {"tree/.envrc"}),
}


@pytest.mark.parametrize("case", REMOVED)
def test_told_by_the_path_that_it_had(old, case):
    script, expected = REMOVED[case]
    old.host("git", "add", "-f", "pkg").ok()
    r, told = report(old, script)
    assert removed(old, told) == expected and len(told["removed"]) == len(expected), (str(r), told["removed"])
    assert all(f"{old.ws}/{path}" in r.err for path in expected), str(r)
    assert not told["violations"], told["violations"]


def test_many_files_are_one_directory(old):
    """A directory of more files than a report takes is one name, and leaves room for what follows."""
    old.host("sh", "-c", "cd pkg/.vscode; seq 1500 | xargs touch").ok()
    r, told = report(old, "rm -rf pkg/.vscode; rm tree/.envrc")
    assert removed(old, told) == {"pkg/.vscode", "tree/.envrc"}, str(r)


# A file that may not be written keeps its name: moved away, it could not come back, or be changed meanwhile.
KEPT = {
    "mv": ("mv d/.envrc d/x; mv d/x d/.envrc", "d/.envrc"),
    "mv elsewhere": ("mv d/.envrc x", "d/.envrc"),
    "mv to a private place": ("mv d/.envrc /tmp/x", "d/.envrc"),
    "mv from within": ("cd d; mv .envrc x", "d/.envrc"),
    "perl -pi.bak": ("perl -pi.bak -e s/hi/yo/ d/.envrc", "d/.envrc"),
    "two components": ("mv d/.claude/settings.json x", "d/.claude/settings.json"),
    "in a protected directory": ("mv pkg/.vscode/a pkg/.vscode/b", "pkg/.vscode/a"),
    "a link": ("mv d/.zshrc x", "d/.zshrc"),
    "git mv": ("git add -f d; git mv d/.envrc x", "d/.envrc"),
    "exchanged": ("python3 $XCHG d/.envrc d/file 2", "d/.envrc"),
    "exchanged, second": ("python3 $XCHG d/file d/.envrc 2", "d/.envrc"),
    "to a new directory": ("mkdir n; mv d/.envrc n/.envrc", "d/.envrc"),
    "hook": ("mv repo/.git/hooks/pre-commit h", "repo/.git/hooks/pre-commit"),
    "hook, within": ("mv repo/.git/hooks/pre-commit repo/.git/hooks/pre-commit.sample", "repo/.git/hooks/pre-commit"),
    "hook, linked": ("ln repo/.git/hooks/pre-commit h", "repo/.git/hooks/pre-commit"),
    "configuration": ("mv repo/.git/config c", "repo/.git/config"),
    "which repository": ("mv wt/.git x", "wt/.git"),
}


@pytest.mark.parametrize("case", KEPT)
def test_a_protected_file_keeps_its_name(old, case):
    script, path = KEPT[case]
    old.write("ws/wt/.git", "gitdir: ../repo/.git\n")
    old.host("ln", "-s", "file", "d/.zshrc").ok()
    before = (old.ws / path).read_text()
    r, told = report(old, script)
    assert (old.ws / path).read_text() == before and removed(old, told) == set(), str(r)
    # what tools try next is refused and told, too
    assert path in denied(old, told) and all(v["reason"] for v in told["violations"]), (str(r), told["violations"])


def test_an_editor_that_copies_then(old):
    """Vim copies what it cannot rename, and removes the original all the same: it is told, and the copy stays."""
    r, told = report(old, "vim -N -u NONE -i NONE -es -c 'set backup backupcopy=no' -c 's/hi/yo/' -c wq d/.envrc")
    assert (old.ws / "d/.envrc~").read_text() == "hi\n" and denied(old, told) == {"d/.envrc"}, str(r)
    assert removed(old, told) == {"d/.envrc"}, str(r)


# Another name of the same file, which is protected as well.
SHARED = {
    "file": ("mv d/.envrc e; echo ./steal >> e", "d/.envrc", "d/.zshenv"),
    "hook": ("mv repo/.git/hooks/pre-commit h; echo ./steal >> h", "repo/.git/hooks/pre-commit",
             "repo/.git/hooks/pre-push"),
    "held": ("mv d/.bashrc r; echo ./steal >> r", "d/.bashrc", ".bashrc"),
    "configuration": ("mv repo/.git/config c; echo ./steal >> c", "repo/.git/config", "c2/.git/config"),
    "directory": ("mv d/.claude c; echo ./steal >> c/settings.json", "d/.claude/settings.json", ".claude/settings.json"),
    "directory, named itself": ("mv pkg/.vscode v; echo ./steal >> v/a", "pkg/.vscode/a", "d/.vscode/a"),
    "hooks": ("mv repo/.git/hooks h; echo ./steal >> h/pre-commit", "repo/.git/hooks/pre-commit",
              "c2/.git/hooks/pre-commit"),
}


@pytest.mark.parametrize("sandbox", [True, False], ids=["sandbox", "control"])
@pytest.mark.parametrize("case", SHARED)
def test_the_other_name_of_a_file(old, case, sandbox):
    script, one, other = SHARED[case]
    old.host("git", "init", "-q", "c2").ok()
    old.write("ws/d/.bashrc", "hi\n")
    (old.ws / other).unlink(missing_ok=True)
    old.host("sh", "-c", f"mkdir -p $(dirname {other}); ln {one} {other}").ok()
    r = old.sh(script) if sandbox else old.host("sh", "-c", script)
    assert ("steal" in (old.ws / other).read_text()) != sandbox, str(r)


MOVED = {
    "directory": "mv d e; cat e/.envrc; mv e d; cat d/.envrc",
    "protected directory": "mv pkg/.vscode pkg/v; cat pkg/v/a",
    "git mv of a directory": "git add -f d; git mv d e; cat e/.envrc",
    "new territory": "mkdir n; echo x > n/.envrc; mv n/.envrc n/x; mv n/x n/.envrc; perl -pi.bak -e s/x/y/ n/.envrc; cat n/.envrc.bak",
    "exchanged in new territory": "mkdir n; echo x > n/.envrc; echo y > n/f; python3 $XCHG n/.envrc n/f 2; grep y n/.envrc",
    "new repository": "git init -q n; mv n/.git/config n/c; git config -f n/c --list",
    "git's own": f"cd repo; git config user.name me; touch f; git add f; {GIT} commit -qm m; git branch -m b; git gc -q;"
                 " git pack-refs --all; git config --rename-section user author; git worktree add -q ../w; git worktree move ../w ../w2",
    "samples": "mv repo/.git/hooks/pre-push.sample s",
    "package": "mv node_modules/p node_modules/.p-x; mkdir node_modules/p; echo x > node_modules/p/.envrc; rm -r node_modules/.p-x",
    "protected names with other files beside": "mv d/file d/f; mv d/f d/file; echo x > t; mv t d/file",
}


@pytest.mark.parametrize("case", MOVED)
def test_what_is_still_moved(old, case):
    old.write("ws/repo/.git/hooks/pre-push.sample", "x")
    old.write("ws/node_modules/p/.envrc", "x")
    r, told = report(old, f"set -e; {MOVED[case]}")
    r.ok()
    assert not told["violations"], told["violations"]


# What the kernel says before it looks at rights is no refusal: script, what the call says (or nothing), denied
ANSWERS = {
    "git's lock, moved by hand": ("git config -f repo/.git/config --list > /dev/null; cp repo/.git/config repo/.git/config.lock;"
                                  " echo '[user]name=me' >> repo/.git/config.lock; mv repo/.git/config.lock repo/.git/config;"
                                  " git -C repo config user.name", "me", set()),
    "without one before": ("cp repo/.git/config c; rm repo/.git/config; mv c repo/.git/config; git -C repo config core.bare",
                           "false", set()),
    "not over what is there": ("touch t; python3 $XCHG t d/.envrc 1", "File exists", set()),
    "not over a configuration": ("cp repo/.git/config t; python3 $XCHG t repo/.git/config 1", "File exists", set()),
    "exchanged with a configuration": ("cp repo/.git/config t; python3 $XCHG t repo/.git/config 2", "Permission denied",
                                       {"repo/.git/config"}),
    "a configuration exchanged": ("cp repo/.git/config t; python3 $XCHG repo/.git/config t 2", "Permission denied",
                                  {"repo/.git/config"}),
    "exchanged with nothing": ("python3 $XCHG d/file d/.zshenv 2", "No such file", set()),
    "both at once": ("python3 $XCHG d/file d/.envrc 3", "Invalid argument", set()),
    "renamed from nothing": ("python3 $XCHG none d/.zshenv 0", "No such file", set()),
    "renamed from nothing, hook": ("python3 $XCHG none repo/.git/hooks/pre-push 0", "No such file", set()),
    "renamed from nothing, there": ("python3 $XCHG none d/.envrc 0", "No such file", set()),
    "linked from nothing": ("python3 -c 'import os; os.link(\"none\", \"d/.zshenv\")'", "No such file", set()),
    "linked to what is there": ("python3 -c 'import os; os.link(\"d/file\", \"d/.envrc\")'", "File exists", set()),
    "linked": ("python3 -c 'import os; os.link(\"d/file\", \"d/.zshenv\")'", "Permission denied", {"d/.zshenv"}),
    "to itself": ("python3 $XCHG d/.envrc d/.envrc 0 && echo same", "same", set()),
    "to another name of the same": ("python3 $XCHG d/.envrc d/link 0 && echo same", "same", set()),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_of_the_kernel(old, case):
    script, says, refused = ANSWERS[case]
    old.host("ln", "d/.envrc", "d/link").ok()
    r, told = report(old, script)
    assert says in r.out + r.err and denied(old, told) == refused, (str(r), told["violations"])
    assert all(v["reason"] for v in told["violations"]), told["violations"]
    assert (old.ws / "d/.envrc").read_text() == (old.ws / "d/link").read_text() == "hi\n"


@pytest.mark.parametrize("case", [c for c, (_, _, refused) in ANSWERS.items() if not refused])
def test_answers_outside_are_the_same(old, case):
    old.host("ln", "d/.envrc", "d/link").ok()
    script, says, _ = ANSWERS[case]
    r = old.host("sh", "-c", f"XCHG={old.home}/xchg.py; {script}")
    assert says in r.out + r.err, str(r)


# A git command that has another protected file to put in place removes the old one first.
LOST = {
    "checkout": "git checkout -q other",
    "checkout of a file": "git checkout -q other -- pkg",
    "merge": f"{GIT} merge -q -m m other",
    "stash": f"echo x > pkg/plain; {GIT} stash -q",
    "rebase": f"{GIT} rebase -q other",
    "reset": "git reset -q --hard other",
}


@pytest.mark.parametrize("case", LOST)
def test_what_git_loses_is_told(old, case):
    """With the way to get it back."""
    path = "pkg/.vscode/settings.json"
    old.host("sh", "-c", f"echo 1 > pkg/plain; git add -f pkg d && {GIT} commit -qm 1 && git checkout -qb other && echo 2 > {path}"
             f" && {GIT} commit -qam 2 && git checkout -q - && echo 3 > d/file && {GIT} commit -qam 3").ok()
    if case == "stash":
        old.write(f"ws/{path}", "changed\n")
    r, told = report(old, LOST[case])
    assert removed(old, told) == {path} and denied(old, told) == {path}, (str(r), told)
    assert "git restore" in r.err.split("removed protected names")[1], r.err
    old.host("git", "restore", path).ok()
    assert (old.ws / path).exists()
