# SPDX-License-Identifier: Apache-2.0
"""--log and --output: what passes through us arrives unchanged, and is written down.

Terminals are tried in test_terminal.py, where every test runs with --log too. Here: which
descriptor becomes what (the table in relay.h), pipes, files, broken readers, the log itself.
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import termios
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ambit_test import AMBIT, wait_until

LOG = ["--log", "session.log"]
LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (in |out|err|key|tty|---)([|\\]) (.*)$")


def entries(box, name="session.log"):
    """(stream, text) of every line; the log is well-formed."""
    found = [LINE.match(line) for line in (box.ws / name).read_text().splitlines()]
    assert all(found), (box.ws / name).read_text()
    return [(m[1].strip(), m[3]) for m in found]


def of(box, stream, name="session.log"):
    return [text for s, text in entries(box, name) if s == stream]


# --- the streams -------------------------------------------------------------------------

def test_streams(box):
    r = box.sh("cat; echo out; echo err >&2; exit 7", options=LOG, input="one\ntwo\n")
    assert (r.code, r.out, r.err) == (7, "one\ntwo\nout\n", "err\n"), str(r)
    assert of(box, "in") == ["one", "two"]
    assert of(box, "out") == ["one", "two", "out"]
    assert of(box, "err") == ["err"]
    first, last = of(box, "---")
    assert re.match(r"run \w{12}: /bin/sh -c cat; ", first) and last.endswith("ended with status 7")
    assert stat.S_IMODE((box.ws / "session.log").stat().st_mode) == 0o600


def test_order_is_that_of_time(plain):
    plain.sh("for i in 1 2 3; do echo o$i; sleep 0.3; echo e$i >&2; sleep 0.3; done",
             options=LOG).ok()
    assert [t for s, t in entries(plain) if s in ("out", "err")] == ["o1", "e1", "o2", "e2", "o3", "e3"]
    times = [line.split()[0] for line in (plain.ws / "session.log").read_text().splitlines()]
    assert times == sorted(times) and times[0] != times[-1]


def test_json_lines(box):
    box.sh("printf 'a\\tb\\n\\377\\0z\\n'; printf unfinished >&2", options=["--log", "s.jsonl"],
           input="x\n").ok()
    rows = [json.loads(line) for line in (box.ws / "s.jsonl").read_text().splitlines()]
    assert rows[0]["event"] == "start" and rows[0]["command"][0] == "/bin/sh"
    assert rows[-1]["event"] == "end" and rows[-1]["exitCode"] == 0
    assert len({row["run"] for row in rows}) == 1
    body = [(row["stream"], row["text"], row.get("cut", False)) for row in rows[1:-1]]
    assert ("stdout", "a\tb", False) in body and ("stderr", "unfinished", True) in body
    assert ("stdout", "\ufffd\ufffdz", False) in body


def test_format_by_setting(plain):
    plain.sh("echo x", options=["--log", "l", "--set", "log.format=jsonl"]).ok()
    assert json.loads((plain.ws / "l").read_text().splitlines()[0])["event"] == "start"
    plain.sh("echo x", options=["--log", "l.jsonl", "--set", "log.format=text"]).ok()
    assert of(plain, "out", "l.jsonl") == ["x"]


@pytest.mark.parametrize("options", [LOG, ["--output", "1g"], [*LOG, "--output", "1g"]])
def test_nothing_is_lost_or_changed(plain, options):
    """Binary data both ways, more than any buffer, and two streams that stay apart."""
    data = os.urandom(3 << 20)
    plain.write("ws/data", data)
    r = plain.execute(plain.argv("/bin/sh", "-c", "cat; cat data >&2", options=options),
                      input=data, timeout=60)
    assert r.out.encode("utf-8", "surrogateescape") == data
    assert r.err.encode("utf-8", "surrogateescape") == data


def test_without_them_nothing_passes_through(plain):
    """The command has the caller's own descriptors."""
    r = plain.execute(["/bin/sh", "-c", f"exec 2>&1; readlink /proc/self/fd/1; {AMBIT} run -- readlink /proc/self/fd/1;"
                       f" {AMBIT} run --output 1m -- readlink /proc/self/fd/1"])
    outer, direct, relayed = r.out.split()
    assert outer == direct != relayed, str(r)


