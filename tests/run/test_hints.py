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
    "git-hooks": ("git init -q .", "echo x > .git/hooks/pre-commit"),
    "git-commondir": ("git init -q .", "echo .. > .git/commondir"),
    "directory-in-home": (":", "mkdir -p ~/.npm && echo x > ~/.npm/x"),
    "directories-in-home": (":", "mkdir -p ~/.npm/a/b && echo x > ~/.npm/a/b/x"),
    "file-in-home": ("echo x > ~/f", "echo x >> ~/f"),
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


def test_a_new_directory_is_named_itself(box):
    """Not the directory that it is made in: others keep theirs there."""
    box.mkdir(".cache")
    for attempt in ("mkdir ~/.cache/tool", "mkdir -p ~/.cache/tool/a/b"):
        _, violations = denied(box, attempt)
        assert violations[0]["hint"] == f"--allow-write {box.home}/.cache/tool", violations


def test_each_key_of_git_is_told(box):
    """Denials of one file for different reasons are different."""
    box.sh("git init -q").ok()
    _, violations = denied(box, "git config core.editor vi; git config alias.x '!e'; git config core.editor vi")
    told = [(v["reason"].split(":")[0], v["count"]) for v in violations]
    assert told == [("git configuration key core.editor", 2), ("git configuration key alias.x", 1)], violations


def test_read(box):
    box.write(".ssh/a key", "KEY-text")
    script = "cat ~/.ssh/'a key'"
    r, used = take_hints(box, script, ["--report-reads"])
    assert r.code == 0 and r.out == "KEY-text" and "--allow-read" in used


def test_read_of_what_is_not_there(box):
    """Nobody was denied anything; what is there beside it is told."""
    box.write(".ssh/there", "KEY-text")
    _, violations = denied(box, "cat ~/.ssh/id_rsa ~/.npmrc ~/.ssh/there/x ~/.ssh/there", ["--report-reads"])
    assert [v["target"] for v in violations] == [f"{box.home}/.ssh/there"], violations


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
    """What was just denied by an option, ambit's own records."""
    box.write("private", "TEXT")
    _, violations = denied(box, "cat ~/private", ["--report-reads", "--deny-read", "~/private"])
    assert [v["hint"] for v in violations] == [None]
    box.run("true", env={"XDG_STATE_HOME": None}).ok()
    box.env.pop("XDG_STATE_HOME")
    _, violations = denied(box, "cat ~/.local/state/ambit/audit.jsonl", ["--report-reads"])
    assert [v["hint"] for v in violations] == [None]


@pytest.mark.parametrize("attempt", [
    "echo x > ~/new", "mv ~/f ~/g", "rm ~/f", "chmod 711 ~", "echo x > /proc/sys/kernel/hostname",
    "mkdir /sys/x", "echo x > /sys/kernel/x"])
def test_no_hint_opens_too_much(box, attempt):
    """Not the whole home for the sake of a file in it; and the kernel's own are not to be had."""
    box.write("f", "old")
    r, violations = denied(box, attempt)
    assert r.code and violations, r
    assert all(v["hint"] is None for v in violations) and "allow with" not in r.err, violations


def test_no_hint_where_the_permissions_refuse(plain):
    for attempt in ("echo x >> /etc/hosts", "echo x > /etc/ambit-x", "rm /etc/hosts",
                    "chmod 777 /etc/hosts", "mkdir -p /ambit-x"):
        r, violations = denied(plain, attempt)
        assert r.code and [v["hint"] for v in violations] == [None], violations


def test_no_hint_for_root_in_the_files_of_others(rooted):
    """Inside root has no rights over them."""
    rooted.mkdir("out").chmod(0o755)
    rooted.host("chown", "65534", str(rooted.home / "out")).ok()
    r, violations = denied(rooted, "echo x > ~/out/x")
    assert r.code and [v["hint"] for v in violations] == [None], violations


