# SPDX-License-Identifier: Apache-2.0
"""The command line: CONTRACT sections 2 to 4. What is refused must be refused before anything
runs: `touch canary` is the command wherever a refusal is expected."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from ambit_test import AMBIT

CANARY = ["touch", "canary"]


def refused(box, *args, says=(), command=True, code=125, **kw):
    """ambit run ARGS is refused with one clear line, and nothing was run."""
    r = box.ambit(*args, *(["--", *CANARY] if command else []), **kw)
    assert r.code == code, str(r)
    assert r.out == "", str(r)
    assert r.err.startswith("ambit: ") and r.err.endswith("\n"), str(r)
    for text in [says] if isinstance(says, str) else says:
        assert text in r.err, str(r)
    assert not list(box.home.rglob("canary")), "the command was run"
    return r


# --- exit codes ------------------------------------------------------------------------

@pytest.mark.parametrize("status", [0, 1, 2, 42, 124, 125, 126, 127, 128, 137, 255])
def test_own_status(box, status):
    r = box.sh(f"exit {status}")
    assert r.code == status and r.err == "", str(r)


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV", "ABRT", "HUP", "INT", "USR1", "PIPE"])
def test_death_by_signal(plain, name):
    r = plain.sh(f"kill -{name} $$; sleep 5")
    assert r.code == 128 + getattr(signal, "SIG" + name), str(r)


@pytest.mark.parametrize("command", ["no-such-program", "./missing", "/no/such/file", "dir/none"])
def test_not_found_is_127(box, command):
    refused(box, "run", "--", command, says=[command, "not found"], command=False, code=127)


def test_not_found_behind_a_closed_directory(box):
    """A directory on PATH that cannot be searched has nothing to be executed."""
    closed = box.mkdir("closed")
    closed.chmod(0)
    box.env["PATH"] = f"{closed}:/usr/bin:/bin"
    refused(box, "run", "--", "no-such-program", says="not found", command=False, code=127)


def test_called_as_claude_sandbox(plain):
    link = plain.home / "claude-sandbox"
    link.symlink_to(AMBIT)
    r = plain.execute([link, "run", "--", *CANARY])
    assert r.code == 125 and "whole agents" in r.err and not (plain.ws / "canary").exists(), r


def test_empty_command_is_127(plain):
    refused(plain, "run", "--", "", command=False, code=127)


def test_not_executable_is_126(box):
    box.write("ws/data", "text\n")
    box.mkdir("ws/dir")
    box.write("ws/broken", b"\x7fELF garbage", mode=0o755)
    for name in ("./data", "./dir", "/etc"):
        refused(box, "run", "--", name, says=name, command=False, code=126)
    r = box.run("./broken")
    assert r.code in (126, 127), str(r)  # sh tries to read it: what it makes of it is its own


def test_missing_interpreter(box):
    """The kernel says ENOENT; the file is there, so the message must not deny that."""
    box.write("ws/script", "#!/no/such/interpreter\n", mode=0o755)
    r = refused(box, "run", "--", "./script", command=False, code=126)
    assert "interpreter" in r.err, str(r)


def test_missing_interpreter_heard_late(plain):
    """A supervisor that had to wait hears of everything at once, and says the same."""
    plain.write("ws/script", "#!/no/such/interpreter\n", mode=0o755)
    for i in range(40):
        with plain.start("./script", options=["--allow-domain", "a.test"] if i % 2 else []) as child:
            time.sleep(0.0015 + i * 0.0002)
            child.process.send_signal(signal.SIGSTOP)
            time.sleep(0.08)
            child.process.send_signal(signal.SIGCONT)
            r = child.wait()
        assert r.code == 126 and "interpreter" in r.err, f"{i}: {r}"


def test_script_without_interpreter_line(box):
    box.write("ws/script", 'echo "$0|$1|$2|$#"\n', mode=0o755)
    r = box.run("./script", "a b", "").ok()
    assert r.out == "./script|a b||2\n", str(r)


def test_timeout(box):
    r = box.run("sleep", "20", options=["--timeout", "300ms"])
    assert r.code == 124 and r.seconds < 15, str(r)


def test_timeout_is_named(plain):
    r = plain.run("sleep", "20", options=["--timeout", "0.2"])
    assert r.code == 124, str(r)
    assert r.err.startswith("ambit: ") and "time" in r.err, str(r)


def test_timeout_lets_the_command_clean_up(plain):
    r = plain.sh("trap 'echo cleaned; exit 3' TERM; sleep 20 & wait", options=["--timeout=2s"])
    assert r.code == 124 and r.out == "cleaned\n" and r.seconds < 15, str(r)


def test_timeout_ends_who_ignores_it(plain):
    r = plain.sh("trap '' TERM; while :; do sleep 0.1; done", options=["--timeout", "200ms"])
    assert r.code == 124 and r.seconds < 15, str(r)


def test_timeout_not_reached(plain):
    r = plain.sh("exit 7", options=["--timeout", "1h"])
    assert r.code == 7 and r.err == "", str(r)


# --- words and options -------------------------------------------------------------------

def test_options_end_at_the_first_word(plain):
    assert plain.ambit("run", "echo", "--json", "-q", "--", "x").ok().out == "--json -q -- x\n"


def test_double_dash_is_taken_once(plain):
    assert plain.ambit("run", "--", "echo", "--", "x").ok().out == "-- x\n"


def test_dash_is_a_word(plain):
    assert plain.ambit("run", "cat", "-", input="in").ok().out == "in"


@pytest.mark.parametrize("name", ["--version", "-c", "--", "-q"])
def test_command_named_like_an_option(plain, name):
    plain.write(f"ws/bin/{name}", "#!/bin/sh\necho \"mine: $1\"\n", mode=0o755)
    r = plain.ambit("run", "--", name, "x", env={"PATH": f"{plain.ws}/bin:/usr/bin:/bin"}).ok()
    assert r.out == "mine: x\n", str(r)


def test_shell_string(plain):
    assert plain.ambit("run", "-c", "echo a; echo \"$((1 + 2))\" | cat").ok().out == "a\n3\n"
    assert plain.ambit("run", "-c", "[[ abc == a* ]] && echo bash").ok().out == "bash\n"
    assert plain.ambit("run", "-cexit 9").code == 9
    assert plain.ambit("run", "--command=exit 8").code == 8
    assert plain.ambit("run", "-c", "").code == 0


def test_shell_string_without_bash(plain):
    plain.mkdir("ws/bin")
    r = plain.ambit("run", "-c", "echo \"$0\"", env={"PATH": str(plain.ws / "bin")}).ok()
    assert r.out == "/bin/sh\n", str(r)


def test_attached_arguments(plain):
    plain.write("s.json", '{"environment": {"set": {"FROM": "file"}}}')
    r = plain.ambit("run", "--network=none", "--env=A=b=c", "-qv", f"-s{plain.home}/s.json",
                    "printenv", "A", "FROM").ok()
    assert r.out == "b=c\nfile\n", str(r)


@pytest.mark.parametrize("args, says", [
    (["--alow-write", "/x"], "did you mean --allow-write"),
    (["--allow-domain", "one.example two.example"], "space"),
    (["--deny-domain", "one.example, two.example three.example"], "space"),
    (["--netwrok=none"], "did you mean --network"),
    (["--zzzzzz"], "unknown option --zzzzzz"),
    (["-z"], "unknown option -z"),
    (["--quiet=yes"], "takes no argument"),
    (["--schema"], "--schema"),
    (["--network", "wifi"], ["network", "none, allowlist, host"]),
    (["--timeout", "soon"], ["--timeout", "time"]),
    (["--timeout", "-1"], "--timeout"),
    (["--env", "=x"], "--env"),
    (["--env", ""], "--env"),
    (["--allow-read", ""], "--allow-read"),
    (["--set", "nonsense"], "KEY=VALUE"),
    (["--set", "filesystem.alowWrite=/x"], "did you mean"),
    (["--set", "network=none"], "network"),
    (["-s", "a", "-s", "b"], "twice"),
    (["--chdir", "/no/such"], "/no/such"),
    (["--chdir", "/etc/passwd"], "/etc/passwd"),
    (["-p", "no-such-profile"], "no-such-profile"),
    (["--backend", "seatbelt"], "no backend seatbelt"),
    (["--ask"], "needs a terminal"),
    (["--allow-read", "~nobody/x"], "~"),
    (["--allow-write", "a[b"], "'[' without ']'"),
])
def test_refused_options(plain, args, says):
    refused(plain, "run", *args, says=says)


def test_settings_by_a_link_of_the_project(plain):
    """The command could lead it elsewhere before the next run."""
    (plain.ws / "real.json").write_text("{}")
    (plain.ws / "link.json").symlink_to("real.json")
    refused(plain, "run", "-s", "link.json", says=["link.json", "symbolic link"])
    plain.run("true", options=["-s", "real.json"]).ok()
    (plain.home / "outside.json").symlink_to(plain.ws / "real.json")
    plain.run("true", options=["-s", str(plain.home / "outside.json")]).ok()


def test_option_at_the_end_without_argument(plain):
    refused(plain, "run", "--allow-write", says="needs an argument", command=False)


@pytest.mark.parametrize("args, says", [
    (["run"], "no command"),
    (["run", "--"], "no command"),
    (["run", "-c", "true", "extra"], "extra"),
    (["run", "-c", "true", "-c", "true"], "twice"),
    (["wrap"], "no command"),
    (["plan"], "no command"),
    (["policy", "word"], "word"),
    (["check", "word"], "word"),
    (["explain"], "usage"),
    (["explain", "read"], "usage"),
    (["explain", "eat", "/x"], "eat"),
    (["explain", "read", ""], "empty"),
    (["explain", "connect", "a b"], "connect"),
    (["explain", "connect", "host:99999"], "port"),
    (["explain", "connect", "https://github.com/foo"], "a URL: write only the host name"),
    (["help", "nothing-like-it"], "nothing-like-it"),
    (["rum", "--", "touch", "canary"], "did you mean: ambit run"),
    (["touch", "canary"], "ambit run -- touch"),
    (["zzzzzz"], "unknown command 'zzzzzz'"),
    (["--network", "none", "run", "touch", "canary"], "options follow the command"),
    ([""], "unknown command"),
    (["bad\x1b[31m\nname"], "\\x1b"),
])
def test_refused_commands(plain, args, says):
    r = refused(plain, *args, says=says, command=False)
    assert r.err.count("\n") == 1 and "\x1b" not in r.err, str(r)


def test_nothing_at_all(plain):
    r = plain.ambit()
    assert r.code == 125 and r.out == "" and "ambit run" in r.err, str(r)


def test_called_without_a_name(plain):
    """argv of length 0: some launchers and exploits do that."""
    code = f"import ctypes; ctypes.CDLL(None).execv({str(AMBIT).encode()!r}, (ctypes.c_char_p * 1)(None))"
    r = plain.host("/usr/bin/python3", "-c", code)
    assert r.code == 125, str(r)


# --- help and version ----------------------------------------------------------------------

def test_version(plain):
    r = plain.ambit("--version").ok()
    assert re.fullmatch(r"ambit \d+\.\d+\.\d+\n", r.out) and r.err == "", str(r)


def test_help(plain):
    overview = plain.ambit("help").ok().out
    assert overview == plain.ambit("--help").ok().out == plain.ambit("-h").ok().out
    for command in ("run", "check", "policy", "explain", "plan", "wrap", "log", "trust", "help"):
        assert re.search(rf"\b{command}\b", overview), command
        text = plain.ambit("help", command).ok().out
        assert text == plain.ambit(command, "--help").ok().out
        assert f"ambit {command}" in text


def test_help_names_every_option(plain):
    text = plain.ambit("help", "run").ok().out
    rows = [r.split("\t") for r in plain.ambit("--list-options").ok().out.splitlines()]
    assert len(rows) > 30
    for option in ("--settings", "--profile", "--allow-read", "--deny-write", "--network", "--env",
                   "--timeout", "--chdir", "--tmp", "--home", "--set", "--report", "--quiet"):
        assert option in text
    assert [name for name in (r[0] for r in rows) if name not in text] == []


COMPLETIONS = pathlib.Path(__file__).resolve().parents[2] / "completions/ambit.bash"


@pytest.mark.parametrize("line, want, never", [
    ("run -p ", {"npm", "git", "strict", "own"}, {"file.txt"}),
    ("run -p st", {"strict"}, {"npm"}),
    ("run --profile = n", {"npm"}, {"strict"}),
    ("run -p ./f", {"./file.txt"}, {"npm"}),
    ("run --image ", {"file.txt"}, {"npm"}),
    ("log ", {"verify"}, {"file.txt"}),
    ("log --file x ", {"verify"}, {"file.txt"}),
    ("mcp ", {"serve"}, {"file.txt"}),
    ("mcp serve --as", set(), {"--ask"}),
    ("mcp serve --allow-d", {"--allow-domain"}, set()),
    ("explain ", {"read", "write", "connect", "unix", "command"}, {"file.txt"}),
    ("explain read ", {"file.txt"}, {"read"}),
    ("trust ", {"file.txt"}, {"verify"}),
    ("run --as", {"--ask"}, set()),
])
def test_completion(plain, line, want, never):
    plain.write("ws/file.txt", "")
    plain.write(".config/ambit/profiles/own.yaml", "{}")
    words = [AMBIT, *line.split(" ")]
    script = ("compopt() { :; }; . \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _ambit; "
              "printf '%s\\n' \"${COMPREPLY[@]}\"")
    r = plain.host("bash", "--norc", "-c", script, COMPLETIONS, *words)
    offered = set(r.ok().out.split())
    assert offered >= want and not offered & never, offered


def test_help_wins_over_running(plain):
    r = plain.ambit("run", "--help", "--", *CANARY).ok()
    assert "ambit run" in r.out and not (plain.ws / "canary").exists()


@pytest.mark.parametrize("args", [["--version"], ["help"], ["policy", "--json"]])
def test_output_that_cannot_be_written(plain, args):
    with open("/dev/full", "wb") as full:
        p = plain.who.popen([AMBIT, *args], cwd=plain.ws, env=plain.env, stdout=full,
                            stderr=subprocess.PIPE)
        err = p.communicate(timeout=10)[1]
    assert p.returncode == 125 and err.startswith(b"ambit: "), err


# --- explain ----------------------------------------------------------------------------

def explain(box, *args, **kw):
    r = box.ambit("explain", "--json", *args, **kw)
    assert r.code in (0, 1), str(r)
    answer = json.loads(r.out)
    assert (answer["verdict"] == "allowed") == (r.code == 0), str(r)
    text = box.ambit("explain", *args, **kw)
    assert text.code == r.code and text.out.startswith(answer["verdict"] + ": "), str(text)
    assert text.out.count("\n") == 1
    return answer


def test_explain_paths(box):
    box.mkdir(".ssh", 0o700)
    box.mkdir("ws/.git/hooks")
    assert explain(box, "read", "/etc/passwd")["verdict"] == "allowed"
    a = explain(box, "read", "~/.ssh")
    assert (a["verdict"], a["rule"], a["source"]) == ("denied", "filesystem.denyRead", "default")
    assert a["target"] == str(box.home / ".ssh")
    a = explain(box, "write", "/etc/hosts")
    assert (a["verdict"], a["rule"]) == ("denied", "filesystem.allowWrite")
    # who may not write there outside either is helped by no option
    assert a["hint"] == ("--allow-write /etc/hosts" if box.who.name == "root" else None)
    assert explain(box, "write", "new/file")["verdict"] == "allowed"
    a = explain(box, "write", ".git/hooks/pre-commit")
    assert (a["verdict"], a["entry"]) == ("denied", ".git/hooks")
    a = explain(box, "write", ".git/config")
    assert a["verdict"] == "denied" and "within harmless keys" in a["reason"], a
    assert a["hint"] == "--set filesystem.allowGitConfig=true"


def test_explain_knows_where_names_lead(box):
    """A link with a protected name: what it leads to is denied, there or not, as the run denies it."""
    (box.ws / ".env").symlink_to("conf/local")
    (box.ws / "conf").mkdir()
    for _ in range(2):
        a = explain(box, "write", "conf/local")
        assert (a["verdict"], a["rule"], a["entry"]) == ("denied", "filesystem.protect", ".env"), a
        assert a["reason"] == "a protected name leads here", a
        assert box.sh("echo x > conf/local").code
        assert explain(box, "write", "conf/other")["verdict"] == "allowed"
        assert explain(box, "read", "conf/local")["verdict"] == "allowed"
        assert explain(box, "--set", "filesystem.unprotect=.env", "write", "conf/local")["verdict"] == "allowed"
        (box.ws / "conf/local").write_text("SECRET=1\n")


def test_explain_knows_new_territory(box):
    """Protected names are free in directories that the command itself makes, but for git's own."""
    box.mkdir("ws/src")
    for name, free in (("new/.vscode/x", True), ("src/new/deep/.config/fish/x", True), ("new/.bashrc", True),
                       ("src/.vscode/x", False), (".vscode/x", False), ("new/.git/hooks/x", False),
                       ("new/.git/config", False)):
        a = explain(box, "write", name)
        assert a["verdict"] == ("allowed" if free else "denied"), a
        assert ("the command itself makes" in a["reason"]) == free and (a["hint"] is None) == free, a
        r = box.sh(f"mkdir -p {os.path.dirname(name)} && echo x > {name}; s=$?; rm -rf new src/new; exit $s")
        assert (r.code == 0) == free, str(r)
    assert explain(box, "--deny-write", "new", "write", "new/.vscode/x")["rule"] == "filesystem.denyWrite"
    # once it is there, it is as any other
    box.mkdir("ws/new")
    assert explain(box, "write", "new/.vscode/x")["verdict"] == "denied"


