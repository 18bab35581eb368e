# SPDX-License-Identifier: Apache-2.0
"""Limits: what is too much is stopped, named, and everything inside is gone.

Every bomb here is finite, and runs under outer limits besides (`fused`): a broken build may fail
the test, but not the machine.
"""
import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ambit_test import SCOPES_ABI, landlock_abi, processes_with, skip_impossible, wait_until

GB = 1 << 30


def fused(memory=2 * GB, file=GB):
    """Outer limits of the whole run: address space of each process, size of each file."""
    def before():
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (file, file))
    return before


def groups(pid):
    """The control groups of a run, by its supervisor."""
    return {d for top in Path("/sys/fs/cgroup").glob("*") if top.is_dir()
            for d, _, _ in os.walk(top) if f"/ambit-run-{pid}-" in d}


@pytest.fixture
def limited(box):
    """Runs with a report: the result and the report of `box.run` under a fuse."""
    def run(*command, options=(), fuse=None, **kw):
        path = box.home / "report.json"
        r = box.run(*command, options=["--report", path, *options], preexec_fn=fuse or fused(), **kw)
        return r, json.loads(path.read_text())
    return run


def named(r, report, name, value):
    """The limit is told in all the ways in which it must be told."""
    line = re.search(rf"^ambit: limit {name} {value} reached — .+ \(raise with: --{name} \S+\)$",
                     r.err, re.M)
    assert line, str(r)
    assert report["limit"] == name, report
    entries = [v for v in report["violations"] if v["kind"] == "limit"]
    assert len(entries) == 1 and entries[0]["target"] == f"{name} {value}", report
    assert entries[0]["rule"] == f"limits.{name}" and entries[0]["source"] == f"--{name}", report
    return entries[0]


HOG = """
import sys, time
kept = []
for i in range(1024):                       # 64 GB, if nobody stops it
    kept.append(bytearray(b"x") * (64 << 20))
time.sleep(20)
"""


def test_memory(limited):
    r, report = limited("/usr/bin/python3", "-c", HOG, options=["--memory", "200m"])
    assert r.code == 137, str(r)
    named(r, report, "memory", "200m")
    assert report["exitCode"] == 137 and report["signal"] == 9
    # the fuse is at 2 GB: had it blown, Python would have said MemoryError
    assert 190 << 20 < report["peak"]["memory"] < 1200 << 20, report["peak"]
    assert report["limitsHeldBy"]["memory"]


def test_memory_of_many(limited):
    """It is the sum that counts, whoever it is split among."""
    code = ("import os, time\n"
            "for i in range(8):\n"
            " if os.fork() == 0:\n"
            "  kept = bytearray(b'x') * (40 << 20); time.sleep(20)\n"
            "time.sleep(20)")
    r, report = limited("/usr/bin/python3", "-c", code, options=["--memory", "200m"])
    assert r.code == 137 and r.seconds < 15, str(r)
    named(r, report, "memory", "200m")


def test_memory_shared_after_fork_counts_once(limited):
    """100 MB in ten processes that share it are 100 MB."""
    code = ("import mmap, os, time\n"
            "m = mmap.mmap(-1, 100 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
            "for i in range(0, 100 << 20, 4096): m[i] = 1\n"
            "for i in range(9):\n"
            " if os.fork() == 0: time.sleep(1); os._exit(0)\n"
            "time.sleep(1.2)")
    r, report = limited("/usr/bin/python3", "-c", code, options=["--memory", "300m"])
    assert r.code == 0, str(r)
    assert report["limit"] is None and report["violations"] == []


def test_memory_kill_of_a_child_ends_all(limited):
    """Even when the command would have gone on without it."""
    script = f"/usr/bin/python3 -c '{HOG}' || true; sleep 20; exit 3"
    r, report = limited("/bin/sh", "-c", script, options=["--memory", "100m"])
    assert r.code == 137 and r.seconds < 15, str(r)
    named(r, report, "memory", "100m")


def test_memory_enough(limited):
    r, report = limited("/usr/bin/python3", "-c", "b = bytearray(b'x') * (30 << 20); print('fine')",
                        options=["--memory", "200m", "--pids", "50", "--disk", "1g"])
    assert r.code == 0 and r.out == "fine\n", str(r)
    assert r.err == "" and report["limit"] is None


