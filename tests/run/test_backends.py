# SPDX-License-Identifier: Apache-2.0
"""Which backend runs, what it says about what it does not hold, and what the one without
namespaces can do. What it must hold is in tests/escape."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import ambit_test
from ambit_test import AMBIT, processes_with, wait_until

HERE = Path(__file__).parent
LANDLOCK = ["--backend", "landlock"]


@pytest.fixture(scope="session")
def no_namespaces(base_dir):
    """A program that runs another where nobody may make namespaces: a filter refuses clone and
    unshare with CLONE_NEWUSER, and knows no clone3."""
    return ambit_test.compile_c(HERE / "no_namespaces.c", base_dir / "no_namespaces")


# --- choosing ------------------------------------------------------------------------

def test_native_is_the_first_choice(box):
    r = box.run("true", options=["-v"]).ok()
    assert "backend: native" in r.err


def test_named_backend(box):
    assert "backend: landlock (asked for by --backend)" in box.run(
        "true", options=["-v", *LANDLOCK]).ok().err
    assert "AMBIT_BACKEND" in box.run(
        "true", options=["-v"], env={"AMBIT_BACKEND": "landlock"}).ok().err
    r = box.run("true", options=["--backend", "seatbelt"])
    assert r.code == 125 and "seatbelt" in r.err


def test_unknown_backend(box):
    r = box.run("true", options=["--backend", "docer"])
    assert r.code == 125 and "docker" in r.err


@pytest.mark.parametrize("how", ["filter", "limit"])
def test_no_namespaces_enforce(box, no_namespaces, how):
    """Refused, with the reason and the way out."""
    r = without_namespaces(box, no_namespaces, how, [AMBIT, "run", "--", "touch", "made"])
    assert r.code == 125 and not (box.ws / "made").exists(), r
    assert "--fallback warn" in r.err
    assert ("user.max_user_namespaces" if how == "limit" else "seccomp") in r.err


@pytest.mark.parametrize("how", ["filter", "limit"])
def test_no_namespaces_warn(box, no_namespaces, how):
    """Goes on, and says what is not enforced before anything runs."""
    box.write("secret/key", "SECRET")
    report = box.ws / "report.json"
    r = without_namespaces(box, no_namespaces, how,
                           [AMBIT, "run", "--fallback", "warn", "--deny-read", "~/secret", "--report",
                            report, "--", "/bin/sh", "-c",
                            "echo started >&2; cat ~/secret/key; touch ~/out; touch made"])
    assert r.code == 0 and (box.ws / "made").exists(), r
    assert "SECRET" not in r.out and not (box.home / "out").exists(), r
    for name in ("user-namespaces", "hidden", "processes"):
        assert f"not enforced: {name}: " in r.err, r
    assert r.err.index("not enforced") < r.err.index("started")
    told = json.loads(report.read_text())
    assert told["backend"] == "landlock"
    assert any("not enforced: hidden" in t for t in told["notEnforced"])


def test_environment_says_warn(box, no_namespaces):
    r = box.execute([no_namespaces, AMBIT, "run", "--", "true"], env={"AMBIT_FALLBACK": "warn"})
    assert r.code == 0 and "not enforced" in r.err, r


def without_namespaces(box, program, how, argv):
    if how == "filter":
        return box.execute([program, *argv])
    # in a user namespace of its own, whose limit for more of them is 0
    uid, gid = str(box.who.uid), str(box.who.gid)
    return box.execute(["unshare", "--user", "--map-root-user", "/bin/sh", "-c",
                        'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh", *argv],
                       env={"UID_OUTSIDE": uid, "GID_OUTSIDE": gid})


def test_managed_settings_forbid_warn(box, no_namespaces):
    """Who administers the machine can keep everybody from running with less."""
    if box.who.name != "root":
        pytest.skip("the managed file is root's: tried as root")
    script = ("mkdir -p /etc/ambit && mount -t tmpfs none /etc/ambit && "
              "echo '{\"fallback\": \"enforce\", \"locked\": [\"fallback\"]}' > /etc/ambit/settings.json && "
              'exec "$@"')
    made = not Path("/etc/ambit").exists()
    try:
        r = box.execute(["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", script, "sh",
                         no_namespaces, AMBIT, "run", "--fallback", "warn", "--", "true"])
    finally:
        if made:
            Path("/etc/ambit").rmdir()
    assert r.code == 125 and ("locked" in r.err or "managed" in r.err), r


@pytest.mark.parametrize("name", ["user-namespaces", "processes", "hidden"])
def test_required_properties(box, name):
    box.run("true", options=["--set", f"require={name}"]).ok()
    r = box.run("true", options=[*LANDLOCK, "--set", f"require={name}"])
    assert r.code == 125 and f"require: {name} is not enforced here by the landlock backend" in r.err
    held = [w for p in ("files", "names", "attributes", "landlock") for w in ("--set", f"require={p}")]
    box.run("true", options=[*LANDLOCK, *held]).ok()


def test_check_names_every_backend(box):
    r = box.ambit("check")
    assert "backend landlock: " in r.out and "not " in r.out, r
    told = json.loads(box.ambit("check", "--json").out)
    other = {b["backend"]: b for b in told["others"]}["landlock"]
    lost = {p["name"] for p in other["properties"] if not p["enforced"]}
    assert other["works"] and {"user-namespaces", "hidden", "processes"} <= lost
    names = [p["name"] for p in told["properties"]]
    assert {p["name"] for p in other["properties"]} <= set(names)


# --- in a container --------------------------------------------------------------------

MASKED = ("mount -t tmpfs none /proc/fs 2>/dev/null || mount -t tmpfs none /proc/sys/fs; "
          'exec "$@"')


def in_masked(box, *argv):
    """Where a fresh /proc cannot be mounted, as in most containers."""
    if box.who.name != "root":
        pytest.skip("masking parts of /proc needs root: tried as root")
    return box.execute(["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", MASKED,
                        "sh", *argv])


def test_masked_proc(box):
    r = in_masked(box, AMBIT, "run", "--", "true")
    assert r.code == 125 and "systempaths=unconfined" in r.err, r


def test_weaker_nested_sandbox(box):
    """What is lost is said; the rest holds."""
    r = in_masked(box, AMBIT, "run", "--set", "enableWeakerNestedSandbox=true", "--", "/bin/sh", "-c",
                  "echo $$; touch /proc/sys/kernel/domainname && echo open; touch ~/x; cat /proc/self/comm")
    assert "not enforced: processes: " in r.err and r.code == 0, r
    assert r.out == "2\ncat\n" and not (box.home / "x").exists()
    # nothing is lost where it is not needed
    r = box.run("true", options=["--set", "enableWeakerNestedSandbox=true"]).ok()
    assert "not enforced" not in r.err


# --- nested --------------------------------------------------------------------------------

NEST = [([], []), ([], LANDLOCK), (LANDLOCK, [])]


@pytest.mark.parametrize("outer, inner", NEST)
def test_nested_is_the_intersection(box, outer, inner):
    """What either forbids is forbidden."""
    for d in ("both", "inner-only", "outer-only"):
        box.mkdir(f"ws/{d}")
    box.write("ws/both/.envrc", "old")
    box.write("a/secret", "SECRET-A")
    box.write("b/secret", "SECRET-B")
    box.write("ws/outer-only/secret", "SECRET-C")
    script = ("cat ~/a/secret ~/b/secret; touch x ../inner-only/x ../outer-only/x; "
              "mkdir ../outer-only/d; mv x y; mv y ../outer-only/z; ln y ../outer-only/l; "
              "(setsid sh -c 'sleep 0.2; touch orphan ../outer-only/orphan; touch $TMPDIR/done' &) ; i=0; "
              "until [ -e $TMPDIR/done ] || [ $((i=i+1)) -gt 200 ]; do sleep 0.05; done; "
              "(exec 3<>../outer-only/secret; cat <&3); echo evil > .envrc; "
              "touch ~/x; touch $TMPDIR/f && echo tmp; :")
    r = box.run(AMBIT, "run", "--chdir", "both", "--deny-read", "~/b", "--deny-read", "outer-only",
                *inner, "--", "/bin/sh", "-c", script,
                options=["--deny-read", "~/a", "--deny-write", "inner-only", *outer])
    assert "SECRET" not in r.out and "tmp" in r.out, r
    assert sorted(p.name for p in (box.ws / "both").iterdir()) == [".envrc", "orphan", "y"], r
    assert [*(box.ws / "inner-only").iterdir()] == []
    assert [p.name for p in (box.ws / "outer-only").iterdir()] == ["secret"], r
    assert (box.ws / "both/.envrc").read_text() == "old" and not (box.home / "x").exists()
    assert "inside another sandbox" in r.err
    # the control: the outer one alone lets all of this be done
    r = box.run("/bin/sh", "-c", "cd both; " + script, options=["--deny-write", "inner-only", *outer])
    assert {"x", "d", "orphan"} <= {p.name for p in (box.ws / "outer-only").iterdir()}
    assert "SECRET-C" in r.out


def test_nested_neighbours(box):
    """Two inner sandboxes at a time: each is confined by its own policy."""
    for d in ("one", "two"):
        box.mkdir(f"ws/{d}")
    inner = (f"{AMBIT} run -q --chdir %s -- /bin/sh -c 'for i in 1 2 3 4 5 6 7 8; do touch ../one/%s$i "
             "../two/%s$i 2>/dev/null; mkdir -p ../one/d%s ../two/d%s 2>/dev/null; done' & ")
    r = box.sh("".join(inner % (d, d, d, d, d) for d in ("one", "two")) + "wait; touch one/outer two/outer")
    for d in ("one", "two"):
        names = {p.name for p in (box.ws / d).iterdir()}
        assert names == {f"{d}{i}" for i in range(1, 9)} | {"outer", f"d{d}"}, r


def test_landlock_inside_is_followed(box):
    """A program that confines itself is not helped out of it by the broker."""
    program = ambit_test.compile_c(HERE / "confine.c", box.home / "confine")
    box.mkdir("ws/mine")
    box.mkdir("ws/other")
    script = "touch mine/a other/a; mkdir other/b; echo x > other/c; mv mine/a other/d; ln mine/a other/e; :"
    r = box.run(program, "mine", "/bin/sh", "-c", script)
    assert (box.ws / "mine/a").exists() and not [*(box.ws / "other").iterdir()], r
    box.sh(script).ok()
    assert [*(box.ws / "other").iterdir()], "the control run failed"


def test_nested_reports_are_the_outer_ones(box):
    r = box.run(AMBIT, "run", "--", "touch", "/etc/x")
    assert r.err.count("denied write to /etc/x") == 1, r


def test_nested_has_no_network(box):
    """The inner one has none, whatever the outer one has."""
    script = "import socket; socket.create_connection(('127.0.0.1', 1), 1)"
    r = box.run(AMBIT, "run", "--", "/usr/bin/python3", "-c", script,
                options=["--network", "host"])
    assert r.code != 0 and "Address family not supported" in r.err, r
    r = box.run(AMBIT, "run", "--allow-domain", "example.org", "--", "true",
                options=["--allow-domain", "example.org"])
    assert r.code == 125 and "network allowlist" in r.err, r


def test_nested_three_deep(box):
    r = box.run(AMBIT, "run", "--", AMBIT, "run", "--", "/bin/sh", "-c", "touch deep; touch ~/out; :")
    assert r.code == 0 and (box.ws / "deep").exists() and not (box.home / "out").exists(), r


# --- without namespaces: what users meet --------------------------------------------------

def test_landlock_ordinary_work(box):
    box.run("/bin/sh", "-ec", """
