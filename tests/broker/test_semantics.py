# SPDX-License-Identifier: Apache-2.0
"""The broker performs calls for the command: each must end as if the kernel had done it."""
import ctypes
import os
import re
import shutil
import subprocess
import time

from ambit_test import landlock_abi

# What may differ, and why. The key is the call as the program prints it (group, text).
ALLOWED = {
    # makes a device node, for overlay file systems; refused on purpose
    ("rename", 'sys_rename("rn", "rw", RENAME_WHITEOUT)'): ("0", "EINVAL"),
    # the number is taken when the open ends, not when it begins to wait; a thread came between
    ("fifo", "open(name, O_WRONLY)"): None,
    ("fifo", "open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)"): None,
    # getsockname() of an absolute bind() would tell the last name only: not shown by the program
}
FEWEST = 300


def parse(text):
    lines = []
    for line in text.splitlines():
        m = re.match(r"(\d{3}) ([\w-]+): (.*)$", line)
        if m:
            call, _, outcome = m[3].rpartition(" = ") if " = " in m[3] else (m[3], "", "")
            lines.append((m[1], m[2], call, outcome))
    return lines


def without_setid(line):
    return re.sub(r"mode=(\d+)", lambda m: oct(int(m[1], 8) & ~0o6000), " = ".join(line))


def younger(native, inside):
    """The broker is asked for what the kernel itself does not know yet, and does it."""
    if native[3] == "ENOSYS":
        return True  # fchmodat2(2), before Linux 6.6
    # before Linux 6.10 only with a capability; by the name below /proc/self/fd everybody may
    return "AT_EMPTY_PATH" in native[2] and native[2].startswith("linkat") and (native[3], inside[3]) == ("ENOENT", "0")


def differences(native, inside, account, abi):
    """Pairs of lines that are not the same and should be."""
    wrong, excused = [], False
    for n, i in zip(native, inside):
        if n == i:
            excused = False
            continue
        state = not n[3] and not i[3]  # what the calls before it made: no call
        excused = younger(n, i) or (state and excused)
        lost = abi < 3 and (n[1] == "openat2" or "openat2" in n[2]) and "ENOSYS" in " ".join(i)
        if not (excused or lost or (n[:2] == i[:2] and allowed(n, i, account))):
            wrong.append(f"{n[0]} {n[1]}: {n[2]}: {n[3]} outside, {i[2:]} inside")
    return wrong


def allowed(native, inside, account):
    number, group, call, outcome = native
    if group in ("flags", "rights") and without_setid(native) == without_setid(inside):
        return True  # no setuid or setgid bit is made inside
    if group == "exec-only" and account != "root":
        return True  # what its user may not read, a process of that user cannot help: EACCES
    if group == "fifo" and (group, call) in ALLOWED:
        # all but the number
        return outcome.split(" ", 1)[1] == inside[3].split(" ", 1)[1]
    return ALLOWED.get((group, call)) == (outcome, inside[3])


def run(box, program, where, sandbox):
    ws = box.mkdir(where)
    for name in ("program", "exec-only"):
        shutil.copy(program, box.home / f"{where}-{name}")
    os.chmod(box.home / f"{where}-exec-only", 0o711)  # still root's, where root made it
    argv = [box.home / f"{where}-program", ".", box.home / f"{where}-exec-only"]
    return (box.run(*argv, cwd=ws, options=["-q"]) if sandbox else box.host(*argv, cwd=ws)).ok()


def test_same_as_without(box, programs):
    program = programs("semantics", "semantics.c", "cases_open.c", "cases_names.c",
                       "cases_state.c", "cases_change.c")
    native = parse(run(box, program, "native", False).out)
    inside = parse(run(box, program, "inside", True).out)
    assert len(native) >= FEWEST and len(native) == len(inside)
    wrong = differences(native, inside, box.who.name, landlock_abi())
    assert not wrong, "\n".join(wrong)


LINKS = """
ln -s "$PWD/f" "$TMP/l"; ln -s "$PWD/new" "$TMP/n"; ln -s l "$TMP/ll"; ln -s "$PWD/.envrc" "$TMP/e"
ln -s loop "$TMP/loop"; ln -s ../f bulk/l; ln -s ../d bulk/d
echo 1 > f; echo 2 > "$TMP/l"; cat f; echo 3 >> "$TMP/ll"; cat f; echo 4 > "$TMP/n"; cat new
truncate -s 1 "$TMP/ll"; stat -c %s f; echo 5 > bulk/l; cat f; echo 6 > bulk/d/in; cat d/in
dd if=/dev/null of="$TMP/l" oflag=nofollow 2>/dev/null || echo loop
(echo 7 > "$TMP/loop") 2>/dev/null || echo loop; cp f "$TMP/l" 2>&1 | sed 's/.*are/are/'; [ -L "$TMP/l" ] && echo link
"""


