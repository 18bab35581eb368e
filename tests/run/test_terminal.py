# SPDX-License-Identifier: Apache-2.0
"""ambit at a terminal: the keys, job control inside and outside, and the terminal afterwards.

Everything is tried directly, and with what the command reads and prints passed through a pty
of ours (--log): nobody at the terminal may notice a difference."""
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import pytest

from ambit_test import AMBIT, processes_with, wait_until


TIOCGPTN = 0x80045430


def ptsname(master):
    number = struct.unpack("I", fcntl.ioctl(master, TIOCGPTN, bytes(4)))[0]
    return f"/dev/pts/{number}"


class Terminal:
    """A program in a terminal of its own, to type into and read from."""

    def __init__(self, box, argv, size=(24, 80), env=None):
        self.shown = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(box.ws)
                if os.geteuid() != box.who.uid:
                    os.fchown(0, box.who.uid, -1)
                    os.setgroups([])
                    os.setgid(box.who.gid)
                    os.setuid(box.who.uid)
                os.execve(argv[0], [str(a) for a in argv],
                          {**box.env, "PS1": "PROMPT> ", "HISTFILE": "/dev/null", **(env or {})})
            finally:
                os._exit(99)
        self.resize(*size)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def line(self, text):
        self.type(text + "\n")

    def see(self, pattern, seconds=20):
        """Read until the pattern appears after what was seen before; the match."""
        end = time.monotonic() + seconds
        while True:
            m = re.search(pattern, self.shown)
            if m:
                self.shown = self.shown[m.end():]
                return m
            assert time.monotonic() < end, f"never saw {pattern!r} in {self.shown!r}"
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    data = b""
                assert data, f"ended without {pattern!r}: {self.shown!r}"
                self.shown += data.decode("utf-8", "replace")

    def end(self, seconds=20):
        """Wait for the end; the exit status."""
        finish = time.monotonic() + seconds
        while time.monotonic() < finish:
            if select.select([self.fd], [], [], 0.02)[0]:
                with contextlib.suppress(OSError):
                    self.shown += os.read(self.fd, 65536).decode("utf-8", "replace")
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        raise AssertionError(f"did not end: {self.shown!r}")

    def close(self):
        with contextlib.suppress(OSError):
            os.close(self.fd)
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)


@pytest.fixture
def terminal():
    opened = []

    def make(box, *argv, **kw):
        opened.append(Terminal(box, argv, **kw))
        return opened[-1]

    yield make
    for t in opened:
        t.close()


@pytest.fixture(autouse=True, params=["direct", "logged"])
def way(request):
    """How the command has its terminal; `run()` and sandbox() use it."""
    options[:] = ["--log", "session.log"] if request.param == "logged" else []
    return request.param


options = []


def run():
    """The beginning of a command line for a shell."""
    return " ".join([str(AMBIT), "run", *options])


def sandbox(*command):
    return [str(AMBIT), "run", *options, "--", *command]


def shell(terminal, box):
    """An interactive shell outside."""
    t = terminal(box, "/bin/bash", "--norc", "--noprofile", "-i")
    t.see("PROMPT> ")
    return t


def test_terminal_is_one(box, terminal):
    script = "test -t 0 && test -t 1 && test -t 2 && stty size && tput cols && : </dev/tty && echo fine"
    t = terminal(box, *sandbox("sh", "-c", "sleep 0.1;" + script), size=(33, 101))
    t.see(r"33 101\s+101\s+fine")
    assert t.end() == 0


def test_terminal_keeps_its_mode(box, terminal):
    """Other users could open it; by the name that it has inside it is the caller's own."""
    t = terminal(box, *sandbox("sh", "-c", "sleep 0.2; chmod 0666 /dev/console; echo status $?;"
                               "chmod 0600 /dev/console; read x"))
    name = ptsname(t.fd)
    before = os.stat(name).st_mode
    t.see("status [1-9]")
    assert os.stat(name).st_mode == before
    os.chmod(name, 0o666)  # the control: outside it can be done
    assert os.stat(name).st_mode & 0o777 == 0o666
    t.line("")
    t.end()