echo a >f; chmod 600 f; touch -d 2020-01-01 f; truncate -s 10 f; ln f g; ln -s f l; cp -a f h; mv h i
mkdir -p a/b/c; mv a x; rm -r x; mkfifo p; rm p; sed -i s/a/b/ f; install -m 755 f prog; stat -c %a prog
cp -r . $TMPDIR/copy; ls $TMPDIR/copy >/dev/null; tar cf t.tar f g; tar xf t.tar; chmod -R go-w .; chown $(id -u) f
git init -q r; cd r; git config user.name n; git config user.email e@x; echo 1 >a; git add a; git commit -qm m
""", options=LANDLOCK).ok()
    st = (box.ws / "f").stat()
    assert oct(st.st_mode & 0o777) == "0o600"


def test_landlock_times_and_attributes(box):
    script = """
import os, sys
open("f", "w").close(); os.symlink("f", "l")
os.utime("f", ns=(1, 2)); assert os.stat("f").st_mtime_ns == 2
os.utime("l", ns=(3, 4), follow_symlinks=False); assert os.lstat("l").st_mtime_ns == 4
fd = os.open("f", os.O_RDWR); os.utime(fd, ns=(5, 6)); assert os.stat("f").st_mtime_ns == 6
os.setxattr("f", "user.a", b"1" * 100); os.setxattr(fd, "user.b", b"2"); os.removexattr("f", "user.b")
assert os.listxattr("f") == ["user.a"] and os.getxattr(fd, "user.a") == b"1" * 100
os.fchmod(fd, 0o640); os.chown(fd, -1, -1); os.lchown("l", -1, -1); os.chmod("f", 0o600)
for change in (lambda p: os.chmod(p, 0o777), lambda p: os.utime(p), lambda p: os.chown(p, -1, -1),
               lambda p: os.setxattr(p, "user.x", b"y"),
               lambda p: os.fchmod(os.open(p, os.O_RDONLY), 0o777),
               lambda p: os.utime(os.open(p, os.O_RDONLY)),
               lambda p: os.setxattr(os.open(p, os.O_RDONLY), "user.x", b"y")):
    try:
        change(sys.argv[1])
        print("changed")
    except PermissionError:
        print("refused")