def test_input_of_a_file_is_given_back(plain):
    """What the command did not read of a file is there for who reads next."""
    plain.write("ws/lines", "".join(f"line {i}\n" for i in range(20000)))
    script = f"{AMBIT} run --log session.log -- head -c 7; head -c 7"
    r = plain.execute(["/bin/sh", "-c", f"exec <lines; {script}"])
    assert r.out == "line 0\nline 1\n", str(r)


def test_end_of_input(plain):
    """The command sees the end when the writer closes, and not before."""
    with plain.start("/bin/sh", "-c", "read x; echo got $x; cat >/dev/null; echo end",
                     options=LOG) as child:
        p = child.process
        p.stdin.write(b"a\n")
        p.stdin.flush()
        assert p.stdout.readline() == b"got a\n"
        assert not select.select([p.stdout], [], [], 0.3)[0]
        p.stdin.close()
        p.stdin = None
        assert p.stdout.readline() == b"end\n" and p.wait(5) == 0


def test_command_that_does_not_read(plain):
    """A writer of more than fits does not keep the command from ending."""
    r = plain.execute(plain.argv("true", options=LOG), input=b"x" * (4 << 20))
    assert r.code == 0


def test_reader_that_leaves(plain):
    """SIGPIPE for the command, as without us; not for ambit."""
    script = f"{AMBIT} run %s -- /bin/sh -c 'trap \"\" HUP; yes; echo status $? >&2' | head -1; true"
    for options in ("", "--log session.log", "--output 100m"):
        r = plain.execute(["/bin/bash", "-c", script % options], timeout=20)
        assert r.out == "y\n" and "status 141" in r.err or r.err == "", str(r)
    r = plain.execute(["/bin/bash", "-c", f"{AMBIT} run --log session.log -- yes | head -1;"
                       "echo ${PIPESTATUS[0]}"])
    assert r.out == "y\n141\n", str(r)


def test_reader_that_left_before(plain):
    """A command that only listens is told by poll(), not only when it writes."""
    code = ("import select, sys\np = select.poll(); p.register(1, 0)\n"
            "sys.exit(5 if p.poll(4000) else 6)")
    r = plain.execute(["/bin/bash", "-c", f"{AMBIT} run --log session.log -- /usr/bin/python3 -c "
                       f"'{code}' | sleep 0.3; echo ${{PIPESTATUS[0]}}"])
    assert r.out == "5\n", str(r)


def test_slow_reader_holds_the_writer(plain):
    """Back-pressure: what is not read is not buffered without bound, and arrives whole."""
    with plain.start("/bin/sh", "-c", "head -c 3000000 /dev/zero; echo done >written",
                     options=LOG) as child:
        time.sleep(1)
        assert not (plain.ws / "written").exists()
        rss = int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{child.process.pid}/status").read())[1])
        assert rss < 20000
        assert len(child.process.stdout.read()) == 3000000
        assert child.process.wait(5) == 0
    assert (plain.ws / "written").exists()


def test_time_limit_with_a_stuck_reader(plain):
    """Nobody reads, and the limits hold all the same."""
    started = time.monotonic()
    with plain.start("yes", options=[*LOG, "--timeout", "500ms"]) as child:
        assert child.process.wait(8) == 124
    assert time.monotonic() - started < 7.5