def test_tty_has_a_name(box, terminal):
    """`tty` names a file inside that is this terminal: programs open it by that name."""
    t = terminal(box, *sandbox("sh", "-c", 'n=$(tty); echo "[$n]"; echo by-name >"$n"; echo status $?'))
    t.see(r"\[/dev/[a-z0-9/]+\]\s+by-name\s+status 0")
    assert t.end() == 0


def test_window_size_changes(box, terminal):
    t = terminal(box, *sandbox("bash", "-c", "trap 'stty size' WINCH; echo ready; until read -t 0.05 x; do :; done"))
    t.see("ready")
    t.resize(50, 123)
    t.see("50 123")
    t.line("")
    assert t.end() == 0


def test_ctrl_c_reaches_the_command_once(box, terminal):
    script = ("n=0; trap 'n=$((n+1)); echo caught $n' INT; echo ready; i=0;"
              "until [ $n -gt 0 ] || [ $i -ge 200 ]; do sleep 0.05; i=$((i+1)); done;"
              "for i in 1 2 3 4 5 6 7 8; do sleep 0.05; done; exit $n")
    t = terminal(box, *sandbox("bash", "-c", script))
    t.see("ready")
    t.type("\x03")
    t.see("caught 1")
    assert t.end() == 1 and "caught" not in t.shown


def test_ctrl_c_without_a_trap(plain, terminal):
    t = shell(terminal, plain)
    t.line(" ".join(sandbox("sh", "-c", "'echo be\"\"gun; exec sleep 30'")))
    t.see("begun")
    t.type("\x03")
    t.see("PROMPT> ")
    t.line("echo status $?")
    t.see("status 130")


def test_ctrl_backslash(plain, terminal):
    t = terminal(plain, *sandbox("sh", "-c", "echo ready; exec sleep 30"))
    t.see("ready")
    t.type("\x1c")
    assert t.end() == 131


def test_ctrl_c_leaves_a_shell_inside_alive(box, terminal):
    t = terminal(box, *sandbox("bash", "--norc", "-i"), env={"PS1": "INSIDE> "})
    t.see("INSIDE> ")
    t.line("sh -c 'echo be\"\"gun; exec sleep 30'")
    t.see("begun")
    t.type("\x03")
    t.see("INSIDE> ")
    t.line("echo status $?; exit 4")
    t.see("status 130")
    assert t.end() == 4


def test_shell_inside_has_job_control(box, terminal):
    t = terminal(box, *sandbox("bash", "--norc", "-i"), env={"PS1": "INSIDE> "})
    before = t.see(r"^(?s:.*)INSIDE> ").group(0)
    assert "job control" not in before and "terminal process group" not in before
    t.line("sh -c 'echo be\"\"gun; exec sleep 30'")
    t.see("begun")
    t.type("\x1a")
    t.see("Stopped")
    t.line("jobs; bg")
    t.see(r"sleep 30' &")
    t.line("kill %1; wait %1; echo status $?")
    t.see("status 143")
    t.line("set -o | grep monitor")
    t.see(r"monitor\s+on")
    t.line("exit")
    assert t.end() == 0


def test_ctrl_z_and_fg(box, terminal):
    """The job stops as a whole, the outer shell comes back, fg resumes it where it was."""
    t = shell(terminal, box)
    t.line(" ".join(sandbox("bash", "-c", "'echo be\"\"gun; while read -r l; do echo \"got:$l\"; done'")))
    t.see("begun")
    t.line("one")
    t.see("got:one")
    for word in ("two", "three"):
        t.type("\x1a")
        t.see(r"Stopped[^\n]*run")
        t.see("PROMPT> ")
        t.line("echo outer $((20+3))")
        t.see("outer 23")
        t.line("fg")
        t.see("run")
        time.sleep(0.2)
        t.line(word)
        t.see("got:" + word)
    t.type("\x04")
    t.see("PROMPT> ")
    t.line("echo status $?")
    t.see("status 0")


