# SPDX-License-Identifier: Apache-2.0
"""The bwrap backend: what users meet, and what happens when bwrap is missing, of the wrong kind,
or does not do what it is told. What it must hold is in tests/escape."""
import json
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

import ambit_test
from ambit_test import AMBIT, processes_with, wait_until

HERE = Path(__file__).parent
BWRAP = ["--backend", "bwrap"]
REAL = "/usr/bin/bwrap"


@pytest.fixture(scope="session")
def no_clone3(base_dir):
    return ambit_test.compile_c(HERE / "no_clone3.c", base_dir / "no_clone3")


# --- ordinary work ----------------------------------------------------------------------

def test_ordinary_work(box):
    report = box.ws / "report.json"
    box.write(".netrc", "SECRET")
    r = box.run("/bin/sh", "-ec", """
echo a >f; chmod 600 f; ln f g; ln -s f l; mv g h; mkdir -p a/b/c; mv a x; rm -r x; mkfifo p; rm p
git init -q r; cd r; git config user.name n; git config user.email e@x; echo 1 >a; git add a
git commit -qm m; git log --oneline | wc -l; cd ..
! cat ~/.netrc; ! touch ~/out /etc/out; ! touch r/.git/hooks/pre-commit .envrc
echo $$; test -w /tmp -a -w $TMPDIR; test $(ls /tmp | wc -l) = 0; ls /dev/pts/ptmx
""", options=["-v", *BWRAP, "--report", report]).ok()
    assert r.out == "1\n2\n/dev/pts/ptmx\n" and "SECRET" not in r.err, r
    assert "backend: bwrap (asked for by --backend)" in r.err
    assert not (box.home / "out").exists() and not (box.ws / ".envrc").exists()
    told = json.loads(report.read_text())
    assert told["backend"] == "bwrap" and not told.get("notEnforced")
    assert {"/etc/out", str(box.ws / ".envrc")} <= {v["target"] for v in told["violations"]}


def test_what_the_command_gets(box):
    """No capabilities, no descriptors, its own environment; nothing of bwrap's or ambit-init's."""
    r = box.run("/bin/sh", "-c", "grep -h 'Cap\\|NoNew' /proc/self/status; ls /proc/self/fd; env",
                options=[*BWRAP, "--env", "MINE=1"], pass_fds=[os.open("/", os.O_RDONLY)]).ok()
    caps = [line.split() for line in r.out.splitlines() if line.startswith("Cap")]
    assert len(caps) == 5 and all(int(c[1], 16) == 0 for c in caps), r
    assert "NoNewPrivs:\t1" in r.out and "MINE=1" in r.out and "\n4\n" not in r.out
    envs = [sorted(box.run("env", options=[*b, "--env", "MINE=1"]).ok().out.splitlines()) for b in ([], BWRAP)]
    assert envs[0] == envs[1]


def test_status_and_signals(box):
    assert box.sh("exit 7", options=BWRAP).code == 7
    assert box.sh("kill -TERM $$", options=BWRAP).code == 143
    assert box.run("no-such-program", options=BWRAP).code == 127
    assert box.run(box.ws, options=BWRAP).code == 126
    assert box.sh("sleep 100", options=[*BWRAP, "--timeout", "0.3"]).code == 124
    with box.start("/bin/sh", "-c", "trap 'echo got; exit 5' TERM; echo ready; sleep 100 & wait",
                   options=BWRAP) as child:
        assert child.process.stdout.readline() == b"ready\n"
        child.process.send_signal(signal.SIGTERM)
        r = child.wait()
    assert (r.code, r.out) == (5, "got\n")


def test_terminal(box):
    if not shutil.which("script"):
        ambit_test.skip_impossible("no script(1)")
    r = box.pty(["/bin/sh", "-c", "test -t 0 && stty size >/dev/null && echo terminal; tty; "
                 "script -qec 'test -t 0 && echo another' /dev/null"], options=BWRAP)
    assert "terminal" in r.out and "another" in r.out and "denied" not in r.out, r