def test_sockets(plain):
    """Standard input and output as programs of Node have them."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        p = plain.who.popen(plain.argv("/bin/sh", "-c", "read x; echo got $x", options=LOG),
                            cwd=plain.ws, env=plain.env, stdin=theirs, stdout=theirs,
                            stderr=subprocess.PIPE)
        ours.send(b"hello\n")
        assert p.wait(10) == 0
        theirs.close()
        assert ours.recv(100) == b"got hello\n"
        p.stderr.close()
    assert of(plain, "in") == ["hello"] and of(plain, "out") == ["got hello"]


def test_closed_descriptors(plain):
    r = plain.execute(["/bin/bash", "-c", f"{AMBIT} run --log session.log -- sh -c 'echo x; echo y >&2' >&-"])
    assert "y" in r.err and r.out == "", str(r)
    r = plain.execute(["/bin/bash", "-c", f"{AMBIT} run --log session.log -- cat <&-"])
    assert r.code in (0, 1), str(r)


# --- which becomes what: the table in relay.h -------------------------------------------------

REPORT = """
import os
def kind(fd):
    try: return "tty" if os.isatty(fd) else "pipe" if os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:") else "other"
    except OSError: return "closed"
def ctty():
    try: fd = os.open("/dev/tty", os.O_RDWR)
    except OSError: return "none"
    os.close(fd)
    return "has"
result = " ".join([kind(0), kind(1), kind(2), ctty()])
open("kinds", "w").write(result)
"""
CASES = [  # stdin, stdout, stderr of the caller; of the command
    ("tty", "tty", "tty", "tty tty tty has"),
    ("tty", "tty", "pipe", "tty tty pipe has"),
    ("pipe", "tty", "tty", "pipe tty tty has"),
    ("pipe", "tty", "pipe", "pipe tty pipe has"),
    ("tty", "pipe", "tty", "tty pipe tty has"),
    ("tty", "pipe", "pipe", "tty pipe pipe has"),
    ("pipe", "pipe", "tty", "pipe pipe tty has"),
    ("pipe", "pipe", "pipe", "pipe pipe pipe has"),
]


@pytest.mark.parametrize("options", [[], LOG, ["--output", "1m"]], ids=["direct", "log", "output"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(c[:3]))
def test_terminal_or_not(plain, case, options):
    """The command sees a terminal exactly where the caller has one."""
    master, slave = os.openpty()
    os.fchown(slave, plain.who.uid, -1)
    ends = [os.pipe() if kind == "pipe" else None for kind in case[:3]]
    fds = [slave if pair is None else pair[0 if i == 0 else 1] for i, pair in enumerate(ends)]

    def own_terminal():
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    p = plain.who.popen(plain.argv("/usr/bin/python3", "-c", REPORT, options=options),
                        cwd=plain.ws, env=plain.env, stdin=fds[0], stdout=fds[1], stderr=fds[2],
                        start_new_session=True, preexec_fn=own_terminal, pass_fds=[slave])
    try:
        assert p.wait(10) == 0
        assert (plain.ws / "kinds").read_text() == case[3]
    finally:
        p.kill()
        p.wait()
        for fd in [master, slave, *(f for pair in ends if pair for f in pair)]:
            os.close(fd)


def test_no_controlling_terminal(plain):
    """stdout is a terminal, but not ours: shown as one, and nothing is read from it."""
    master, slave = os.openpty()
    os.fchown(slave, plain.who.uid, -1)
    p = plain.who.popen(plain.argv("/bin/sh", "-c", "test -t 1 && echo 'a\tb'; echo >/dev/tty",
                                   options=LOG),
                        cwd=plain.ws, env=plain.env, stdin=subprocess.DEVNULL, stdout=slave,
                        stderr=subprocess.PIPE, start_new_session=True)
    try:
        assert p.wait(10) != 0  # no /dev/tty for the command either
        assert wait_until(lambda: select.select([master], [], [], 0)[0])
        assert os.read(master, 100) in (b"a\tb\r\n", b"a       b\r\n")
    finally:
        p.kill()
        p.wait()
        p.stderr.close()
        os.close(master)
        os.close(slave)


# --- at the terminal ------------------------------------------------------------------------

def screen(box, command, keys, options=LOG, size=(24, 80)):
    """A command in a terminal of its own; keys: (pattern to see first, what to type, "" = pause)."""
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.chdir(box.ws)
            if os.geteuid() != box.who.uid:
                os.fchown(0, box.who.uid, -1)
                os.setgroups([])
                os.setgid(box.who.gid)
                os.setuid(box.who.uid)
            argv = [str(a) for a in box.argv(*command, options=options)]
            os.execve(argv[0], argv, box.env)
        finally:
            os._exit(99)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    shown, keys = "", list(keys)
    end = time.monotonic() + 15
    while time.monotonic() < end:
        if keys and re.search(keys[0][0], shown):
            time.sleep(0.1 if keys[0][1] else 1.4)
            os.write(fd, keys.pop(0)[1].encode())
        if select.select([fd], [], [], 0.05)[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            shown += data.decode("utf-8", "replace")
    status = os.waitpid(pid, 0)[1]
    os.close(fd)
    return os.waitstatus_to_exitcode(status), shown


def test_keys_and_screen_are_logged(box):
    code, shown = screen(box, ["sh", "-c", "echo what; read -r x; echo \"got $x\"; exit 4"],
                            [("what", "some words\r")])
    assert code == 4 and "got some words" in shown
    assert of(box, "key") == ["some words"]
    assert of(box, "tty") == ["what", "some words", "got some words"]


def test_passwords_are_not_logged(box):
    ask = "import getpass; print('len', len(getpass.getpass('Pass: ')))"
    code, shown = screen(box, ["/usr/bin/python3", "-c", ask], [("Pass:", "geheimnis\r")])
    assert code == 0 and "len 9" in shown
    text = (box.ws / "session.log").read_text()
    assert "geheimnis" not in text
    assert of(box, "key") == ["[not logged: the terminal did not echo]"]


def test_raw_programs_work(plain):
    """A program that sets the terminal raw gets single keys, and the size."""
    code = ("import sys, termios, tty, os\n"
            "old = termios.tcgetattr(0); tty.setraw(0)\n"
            "os.write(1, b'ready')\n"
            "k = os.read(0, 10)\n"
            "termios.tcsetattr(0, termios.TCSADRAIN, old)\n"
            "print(k, os.get_terminal_size())")
    status, shown = screen(plain, ["/usr/bin/python3", "-c", code], [("ready", "\x1b[A")],
                              size=(31, 97))
    assert status == 0 and r"b'\x1b[A'" in shown and "columns=97, lines=31" in shown, shown


def test_what_stty_does_stays(plain):
    """The command's changes to its terminal are the caller's terminal's when it has ended."""
    script = (f"{AMBIT} run --log session.log -- stty -echo; stty -a | grep -o -- '-echo '; stty sane;"
              f"{AMBIT} run --log session.log -- sh -c 'stty raw; kill -9 $$'; stty -a | grep -o -- ' icanon'")
    r = plain.pty(["/bin/bash", "-c", script], sandbox=False)
    assert "-echo" in r.out and " icanon" in r.out, str(r)


