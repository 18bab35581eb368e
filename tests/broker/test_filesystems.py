# SPDX-License-Identifier: Apache-2.0
"""What file systems and mounts can do beside the calls that everybody knows."""
import fcntl
import os
import shlex
import struct

import pytest
from ambit_test import AMBIT, skip_impossible, whos

GETFLAGS, SETFLAGS, NOATIME = 0x80086601, 0x40086602, 0x80

SET = f"""
import fcntl, struct
flags = struct.unpack("i", fcntl.ioctl(0, {GETFLAGS}, struct.pack("i", 0)))[0]
try:
    fcntl.ioctl(0, {SETFLAGS}, struct.pack("i", flags | {NOATIME}))
except OSError as e:
    print(e)
"""


def flags_of(path):
    with open(path, "rb") as f:
        return struct.unpack("i", fcntl.ioctl(f, GETFLAGS, struct.pack("i", 0)))[0]


@pytest.mark.parametrize("who", whos())
@pytest.mark.parametrize("sandboxed", [True, False], ids=["inside", "control"])
def test_attributes_of_what_was_given_open(boxes, who, sandboxed):
    box = boxes(who)
    f = box.write("notes.txt", "mine")
    argv = ["/usr/bin/python3", "-c", SET]
    argv = shlex.join(map(str, box.argv(*argv) if sandboxed else argv))
    box.host("sh", "-c", f"exec {argv} < {f}").ok()
    assert bool(flags_of(f) & NOATIME) != sandboxed


@pytest.fixture
def root_box(boxes):
    if os.geteuid() != 0:
        skip_impossible("only root can mount: tried as root")
    return boxes("root")


SNAPSHOT = """
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)


def ask(where, request, fd, name):
    d = os.open(where, os.O_RDONLY)
    arg = ctypes.create_string_buffer(struct.pack("<q4088s", fd, name.encode()))
    return libc.ioctl(d, ctypes.c_ulong(request), arg) == 0


def make(where, name):
    return ask(where, 0x5000940e, 0, name)


def copy(what, where, name):
    return ask(where, 0x50009401, os.open(what, os.O_RDONLY), name)


if not make(".", "st"):
    os.mkdir("st")
with open("st/tasks.json", "w") as f:
    f.write("evil")
print(copy("st", ".", ".vscode"), copy(os.environ["HOME"], ".", "loot"))
print(open("loot/.ssh/id_rsa").read() if os.path.exists("loot/.ssh/id_rsa") else "")
"""


@pytest.mark.parametrize("sandboxed", [True, False], ids=["inside", "control"])
def test_snapshots(root_box, sandboxed):
    """Of btrfs: a subvolume or snapshot with a protected name, and one of the home with its secrets."""
    box = root_box
    image, top = box.home / "image", box.mkdir("top")
    with open(image, "wb") as f:
        f.truncate(256 << 20)
    home = top / "home"
    run = [AMBIT, "run", "--"] if sandboxed else []
    argv = shlex.join(map(str, [*run, "/usr/bin/python3", "-c", SNAPSHOT]))
    script = (f"mkfs.btrfs -q {image} > /dev/null && mount -o loop {image} {top} && btrfs -q subvolume create {home} &&"
              f" mkdir -p {home}/.ssh {home}/proj && echo PRIVATE > {home}/.ssh/id_rsa &&"
              f" cd {home}/proj && export HOME={home} && {argv}; cat .vscode/tasks.json; cd /; umount {top}")
    r = box.host("unshare", "-m", "sh", "-c", script)
    assert ("PRIVATE" in r.out) != sandboxed, str(r)
    assert ("evil" in r.out) != sandboxed, str(r)
    assert r.out.startswith("False False" if sandboxed else "True True"), str(r)


@pytest.mark.parametrize("sandboxed", [True, False], ids=["inside", "control"])
def test_what_is_mounted_later(root_box, sandboxed):
    """Where the host shares its mounts, as systemd has it, a mount that comes later stays outside."""
    box = root_box
    box.mkdir("ws/mnt")
    wait = "touch ready; while [ ! -e go ]; do sleep 0.05; done; ls mnt; grep -c ws/mnt /proc/self/mountinfo"
    argv = box.argv("sh", "-c", wait) if sandboxed else ["sh", "-c", wait]
    script = (f"mount --make-rshared /; {shlex.join(map(str, argv))} & while [ ! -e ready ]; do sleep 0.05; done;"
              " mount -t tmpfs t mnt && touch mnt/seen && touch go; wait; umount mnt")
    r = box.host("unshare", "-m", "--propagation", "private", "sh", "-c", script)
    assert r.out.split() == (["0"] if sandboxed else ["seen", "1"]), str(r)
