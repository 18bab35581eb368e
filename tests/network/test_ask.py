# SPDX-License-Identifier: Apache-2.0
"""Hosts that no rule covers, asked about while the connection waits: --ask with --events-fd,
the person at the terminal, and the callback of libambit."""
import json
import os
import socket
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from ambit_test import AMBIT

TREE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests/run"))
from test_terminal import Terminal  # noqa: E402

CURL = "curl -sS -m 20 -o /dev/null -w '%{http_code}\\n' "


@pytest.fixture
def asked(net, box):
    """asked(command, answers, *options): the run's result, and the events. answers: host -> word."""
    def run(command, answers, *options):
        ours, theirs = socket.socketpair()
        events = []

        def listen():
            with ours.makefile("r") as f:
                for line in f:
                    event = json.loads(line)
                    events.append(event)
                    if event["event"] == "ask" and answers.get(event["host"]):
                        ours.sendall(f"{event['id']} {answers[event['host']]}\n".encode())
        thread = threading.Thread(target=listen)
        thread.start()
        box.options = []
        r = box.run("sh", "-c", command, options=[*options, "--ask", "--events-fd",
                                                  str(theirs.fileno())],
                    pass_fds=[theirs.fileno()])
        theirs.close()
        thread.join(10)
        ours.close()
        return r, events
    return run


def questions(events):
    return [(e["host"], e["port"]) for e in events if e["event"] == "ask"]


def test_allow_and_deny(net, asked):
    r, events = asked(f"{CURL} http://allowed.test/; {CURL} http://other.test/",
                      {"allowed.test": "run", "other.test": "no"})
    assert r.out.split() == ["200", "403"], r
    assert questions(events) == [("allowed.test", 80), ("other.test", 80)]
    assert not net.leaks(names=("allowed.test",))


def test_once_and_for_the_run(net, asked):
    _, events = asked(f"{CURL} http://allowed.test/; {CURL} http://allowed.test/",
                      {"allowed.test": "once"})
    assert len(questions(events)) == 2
    _, events = asked(f"{CURL} http://allowed.test/; {CURL} http://allowed.test/",
                      {"allowed.test": "run"})
    assert len(questions(events)) == 1


def test_what_is_denied_is_not_asked(net, asked):
    r, events = asked(f"{CURL} http://other.test/", {"other.test": "run"},
                      "--deny-domain", "other.test")
    assert r.out.split() == ["403"] and questions(events) == []


def test_without_an_asker_it_is_denied(net, box):
    """The command cannot answer for itself: an answer needs the descriptor."""
    box.options = []
    r = box.run("true", options=["--ask"])
    assert r.code == 125 and "--ask needs" in r.err


@pytest.fixture
def person(net, box):
    """person(command): ambit run --ask in a terminal of its own."""
    opened = []

    def start(command, *options):
        t = Terminal(box, [AMBIT, "run", "--ask", *options, "--", "bash", "-c", command])
        opened.append(t)
        return t
    yield start
    for t in opened:
        t.close()


def settings(box):
    return Path(box.env["HOME"]) / ".config/ambit/settings.json"


def changes(box):
    """What the audit log says about answers: (action, setting, value, scope)."""
    log = (box.state / "ambit/audit.jsonl").read_text().splitlines()
    return [(r["action"], r["setting"], r["value"], r["scope"]) for r in map(json.loads, log)
            if r["event"] == "policy-change" and r["by"] == "ask"]


def test_person_answers(person, net, box):
    t = person(f"{CURL} http://allowed.test/; {CURL} http://allowed.test/; {CURL} http://other.test/; "
               "read -p 'and you? ' x; echo got $x")
    t.see(r"no rule covers a connection to\s+allowed\.test:80\s+allow it ")
    t.line("r")
    for _ in range(3):  # in any order
        t.see("200|allowed for this run: allowed.test:80")
    t.see(r"other\.test:80")
    t.line("n")
    t.see("403")
    t.see("and you")
    t.line("me")  # the command has its terminal again
    t.see("got me")
    assert t.end() == 0
    assert not settings(box).exists() and not net.leaks(names=("allowed.test",))
    assert changes(box) == [("allow", "network.allowedDomains", "allowed.test:80", "run"),
                            ("deny", "network.allowedDomains", "other.test:80", "once")]