def test_messages_do_not_run_down_the_stairs(plain):
    """While the terminal is raw, what we say still begins at its left edge."""
    code, shown = screen(plain, ["sh", "-c", "echo x >/etc/x; sleep 0.3; echo end"], [])
    said = [line for line in shown.split("\n") if "ambit: denied write" in line]
    assert said and all(line.endswith("\r") for line in said), shown


# --- the file ---------------------------------------------------------------------------------

def test_secrets_are_masked(box):
    box.write("ws/key.pem", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAAAAAAA\n"
              "-----END OPENSSH PRIVATE KEY-----\nafter\n")
    script = ("echo 'GITHUB_TOKEN=ghp_abcdefghijklmnopqrstuvwxyz0123456789'; cat key.pem;"
              "echo 'https://me:hunter22@example.org/'")
    r = box.run("/bin/sh", "-c", script, "--password", "pa55word", options=LOG, input="password=abcdef\n")
    assert "ghp_abcdefghijklmnopqrstuvwxyz0123456789" in r.out
    text = (box.ws / "session.log").read_text()
    for secret in ("ghp_abc", "b3BlbnNz", "AAAAAAAA", "hunter22", "pa55word"):
        assert secret not in text, secret
    assert "after" in text and "[redacted]" in text
    box.run("/bin/sh", "-c", script, options=["--log", "plain.log", "--set", "audit.redact=false"])
    assert "hunter22" in (box.ws / "plain.log").read_text()