@pytest.mark.parametrize("options", [["--memory", "200m"], ["--pids", "50"], ["--disk", "1g"]])
def test_peak_of_a_short_run(limited, options):
    """It may end before the first look, and be largest between two: its largest process counts."""
    for code in ("pass", "b = bytearray(b'x') * (60 << 20); del b"):
        r, report = limited("/usr/bin/python3", "-c", code, options=options)
        r.ok()
        least = 60 << 20 if "60" in code else 1
        if not report["limitsHeldBy"].get("memory", "").startswith("cgroup"):
            least = report["maxRss"]
        assert report["peak"]["memory"] and report["peak"]["memory"] >= least, report


FORKS = """
import os, sys, time
made = 0
for i in range(600):
    try:
        if os.fork() == 0:
            time.sleep(15)
            os._exit(0)
        made += 1
    except OSError:
        time.sleep(0.01)
print('made', made, flush=True)
time.sleep(15)
"""


def test_fork_bomb(limited):
    r, report = limited("/usr/bin/python3", "-c", FORKS, options=["--pids", "60"])
    assert r.code == 137, str(r)
    named(r, report, "pids", "60")
    assert 55 <= report["peak"]["pids"] <= 70, report["peak"]


def test_who_gives_up_at_the_first_refusal(limited):
    """The shell ends at once, before anybody looks: what it was refused is named all the same."""
    script = "for i in $(seq 40); do sleep 5 & done; wait"
    r, report = limited("/bin/dash", "-c", script, options=["--pids", "20"])
    assert r.code != 0 and r.seconds < 5, str(r)
    named(r, report, "pids", "20")
    # fewer, and a failure of its own: nothing to be named
    r, report = limited("/bin/dash", "-c", "for i in $(seq 15); do sleep 5 & done; exit 3",
                        options=["--pids", "20"])
    assert r.code == 3 and report["limit"] is None and r.err == "", str(r)


def test_fork_bomb_leaves_the_host_alone(box):
    """The classic one. While it burns, others start programs; afterwards nobody is left."""
    mark = f"ambit-test-{os.getpid()}-{time.monotonic_ns()}"
    with box.start("/bin/bash", "-c", ":(){ :|:& };: ; sleep 20", options=["--pids", "100"],
                   env={"MARK": mark}, preexec_fn=fused()) as child:
        slowest = 0
        while child.process.poll() is None:
            started = time.monotonic()
            subprocess.run(["/bin/true"], check=True)
            slowest = max(slowest, time.monotonic() - started)
            assert len(processes_with(mark)) < 130
            time.sleep(0.02)
        r = child.wait()
    assert r.code == 137 and "limit pids 100 reached" in r.err, str(r)
    assert slowest < 5
    assert wait_until(lambda: not processes_with(mark), 5), processes_with(mark)


def test_threads_count(limited):
    code = ("import threading, time\n"
            "for i in range(300):\n"
            " try: threading.Thread(target=time.sleep, args=(15,), daemon=True).start()\n"
            " except RuntimeError: time.sleep(0.01)\n"
            "time.sleep(15)")
    r, report = limited("/usr/bin/python3", "-c", code, options=["--pids", "40"],
                        fuse=fused(memory=8 * GB))
    assert r.code == 137, str(r)
    named(r, report, "pids", "40")


def test_as_many_as_allowed(limited):
    """The limit itself may be used."""
    code = ("import os, time\n"
            "for i in range(19):\n"
            " if os.fork() == 0: time.sleep(0.6); os._exit(0)\n"
            "for i in range(19): os.wait()\n"
            "print('fine')")
    r, report = limited("/usr/bin/python3", "-c", code, options=["--pids", "20"])
    assert r.code == 0 and r.out == "fine\n", str(r)
    assert report["limit"] is None


def mounted_disk(box):
    """The project on a file system of its own; says why when there can be none."""
    image = box.home / "disk.img"
    with open(image, "wb") as f:
        f.truncate(512 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, box.ws]).returncode:
        image.unlink()
        yield "no loop devices here"
        return
    try:
        os.chown(box.ws, box.who.uid, box.who.gid)
        yield None
    finally:
        subprocess.run(["umount", box.ws], check=True)
        image.unlink()