def test_explain_hints_work(plain):
    """Following a hint changes the answer, for names that need quoting too."""
    plain.mkdir("other dir")
    for access, target in (("write", f"{plain.home}/other dir/it's *"), ("read", "~/.ssh/id")):
        hint = explain(plain, access, target)["hint"]
        r = plain.host("sh", "-c", f'exec "$0" explain {hint} "$@"', str(AMBIT), access, target)
        assert r.code == 0, f"{hint}: {r}"


def test_explain_network(plain):
    assert explain(plain, "connect", "example.com")["verdict"] == "denied"
    assert explain(plain, "--network", "host", "connect", "example.com:80")["verdict"] == "allowed"
    a = explain(plain, "--allow-domain", "*.example.com", "connect", "a.example.com")
    assert (a["verdict"], a["entry"]) == ("allowed", "*.example.com")
    args = ["--allow-domain", "example.com,b.org", "--deny-domain", "example.com"]
    assert explain(plain, *args, "connect", "example.com")["verdict"] == "denied"
    assert explain(plain, *args, "connect", "b.org")["verdict"] == "allowed"
    assert explain(plain, "--allow-domain", "10.0.0.0/8", "connect", "[::1]:22")["target"] == "[::1]:22"


def test_explain_unix(plain):
    assert explain(plain, "unix", "/run/docker.sock")["verdict"] == "denied"
    a = explain(plain, "--allow-unix", "agent.sock", "unix", f"{plain.ws}/agent.sock")
    assert a["verdict"] == "allowed"