def test_ctrl_z_of_a_shell_inside(box, terminal):
    """Ctrl-Z in a shell inside is about its job; `suspend` stops the whole."""
    t = shell(terminal, box)
    t.line(" ".join(sandbox("bash", "--norc", "-i")))
    t.see("PROMPT> ")
    t.line("echo in $AMBIT; suspend -f")
    t.see("in 1")
    t.see(r"Stopped[^\n]*run")
    t.line("echo [$AMBIT] out; fg")
    t.see(r"\[\] out")
    time.sleep(0.2)
    t.line("echo again $AMBIT; sh -c 'echo be\"\"gun; exec sleep 30'")
    t.see("again 1")
    t.see("begun")
    t.type("\x03")  # which throws away what is typed before it is taken
    t.see("PROMPT> ")
    t.line("exit 6")
    t.line("echo status $?")
    t.see("status 6")


def test_ctrl_z_and_bg(plain, terminal):
    t = shell(terminal, plain)
    t.line(" ".join(sandbox("sh", "-c", "'echo be\"\"gun; sleep 2; echo finished >done-file'")))
    t.see("begun")
    time.sleep(0.3)  # a child that is stopped between vfork and exec keeps its parent from being stopped
    t.type("\x1a")
    t.see("Stopped")
    t.line("bg")
    t.see("PROMPT> ")
    t.line("wait; echo status $?")
    t.see("status 0")
    assert (plain.ws / "done-file").exists()


def test_stopped_from_outside(plain, terminal):
    """kill -TSTP and kill -CONT on ambit's process, at a terminal."""
    t = shell(terminal, plain)
    t.line(" ".join(sandbox("sh", "-c", "'while :; do sleep 0.1; done'")) + " &")
    t.see("PROMPT> ")
    look = "for i in $(seq 40); do sleep 0.1; jobs | grep {} && break; done"
    t.line("sleep 0.2; kill -TSTP %1; " + look.format("Stop''ped"))
    t.see("Stopped")
    t.line("kill -CONT %1; " + look.format("Run''ning"))
    t.see("Running")
    t.line("kill -TERM %1; wait %1; echo status $?")
    t.see("status 143")


def test_started_in_the_background(plain, terminal):
    """With & the shell keeps the terminal; the command does not take it away."""
    t = shell(terminal, plain)
    t.line(" ".join(sandbox("sh", "-c", "'sleep 1.5; echo from-\"\"background'")) + " &")
    t.see("PROMPT> ")
    t.line("echo still $((40+2))")
    t.see("still 42")
    t.see("from-background")
    t.line("wait; echo status $?")
    t.see("status 0")


def test_background_job_that_reads_is_stopped(plain, terminal, way):
    t = shell(terminal, plain)
    t.line(" ".join(sandbox("sh", "-c", "'read -r x; echo \"re\"\"ad:$x\"'")) + " &")
    if way == "direct":  # with a pty it waits, until it is in the foreground
        t.line("for i in $(seq 100); do sleep 0.1; jobs | grep Stop''ped && break; done")
        t.see("Stopped")
    else:
        time.sleep(0.4)
        t.line("")
    t.line("fg")
    time.sleep(0.3)
    t.line("hello")
    t.see("read:hello")


def test_terminal_is_given_back(box, terminal):
    """After any end the shell reads the terminal again."""
    t = shell(terminal, box)
    for command in ("true", "sh -c 'kill -9 $$'", "no-such-command"):
        t.line(f"{run()} -- {command}")
        t.see("PROMPT> ")
        t.line("echo back $((50+5))")
        t.see("back 55")
    t.line(f"{run()} --timeout 200ms -- sleep 10; echo code $?")
    t.see("code 124")
    t.line("echo back $((60+6))")
    t.see("back 66")


def test_terminal_after_kill_of_ambit(plain, terminal):
    t = shell(terminal, plain)
    t.line(" ".join(sandbox("sh", "-c", "'echo be\"\"gun; exec sleep 300'")))
    t.see("begun")
    with open(f"/proc/{t.pid}/task/{t.pid}/children") as f:
        os.kill(int(f.read()), signal.SIGKILL)
    t.see("Killed")
    t.line("echo back $((50+6))")
    t.see("back 56")


