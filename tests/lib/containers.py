# SPDX-License-Identifier: Apache-2.0
"""A container engine for tests: an image of Debian's packages, made once and kept, and the words
that podman needs here. Everything else that podman writes lies in the tests' own directory.

    engine = engines.of(box)             # skips, with what podman said, where it cannot run
    engine.options                       # for box.run(..., options=engine.options)
"""
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

import ambit_test

IMAGE = "localhost/ambit-test:bookworm"
SUITE = "bookworm"
PACKAGES = ["git", "python3"]  # what the attempts of tests/escape need
UNNEEDED = ["doc", "man", "locale", "info", "zoneinfo"]  # of /usr/share
# crun refuses hybrid cgroups; rlimits above the caller's own are refused
NEEDED = ["--runtime=runc", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1000:1000"]


def _cache():
    if os.geteuid() == 0:
        return Path("/var/cache/ambit-test")
    return Path.home() / ".cache/ambit-test"


def archive():
    """The image as a tar file; None, with the reason, where it cannot be made."""
    cache = _cache()
    tar = cache / f"{'-'.join([SUITE, *PACKAGES])}.tar"
    if not tar.exists() and os.geteuid() != 0:
        return None, "debootstrap needs root"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if tar.exists():
            return tar, None
        root = cache / "root"
        shutil.rmtree(root, ignore_errors=True)
        r = subprocess.run(["debootstrap", "--variant=minbase", "--include=" + ",".join(PACKAGES), SUITE,
                            root], capture_output=True, text=True, timeout=600)
        if r.returncode:
            return None, "debootstrap: " + (r.stderr or r.stdout).strip()[-200:]
        for name in UNNEEDED:
            shutil.rmtree(root / "usr/share" / name, ignore_errors=True)
        part = tar.with_suffix(".part")
        subprocess.run(["tar", "-C", root, "--exclude=./dev", "--exclude=./var/cache/apt",
                        "--exclude=./var/lib/apt/lists", "-cf", part, "."], check=True)
        part.rename(tar)
        shutil.rmtree(root, ignore_errors=True)
        return tar, None


class Engine:
    """podman with the storage of one person, in the tests' directory."""

    def __init__(self, box, base):
        self.who = box.who
        self.dir = base / f"podman-{box.who.name}"  # in memory: thousands of files for a minute
        self.env = {"XDG_RUNTIME_DIR": str(self.dir / "run"), "HOME": str(self.dir / "home"),
                    "XDG_CONFIG_HOME": None}
        self.words = NEEDED + [f"--root={self.dir / 'storage'}", f"--runroot={self.dir / 'rr'}",
                               "--storage-driver=overlay"]
        self.broken = None
        self.lock = Path(f"/dev/shm/libpod_rootless_lock_{self.who.uid}")
        self.lock_made = not self.lock.exists()
        if not self.dir.exists():
            self.dir.mkdir(mode=0o755)
            os.chown(self.dir, box.who.uid, box.who.gid)
            for name in ("run", "home"):
                (self.dir / name).mkdir(mode=0o700)
                os.chown(self.dir / name, box.who.uid, box.who.gid)

    @property
    def options(self):
        return ["--backend", "podman", "--image", IMAGE, *self.arguments]

    @property
    def arguments(self):
        return [w for word in self.words for w in ("--set", f"container.args={word}")]

    def podman(self, box, *args):
        return box.execute([*self.program, *args], env=self.env, cwd="/", timeout=120)

    @property
    def program(self):
        return ["/usr/bin/podman", *(w for w in self.words if w.startswith(("--ro", "--ru", "--sto")))]

    def names(self, box):
        """What `podman ps -a` shows."""
        return self.podman(box, "ps", "-a", "--format", "{{.Names}}").ok().out.split()

    def set_up(self, box):
        if not os.access("/usr/bin/podman", os.X_OK):
            return "podman is not installed"
        tar, why = archive()
        if not tar:
            return why
        r = self.podman(box, "import", str(tar), IMAGE)
        if r.code == 0:
            r = box.execute(["/usr/bin/podman", "run", "--rm", *self.words, "--network=none", IMAGE,
                             "true"], env=self.env, cwd="/", timeout=120)
        return (r.err.strip().splitlines() or ["it said nothing"])[-1] if r.code else None

    def close(self):
        # rootless podman leaves a process behind that holds its namespaces
        for file in self.dir.glob("run/libpod/tmp/pause.pid"):
            with contextlib.suppress(ValueError, ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGKILL)
        if os.geteuid() != 0 and shutil.which("podman"):
            subprocess.run(["podman", "unshare", "rm", "-rf", self.dir], stderr=subprocess.DEVNULL)
        if self.lock_made:
            self.lock.unlink(missing_ok=True)
        subprocess.run(["umount", self.dir / "storage/overlay"], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.dir, ignore_errors=True)


class Engines:
    def __init__(self, base):
        self.base, self.known = base, {}

    def of(self, box):
        """The engine of this person, set up once; skips where it cannot run anything."""
        e = self.known.get(box.who.name)
        if not e:
            e = self.known[box.who.name] = Engine(box, self.base)
            e.broken = e.set_up(box)
        if e.broken:
            ambit_test.skip_impossible(f"podman cannot run a container here: {e.broken}")
        box.env["XDG_RUNTIME_DIR"] = e.env["XDG_RUNTIME_DIR"]
        return e


@pytest.fixture(scope="session")
def engines():
    """engines.of(box) -> its Engine."""
    base = Path(tempfile.mkdtemp(prefix="ambit-test.", dir="/dev/shm"))
    base.chmod(0o755)
    found = Engines(base)
    yield found
    for e in found.known.values():
        e.close()
    shutil.rmtree(base, ignore_errors=True)
