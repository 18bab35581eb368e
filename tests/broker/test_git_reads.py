# SPDX-License-Identifier: Apache-2.0
"""A git configuration is judged by what we read in it: that must be what git reads, for any text."""
import random
import subprocess

from ambit_test import TREE, compile_c

FILES = 400
BASE = ["gitconfig", "arena", "text", "fd", "error", "buf", "sys"]
# of these a value is made
PARTS = ["a", "..", "/", "-o", " ", "  ", '"', '""', "\\\n", "\\\r\n", "\\t", "\\\\", '\\"', "#", ";", "\r", "\t", "=", "[x]", "\\n"]
LINES = ["\n", "# c\n", "[core]", "[a \"b\\\"c\"]\n", "[Sec.sub]\r\n", "k\n", "K2 \n", " \t", "\r\n"]


def text(rng):
    lines = ["[core]\n"]
    for _ in range(rng.randint(1, 6)):
        if rng.random() < 0.3:
            lines.append(rng.choice(LINES))
        else:
            value = "".join(rng.choices(PARTS, k=rng.randint(0, 7)))
            lines.append(f"key{rng.choice(['', ' '])}={value}\n")
    return "".join(lines)


def blanks(text):
    """Git before 2.45 makes a space of each that is not quoted."""
    return text.replace(b"\r", b" ").replace(b"\t", b" ")


def test_as_git_reads_it(tmp_path):
    ours = compile_c(TREE / "tests/broker/git_reads.c", tmp_path / "reads", f"-I{TREE}/src",
                     *[TREE / f"src/base/{name}.c" for name in BASE])
    rng = random.Random(20)
    files = [tmp_path / f"{i}.cfg" for i in range(FILES)]
    for f in files:
        f.write_bytes(text(rng).encode())
    records = subprocess.run([ours, *files], capture_output=True, check=True).stdout.split(b"\x1e")
    same = 0
    for f, record in zip(files, records):
        r = subprocess.run(["git", "config", "-f", f, "-z", "--list"], capture_output=True)
        if r.returncode != 0 or record == b"\x15":
            continue  # git stops there, or we refuse it: nothing is used that was not judged
        assert blanks(record) == blanks(r.stdout), f.read_bytes()
        same += 1
    assert same > FILES / 4
