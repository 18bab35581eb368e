# SPDX-License-Identifier: Apache-2.0
"""Connections that have to wait: the broker makes them, for as long as somebody waits for them."""
import errno
import os
from pathlib import Path

import pytest

from ambit_test import SLOW, wait_until

PYTHON = "/usr/bin/python3"

# A listener whose queue is full, and how to connect to it
LISTEN = """
import errno, os, select, signal, socket, struct, sys, time
family = socket.AF_{family}
where = 'sock' if family == socket.AF_UNIX else ('127.0.0.1', 4567)
s = socket.socket(family); s.bind(where); s.listen(0)
def dial(limit=0):
    c = socket.socket(family)
    if limit:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack('ll', 0, int(limit * 1e6)))
    return c, c.connect_ex(where)
fill = [socket.socket(family) for i in range(3)]
for c in fill:
    c.setblocking(False); c.connect_ex(where)
r, w = os.pipe()
"""

KILLED = LISTEN + """
for i in range(100):
    p = os.fork()
    if p == 0:
        dial(); os._exit(0)
    time.sleep(0.01); os.kill(p, 9); os.waitpid(p, 0)
print('ready', flush=True)
time.sleep(60)
"""


def broker_of(pid):
    for p in Path("/proc").iterdir():
        try:
            if p.name.isdigit() and (p / "comm").read_text() == "ambit-broker\n" and \
                    f"\nPPid:\t{pid}\n" in (p / "status").read_text():
                return p
        except OSError:
            pass
    return None


@pytest.mark.parametrize("family, options", [("UNIX", []), ("INET", []), ("INET", ["--network", "host"])],
                         ids=["unix", "tcp", "tcp-host"])
def test_killed_callers_leave_nothing(boxes, family, options):
    """A thread and two descriptors for each of them stayed in the broker."""
    box = boxes("root")
    script = KILLED.format(family=family)
    if "host" in options:
        script = script.replace("4567", str(20000 + os.getpid() % 10000))
    with box.start(PYTHON, "-c", script, options=["-q", "--pids", "20", *options]) as child:
        assert child.process.stdout.readline() == b"ready\n", child.process.stderr.read()
        broker = broker_of(child.process.pid)
        assert broker

        def count():
            return len(os.listdir(broker / "task")), len(os.listdir(broker / "fd"))

        # it keeps two descriptors for each of the last tasks
        assert wait_until(lambda: count()[0] <= 3 and count()[1] <= 60, 2 * SLOW), count()


MANY = LISTEN + """
pids = []
for i in range(300):
    pids.append(os.fork())
    if pids[-1] == 0:
        c, e = dial()
        os.write(w, b'%d ' % e)
        time.sleep(100)
said = b''
while said.count(b' ') < 300 - {most}:
    said += os.read(r, 4096)
print(sorted(set(said.split())), flush=True)
taken = 0
while said.count(b' ') < 300:
    ready = select.select([s, r], [], [], 20)[0]
    assert ready, said
    if s in ready:
        taken += 1; s.accept()
    if r in ready:
        said += os.read(r, 4096)
print(said.split().count(b'0'), said.split().count(b'11'))
for p in pids:
    os.kill(p, 9)
"""
MOST = 256  # that may wait at once: DIALS_MAX


def test_not_more_at_once(boxes):
    """The others are told to try again; those that wait are connected in the end."""
    box = boxes("root")
    r = box.run(PYTHON, "-c", MANY.format(family="UNIX", most=MOST), options=["-q"])
    assert r.out.splitlines() == [f"[b'{errno.EAGAIN}']", f"{MOST} {300 - MOST}"], str(r)


LIMIT = LISTEN + """
start = time.monotonic()
c, e = dial(0.3)
print(errno.errorcode[e], 0.25 < time.monotonic() - start < 2)
print(struct.unpack('ll', c.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16)) == (0, 300000), c.getblocking())
other = os.fork()
if other == 0:
    time.sleep(0.3)
    while s.accept(): pass
c, e = dial()
os.kill(other, 9)
print(e, c.getblocking(), c.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16) == bytes(16))
"""


@pytest.mark.parametrize("sandboxed", [True, False], ids=["inside", "control"])
@pytest.mark.parametrize("family, said", [("UNIX", "EAGAIN"), ("INET", "EINPROGRESS")], ids=["unix", "tcp"])
def test_time_limit_of_the_socket(boxes, family, said, sandboxed):
    box = boxes("root")
    script = LIMIT.format(family=family)
    if not sandboxed:
        script = script.replace("4567", str(20000 + os.getpid() % 10000))
    r = box.run(PYTHON, "-c", script, options=["-q"]) if sandboxed else box.host(PYTHON, "-c", script)
    assert r.out.splitlines() == [f"{said} True", "True True", "0 True True"], str(r)
