# SPDX-License-Identifier: Apache-2.0
"""The program for macOS, built and run here with a stand-in for sandbox-exec (sandbox_exec): the
command line, the run path and what it starts. Nothing is confined: what the profile says is
compared in tests/unit/t_seatbelt.c, and has never been loaded on a Mac."""
import json
import shutil
import signal
from pathlib import Path

import pytest

from ambit_test import AMBIT, TREE, processes_with, wait_until

HERE = Path(__file__).parent
PROGRAM = "tests/seatbelt/macos-ambit"


@pytest.fixture(scope="session")
def macos(base_dir):
    """The program and the stand-in, where everybody can reach them."""
    built = [p for p in (AMBIT.parents[2] / PROGRAM, TREE / "build" / PROGRAM) if p.exists()]
    assert built, f"{PROGRAM} is not there: tools/build --tests"
    place = base_dir / "macos"
    place.mkdir()
    place.chmod(0o755)
    for file in (built[0], HERE / "sandbox_exec"):
        shutil.copy(file, place)
    return place


class Mac:
    """A box whose ambit is the one for macOS."""

    def __init__(self, box, macos):
        self.box = box
        self.program = macos / "macos-ambit"
        self.standin = box.mkdir("standin")
        self.tmp = box.mkdir("tmp")
        self.env = {"STANDIN": str(self.standin), "STANDIN_EXEC": str(macos / "sandbox_exec"),
                    "TMPDIR": str(self.tmp), "AMBIT_BACKEND": None}

    def argv(self, *command, options=()):
        return [self.program, "run", *options, "--", *command]

    def run(self, *command, options=(), env=None, **kw):
        return self.box.execute(self.argv(*command, options=options), env=self.env | (env or {}), **kw)

    def sh(self, script, options=(), **kw):
        return self.run("/bin/sh", "-c", script, options=options, **kw)

    def ambit(self, *args):
        return self.box.execute([self.program, *args], env=self.env)

    def start(self, script, options=(), **kw):
        return self.box.start(*self.argv("/bin/sh", "-c", script, options=options), sandbox=False,
                              env=self.env, **kw)

    def words(self):
        """What sandbox-exec was called with."""
        return (self.standin / "words").read_bytes().decode().split("\0")[:-1]

    def left(self):
        return sorted(self.tmp.iterdir())


@pytest.fixture
def mac(box, macos):
    return Mac(box, macos)


@pytest.fixture
def plain_mac(plain, macos):
    return Mac(plain, macos)


# --- what is started -------------------------------------------------------------------

def test_words(mac):
    """By array: whatever the words are, they arrive as they were."""
    odd = ["a b", "", "'\"$(x)`;\n*", "-p", "--", "ü"]
    r = mac.run("/usr/bin/printf", "%s|", *odd).ok()
    assert r.out == "".join(w + "|" for w in odd)
    words = mac.words()
    assert words[1] == "-p" and words[2].startswith("(version 1)\n(deny default") and words[3] == "--"
    assert words[4] == str(mac.program) and words[7:] == ["/usr/bin/printf", "%s|", *odd]
    assert f'(allow file-write* (subpath "{mac.box.ws}"))' in words[2]
    assert r.err == "" and mac.left() == []


def test_long_profile(mac):
    """One that is too long for an argument goes through a file that only the user can read."""
    rules = [w for i in range(900) for w in ("--deny-read", f"{mac.box.home}/{'x' * 90}{i}")]
    mac.run("true", options=rules).ok()
    words = mac.words()
    assert words[1] == "-f" and words[2].startswith(str(mac.tmp)) and words[3] == "--"
    text = (mac.standin / "profile").read_text()
    assert text.startswith("(version 1)") and text.count("x" * 90) >= 900
    assert mac.left() == []


def test_environment(mac):
    script = 'echo "$TMPDIR|$AMBIT|$SANDBOX_RUNTIME|${SECRET_TOKEN-none}|$MINE|$PWD"'
    r = mac.sh(script, options=["--env", "MINE=1"], env={"SECRET_TOKEN": "x"}).ok()
    tmp, *rest, cwd = r.out.strip().split("|")
    assert rest == ["1", "1", "none", "1"] and cwd == str(mac.box.ws)
    assert Path(tmp).is_relative_to(mac.tmp) and not Path(tmp).exists()
    assert f'(allow file-write* (subpath "{tmp}"))' in mac.words()[2]
    assert mac.sh("echo $TMPDIR", options=["--env", "TMPDIR=/var/tmp"]).ok().out == "/var/tmp\n"
    assert mac.sh("echo $TMPDIR", options=["--tmp", "shared"]).ok().out == f"{mac.tmp}\n"
    assert f'(allow file-write* (subpath "{mac.tmp}"))' in mac.words()[2]


