# SPDX-License-Identifier: Apache-2.0
"""What the user's own git configuration leads to in the project is as git's own hooks and
configuration: a person's git runs it afterwards, so the command does not write it."""
import pytest

MARK = "#!/bin/sh\ntouch {}\n"

# name: how things are before the run, and what is tried; the program is ./prog
CASES = {
    "hooks": ("mkdir .githooks; git config core.hooksPath .githooks",
              "cp prog .githooks/pre-commit"),
    "hooks that are not there yet": ("git config core.hooksPath tools/hooks; mkdir tools",
                                     "mkdir -p tools/hooks; cp prog tools/hooks/pre-commit"),
    "hooks in another's place": (
        "mkdir -p tools/hooks; git config core.hooksPath tools/hooks",
        "mkdir -p new/hooks; cp prog new/hooks/pre-commit; mv tools old; mv new tools;"
        "ln -s new tools; mkdir tools; cp -r new/hooks tools"),
    "hooks of all repositories": ("mkdir .githooks; git config --global core.hooksPath .githooks",
                                  "cp prog .githooks/pre-commit"),
    "hooks by a link": ("mkdir real; ln -s real .githooks; git config core.hooksPath .githooks",
                        "cp prog real/pre-commit; rm .githooks; mkdir x; cp prog x/pre-commit;"
                        "ln -s x .githooks"),
    "an older setting comes back": (
        "mkdir a b; git config --global core.hooksPath a; git config core.hooksPath b",
        "cp prog a/pre-commit; git config --unset core.hooksPath"),
    "husky by another name": (
        "mkdir -p tools/_; git config core.hooksPath tools/_;"
        "printf '#!/bin/sh\\n. \"${0%%/*}/../pre-commit\"\\n' > tools/_/pre-commit;"
        "chmod 755 tools/_/pre-commit; echo true > tools/pre-commit",
        "cat prog > tools/pre-commit"),
    "included": ("git config include.path ../shared.cfg; echo > shared.cfg",
                 "git config -f shared.cfg core.fsmonitor $PWD/prog;"
                 "printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/prog > shared.cfg"),
    "included, not there": ("git config include.path ../shared.cfg",
                            "printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/prog > shared.cfg"),
    "included on a condition": (
        "git config --global 'includeIf.onbranch:side.path' $PWD/side.cfg; echo > side.cfg",
        "printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/prog > side.cfg; git checkout -q -b side"),
    "included by what is included": (
        "printf '[include]\\n\\tpath = second.cfg\\n' > first.cfg; git config include.path ../first.cfg",
        "printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/prog > second.cfg"),
    "the user's own, a link": (
        "mkdir dot; echo > dot/gitconfig; ln -s ws/dot/gitconfig ~/.gitconfig",
        "printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/prog > dot/gitconfig"),
    "a program": ("git config core.fsmonitor ./watch; echo '#!/bin/sh' > watch; chmod 755 watch",
                  "cat prog > watch; rm watch; cp prog watch; mv prog watch"),
    "a filter": ("git config filter.f.clean 'tools/clean %f'; echo '* filter=f' > .gitattributes;"
                 "mkdir tools",
                 "cp prog tools/clean"),
}


@pytest.fixture
def trap(boxes):
    box = boxes("user")
    box.host("git", "init", "-q", "-b", "main", ".").ok()
    box.host("git", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty",
             "-m", "x").ok()
    box.marker = box.home / "it-ran"
    box.write("ws/prog", MARK.format(box.marker), 0o755)
    return box


def use_outside(box):
    box.write("ws/new-file", "x")
    for command in ("status", "add -A .", "commit -q -m y"):
        box.host("git", "-c", "user.name=x", "-c", "user.email=x@x", *command.split())


