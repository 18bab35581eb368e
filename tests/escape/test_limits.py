# SPDX-License-Identifier: Apache-2.0
"""Ways around a limit. Each attempt first runs outside, where it works, then under the limit.

The attempts are finite by themselves (200 MB, 150 processes) and run under outer limits too.
"""
import os
import re
import resource
import subprocess
import time

import pytest

from ambit_test import SLOW, processes_with, skip_impossible, wait_until

BYTES = 200 << 20
LIMIT = "80m"


def fuse():
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))


def is_refused(r):
    """By the mounts, by Landlock, or because there is nothing."""
    return any(why in r.err for why in ("Read-only file system", "Permission denied", "No such file"))


HEAD = f"""
import ctypes, mmap, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
N = {BYTES}
SECONDS = float(os.environ["HOLD"])
def say():
    os.write(1, b"held all of it\\n")
def hold():
    say()
    time.sleep(SECONDS)
def fill(write):
    block = b"x" * (1 << 20)
    for i in range(N >> 20):
        write(block)
"""

# Where memory can be that is not in the resident set of a process, or not in one that is easily seen.
HOGS = {
    "plain": "kept = bytearray(b'x') * N; hold()",
    "daemon": """
if os.fork(): time.sleep(SECONDS); os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for fd in (0, 2): os.close(fd)
kept = bytearray(b'x') * N; hold()""",
    "untraceable": "libc.prctl(4, 0); kept = bytearray(b'x') * N; hold()",
    "forged name": r"""
libc.prctl(15, b'1 (x) S 0\nRssAn', 0, 0, 0); kept = bytearray(b'x') * N; hold()""",
    "memfd": """
try: fd = os.memfd_create('x')
except OSError: fd = os.open('/dev/shm/x', os.O_RDWR | os.O_CREAT)  # ENOSYS: as on an old kernel
fill(lambda b: os.write(fd, b)); hold()""",
    "unlinked in /tmp": """
f = open('/tmp/hog', 'wb'); os.unlink('/tmp/hog'); fill(f.write); hold()""",
    "/dev/shm": "f = open('/dev/shm/hog', 'wb'); fill(f.write); hold()",
    "shared mapping": """
m = mmap.mmap(-1, N)
for i in range(0, N, 4096): m[i] = 1
hold()""",
    "System V": """
libc.shmat.restype = ctypes.c_void_p
i = libc.shmget(0, ctypes.c_size_t(N), 0o600)
p = libc.shmat(i, None, 0)
ctypes.memset(p, 1, N)
libc.shmdt(ctypes.c_void_p(p))
say()
try: time.sleep(SECONDS)
finally: libc.shmctl(i, 0, None)""",
    "many small ones": """
for i in range(20):
    if os.fork() == 0:
        kept = bytearray(b'x') * (N // 20); time.sleep(SECONDS); os._exit(0)
time.sleep(1); hold()""",
    "threads of one": """
import threading
kept = []
for i in range(10): threading.Thread(target=lambda: kept.append(bytearray(b'x') * (N // 10))).start()
time.sleep(0.5); hold()""",
}


@pytest.mark.parametrize("how", HOGS)
def test_memory_in_hiding(box, place, how):
    argv = ["/usr/bin/python3", "-c", HEAD + HOGS[how]]
    no_place = place.backend == "landlock" and how in ("memfd", "unlinked in /tmp", "/dev/shm", "System V")
    if "/tmp" not in how and "/dev/shm" not in how:  # nothing of this goes to the host's
        r = box.host(*argv, env={"HOLD": "0"}, preexec_fn=fuse)
        assert "held all of it" in r.out, str(r)
    else:
        r = box.run(*argv, env={"HOLD": "0"}, preexec_fn=fuse)
        assert "held all of it" in r.out or no_place, str(r)
    r = box.run(*argv, env={"HOLD": "28"}, options=["--memory", LIMIT, "--disk", "1g"],
                preexec_fn=fuse)
    if no_place and r.code != 137:  # without namespaces these are refused, or not there
        assert "held all of it" not in r.out and r.seconds < 25, str(r)
        return
    assert r.code == 137 and r.seconds < 25, str(r)
    assert re.search(rf"^ambit: limit memory {LIMIT} reached", r.err, re.M), str(r)


FORKER = """
import ctypes, os, resource, sys, time
how = sys.argv[1]
if how == "raise":
    for what in (resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
        try: resource.setrlimit(what, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        except (ValueError, OSError): pass
made = 0
for i in range(150):
    try:
        pid = os.fork()
    except OSError:
        time.sleep(0.02)
        continue
    if pid == 0:
        if how in ("setsid", "orphans"):
            os.setsid()
        if how == "orphans" and os.fork():
            os._exit(0)
        if how == "untraceable":
            ctypes.CDLL(None).prctl(4, 0)
        time.sleep(float(os.environ["HOLD"]))
        os._exit(0)
    made += 1
print("made", made, flush=True)
time.sleep(float(os.environ["HOLD"]))
"""


@pytest.mark.parametrize("how", ["plain", "raise", "setsid", "orphans", "untraceable"])
def test_processes_in_hiding(box, how):
    mark = f"ambit-test-{os.getpid()}-{time.monotonic_ns()}"
    argv = ["/usr/bin/python3", "-c", FORKER, how]
    r = box.host(*argv, env={"HOLD": "0.5"}, preexec_fn=fuse)
    assert "made 150" in r.out, str(r)
    r = box.run(*argv, env={"HOLD": "28", "MARK": mark}, options=["--pids", "40"], preexec_fn=fuse)
    assert r.code == 137 and r.seconds < 25, str(r)
    assert "limit pids 40 reached" in r.err, str(r)
    assert wait_until(lambda: not processes_with(mark), 5)


