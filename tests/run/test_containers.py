# SPDX-License-Identifier: Apache-2.0
"""The backends podman and docker: what is in the container, what is not, and that nothing stays.
An image of Debian's packages is made for it (tests/lib/containers.py). There is no docker engine
here: a program of that name translates what it is told for podman."""
import json
import os
import signal
from pathlib import Path

import pytest

from ambit_test import AMBIT, processes_with, wait_until, whos
from containers import IMAGE, engines  # noqa: F401  (fixture)

TMP = "t"  # where the run's socket is, so that the test sees whether it stays


def put_inside(box, engines):  # noqa: F811
    engine = engines.of(box)
    box.options = ["-q", *engine.options]
    box.env["TMPDIR"] = str(box.mkdir(TMP, 0o700))
    box.engine = engine
    yield box
    assert os.listdir(box.home / TMP) == [], "the run left something"
    assert engine.names(box) == [], "the engine still knows a container"


@pytest.fixture
def inside(box, engines):  # noqa: F811
    """A box whose runs are in containers."""
    yield from put_inside(box, engines)


@pytest.fixture
def one(boxes, engines):  # noqa: F811
    """The same for one person: where who runs makes no difference."""
    yield from put_inside(boxes(whos()[0]), engines)


SYSTEM = "/etc/ambit-x /usr/ambit-x /ambit-x"
LOOK = f"""
id -u; id -g; pwd
cat ../secret.txt; cat .ssh/key; cat /etc/ambit-of-the-host
for f in made .envrc .git/hooks/pre-commit .git/config {SYSTEM}; do
  (echo changed >> $f) 2>/dev/null && echo wrote $f
done
mv .git moved 2>/dev/null && echo moved
touch /tmp/t && echo tmp
head -c 8 /proc/kpagecount 2>/dev/null | wc -c; ls /proc/pressure
ls /proc | grep -c '^[0-9]' ; cat /proc/1/environ 2>/dev/null | grep -c . ; ls /sys/class/net
grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status
"""


def test_what_is_inside(inside):
    """The control: the same script, without the sandbox, gets at all of it."""
    inside.write("secret.txt", "SECRET-1\n")
    inside.write("ws/.envrc", "")
    inside.write("ws/.git/config", "")
    inside.mkdir("ws/.git/hooks")
    control = inside.host("sh", "-c", LOOK.replace(SYSTEM, ""))  # not in the host's own directories
    assert "SECRET-1" in control.out and "wrote .envrc" in control.out
    assert "wrote .git/hooks/pre-commit" in control.out and "moved" in control.out
    assert "memory" in control.out.splitlines()
    (inside.ws / "moved").rename(inside.ws / ".git")
    (inside.ws / "made").unlink()
    (inside.ws / ".git/hooks/pre-commit").unlink()
    inside.write("ws/.envrc", "")
    inside.write("ws/.git/config", "")

    r = inside.sh(LOOK, timeout=60)
    lines = r.out.splitlines()
    assert lines[:3] == [str(inside.who.uid), str(inside.who.gid), str(inside.ws)], r
    assert "SECRET-1" not in r.out and "moved" not in lines, r
    assert [x for x in lines if x.startswith("wrote")] == ["wrote made"] and "tmp" in lines, r
    assert "CapEff:\t0000000000000000" in lines and "NoNewPrivs:\t1" in lines, r
    assert "Seccomp:\t2" in lines and "eth0" not in lines and "lo" in lines, r
    assert lines[lines.index("tmp") + 1] == "0" and "memory" not in lines, r  # of the kernel's pages
    made = (inside.ws / "made").stat()
    assert (made.st_uid, made.st_gid) == (inside.who.uid, inside.who.gid)
    assert (inside.ws / ".envrc").read_text() == "" == (inside.ws / ".git/config").read_text()
    assert not (inside.ws / ".git/hooks/pre-commit").exists()


def test_hidden_inside_a_writable_directory(inside):
    inside.write("ws/secret/key", "SECRET-2\n")
    inside.write("ws/secret/public/text", "public\n")
    inside.write("ws/token", "SECRET-3\n")
    look = ("cat secret/key token; cat secret/public/text; ls secret; mv secret s; mv token t; "
            "rm -rf secret token; touch secret/new; mkdir -p other; cat /proc/self/mountinfo | wc -l")
    assert "SECRET-2" in inside.host("sh", "-c", "cat secret/key token").out  # the control
    r = inside.sh(look, options=["--deny-read", "secret", "--allow-read", "secret/public",
                                 "--deny-read", "token"], timeout=60)
    assert "SECRET" not in r.out + r.err and "public\n" in r.out, r
    assert (inside.ws / "secret/key").read_text() == "SECRET-2\n"
    assert (inside.ws / "token").read_text() == "SECRET-3\n"
    assert not (inside.ws / "secret/new").exists() and (inside.ws / "other").is_dir()