@pytest.fixture
def own_disk(box):
    """A file system that nobody else writes to."""
    if os.geteuid() != 0:
        skip_impossible("only root can mount a file system for the test")
    with contextlib.contextmanager(mounted_disk)(box) as problem:
        if problem:
            skip_impossible(problem)
        yield


@pytest.fixture
def quiet_disk(box):
    """The same where it can be had: what others delete meanwhile would count for the command."""
    if os.geteuid() != 0:
        yield
        return
    with contextlib.contextmanager(mounted_disk)(box):
        yield


@pytest.mark.parametrize("where", ["/tmp", ".", "/dev/shm"])
def test_disk_fill(limited, box, where, quiet_disk):
    """As many files as it takes: a limit for each of them would not be one."""
    code = ("import sys, time\n"
            "for i in range(60):\n"
            " with open(sys.argv[1] + '/fill%d' % i, 'wb') as f:\n"
            "  try: f.write(bytes(8 << 20))\n"
            "  except OSError: pass\n"
            "time.sleep(28)")
    r, report = limited("/usr/bin/python3", "-c", code, where, options=["--disk", "64m"],
                        fuse=fused(file=100 << 20))
    assert r.code == 137 and r.seconds < 25, str(r)
    named(r, report, "disk", "64m")
    left = sum(p.stat().st_size for p in box.ws.glob("fill*"))
    assert left < 300 << 20
    assert report["peak"]["disk"] >= 60 << 20


def test_disk_one_file(limited, quiet_disk):
    """Also what is written through a mapping, or into a file that has lost its name."""
    code = ("import mmap, os, time\n"
            "f = open('mapped', 'w+b'); f.truncate(60 << 20); os.unlink('mapped')\n"
            "m = mmap.mmap(f.fileno(), 60 << 20)\n"
            "for i in range(0, 60 << 20, 4096): m[i] = 1\n"
            "time.sleep(28)")
    r, report = limited("/usr/bin/python3", "-c", code, options=["--disk", "48m"])
    assert r.code == 137 and r.seconds < 25, str(r)
    named(r, report, "disk", "48m")


def test_disk_space_that_is_given_back_does_not_count(limited, own_disk):
    code = ("import os\n"
            "for i in range(10):\n"
            " f = open('again', 'wb'); f.write(bytes(16 << 20)); f.flush(); os.fsync(f.fileno())\n"
            " f.close(); os.unlink('again')\n"
            "print('fine')")
    r, report = limited("/usr/bin/python3", "-c", code, options=["--disk", "64m"])
    assert r.code == 0 and r.out == "fine\n", str(r)
    assert report["limit"] is None


@pytest.mark.parametrize("where", ["/tmp", ".", "./bulk"])
def test_a_million_files(limited, box, where, quiet_disk):
    box.mkdir("ws/bulk")
    code = ("import os, sys\n"
            "os.mkdir(sys.argv[1] + '/many')\n"
            "for i in range(1000000):\n"
            " try: os.close(os.open(sys.argv[1] + '/many/%d' % i, os.O_CREAT | os.O_WRONLY))\n"
            " except OSError: pass")
    r, report = limited("/usr/bin/python3", "-c", code, where,
                        options=["--disk", "10m", "--set", "filesystem.bulk=bulk"])
    assert r.code == 137 and r.seconds < 25, str(r)
    named(r, report, "disk", "10m")
    if where != "/tmp":
        assert len(list((box.ws / where / "many").iterdir())) < 20000


def test_disk_that_is_only_reserved(limited, own_disk):
    """Many files below the limit; nobody counts what fallocate() takes, so it is not to be had, and
    the C library writes instead."""
    code = ("import os, time\n"
            "for i in range(30):\n"
            " f = os.open('r%d' % i, os.O_CREAT | os.O_WRONLY); os.posix_fallocate(f, 0, 7 << 20)\n"
            "time.sleep(20)")
    r, report = limited("/usr/bin/python3", "-c", code, options=["--disk", "8m"])
    assert r.code == 137 and r.seconds < 15, str(r)
    named(r, report, "disk", "8m")