def test_secret_over_two_writes(plain):
    """A line is masked as a whole, however it comes."""
    plain.sh("printf 'token=ghp_abcdefghijkl'; sleep 0.05; printf 'mnopqrstuvwxyz0123456789\\n'",
             options=LOG).ok()
    assert of(plain, "out") == ["token=[redacted]"]


TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
FORMS = [LOG, ["--log", "session.jsonl"]]


def logged(box, options):
    """What the streams say, put together; parts of the token are not in it."""
    text = (box.ws / options[1]).read_text()
    assert not [i for i in range(8, len(TOKEN) - 4) if TOKEN[i:i + 5] in text], text
    if options[1].endswith(".jsonl"):
        rows = [json.loads(line) for line in text.splitlines()]
        return "".join(row["text"] for row in rows if row.get("stream") in ("stdout", "terminal", "keys"))
    return "".join(t for s, t in entries(box, options[1]) if s in ("out", "tty", "key"))


@pytest.mark.parametrize("options", FORMS, ids=["text", "jsonl"])
@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_secrets_in_colour(plain, options, terminal):
    """What counts is the text, without the sequences around it and in it."""
    plain.write("ws/f", f"one {TOKEN} two\n")
    script = ("grep --color=always 'ghp_[a-zA-Z0-9]*' f;"
              r"printf '\033[1mpassword\033[0m: hunter4SECRET\n';"
              rf"printf '{TOKEN[:12]}\033[7m{TOKEN[12:]}\033[m end\n'")
    plain.write("ws/script", script)
    command = ["/bin/sh", "script"]
    if terminal:
        assert screen(plain, command, [], options=options)[0] == 0
    else:
        plain.run(*command, options=options).ok()
    text = logged(plain, options).replace("\\x1b", "\x1b")
    assert "one \x1b[01;31m\x1b[Kghp_[redacted]\x1b[m\x1b[K two" in text
    assert "\x1b[1mpassword\x1b[0m: [redacted]" in text and "hunter4" not in text
    assert text.endswith("ghp_[redacted]\x1b[m end")


PAUSES = [  # the parts, and what is in the log in the end
    ([TOKEN[:10], TOKEN[10:] + "\\n"], "ghp_[redacted]"),
    ([TOKEN[:3], TOKEN[3:25], TOKEN[25:] + " z\\n"], "ghp_[redacted] z"),
    (["password=hun", "ter2SECRET\\n"], "password=[redacted]"),
    (["password=", "hunter2SECRET x\\n"], "password=[redacted] x"),
    (["pass", "word: hun", "ter2SECRET"], "password: [redacted]"),
    (["PIN=\\'hunter2 ", "SECRET\\' x\\n"], "PIN='[redacted]' x"),
    (["see https://me:hun", "ter2SECRET@host/\\n"], "see https://me:[redacted]@host/"),
    (["\\033[3", "1m" + TOKEN[:12], "\\033[0m" + TOKEN[12:] + "\\n"], "\\x1b[31mghp_[redacted]"),
]


@pytest.mark.parametrize("options", FORMS, ids=["text", "jsonl"])
@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_secrets_with_pauses(plain, options, terminal):
    """A begun line is written after a second; what follows is masked in the light of it."""
    def run(i):
        mine = [options[0], f"{i}{options[1]}"]
        plain.write(f"ws/script{i}", "; sleep 1.3; ".join(f"printf $'{p}'" for p in PAUSES[i][0]))
        command = ["/bin/bash", f"script{i}"]
        if terminal:
            assert screen(plain, command, [], options=mine)[0] == 0
        else:
            plain.run(*command, options=mine).ok()
        return logged(plain, mine)

    with ThreadPoolExecutor(len(PAUSES)) as pool:
        for text, (parts, want) in zip(pool.map(run, range(len(PAUSES))), PAUSES):
            assert text.replace("\x1b", "\\x1b") == want, parts
            assert "SECRET" not in text and "ter2" not in text


