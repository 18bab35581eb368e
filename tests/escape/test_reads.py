# SPDX-License-Identifier: Apache-2.0
"""Reading what is hidden: the parts of R1-R16 that are no single call."""
import contextlib
import os
import pwd
import subprocess
from pathlib import Path

import pytest

import ambit_test
from ambit_test import AMBIT, wait_until
from world import SECRETS

SHOW = 'for f in "$@"; do echo "== $f"; cat -- "$f" 2>&1; done; :'


@pytest.fixture(scope="session")
def shown(worlds):
    """shown(place, sandbox) -> {secret: what cat said}, all secrets in one run."""
    done = {}

    def get(place, sandbox):
        if (place, sandbox) not in done:
            box = worlds(place.person, "secrets", place.backend).box
            argv = ["/bin/sh", "-c", SHOW, "sh", *(box.home / s for s in SECRETS)]
            r = (box.run if sandbox else box.host)(*argv).ok()
            parts = r.out.split("== ")[1:]
            done[place, sandbox] = dict(zip(SECRETS, parts, strict=True))
        return done[place, sandbox]

    return get


@pytest.mark.parametrize("secret", SECRETS)
def test_secret_files(place, secret, shown, worlds):
    token = worlds(place.person, "secrets", place.backend).token
    assert token in shown(place, False)[secret], "the control run failed"
    assert token not in shown(place, True)[secret]


def test_symlinked_secret_directory(box):
    """~/.ssh is a link into a dotfiles repository: the rule is about what it leads to."""
    box.write("dotfiles/ssh/id_ed25519", "TOKEN-linked")
    (box.home / ".ssh").symlink_to("dotfiles/ssh")
    cat = ["/bin/sh", "-c", "cat ~/.ssh/id_ed25519 ~/dotfiles/ssh/id_ed25519; :"]
    assert box.host(*cat).out.count("TOKEN-linked") == 2
    assert "TOKEN-linked" not in box.run(*cat).out


def test_symlink_from_before(box):
    """A link that the project brought along is followed inside, not by the set-up."""
    box.write(".ssh/id_ed25519", "TOKEN-ssh", 0o600)
    (box.ws / "notes").symlink_to(box.home / ".ssh/id_ed25519")
    (box.ws / "dir").symlink_to(box.home / ".ssh")
    cat = ["/bin/sh", "-c", "cat notes dir/id_ed25519; :"]
    assert box.host(*cat).out.count("TOKEN-ssh") == 2
    r = box.run(*cat)
    assert "TOKEN-ssh" not in r.out + r.err


def test_symlinked_home(box):
    """HOME goes through a link: the secrets are hidden by both names."""
    box.write(".ssh/id", "TOKEN-home", 0o600)
    link = box.home.parent / (box.home.name + "-link")
    link.symlink_to(box.home)
    cat = ["/bin/sh", "-c", 'cat "$HOME/.ssh/id" "$1/.ssh/id"; :', "sh", box.home]
    env = {"HOME": str(link)}
    assert box.host(*cat, env=env).out.count("TOKEN") == 2
    assert "TOKEN" not in box.run(*cat, env=env, cwd=link / "ws").out


