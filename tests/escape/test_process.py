# SPDX-License-Identifier: Apache-2.0
"""Processes, terminal and kernel: the parts of K1-K25 that are no single call."""
import fcntl
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import termios
import time

import pytest

import ambit_test
from ambit_test import AMBIT, mount_table, processes_with, settled_changes, wait_until

# --- K1: typing into the caller's terminal -----------------------------------


def injected(box, argv):
    """Run argv in a terminal of its own; what waits there to be read by the next program?"""
    master, slave = os.openpty()
    os.fchown(slave, box.who.uid, -1)
    settings = termios.tcgetattr(slave)
    settings[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    p = box.who.popen(argv, cwd=box.ws, env=box.env, stdin=slave, stdout=subprocess.PIPE,
                      stderr=subprocess.PIPE, start_new_session=True,
                      preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    out, err = p.communicate(timeout=20)
    os.set_blocking(slave, False)
    try:
        typed = os.read(slave, 100)
    except BlockingIOError:
        typed = b""
    os.close(slave)
    os.close(master)
    return out.decode() + err.decode(), typed


@pytest.mark.parametrize("probe_name", ["tty-sti", "tty-sti-high", "tty-sti-top", "tty-sti-dev"])
def test_terminal_input(box, probe, probe_name):
    argv = [probe, "run", "x=y", probe_name]
    out, typed = injected(box, argv)
    if "EIO" in out or "EPERM" in out:
        ambit_test.skip_impossible("this kernel refuses TIOCSTI to everybody (dev.tty.legacy_tiocsti)")
    assert typed == b"INJ", "the control run failed: " + out
    out, typed = injected(box, box.argv(*argv))
    assert typed == b"" and f"{probe_name}\tdenied" in out, out


@pytest.mark.parametrize("probe_name", ["tty-linux", "tty-linux-high"])
def test_console_requests(box, probe, probe_name):
    """TIOCLINUX (select and paste) on a console given as standard input."""
    if os.geteuid() != 0 or not os.path.exists("/dev/tty1"):
        ambit_test.skip_impossible("needs root and a console")
    argv = [probe, "run", "x=y", probe_name]
    for prefix in (False, True):
        with open("/dev/tty1", "rb+", buffering=0) as console:
            p = box.who.popen(box.argv(*argv) if prefix else argv, cwd=box.ws, env=box.env,
                              stdin=console, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
            out, err = p.communicate(timeout=20)
        if prefix:
            assert f"{probe_name}\tdenied\tEPERM" in out, out + err
        elif box.who.uid == 0:
            assert f"{probe_name}\topen" in out, out + err


# --- K2: a 32-bit program ----------------------------------------------------

# write(1, "ia32\n", 5); exit(0) with int 0x80, behind a minimal ELF32 header
CODE32 = bytes.fromhex("b804000000bb01000000b974800408ba05000000cd80b80100000031dbcd80")


def elf32():
    base, text = 0x08048000, b"ia32\n"
    start = 52 + 32
    code = CODE32.replace(bytes.fromhex("74800408"), struct.pack("<I", base + start + len(CODE32)))
    size = start + len(code) + len(text)
    head = b"\x7fELF\x01\x01\x01" + b"\0" * 9 + struct.pack(
        "<HHIIIIIHHHHHH", 2, 3, 1, base + start, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    program = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 0x1000)
    return head + program + code + text


def test_32_bit_program(box):
    """The filter is for one architecture; the other one's calls have other numbers."""
    if os.uname().machine != "x86_64":
        ambit_test.skip_impossible("x86 only")
    p = box.write("ws/prog32", elf32(), 0o755)
    r = box.host(p)
    if r.code != 0:
        ambit_test.skip_impossible(f"this kernel runs no 32-bit programs: {r.err}")
    assert r.out == "ia32\n"
    r = box.run(p)
    assert r.code != 0 and "ia32" not in r.out, r


# --- P: the caller's own options -----------------------------------------------


def test_the_callers_options_are_not_seen(box):
    """Init's command line can be read by everybody inside: no option of the caller's is in it."""
    r = box.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '",
               options=["--network", "allowlist", "--set", "network.parentProxy.http=http://u:hunter2@127.0.0.1:9"])
    assert "proc" in r.out and "hunter2" not in r.out and "allowlist" not in r.out, r


# --- K10: set-user-ID programs and file capabilities -------------------------


@pytest.fixture
def other_uid(box):
    """Somebody else than the person: root for the user, the user for root."""
    return 0 if box.who.uid != 0 else ambit_test.who("user").uid


@pytest.mark.parametrize("where", ["project", "outside"])
def test_setuid_program(box, probe, other_uid, where):
    if os.geteuid() != 0:
        ambit_test.skip_impossible("only root can make a set-user-ID program of another user")
    p = box.write("ws/suid" if where == "project" else "suid", probe.read_bytes(), 0o755)
    os.chown(p, other_uid, -1)
    p.chmod(0o4755)
    r = box.host(p, "run", "x=y", "suid-effective").ok()
    assert "suid-effective\topen" in r.out, r
    r = box.run(p, "run", "x=y", "suid-effective")
    assert "open" not in r.out, r


def test_file_capabilities(box, probe):
    if os.geteuid() != 0:
        ambit_test.skip_impossible("only root can give a file capabilities")
    p = box.write("caps", probe.read_bytes(), 0o755)
    # VFS_CAP_REVISION_2 | effective, CAP_NET_RAW
    os.setxattr(p, "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0))
    if box.who.uid != 0:
        assert "cap-effective\topen" in box.host(p, "run", "x=y", "cap-effective").out
    r = box.run(p, "run", "x=y", "cap-effective", options=["--allow-read", p])
    # without a user namespace the kernel does not even start it
    assert "cap-effective\tdenied" in r.out or r.code == 126, r


def test_su_and_sudo(box, place):
    """The programs themselves, where they are: never another user, whatever they say."""
    for argv in (["su", "-c", "id -u"], ["sudo", "-n", "id", "-u"], ["pkexec", "id", "-u"]):
        if not shutil.which(argv[0]):
            continue
        r = box.run(*argv, input="")
        if box.who.uid != 0:
            assert "0" not in r.out.split(), r
    r = box.run("cat", "/proc/self/status").ok()
    fields = dict(line.split(":\t", 1) for line in r.out.splitlines() if ":\t" in line)
    assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2"
    bounding = [] if (place.backend, place.person) == ("landlock", "user") else ["CapBnd"]  # cap-bounding
    assert {int(fields[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapAmb", *bounding)} == {0}


# --- K11: signals ------------------------------------------------------------


def in_own_namespace(box):
    """For control runs that would hit the whole machine."""
    return ["unshare", *([] if box.who.uid == 0 else ["--user", "--map-root-user"]), "--pid",
            "--fork", "--mount-proc", "--kill-child"]


@pytest.mark.parametrize("probe_name", ["kill-all", "kill-group"])
def test_signals_to_everybody(box, probe, probe_name):
    """kill(-1) and kill(0): the caller's shell in the same process group survives, and so does
    a bystander of the same user."""
    script = ('sleep 61.25 & b=$!; "$@"; r=$?; sleep 0.1; kill -0 $b 2>/dev/null && '
              'echo BYSTANDER-LIVES; echo SHELL-LIVES $r; kill $b')
    attack = [probe, "run", "confined=yes", probe_name]
    r = box.host(*in_own_namespace(box), "/bin/bash", "-c", script, "sh", *attack)
    assert "BYSTANDER-LIVES" not in r.out, "the control run failed"
    r = box.host("/bin/bash", "-c", script, "sh", *box.argv(*attack))
    assert "BYSTANDER-LIVES" in r.out and "SHELL-LIVES" in r.out, r


def test_signals_to_init(box, probe):
    """pid 1 inside cannot be killed, stopped or crashed: the command goes on and is waited for."""
    r = box.sh(f'"{probe}" run confined=yes kill-init; echo still here; exit 7')
    assert "still here" in r.out and r.code == 7, r


def test_terminal_signals_stay_inside(box):
    """On a terminal, a command that signals its whole group does not stop or kill the caller."""
    r = box.pty(["/bin/bash", "-c", f"'{AMBIT}' run -- sh -c 'trap : TERM; kill -TERM 0; echo in'; "
                 "echo after; exit 3"], sandbox=False)
    assert "after" in r.out and r.code == 3, r


# --- K12, K18: nothing stays behind ------------------------------------------

DAEMON = """
(setsid sh -c 'sleep 77.%(mark)s & sleep 77.%(mark)s' </dev/null >/dev/null 2>&1 &)
nohup sleep 77.%(mark)s </dev/null >/dev/null 2>&1 &
python3 -c 'import os,time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
import signal
for s in range(1, 32):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
os.execvp("sleep", ["sleep", "77.%(mark)s"])' </dev/null >/dev/null 2>&1
sleep 0.2; echo started
"""


def test_daemons_die(box):
    mark = str(secrets.randbelow(10**9))
    script = DAEMON % {"mark": mark}
    r = box.host("/bin/sh", "-c", script)
    survived = wait_until(lambda: len(processes_with("77." + mark)) >= 3)
    for pid in processes_with("77." + mark):
        os.kill(pid, signal.SIGKILL)
    assert survived, "the control run failed"
    r = box.sh(script)
    assert "started" in r.out, r
    assert wait_until(lambda: processes_with("77." + mark) == [], 5)


@pytest.mark.parametrize("by", ["SIGKILL", "SIGSEGV"])
def test_killed_supervisor(box, by):
    """When ambit dies, however, everything inside is dead soon (5 s on a busy machine); no mount, no file
    and no process is left."""
    mark = str(secrets.randbelow(10**9))
    mounts, home = mount_table(), sorted(os.listdir(box.home))
    with box.start("/bin/sh", "-c", DAEMON % {"mark": mark} + f"sleep 77.{mark}") as child:
        assert child.process.stdout.readline() == b"started\n"
        assert wait_until(lambda: len(processes_with("77." + mark)) >= 4)
        os.kill(child.process.pid, getattr(signal, by))
        child.process.wait(timeout=5)
        assert wait_until(lambda: processes_with("77." + mark) == [], 5)
    assert not settled_changes(mount_table, mounts)
    assert sorted(os.listdir(box.home)) == home and list(box.ws.iterdir()) == []


def test_killed_supervisor_during_start(box):
    """At any moment of the start: killed before the command runs, it never runs on alone."""
    mark = str(secrets.randbelow(10**9))
    for delay in range(0, 60, 3):
        with box.start("sleep", "77." + mark) as child:
            time.sleep(delay / 10000)
            child.process.kill()
            child.process.wait()
    assert wait_until(lambda: processes_with("77." + mark) == [], 5)


def test_closed_output(box):
    """A caller that goes away (closed pipes) does not leave a run behind."""
    mark = str(secrets.randbelow(10**9))
    with box.start("/bin/sh", "-c", f"while echo x; do :; done; sleep 0.{mark}") as child:
        child.process.stdout.read(10)
        child.process.stdout.close()
        child.process.stderr.close()
        child.process.stdout = child.process.stderr = None
        assert wait_until(lambda: child.process.poll() is not None, 5)


# --- K14: honest exit codes --------------------------------------------------


@pytest.mark.parametrize("script, code", [
    ("echo x > ~/.bashrc", None), ("echo x > ~/.bashrc; exit 0", 0), ("exit 42", 42),
    ("kill -9 $$", 137), ("kill -TERM $$", 143), ("cat ~/.ssh/id; exit 5", 5),
])
def test_exit_codes(box, script, code):
    """The command's own status, whatever was refused to it."""
    box.write(".ssh/id", "TOKEN", 0o600)
    r = box.sh(script)
    assert r.code == (code if code is not None else r.code) and (code is not None or r.code != 0), r
    assert "TOKEN" not in r.out and not (box.home / ".bashrc").exists()


def test_exit_code_when_the_caller_ignores_children(box):
    """SIGCHLD ignored (cron, some agents): the kernel then reaps by itself, statuses get lost."""
    def ignore():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})

    r = box.sh("exit 42", preexec_fn=ignore)
    assert r.code == 42, r


def test_exit_code_of_forged_events(box):
    """A command cannot fake its end: there is no descriptor of the supervisor inside, and an
    orphan that exits is not the command."""
    r = box.sh("(sh -c 'sh -c \"exit 9\" & exit 8' &) ; sleep 0.2; ls /proc/self/fd | wc -l; exit 4")
    assert r.code == 4 and int(r.out) <= 4, r  # 0-2 and the directory itself


def test_closed_standard_streams(box):
    """Started with 0-2 closed, ambit's own descriptors must not take these numbers and become
    the command's standard streams."""
    script = 'exec 0<&- 1>&- 2>&-; exec "$@"'
    look = "for f in 0 1 2; do readlink /proc/$$/fd/$f || echo none; done > ./links"
    box.host("/bin/bash", "-c", script, "sh", *box.argv("/bin/sh", "-c", look))
    links = (box.ws / "links").read_text().split()
    assert len(links) == 3 and set(links) <= {"none", "/dev/null", str(box.ws / "links")}, links


# --- K15: the caller's environment -------------------------------------------

HOOKS = {
    "LD_PRELOAD": "{lib}", "LD_AUDIT": "{lib}", "LD_LIBRARY_PATH": "{dir}", "BASH_ENV": "{sh}",
    "ENV": "{sh}", "PYTHONSTARTUP": "{py}", "NODE_OPTIONS": "--require={dir}/x.js",
    "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.pager", "GIT_CONFIG_VALUE_0": "touch {flag}",
    "GIT_SSH_COMMAND": "touch {flag}", "PERL5OPT": "-Mevil",
    "GCONV_PATH": "{dir}", "PROMPT_COMMAND": "touch {flag}", "BASH_FUNC_ls%%": "() { touch {flag}; }",
    "RUBYOPT": "-revil", "JAVA_TOOL_OPTIONS": "-javaagent:x",
}


def hostile_environment(box):
    c = box.write("evil/evil.c", "#include <unistd.h>\n#include <fcntl.h>\n#include <stdlib.h>\n"
                  "__attribute__((constructor)) static void f(void) { if (getenv(\"FLAG\")) "
                  "close(open(getenv(\"FLAG\"), O_CREAT | O_WRONLY, 0644)); }\n")
    lib = ambit_test.compile_c(c, box.home / "evil/evil.so", "-shared", "-fPIC")
    flag = box.ws / "flag"
    names = {"lib": str(lib), "dir": str(box.home / "evil"), "flag": str(flag),
             "sh": str(box.write("evil/evil.sh", f"touch {flag}\n")),
             "py": str(box.write("evil/evil.py", f"open({str(flag)!r}, 'w')\n"))}
    env = {}
    for k, v in HOOKS.items():
        for n, value in names.items():
            v = v.replace("{" + n + "}", value)
        env[k] = v
    return env, flag


def test_loader_hooks(box):
    """Variables that make programs load or run something: not in the command's environment,
    and without effect on ambit itself."""
    env, flag = hostile_environment(box)
    env["FLAG"] = str(flag)
    box.host("/bin/bash", "-c", "true", env=env)
    assert flag.exists(), "the control run failed"
    flag.unlink()
    r = box.run("/usr/bin/env", "-0", env=env).ok()
    inside = {v.split("=", 1)[0] for v in r.out.split("\0")}
    assert inside & set(HOOKS) == set()
    assert not flag.exists()
    box.run("/bin/bash", "-c", "git --version >/dev/null; ls >/dev/null", env=env).ok()
    assert not flag.exists()


# --- K16: arguments and variables that look like something else --------------


def test_argument_injection(box):
    """Words of the command are never ambit's options."""
    box.write(".ssh/id", "TOKEN", 0o600)
    for name in ("--network=host", "--allow-read=~", "-s", "--backend=none"):
        p = box.write(f"ws/{name}", "#!/bin/sh\ncat ~/.ssh/id; echo \"ran $@\"\n",
                      0o755)
        env = {"PATH": f"{box.ws}:/usr/bin:/bin"}
        r = box.run(name, "--backend", "none", "x", env=env, options=["--env", "PATH"])
        assert "ran --backend none x" in r.out and "TOKEN" not in r.out, r
        p.unlink()
    r = box.ambit("run", "sh", "-c", "cat ~/.ssh/id; echo $0", "--backend=none")
    assert r.out.strip() == "--backend=none", r
    r = box.run("echo", "a b", "$(id)", ";", "|", "\n", "'\"", "")
    assert r.out == "a b $(id) ; | \n '\" \n", r


def test_unsandboxed_words(box):
    """The ways to say no sandbox are the caller's, loud, and not the project's."""
    box.write(".ssh/id", "TOKEN", 0o600)
    box.write("ws/.ambit.json", '{"enabled": false, "backend": "none", "filesystem": '
              '{"allowRead": ["~/.ssh"], "allowWrite": ["/"]}, "network": {"mode": "host"}}')
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = ("cat ~/.ssh/id; echo x > ~/escaped; /usr/bin/python3 -c 'import socket; socket.create_connection("
                  f"(\"127.0.0.1\", {server.getsockname()[1]}), 5); print(\"REACHED\")'; :")
        r = box.sh(script)
        assert "TOKEN" not in r.out and "REACHED" not in r.out and not (box.home / "escaped").exists(), r
        r = box.sh(script, env={"AMBIT_NO_SANDBOX": "1"})
    assert "NO SANDBOX" in r.err and "TOKEN" in r.out and "REACHED" in r.out, r


def test_variables_with_newlines(box):
    env = {"A": "1\nLD_PRELOAD=/evil", "B\nC": "x", "LINES": "a\nb"}
    r = box.run("/usr/bin/env", "-0", env=env).ok()
    names = {v.split("=", 1)[0] for v in r.out.split("\0") if v}
    assert "LD_PRELOAD" not in names
    assert "A=1\nLD_PRELOAD=/evil" in r.out.split("\0")


# --- K17: large inputs -------------------------------------------------------


def test_large_arguments(box):
    args = ["x" * 100000] * 15
    r = box.run("/bin/sh", "-c", 'echo $# ${#1}', "sh", *args).ok()
    assert r.out.split() == ["15", "100000"]
    env = {f"V{i}": "y" * 1000 for i in range(500)}
    assert box.run("/bin/sh", "-c", "env | grep -c ^V[0-9]", env=env).ok().out.strip() == "500"


def test_many_rules(box):
    """Ten thousand rules: they all hold, or ambit says that they are too many."""
    box.mkdir("ws/many")
    for i in (0, 5000, 9999):
        box.write(f"ws/many/{i}/f", "TOKEN")
    rules = ", ".join(f'"many/{i}"' for i in range(10000))
    box.write("settings.json", '{"filesystem": {"allowWrite": ["."], "denyRead": [%s]}}' % rules)
    r = box.run("/bin/sh", "-c", "cat many/0/f many/5000/f many/9999/f; echo end",
                options=["-s", str(box.home / "settings.json")], timeout=30)
    assert "TOKEN" not in r.out
    assert (r.code == 0 and "end" in r.out) or (r.code == 125 and r.err), r


# --- K13: limits -------------------------------------------------------------


@pytest.mark.parametrize("option", [["--pids", "20"], ["--memory", "64m"], ["--output", "1k"]])
def test_limits_hold_or_refuse(box, option):
    """A limit that is asked for is held and named, or refused: never promised only. The others
    are not told at once: a slower processor, and files that are looked at now and then."""
    bomb = ("import os, sys, resource, time\n"
            "resource.setrlimit(resource.RLIMIT_NPROC, (400, 400))\n"
            "n = 0\n"
            "for i in range(60):\n"
            "  try:\n"
            "    if os.fork() == 0: os.read(0, 1); os._exit(0)\n"
            "    n += 1\n"
            "  except OSError: break\n"
            "x = None\n"
            "try: x = b'x' * (200 << 20)\n"
            "except MemoryError: pass\n"
            "open('big', 'wb').write(b'x' * (4 << 20))\n"
            "sys.stdout.write('y' * 10000)\n"
            "time.sleep(1)\n"  # some limits are held by samples
            "print('forked', n, 'memory', x is not None)\n")
    r = box.run("/usr/bin/python3", "-c", bomb, options=option, input="")
    if r.code == 125:
        assert option[0][2:] in r.err, r
        return
    assert "limit" in r.err, r


# --- network modes of later versions -----------------------------------------


@pytest.mark.parametrize("options", [["--allow-domain", "allowed.test"],
                                     ["--allow-domain", "127.0.0.1"], ["--network", "allowlist"]],
                         ids=" ".join)
def test_allow_list_is_not_open(place, worlds, options):
    """An allow-list that cannot be enforced (yet) is refused or lets nothing else through."""
    w = worlds(place.person, "allowlist" + options[-1], place.backend)
    r = w.attack(["net-tcp6", "net-interfaces"], [AMBIT, "run", *options, "--"])
    if r.code == 125:
        assert r.err, r
        return
    assert w.lines["net-tcp6"][0] == "denied" and w.lines["net-interfaces"][0] == "denied", r


@pytest.mark.parametrize("option", ["--publish", "--allow-host-port"])
def test_ports_hold_or_refuse(box, option):
    """A port that is asked for is there, or the run is refused: never promised only."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        if option == "--allow-host-port":
            free.listen()
            inside = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5); print('yes')"
            r = box.run("/usr/bin/python3", "-c", inside, options=[option, str(port)])
            assert r.code == 125 and r.err or "yes" in r.out, r
            return
    inside = (f"import socket; s = socket.socket(); s.bind(('0.0.0.0', {port})); s.listen(); "
              "print('up', flush=True); s.accept(); print('yes')")
    with box.start("/usr/bin/python3", "-c", inside, options=[option, str(port)]) as child:
        if child.process.stdout.readline() == b"up\n":
            socket.create_connection(("127.0.0.1", port), 5).close()
            assert b"yes" in child.process.stdout.readline()
        else:
            r = child.wait()
            assert r.code == 125 and r.err, r


# --- K23: nested -------------------------------------------------------------


def nested(box, *options, inner=("sh", "-c", "cat ~/.ssh/id; echo x > ~/escaped; echo end")):
    return box.run(AMBIT, "run", *options, "--", *inner)


@pytest.mark.parametrize("options", [
    ["--allow-read", "~/.ssh", "--allow-write", "~"], ["--backend", "none"],
    ["--allow-write", "/", "--network", "host", "--tmp", "shared"], ["--fallback", "warn"],
    ["--set", "enabled=false"],
], ids=" ".join)
def test_nested_cannot_widen(box, options):
    box.write(".ssh/id", "TOKEN", 0o600)
    assert "TOKEN" in box.host(AMBIT, "run", "--allow-read", "~/.ssh", "--", "cat",
                               str(box.home / ".ssh/id")).out, "the control run failed"
    r = nested(box, *options)
    assert "TOKEN" not in r.out and not (box.home / "escaped").exists(), r
    assert r.code in (0, 1, 2, 125), r


def test_off_switches_from_inside(box):
    """AMBIT_NO_SANDBOX, unset AMBIT, the policy files and the program itself."""
    box.write(".ssh/id", "TOKEN", 0o600)
    box.write(".config/ambit/settings.json", "{}")
    tool = box.write("bin/ambit", AMBIT.read_bytes(), 0o755)  # not the one under test
    for helper in AMBIT.parents[1].glob("*/ambit-*"):
        if helper.is_file():
            box.write(f"libexec/ambit/{helper.name}", helper.read_bytes(), 0o755)
    script = f"""
        AMBIT_NO_SANDBOX=1 '{tool}' run -- cat ~/.ssh/id
        env -u AMBIT AMBIT_NO_SANDBOX=1 '{tool}' run -- cat ~/.ssh/id
        env -i HOME=$HOME AMBIT_NO_SANDBOX=1 '{tool}' run -- cat ~/.ssh/id
        echo '{{"enabled": false}}' > ~/.config/ambit/settings.json
        '{tool}' trust . ; rm -f '{tool}'; echo x > '{tool}'; mv '{tool}' '{tool}.old'; :"""
    r = box.host(tool, "run", "--", "/bin/sh", "-c", script)
    assert "TOKEN" not in r.out, r
    assert (box.home / ".config/ambit/settings.json").read_text() == "{}"
    assert tool.read_bytes() == AMBIT.read_bytes()
    assert not (box.home / ".local/state/ambit").exists()


# --- K24, K22 as root, and what is left of N ---------------------------------


def test_break_network(place, worlds):
    """The network tests can fail: with the host's network the listener is reached."""
    w = worlds(place.person, "broken-network", place.backend)
    w.attack(["net-tcp", "net-interfaces"], [AMBIT, "run", "--network", "host", "--"])
    assert w.lines["net-tcp"][0] == "open" and w.touched("net-tcp")


def test_break_reads(place, worlds):
    """The read tests can fail: with the secret allowed, the same attempts get it."""
    w = worlds(place.person, "broken-reads", place.backend)
    names = ["read-direct", "read-self-root", "read-thread-root", "read-cwd-climb", "read-dotdot",
             "read-symlink", "exec-memfd", "exec-copy", "exec-loader", "exec-proc-root"]
    w.attack(names, [AMBIT, "run", "--allow-read", w.secret.parent, "--"])
    assert {n: w.lines[n] for n in names if not w.touched(n)} == {}


def test_break_writes(place, worlds):
    """The write tests can fail: with everything writable, the same attempts change the file."""
    w = worlds(place.person, "broken-writes", place.backend)
    names = ["write-outside", "write-reopen", "write-truncate", "write-chmod", "write-fchmod",
             "write-utimes", "write-xattr", "write-unlink", "write-create", "write-symlink"]
    w.attack(names, [AMBIT, "run", "--allow-write", w.box.home, "--"])
    assert {n: w.lines[n] for n in names if not w.touched(n)} == {}


def test_break_private_places(place, worlds):
    """With a shared /tmp the socket there is found again."""
    w = worlds(place.person, "broken-tmp", place.backend)
    w.attack(["unix-tmp"], [AMBIT, "run", "--tmp", "shared", "--allow-unix", w.sockets["unix-tmp"],
                            "--"])
    assert w.touched("unix-tmp"), w.output
