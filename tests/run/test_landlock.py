# SPDX-License-Identifier: Apache-2.0
"""Without namespaces (--backend landlock): a private home, limits. The rest is in test_backends.py,
tests/network/test_landlock.py and tests/escape."""
import json
import os

import pytest

from ambit_test import SCOPES_ABI, landlock_abi, wait_until

# before ABI 6 signals to other processes are not held, which the caller has to accept
LANDLOCK = ["--backend", "landlock", *(["--fallback", "warn"] if landlock_abi() < SCOPES_ABI else [])]
PYTHON = "/usr/bin/python3"


@pytest.fixture(autouse=True)
def on_landlock(box):
    box.env["TMPDIR"] = str(box.mkdir("tmp"))  # where the private directory is made


def left(box):
    return [*(box.home / "tmp").iterdir()]


# --- private home ---------------------------------------------------------------------------

def test_private_home(box):
    """An empty home that is lost in the end; the real one is hidden, but for the project."""
    box.write("notes", "SECRET")
    box.write(".config/tool", "SECRET")
    script = (f"cat {box.home}/notes {box.home}/.config/tool; ls {box.home}; echo x > ~/made && "
              "mkdir -p $XDG_CONFIG_HOME/tool && ls -A ~; echo y > in-project; echo $HOME; cat ~/made")
    env = {"XDG_CONFIG_HOME": f"{box.home}/.config"}
    r = box.run("/bin/sh", "-c", script, options=[*LANDLOCK, "--home", "private"], env=env)
    assert r.code == 0 and "SECRET" not in r.out + r.err, r
    listed, home, made = r.out.splitlines()[:2], r.out.splitlines()[2], r.out.splitlines()[3]
    assert listed == [".config", "made"] and made == "x" and not home.startswith(str(box.home / "ws")), r
    assert (box.ws / "in-project").read_text() == "y\n"
    assert not (box.home / "made").exists() and not left(box)
    r = box.run("/bin/sh", "-c", script, options=LANDLOCK, env=env)
    assert "SECRET" in r.out, "the control: without it they are read"


def test_private_home_as_directory(box):
    """Started in the home directory itself: then that is the private one."""
    box.write("notes", "SECRET")
    r = box.run("/bin/sh", "-c", "pwd; ls -A; cat notes; echo x > f && cat f",
                options=[*LANDLOCK, "--home", "private", "--chdir", str(box.home)])
    assert r.out.splitlines()[1:] == ["x"] and "SECRET" not in r.out + r.err, r
    assert not (box.home / "f").exists() and not left(box)


def test_private_home_with_shared_tmp(box):
    r = box.run("/bin/sh", "-c", "touch ~/f && ls ~", options=[*LANDLOCK, "--home", "private", "--tmp", "shared"])
    assert r.code == 0 and r.out == "f\n" and not left(box), r


# --- limits --------------------------------------------------------------------------------

GROW = """
import ctypes, os, sys, time
if sys.argv[1] == "hiding":
    ctypes.CDLL(None).prctl(4, 0)  # not dumpable: nobody else of this user sees its memory
if sys.argv[1] == "orphan" and os.fork():
    time.sleep(20)
    sys.exit(0)
if sys.argv[1] == "orphan":
    os.setsid()
    if os.fork():
        os._exit(0)
block = bytearray(0)
for i in range(int(sys.argv[2])):
    block += b"x" * (1 << 20)
    time.sleep(0.002)
print("held", flush=True)
time.sleep(float(sys.argv[3]))
"""


@pytest.mark.parametrize("how", ["plain", "hiding", "orphan"])
def test_memory(box, how):
    report = box.ws / "report.json"
    r = box.run(PYTHON, "-c", GROW, how, "400", "20",
                options=[*LANDLOCK, "--memory", "100m", "--report", report])
    assert r.code == 137 and "limit memory 100m reached" in r.err, r
    assert json.loads(report.read_text())["limit"] == "memory" and not left(box)
    r = box.run(PYTHON, "-c", GROW, "plain", "20", "0.1", options=[*LANDLOCK, "--memory", "100m"])
    assert r.code == 0 and r.out == "held\n", r


FORKS = """
import os, sys, time
n = 0
for i in range(int(sys.argv[1])):
    try:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        n += 1
    except OSError:
        break
print(n, flush=True)
time.sleep(float(sys.argv[2]))
"""


def test_processes(box):
    """Held by the kernel: counted from what the user runs besides; for root by a cgroup, or refused."""
    r = box.run(PYTHON, "-c", FORKS, "400", "20", options=[*LANDLOCK, "--pids", "120"])
    if box.who.name == "root" and r.code == 125:
        assert "needs a cgroup" in r.err, r
        return
    assert r.code == 137 and "limit pids 120 reached" in r.err, r
    assert "400" not in r.out, r
    for _ in range(10):  # with much room, and again: what this user begins in other suites counts, too
        r = box.run(PYTHON, "-c", FORKS, "20", "0", options=[*LANDLOCK, "--pids", "120"])
        if r.out == "20\n":
            break
    assert r.code == 0 and r.out == "20\n", r


def test_disk(box):
    """In the project and in the private directory, which is on the host's disk here."""
    for where in (".", "$TMPDIR"):
        r = box.run("/bin/sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of={where}/f$i bs=1M "
                    "count=12 status=none conv=fsync || exit 9; done; sleep 20",
                    options=[*LANDLOCK, "--disk", "24m"], timeout=60)
        assert r.code in (9, 137) and "limit disk 24m reached" in r.err, r
        for f in box.ws.glob("f?"):
            f.unlink()
    assert wait_until(lambda: not left(box), 5), left(box)


def test_peaks_are_measured(box):
    report = box.ws / "report.json"
    r = box.run(PYTHON, "-c", GROW, "plain", "40", "0.5",
                options=[*LANDLOCK, "--memory", "500m", "--report", report])
    assert r.code == 0, r
    assert json.loads(report.read_text())["peak"]["memory"] > 40 << 20
    assert os.path.exists(report)