@pytest.mark.parametrize("sandboxed", [True, False], ids=["inside", "control"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_runs_outside(trap, name, sandboxed):
    before, attempt = CASES[name]
    trap.host("/bin/sh", "-c", before).ok()
    trap.sh(attempt, options=["-q"]) if sandboxed else trap.host("/bin/sh", "-c", attempt)
    use_outside(trap)
    assert trap.marker.exists() != sandboxed, trap.host("git", "status").out


@pytest.mark.parametrize("backend", ["bwrap", "landlock"])
@pytest.mark.parametrize("name", ["hooks", "included, not there", "a program"])
def test_other_backends(trap, name, backend):
    before, attempt = CASES[name]
    trap.host("/bin/sh", "-c", before).ok()
    trap.sh(attempt, options=["-q", "--backend", backend])
    use_outside(trap)
    assert not trap.marker.exists()


LIFTED = [("mkdir .githooks; git config core.hooksPath .githooks", ".githooks/pre-commit"),
          ("echo > shared.cfg; git config include.path ../shared.cfg", "shared.cfg"),
          ("git config diff.d.textconv tools/conv; mkdir tools", "tools/conv")]


@pytest.mark.parametrize("before, path", LIFTED)
def test_told_and_lifted(trap, before, path):
    """Where it is said is told, by run, explain and plan; and the option that is named allows it."""
    trap.host("/bin/sh", "-c", before).ok()
    r = trap.sh(f"echo > {path}")
    said = f"of {trap.ws}/.git/config"
    assert r.code != 0 and said in r.err and "allow with: " in r.err, str(r)
    hint = r.err.split("allow with: ")[1].split(")")[0]
    assert trap.sh(f"echo > {path}", options=hint.split()).code == 0
    r = trap.ambit("explain", "write", path)
    assert r.code != 0 and said in r.out, str(r)
    hint = r.out.split("allow with: ")[1].split(")")[0]
    assert trap.ambit("explain", *hint.split(), "write", path).code == 0
    assert said in trap.ambit("plan", "--", "true").out


def test_removal_is_refused_and_told(trap):
    trap.host("/bin/sh", "-c", CASES["hooks"][0] + "; cp prog .githooks/check").ok()
    r = trap.sh("rm .githooks/check")
    assert f"denied write to {trap.ws}/.githooks/check" in r.err, str(r)
    assert (trap.ws / ".githooks/check").exists()


def test_what_is_not_in_the_project_does_not_matter(trap):
    """Hooks turned off, helpers of the system's, files elsewhere: all as before."""
    trap.write(".gitconfig", "[core]\n\thooksPath = /dev/null\n\teditor = vim\n"
                             "[credential]\n\thelper = /usr/bin/true\n[include]\n\tpath = ~/absent\n"
                             "[alias]\n\tst = status -s\n")
    assert "held" not in trap.ambit("plan", "--", "true").out
    r = trap.sh("echo x > f; git add f; git -c user.name=x -c user.email=x@x commit -q -m f; git st")
    assert r.code == 0 and not r.err, str(r)


def test_hooks_everywhere(trap):
    """Where all that is writable would have to be held, it is said instead."""
    trap.host("git", "config", "core.hooksPath", ".").ok()
    r = trap.sh("echo x > f")
    assert r.code == 0
    assert "core.hookspath of" in trap.ambit("plan", "--", "true").out


# What husky's `prepare` script does at every `npm install`, where it is set up already.
HUSKY = """
git config core.hooksPath .husky/_ && rm -f .husky/_/husky.sh && mkdir -p .husky/_ || exit 1
for f in .gitignore h pre-commit commit-msg pre-push husky.sh; do
    echo "# $f" >.husky/_/$f || exit 1
done
"""


def test_husky_works_and_is_told(trap):
    trap.host("/bin/sh", "-c", HUSKY).ok()
    r = trap.sh(HUSKY)
    assert r.code == 0 and "denied" not in r.err, str(r)
    assert f"{trap.ws}/.husky/_ (6 files, git hooks)" in r.err, str(r)


def test_husky_can_be_protected(trap):
    trap.host("/bin/sh", "-c", HUSKY).ok()
    r = trap.sh(HUSKY, options=["--set", "filesystem.protectNames=.husky"])
    assert r.code == 1 and ".husky/_/husky.sh" in r.err, str(r)