def test_chdir_and_descriptors(mac):
    mac.box.mkdir("ws/sub")
    with open("/etc/hostname", "rb") as f:
        r = mac.sh("pwd; ls /proc/self/fd | tr '\\n' ' '", options=["--chdir", "sub"],
                   pass_fds=(f.fileno(),)).ok()
    # 3 is the listing's own
    assert r.out == f"{mac.box.ws}/sub\n0 1 2 3 "


def test_private_home(mac):
    r = mac.sh("echo $HOME; touch $HOME/made", options=["--home", "private"]).ok()
    home = Path(r.out.strip())
    assert home.is_relative_to(mac.tmp) and mac.left() == []
    assert f'(deny file-read* (subpath "{mac.box.home}"))' in mac.words()[2]


def test_missing_writable_directory(mac):
    mac.run("true", options=["--allow-write", "made"]).ok()
    assert (mac.box.ws / "made").is_dir()


# --- exit codes --------------------------------------------------------------------------

@pytest.mark.parametrize("script,code", [("exit 0", 0), ("exit 7", 7), ("exit 65", 65),
                                         ("kill -TERM $$", 143), ("kill -KILL $$", 137)])
def test_exit_codes(mac, script, code):
    r = mac.sh(script)
    assert r.code == code and r.err == "" and mac.left() == []


def test_not_found(mac):
    r = mac.run("no-such-program")
    assert r.code == 127 and "no-such-program: not found" in r.err
    file = mac.box.write("ws/plain", "text", 0o644)
    r = mac.run(str(file))
    assert r.code == 126 and "cannot be executed" in r.err
    assert mac.left() == []


def test_profile_refused(mac):
    (mac.standin / "refuse").touch()
    r = mac.run("touch", "made")
    assert r.code == 125 and not (mac.box.ws / "made").exists()
    assert "unbound variable" in r.err and "before the command was started" in r.err
    assert mac.left() == []


def test_time_limit(mac):
    r = mac.sh("trap 'echo asked; exit 3' TERM; while :; do sleep 0.05; done",
               options=["--timeout", "300ms"])
    assert r.code == 124 and r.out == "asked\n" and "limit" in r.err and mac.left() == []


def test_time_limit_of_the_deaf(plain_mac):
    mark = "seatbelt-deaf"
    r = plain_mac.sh(f"trap '' TERM; sleep 60 & while :; do sleep 0.05; done; : {mark}",
                     options=["--timeout", "200ms"])
    assert r.code == 124 and not processes_with(mark) and plain_mac.left() == []


# --- signals, leftovers --------------------------------------------------------------------

@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2"])
def test_signals_reach_the_command(mac, name):
    with mac.start(f"trap 'echo got; exit 9' {name}; echo ready; while :; do sleep 0.05; done") as c:
        assert c.process.stdout.readline() == b"ready\n"
        c.process.send_signal(getattr(signal, "SIG" + name))
        r = c.wait()
    assert r.code == 9 and r.out == "got\n" and mac.left() == []


def test_what_is_left_dies(mac):
    """Whatever the command leaves running in its group ends with it."""
    mark = f"seatbelt-left-{mac.box.who.name}"
    mac.sh(f"sh -c 'sleep 60; : {mark}' >/dev/null 2>&1 & mkdir -p $TMPDIR/a/b; "
           "chmod 0 $TMPDIR/a; ln -s / $TMPDIR/root; exit 0").ok()
    assert wait_until(lambda: not processes_with(mark)) and mac.left() == []


def test_killed(mac):
    """SIGKILL to ambit: the guard ends the command and removes what it made."""
    mark = f"seatbelt-killed-{mac.box.who.name}"
    with mac.start(f"touch $TMPDIR/file; echo ready; sleep 60; : {mark}") as c:
        assert c.process.stdout.readline() == b"ready\n"
        assert processes_with(mark) and mac.left() != []
        c.process.kill()
        assert wait_until(lambda: not processes_with(mark), 10)
        assert wait_until(lambda: mac.left() == [], 10)


def test_links_are_not_followed(mac):
    """What a link in the private directory points to stays."""
    kept = mac.box.write("kept/file", "x", 0o600)
    mac.sh(f"ln -s {kept.parent} $TMPDIR/l; ln -s {kept} $TMPDIR/f; mkdir $TMPDIR/d; "
           f"ln -s {kept.parent} $TMPDIR/d/l").ok()
    assert kept.read_text() == "x" and kept.stat().st_mode & 0o777 == 0o600 and mac.left() == []


