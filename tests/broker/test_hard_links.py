# SPDX-License-Identifier: Apache-2.0
"""A protected file that has a second name, protected too: neither name opens the other one.

Each way works outside (the control). Judged by the second name, which is never touched itself."""
import pytest

EVIL = "./steal"

# An open file whose name is gone: what /proc says of it is the name of no file, or of another one.
GONE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("a/.envrc", os.O_RDONLY)
os.unlink("a/.envrc")
proc = f"/proc/self/fd/{fd}"
"""
WAYS = {
    "link": GONE + """
assert libc.linkat(-100, proc.encode(), -100, b"innocent", 0x400) == 0  # AT_SYMLINK_FOLLOW
with open("innocent", "a") as f: f.write("EVIL\\n")
""",
    "open": GONE + """
os.close(os.open("a/.envrc (deleted)", os.O_CREAT | os.O_WRONLY))
w = os.open(proc, os.O_WRONLY | os.O_APPEND)
os.write(w, b"EVIL\\n")
""",
}


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("control", [False, True], ids=["inside", "control"])
def test_name_that_is_gone(box, way, control):
    box.mkdir("ws/a")
    box.mkdir("ws/b")
    box.write("ws/a/.envrc", "ok\n")
    (box.ws / "b/.envrc").hardlink_to(box.ws / "a/.envrc")
    argv = ["/usr/bin/python3", "-c", WAYS[way].replace("EVIL", EVIL)]
    r = box.execute(argv) if control else box.run(*argv)
    assert (EVIL in (box.ws / "b/.envrc").read_text()) == control, str(r)
