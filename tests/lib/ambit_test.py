# SPDX-License-Identifier: Apache-2.0
"""What every pytest suite of ambit shares: who runs, where, and how.

Use it from the conftest.py of a suite:

    import os, sys
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
    from ambit_test import *  # noqa: F401,F403  (fixtures)

and in a test:

    def test_x(box):                        # once as root, once as the plain user
        box.write("ws/a.txt", "text")       # below box.home, owned by the user
        r = box.run("cat", "a.txt")         # ambit run -- cat a.txt, in box.ws
        assert r.code == 0 and r.out == "text"
        r = box.sh("echo $AMBIT", options=["--network", "none"])
        r = box.ambit("policy", "--json")   # any other command
        r = box.host("cat", "a.txt")        # the same person, no sandbox: the control run
        with box.start("sleep", "100") as child: child.process.kill()
        r = box.pty(["stty", "size"])       # in a terminal of its own

Environment of the suites:
    AMBIT_BIN         the program to test (default: build/src/cli/ambit of this tree)
    AMBIT_TEST_USER   the unprivileged account (default ambit-test; made when missing)
    AMBIT_TEST_DIR    where homes are made; not below /tmp, which the sandbox hides
    AMBIT_TEST_BACKEND  run everything on this backend instead of the one that is chosen
    AMBIT_TEST_SLOW   how many times slower this machine is than one that is not emulated (default 1)

When pytest is not root, the tests run as the present user only.
"""
import collections
import contextlib
import ctypes
import fcntl
import os
import pwd
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

__all__ = [
    "AMBIT", "SCOPES_ABI", "SLOW", "TREE", "Box", "Result", "Who", "box", "boxes", "compile_c", "landlock_abi",
    "mount_table", "processes_with", "pytest_report_header", "pytest_generate_tests", "skip_impossible",
    "base_dir", "wait_until", "who", "whos",
]

TREE = Path(__file__).resolve().parents[2]
AMBIT = Path(os.environ.get("AMBIT_BIN", TREE / "build/src/cli/ambit")).absolute()
BACKEND = os.environ.get("AMBIT_TEST_BACKEND")
SLOW = float(os.environ.get("AMBIT_TEST_SLOW", 1))
TIMEOUT = 30 * SLOW  # seconds for one command: far above what any should take
_notes = []


def skip_impossible(reason):
    """Skip because this machine cannot run the test; CI takes the reasons of tests/skips only."""
    pytest.skip(reason)


SCOPES_ABI = 6  # of Landlock: from here on signals and abstract sockets stay inside


def landlock_abi():
    """What the running kernel has; 0 = none."""
    landlock_create_ruleset, version = 444, 1
    return max(0, ctypes.CDLL(None).syscall(landlock_create_ruleset, None, 0, version))


# --- who -------------------------------------------------------------------------

@dataclass(frozen=True)
class Who:
    name: str  # "root" or "user": what tests are parametrized with
    account: str
    uid: int
    gid: int

    def popen(self, argv, **kw):
        """Popen as this person: own uid and groups only, nothing inherited but 0-2 and pass_fds."""
        if os.geteuid() != self.uid:
            kw.update(user=self.uid, group=self.gid, extra_groups=[])
        return subprocess.Popen([os.fspath(a) for a in argv], **kw)


def _account(name):
    try:
        return pwd.getpwnam(name)
    except KeyError:
        pass
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", name], check=True)
    _notes.append(f"made the account {name}")
    return pwd.getpwnam(name)


_whos = {}


def whos():
    """The names the tests are run under here."""
    return ["root", "user"] if os.geteuid() == 0 else ["user"]


def who(name):
    """The Who behind a name; makes the account when it is missing."""
    if name not in _whos:
        if name == "root" or os.geteuid() != 0:
            p = pwd.getpwuid(os.geteuid())
        else:
            p = _account(os.environ.get("AMBIT_TEST_USER", "ambit-test"))
        _whos[name] = Who(name, p.pw_name, p.pw_uid, p.pw_gid)
    return _whos[name]


def pytest_report_header(config):
    return [f"ambit: {AMBIT}{'' if AMBIT.exists() else ' (missing)'}, as {' and '.join(whos())}"] + _notes


def pytest_generate_tests(metafunc):
    if "box" in metafunc.fixturenames:
        metafunc.parametrize("box", whos(), indirect=True)


# --- results -----------------------------------------------------------------------