def test_worktree(box):
    """One hint is enough, and it is the git directory."""
    box.host("sh", "-c", "git init -q ~/repo && cd ~/repo && git config user.name a && "
             "git config user.email a@b && git commit -q --allow-empty -m one && "
             "git worktree add -q ~/wt").ok()
    script = "cd ~/wt && echo x > a && git add a && git commit -qm two"
    options = ["--chdir", f"{box.home}/wt"]
    r, violations = denied(box, script, ["--allow-write", "~/wt"])
    assert r.code and {v["hint"] for v in violations} == {f"--allow-write {box.home}/repo/.git"}, violations
    r, _ = denied(box, script, ["--allow-write", "~/wt", *shlex.split(violations[0]["hint"])])
    assert r.code == 0, r
    a = json.loads(box.ambit("explain", *options, "--json", "write", "~/repo/.git/objects/x").out)
    assert a["hint"] == f"--allow-write {box.home}/repo/.git", a


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
    r, violations = denied(box, "sleep 2.2", ["--timeout", "2s"])
    assert r.code == 124 and violations[0]["kind"] == "limit"
    r, _ = denied(box, "sleep 2.2", ["--timeout", "2s", *shlex.split(violations[0]["hint"])])
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
    box.write("f", "old")
    box.mkdir("out")
    box.mkdir("ws/.git/hooks")
    for question in (("write", "~/f"), ("read", str(box.home / ".ssh/id")), ("write", "~/.npm/a/b"),
                     ("write", "~/out/new"), ("write", "~/.npm/"), ("write", ".git/hooks/x"),
                     ("write", ".git/config"), ("connect", "example.com")):
        a = json.loads(box.ambit("explain", "--json", *question).out)
        r = box.ambit("explain", *shlex.split(a["hint"]), *question)
        assert r.code == 0, r


def test_explain_says_what_the_run_says(box):
    """The same words, and none where the run has none."""
    box.write("f", "old")
    box.mkdir("out")
    box.mkdir("out/a\nb")
    box.host("git", "init", "-q", ".").ok()
    box.host("git", "init", "-q", "--bare", ".git/modules/m").ok()
    for target in (".git/modules/m/hooks/x", ".git/modules/m/commondir", ".git/modules/m/config"):
        a = json.loads(box.ambit("explain", "--json", "write", target).out)
        _, violations = denied(box, f"echo x >> {target}")
        assert [v["hint"] for v in violations] == [a["hint"]], target
        assert box.ambit("explain", *shlex.split(a["hint"]), "write", target).code == 0
        box.sh(f"echo x >> {target}", options=shlex.split(a["hint"])).ok()
    for target in ("~/f", "~/new", "~/out/new", "/etc/hosts", "/proc/sys/kernel/hostname",
                   ".git/hooks/pre-commit", ".git/config", ".envrc"):
        a = json.loads(box.ambit("explain", "--json", "write", target).out)
        _, violations = denied(box, f"echo x >> {target}")
        assert [v["hint"] for v in violations] == [a["hint"]], target
    r = box.ambit("explain", "write", f"{box.home}/out/a\nb/f")
    assert r.code == 1 and "allow with" not in r.out, r
    r = box.ambit("explain", "write", "~/new")
    assert r.code == 1 and "allow with" not in r.out, r


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


@pytest.mark.parametrize("name, denied", [
    ("config", True), ("config.worktree", True), ("hooks/post-update", True), ("hooks", True),
    ("hooks/new/x", True), ("hooks/x.sample", False), ("commondir", True), ("HEAD", False),
    ("description", False), ("new/file", False)])
def test_explain_knows_bare_repositories(box, name, denied):
    """Whatever they are called: what a directory is says its content."""
    box.host("git", "init", "-q", "--bare", "served").ok()
    target = f"served/{name}"
    write = f'mkdir -p "$(dirname {target})" && if [ -d {target} ]; then echo x > {target}/f; else echo x > {target}; fi'
    assert (box.sh(write).code != 0) == denied
    a = json.loads(box.ambit("explain", "--json", "write", target).out)
    assert (a["verdict"] == "denied") == denied, a
    if a["hint"]:
        hint = shlex.split(a["hint"])
        assert box.ambit("explain", *hint, "write", target).code == 0
        box.sh(write, options=hint).ok()
    assert not denied or a["hint"], a


PROC = [(["--allow-write", "/proc/sys"], 125), (["--allow-write", "/proc"], 125),
        (["--allow-read", "/proc/sys"], 0), (["--deny-read", "/proc/uptime"], 1),
        (["--deny-read", "/proc/upt*"], 1), (["--deny-read", "/proc/self/environ"], 125),
        (["--deny-read", "/proc/*/environ"], 0), (["--deny-write", "/proc/sys"], 0)]


@pytest.mark.parametrize("options, code", PROC)
def test_rules_about_proc(box, options, code):
    """It is the sandbox's own: what a rule cannot do there is refused, by both."""
    assert box.run("cat", "/proc/uptime", options=options).code == code
    r = box.ambit("explain", *options, "read", "/proc/uptime")
    assert r.code == code, str(r)
    if code != 125:
        assert box.ambit("explain", *options, "write", "/proc/sys/kernel/hostname").code == 1


def test_nothing_of_proc_is_hidden_without_namespaces(box):
    r = box.run("true", options=["--backend", "landlock", "--deny-read", "/proc/uptime"])
    assert r.code == 125 and "/proc" in r.err, str(r)
