# SPDX-License-Identifier: Apache-2.0
"""Calls with write intent that could change nothing are answered as outside, and not told as denied."""
import json

CODE = """
import errno, os
def of(f):
    try: r = f(); return "ok" if r is not None else "none"
    except OSError as e: return errno.errorcode[e.errno]
print(of(lambda: os.read(os.open("d/.envrc", os.O_RDONLY | os.O_CREAT), 9)),
      of(lambda: os.open("d/.envrc", os.O_WRONLY | os.O_CREAT | os.O_EXCL)),
      of(lambda: os.open("d/.vscode", os.O_WRONLY)),
      of(lambda: os.open("d/.vscode", os.O_RDONLY | os.O_CREAT)))
"""


def test_as_outside(box):
    box.write("ws/d/.envrc", "kept\n")
    box.write("ws/d/.vscode/x", "kept\n")
    argv = ["/usr/bin/python3", "-c", CODE]
    outside = box.execute(argv).ok().out
    r = box.run(*argv, options=["--report", "report.json"]).ok()
    assert outside == "ok EEXIST EISDIR EISDIR\n" and r.out == outside, str(r)
    assert r.err == "" and json.loads((box.ws / "report.json").read_text())["violations"] == []


def test_what_would_change_is_refused(box):
    box.write("ws/d/.envrc", "kept\n")
    code = """
import os
for flags in (os.O_RDONLY | os.O_CREAT | os.O_TRUNC, os.O_RDWR | os.O_CREAT, os.O_WRONLY, os.O_RDONLY | os.O_TRUNC):
    try: os.write(os.open("d/.envrc", flags), b"evil"); print("opened", flags)
    except OSError as e: print(e.strerror)
try: os.open("d/.bashrc", os.O_RDONLY | os.O_CREAT); print("made")
except OSError as e: print(e.strerror)
os.symlink("../new", "d/link")
"""
    r = box.run("/usr/bin/python3", "-c", code)
    assert r.out == "Permission denied\n" * 5, str(r)
    assert (box.ws / "d/.envrc").read_text() == "kept\n" and not (box.ws / "d/.bashrc").exists()
