# SPDX-License-Identifier: Apache-2.0
"""matrix.tsv is complete and true: every published attempt is in it, what it names exists, every
test named after an attempt is in it, and what has no test says why."""
import ast
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FIELDS = ["id", "test", "control", "broken_by", "note"]
PUBLISHED = [f"N{i}" for i in range(1, 19)] + [f"I{i}" for i in range(1, 10)]
ROWS = [dict(zip(FIELDS, line.split("\t"), strict=True))
        for line in (HERE / "matrix.tsv").read_text().splitlines() if not line.startswith("#")][1:]


def list_tests():
    return {f"{path.name}::{node.name}" for path in HERE.glob("test_*.py")
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("published", PUBLISHED)
def test_published_attempt_is_covered(published):
    rows = [r for r in ROWS if r["id"] == published]
    assert rows and all(r["test"] != "-" or r["note"] for r in rows), rows


def test_rows_name_what_exists():
    known = list_tests()
    functions = {t.split("::")[1] for t in known}
    assert [r for r in ROWS if r["test"] not in known | {"-"}] == []
    assert [r for r in ROWS if r["control"] not in functions | {"own", "-"}] == []


def test_every_attempt_has_a_control():
    """What is stopped was seen to work where it is not."""
    assert [r for r in ROWS if r["control"] == "-" and r["test"] != "-"] == []


def test_every_attempt_is_in_the_matrix():
    """Tests are named after what they try: test_n4_..., test_i1_i3_..."""
    named = {r["test"] for r in ROWS} | {f"{r['test'].split('::')[0]}::{r['control']}" for r in ROWS}
    attempts = {t for t in list_tests() if t.split("::test_")[1].split("_")[0].upper() in PUBLISHED}
    assert {t for t in attempts - named if not t.endswith(("_control", "_when_allowed"))} == set()