# COMMAND...: where listmount(2) is not known, as before Linux 6.8
BEFORE_LISTMOUNT = r"""
import ctypes, os, struct, sys
code = b"".join(struct.pack("<HBBI", *i) for i in (
    (0x20, 0, 0, 0), (0x15, 0, 1, 458), (0x06, 0, 0, 0x50026), (0x06, 0, 0, 0x7fff0000)))
held = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack("<H6xQ", 4, ctypes.addressof(held)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
assert libc.syscall(458, 0, 0, 0, 0) == -1
os.execvp(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.parametrize("older", [False, True], ids=["", "older"])
@pytest.mark.parametrize("what, seen", [(".", ".ssh/id"), (".ssh", "id"), (".ssh/sub", "key")],
                         ids=["around", "itself", "part"])
def test_second_mount_of_a_secret(box, what, seen, older):
    """The host has the home mounted at another place too (bind mounts, ostree's /sysroot); or the
    secret, or a part of it."""
    box.write(".ssh/id", "TOKEN-alias", 0o600)
    box.write(".ssh/sub/key", "TOKEN-alias", 0o600)
    alias = box.home.parent / (box.home.name + " alias")
    alias.mkdir()
    shim = ["/usr/bin/python3", "-c", BEFORE_LISTMOUNT] if older else []
    mounted = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c",
               'mount --bind "$1" "$2"; f=$2/$3; shift 3; "$@" "$f"', "sh", box.home / what, alias,
               seen]
    assert "TOKEN" in box.host(*mounted, "cat").out, "the control run failed"
    r = box.host(*mounted, *shim, *box.argv("cat"))
    assert "TOKEN" not in r.out and r.code, r


def mounting(kind, at, *, source="none"):
    """Words that put a file system there for the words behind them, and for nobody else."""
    options = ["--bind"] if kind == "bind" else ["-t", kind]
    return ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c",
            'at=$1; shift; mkdir -p "$at"; while [ "$1" != -- ]; do m="$m $1"; shift; done; shift; '
            'mount $m "$at" && exec "$@"', "sh", at, *options, source, "--"]


def see_second_procfs(box, kind, at, *shim):
    """Its processes are the host's."""
    with subprocess.Popen(["/bin/sh", "-c", "read x", "TOKEN-outside"], stdin=subprocess.PIPE) as p:
        mounted = mounting(kind, at, source=f"/proc/{p.pid}" if kind == "bind" else "none")
        seen = ["cat", at / "cmdline" if kind == "bind" else at / str(p.pid) / "cmdline"]
        assert "TOKEN" in box.host(*mounted, *seen).out, "the control run failed"
        r = box.host(*mounted, *shim, *box.argv(*seen))
        p.stdin.close()
    assert "TOKEN" not in r.out, r


@pytest.mark.parametrize("older", [False, True], ids=["", "older"])
@pytest.mark.parametrize("kind", ["proc", "bind"])
def test_second_procfs(box, kind, older):
    """The host has a procfs, or one process of it, at another place (a chroot)."""
    shim = ["/usr/bin/python3", "-c", BEFORE_LISTMOUNT] if older else []
    see_second_procfs(box, kind, box.home / "jail/proc", *shim)


@pytest.mark.parametrize("kind", ["proc", "bind"])
def test_second_procfs_in_the_project(box, kind):
    see_second_procfs(box, kind, box.ws / "jail/proc")


def test_second_procfs_that_was_named(box):
    """Whoever names the place means it."""
    at = box.ws / "jail/proc"
    argv = box.argv("cat", at / "uptime", options=["--allow-read", at, "--allow-write", at])
    box.host(*mounting("proc", at), *argv).ok()


def test_second_controls(box):
    """The controls of the kernel are mounted below the project, where the command may write."""
    at = box.ws / "jail/cgroup"
    group = at / f"ambit-canary-{os.getpid()}"
    mounted = [*mounting("cgroup2", at), "/bin/sh", "-c",
               'mkdir "$0" && "$@"; r=$?; cat "$0/cgroup.max.depth"; rmdir "$0"; exit $r', group]
    change = ["/bin/sh", "-c", 'echo 4711 > "$0/cgroup.max.depth"', group]
    assert "4711" in box.host(*mounted, *change).out, "the control run failed"
    r = box.host(*mounted, *box.argv(*change))
    assert "4711" not in r.out and r.code, r


@pytest.mark.parametrize("where", [".ssh", ".ssh/sub"])
def test_working_directory_in_a_second_mount(box, where):
    """Nor does it by the other path of that place."""
    box.write(f"{where}/key", "TOKEN-cwd", 0o600)
    alias = box.home.parent / (box.home.name + "-alias")
    alias.mkdir()
    mounted = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c",
               'mount --bind "$1" "$2" && cd "$2/$3" && shift 3 && exec "$@"', "sh", box.home, alias,
               where]
    assert "TOKEN" in box.host(*mounted, "cat", "key").out, "the control run failed"
    argv = [a if a != str(box.ws) else str(alias / where) for a in map(str, box.argv("cat", "key"))]
    r = box.host(*mounted, *argv)
    assert "TOKEN" not in r.out and r.code == 125 and "mounted at" in r.err, r


def test_home_unset(box):
    """Without a usable HOME the home is that of the account; its secrets are hidden all the
    same."""
    secret = Path(pwd.getpwuid(box.who.uid).pw_dir, ".netrc")
    if box.who.uid == 0 or secret.exists():
        pytest.skip("only in the home of an account made for tests")
    secret.write_text("TOKEN-home")
    os.chown(secret, box.who.uid, box.who.gid)
    try:
        for value in (None, "", "relative"):
            assert "TOKEN" in box.host("cat", secret, env={"HOME": value}).out
            r = box.run("cat", secret, env={"HOME": value})
            assert "TOKEN" not in r.out, r
    finally:
        secret.unlink()