def test_links_into_the_project(box):
    """A link in a directory that is left to the kernel may lead into a guarded one."""
    box.mkdir("tmp")
    seen = {}
    for where in ("outside", "inside"):
        box.mkdir(f"ws/{where}/bulk")
        box.mkdir(f"ws/{where}/d")
        env, cwd = {"TMP": str(box.home / "tmp")}, box.ws / where
        seen[where] = (box.sh(LINKS, cwd=cwd, env={"TMP": "/tmp"},
                              options=["-q", "--env", "TMP", "--set", "filesystem.bulk=bulk"])
                       if where == "inside" else box.host("/bin/sh", "-c", LINKS, cwd=cwd, env=env)).out
    assert seen["inside"] == seen["outside"]
    r = box.sh('ln -s "$PWD/.envrc" /tmp/e; echo x > /tmp/e')
    assert r.code != 0 and f"denied write to {box.ws}/.envrc" in r.err, str(r)
    assert not (box.ws / ".envrc").exists()


PROCESSORS = """
import os, sys
def try_out(n, cpus):
    for i in range(n):
        fd = os.open(f"f{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        assert os.sched_getaffinity(0) == cpus, (i, os.sched_getaffinity(0))
        assert os.read(os.open(f"f{i}", os.O_RDWR), 1) == b"" and fd >= 3
        if i % 50 == 0:
            pid = os.fork()
            if pid == 0:
                os._exit(os.sched_getaffinity(0) != cpus)
            assert os.waitpid(pid, 0)[1] == 0
        os.closerange(3, 10)
        os.unlink(f"f{i}")
all = os.sched_getaffinity(0)
try_out(3000, all)
os.sched_setaffinity(0, {min(all)})
try_out(500, {min(all)})
"""


def test_processors_stay(box):
    """A caller is kept on one processor while it takes a file that the broker opened, but it
    never runs like that."""
    box.run("/usr/bin/python3", "-c", PROCESSORS, options=["-q"]).ok()


SWAPS = """
import os
for d in ("bulk/", "/tmp/"):
    for i in range(100):
        n = d + str(i % 3)
        os.mkdir(n)
        for f in "ab":
            open(n + "/" + f, "w").close()
        os.mkdir(n + "/sub")
        os.rmdir(n + "/sub")
        if i % 2:
            os.unlink(n + "/a"); os.unlink(n + "/b"); os.rmdir(n)
        else:
            os.rename(n, n + "-old")
        os.symlink(os.getcwd() + "/src", n)  # from here on another directory
        open(n + "/c", "w").close()
        os.open(n + f"/{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        os.mkdir(n + f"/d{i}")
        os.symlink(os.getcwd() + "/src/c", d + "l")
        open(d + "x", "w").close()
        open(d + "l", "w").write(d)
        assert open("src/c").read() == d
        os.unlink(d + "l"); os.unlink(n)
        if not i % 2:
            os.system(f"rm -rf {n}-old")
        for f in ("c", str(i)):
            os.unlink("src/" + f)
        os.rmdir(f"src/d{i}")
print(os.listdir("src"))
"""


def test_ways_that_change(box):
    """What was left to the kernel a moment ago is asked about again when the way leads elsewhere."""
    box.mkdir("ws/bulk")
    box.mkdir("ws/src")
    r = box.run("/usr/bin/python3", "-c", SWAPS, options=["-q", "--set", "filesystem.bulk=bulk"]).ok()
    assert r.out == "[]\n"


WRITER = """
import os
n = 0
while True:
    moved = os.path.exists("moved")
    os.close(os.open("d/last" if moved else f"d/{n}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    if moved:
        break
    n += 1
"""


def exchange(one, other):
    libc = ctypes.CDLL(None, use_errno=True)
    r = libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2)
    assert r == 0, os.strerror(ctypes.get_errno())


def test_moved_by_the_host(box):
    """Who goes on writing to a directory by its name writes to the one that has it now, at once."""
    old, new = box.mkdir("ws/d"), box.mkdir("ws/e")
    p = box.who.popen(box.argv("/usr/bin/python3", "-c", WRITER), cwd=box.ws, env=box.env,
                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                      text=True)
    end = time.monotonic() + 20
    while len(os.listdir(old)) < 100 and p.poll() is None and time.monotonic() < end:
        pass
    exchange(old, new)
    box.write("ws/moved", "")
    out, _ = p.communicate(timeout=20)
    assert p.returncode == 0, out
    assert "last" in os.listdir(old) and "last" not in os.listdir(new)
