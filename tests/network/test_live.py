# SPDX-License-Identifier: Apache-2.0
"""The network lists, changed while the command runs: --control-fd."""
import contextlib
import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from ambit_test import wait_until

PYTHON = "/usr/bin/python3"
TALKER = Path(__file__).parent / "probes/talker.py"


def lists(*allowed, denied=(), **more):
    return json.dumps({"network": {"allowedDomains": allowed, "deniedDomains": denied}, **more})


class Talk:
    """A run with the talker inside and a pipe as its control descriptor."""

    def __init__(self, child, pipe):
        self.child, self.pipe = child, pipe

    def __call__(self, *what):
        self.child.process.stdin.write(json.dumps(what).encode() + b"\n")
        self.child.process.stdin.flush()
        answer = self.child.process.stdout.readline()
        assert answer, self.child.process.stderr.read()
        return json.loads(answer)

    def line(self, text):
        os.write(self.pipe, text.encode() + b"\n")

    def becomes(self, wanted, *what):
        """The answer is `wanted`, at once or soon."""
        seen = []
        assert wait_until(lambda: (seen.append(self(*what)), seen[-1] == wanted)[1], 20, 0.05), seen

    def end(self):
        self.child.process.stdin.close()
        self.child.process.stdin = None
        return self.child.wait()


@pytest.fixture
def talk(net, box):
    """talk(options) -> Talk, as a context."""
    probe = box.write("talker.py", TALKER.read_bytes())

    @contextlib.contextmanager
    def start(*options):
        read, write = os.pipe()
        box.options = []
        with box.start(PYTHON, probe, options=[*options, "--control-fd", str(read)],
                       pass_fds=[read]) as child:
            os.close(read)
            try:
                yield Talk(child, write)
            finally:
                os.close(write)

    return start


def test_lists_follow_at_once(net, talk):
    with talk() as t:
        assert t("resolve", "allowed.test") == "no such name"
        t.line(lists("allowed.test", "dual.test"))
        t.becomes(200, "proxy", "allowed.test", 8443)
        kept, cut = t("open", "dual.test", 7), t("open", "allowed.test", 7)
        assert t("hear", kept) and t("hear", cut)  # the server speaks first
        assert t("say", kept, "a") == "a" and t("say", cut, "b") == "b"
        t.line(lists("dual.test", "other.test"))
        assert t("hear", cut) == "ECONNRESET"
        assert t("resolve", "allowed.test") == "no such name"
        assert t("proxy", "allowed.test", 8443) == 403
        assert t("say", kept, "still there") == "still there"
        assert t("proxy", "other.test", 8443) == 200
        # a deny rule cuts as well, by name and by the address behind it
        t.line(lists("dual.test", "other.test", denied=["dual.test"]))
        assert t("hear", kept) == "ECONNRESET"
        to = t("open", "other.test", 7)
        assert t("hear", to)
        t.line(lists("other.test", denied=["11.2.2.2", "2a0b:99::2"]))
        assert t("hear", to) == "ECONNRESET"
        # nothing at all
        t.line("{}")
        t.becomes(403, "proxy", "other.test", 8443)
        r = t.end()
    assert r.code == 0
    assert "no longer allowed" in r.err
    assert not net.leaks(("allowed.test", "dual.test", "other.test"))


def test_what_was_allowed_elsewhere_stays(net, box, talk):
    box.write("extra", "v6.test\n")
    with talk("--allow-domain", "allowed.test", "--allow-domain", f"@{box.home}/extra") as t:
        t.line(lists("other.test"))
        t.becomes(200, "proxy", "other.test", 8443)
        assert t("proxy", "allowed.test", 8443) == 200
        # the command may have written there meanwhile
        box.write("extra", "evil.test\n")
        t.line(lists("dual.test"))
        t.becomes(200, "proxy", "dual.test", 8443)
        assert t("proxy", "evil.test", 8443) == 403
        assert t("proxy", "v6.test", 8443) == 200
    assert not net.leaks(("allowed.test", "dual.test", "other.test", "v6.test"))


@pytest.mark.parametrize("text,message", [
    ('{"network": {"allowedDomains": ["other.test"', "control fd"),
    ('{"network": {"allowedDomains": "other.test"}}', "must be a list"),
    ('{"network": {"allowedDomain": ["other.test"]}}', "did you mean"),
    ('["s3cret"]', "control fd"),
    ("s3cret \x1b[31m", "control fd"),
    (lists("other.test", filesystem={"allowWrite": ["/"]}),
     "filesystem.allowWrite cannot change while the command runs"),
    (lists("other.test", network2={}), "unknown key"),
    ('{"network": {"allowedDomains": ["other.test"], "mode": "host"}}',
     "network.mode cannot change"),
])
def test_a_bad_line_changes_nothing(net, talk, text, message):
    with talk("--allow-domain", "allowed.test") as t:
        t.line("  \t ")
        t.line(text)
        t.line("")
        t.line(lists("v6.test"))
        t.becomes(200, "proxy", "v6.test", 8443)
        assert t("proxy", "other.test", 8443) == 403
        assert t("proxy", "allowed.test", 8443) == 200
        r = t.end()
    assert r.code == 0
    assert message in r.err and "the network lists stay as they are" in r.err, r.err
    assert re.search(r"control fd \d+:2:\d+: ", r.err), r.err
    assert r.err.count("stay as they are") == 1, r.err
    assert "\x1b" not in r.err
    assert not net.leaks(("allowed.test", "v6.test"))