def test_person_says_always(person, box):
    settings(box).unlink(missing_ok=True)
    t = person(f"{CURL} http://allowed.test/")
    t.see(r"\[a\]lways")
    t.line("a")
    t.see("is allowed from now on")
    t.see("200")
    assert t.end() == 0
    assert json.loads(settings(box).read_text()) == {"network": {"allowedDomains": ["allowed.test:80"]}}
    assert ("allow", "network.allowedDomains", "allowed.test:80", "always") in changes(box)
    t = person(f"{CURL} http://allowed.test/")
    t.see("200")
    assert t.end() == 0 and "no rule covers" not in t.shown
    t = person(f"{CURL} http://allowed.test:8080/")  # another port was not asked about
    t.see(r"no rule covers a connection to\s+allowed\.test:8080")
    t.line("n")
    assert t.end() == 0
    settings(box).unlink()


def test_what_is_no_answer_is_asked_again(person, box):
    t = person("echo x > .envrc; echo y > .envrc; echo z > .envrc; echo end")
    t.see("allow it")
    for typed in ("", "?", "x" * 300 + "r", "  "):
        t.line(typed)
        t.see(r"o or y: once; r: for this run; a: always; n: not; e: never in this run\? ")
    t.line("  Yes")  # the least that is a yes
    t.see(r"allowed once: \S+/\.envrc")
    t.see("allow it")
    t.line("?")
    t.see("never in this run")
    t.type("\x04")  # nobody is there any more
    t.see("Permission denied")
    t.see("allow it")
    t.line("n")
    t.see("end")
    assert t.end() == 0 and (box.ws / ".envrc").read_text() == "x\n"


@pytest.mark.parametrize("script, told", [
    ("echo x > .envrc; rm .envrc", False), ("echo x > .envrc; mv .envrc other", False),
    ("mkdir .vscode; rmdir .vscode", False),
    ("echo x > sub/.envrc; rm sub/.envrc", True)], ids=["file", "moved", "directory", "control"])
def test_what_the_run_made_was_not_removed(person, box, script, told):
    """Only of what was there before is it news that it is gone."""
    box.write("ws/sub/.envrc", "old")
    t = person(script)
    t.see("allow it")
    t.line("r")
    assert t.end() == 0 and "allow it" not in t.shown
    assert ("removed protected names" in t.shown) == told, t.shown


def test_typed_ahead_is_no_answer(person):
    """What was typed before the question was meant for the command."""
    t = person(f"sleep 1; {CURL} http://allowed.test/; echo end")
    t.line("a")
    t.line("r")
    t.see("allow it")
    t.line("n")
    t.see("403"), t.see("end")
    assert t.end() == 0


def test_interrupt_at_the_question(person):
    t = person(f"trap 'echo interrupted' INT; {CURL} http://allowed.test/; echo end")
    t.see("allow it")
    t.type("\x03")
    t.see("end")
    assert t.end() == 0


@pytest.mark.parametrize("limit", ["timeout", "memory", "disk"])
def test_limits_hold_during_a_question(person, limit):
    """Nobody answers; meanwhile the command goes on, and comes to its limits."""
    work = {"timeout": ("3s", "trap '' TERM; sleep 30"),
            "memory": ("100m", "sleep 1; /usr/bin/python3 -c 'x = bytearray(b\"x\") * (500 << 20); "
                               "import time; time.sleep(30)'"),
            "disk": ("20m", "sleep 1; head -c 300m /dev/zero >&3; sleep 30")}[limit]
    t = person(f"exec 3> /dev/shm/a; ({work[1]}) & echo x > .envrc; wait", f"--{limit}", work[0])
    t.see("allow it")
    t.see(f"limit {limit} {work[0]} reached")
    assert t.end() == (124 if limit == "timeout" else 137)


def test_a_question_ends_with_who_asked(person):
    t = person("(sleep 1; kill -9 $$) & echo x > .envrc")
    t.see("allow it")
    assert t.end() == 137