def test_pipeline_in_a_terminal(plain, terminal):
    t = shell(terminal, plain)
    t.line(f"{run()} -- sh -c 'echo one; echo two' | {run()} -- sort -r | cat -n")
    t.see(r"1\s+two\s+2\s+one")
    t.see("PROMPT> ")
    t.line(f"{run()} -- sleep 30 | cat")
    time.sleep(0.4)
    t.type("\x03")
    t.see("PROMPT> ")
    t.line("echo alive $((70+7))")
    t.see("alive 77")


def test_two_in_a_pipeline_that_end_by_ctrl_c(plain, terminal):
    t = shell(terminal, plain)
    t.line(f"{run()} -- sleep 30 | {run()} -- sh -c 'cat; sleep 30'")
    time.sleep(0.5)
    t.type("\x03")
    t.see("PROMPT> ")
    t.line("echo alive $((70+8))")
    t.see("alive 78")


def test_ctrl_c_ends_the_whole_pipeline(plain, terminal):
    """The terminal would have told every member of the job."""
    t = shell(terminal, plain)
    t.line(f"sleep 30 | {run()} -- cat")
    time.sleep(0.4)
    t.type("\x03")
    t.see("PROMPT> ")
    t.line("echo alive $((70+9))")
    t.see("alive 79")


LATE = """
import os, signal, sys, time
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.execv(sys.argv[1], sys.argv[1:])
time.sleep(0.2)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.tcsetpgrp(0, pid)
_, status = os.waitpid(pid, os.WUNTRACED)
print("stopped" if os.WIFSTOPPED(status) else f"ended {os.waitstatus_to_exitcode(status)}", flush=True)
"""


def test_terminal_that_comes_late(plain, terminal):
    """Shells give a pipeline the terminal only after its programs have begun."""
    argv = sandbox("sh", "-c", "sleep 1.5; echo ask; read -r x </dev/tty; echo key:$x")
    t = terminal(plain, "/usr/bin/python3", "-c", LATE, *argv)
    t.see("ask")
    t.line("k")
    t.see("key:k")
    t.see("ended 0")


def test_output_while_in_a_pipeline(plain, terminal):
    """A pager at the end of a pipe reads keys from /dev/tty."""
    t = shell(terminal, plain)
    t.line(f"echo text | {run()} -- sh -c 'cat; read -r x </dev/tty; echo \"key\"\":$x\"'")
    t.see("text")
    time.sleep(0.3)
    t.line("k")
    t.see("key:k")


def test_terminal_hangup(plain, terminal):
    mark = f"ambit-test-{os.getpid()}-{time.monotonic_ns()}"
    t = terminal(plain, *sandbox("sh", "-c", "echo ready; exec sleep 300"), env={"MARK": mark})
    t.see("ready")
    os.close(t.fd)
    t.fd = os.open("/dev/null", os.O_RDONLY)
    assert wait_until(lambda: not processes_with(mark), 5), processes_with(mark)


def test_reader_of_passwords(plain, terminal):
    """getpass opens /dev/tty and turns the echo off and on again."""
    code = "import getpass; print('len', len(getpass.getpass('Pass: ')))"
    t = terminal(plain, *sandbox("/usr/bin/python3", "-c", code))
    t.see("Pass: ")
    time.sleep(0.1)
    t.line("geheim")
    assert "geheim" not in t.see(r"(?s:.*)len 6").group(0)
    assert t.end() == 0


def test_new_terminals_can_be_made_inside(plain):
    """script(1), tmux, expect and test runners open a pty of their own."""
    code = ("import pty, os, sys\npid, fd = pty.fork()\n"
            "if pid == 0: os.execlp('sh', 'sh', '-c', 'tty; test -t 1 && stty size >/dev/null && echo terminal')\n"
            "data = b''\n"
            "try:\n"
            " while True:\n"
            "  d = os.read(fd, 999)\n"
            "  if not d: break\n"
            "  data += d\n"
            "except OSError: pass\n"
            "print(data.decode())")
    r = plain.run("/usr/bin/python3", "-c", code).ok()
    assert re.search(r"/dev/pts/\d+\s+terminal", r.out), str(r)
