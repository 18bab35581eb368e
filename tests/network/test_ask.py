# SPDX-License-Identifier: Apache-2.0
"""Hosts that no rule covers, asked about while the connection waits: --ask with --events-fd,
and the callback of libambit."""
import json
import os
import socket
import textwrap
import threading
from pathlib import Path

import pytest

from ambit_test import AMBIT

TREE = Path(__file__).resolve().parents[2]
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