# Whether something can be done inside must be what explain says: the two are computed
# by different code (rules there, mounts here).
PATHS = ["ws/a", "ws/deny/x", "ws/deny/open/x", "ws/ro/x", "out/x", "out/secret/x", "plain/x",
         ".ssh/id", ".ssh/known_hosts", ".bashrc", "ws/.git/hooks/x", "ws/.git/config", "ws/.git/x",
         "ws/.vscode/x", "ws/a.key", "ws/deny/a.key"]
SETTINGS = {
    "none": {},
    "rules": {"filesystem": {
        "denyRead": ["~/ws/deny", "~/out/secret"], "allowRead": ["~/ws/deny/open"],
        "allowWrite": ["~/ws", "~/out", "~/ws/deny/open"], "denyWrite": ["~/ws/ro"]}},
    "globs": {"filesystem": {
        "denyRead": ["~/**/*.key"], "allowWrite": ["~/ws"], "denyWrite": ["~/ws/r*"]}},
    "private": {"filesystem": {
        "home": "private", "allowRead": ["~/plain"], "allowWrite": ["~/ws"]}},
    "readonly": {"filesystem": {"denyWrite": ["~/ws"], "allowRead": ["~/.ssh/known_hosts"]}},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_explain_agrees_with_run(box, name):
    box.host("git", "init", "-q").ok()
    for path in PATHS:
        if path != "ws/.git/config":
            box.write(path, f"content of {path}")
    box.write("s.json", json.dumps(SETTINGS[name]))
    script = "".join(
        f"(cat ~/{p} >/dev/null) 2>/dev/null; echo {p} read $?\n"
        f"(: >>~/{p}) 2>/dev/null; echo {p} write $?\n" for p in PATHS)
    r = box.sh(script, options=["-s", f"{box.home}/s.json"]).ok()
    told, seen = [], []
    for line in r.out.splitlines():
        path, access, status = line.rsplit(" ", 2)
        seen.append((path, access, status == "0"))
        told.append((path, access, box.ambit("explain", "-s", f"{box.home}/s.json", access,
                                             f"~/{path}").code == 0))
    if name == "private":  # what is made in a private home is real to the command
        seen = [s for s in seen if s[1] == "read"]
        told = [t for t in told if t[1] == "read"]
    assert seen == told


@pytest.mark.parametrize("path", ["/run", "/var/tmp", "/tmp"])
def test_explain_knows_the_places_of_the_sandbox(rooted, path):
    """A file of the host in a place that the sandbox replaces cannot be read inside."""
    marker = f"{path}/ambit-test-{os.getpid()}"
    with open(marker, "w") as f:
        f.write("x")
    try:
        assert rooted.run("cat", marker).code != 0
        assert explain(rooted, "read", marker)["verdict"] == "denied"
    finally:
        os.unlink(marker)


def test_explain_knows_the_devices(box):
    """/dev is the sandbox's own, with the common devices, and anything can be made there."""
    for access, path, script in (
            ("read", "/dev/null", "cat /dev/null"), ("write", "/dev/null", "echo x > /dev/null"),
            ("write", "/dev/shm/ambit-x", "echo x > /dev/shm/ambit-x"),
            ("read", "/dev/shm", "ls /dev/shm"), ("read", "/dev/mem", "ls /dev/mem"),
            ("read", "/dev/loop0", "ls /dev/loop0"), ("write", "/dev/ambit-x", "echo > /dev/ambit-x")):
        a = explain(box, access, path)
        r = box.sh(script)
        assert (a["verdict"] == "allowed") == (r.code == 0), (a, r)
        assert not a["hint"], a
    # a file could be made by that name, but it is not the device
    if os.path.exists("/dev/mem"):
        assert explain(box, "write", "/dev/mem")["verdict"] == "denied"


@pytest.mark.parametrize("path", ["/run", "/tmp"])
def test_explain_knows_that_the_own_places_win(box, path):
    """Over a rule that names the very place, too."""
    options = ["--allow-read", path]
    assert explain(box, *options, "read", f"{path}/ambit-x")["verdict"] == "denied"
    r = box.sh(f"ls -A {path}", options=options).ok()
    assert set(r.out.split()) <= {"user"}, r


def test_explain_fails_as_run_does(box):
    paths = ["/ambit-absent/a/b"] if box.who.name == "root" else ["/ambit-absent/a/b", "/etc/ambit-absent"]
    for path in paths:
        run = box.run("true", options=["--allow-write", path])
        r = box.ambit("explain", "--allow-write", path, "write", path)
        assert (r.code, r.err) == (run.code, run.err) and r.code == 125, (r, run)
        assert box.ambit("explain", "--allow-write", path, "read", "/etc/passwd").err == run.err


def test_explain_loopback_is_no_domain(plain):
    """The sandbox's own, whatever the list of domains says."""
    for host in ("localhost", "127.0.0.1"):
        a = explain(plain, "--allow-domain", host, "connect", f"{host}:8099")
        assert a["verdict"] == "denied" and a["hint"] == "--allow-host-port 8099", a
        assert "asks the proxy" in a["reason"], a
    a = explain(plain, "--allow-domain", "localhost", "--allow-host-port", "8099", "connect",
                "localhost:8099")
    assert a["verdict"] == "allowed" and not a["hint"], a


# --- policy and plan --------------------------------------------------------------------------

def test_policy_json(box):
    box.write("s.yaml", "# mine\nfilesystem:\n  allowWrite: [., ~/out]\n  denyRead:\n    - ~/x\n")
    box.mkdir("out")
    r = box.ambit("policy", "-s", f"{box.home}/s.yaml", "--deny-write", "src", "--json").ok()
    p = json.loads(r.out)
    assert "~/out" in p["filesystem"]["allowWrite"] or f"{box.home}/out" in p["filesystem"]["allowWrite"]
    assert p["network"]["mode"] == "none" and p["enabled"] is True
    text = json.dumps(p)
    assert f"{box.home}/s.yaml:3" in text, "an entry of a file has its line"
    assert f"{box.home}/s.yaml:5" in text
    assert "--deny-write" in text and "default" in text


def test_policy_json_is_a_settings_file(box):
    """What policy --json prints can be loaded and means the same."""
    box.write("s.json", '{"filesystem": {"denyRead": ["~/x*", "~/lit\\\\*"], "tmp": "shared"},'
                        ' "limits": {"timeout": "90s"}, "environment": {"set": {"A": "1"}}}')
    one = json.loads(box.ambit("policy", "--json", "-s", f"{box.home}/s.json").ok().out)
    box.write("again.json", json.dumps(one))
    two = json.loads(box.ambit("policy", "--json", "-s", f"{box.home}/again.json").ok().out)
    for key in ("origins", "notes"):
        one.pop(key, None)
        two.pop(key, None)
    for key in ("allowRead", "denyRead", "allowWrite", "denyWrite"):
        rules = [sorted({json.dumps(rule) for rule in p["filesystem"].pop(key)}) for p in (one, two)]
        assert rules[0] == rules[1], key
    for p in (one, two):  # the defaults are in it once more
        p["filesystem"]["bulk"] = sorted(set(p["filesystem"]["bulk"]))
    assert one == two


def test_policy_text(plain):
    r = plain.ambit("policy", "--allow-write", "/var/x y").ok()
    assert "/var/x y" in r.out and "--allow-write" in r.out and ".ssh" in r.out


def test_policy_schema(plain):
    schema = json.loads(plain.ambit("policy", "--schema").ok().out)
    assert schema["properties"]["filesystem"]["properties"]["allowWrite"]


def test_plan_runs_nothing(box):
    before = sorted(box.home.rglob("*"))
    r = box.ambit("plan", "--", *CANARY).ok()
    assert sorted(box.home.rglob("*")) == before
    assert str(box.ws) in r.out
    assert box.ambit("plan", "-c", "touch canary").ok() and not (box.ws / "canary").exists()


def test_plan_json(box):
    p = json.loads(box.ambit("plan", "--json", "--", "true").ok().out)
    kinds = {m["path"]: m["kind"] for m in p["mounts"]}
    assert kinds[str(box.ws)] == "rw" and kinds["/proc"] == "proc" and kinds["/tmp"] == "private"
    assert p["ownNetwork"] is True and p["directory"] == str(box.ws)


def test_plan_of_a_directory_that_run_would_make(plain):
    r = plain.ambit("plan", "--allow-write", "new", "--", "true").ok()
    assert str(plain.ws) in r.out and not (plain.ws / "new").exists()


def test_plan_refuses_what_run_refuses(plain):
    refused(plain, "plan", "--allow-write", "/no/such/parent", says="/no/such/parent")


# --- wrap ---------------------------------------------------------------------------------------

HOSTILE = ["", " ", "two  words", "it's", '"quoted"', "a\nb", "tab\there", "$(touch canary)",
           "`touch canary`", "$HOME", "${IFS}", "*", "?[a-z]", "~", "~root", "-n", "--", "!!", "\\",
           "\\n", "a\\", "'", "''", "{a,b}", "#c", ";touch canary", "&", "|", ">canary", "é\u202e",
           "\x01\x7f", "%s%n", "=", "a=b", "\\0101", "$'x'", "\r", "a\nb'\n$x"]


def show_args(box):
    return ["/usr/bin/python3", "-c", "import sys; print(ascii(sys.argv[1:]))"]


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_wrap_hostile_words(plain, shell):
    r = plain.ambit("wrap", "--", *show_args(plain), *HOSTILE).ok()
    assert r.out.count("\n") == 1, "one line"
    there = plain.host(shell, "-c", r.out, cwd="/").ok()
    assert there.out == ascii(HOSTILE) + "\n"
    assert not list(plain.home.rglob("canary"))


@pytest.mark.parametrize("word", ["end\n", "\n", "\n\n", "a\nb\n"])
def test_wrap_words_that_end_in_newlines(plain, word):
    r = plain.ambit("wrap", "--", *show_args(plain), word, "x").ok()
    assert plain.host("sh", "-c", r.out).ok().out == ascii([word, "x"]) + "\n"
    assert r.out.count("\n") == 1, "one line"


def test_wrap_words_that_are_not_text(plain):
    words = [os.fsdecode(b"\xff\xfe"), os.fsdecode(b"\xc3\x28\n\x80")]
    r = plain.ambit("wrap", "--", *show_args(plain), *words).ok()
    assert plain.host("sh", "-c", r.out).ok().out == ascii(words) + "\n"


@pytest.mark.parametrize("script", ["echo 'a  b' \"$((1+1))\"", "printf %s\\\\n a\nprintf '%s\n' b",
                                    "exit 5", "cat <<E\n$(echo here)\nE"])
def test_wrap_shell_string(plain, script):
    r = plain.ambit("wrap", "-c", script).ok()
    direct = plain.ambit("run", "-c", script)
    wrapped = plain.host("sh", "-c", r.out, cwd="/")
    assert (wrapped.code, wrapped.out) == (direct.code, direct.out), str(wrapped)


def test_wrap_means_the_same_elsewhere(plain):
    """Relative names in options are those of the directory where wrap was called."""
    plain.mkdir("ws/sub/out")
    plain.write("ws/sub/s.json", '{"environment": {"set": {"X": "a  b"}}}')
    r = plain.ambit("wrap", "-s", "s.json", "--deny-write", "out", "--env", "Y=it's", "--",
                    "sh", "-c", 'pwd; echo "$X|$Y"; touch ok; touch out/no', cwd=plain.ws / "sub")
    there = plain.host("sh", "-c", r.ok().out, cwd="/")
    assert there.out == f"{plain.ws}/sub\na  b|it's\n", str(there)
    assert (plain.ws / "sub/ok").exists() and not (plain.ws / "sub/out/no").exists()


def test_wrap_refuses_what_run_refuses(plain):
    refused(plain, "wrap", "--backend", "seatbelt")
    refused(plain, "wrap", "-s", "missing.json", says="missing.json")


# --- check ---------------------------------------------------------------------------------------

def test_check(box):
    r = box.ambit("check", "--json")
    c = json.loads(r.out)
    assert c["backend"] == "native" and len(c["properties"]) >= 5
    for p in c["properties"]:
        assert p["name"] and (p["mechanism"] if p["enforced"] else p["missing"])
    assert c["complete"] == all(p["enforced"] for p in c["properties"])
    assert r.code == (0 if c["complete"] else 1), str(r)
    # what can be required is what check lists
    name = next(p["name"] for p in c["properties"] if p["enforced"])
    box.run("true", options=["--set", f"require={name}"]).ok()
    text = box.ambit("check")
    assert text.code == r.code and all(p["name"] in text.out for p in c["properties"])


# --- report ----------------------------------------------------------------------------------------

def test_report_file(plain):
    r = plain.sh("exit 3", options=["--report", "report.json"])
    assert r.code == 3, str(r)
    report = json.loads((plain.ws / "report.json").read_text())
    assert report["exitCode"] == 3 and report["command"][-1] == "exit 3" and report["timedOut"] is False


def test_report_to_stderr(plain):
    r = plain.sh("echo out", options=["--report", "-"]).ok()
    assert r.out == "out\n" and json.loads(r.err)["exitCode"] == 0, str(r)


def test_report_of_violations(box):
    """CONTRACT 7: the same facts at once on stderr and in the report; the status stays the command's."""
    r = box.sh("touch /etc/ambit-test-x; touch .bashrc; touch /etc/ambit-test-x; exit 4",
               options=["--report", "report.json"])
    assert r.code == 4, str(r)
    assert "ambit: denied write to /etc/ambit-test-x — outside the writable directories" in r.err
    report = json.loads((box.ws / "report.json").read_text())
    one, two = sorted(report["violations"], key=lambda v: v["target"])
    seen = (one["kind"], one["target"], one["count"], one["process"])
    assert seen == ("write", "/etc/ambit-test-x", 2, "touch"), one
    assert (two["kind"], two["target"]) == ("write", f"{box.ws}/.bashrc"), two
    for v in (one, two):
        assert {"kind", "target", "rule", "source", "process", "pid", "time", "hint", "count"} <= set(v), v


def test_report_of_a_timeout(plain):
    plain.run("sleep", "5", options=["--timeout", "100ms", "--report", "r.json"])
    assert json.loads((plain.ws / "r.json").read_text())["timedOut"] is True


def test_quiet_leaves_violations_out(plain):
    r = plain.sh("touch /etc/ambit-test-x 2>/dev/null", options=["-q"])
    assert r.err == "", str(r)


def test_report_that_cannot_be_written(plain):
    refused(plain, "run", "--report", "/no/such/dir/r.json", says="/no/such/dir/r.json")


def test_report_follows_no_link(plain):
    """What an earlier run has left in the project does not lead the report out of it."""
    victim = plain.write("victim", "precious")
    (plain.ws / "r.json").symlink_to(victim)
    refused(plain, "run", "--report", "r.json", says="is a symbolic link")
    assert victim.read_text() == "precious"
    # the names of descriptors are links, and meant
    plain.execute(["sh", "-c", f"{AMBIT} run --report /dev/stdout -- true > out.json"], cwd=plain.ws).ok()
    assert json.loads((plain.ws / "out.json").read_text())["exitCode"] == 0


@pytest.mark.parametrize("trick, where", [
    ("rm r.json", "r.json"),
    ("yes '{}' | head -c 100000 > r.json", "r.json"),
    ("rm r.json; yes '{}' | head -c 100000 > r.json", "r.json"),
    ("rm r.json; ln -s ../victims/r.json r.json", "r.json"),
    ("rm r.json; mkfifo r.json", "r.json"),
    ("rm r.json; ln kept r.json", "r.json"),
    ("rm r.json; mkdir r.json", None),
    ("mv d d2; mkdir d; ln -s ../../victims/r.json d/r.json", "d2/r.json"),
])
def test_report_is_ours_in_the_end(plain, trick, where):
    """The command can write to the report's directory; what it does there does not count."""
    victim = plain.write("victims/r.json", "precious")
    plain.mkdir("ws/d")
    kept = plain.write("ws/kept", "precious")
    r = plain.sh(trick, options=["--report", "d/r.json" if "mv d" in trick else "r.json"])
    assert victim.read_text() == "precious" and kept.read_text() == "precious"
    if where:
        assert r.code == 0 and json.loads((plain.ws / where).read_text())["exitCode"] == 0, str(r)
    else:
        assert r.code == 125 and "--report" in r.err, str(r)


def test_report_none(plain):
    r = plain.run("true", options=["--report", "none"]).ok()
    assert r.err == "" and not (plain.ws / "none").exists()


# --- bad settings ----------------------------------------------------------------------------------

@pytest.mark.parametrize("text, says", [
    ('{"filesystem": {"alowWrite": ["/x"]}}', ["s.json:1:", "alowWrite", "allowWrite"]),
    ('{\n "filesytem": {}\n}', ["s.json:2:", "filesytem", "filesystem"]),
    ('{"filesystem": {"allowWrite": "/x"}}', ["s.json:1:", "filesystem.allowWrite"]),
    ('{"filesystem": {"allowWrite": [1]}}', ["s.json:1:", "filesystem.allowWrite"]),
    ('{"filesystem": []}', ["s.json:1:", "filesystem"]),
    ('{"enabled": "yes"}', ["s.json:1:", "enabled"]),
    ('{"network": {"mode": "wifi"}}', ["s.json:1:", "network.mode", "none, allowlist, host"]),
    ('{"limits": {"timeout": -1}}', ["s.json:1:", "limits.timeout"]),
    ('{"limits": {"timeout": "soon"}}', ["s.json:1:", "limits.timeout"]),
    ('{"enabled": true,\n "enabled": false}', ["s.json:2:", "enabled"]),
    ('{"enabled": true', "s.json:"),
    ("[]", "s.json:1:"),
    ("a: &x 1\nb: *x\n", "s.json:1:"),
    ("enabled: !!bool true\n", "s.json:1:"),
    (b"\xff\xfe\x00", "s.json"),
    (b'{"environment": {"set": {"A": "b\\u0000c"}}}', "s.json:1:"),
    ('{"environment": {"set": {"A=B": "c"}}}', "s.json:1:"),
    ('{"locked": ["network.mode"]}', "locked"),
    ('{"filesystem": {"disabled": true}}', "filesystem.disabled"),
    ('{"filesystem": {"allowWrite": ["/no/such/parent"]}}', "/no/such/parent"),
    ('{"require": ["no-such-property"]}', "no-such-property"),
    ("a:\n" * 1 + "".join(" " * i + "a:\n" for i in range(1, 3000)), "s.json"),
])
def test_bad_settings(plain, text, says):
    plain.write("s.json", text)
    refused(plain, "run", "-s", f"{plain.home}/s.json", says=says)


def test_settings_file_that_is_not_one(plain):
    refused(plain, "run", "-s", "missing.json", says="missing.json")
    refused(plain, "run", "-s", "/etc", says="/etc")
    refused(plain, "run", env={"AMBIT_SETTINGS": "/no/such"}, says="/no/such")
    plain.write("ws/closed.json", "{}", mode=0)
    refused(plain, "run", "-s", "closed.json", says="closed.json")


def test_settings_from_a_pipe(plain):
    r = plain.host("bash", "-c", f'"{AMBIT}" run -s <(echo \'{{"environment": {{"set": {{"A": "pipe"}}}}}}\')'
                   ' printenv A').ok()
    assert r.out == "pipe\n"


def test_comments_and_both_syntaxes(plain):
    plain.write("c.json", '// first\n{ /* second */ "environment": {"set": {"A": "x"}}, }\n')
    plain.write("c.yaml", "# first\nenvironment:\n  set:\n    A: 'x' # second\n")
    for name in ("c.json", "c.yaml"):
        assert plain.run("printenv", "A", options=["-s", f"../{name}"]).ok().out == "x\n"


def test_both_files_at_once(plain):
    plain.write(".config/ambit/settings.json", "{}")
    plain.write(".config/ambit/settings.yaml", "")
    refused(plain, "run", says=["settings.json", "settings.yaml"])


# --- large and odd input ---------------------------------------------------------------------------

def test_ten_thousand_rules(plain):
    names = [f"f{i}" for i in range(10000)]
    plain.write("s.json", json.dumps({"filesystem": {
        "denyRead": [f"~/none/{n}" for n in names[:5000]],
        "allowRead": [f"/srv/none/{n}" for n in names[5000:]]}}))
    r = plain.run("echo", "works", options=["-s", "../s.json"]).ok()
    assert r.out == "works\n" and r.seconds < 15, str(r)


def test_many_rules_that_exist(plain):
    for i in range(300):
        plain.write(f"ws/d/f{i}", "x")
    plain.write("s.json", json.dumps({"filesystem": {
        "denyRead": [f"~/ws/d/f{i}" for i in range(0, 300, 2)]}}))
    r = plain.sh("cat d/f1; cat d/f2 2>/dev/null || echo -n '|hidden|'; cat d/f298", options=["-s", "../s.json"])
    assert r.out == "x|hidden|" and r.code == 1 and r.seconds < 15, str(r)


def test_long_arguments(plain):
    words = ["x" * 100_000, *(f"w{i}" for i in range(5000))]
    r = plain.run("/usr/bin/python3", "-c", "import sys; print(len(sys.argv), len(sys.argv[1]))", *words)
    assert r.ok().out == "5002 100000\n"


def test_too_long_arguments(plain):
    """The kernel takes a word of up to 128 kB: what fits outside must fit inside."""
    word = "y" * (128 * 1024 - 1)
    assert plain.run("sh", "-c", 'echo "${#1}"', "sh", word).ok().out == f"{len(word)}\n"


def test_thousand_variables(plain):
    env = {f"VAR_{i}": "v" * 50 for i in range(1000)}
    r = plain.run("sh", "-c", "env | grep -c ^VAR_", env=env).ok()
    assert r.out == "1000\n"


@pytest.mark.parametrize("home", [None, "", "relative", "/no/such/home"])
def test_odd_home(plain, home):
    r = plain.run("echo", "ok", env={"HOME": home})
    assert (r.code, r.out) == (0, "ok\n"), str(r)


def test_removed_working_directory(plain):
    plain.mkdir("gone")
    r = plain.host("sh", "-c", f'cd ../gone && rmdir ../gone && exec "{AMBIT}" run -- echo ran')
    assert r.code == 125 and r.out == "" and "working directory" in r.err, str(r)


def test_root_directory_is_refused(box):
    r = box.run("echo", "ran", cwd="/")
    assert r.code == 125 and r.out == "" and "--chdir" in r.err, str(r)


def test_chdir(box):
    box.mkdir("other")
    r = box.sh("pwd; touch here && echo written", options=["--chdir", "../other"], cwd=box.ws).ok()
    assert r.out == f"{box.home}/other\nwritten\n", str(r)
    assert (box.home / "other/here").exists()


# --- without a sandbox ------------------------------------------------------------------------------

@pytest.mark.parametrize("args, env", [(["--backend", "none"], {}), ([], {"AMBIT_NO_SANDBOX": "1"}),
                                       (["--set", "enabled=false"], {}), ([], {"AMBIT_BACKEND": "none"})])
def test_no_sandbox_is_loud(plain, args, env):
    r = plain.sh("echo \"[$AMBIT]\"; touch ../outside", options=["-q", *args], env=env).ok()
    assert r.out == "[]\n" and "NO SANDBOX" in r.err, str(r)
    assert (plain.home / "outside").exists()
    r = plain.sh("touch ../canary", options=args, env={**env, "AMBIT": "1"})
    assert r.code == 125 and not (plain.home / "canary").exists(), str(r)


@pytest.mark.parametrize("options", [[], ["--backend", "none"]])
def test_script_without_interpreter(plain, options):
    """As every shell does, and the C library of a program that is linked with glibc."""
    plain.write("ws/tool", "echo ran $1\n", 0o755)
    assert plain.run("./tool", "here", options=options).ok().out == "ran here\n"
    on_path = {"PATH": f"{plain.ws}:/usr/bin:/bin"}
    assert plain.run("tool", "here", options=options, env=on_path).ok().out == "ran here\n"


def test_no_sandbox_odd_value(plain):
    refused(plain, "run", env={"AMBIT_NO_SANDBOX": "maybe"}, says="AMBIT_NO_SANDBOX")
    r = plain.sh("echo $AMBIT", env={"AMBIT_NO_SANDBOX": "0"}).ok()
    assert r.out == "1\n" and r.err == ""


def test_no_sandbox_exit_codes(plain):
    options = ["--backend", "none"]
    assert plain.sh("exit 9", options=options).code == 9
    assert plain.sh("kill -TERM $$", options=options).code == 143
    assert plain.run("no-such-program", options=options).code == 127
    assert plain.run("/etc/passwd", options=options).code == 126


def test_nested(box):
    """ambit inside ambit: works or refuses clearly, never half."""
    inner = box.write("ws/inner", AMBIT.read_bytes(), mode=0o755)
    r = box.run(str(inner), "run", "--", *CANARY)
    if r.code == 0:
        assert (box.ws / "canary").exists()
    else:
        assert r.code == 125 and "ambit: " in r.err and not (box.ws / "canary").exists(), str(r)


def test_mistakes_are_told(box):
    """Not silence, nor half of the answer."""
    r = box.ambit("ls", "-la", "a b")
    assert r.code == 125 and "ambit run -- ls -la 'a b'" in r.err, r
    r = box.ambit("run", "ls -la")
    assert r.code == 127 and "ambit run -c 'ls -la'" in r.err, r
    assert "-c" not in box.ambit("run", "no-such-program").err
    r = box.ambit("policy", "--set", "filesystem=x")
    assert r.code == 125 and "is a section" in r.err and "filesystem.allowWrite" in r.err, r
    r = box.ambit("policy", "--set", "require=landlok")
    assert r.code == 125 and 'did you mean "landlock"?' in r.err, r
    r = box.run("true", options=["--network", "host", "--allow-domain", "a.test"]).ok()
    assert "a.test is no limit: network.mode is host" in r.err, r


def test_policy_has_no_empty_sections(box):
    lines = box.ambit("policy").ok().out.splitlines()
    heads = [n for n, line in enumerate(lines) if line and not line.startswith(" ")]
    assert len({lines[n] for n in heads}) == len(heads)
    assert all(lines[n + 1].startswith("  ") for n in heads), lines
