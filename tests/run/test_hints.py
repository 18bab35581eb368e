# SPDX-License-Identifier: Apache-2.0
"""Every hint works as it is printed: provoke a denial, take the hint out of the report, use it
word for word, and what was denied succeeds."""
import json
import re
import shlex
import socket
import urllib.request

import pytest

# name -> (how to prepare, the attempt, options that provoke it)
WRITES = {
    "change": ("echo old > ~/out/f", "echo new > ~/out/f"),
    "append": ("echo old > ~/out/f", "echo new >> ~/out/f"),
    "make": (":", "echo new > ~/out/made"),
    "make-directory": (":", "mkdir ~/out/dir"),
    "link": (":", "ln -s x ~/out/link"),
    "remove": ("echo old > ~/out/f", "rm ~/out/f"),
    "remove-directory": ("mkdir -p ~/out/d", "rmdir ~/out/d"),
    "rename": ("echo old > ~/out/f", "mv ~/out/f ~/out/g"),
    "mode": ("echo old > ~/out/f", "chmod 700 ~/out/f"),
    "times": ("echo old > ~/out/f", "touch -d 2001-01-01 ~/out/f"),
    "odd-name": ("echo old > ~/out/\"a 'b\"", "echo new > ~/out/\"a 'b\""),
    "pattern-name": ("mkdir -p ~/out/'[id]*' && echo old > ~/out/'[id]*'/'a?b\\c'",
                     "echo new > ~/out/'[id]*'/'a?b\\c'"),
    "pattern-directory": ("mkdir ~/out/'[slug]'", "echo new > ~/out/'[slug]'/made"),
    "comma": ("echo old > ~/out/a,b", "echo new > ~/out/a,b"),
    "dash-and-space": ("mkdir ~/out/'-x y'", "echo new > ~/out/'-x y'/made"),
    "protected": (":", "echo x > .envrc"),
    "protected-directory": (":", "mkdir .vscode && echo x > .vscode/tasks.json"),
    "git-configuration": ("git init -q .", "git config core.pager evil"),
}


def denied(box, script, options=()):
    r = box.sh(script, options=[*options, "--report", "report.json"])
    report = json.loads((box.ws / "report.json").read_text())
    return r, report["violations"]


def take_hints(box, script, options=()):
    """Follow the hints until nothing is denied any more; the last run."""
    used = list(options)
    for _ in range(4):
        r, violations = denied(box, script, used)
        if not violations:
            return r, used[len(options):]
        hints = {v["hint"] for v in violations}
        assert None not in hints, violations
        for h in hints:
            used += shlex.split(h)
    pytest.fail(f"still denied with {used}: {violations}")


@pytest.mark.parametrize("name", WRITES)
def test_writes(box, name):
    prepare, attempt = WRITES[name]
    box.mkdir("out")
    box.host("/bin/sh", "-c", prepare).ok()
    r, violations = denied(box, attempt)
    assert r.code != 0 and violations, r
    # the same words are on stderr
    assert f"(allow with: {violations[0]['hint']})" in r.err, r
    r, _ = take_hints(box, attempt)
    assert r.code == 0, r


def test_read(box):
    box.write(".ssh/a key", "KEY-text")
    script = "cat ~/.ssh/'a key'"
    r, used = take_hints(box, script, ["--report-reads"])
    assert r.code == 0 and r.out == "KEY-text" and "--allow-read" in used


def test_read_of_a_name_with_pattern_characters(box):
    box.write(".ssh/[a]*", "KEY-text")
    r, used = take_hints(box, "cat ~/.ssh/'[a]*'", ["--report-reads"])
    assert r.out == "KEY-text" and used == ["--allow-read", f"{box.home}/.ssh/\\[a]\\*"], used


def test_what_cannot_be_typed_is_no_hint(box):
    """A name with control bytes is shown escaped: as words for a shell that would not work."""
    box.mkdir("out")
    box.mkdir("out/a\033b")
    r, violations = denied(box, "echo x > ~/out/\"$(printf 'a\\033b')\"/f")
    assert "denied write" in r.err and "allow with" not in r.err, r
    # the machine form has the very words
    r, _ = take_hints(box, "echo x > ~/out/\"$(printf 'a\\033b')\"/f")
    assert r.code == 0, r


def test_read_denied_by_the_settings(box):
    box.write("private/f", "TEXT")
    box.write(".config/ambit/settings.json", '{"filesystem": {"denyRead": ["~/private"]}}')
    r, _ = take_hints(box, "cat ~/private/f", ["--report-reads"])
    assert r.out == "TEXT"


def test_no_hint_where_none_helps(box):
    """Hooks of git, what was just denied by an option, ambit's own records."""
    box.host("git", "init", "-q", ".").ok()
    _, violations = denied(box, "echo x > .git/hooks/pre-commit")
    assert [v["hint"] for v in violations] == [None]
    box.write("private", "TEXT")
    _, violations = denied(box, "cat ~/private", ["--report-reads", "--deny-read", "~/private"])
    assert [v["hint"] for v in violations] == [None]
    box.run("true", env={"XDG_STATE_HOME": None}).ok()
    box.env.pop("XDG_STATE_HOME")
    _, violations = denied(box, "cat ~/.local/state/ambit/audit.jsonl", ["--report-reads"])
    assert [v["hint"] for v in violations] == [None]


def test_unix_socket(box):
    with socket.socket(socket.AF_UNIX) as s:
        path = box.home / "a service.sock"
        s.bind(str(path))
        path.chmod(0o777)
        s.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({str(path)!r})"
        r, used = take_hints(box, f"/usr/bin/python3 -c {shlex.quote(code)}")
        assert r.code == 0 and "--allow-unix" in used


