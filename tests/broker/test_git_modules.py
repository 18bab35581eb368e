# SPDX-License-Identifier: Apache-2.0
"""Where a submodule's checkout is, was checked when it was said. Nothing that comes later may make
git outside write somewhere else: `git reset --hard` there writes files that were chosen inside."""
import time

import pytest

from ambit_test import wait_until

# A submodule m, as `git submodule add` leaves it; its one file is called evil.
SETUP = """
git init -q -b main .
git init -q -b main src
(cd src; echo x > evil; git add evil; git -c user.name=x -c user.email=x@x commit -q -m x)
git init -q --bare {git}
git --git-dir={git} fetch -q src main:main
mkdir -p {tree}; echo "gitdir: $PWD/{git}" > {tree}/.git
git --git-dir={git} config core.bare false
git --git-dir={git} config core.worktree {worktree}
"""


def setup(git=".git/modules/m", tree="m", up="../../../"):
    return SETUP.format(git=git, tree=tree, worktree=up + tree)


# The same, with a core.worktree of another form: what git would not write itself
RAW = r"""
git config -f .git/modules/m/config --unset core.worktree
cp .git/modules/m/config c; printf '[core]\n\tworktree = {}\n' >> c; mv c .git/modules/m/config
"""
BACK = RAW.format("../../../nothere/../m")

# One script per run. $OUT is a directory of the user's, beside the project
SWAPS = {
    "a link": (setup() + "mv m m2; ln -s $OUT m",),
    "in another run": (setup(), "mv m m2", "ln -s $OUT m"),
    "a link that moves": (setup() + "ln -s $OUT l; mv m m2; mv -T l m",),
    "a hard link to a link": (setup() + "ln -s $OUT l; mv m m2; ln -P l m",),
    "exchanged": (setup() + "ln -s $OUT l; mv m m2; mkdir m; python3 $XCHG l m",),
    "above": (setup(tree="a/m"), "mkdir m2; cp a/m/.git m2; mv a b", "ln -s $OUT a"),
    "in a directory that comes": (setup(tree="a/m"), "mkdir n m2; ln -s $OUT n/m; cp a/m/.git m2; mv a b", "mv n a"),
    "under another name": (setup(git=".git/modules/other"), "mv m m2", "ln -s $OUT m"),
    "deeper": (setup(git=".git/modules/x/y", up="../../../../"), "mv m m2", "ln -s $OUT m"),
    "the repository is away meanwhile": (
        setup() + "mkdir m2; echo 'gitdir: ../.git/modules/m' > m2/.git; rm -r m; mv .git g; ln -s $OUT m; mv g .git",),
    "the repository stays away": (
        setup() + "mkdir m2; echo 'gitdir: ../g/modules/m' > m2/.git; rm -r m; mv .git g; ln -s $OUT m",),
    "a repository that comes": (
        "mkdir a; cd a;" + setup(),
        "mkdir b m2; ln -s $OUT b/m; mv a/.git b/.git; echo 'gitdir: ../b/.git/modules/m' > m2/.git"),
    "modules under another name": (
        setup() + "mkdir m2; echo 'gitdir: ../.git/mods/m' > m2/.git; rm -r m; mv .git/modules .git/mods; ln -s $OUT m",),
    "a link that leads to a name git tries": (setup() + "mv m m2; ln -s $OUT testing; ln -s testing m",),
    "a blank that git drops": (
        "mkdir p m2; echo 'gitdir: ../p/.git/modules/m' > m2/.git; cd p;" + setup(tree="out/m") +
        RAW.format(r"\\\n ../../../../../out/m"),),
    "a way back that starts from a link": (
        setup() + BACK + "mkdir m2; cp m/.git m2", "ln -s $OUT/m nothere"),
    "one level up": (
        setup(git=".git/modules/x/m", tree="out", up="../../../../"),
        "mkdir m2; echo 'gitdir: ../.git/modules/m' > m2/.git; mv .git/modules/x/m .git/modules/m"),
}

XCHG = """
import ctypes, sys
c = ctypes.CDLL(None, use_errno=True)
sys.exit(c.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2) != 0)
"""