def test_time(limited):
    """Asked first: a command that tidies up is given the time for it."""
    script = "trap 'echo tidy; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    r, report = limited("/bin/sh", "-c", script, options=["--timeout", "2s"])
    assert r.code == 124 and r.out == "ready\ntidy\n", str(r)
    entry = named(r, report, "timeout", "2s")
    assert "SIGTERM" in entry["reason"] and entry["hint"] == "--timeout 4s"
    assert r.seconds < 4 and report["timedOut"] is True  # less than until it is ended


def test_time_of_another_session(limited):
    """What has left the command's process group is asked, too, and may tidy up."""
    other = "trap 'echo tidy; exit' TERM; echo ready; while :; do sleep 0.05; done"
    r, report = limited("/bin/sh", "-c", f'setsid sh -c "{other}" & trap "" TERM; wait; sleep 9; wait',
                        options=["--timeout", "2s"])
    assert r.code == 124 and r.out == "ready\ntidy\n", str(r)
    assert report["timedOut"] is True


def test_time_of_a_stubborn_one(limited):
    r, report = limited("/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.05; done",
                        options=["--timeout", "300ms"])
    assert r.code == 124 and 2 < r.seconds < 12, str(r)
    named(r, report, "timeout", "300ms")


def test_the_warning_comes_before_the_end(plain):
    with plain.start("/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.05; done",
                     options=["--timeout", "300ms"]) as child:
        line = child.process.stderr.readline()
        assert b"limit timeout 300ms reached" in line and child.process.poll() is None
        assert child.wait().code == 124


def test_quiet_still_names_it(plain):
    r = plain.run("/bin/sleep", "5", options=["-q", "--timeout", "200ms"])
    assert r.code == 124 and r.err.startswith("ambit: limit timeout 200ms reached"), str(r)


def test_cpu(box):
    """Half of two processors at most: two spinning loops get one processor's time together."""
    spin = "timeout 2 sh -c 'while :; do :; done' & timeout 2 sh -c 'while :; do :; done' & wait"
    r = box.run("/bin/bash", "-c", f"{spin}; times | tail -1", options=["--cpu", "1"])
    minutes, seconds = re.match(r"(\d+)m([\d.]+)s", r.out).groups()
    assert r.code == 0 and int(minutes) == 0 and float(seconds) < 2.5, str(r)


def test_part_of_a_processor(box):
    r = box.run("/bin/bash", "-c", "timeout 2 sh -c 'while :; do :; done'; times | tail -1",
                options=["--cpu", "0.5"])
    if r.code == 125:  # no cgroup for us here: refused, with a way out that works
        assert "only whole processors" in r.err and "--cpu 1" in r.err, str(r)
        assert box.run("true", options=["--cpu", "1"]).code == 0
        r = box.run("true", options=["--cpu", "0.5", "--fallback", "warn"])
        assert r.code == 0 and "1 processors instead of 0.5" in r.err, str(r)
        return
    seconds = float(re.match(r"0m([\d.]+)s", r.out)[1])
    assert seconds < 1.4, str(r)


def test_check_says_what_holds_them(box):
    rows = {p["name"]: p for p in json.loads(box.ambit("check", "--json").out)["properties"]}
    for name in ("memory", "cpu", "pids", "disk", "timeout"):
        assert rows[f"limit-{name}"]["mechanism"], rows
    r, held = box.home / "r.json", None
    box.run("true", options=["--memory", "1g", "--report", r]).ok()
    held = json.loads(r.read_text())["limitsHeldBy"]["memory"]
    assert rows["limit-memory"]["mechanism"].startswith(held)


def test_no_limit_no_trace(box):
    """Without limits nothing is measured, made or started for them."""
    path = box.home / "report.json"
    with box.start("/bin/sleep", "2", options=["--report", path]) as child:
        time.sleep(0.3)
        assert not groups(child.process.pid)
        names = Path(f"/proc/{child.process.pid}/task/{child.process.pid}/children").read_text()
        assert len(names.split()) == 1
        child.process.terminate()
        child.wait()
    report = json.loads(path.read_text())
    assert set(report["peak"].values()) == {None}
    assert report["limitsHeldBy"] == {}