@pytest.mark.parametrize("where", [".ssh", ".ssh/sub", ".config/google-chrome/Default"])
def test_working_directory_in_a_secret(box, where):
    """Who chooses the working directory (an agent may) does not open a hidden place by it."""
    box.write(f"{where}/key", "TOKEN-cwd", 0o600)
    assert "TOKEN" in box.host("cat", "key", cwd=box.home / where).out
    r = box.run("/bin/sh", "-c", "cat key; echo evil > key", cwd=box.home / where)
    assert "TOKEN" not in r.out, r
    r = box.run("/bin/sh", "-c", "cat key; echo evil > key", options=["--chdir", str(box.home / where)])
    assert "TOKEN" not in r.out, r
    assert (box.home / where / "key").read_text() == "TOKEN-cwd"


def test_home_is_the_project(box):
    """Run in the home itself: writable, but its secrets and start-up files are what they were."""
    box.write(".ssh/id", "TOKEN", 0o600)
    box.write(".bashrc", "good")
    attack = ["/bin/sh", "-c", "cat ~/.ssh/id; echo evil > ~/.bashrc; mv ~/.ssh ~/s; cat ~/s/id; "
              "echo k > ~/.ssh/authorized_keys; echo fine > ordinary"]
    r = box.run(*attack, cwd=box.home)
    assert "TOKEN" not in r.out and (box.home / ".bashrc").read_text() == "good", r
    assert not (box.home / ".ssh/authorized_keys").exists()
    assert (box.home / "ordinary").exists(), r
    assert "TOKEN" in box.host(*attack, cwd=box.home).out


def test_planted_link_in_an_allow_read(box):
    """A rule names a directory of the project; a first run puts a link to a secret in its place.
    The second run must not take the link's word for what may be read."""
    box.write(".ssh/id", "TOKEN", 0o600)
    box.mkdir("ws/vendor")
    box.run("/bin/sh", "-c", "rmdir vendor").ok()
    box.run("/bin/sh", "-c", 'ln -s "$HOME/.ssh" vendor').ok()  # in the next run the place is free
    assert "TOKEN" in box.host("cat", "vendor/id").out
    r = box.run("cat", "vendor/id", options=["--allow-read", "vendor"])
    assert "TOKEN" not in r.out, r


def test_rename_parents(box):
    """The home is writable: neither a hidden place nor what is above it can be moved away."""
    attack = ["/bin/sh", "-c", """
        mv ~/.ssh ~/x; cat ~/x/id_ed25519
        mv ~/.config ~/c; cat ~/c/gh/hosts.yml
        mv ~/.docker ~/d; cat ~/d/config.json
        rm -rf ~/.aws; :"""]

    def fill(b):
        for f in (".ssh/id_ed25519", ".config/gh/hosts.yml", ".docker/config.json",
                  ".aws/credentials"):
            b.write(f, "TOKEN-" + f, 0o600)

    fill(box)
    r = box.run(*attack, options=["--allow-write", str(box.home)])
    assert "TOKEN" not in r.out + r.err
    for f in (".ssh/id_ed25519", ".config/gh/hosts.yml", ".docker/config.json",
              ".aws/credentials"):
        assert (box.home / f).read_text() == "TOKEN-" + f
    assert box.host(*attack).out.count("TOKEN") == 3
    assert not (box.home / ".aws").exists()


def test_denied_below_project(box):
    """A hidden place inside the writable project: no other name for it can be made."""
    attack = ["/bin/sh", "-c", """
        cat private/key; cat /proc/self/cwd/private/key
        mv private p2; cat p2/key
        mv a a2; cat a2/b/key
        ln private/key k1; cat k1
        ln -s private k2; cat k2/key
        cp -r private k3; cat k3/key
        rm -rf private a/b; :"""]
    box.write("ws/private/key", "TOKEN-p")
    box.write("ws/a/b/key", "TOKEN-b")
    r = box.run(*attack, options=["--deny-read", "private", "--deny-read", "a/b"])
    assert "TOKEN" not in r.out + r.err
    assert (box.ws / "private/key").read_text() == "TOKEN-p"
    assert (box.ws / "a/b/key").read_text() == "TOKEN-b"
    assert box.host(*attack).out.count("TOKEN") >= 4


def test_glob_at_start(box):
    box.write("ws/sub/.env", "TOKEN-env")
    cat = ["cat", "sub/.env"]
    assert box.host(*cat).out == "TOKEN-env"
    r = box.run(*cat, options=["--deny-read", "**/.env"])
    assert "TOKEN" not in r.out and r.code != 0