@pytest.mark.parametrize("sandboxed", [True, False], ids=["inside", "control"])
@pytest.mark.parametrize("how", SWAPS)
def test_git_writes_to_no_other_place(boxes, how, sandboxed):
    box = boxes("user")
    out = box.mkdir("out")
    box.mkdir("out/m")
    box.write("xchg.py", XCHG)
    for script in SWAPS[how]:
        script = f"OUT={out}; XCHG={box.home}/xchg.py; {script}"
        if sandboxed:
            box.sh(script, options=["-q", "--allow-read", box.home])
        else:
            box.host("/bin/sh", "-c", script)
    for d in ("m2", "m", "a/m"):
        if (box.ws / d).is_dir():
            box.host("git", "reset", "-q", "--hard", "main", cwd=box.ws / d)
    found = list(out.rglob("evil"))
    assert bool(found) != sandboxed, found


def test_a_way_back_that_was_there(boxes):
    """Where it leads is not known before there is a link on it: so there is none."""
    box = boxes("user")
    box.mkdir("out/m")
    box.host("/bin/sh", "-c", setup() + BACK).ok()
    r = box.sh(f"ln -s {box.home}/out/m nothere")
    assert r.code != 0 and f"denied write to {box.ws}/nothere" in r.err, str(r)
    box.host("git", "config", "-f", ".git/modules/m/config", "core.worktree", "../../../m").ok()
    box.sh(f"ln -s {box.home}/out/m nothere").ok()


def test_one_text_in_two_places(boxes):
    """A relative path means another place in each directory, be the file the same."""
    box = boxes("user")
    box.host("/bin/sh", "-c", setup() + "mkdir -p .git/modules/x/y; cp -r .git/modules/m/* .git/modules/x/y;"
                                        "ln -f .git/modules/m/config .git/modules/x/y/config").ok()
    for place in ("m", ".git/m"):
        r = box.sh(f"rm -rf {place}; ln -s /etc {place}")
        assert r.code != 0 and f"denied write to {box.ws}/{place}" in r.err, str(r)
    box.sh("ln -s /etc n").ok()


# What was read of a configuration is remembered; what comes in its place is read again.
CHANGED = """
ln -s x l1
mkdir n; echo "gitdir: $PWD/.git/modules/m" > n/.git
git config -f .git/modules/m/config core.worktree ../../../{name}
touch -r old .git/modules/m/config
ln -s x l2; rm -r n
ln -s $OUT n && echo made
"""


@pytest.mark.parametrize("name", ["m", "n"])
def test_a_text_that_changes_within_a_run(boxes, name):
    box = boxes("user")
    out = box.mkdir("out")
    box.host("/bin/sh", "-c", setup() + "touch -r .git/modules/m/config old").ok()
    config = box.ws / ".git/modules/m/config"
    assert wait_until(lambda: time.time() - config.stat().st_ctime > 5)  # it counts as settled
    r = box.sh(f"OUT={out}" + CHANGED.format(name=name), options=["-q"])
    assert ("made" in r.out) == (name == "m"), str(r)


USUAL = {
    "set up": "true",
    "moved by git": "git -c user.name=x -c user.email=x@x commit -q -m s; git mv mod mod2; git -C mod2 status",
    "removed and made anew": "git submodule deinit -q -f mod; git -c protocol.file.allow=always submodule update -q --init mod",
    "other links": "ln -s mod l; ln -s evil mod/l; mkdir d; ln -s ../mod d/mod; mv d d2; mv -T l l2",
    "a directory in its place": "mv mod x; mkdir mod; rmdir mod; mkdir y; mv y mod; rmdir mod; mv x mod; git -C mod status",
    "the repository moves": "git -c user.name=x -c user.email=x@x commit -q -m s; mkdir n;"
                            "git -c protocol.file.allow=always clone -q --recurse-submodules . n/c; mv n/c n/d; git -C n/d/mod status",
    "a hierarchy": "cd mod; git -c protocol.file.allow=always submodule add -q $SRC sub; ln -s x l; mv l l2; git -C sub status",
    "absorbed": "git clone -q $SRC own; git submodule add -q ./own 2>/dev/null; git submodule absorbgitdirs; git -C own status",
}


@pytest.mark.parametrize("what", USUAL)
def test_what_is_usual(boxes, what):
    box = boxes("user")
    box.host("sh", "-c", "git init -q -b main ../src; cd ../src; echo x > evil; git add evil;"
                         "git -c user.name=x -c user.email=x@x commit -q -m x").ok()
    script = (f"SRC={box.home}/src; git init -q -b main .;"
              f"git -c protocol.file.allow=always submodule add -q $SRC mod; {USUAL[what]}")
    r = box.run("sh", "-ec", script, options=["--allow-read", box.home])
    assert r.code == 0 and "denied" not in r.err, str(r)