@pytest.mark.parametrize("options", [["--memory", "100m"], ["--pids", "30", "--cpu", "1"]])
def test_no_group_is_left(box, options):
    for command in (["true"], ["/bin/sh", "-c", "kill -9 $$"], ["no-such-command"]):
        with box.start(*command, options=options) as child:
            child.process.wait()
            assert wait_until(lambda: not groups(child.process.pid), 5)


def test_no_group_is_left_after_kill(box):
    """Even by SIGKILL, at any moment."""
    for pause in (0.001, 0.002, 0.004, 0.008, 0.02, 0.1):
        with box.start("/bin/sleep", "60", options=["--memory", "100m", "--pids", "30"]) as child:
            time.sleep(pause)
            child.process.kill()
            child.process.wait()
            # before the fixture kills the whole process group: that might hit a guard being born
            assert wait_until(lambda: not groups(child.process.pid), 5)


def guards_of(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(p) for p in children if Path(f"/proc/{p}/comm").read_text() == "ambit-guard\n"]


def ended_meanwhile(box, path, options):
    """A command that ends while the supervisor is stopped; for how long that was."""
    with box.start("/bin/sh", "-c", "echo ready; sleep 0.7", options=["--report", path, *options]) as child:
        child.process.stdout.readline()
        stopped = time.monotonic()
        child.process.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        child.process.send_signal(signal.SIGCONT)
        assert child.wait().code == 0
        return time.monotonic() - stopped


@pytest.mark.parametrize("backend", ["native", "landlock", "bwrap"])
def test_peaks_outlive_the_group(box, backend):
    """A scope goes with its last process, and the supervisor may be late: it is waited for, two seconds."""
    path = box.home / "report.json"
    accepted = ["--fallback", "warn"] if backend == "landlock" and landlock_abi() < SCOPES_ABI else []
    options = ["--backend", backend, *accepted, "--memory", "300m"]
    # on a busy machine it may have been longer than that
    assert any(ended_meanwhile(box, path, options) < 2.5 for _ in range(5))
    report = json.loads(path.read_text())
    if report["limitsHeldBy"]["memory"].startswith("cgroup"):
        assert report["peak"]["memory"], report


def test_left_over_groups_are_swept(rooted):
    """Supervisor and guard killed at once: the next run tidies up."""
    for _ in range(20):  # the next run may be one of another suite
        with rooted.start("/bin/sleep", "60", options=["--pids", "30"]) as child:
            pid = child.process.pid
            if not wait_until(lambda: groups(pid), 10):
                pytest.skip("no cgroup of our own can be made here")
            if any(".scope" in d for d in groups(pid)):
                pytest.skip("systemd holds the group here, and removes it by itself")
            assert wait_until(lambda: len(guards_of(pid)) == 1)
            left = groups(pid)
            os.kill(guards_of(pid)[0], signal.SIGKILL)
            child.process.kill()
            child.process.wait()
        if all(map(os.path.isdir, left)):
            break
    else:
        pytest.fail("nothing was left")
    with rooted.start("/bin/sleep", "60", options=["--pids", "30"]) as living:
        assert wait_until(lambda: not any(map(os.path.isdir, left)))
        own = groups(living.process.pid)
        rooted.run("true", options=["--pids", "30"]).ok()
        assert own and all(map(os.path.isdir, own))  # the living one's is not touched
        living.process.terminate()
        living.wait()
    assert wait_until(lambda: not any(map(os.path.isdir, own)), 5)


def test_settings_file(box):
    box.write("ws/.ambit.json", json.dumps({"limits": {"pids": 20, "timeout": "9s"}}))
    r = box.run("/usr/bin/python3", "-c", FORKS, preexec_fn=fused())
    assert r.code == 137 and "limit pids 20 reached" in r.err, str(r)


def test_own_environment_shows_no_group(rooted):
    """The command sees itself at the top of every hierarchy."""
    r = rooted.run("cat", "/proc/self/cgroup", options=["--memory", "100m", "--pids", "9"]).ok()
    assert "ambit-run" not in r.out
    for line in r.out.splitlines():
        if line.split(":")[1] in ("memory", "pids"):
            assert line.endswith(":/"), r.out