def test_glob_made_later(box):
    """A file that matches a pattern but is made after the start: hidden, or it was said before
    that it would not be (CONTRACT 5: never a silent skip)."""
    box.mkdir("ws/sub")
    with box.start("/bin/sh", "-c", "echo ready; read x; cat sub/.env",
                   options=["--deny-read", "**/.env"]) as child:
        first = child.process.stdout.readline()
        if first == b"ready\n":
            box.write("ws/sub/.env", "TOKEN-env")
        r = child.wait(input=b"go\n")
    if first != b"ready\n":
        assert r.code == 125 and ".env" in r.err
    elif "TOKEN" in r.out:
        assert "not files made later" in r.err


def test_stat_of_hidden(box):
    """A hidden directory has nothing in it; a hidden file has no size, time or owner to see."""
    box.write(".ssh/id_ed25519", "T" * 777, 0o600)
    box.write(".netrc", "T" * 778, 0o600)
    look = ["/bin/sh", "-c", "stat -c %s ~/.ssh/id_ed25519; stat -c %s ~/.netrc; ls -A ~/.ssh; :"]
    assert box.host(*look).out.split() == ["777", "778", "id_ed25519"]
    out = box.run(*look).out
    assert "777" not in out and "778" not in out and "id_ed25519" not in out


def test_supervisor_memory(box):
    """The supervisor (outside, same user) holds the caller's environment: not dumpable, so
    that no other process of the user, sandboxed or not, can read it."""
    names = {"API_TOKEN": "TOKEN-of-the-caller"}
    read = ["/bin/sh", "-c", "cat /proc/$1/environ; head -c1 /proc/$1/mem; :", "sh"]

    def who_owns(pid):
        return os.stat(f"/proc/{pid}/environ").st_uid

    with box.start("sleep", "30", env=names, sandbox=False) as child:
        assert wait_until(lambda: b"sleep" in open(f"/proc/{child.process.pid}/cmdline", "rb").read())
        assert "TOKEN-of" in box.host(*read, str(child.process.pid)).out
    with box.start("/bin/sh", "-c", "echo up; sleep 30", env=names) as child:
        assert child.process.stdout.readline() == b"up\n", child.wait()
        pid = child.process.pid
        if box.who.uid != 0:  # root may read anyway
            assert wait_until(lambda: who_owns(pid) == 0)
            assert "TOKEN-of" not in box.host(*read, str(pid)).out
        inner = open(f"/proc/{pid}/task/{pid}/children").read().split()
        assert inner
        for child_pid in inner if box.who.uid != 0 else []:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # who hides something comes and goes
                # bwrap is as it is, but it was given nothing that is worth reading
                assert who_owns(child_pid) == 0 or open(f"/proc/{child_pid}/environ").read() == ""
            assert "TOKEN-of" not in box.host(*read, child_pid).out


def test_init_environment(box):
    """Inside, pid 1 is a copy of the supervisor: the command cannot read what it was started
    with, and itself gets no secret-looking variable."""
    names = {"AWS_SECRET_ACCESS_KEY": "TOKEN-env", "GITHUB_TOKEN": "TOKEN-env"}
    show = ["/bin/sh", "-c", "env; cat /proc/self/environ /proc/1/environ; :"]
    assert "TOKEN-env" in box.host(*show, env=names).out
    r = box.run(*show, env=names)
    assert "AMBIT=1" in r.out and "TOKEN-env" not in r.out


def test_mountinfo(box):
    """What the mount table inside gives away: no place of the old root, nothing of a secret,
    and nothing writable but what the policy says."""
    box.write(".ssh/id_ed25519", "TOKEN", 0o600)
    out = box.run("cat", "/proc/self/mountinfo").ok().out
    writable = set()
    for line in out.splitlines():
        fields = line.split(" ")
        if "rw" in fields[5].split(","):
            writable.add(fields[4])
    assert writable, out
    private = {"/dev", "/dev/pts", "/dev/shm", "/proc", "/tmp", "/var/tmp", "/run",
               f"/run/user/{box.who.uid}", str(box.ws)}
    devices = {m for m in writable if m.startswith("/dev/")}
    # what other mounts cover is of no use: ask for those one can reach
    reach = {m for m in writable - private - devices
             if box.run("sh", "-c", 'test -w "$1" && ! test -c "$1"', "sh", m).code == 0}
    assert not reach, out
    assert writable - reach != set() and "/oldroot" not in out