"""
    outside = box.write("outside", "x", 0o600)
    before = outside.stat()
    r = box.run("/usr/bin/python3", "-c", script, outside, options=LANDLOCK).ok()
    assert r.out == "refused\n" * 7
    after = outside.stat()
    assert (before.st_mode, before.st_mtime_ns, before.st_ctime_ns) == \
        (after.st_mode, after.st_mtime_ns, after.st_ctime_ns)
    (box.ws / "l").unlink()
    assert box.host("/usr/bin/python3", "-c", script, outside).out == "changed\n" * 7  # the control


def test_landlock_signals_and_status(box):
    assert box.sh("exit 7", options=LANDLOCK).code == 7
    assert box.sh("kill -TERM $$", options=LANDLOCK).code == 143
    assert box.run("no-such-program", options=LANDLOCK).code == 127
    assert box.sh("sleep 100", options=[*LANDLOCK, "--timeout", "0.3"]).code == 124
    with box.start("/bin/sh", "-c", "trap 'echo got; exit 5' TERM; echo ready; sleep 100 & wait",
                   options=LANDLOCK) as child:
        assert child.process.stdout.readline() == b"ready\n"
        child.process.send_signal(signal.SIGTERM)
        r = child.wait()
    assert (r.code, r.out) == (5, "got\n")


DAEMONS = "for i in 1 2 3; do (setsid sh -c 'sleep 600; : %s' &) ; done; sleep 0.2; touch $TMPDIR/f; "


@pytest.mark.parametrize("end", ["exit", "kill", "keeper"])
def test_landlock_leaves_nothing(box, end):
    """Daemons end with the command, with ambit, and with the process that answers the calls."""
    mark = f"ambit-landlock-{box.who.name}-{end}"
    tmp = box.mkdir("tmp")
    script = DAEMONS % mark + ("echo ready; read x" if end != "exit" else "echo ready")
    with box.start("/bin/sh", "-c", script, options=LANDLOCK, env={"TMPDIR": str(tmp)}) as child:
        assert child.process.stdout.readline() == b"ready\n"
        if end == "kill":
            child.process.kill()
        elif end == "keeper":
            keeper = subprocess.run(["pgrep", "-P", str(child.process.pid)], capture_output=True,
                                    text=True).stdout.split()
            os.kill(int(keeper[0]), signal.SIGKILL)
        assert wait_until(lambda: not processes_with(mark), 5), processes_with(mark)
        assert wait_until(lambda: not [*tmp.iterdir()], 10), [*tmp.iterdir()]


def test_landlock_killed_at_any_moment(box):
    """Whenever ambit is killed, also while it starts: no process, no directory."""
    tmp = box.mkdir("tmp")
    mark = f"ambit-moment-{box.who.name}"
    script = f"mkdir -p $TMPDIR/a/b; chmod 0 $TMPDIR/a; ln -s / $TMPDIR/l; echo x; read x; : {mark}"
    for i in range(40):
        with box.start("/bin/sh", "-c", script, options=LANDLOCK, env={"TMPDIR": str(tmp)}) as child:
            time.sleep(i * 0.0006)  # no wait for anything: moments, the later the more is there
            child.process.kill()
            assert wait_until(lambda: not processes_with(mark), 10), processes_with(mark)
            assert wait_until(lambda: not [*tmp.iterdir()], 10), (i, [*tmp.iterdir()])


def test_landlock_all_killed_at_once(box):
    """Nobody is left to clean up: the next run does, and leaves alone what is in use."""
    tmp = box.mkdir("tmp")
    env = {"TMPDIR": str(tmp)}
    mark = f"ambit-at-once-{box.who.name}"
    outside = box.write("outside/kept", "x", 0o600)
    script = f"mkdir $TMPDIR/d; ln -s {outside.parent} $TMPDIR/d/l; echo $TMPDIR; read x; : {mark}"
    with box.start("/bin/sh", "-c", script, options=LANDLOCK, env=env) as child, \
            box.start("/bin/sh", "-c", "touch $TMPDIR/f; echo $TMPDIR; read x; ls $TMPDIR",
                      options=LANDLOCK, env=env, stdin=subprocess.PIPE) as other:
        gone = Path(child.process.stdout.readline().decode().strip())
        used = Path(other.process.stdout.readline().decode().strip())
        pids = processes_with(mark)
        for pid in pids:  # stopped first, so that none can act on the other's end
            os.kill(pid, signal.SIGSTOP)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # some go with their parent
                os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda: not processes_with(mark), 10)
        assert len(pids) >= 4 and gone.is_dir(), "the control: it is left behind"
        box.run("true", options=LANDLOCK, env=env).ok()
        assert sorted(tmp.iterdir()) == [used]
        other.process.stdin.write(b"\n")
        other.process.stdin.close()
        assert other.process.stdout.read() == b"f\n"
    assert wait_until(lambda: not [*tmp.iterdir()], 10)
    assert outside.read_text() == "x" and outside.stat().st_mode & 0o777 == 0o600



def test_landlock_fork_race(box):
    """Processes that fork and end all the time are caught as well."""
    mark = f"ambit-race-{box.who.name}"
    script = f"""
