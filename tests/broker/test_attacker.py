# SPDX-License-Identifier: Apache-2.0
"""Races against the name guard: attacker.c inside, judged from outside.

ATTACK_SECONDS makes the shorter runs longer (default 6). Controls: the same program, with the same judge,
finds a way where nothing is guarded, by each idea alone, and into builds of ambit with one defence
taken out (broken_*.c).
"""
import fnmatch
import os
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import ambit_test
import pytest

SECONDS = int(os.environ.get("ATTACK_SECONDS", "6"))
BULK = "node_modules"
OPTIONS = ["-q", "--report", "none", "--deny-write", "conf/secret.yml", "--set", f"filesystem.bulk={BULK}"]
NAMES = {".envrc", ".bashrc", ".vscode", ".mcp.json"}
CONTROLS = {  # each idea, and what comes of it where nothing is guarded
    "flip": "src/.envrc", "cut": "src/.bashrc", "descriptors": ".claude/settings.json",
    "directories": "src/.vscode", "ancestors": "src/.config/systemd/user/evil.service",
    "denied": "conf/secret.yml", "symlink": ".claude/settings.json", "unnamed": "old/deep/.mcp.json",
    "worktree": ".git/config.worktree", "lock": ".git/config", "mode": ".git/config",
    "birth": "src/b?/config", "pipe": "src/p/config", "hooks": "src/hb?/hooks/pre-commit",
    "objects": "src/o?/config", "aliases": ".git/config", "bulk": "old/out/.envrc",
    "marked": "src/.mcp.json",
}


def make_tree(box):
    box.host("git", "init", "-q", ".").ok()
    for d in ("src", "old/deep/.vscode", ".claude", BULK):
        box.mkdir(f"ws/{d}")
    for f in (".bashrc", "src/.bashrc", "old/deep/.vscode/tasks.json", "src/main.c"):
        box.write(f"ws/{f}", "original\n")


def is_evil(path):
    """EVIL in a file, or in what lies below a directory, or in where a link leads."""
    if path.is_symlink():
        return True  # nobody outside made one of these names a link
    if path.is_dir():
        return any(is_evil(p) for p in path.iterdir())
    return path.is_file() and b"EVIL" in path.read_bytes()


def is_emptied(ws, copies):
    """Nobody removes all of the configuration; but of two who take each other's lock file away, one
    may put in place what the other has not written yet, and an empty file is harmless."""
    config = ws / ".git/config"
    return copies == 1 and config.is_file() and config.stat().st_size == 0


def judge_git_directory(d):
    for name in ("config", "config.worktree", "commondir"):
        if os.path.lexists(d / name) and is_evil(d / name):
            yield d / name
    if (d / "hooks").is_symlink():
        yield d / "hooks"
    elif (d / "hooks").is_dir():
        yield from (p for p in (d / "hooks").iterdir() if not p.name.endswith(".sample"))


def judge(ws, copies=1):
    """What of the attempts is there to be run."""
    found = [p for p in (ws / "src/.bashrc", ws / ".bashrc", ws / "old/deep/.vscode/tasks.json")
             if not p.is_file() or p.read_text() != "original\n"]
    if is_emptied(ws, copies):
        found.append(ws / ".git/config")
    for top, dirs, files in os.walk(ws):
        d = Path(top)
        if d == ws and BULK in dirs:
            dirs.remove(BULK)
        everything = set(dirs) | set(files)
        if {"objects", "refs"} <= everything:
            found += judge_git_directory(d)
        if "config.worktree" in everything and is_evil(d / "config.worktree"):
            found.append(d / "config.worktree")
        found += [d / n for n in everything & NAMES if is_evil(d / n)]
        if d.parts[-2:] == ("systemd", "user") and "evil.service" in everything:
            found.append(d / "evil.service")
        if d.name == ".claude" and "settings.json" in everything:
            found.append(d / "settings.json")
        if d.name == "conf" and "secret.yml" in everything:
            found.append(d / "secret.yml")
        if ".claude" in everything and (d / ".claude").is_symlink():
            found.append(d / ".claude")
        if d.name == "worktrees":
            found += [w / "commondir" for w in d.iterdir()
                      if (w / "commondir").exists() and (w / "commondir").read_text() != "../..\n"]
    if os.path.lexists(ws / ".git/info/attributes"):
        found.append(ws / ".git/info/attributes")
    return sorted({str(p.relative_to(ws)) for p in found})


def attack(box, programs, copies, options=OPTIONS, seconds=SECONDS, sandbox=True, ideas=()):
    program = programs("attacker", "attacker.c")
    if not (box.ws / ".git").exists():
        make_tree(box)
    with ExitStack() as stack:
        runs = [stack.enter_context(box.start(program, str(seconds), *ideas, options=options,
                                              sandbox=sandbox, stderr=subprocess.DEVNULL))
                for _ in range(copies)]
        for r in runs:
            result = r.wait(timeout=seconds + 30)
            assert result.code == 0 and "threads" in result.out, str(result)
    return judge(box.ws, copies)


def attack_until(enough, *args, **kw):
    """All that was found; one time is usually enough, on a machine that is not busy."""
    found = set()
    for _ in range(10):
        found.update(attack(*args, **kw))
        if enough(found):
            break
    return sorted(found)


def test_alone(box, programs):
    assert attack(box, programs, 1) == []


def test_two_sandboxes(boxes, programs):
    assert attack(boxes("root"), programs, 2) == []


