# SPDX-License-Identifier: Apache-2.0
"""All sandboxes of a user share one lock for what concerns git directories. What a command writes
there must not make the others wait."""
import pytest

import ambit_test
from ambit_test import SLOW, wait_until

PYTHON = "/usr/bin/python3"

RENAME = """
import os, sys, time
base = open('.git/config').read()
for text in {texts}:
    open('text', 'w').write(base + text)
    start = time.monotonic()
    try:
        os.rename('text', '.git/config'); said = 'done'
    except OSError as e:
        said = e.strerror
    print(said, round(time.monotonic() - start, 2), flush=True)
"""


def test_many_entries(boxes):
    """Each against each took 16 seconds."""
    box = boxes("root")
    box.host("git", "init", "-q", ".").ok()
    script = RENAME.format(texts="'[pull]\\n' + 'ff\\n' * 40000, '[pull]\\n' + 'ff=1\\n' * 40000")
    r = box.run(PYTHON, "-c", script).ok()
    for line in r.out.splitlines():
        said, seconds = line.split()
        assert said == "done" and float(seconds) < 3 * SLOW, str(r)
    assert len(r.out.splitlines()) == 2, str(r)


@pytest.mark.parametrize("what", ["nothing", "moved", "changed"])
def test_judged_while_others_go_on(boxes, monkeypatch, what):
    """While a long text is judged another sandbox may act: in other projects, and in this one. What was
    judged is then put in place only where nothing has changed."""
    box = boxes("root")
    box.mkdir("ws/a")
    box.host("git", "init", "-q", "a").ok()
    go, fast = box.home / "go", ambit_test.AMBIT
    slow = fast.parents[2] / "tests/broker/slow-judge"
    assert slow.exists(), f"{slow} is not there: tools/build --tests"
    script = "import os; os.chdir('a')\n" + RENAME.format(texts="['[pull]\\n' + 'ff\\n' * 30000]")
    act = {"nothing": "ln -s x l", "moved": "mv a b", "changed": "git -C a config pull.rebase true"}[what]
    monkeypatch.setattr(ambit_test, "AMBIT", slow)
    with box.start(PYTHON, "-c", script, options=["-q"], env={"AMBIT_TEST_GO": str(go)}) as child:
        text = box.ws / "a/text"
        assert wait_until(lambda: text.exists() and text.stat().st_size > 90000)
        monkeypatch.setattr(ambit_test, "AMBIT", fast)
        other = box.sh(act, timeout=8).ok()
        go.write_text("")
        r = child.wait()
    config = (box.ws / ("b" if what == "moved" else "a") / ".git/config").read_text()
    assert r.out.startswith("done" if what == "nothing" else "Device or resource busy"), str(r)
    assert ("ff\n" in config) == (what == "nothing")
    assert other.seconds < 5 * SLOW, str(other)


# Many names of one large file, in directories that are not git's
LINKED = """
import os, sys, time
os.makedirs('.git/modules')
open('.git/modules/big', 'w').write('[core]\\n' + 'filemode\\n' * 110000)
for i in range(300):
    os.mkdir('.git/modules/d%d' % i)
    os.link('.git/modules/big', '.git/modules/d%d/config' % i)
start = time.monotonic()
os.symlink('x', 'lnk')
print(time.monotonic() - start)
"""


def test_configurations_of_no_git_directory(boxes):
    """A link asks where submodules' checkouts are: of git directories only. It took three seconds."""
    box = boxes("root")
    box.host("git", "init", "-q", ".").ok()
    r = box.run(PYTHON, "-c", LINKED).ok()
    assert float(r.out) < 0.5 * SLOW, str(r)


def git_dirs(box, n, config):
    for i in range(n):
        for d in ("objects", "refs"):
            box.mkdir(f"ws/.git/modules/m{i}/{d}")
        config(box.ws / f".git/modules/m{i}/config", i)


TIMED = "import os, time; t = time.monotonic(); os.symlink('x', 'lnk'); print(time.monotonic() - t)"


def test_one_file_is_read_once(boxes):
    """A hundred git directories that share one large configuration, of the user's own making."""
    box = boxes("root")
    box.host("git", "init", "-q", ".").ok()
    big = box.write("ws/big", "[core]\n" + "filemode\n" * 110000)
    git_dirs(box, 100, lambda path, i: path.hardlink_to(big))
    r = box.run(PYTHON, "-c", TIMED).ok()
    assert float(r.out) < 0.5 * SLOW, str(r)


TOO_MUCH = {
    "text": lambda box: git_dirs(box, 6, lambda path, i: path.write_text("[core]\n" + "filemode\n" * 100000)),
    "directories": lambda box: [(box.mkdir("ws/.git/modules") / str(i)).mkdir() for i in range(11000)],
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_too_much_to_look_at(boxes, what):
    """Then nobody knows where the checkouts are: no link, and that soon."""
    box = boxes("root")
    box.host("git", "init", "-q", ".").ok()
    TOO_MUCH[what](box)
    r = box.run(PYTHON, "-c", TIMED)
    assert r.code != 0 and f"denied write to {box.ws}/lnk" in r.err, str(r)
    assert r.seconds < 5 * SLOW, str(r)


def test_many_submodules_are_usual(boxes):
    box = boxes("root")
    box.host("git", "init", "-q", ".").ok()
    git_dirs(box, 400, lambda path, i: path.write_text(f"[core]\n\tworktree = ../../../m{i}\n"))
    box.run(PYTHON, "-c", TIMED).ok()
    r = box.sh("ln -s x m399")
    assert r.code != 0 and f"denied write to {box.ws}/m399" in r.err, str(r)