import os, sys, time
for i in range(4):
    if os.fork() == 0:
        os.setsid()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if os.fork():
                os._exit(0)
        os._exit(0)
time.sleep(0.3)  # {mark}
"""
    r = box.run("/usr/bin/python3", "-c", script, options=[*LANDLOCK, "--timeout", "20"])
    assert r.code == 0 and not processes_with(mark), (str(r), processes_with(mark))


def test_landlock_host_network(box):
    """With the host's network: TCP as usual, unix sockets of the host only when they are named."""
    server = box.write("server.py", """
import socket, sys, threading
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
print(s.getsockname()[1], flush=True)
c, _ = s.accept(); c.sendall(b"hello"); c.close()
""")
    with box.start("/usr/bin/python3", server, sandbox=False) as host:
        port = int(host.process.stdout.readline())
        script = f"import socket; print(socket.create_connection(('127.0.0.1', {port})).recv(9))"
        r = box.run("/usr/bin/python3", "-c", script, options=[*LANDLOCK, "--network", "host"]).ok()
        assert r.out == "b'hello'\n"
    r = box.run("/usr/bin/python3", "-c", script, options=LANDLOCK)
    assert "Network is unreachable" in r.err and f"denied connect to 127.0.0.1:{port}" in r.err, r


REFUSED = {
    "hidden inside writable": (["--deny-read", "sub"], "cannot be hidden there"),
    "published port": (["--publish", "8080"], "network.publish"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_landlock_refuses(box, case):
    box.mkdir("ws/sub")
    options, why = REFUSED[case]
    r = box.run("true", options=[*LANDLOCK, *options])
    assert r.code == 125 and why in r.err, r


def test_landlock_new_terminal_and_job(box):
    if not shutil.which("script"):
        ambit_test.skip_impossible("no script(1)")
    r = box.pty(["/bin/sh", "-c", "test -t 0 && stty size >/dev/null && echo terminal"],
                options=LANDLOCK)
    assert "terminal" in r.out and "denied" not in r.out, r