def test_whole_settings_files_as_lines(net, box, talk):
    def whole(*allowed):
        return lists(*allowed, filesystem={"denyRead": ["~/x"], "allowWrite": ["."],
                                           "denyWrite": ["y"]})

    box.write("settings.json", whole("allowed.test"))
    with talk("-s", f"{box.home}/settings.json") as t:
        assert t("proxy", "allowed.test", 8443) == 200
        t.line(whole("other.test"))
        t.becomes(200, "proxy", "other.test", 8443)
        assert t("proxy", "allowed.test", 8443) == 403
        assert "stay as they are" not in t.end().err


def test_no_network_cannot_be_widened(net, talk):
    with talk("--network", "none") as t:
        t.line(lists("allowed.test"))
        time.sleep(0.3)
        assert t("open", "11.1.1.1", 7) in ("ENETUNREACH", "ECONNREFUSED")
        r = t.end()
    assert "network.mode is none for the whole run (--network)" in r.err
    assert not net.leaks(())


def test_the_command_never_sees_it(net, talk):
    with talk("--allow-domain", "allowed.test") as t:
        assert t("proxy", "allowed.test", 8443) == 200  # the proxy and the broker run
        assert t("fds") == [0, 1, 2, 3]  # 3 is the listing itself
        pipe = os.readlink(f"/proc/self/fd/{t.pipe}")
        seen = [p for p in Path("/proc").glob("[0-9]*/fd/*")
                if not p.is_relative_to(f"/proc/{os.getpid()}") and _link(p) == pipe]
        assert {p.parts[2] for p in seen} == {str(t.child.process.pid)}, seen


def _link(path):
    with contextlib.suppress(OSError):
        return os.readlink(path)


@pytest.mark.parametrize("kind", ["file", "fifo", "closed pipe"])
def test_kinds_of_descriptors(net, box, kind):
    """Lines that are there before the command starts count from its first instruction."""
    text = "\n" + lists("other.test") + "\n" + lists("allowed.test")
    path = box.write("lines", text if kind == "file" else "")
    if kind == "fifo":
        path.unlink()
        os.mkfifo(path)
        fd = os.open(path, os.O_RDWR)
        os.write(fd, (text + "\n").encode())
    elif kind == "closed pipe":
        fd, end = os.pipe()
        os.write(end, text.encode())
        os.close(end)
    else:
        fd = os.open(path, os.O_RDONLY)
    box.options = []
    started = time.monotonic()
    r = box.sh("cat; curl -sS http://allowed.test/; curl -sS http://other.test/", input="stdin\n",
               options=["--control-fd", str(fd)], pass_fds=[fd])
    os.close(fd)
    assert r.out.startswith("stdin\n") and "allowed.test" in r.out, str(r)
    assert "denied connect to other.test:80" in r.err
    assert time.monotonic() - started < 15
    assert not net.leaks()


@pytest.mark.parametrize("kind", ["not open", "write only", "directory", "standard", "word",
                                  "negative", "twice"])
def test_what_cannot_be_read_is_refused(net, box, kind):
    read, write = os.pipe()
    directory = os.open(box.home, os.O_RDONLY)
    given = {"not open": "97", "write only": str(write), "directory": str(directory),
             "standard": "2", "word": "three", "negative": "-3", "twice": str(read)}[kind]
    options = ["--control-fd", given] * (2 if kind == "twice" else 1)
    r = box.run("touch", "made", options=options, pass_fds=[read, write, directory])
    for fd in (read, write, directory):
        os.close(fd)
    assert r.code == 125, str(r)
    assert "--control-fd" in r.err
    assert not (box.ws / "made").exists()


def test_a_report_file_is_not_taken_for_it(net, box):
    """A descriptor that ambit opens itself does not become the control descriptor."""
    r = box.run("true", options=["--report", "report.json", "--control-fd", "3"])
    assert r.code == 125 and "no such descriptor" in r.err


def test_a_line_without_end_is_bounded(net, box):
    read, write = os.pipe()
    p = subprocess.Popen([PYTHON, "-c", "import os, sys\nwhile 1: os.write(1, b'x' * 65536)"],
                         stdout=write)
    os.close(write)
    r = box.sh("sleep 1", options=["--control-fd", str(read)], pass_fds=[read])
    os.close(read)
    p.wait(5)
    assert r.code == 0
    assert r.err.count(":1: the line is too long") == 1, r.err