def test_device_directory(box):
    allowed = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd",
               "stdin", "stdout", "stderr", "console", "mqueue", "core"}
    assert set(box.host("ls", "/dev").out.split()) - allowed, "the control run failed"
    r = box.run("ls", "/dev")  # without a /dev of its own it cannot be listed
    assert set(r.out.split()) <= allowed and (r.out or "Permission denied" in r.err), r


@pytest.mark.parametrize("probe_name", ["stdin-dir", "stdin-dir-chdir", "stdin-dir-write"])
def test_stdin_is_a_directory(place, probe_name, worlds):
    """Standard input is a directory of the host: its descriptor lies outside every mount of
    the sandbox. Refusing to start is an answer too."""
    for kind, prefix in (("control-self", []), ("sandbox", [AMBIT, "run", "--"])):
        w = worlds(place.person, kind, place.backend if prefix else "native")
        with _directory(w.box.home) as d:
            p = w.box.who.popen([*prefix, w.probe, "run", *w.context(), probe_name],
                                cwd=w.box.ws, env=w.box.env, stdin=d, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
            out, err = p.communicate(timeout=20)
        planted = (w.box.home / "stdin-dir-write").exists()
        if prefix:
            assert w.token not in out and not planted, out
            assert f"{probe_name}\topen" not in out
            assert p.returncode in (0, 125), err
        else:
            assert f"{probe_name}\topen" in out, out + err
            assert planted if probe_name == "stdin-dir-write" else w.token in out


class _directory:
    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        return self.fd

    def __exit__(self, *_):
        os.close(self.fd)


def test_core_dump(box, probe):
    """A crash leaves no core file: it may hold what the process had in memory."""
    crash = ["/bin/bash", "-c", "ulimit -c unlimited 2>/dev/null; cd ~/ws; "
             "bash -c 'kill -SEGV $$'; ls -A; :"]
    pattern = open("/proc/sys/kernel/core_pattern").read()
    if pattern.startswith(("|", "/")) or "Hc 0" in box.host("bash", "-c", "echo Hc $(ulimit -Hc)").out:
        ambit_test.skip_impossible(f"core dumps go elsewhere here: {pattern}")
    assert "core" in box.host(*crash).out
    for f in box.ws.glob("core*"):
        f.unlink()
    assert "core" not in box.run(*crash).ok().out
    assert list(box.ws.glob("core*")) == []


def test_runtime_directory(box):
    """$XDG_RUNTIME_DIR, where sessions keep their sockets, is another one inside."""
    run = f"/run/user/{box.who.uid}"
    made = not os.path.isdir(run)
    if made and os.geteuid() != 0:
        ambit_test.skip_impossible("no /run/user directory here")
    if made:
        os.makedirs(run, 0o700)
        os.chown(run, box.who.uid, box.who.gid)
    canary, planted = os.path.join(run, "ambit-canary"), os.path.join(run, "planted")
    try:
        with open(canary, "w") as f:
            f.write("TOKEN-run")
        os.chown(canary, box.who.uid, box.who.gid)
        show = ["/bin/sh", "-c", 'cat "$XDG_RUNTIME_DIR/ambit-canary" /run/user/*/ambit-canary; '
                'echo x > "$XDG_RUNTIME_DIR/planted"; :']
        env = {"XDG_RUNTIME_DIR": run}
        assert "TOKEN-run" in box.host(*show, env=env).out
        os.unlink(planted)
        assert "TOKEN-run" not in box.run(*show, env=env).out
        assert not os.path.exists(planted)
    finally:
        for f in (canary, planted):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f)
        if made:
            with contextlib.suppress(OSError):  # somebody else moved in meanwhile
                os.rmdir(run)


def test_directory_that_the_run_before_has_closed(box):
    """What cannot be looked at when a run starts is not hidden in it; so it does not start."""
    secret = box.write(".cargo/credentials.toml", "TOKEN")
    options = ["--allow-write", str(box.home / ".cargo")]
    read = f"chmod 700 {box.home}/.cargo; cat {secret}"
    assert "TOKEN" not in box.run("sh", "-c", read, options=options).out
    box.run("chmod", "000", box.home / ".cargo", options=options)
    r = box.run("sh", "-c", read, options=options)
    (box.home / ".cargo").chmod(0o700)
    assert "TOKEN" not in r.out, str(r)
    assert "TOKEN" in box.host("sh", "-c", read).out, "the control run failed"