@pytest.mark.parametrize("end", ["exit", "kill", "bwrap"])
def test_leaves_nothing(box, end):
    mark = f"ambit-bwrap-{box.who.name}-{end}"
    script = (f"for i in 1 2 3; do (setsid sh -c 'sleep 600; : {mark}' &) ; done; echo ready; "
              + ("read x" if end != "exit" else ":"))
    with box.start("/bin/sh", "-c", script, options=BWRAP) as child:
        assert child.process.stdout.readline() == b"ready\n"
        if end == "kill":
            child.process.kill()
        elif end == "bwrap":
            below = subprocess.run(["pgrep", "-P", str(child.process.pid), "bwrap"],
                                   capture_output=True, text=True).stdout.split()
            os.kill(int(below[0]), signal.SIGKILL)
        assert wait_until(lambda: not processes_with(mark), 5), processes_with(mark)
        if end == "bwrap":
            assert child.wait().code in (125, 137)


# --- network, limits --------------------------------------------------------------------

def test_network(box):
    """Names that are allowed resolve, the others are refused and told; ports lead out and in."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = (f"import socket; print(socket.gethostbyname('allowed.example')); "
                  f"s = socket.create_connection(('127.0.0.1', {port})); s.sendall(b'hello')\n"
                  "for name in ('denied.example', '192.0.2.1'):\n"
                  "    try: socket.create_connection((name, 80), 5); print('open')\n"
                  "    except OSError: print('refused')\n")
        with box.start("/usr/bin/python3", "-c", script,
                       options=[*BWRAP, "--allow-domain", "allowed.example",
                                "--allow-host-port", str(port)]) as child:
            server.settimeout(20)
            conn, _ = server.accept()
            assert conn.recv(5) == b"hello"
            r = child.wait()
        assert r.code == 0 and r.out.splitlines()[1:] == ["refused", "refused"], r
        assert r.out.startswith("198.18.") and "denied connect to denied.example" in r.err, r
        # none: nothing, not even this
        r = box.run("/usr/bin/python3", "-c",
                    f"import socket; socket.create_connection(('127.0.0.1', {port}))", options=BWRAP)
        assert r.code == 1 and "refused" in r.err, r
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    script = (f"import socket; s = socket.create_server(('', {port})); print('up', flush=True); "
              "c, _ = s.accept(); c.sendall(b'inside')")
    with box.start("/usr/bin/python3", "-c", script, options=[*BWRAP, "--publish", str(port)]) as child:
        assert child.process.stdout.readline() == b"up\n"
        with socket.create_connection(("127.0.0.1", port), 20) as c:
            assert c.recv(6) == b"inside"
        assert child.wait().code == 0


def test_no_loopback_without_listening(box):
    """bwrap brings lo up; where nobody may listen it is down, as with native."""
    show = ("import fcntl, socket, struct; s = socket.socket(type=socket.SOCK_DGRAM); "
            "print(struct.unpack('16sh22x', fcntl.ioctl(s, 0x8913, struct.pack('16s24x', b'lo')))[1] & 1)")
    off = ["--set", "network.allowLocalBinding=false"]
    flags = [box.run("/usr/bin/python3", "-c", show, options=[*BWRAP, *o]).ok().out for o in ([], off)]
    assert flags == ["1\n", "0\n"], flags


@pytest.mark.parametrize("where", ["/tmp", "/var/tmp", "/dev/shm", "all"])
def test_disk_limit_counts_all_private_directories(box, where):
    """Each is a file system of its own here; what counts is the sum."""
    places = ["/tmp", "/var/tmp", "/dev/shm"]
    fill = "; ".join(f"head -c {20 if where == 'all' else 60}m /dev/zero > {p}/f"
                     for p in places if where in (p, "all"))
    r = box.sh(fill + "; sleep 60", options=[*BWRAP, "--disk", "40m", "--timeout", "50"])
    assert r.code == 137 and "limit disk 40m reached" in r.err, r


def test_memory_and_processes(box):
    r = box.run("/usr/bin/python3", "-c", "x = bytearray(400 << 20); import time; time.sleep(60)",
                options=[*BWRAP, "--memory", "100m", "--timeout", "50"])
    assert r.code == 137 and "limit memory 100m reached" in r.err, r
    r = box.sh("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1 & done; wait; echo after",
               options=[*BWRAP, "--pids", "5", "--timeout", "50"])
    assert "after" not in r.out or "limit pids 5 reached" in r.err, r
    assert "fork" in r.err or "limit pids 5 reached" in r.err, r


# --- choosing ------------------------------------------------------------------------

def test_chosen_where_only_bwrap_may(box, no_clone3):
    """Nothing is lost by it, so nobody need be asked."""
    r = box.execute([no_clone3, AMBIT, "run", "-v", "--", "/bin/sh", "-c",
                     "echo $$; touch made .envrc; touch ~/out"])
    assert r.out == "2\n" and "backend: bwrap (bwrap may make namespaces here" in r.err, r
    assert "not enforced" not in r.err
    assert (box.ws / "made").exists() and not (box.ws / ".envrc").exists()
    assert not (box.home / "out").exists()


def test_check(box):
    told = json.loads(box.ambit("check", "--json").out)
    ours = {b["backend"]: b for b in told["others"]}["bwrap"]
    assert ours["works"] and all(p["enforced"] for p in ours["properties"])
    box.run("true", options=[*BWRAP, "--set", "require=user-namespaces"]).ok()


def test_plan_shows_the_arguments(box):
    box.write("secret", "x")
    r = box.ambit("plan", *BWRAP, "--deny-read", "~/secret", "--", "true").ok()
    assert f"  --bind {box.ws} {box.ws}\n" in r.out and f"  --ro-bind /dev/null {box.home}/secret\n" in r.out
    words = json.loads(box.ambit("plan", *BWRAP, "--json", "--", "true").out)["bwrap"]
    assert words[0] == "--unshare-user" and "--ro-bind" in words


def test_too_many_rules(box):
    """bwrap takes 9000 words; a policy that needs more is refused, not cut."""
    many = box.mkdir("many")
    for i in range(3100):
        (many / f"f{i}").touch()
    options = ["--deny-read", "~/many/*"]
    r = box.run("true", options=[*BWRAP, *options])
    assert r.code == 125 and "bwrap, which takes 9000" in r.err, r
    box.run("true", options=options).ok()


# --- a bwrap that is missing, wrong, or lies --------------------------------------------

def with_bwrap(box, program, *argv, env=None):
    """Run with another bwrap in its place, in a mount namespace: root prepares, the person runs."""
    if os.geteuid() != 0:
        ambit_test.skip_impossible("only root can put another bwrap in its place")
    aside = box.mkdir("aside")
    script = (f'mount -t tmpfs none "{aside}" && cp {REAL} "{aside}/real" && cp "$1" "{aside}/new" && '
              f'chmod "$2" "{aside}/real" "{aside}/new" && mount --bind "{aside}/new" {REAL} && shift 2 && '
              'exec setpriv --reuid="$1" --regid="$2" --clear-groups "${@:3}"')
    mode, source = program
    return subprocess.run(["unshare", "--mount", "--propagation", "private", "/bin/bash", "-c", script, "sh",
                           source, mode, str(box.who.uid), str(box.who.gid), *map(str, argv)],
                          cwd=box.ws, env={**box.env, **(env or {})}, capture_output=True, text=True, timeout=60)


def test_missing(box):
    r = with_bwrap(box, ("644", REAL), AMBIT, "run", *BWRAP, "--", "touch", "made")
    assert r.returncode == 125 and "apt-get install bubblewrap" in r.stderr, r
    assert not (box.ws / "made").exists()
    r = with_bwrap(box, ("644", REAL), AMBIT, "check")
    assert "backend bwrap: " in r.stdout and "not installed" in r.stdout, r


def test_writable_by_others_is_not_trusted(box):
    r = with_bwrap(box, ("777", REAL), AMBIT, "run", *BWRAP, "--", "true")
    assert r.returncode == 125 and "not installed" in r.stderr, r


def test_setuid(box):
    r = with_bwrap(box, ("4755", REAL), AMBIT, "run", *BWRAP, "--", "true")
    if box.who.name == "root":
        assert r.returncode == 0, r
    else:
        assert r.returncode == 125 and "is setuid" in r.stderr, r


def script_in_place(box, text):
    return "755", box.write("new-bwrap", "#!/bin/bash\n" + text, 0o755)


def test_replaced_between_judging_and_mounting(box):
    """What stands there when bwrap comes is not what was judged: nothing is started."""
    for what in ("mkdir {0}", "ln -s /etc {0}", "touch {0}"):
        sub = box.mkdir("ws/sub")
        box.write(sub / "file", "x")
        swap = script_in_place(box, f"mv {sub} {sub}.old; {what.format(sub)}\nexec {box.home}/aside/real \"$@\"\n")
        r = with_bwrap(box, swap, AMBIT, "run", *BWRAP, "--deny-write", "sub", "--", "touch", "made")
        assert r.returncode == 125, r
        assert "was replaced" in r.stderr or "bwrap" in r.stderr, r
        assert not (box.ws / "made").exists()
        (sub.is_symlink() and sub.unlink()) or (sub.is_dir() and shutil.rmtree(sub)) or sub.unlink(missing_ok=True)
        shutil.rmtree(f"{sub}.old")


LIE = """
exec /usr/bin/python3 -c '
import os, sys
words = open(13, "rb").read().split(b"\\0")[:-1]
{change}
fd = os.memfd_create("args", 0)
os.write(fd, b"".join(w + b"\\0" for w in words))
os.lseek(fd, 0, 0)
os.dup2(fd, 13)
os.execv("{real}", sys.argv[1:])
' "$0" "$@"
"""
LIES = {
    "writable": ('words[words.index(b"--ro-bind")] = b"--bind"', "left / writable"),
    "visible": ('i = words.index(b"SECRET"); words[i - 1] = words[i]', "visible"),
    "not mounted": ('i = words.index(b"SECRET"); del words[i - 2:i + 1]', "was replaced"),
    "not hidden": ('i = max(i for i, w in enumerate(words) if w == b"--remount-ro"); del words[i:i + 2]',
                   "writable"),
    "devices": ('words[words.index(b"--bind")] = b"--dev-bind"', "with its devices"),
}


# As AppArmor's profile for what bwrap starts: without the capabilities that ambit-init would use.
POWERLESS = 'words = [w for i, w in enumerate(words) if b"--cap-add" not in words[max(i - 1, 0):i + 1]]'


def powerless(box, *argv, env=None):
    text = LIE.format(change=POWERLESS, real=box.home / "aside/real")
    return with_bwrap(box, script_in_place(box, text), *argv, env=env)


def test_helped_from_outside(box):
    """ambit-init may not change its own namespaces: nothing is lost by it."""
    r = powerless(box, AMBIT, "run", *BWRAP, "--allow-domain", "allowed.example", "--memory", "500m", "--",
                  "/usr/bin/python3", "-c", """