@dataclass
class Result:
    code: int  # exit status; 128+N by signal N like a shell says it
    out: str
    err: str
    argv: list = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self):
        return (f"{shlex.join(self.argv)}\n  exit {self.code} after {self.seconds:.2f} s\n"
                f"  stdout: {self.out[-4000:]!r}\n  stderr: {self.err[-4000:]!r}")

    def ok(self):
        """Self, when the status was 0; else the test fails showing everything."""
        assert self.code == 0, str(self)
        return self


def _status(returncode):
    return 128 - returncode if returncode < 0 else returncode


def _text(data):
    return data.decode("utf-8", "surrogateescape")


# --- the box: one person with a home and a project -----------------------------------

class Box:
    """A person (who), a home of their own, the project `ws` in it; XDG_STATE_HOME beside it."""

    def __init__(self, person, home):
        self.who = person
        self.home = Path(home)
        self.ws = self.home / "ws"
        self.state = self.home.with_name(self.home.name + ".state")
        self.options = []  # put in front of every run
        self.env = {
            "HOME": str(self.home), "USER": person.account, "LOGNAME": person.account,
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8",
            "TERM": "xterm", "SHELL": "/bin/bash",
            # the audit log beside the home, so that a run need leave nothing in it
            "XDG_STATE_HOME": str(self.state),
        }
        if BACKEND:
            self.env["AMBIT_BACKEND"] = BACKEND

    # files, on the host side
    def mkdir(self, path, mode=0o755):
        p = self.home / path
        for d in [*reversed(p.parents), p]:
            if d.is_relative_to(self.home) and not d.exists():
                d.mkdir(mode=0o755)
                os.chown(d, self.who.uid, self.who.gid)
        p.chmod(mode)
        return p

    def write(self, path, text="", mode=0o644):
        """Make a file below the home (or at an absolute path), owned by the person."""
        p = self.home / path
        self.mkdir(p.parent, (p.parent.stat().st_mode & 0o7777) if p.parent.exists() else 0o755)
        p.write_bytes(text if isinstance(text, bytes) else text.encode())
        p.chmod(mode)
        os.chown(p, self.who.uid, self.who.gid)
        return p

    # commands
    def execute(self, argv, *, cwd=None, env=None, input=None, timeout=TIMEOUT, pass_fds=(), **kw):
        """Any program as this person; `env` adds to (None value: takes from) box.env."""
        if input is not None and not isinstance(input, bytes):
            input = input.encode()
        started = time.monotonic()
        p = self.who.popen(argv, cwd=cwd or self.ws, env=self._env(env), stdout=subprocess.PIPE,
                           stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
                           stderr=subprocess.PIPE, pass_fds=pass_fds, start_new_session=True, **kw)
        try:
            out, err = p.communicate(input, timeout=timeout)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
            out, err = p.communicate()
            pytest.fail(f"{shlex.join(map(str, argv))}: still running after {timeout} s\n"
                        f"{_text(out)[-2000:]}\n{_text(err)[-2000:]}")
        return Result(_status(p.returncode), _text(out), _text(err), [str(a) for a in argv],
                      time.monotonic() - started)

    def host(self, *argv, **kw):
        """Without any sandbox: the control run."""
        return self.execute(argv, **kw)

    def ambit(self, *args, **kw):
        return self.execute([AMBIT, *args], **kw)

    def argv(self, *command, options=()):
        return [AMBIT, "run", *self.options, *options, "--", *command]

    def run(self, *command, options=(), **kw):
        return self.execute(self.argv(*command, options=options), **kw)

    def sh(self, script, options=(), **kw):
        return self.run("/bin/sh", "-c", script, options=options, **kw)

    @contextlib.contextmanager
    def start(self, *command, options=(), env=None, cwd=None, sandbox=True, **kw):
        """A run in the background: .process (Popen), .wait() -> Result; killed at the end."""
        argv = self.argv(*command, options=options) if sandbox else list(command)
        for stream in ("stdin", "stdout", "stderr"):
            kw.setdefault(stream, subprocess.PIPE)
        p = self.who.popen(argv, cwd=cwd or self.ws, env=self._env(env), start_new_session=True,
                           **kw)
        child = _Child(p, argv)
        try:
            yield child
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
            p.wait()
            for f in (p.stdin, p.stdout, p.stderr):
                if f:
                    with contextlib.suppress(OSError):
                        f.close()

    def pty(self, command, *, options=(), sandbox=True, input=b"", env=None, timeout=TIMEOUT,
            until=None):
        """Run in a fresh terminal (controlling, foreground). Result.out is what it showed.
        `input` is typed once `until` has been shown (at once without it)."""
        argv = self.argv(*command, options=options) if sandbox else list(command)
        master, slave = os.openpty()
        os.fchown(slave, self.who.uid, -1)

        def own_terminal():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        started = time.monotonic()
        p = self.who.popen(argv, cwd=self.ws, env=self._env(env), stdin=slave, stdout=slave,
                           stderr=slave, start_new_session=True, preexec_fn=own_terminal)
        os.close(slave)
        shown, typed, ended = b"", not input, False
        try:
            while time.monotonic() - started < timeout:
                if not typed and (until is None or until.encode() in shown):
                    os.write(master, input)
                    typed = True
                if select.select([master], [], [], 0.05)[0]:
                    try:
                        data = os.read(master, 65536)
                    except OSError:  # EIO: the last one has closed it
                        data = b""
                    if not data:
                        break
                    shown += data
                elif ended:  # and nothing came after
                    break
                else:
                    ended = p.poll() is not None
            p.wait(max(0.1, timeout - (time.monotonic() - started)))
        except subprocess.TimeoutExpired:
            pytest.fail(f"{shlex.join(map(str, argv))}: still running after {timeout} s: {shown!r}")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
            p.wait()
            os.close(master)
        return Result(_status(p.returncode), _text(shown), "", [str(a) for a in argv],
                      time.monotonic() - started)

    def _env(self, more):
        env = dict(self.env)
        for k, v in (more or {}).items():
            if v is None:
                env.pop(k, None)
            else:
                env[k] = v
        return env