def test_terminal(mac):
    """The command has the terminal, and the caller has it back."""
    r = mac.box.pty(mac.argv("/bin/sh", "-c", "test -t 0 && stty size >/dev/null && echo terminal"),
                    sandbox=False, env=mac.env)
    assert "terminal" in r.out and r.code == 0
    script = f"{mac.program} run -- true; stty size >/dev/null && echo back"
    r = mac.box.pty(["/bin/bash", "-i", "-c", script], sandbox=False, env=mac.env)
    assert "back" in r.out, r


def test_interrupt_at_the_terminal(mac):
    script = ("import signal, time; signal.signal(2, signal.SIG_DFL); "
              "print('ready', flush=True); time.sleep(60)")
    r = mac.box.pty(mac.argv("/usr/bin/python3", "-c", script), sandbox=False, env=mac.env,
                    input=b"\x03", until="ready")
    assert r.code == 130 and mac.left() == []


def test_stop_and_continue(plain_mac):
    """Ctrl-Z stops the whole job, fg goes on with it."""
    script = plain_mac.box.write("ws/job.sh", f"""set -m
{plain_mac.program} run -- /bin/sh -c 'kill -STOP $$; echo went on'
echo stopped $?
fg >/dev/null
echo ended $?
""")
    r = plain_mac.box.pty(["/bin/bash", "-i", str(script)], sandbox=False, env=plain_mac.env)
    assert "stopped 147" in r.out or "stopped 148" in r.out, r
    assert r.out.index("stopped") < r.out.index("went on") < r.out.index("ended 0"), r


# --- what macOS does not hold -----------------------------------------------------------------

@pytest.mark.parametrize("options,why", [
    (["--allow-domain", "example.org"], "ambit-proxy"),
    (["--publish", "8080"], "network.publish"),
    (["--backend", "native"], "no backend native on macOS"),
    (["--memory", "1g"], "limits.memory cannot be held here"),
    (["--cpu", "1"], "limits.cpu"), (["--pids", "9"], "limits.pids"),
    (["--disk", "1m"], "limits.disk"), (["--output", "1m"], "limits.output"),
    (["--log", "x"], "--log is not available on macOS"), (["--ask"], "--ask is not available"),
    (["--set", "require=processes"], "processes is not enforced here"),
])
def test_refused(plain_mac, options, why):
    r = plain_mac.run("touch", "made", options=options)
    assert r.code == 125 and why in r.err and not (plain_mac.box.ws / "made").exists(), r
    assert plain_mac.left() == []


def test_accepted_with_less(plain_mac):
    report = plain_mac.box.ws / "report.json"
    r = plain_mac.sh("echo started >&2; head -c 2000000 /dev/zero > big",
                     options=["--fallback", "warn", "--memory", "1g", "--disk", "1m", "--report", report])
    assert "not enforced: limits.memory: " in r.err and "not enforced: limits.disk: " in r.err
    assert r.err.index("not enforced") < r.err.index("started")
    assert (plain_mac.box.ws / "big").stat().st_size == 1 << 20
    told = json.loads(report.read_text())
    assert told["backend"] == "seatbelt" and len(told["notEnforced"]) == 2
    assert any("macOS's log" in n for n in told["notes"])


@pytest.mark.parametrize("words,why", [(["learn", "--", "true"], "ambit learn is not available on macOS"),
                                       (["mcp", "serve"], "ambit mcp is not available on macOS"),
                                       (["check", "--attack"], "those of Linux")])
def test_commands_refused(plain_mac, words, why):
    r = plain_mac.ambit(*words)
    assert r.code == 125 and why in r.err, r


def test_other_commands(plain_mac):
    r = plain_mac.ambit("plan", "--", "true").ok()
    assert r.out.startswith("(version 1)") and plain_mac.left() == []
    assert plain_mac.ambit("explain", "write", "/etc/hosts").code == 1
    assert plain_mac.ambit("explain", "--allow-domain", "a.test", "connect", "a.test").code == 0
    assert "allowWrite" in plain_mac.ambit("policy").ok().out
    line = plain_mac.ambit("wrap", "--", "echo", "a b").ok().out
    assert plain_mac.box.execute(["/bin/sh", "-c", line], env=plain_mac.env).ok().out == "a b\n"
    r = plain_mac.ambit("check")
    assert r.code == 1 and "Seatbelt profile" in r.out and "MISSING" in r.out
    (plain_mac.standin / "refuse").touch()
    assert plain_mac.ambit("check").code == 125
    r = plain_mac.run("echo", "x", options=["--backend", "none"]).ok()
    assert r.out == "x\n" and "NO SANDBOX" in r.err


def test_audit_log(plain_mac):
    plain_mac.sh("exit 4")
    lines = [json.loads(line) for line in plain_mac.ambit("log", "--json").ok().out.splitlines()]
    assert [x["event"] for x in lines[-2:]] == ["run-start", "run-end"], lines
    assert plain_mac.ambit("log", "verify").code == 0