def test_listen(box):
    code = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 8080)); s.listen()"
    script = f"/usr/bin/python3 -c {shlex.quote(code)}"
    r, _ = take_hints(box, script, ["--set", "network.allowLocalBinding=false"])
    assert r.code == 0, r


def test_time_limit(box):
    r, violations = denied(box, "sleep 1.2", ["--timeout", "1s"])
    assert r.code == 124 and violations[0]["kind"] == "limit"
    r, _ = denied(box, "sleep 1.2", ["--timeout", "1s", *shlex.split(violations[0]["hint"])])
    assert r.code == 0, r


@pytest.mark.parametrize("limit, value, script", [
    ("memory", "96m", "/usr/bin/python3 -c 'x = bytearray(b\"x\") * (100 << 20); import time; time.sleep(1)'"),
    ("pids", "12", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do sleep 1 & done; wait"),
    ("disk", "32m", "head -c 40000000 /dev/zero > /tmp/a; sleep 1; rm /tmp/a"),
    ("output", "100k", "head -c 150000 /dev/zero")])
def test_limits(box, limit, value, script):
    """Twice as much was enough here; the option that is printed comes last and wins."""
    r, violations = denied(box, script, [f"--{limit}", value])
    assert r.code != 0 and [v["kind"] for v in violations] == ["limit"], r
    assert f"(raise with: {violations[0]['hint']})" in r.err
    r, violations = denied(box, script, [f"--{limit}", value, *shlex.split(violations[0]["hint"])])
    assert r.code == 0 and violations == [], r


# --- errors and notes that name a command ------------------------------------------------------

def advised(text, pattern):
    found = re.search(pattern, text)
    assert found, text
    return shlex.split(found[1])


def test_trust(box):
    project = box.mkdir("a project")
    box.write("a project/.ambit.json", '{"filesystem": {"allowWrite": ["~/more"]}}')
    box.mkdir("more")
    r = box.sh("echo x > ~/more/f", cwd=project)
    words = advised(r.err, r"\(accept with: ambit (.*?)\)\n")
    assert box.ambit(*words, cwd=project).code == 0
    assert box.sh("echo x > ~/more/f", cwd=project).code == 0


def test_unknown_command(box):
    r = box.ambit("printenv")
    assert r.code == 125
    assert box.ambit(*advised(r.err, r"in the sandbox: ambit (.*)\n")).code == 0
    r = box.ambit("polcy")
    assert box.ambit(*advised(r.err, r"did you mean: ambit (\w+)\?")).code == 0


def test_unknown_option_and_setting(box):
    r = box.ambit("run", "--alow-write", ".", "--", "true")
    assert box.ambit("run", *advised(r.err, r"did you mean (--\S+)\?"), ".", "--", "true").code == 0
    r = box.run("true", options=["--set", "filesystem.alowWrite=."])
    key = advised(r.err, r'did you mean "([\w.]+)"\?')[0]
    assert box.run("true", options=["--set", f"{key}=."]).code == 0


def test_explain(box):
    for question in (("write", "/etc/hosts"), ("read", str(box.home / ".ssh/id")),
                     ("connect", "example.com")):
        a = json.loads(box.ambit("explain", "--json", *question).out)
        r = box.ambit("explain", *shlex.split(a["hint"]), *question)
        assert r.code == 0, r


def test_learn_says_how_to_use_it(box):
    r = box.ambit("learn", "-o", "a policy.yaml", "--", "sh", "-c", "mkdir ~/.t; echo 1 > ~/.t/x").ok()
    words = advised(r.err, r"use them with: ambit (.*) -- COMMAND")
    assert box.ambit(*words, "--", "sh", "-c", "echo 2 > ~/.t/x").code == 0


def test_learn_again(box):
    box.ambit("learn", "-o", "p.yaml", "--", "true").ok()
    r = box.ambit("learn", "-o", "p.yaml", "--", "true")
    assert r.code == 125 and "use --update to add to it" in r.err
    box.ambit("learn", "--update", "p.yaml", "--", "true").ok()


def test_what_learn_says_of_a_server(box):
    """The line about its port: given to a run, the port is reached from outside."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    code = ("import http.server, sys, threading, time\n"
            f"s = http.server.HTTPServer(('127.0.0.1', {port}), http.server.SimpleHTTPRequestHandler)\n"
            "threading.Thread(target=s.serve_forever, daemon=True).start()\n"
            "print('up', flush=True); time.sleep(float(sys.argv[1]))")
    text = box.ambit("learn", "--", "/usr/bin/python3", "-c", code, "1.5").out
    options = [w for line in re.findall(r"(?m)^#   (--.*?) # ", text) for w in shlex.split(line)]
    assert options == ["--set", f"network.publish={port}"], text
    with box.start("/usr/bin/python3", "-c", code, "20", options=options) as child:
        assert child.process.stdout.readline() == b"up\n"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            assert answer.status == 200


def test_what_learn_lists(box):
    """Lines of the policy that begin with an option: given to the next lesson they are allowed."""
    box.write(".ssh/id", "KEY-text")
    script = "cat ~/.ssh/id; echo x > .envrc"
    text = box.ambit("learn", "--", "sh", "-c", script).out
    options = [w for line in re.findall(r"(?m)^#   (--.*?) # ", text) for w in shlex.split(line)]
    assert "--allow-read" in options and "filesystem.unprotect=.envrc" in options, text
    r = box.ambit("learn", *options, "--", "sh", "-c", script).ok()
    assert "KEY-text" in r.err and "# Not learned" not in r.out, r