class _Child:
    def __init__(self, process, argv):
        self.process, self.argv = process, argv

    def wait(self, timeout=TIMEOUT, input=None):
        out, err = self.process.communicate(input, timeout=timeout)
        return Result(_status(self.process.returncode), _text(out or b""), _text(err or b""),
                      [str(a) for a in self.argv])


# --- fixtures ------------------------------------------------------------------------

@pytest.fixture(scope="session")
def base_dir():
    """A directory that everybody can reach, seen inside the sandbox too; removed at the end."""
    base = os.environ.get("AMBIT_TEST_DIR")
    if not base:
        base = "/srv" if os.geteuid() == 0 else os.path.expanduser("~/.cache")
        os.makedirs(base, exist_ok=True)
    d = Path(tempfile.mkdtemp(prefix="ambit-test.", dir=base)).resolve()
    d.chmod(0o755)
    yield d
    shutil.rmtree(d, ignore_errors=True)


@pytest.fixture(scope="session")
def boxes(base_dir):
    """boxes(name) -> a new Box for "root" or "user"."""
    if not AMBIT.exists():
        pytest.fail(f"{AMBIT} is not there: build it, or set AMBIT_BIN")
    base = base_dir
    count = 0

    def make(name):
        nonlocal count
        person = who(name)
        count += 1
        home = base / f"{name}{count}"
        b = Box(person, home)
        for d in (home, b.state):
            d.mkdir()
            os.chown(d, person.uid, person.gid)
        b.mkdir("ws")
        return b

    return make


@pytest.fixture
def box(request, boxes):
    """A fresh home and project; the test runs once per whos()."""
    return boxes(request.param)


# --- seen from the host -----------------------------------------------------------------

def mount_table():
    """The mounts the host sees, to compare before and after; not those of container engines, which
    other tests use meanwhile."""
    return sorted(line.split(" ", 2)[2] for line in Path("/proc/self/mountinfo").read_text().splitlines()
                  if "/storage/overlay" not in line)


def settled_changes(look, before, seconds=40.0):
    """What look() lists now and did not before, or no longer: once the rest has come and gone. Suites
    that run beside this one mount things in their own directories, and make groups."""
    def compare():
        now = collections.Counter(look())
        return set(now - was), {c for c in was - now if "/ambit-" not in c}

    was = collections.Counter(before)
    end = time.monotonic() + seconds
    new, gone = compare()
    while (new or gone) and time.monotonic() < end:
        time.sleep(0.05)
        new, gone = (kept & seen for kept, seen in zip((new, gone), compare()))
    return sorted(new | gone)


def processes_with(marker):
    """Pids (host view) whose command line or environment holds `marker`; zombies left out."""
    found, mark = [], marker.encode()
    for p in Path("/proc").iterdir():
        if not p.name.isdigit() or int(p.name) == os.getpid():
            continue
        for f in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                if mark in (p / f).read_bytes():
                    found.append(int(p.name))
                    break
    return found


def wait_until(condition, seconds=20.0, step=0.01):
    """True as soon as condition() is; False when it never was."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(step)
    return bool(condition())


def compile_c(source, target, *flags):
    """Build a C helper for a test; the test fails when it does not compile."""
    r = subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror",
                        "-o", target, source, *flags], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    os.chmod(target, 0o755)
    return Path(target)