def test_paths_that_rules_name(one):
    odd = one.mkdir('odd, "na:me" \'x')
    one.write(odd / "f", "odd\n")
    one.write("data/f", "data\n")
    r = one.run("sh", "-c", 'cat "$1/f"; cat "$2/f"; echo more >> "$1/f"; echo more >> "$2/f"; ls ..',
                   "sh", odd, one.home / "data",
                   options=["--allow-write", odd, "--allow-read", one.home / "data"], timeout=60)
    assert r.out.startswith("odd\ndata\n"), r
    assert (odd / "f").read_text() == "odd\nmore\n"
    assert (one.home / "data/f").read_text() == "data\n"
    assert TMP not in r.out.split()  # of the home only what a rule names


@pytest.mark.parametrize("script, code", [
    ("exit 125", 125), ("exit 127", 127), ("kill -KILL $$", 137),
])
def test_exit_codes(one, script, code):
    assert one.sh(script, timeout=60).code == code


def test_commands_that_cannot_be_started(one):
    r = one.run("no-such-program", timeout=60)
    assert r.code == 127 and "no-such-program: not found" in r.err, r
    r = one.run("/etc/passwd", timeout=60)
    assert r.code == 126 and "cannot be executed" in r.err, r


def test_missing_image(one):
    r = one.run("true", options=["--image", "localhost/not-there:1"], timeout=60)
    assert r.code == 125 and "podman pull localhost/not-there:1" in r.err, r


def test_streams(inside):
    """The caller's own descriptors: no byte passes through the engine, and none is lost."""
    data = os.urandom(300000).hex()
    r = inside.sh("cat; echo aside >&2", input=data, timeout=60)
    assert r.code == 0 and r.out == data and r.err.endswith("aside\n"), r.code


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def test_environment(inside):
    """Values are seen inside, and by nobody in the list of processes or in podman's records."""
    with inside.start("sh", "-c", "echo $WORD; echo $PATH; cat", env={"WORD": "w0rd-of-mine"},
                      options=["--env", "WORD"]) as child:
        lines = [child.process.stdout.readline().decode().strip() for _ in range(2)]
        seen = [c for c in map(command_line, os.listdir("/proc")) if "w0rd-of-mine" in c]
        kept = inside.engine.podman(inside, "inspect", *inside.engine.names(inside)).ok().out
        child.process.stdin.close()
        child.process.wait(30)
    assert lines[0] == "w0rd-of-mine"
    assert lines[1] == "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # the image's
    assert seen == [] and "w0rd-of-mine" not in kept


def start_waiting(inside, script="echo ready; exec sleep 1234.5", options=()):
    child = inside.start("sh", "-c", script, options=options)
    return child


@pytest.mark.parametrize("victim", ["ambit", "keeper"])
def test_killed(inside, victim):
    """Whoever is killed, everything inside ends and the engine forgets it."""
    with start_waiting(inside) as child:
        assert child.process.stdout.readline() == b"ready\n"
        assert len(inside.engine.names(inside)) == 1
        pid = child.process.pid
        if victim == "keeper":
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            pid = int(children[0])
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not processes_with("1234.5"), 30)
        wait_until(lambda: inside.engine.names(inside) == [], 30)
        child.process.wait(30)


def test_signals_and_timeout(inside):
    with start_waiting(inside, "trap 'echo got it; exit 3' TERM; echo ready; sleep 1234.5 & wait") as child:
        assert child.process.stdout.readline() == b"ready\n"
        child.process.send_signal(signal.SIGTERM)
        assert child.process.stdout.readline() == b"got it\n"
        assert child.process.wait(30) == 3
    r = inside.sh("trap '' TERM; sleep 1234.5", options=["--timeout", "1s"], timeout=60)
    assert r.code == 124 and "limit timeout" in r.err, r
    wait_until(lambda: not processes_with("1234.5"), 30)


def test_limits(inside):
    """Held by the engine, which is looked at before the command starts; else refused."""
    r = inside.run("perl", "-e", '$x = "a" x (300 << 20); print length $x', timeout=60,
                   options=["--memory", "64m"])
    if r.code == 125:
        assert inside.who.uid != 0 and "does not hold it on this machine" in r.err and not r.out, r
        return
    assert r.code == 137 and "limit memory 64m reached" in r.err and not r.out, r
    r = inside.sh("i=0; while [ $i -lt 60 ]; do sleep 5 & i=$((i + 1)); done; kill -9 0",
                  options=["--pids", "30", "--cpu", "0.5"], timeout=60)
    assert "limit pids 30 reached" in r.err, r