import os, pty, socket
print(socket.gethostbyname("allowed.example")[:7], os.getpid())
pty.openpty()
for line in open("/proc/self/mountinfo"):
    assert "master:" not in line and "shared:" not in line, line
for line in open("/proc/self/status"):
    assert not line.startswith("Cap") or int(line.split()[1], 16) == 0, line
try:
    socket.create_connection(("192.0.2.1", 80), 5)
except PermissionError:
    print("refused")
""")
    assert r.returncode == 0 and r.stdout == "198.18. 2\nrefused\n", r
    assert "denied connect to 192.0.2.1:80" in r.stderr
    told = json.loads(powerless(box, AMBIT, "check", "--json").stdout)
    ours = {b["backend"]: b for b in told["others"]}["bwrap"]
    assert ours["works"] and all(p["enforced"] for p in ours["properties"]), ours


def test_no_host_mounts_appear(box):
    """What the host mounts later does not come in: the mounts are private, by help or without."""
    for run in (powerless, box_run):
        r = run(box, AMBIT, "run", *BWRAP, "--", "grep", "-c", "master:\\|shared:", "/proc/self/mountinfo")
        assert r.stdout == "0\n", r


def box_run(box, *argv):
    return with_bwrap(box, ("755", REAL), *argv)


@pytest.mark.parametrize("lie", LIES)
def test_told_to_do_less(box, lie):
    """Every mount is looked at from inside before anything is started."""
    secret = box.write("secret", "SECRET")
    box.mkdir("hidden")
    change, said = LIES[lie]
    options = ["--deny-read", "~/secret", "--deny-read", "~/hidden"]
    text = LIE.format(change=change.replace("SECRET", str(secret)), real=box.home / "aside/real")
    r = with_bwrap(box, script_in_place(box, text), AMBIT, "run", *BWRAP, *options, "--", "touch", "made")
    assert r.returncode == 125 and said in r.stderr and "SECRET" not in r.stdout, r
    assert not (box.ws / "made").exists()
    # the control: the same script with nothing changed
    text = LIE.format(change="pass", real=box.home / "aside/real")
    r = with_bwrap(box, script_in_place(box, text), AMBIT, "run", *BWRAP, *options, "--", "touch", "made")
    assert r.returncode == 0 and (box.ws / "made").exists(), r