def test_typed_with_pauses(plain):
    code, _ = screen(plain, ["sh", "-c", "echo up; read a; echo one; read b"],
                     [("up", TOKEN[:10]), (TOKEN[:10], ""), ("", TOKEN[10:] + "\r"),
                      ("one", "password=hun"), ("hun", ""), ("", "ter2SECRET\r")])
    assert code == 0
    assert "".join(of(plain, "key")) == "ghp_[redacted]password=[redacted]"
    assert "SECRET" not in (plain.ws / "session.log").read_text()


def test_prompts_are_written_at_once(plain):
    """Not only when the line ends; and nothing is written twice."""
    prompts = ("$ ", "Password: ", "Really? [y/N]", "Building...")
    plain.write("ws/session.log", "")
    os.chown(plain.ws / "session.log", plain.who.uid, -1)
    with plain.start("/bin/sh", "-c", 'for p; do printf "$p"; read x; echo; done', "sh", *prompts,
                     options=LOG) as child:
        for i, prompt in enumerate(prompts):
            assert wait_until(lambda: len(of(plain, "out")) == 2 * i + 1, 5), of(plain, "out")
            assert of(plain, "out")[-1] == prompt
            child.process.stdin.write(b"\n")
            child.process.stdin.flush()
        assert child.wait().code == 0
    assert of(plain, "out") == [t for p in prompts for t in (p, "")]


LONG = [  # a line without blanks, and how it ends in the log
    ("x" * 8170 + "," + TOKEN + "\n", ",ghp_[redacted]"),
    ("x" * 8150 + "," + TOKEN + ",y\n", ",ghp_[redacted],y"),
    ("," * 8170 + TOKEN + "z" * 30000 + " y\n", ",ghp_[redacted] y"),
    ("\0" * 8180 + "password=" + "SECRET;" * 1 + "," * 20000 + "\n", "password=[redacted];" + "," * 20000),
    ("z " * 5000 + "PIN='" + "SECRET " * 9000 + "' end\n", "PIN='[redacted]' end"),
    ("/" * 8170 + "https://me:SECRET" + "0" * 1000 + "@h/" + "x" * 9000 + "\n",
     "https://me:[redacted]@h/" + "x" * 9000),
    ("/" * 7000 + "eyJ" + "b" * 2000 + ".eyJ" + TOKEN[8:] * 400 + "." + TOKEN[4:] * 400 + " z\n",
     "eyJ[redacted] z"),
]


@pytest.mark.parametrize("options", FORMS, ids=["text", "jsonl"])
def test_secrets_in_long_lines(plain, options):
    for i, (line, want) in enumerate(LONG):
        mine = [options[0], f"{i}{options[1]}"]
        plain.write("ws/f", line)
        plain.run("cat", "f", options=mine).ok()
        text = logged(plain, mine)
        assert text.endswith(want), (i, text[-len(want) - 200:])
        assert "SECRET" not in text


def test_no_token_in_two_records(plain):
    """Also none that is none, for what stands before it; and nothing is lost or doubled."""
    for before in range(8140, 8195, 9):
        line = "x" * before + TOKEN + "x" * (20000 - before)
        plain.write("ws/f", line + "\n")
        plain.run("cat", "f", options=["--log", f"l{before}"]).ok()
        records = of(plain, "out", f"l{before}")
        assert "".join(records) == line and [r for r in records if TOKEN in r]
        assert max(map(len, records)) <= 8192


@pytest.mark.parametrize("options", FORMS, ids=["text", "jsonl"])
@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_private_keys(plain, options, terminal):
    """What is left out is told; nothing else is."""
    body = "".join(f"{TOKEN[8:]}{i:04}\n" for i in range(20))
    begin, end = "-----BEGIN RSA PRIVATE KEY-----\n", "-----END RSA PRIVATE KEY-----\n"
    plain.write("ws/f", f"key:\n{begin}{body}{end}after the key\n{begin}{body}no end\n"
                f"if has('{begin.strip()}'):\n    go()\n{begin}{body[:60]}")
    command = ["/bin/sh", "-c", "head -c 700 f; sleep 1.2; tail -c +701 f"]
    if terminal:
        assert screen(plain, command, [], options=options)[0] == 0
    else:
        plain.run(*command, options=options).ok()
    # how the first line is masked is redact.h's matter
    text = re.sub(r"-----BEGIN (\[redacted\]|RSA PRIVATE KEY-----)('\):)?", "<BEGIN>", logged(plain, options))
    assert text == ("key:<BEGIN>[21 lines redacted]after the key<BEGIN>[20 lines redacted]no end"
                    "if has('<BEGIN>    go()<BEGIN>[2 lines redacted]")