def test_a_minute(boxes, programs):
    """Everything at once, from two sandboxes in one directory."""
    assert attack(boxes("user"), programs, 2, seconds=max(60, SECONDS)) == []


@pytest.mark.parametrize("idea", ["directories", "lock", "birth", "hooks", "pipe", "denied", "marked"])
def test_one_idea(boxes, programs, idea):
    """With the processor for itself, a race is tried more often."""
    assert attack(boxes("user"), programs, 1, seconds=max(1, SECONDS // 4), ideas=[idea]) == []


def use_build(monkeypatch, name):
    program = ambit_test.AMBIT.parents[2] / f"tests/broker/{name}"
    assert program.exists(), f"{program} is not there: tools/build --tests"
    monkeypatch.setattr(ambit_test, "AMBIT", program)


@pytest.mark.parametrize("broken, copies, ideas", [("continue", 1, []), ("continue", 1, ["flip"]),
                                                   ("continue", 1, ["marked"]),
                                                   ("lock", 2, ["birth"])],
                         ids=["continue-all", "continue-flip", "continue-marked", "lock-birth"])
def test_control_broken(boxes, programs, monkeypatch, broken, copies, ideas):
    """Check and let go on; and two brokers that do not wait for each other: both are found out."""
    use_build(monkeypatch, f"broken-{broken}")
    assert attack_until(len, boxes("user"), programs, copies, seconds=3, ideas=ideas)


@pytest.mark.parametrize("moved", [True, False], ids=["moved", "control"])
def test_moved_away_meanwhile(boxes, monkeypatch, moved):
    """While a rename waits for its turn, somebody outside moves the directory out of the project:
    what was judged there is not the same any more, so nothing is done."""
    use_build(monkeypatch, "slow-lock")
    box = boxes("user")
    box.write("ws/a/x/tasks.json", "EVIL")
    go = box.home / "go"
    script = ("import os; print('up', flush=True)\n"
              "for new in ('a/.vscode', 'a/z'):\n"
              "    try: os.rename('a/x', new); print('done')\n"
              "    except OSError as e: print(e.strerror)\n")
    with box.start("/usr/bin/python3", "-c", script, options=["-q"],
                   env={"AMBIT_TEST_GO": str(go)}) as child:
        assert child.process.stdout.readline() == b"up\n"
        time.sleep(0.5)  # it waits now, in the broker
        where = box.ws / "a"
        if moved:
            where = (box.ws / "a").rename(box.home / "b")
        go.write_text("")
        r = child.wait()
    assert not (where / ".vscode").exists(), str(r)
    assert (where / "z").exists() != moved, str(r)
    gone = "No such file or directory"
    assert r.out.splitlines() == ([gone, gone] if moved else ["Permission denied", "done"]), str(r)


def test_control_without_sandbox(boxes, programs):
    wanted = {".claude/settings.json", ".git/hooks/pre-commit", "src/.bashrc", "src/.envrc"}
    found = attack_until(wanted.issubset, boxes("user"), programs, 1, seconds=2, sandbox=False)
    assert wanted <= set(found), found


def test_controls_are_of_all_ideas(boxes, programs):
    names = boxes("user").host(programs("attacker", "attacker.c"), "ideas").ok().out.split()
    assert set(names) == set(CONTROLS)


@pytest.mark.parametrize("idea", CONTROLS)
def test_control_of_one_idea(boxes, programs, idea):
    """Each idea works where nothing is guarded, alone, and its traces are there for the judge at the end.
    Nearly always at once; on a machine that is busy with other things, in one of three trees."""
    for _ in range(3):
        found = attack(boxes("user"), programs, 1, seconds=2, sandbox=False, ideas=[idea])
        if fnmatch.filter(found, CONTROLS[idea]):
            return
    pytest.fail(f"{CONTROLS[idea]} is not among {found}")


def test_judge_sees_an_empty_configuration(boxes):
    box = boxes("user")
    make_tree(box)
    assert judge(box.ws) == []
    (box.ws / ".git/config").write_text("")
    assert judge(box.ws) == [".git/config"]


def test_control_less_guarded(boxes, programs):
    """Inside, but with deeper directories granted by the kernel: found there, and only there."""
    wanted = {"src/.envrc", "src/.bashrc"}
    found = attack_until(wanted.issubset, boxes("user"), programs, 1, seconds=2,
                         options=[*OPTIONS, "--set", "filesystem.protect=anchors"])
    assert wanted <= set(found), found
    assert not [p for p in found if not p.startswith(("src/", "old/"))], found


def test_others_do_not_wait_for_reports(boxes):
    """Much to tell, and nobody who listens: the lock that all sandboxes share is free meanwhile."""
    box = boxes("user")
    for i in range(900):
        box.write(f"ws/d/{i:0100}/.envrc", "x")
    script = "mkdir n; echo up; read x; mv d e"  # with the first the broker is there
    with box.start("/bin/sh", "-c", script, options=["-q"]) as child:
        assert child.process.stdout.readline() == b"up\n"
        os.kill(child.process.pid, signal.SIGSTOP)
        try:
            child.process.stdin.write(b"\n")
            child.process.stdin.flush()
            assert ambit_test.wait_until((box.ws / "e").exists)
            started = time.monotonic()
            box.sh("ln -s x l", options=["-q"]).ok()
            took = time.monotonic() - started
        finally:
            os.kill(child.process.pid, signal.SIGCONT)
    assert took < 5, took