def test_protected_name(person, box):
    """Asked about, and performed when the person says so; what a rule denies is not asked about."""
    t = person("echo x > .envrc; echo y > .envrc; echo z > denied; mkdir .vscode; echo done",
               "--deny-write", "denied")
    t.see(r"write to a protected name:\s+\S+/\.envrc")
    t.line("r")
    t.see(r"allowed for this run: \S+/\.envrc")
    t.see(r"denied: Permission denied")
    t.see(r"protected name:\s+\S+/\.vscode")
    t.line("n")
    t.see("done")
    assert t.end() == 0
    assert (box.ws / ".envrc").read_text() == "y\n"
    assert changes(box) == [("allow", "filesystem.unprotect", str(box.ws / ".envrc"), "run"),
                            ("deny", "filesystem.unprotect", str(box.ws / ".vscode"), "once")]
    assert not (box.ws / ".vscode").exists() and not (box.ws / "denied").exists()


@pytest.mark.parametrize("key", "or")
def test_protected_name_that_exists(person, box, key):
    """Also at the top, where no mount may stand in the way of what was allowed; nor does anything
    else become free by that."""
    box.write("ws/.envrc", "old\n")
    box.write("ws/.mcp.json", "old\n")
    t = person("echo new > .envrc; echo status $?; echo new > .mcp.json; echo done")
    t.see(r"write to a protected name:\s+\S+/\.envrc")
    t.line(key)
    t.see("status 0")
    t.see(r"protected name:\s+\S+/\.mcp\.json")
    t.line("n")
    t.see("done")
    assert t.end() == 0
    assert (box.ws / ".envrc").read_text() == "new\n"
    assert (box.ws / ".mcp.json").read_text() == "old\n"


@pytest.mark.parametrize("moved", [False, True], ids=["control", "moved"])
def test_a_place_that_moves_during_the_question(net, box, moved):
    """What was allowed is a path: when its directory is another by then, nothing is written."""
    (box.ws / "d").mkdir()
    os.chown(box.ws / "d", box.who.uid, box.who.gid)
    ours, theirs = socket.socketpair()

    def listen():
        with ours.makefile("r") as f:
            for line in f:
                event = json.loads(line)
                if event["event"] == "ask":
                    if moved:
                        (box.ws / "d").rename(box.ws / "e")
                    ours.sendall(f"{event['id']} once\n".encode())
    thread = threading.Thread(target=listen)
    thread.start()
    box.options = []
    box.run("sh", "-c", "cd d; echo x > .envrc", options=["--ask", "--events-fd",
                                                          str(theirs.fileno())],
            pass_fds=[theirs.fileno()])
    theirs.close()
    thread.join(10)
    ours.close()
    assert [p.parent.name for p in box.ws.glob("*/.envrc")] == ([] if moved else ["d"])


def test_hooks_are_not_asked_about(person, box):
    box.execute(["git", "init", "-q", "."]).ok()
    t = person("echo x > .git/hooks/post-commit; echo done")
    t.see("Permission denied")
    t.see("done")
    assert t.end() == 0 and "allow it" not in t.shown


def test_library_callback(net, box):
    library = Path(AMBIT).resolve().parents[2] / "src/api/libambit.so"
    if not library.exists():
        library = next(Path(AMBIT).resolve().parents[1].glob("lib*/**/libambit.so"))
    program = f"""
        import sys; sys.path.insert(0, {str(TREE / 'examples')!r})
        from shell_node import *
        asked = []
        def ask(ctx, host, port):
            asked.append((host.decode(), port))
            return 2 if host == b"allowed.test" else 0
        lib, error, result = load(), Error(), Result(size=ctypes.sizeof(Result))
        callback = OnAsk(ask)
        spawn = Spawn(size=ctypes.sizeof(Spawn), ask=callback, stdin_fd=-1, stdout_fd=-1, stderr_fd=-1,
                      shell=rb"{CURL} http://allowed.test/; {CURL} http://other.test/")
        process, config = c_void_p(), lib.ambit_config_new()
        assert lib.ambit_spawn(config, byref(spawn), byref(process), byref(error)) == 0, error.text
        lib.ambit_process_wait(process, -1, byref(result), byref(error))
        print(asked)
    """
    r = box.execute(["/usr/bin/python3", "-B", "-c", textwrap.dedent(program)],
                    env={"LIBAMBIT": str(library)})
    lines = r.ok().out.splitlines()
    assert lines == ["200", "403", "[('allowed.test', 80), ('other.test', 80)]"], r
    assert not net.leaks(names=("allowed.test",))
    assert os.path.exists(library)