def test_terminal(inside):
    r = inside.pty(["bash", "-ic", "test -t 0 && test -t 1 && sleep 0.01 & fg; echo job $?"], timeout=60)
    assert r.code == 0 and "job 0" in r.out and "no job control" not in r.out, r


# --- an engine that does something else ------------------------------------------------

def stand_in(box, name, script):
    """A program `name`, first on PATH, that does something and then calls podman."""
    box.write(f"bin/{name}", "#!/usr/bin/python3\nimport os, sys, time\nargs = sys.argv[1:]\n"
              + script + '\nos.execvp("/usr/bin/podman", ["podman", *args])\n', 0o755)
    box.env["PATH"] = f"{box.home / 'bin'}:{box.env['PATH']}"


@pytest.mark.parametrize("change, says", [
    ('args = [a.replace("ro=true,", "") for a in args]', "not in the container what it should be"),
    ('args = [a for a in args if a != "--read-only"]', "root of the container is not read-only"),
    ('args = [a for a in args if "type=tmpfs" not in a]', "not in the container what it should be"),
    ('args = [a.replace("--network=none", "--network=host") for a in args]', "no network of its own"),
    ('args = [a.replace("--pid=private", "--pid=host") for a in args]', "no process ids of its own"),
])
def test_engine_that_does_not_do_as_told(one, change, says):
    one.mkdir("ws/.git/hooks")
    one.mkdir("ws/secret")
    stand_in(one, "podman", change)
    r = one.sh("echo ran; touch ran", options=["--deny-read", "secret"], timeout=60)
    assert r.code == 125 and says in r.err, r
    assert "ran" not in r.out and not (one.ws / "ran").exists()


def test_path_exchanged_meanwhile(one):
    """A directory that was judged becomes a link to a secret before the engine mounts it."""
    one.mkdir("ws/.git/hooks")
    one.write("private/key", "SECRET-4\n")
    hooks, private = one.ws / ".git/hooks", one.home / "private"
    stand_in(one, "podman", f'if args[0] == "run":\n os.rmdir("{hooks}"); os.symlink("{private}", "{hooks}")')
    r = one.sh("cat .git/hooks/key", timeout=60)
    assert r.code == 125 and "SECRET-4" not in r.out, r
    assert "should be" in r.err or "cannot be opened in the container" in r.err, r


def test_planted_engine(one):
    stand_in(one, "podman", f'open("{one.home / "ran"}", "w")')
    r = one.run("true", options=["--allow-write", one.home / "bin"], timeout=60)
    assert r.code == 125 and "lies in a writable directory" in r.err, r
    assert not (one.home / "ran").exists()


def test_docker_by_a_stand_in(inside):
    stand_in(inside, "docker", """
args = [a.replace("bind-recursive=disabled", "bind-nonrecursive=true") for a in args]
if args[0] == "run" and os.getuid():
    args.insert(1, "--userns=keep-id")
args = [a.replace("mode=1777", "mode=1777,notmpcopyup").replace("tmpfs-size", "notmpcopyup,tmpfs-size")
        for a in args]
if args[0] == "run":
    args.insert(1, "--read-only-tmpfs=false")
""")
    inside.mkdir("ws/.git/hooks")
    inside.write("ws/secret/key", "SECRET-5\n")
    r = inside.sh("touch made; touch .git/hooks/x /etc/x; cat secret/key; exit 9",
                  options=["--backend", "docker", "--deny-read", "secret"], timeout=60)
    assert r.code == 9 and "SECRET-5" not in r.out, r
    assert (inside.ws / "made").exists() and not (inside.ws / ".git/hooks/x").exists()


def test_variables_of_the_engine(one):
    """The engine runs outside: nothing in its environment leads into places that the command writes to."""
    stand_in(one, "podman", f'open("{one.home / "env"}", "a").write(repr(dict(os.environ)) + "\\n")')
    one.mkdir("ws/bin")
    one.env["PATH"] = f"{one.ws}/bin:bin:{one.env['PATH']}"
    one.sh("true", env={"LD_PRELOAD": str(one.ws / "x.so"), "GIT_SSH_COMMAND": "x", "MY_TOKEN": "secret",
                        "CONTAINERS_CONF": str(one.ws / "c.conf"), "LANG": "C.UTF-8"}, timeout=60).ok()
    seen = [eval(line) for line in (one.home / "env").read_text().splitlines()]
    assert seen
    for env in seen:
        assert not {"LD_PRELOAD", "GIT_SSH_COMMAND", "MY_TOKEN", "CONTAINERS_CONF"} & set(env), env
        assert str(one.ws) not in env["PATH"] and "bin" not in env["PATH"].split(":") and env["LANG"], env