def test_groups_cannot_be_changed(box):
    """Files of the hierarchies can be opened for writing by root outside, but not inside."""
    names = ["cgroup.procs", "tasks", "memory.limit_in_bytes", "memory.max", "pids.max", "cpu.max",
             "cpu.cfs_quota_us", "cgroup.subtree_control"]
    paths = [p for name in names for p in box.host(
        "/bin/sh", "-c",  # groups of runs and containers come and go meanwhile
        f"find /sys/fs/cgroup -name {name} | grep -v -e ambit- -e libpod -e user.slice | head -2").out.split()]
    if not paths:
        pytest.skip("no control groups here")
    code = "import os, sys\nos.close(os.open(sys.argv[1], os.O_WRONLY)); print('open')"
    for path in paths:
        assert box.host("/usr/bin/python3", "-c", code, path).out == "open\n", path
        r = box.run("/usr/bin/python3", "-c", code, path,
                            options=["--memory", "200m", "--pids", "50"])
        assert r.code == 1 and r.out == "" and is_refused(r), str(r)


def test_groups_cannot_be_made_or_mounted(box):
    if not os.path.isdir("/sys/fs/cgroup"):
        pytest.skip("no control groups here")
    script = ("for d in /sys/fs/cgroup $(find /sys/fs/cgroup -maxdepth 1 -mindepth 1 -type d); do"
              " mkdir $d/mine && echo MADE; done; mount -t cgroup2 none /tmp && echo MOUNTED;"
              "unshare -C true && echo UNSHARED; echo end")
    r = box.sh(script, options=["--memory", "200m", "--pids", "50"]).ok()
    assert r.out == "end\n" and is_refused(r), str(r)


def test_processors_cannot_be_taken_back(box):
    """Where affinity is what holds the limit, the command cannot widen it."""
    code = ("import os\n"
            "try: os.sched_setaffinity(0, range(os.cpu_count())); print('set')\n"
            "except OSError as e: print(e.errno)\n"
            "print(len(os.sched_getaffinity(0)))")
    if os.cpu_count() < 2:
        pytest.skip("one processor only")
    assert box.host("/usr/bin/python3", "-c", code).out.startswith("set")
    assert box.run("/usr/bin/python3", "-c", code).out.startswith("set")  # no limit, no filter
    check = box.ambit("check").out
    r = box.run("/usr/bin/python3", "-c", code, options=["--cpu", "1"]).ok()
    if "processor affinity" in check:
        assert r.out == "1\n1\n", str(r)


def test_time_is_not_stopped_by_stopping(box):
    """A command that stops itself is still ended in time."""
    r = box.sh("kill -STOP $$; sleep 30", options=["--timeout", "400ms"])
    assert r.code == 124 and r.seconds < 15, str(r)


STOPPER = HEAD + """
if os.fork() == 0:
    os.setsid()
    time.sleep(1)
    kept = bytearray(b'x') * N
    os.close(os.open('grown', os.O_CREAT | os.O_WRONLY))
    time.sleep(30)
    os._exit(0)
time.sleep(0.1)
os.kill(os.getpid(), 19)
time.sleep(30)
"""


def memory_is_held_by_kernel(box):
    return "cgroup" in box.ambit("check").out.split("limit-memory")[1].split("\n")[0]


def test_nothing_grows_while_the_supervisor_is_stopped(box, place):
    """At a terminal a stopped command stops the supervisor. What was put aside before, to go on
    unseen, must not run meanwhile where the limit is held by looking."""
    if place.word == "open" and memory_is_held_by_kernel(box):
        skip_impossible("a cgroup holds the limit here, whoever is stopped")
    argv = box.argv("/usr/bin/python3", "-c", STOPPER, options=["--memory", LIMIT])
    master, slave = os.openpty()
    os.fchown(slave, box.who.uid, -1)
    p = box.who.popen(argv, cwd=box.ws, env={**box.env, "HOLD": "30"}, stdin=slave, stdout=slave,
                      stderr=slave, start_new_session=True, preexec_fn=lambda: (fuse(), own_terminal()))
    os.close(slave)
    try:
        assert wait_until(lambda: state_of(p.pid) == "T" or p.poll() is not None, 20 * SLOW)
        time.sleep(2 * SLOW)
        if p.poll() is None:  # a cgroup would have ended it by itself
            assert not (box.ws / "grown").exists() or memory_is_held_by_kernel(box)
    finally:
        p.kill()
        p.wait()
        os.close(master)


def own_terminal():
    import fcntl
    import termios
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def test_a_burst_below_the_limit_is_no_reason(box, place):
    """Controls of the controls: the same programs, with room enough, run to their end."""
    memfd = [] if place.backend == "landlock" else ["memfd"]  # under a limit it may be refused there
    for how in ("plain", *memfd, "shared mapping", "many small ones"):
        r = box.run("/usr/bin/python3", "-c", HEAD + HOGS[how], env={"HOLD": "0.3"},
                    # on landlock what the user begins in other suites counts, too
                    options=["--memory", "900m", "--pids", "3000"], preexec_fn=fuse)
        assert r.code == 0 and "held all of it" in r.out and r.err == "", str(r)
