# SPDX-License-Identifier: Apache-2.0
"""The matrix is complete and true: every published attempt is in it, everything it names
exists, every test is in it, and what is not tested says why."""
import ast
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

import ambit_test
import matrix

HERE = Path(__file__).parent
ROWS = matrix.rows()
# Reads, writes, processes and kernel: the published escapes of agents' sandboxes and others.
PUBLISHED = ([f"R{i}" for i in range(1, 17)] + [f"W{i}" for i in range(1, 20)]
             + [f"K{i}" for i in range(1, 26)])
NETWORK = ["I1", "I2", "I3", "I6", "I7", "I8", "N1"]  # what must hold with no network at all


def list_tests():
    found = set()
    for path in HERE.glob("test_*.py"):
        if path.name == "test_matrix.py":
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found.add(f"{path.name}::{node.name}")
    return found - {"test_probes.py::test_probe"}


@pytest.mark.parametrize("published", PUBLISHED + NETWORK)
def test_published_attempt_is_covered(published):
    rows = [r for r in ROWS if r.id == published]
    assert rows, "not in matrix.tsv"
    assert any(r.tested for r in rows) or all(r.note for r in rows)


def test_rows_are_well_formed():
    for r in ROWS:
        assert r.native in matrix.EXPECT, r
        words = {w for b in matrix.COLUMNS if b != "native" for w in r.cells[b].split("|")}
        assert {w for w in words if "::" not in w} <= matrix.CELLS, r
        assert not (r.in_c and words - {"=", "open", "-"}), r
        assert r.control in matrix.CONTROL, r
        assert r.who in ("both", "root", "user"), r
        silent = [b for b in matrix.BACKENDS if r.cells[b] == "-"]
        assert not (r.tested and silent), f"no word on {silent}: {r}"
        assert r.note or r.tested, f"not tested, and no reason: {r}"
        assert r.broken_by or not r.tested, f"never seen to fail: {r}"
        assert not (r.tested and r.in_c and r.control in ("own", "-")), f"no control run: {r}"


def test_rows_name_what_exists(probe):
    listed = subprocess.run([probe, "list"], capture_output=True, text=True, check=True).stdout
    known = set(listed.split()) | list_tests() | {"-"}
    assert [r for r in ROWS if r.probe not in known] == []


def functions_of(path):
    return {n.name for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)}


def test_what_is_tried_elsewhere_exists():
    for r in ROWS:
        for word in (w for cell in r.cells.values() for w in cell.split("|") if "::" in w):
            path, _, name = word.partition("::")
            assert name in functions_of(HERE.parent / path), f"{r}: {word}"


def test_every_cell_is_tried(request):
    """No cell is silently left out: for everybody and every backend there is a test to be run, or the
    cell says where it is."""
    missing = []
    for r in (r for r in ROWS if r.tested and not r.in_c):
        places = {(p.person, p.backend) for p in matrix.places(r.probe, ambit_test.whos())}
        for backend in matrix.COLUMNS:
            for person in r.people(ambit_test.whos()):
                if r.word(backend, person) in ("=", "open", "refused") and (person, backend) not in places:
                    missing.append((r.probe, backend, person))
    assert missing == []
    # and those are what pytest has collected, unless only a part of the suite was asked for
    made = defaultdict(set)
    for name, person, backend in request.config.stash[matrix.COLLECTED]:
        made[name].add((person, backend))
    for r in (r for r in ROWS if r.tested and not r.in_c and r.probe in made):
        wanted = {(p.person, p.backend) for p in matrix.places(r.probe, ambit_test.whos())}
        # made by hand: all people, all backends (test_probes.py), or without any sandbox
        assert wanted <= made[r.probe] or made[r.probe] == {(None, None)} and by_itself(r), r


def by_itself(row):
    words = set(row.cells.values()) - {row.native}
    return row.probe == "test_probes.py::test_no_secret_in_output" or words == {"none"}


def test_everything_is_in_the_matrix(probe):
    named = {r.probe for r in ROWS}
    assert list_tests() - named == set()
    listed = subprocess.run([probe, "list"], capture_output=True, text=True, check=True).stdout
    # attempts that need a terminal, a special standard input or a wall around them
    by_hand = ("tty-", "stdin-", "kill-", "suid-effective")
    assert {p for p in listed.split() if not p.startswith(by_hand)} - named == set()