def test_what_only_speaks_of_keys(plain):
    """No line after it is lost."""
    plain.write("ws/f", "const BEGIN = '-----BEGIN PRIVATE KEY-----';\n# -----BEGIN PRIVATE KEY-----\n"
                + "".join(f"line {i}\n" for i in range(300)))
    plain.run("cat", "f", options=LOG).ok()
    assert of(plain, "out")[2:] == [f"line {i}" for i in range(300)]


def test_rotation(plain):
    options = [*LOG, "--set", "log.maxSize=20k", "--set", "log.maxFiles=2"]
    for i in range(6):
        plain.sh(f"yes 'run {i} 0123456789 0123456789' | head -250", options=options).ok()
    files = sorted(p.name for p in plain.ws.glob("session.log*"))
    assert files == ["session.log", "session.log.1", "session.log.2"]
    for name in files:
        assert (plain.ws / name).stat().st_size <= 20480
        assert stat.S_IMODE((plain.ws / name).stat().st_mode) == 0o600
        entries(plain, name)
    assert "run 5" in (plain.ws / "session.log").read_text()


def test_many_writers(plain):
    """Runs that share a log: no line is torn, none is lost, while files are put aside."""
    plain.mkdir("logs")
    options = ["--log", "../logs/shared", "--set", "log.maxSize=30k", "--set", "log.maxFiles=50"]
    argv = plain.argv("/bin/sh", "-c", "for i in $(seq 200); do echo $1.$i; done", "x", options=options)
    running = [plain.who.popen([*argv, str(n)], cwd=plain.ws, env=plain.env,
                               stdout=subprocess.DEVNULL) for n in range(8)]
    assert [p.wait(60) for p in running] == [0] * 8
    seen = [t for p in (plain.home / "logs").iterdir() for t in of(plain, "out", p)]
    assert sorted(seen) == sorted(f"{n}.{i}" for n in range(8) for i in range(1, 201))


def test_log_is_refused(box):
    outside = box.write("outside.txt", "mine\n")
    (box.ws / "link").symlink_to(outside)
    os.link(outside, box.ws / "hard")
    box.mkdir("ws/dir")
    for name, words in (("link", "symbolic link"), ("hard", "not a file of yours alone"),
                        ("dir", "directory"), ("no/such/x", "No such file"), ("a*b", "must not have")):
        r = box.run("touch", "ran", options=["--log", name])
        assert r.code == 125 and words in r.err, str(r)
        assert not (box.ws / "ran").exists()
    assert outside.read_text() == "mine\n"


def test_log_of_somebody_else(plain):
    if os.geteuid() != 0:
        pytest.skip("only root can make a file of somebody else's")
    (plain.ws / "theirs").write_text("x")
    os.chmod(plain.ws / "theirs", 0o666)
    r = plain.run("true", options=["--log", "theirs"])
    assert r.code == 125 and "not a file of yours alone" in r.err, str(r)


def test_command_cannot_change_the_log(box):
    box.sh("echo first", options=LOG).ok()
    (box.ws / "session.log.1").write_text("old\n")
    os.chown(box.ws / "session.log.1", box.who.uid, box.who.gid)
    script = ("echo forged >>session.log; echo x >session.log.1; mv session.log gone; rm -f session.log;"
              "ln -sf /etc/passwd session.log; truncate -s 0 session.log; echo done")
    r = box.sh(script, options=LOG)
    assert "done" in r.out, str(r)
    assert "forged" not in [t for s, t in entries(box) if s == "out"]
    assert of(box, "out")[0] == "first" and "done" in of(box, "out")
    assert (box.ws / "session.log.1").read_text() == "old\n"