def test_socket_stays_while_others_tidy_up(one):
    """Another run takes directories of runs that nobody is left of away; not this one's."""
    stand_in(one, "podman", 'if args[0] == "run":\n import subprocess\n subprocess.run('
             f'["{AMBIT}", "run", "--backend", "landlock", "--", "true"], check=True, cwd="{one.ws}")')
    one.mkdir(f"{TMP}/ambit-0123456789abcdef")
    assert one.sh("echo ran", timeout=60).ok().out == "ran\n"


def test_engine_that_hangs(one):
    """It is ended, and so is its container."""
    stand_in(one, "podman", 'if args[0] == "run":\n import subprocess\n subprocess.Popen(["/usr/bin/podman", *args])\n'
             ' time.sleep(1000)')
    r = one.sh("echo ran; exit 6", timeout=60)
    assert r.code == 6 and r.out == "ran\n", r


def is_ambit(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe") == str(AMBIT.resolve())
    except OSError:
        return False


def test_input_from_a_file(inside):
    """All of it arrives, at once or slowly, also when nobody reads to the end."""
    data = os.urandom(400000).hex()
    file = inside.write("input", data)
    for script, want in (("cat", data), ("head -c 9", data[:9]), ("exit 4", "")):
        with open(file) as f, inside.start("sh", "-c", script, stdin=f) as child:
            out, _ = child.process.communicate(timeout=60)
        assert out.decode() == want, script
    assert wait_until(lambda: not [p for p in processes_with(f"HOME={inside.home}") if is_ambit(p)], 10)


# --- ambit inside somebody else's container -------------------------------------------------

@pytest.mark.parametrize("outer, inner, code, says", [
    ([], [], 125, "start the container with --security-opt systempaths=unconfined, or set enableWeakerNestedSandbox"),
    (["--security-opt=systempaths=unconfined"], [], 0, ""),
    ([], ["--set", "enableWeakerNestedSandbox=true"], 0, "not enforced: processes: /proc is the container's"),
    ([], ["--fallback", "warn"], 0, "running without namespaces (landlock backend)\nambit: not enforced: "),
    (["--security-opt=systempaths=unconfined", "--cap-drop=ALL"], [], 125, "start the container with --cap-add=SETFCAP"),
    (["--security-opt=systempaths=unconfined", "--cap-drop=ALL", "--cap-add=SETFCAP"], [], 0, ""),
], ids=["enforce", "mended", "weaker", "warn", "no capabilities", "one capability"])
def test_inside_a_container(one, outer, inner, code, says):
    """It works there, or refuses with the flag that mends it; and the flag does."""
    build = AMBIT.parents[2]
    r = one.execute(["/usr/bin/podman", "run", "--rm", *one.engine.words, "--network=none", f"-v={build}:{build}:ro",
                     f"-v={one.ws}:{one.ws}", f"-w={one.ws}", *outer, IMAGE, AMBIT, "run", *inner, "--", "sh", "-c",
                     "touch made; touch /etc/x; echo $AMBIT"], env=one.engine.env, timeout=60)
    assert r.code == code and says in r.err, r
    assert (one.ws / "made").exists() == (code == 0), r
    if code == 0:
        assert r.out == "1\n" and "denied write to /etc/x" in r.err and "cannot touch '/etc/x'" in r.err, r


# --- what may be said -------------------------------------------------------------------

@pytest.mark.parametrize("word", [
    "--privileged", "--privileged=true", "-v=/:/host", "--volume=/:/host", "--mount=type=bind", "-v",
    "--cap-add=ALL", "--security-opt=seccomp=unconfined", "--network=host", "--net=host", "--pid=host",
    "--userns=host", "--device=/dev/sda", "--env=X=1", "--runtime", "--pull=always", "--rm", "debian",
    "--security-opt=label=disable,seccomp=unconfined", "--tmpfs=/etc", "--read-only=false", "",
])
def test_words_for_the_engine_that_are_refused(plain, word):
    r = plain.run("true", options=["--backend", "podman", "--image", IMAGE, "--set",
                                   f"container.args={word}"])
    assert r.code == 125 and "container.args" in r.err, r


def test_project_has_no_say(plain):
    plain.write("ws/.ambit.json", json.dumps({"container": {"image": "evil", "args": ["--runtime=evil"]}}))
    r = plain.ambit("policy", "--json").ok()
    assert "evil" not in r.out, r


def test_told_what_is_not_held(one):
    box = one
    box.options.remove("-q")
    r = box.run("true", timeout=60).ok()
    assert "not enforced: names" in r.err and "not enforced: unix sockets" in r.err, r
    r = box.run("true", options=["--allow-domain", "example.com"])
    assert r.code == 125 and "network allowlist: not with the podman backend" in r.err, r
    report = box.run("true", options=["--report", "-"], timeout=60).ok().err
    assert '"backend": "podman"' in report