def test_log_is_safe_to_look_at(plain):
    plain.sh(r"printf '\033[2J\033]0;title\007evil\r\n'", options=LOG).ok()
    assert "\x1b" not in (plain.ws / "session.log").read_text()


def test_full_disk(rooted):
    """The command goes on; that the log is not whole is said once."""
    rooted.mkdir("ws/small")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k,mode=0777", "none",
                       rooted.ws / "small"]).returncode:
        pytest.skip("cannot mount a small file system")
    try:
        r = rooted.sh("yes 0123456789 | head -20000; echo end", options=["--log", "small/log"])
        assert r.code == 0 and r.out.endswith("end\n"), str(r)[-500:]
        assert r.err.count("the session log cannot be written: No space left") == 1, r.err
    finally:
        subprocess.run(["umount", rooted.ws / "small"], check=True)


def test_full_disk_for_a_while(rooted):
    """The record that did not fit ends before the next one begins."""
    small = rooted.mkdir("ws/small")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0777", "none", small]).returncode:
        pytest.skip("cannot mount a small file system")
    try:
        (small / "filler").write_bytes(bytes(20000))
        with rooted.start("sh", "-c", "yes 0123456789 | head -20000; echo half; read x; echo after",
                          options=["--log", "small/log.jsonl"]) as child:
            for line in child.process.stdout:
                if line == b"half\n":
                    break
            (small / "filler").unlink()
            assert child.wait(input=b"go\n").code == 0
        lines = (small / "log.jsonl").read_text().splitlines()
        whole = [line for line in lines if line.endswith("}")]
        assert len(lines) - len(whole) <= 1
        records = [json.loads(line) for line in whole]
        assert "after" in [r.get("text") for r in records] and records[-1]["event"] == "end"
    finally:
        subprocess.run(["umount", small], check=True)


# --- the output limit ------------------------------------------------------------------------

@pytest.mark.parametrize("options", [[], LOG], ids=["plain", "logged"])
def test_endless_output(box, options):
    path = box.home / "report.json"
    r = box.run("yes", options=["--output", "64k", "--report", path, *options])
    report = json.loads(path.read_text())
    assert r.code == 137 and len(r.out) == 65536, str(r)[-300:]
    assert r.err == "ambit: limit output 64k reached — everything inside was ended (raise with: --output 128k)\n"
    assert report["limit"] == "output" and report["peak"]["output"] == 65536


def test_both_streams_count(plain):
    r = plain.sh("head -c 600 /dev/zero; head -c 600 /dev/zero >&2; sleep 5", options=["--output", "1000"])
    assert r.code == 137 and r.out.count("\0") + r.err.count("\0") == 1000, str(r)


def test_to_the_byte(plain):
    assert plain.sh("head -c 1000 /dev/zero", options=["--output", "1000"]).code == 0
    r = plain.sh("head -c 1001 /dev/zero; exit 0", options=["--output", "1000"])
    assert r.code == 137 and len(r.out) == 1000, str(r)


def test_output_to_a_terminal_counts(plain):
    """Also what goes past stdout, to the terminal itself."""
    code, shown = screen(plain, ["sh", "-c", "yes >/dev/tty"], [], options=["--output", "20k"])
    assert code == 137 and "limit output 20k reached" in shown
    assert len(shown) < 40000


def test_signals_pass(plain):
    for sig, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGUSR1, 138)):
        with plain.start("/bin/sh", "-c", "echo up; exec sleep 30", options=LOG) as child:
            assert child.process.stdout.readline() == b"up\n"
            child.process.send_signal(sig)
            assert child.wait().code == code


def test_nothing_is_left(plain):
    """No process, no terminal: after many runs as many ptys as before."""
    before = len(os.listdir("/dev/pts"))
    for _ in range(5):
        screen(plain, ["true"], [])
    assert wait_until(lambda: len(os.listdir("/dev/pts")) <= before + 1, 15)
