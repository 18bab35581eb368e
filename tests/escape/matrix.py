# SPDX-License-Identifier: Apache-2.0
"""matrix.tsv: which attempt, by whom, with which result on which backend."""
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

COLUMNS = ["native", "bwrap", "landlock", "podman"]  # a column for each backend
FIELDS = ["id", "probe", "who", *COLUMNS, "control", "broken_by", "note"]
EXPECT = {"denied", "reported", "works", "elsewhere", "later", "n-a"}  # of native
CELLS = {"=", "open", "refused", "none", "-"}  # of the others, or FILE::TEST below tests/, where it is tried
# Everything but who mounts is native's code there: of a long list of names a few are enough. A
# container takes half a second to start.
SAMPLE = {"bwrap": 6, "podman": 1}
COLLECTED = pytest.StashKey()  # (test, person, backend) of everything that pytest has found
CONTROL = {"self", "root", "ns", "own", "-"}


@dataclass(frozen=True)
class Row:
    id: str
    probe: str      # an attempt of probes/*.c, or file.py::test
    who: str        # both, root, user
    cells: dict     # backend -> a word. native: denied | reported | works: tested here;
                    # elsewhere, later, n-a: not, see note. The others: README; ROOT|USER where
                    # it depends on who tries
    control: str    # who must succeed without the sandbox: self, root, ns (self, in namespaces
                    # of its own), own (the test does it)
    broken_by: str  # how the test was seen to fail
    note: str

    def people(self, here):
        return [w for w in here if self.who in ("both", w)]

    @property
    def native(self):
        return self.cells["native"]

    @property
    def tested(self):
        return self.native in ("denied", "reported", "works")

    def word(self, backend, person):
        """=, open, refused, or why it is not tried there."""
        root, _, user = self.cells[backend].partition("|")
        word = user if user and person == "user" else root
        return "=" if backend == "native" and self.tested else word

    @property
    def in_c(self):
        return "::" not in self.probe


@dataclass(frozen=True)
class Place:
    """Where a test is run, and what must come of it."""
    person: str
    backend: str
    word: str       # "=", "open" (the test fails there), "refused"
    strict: bool    # that everything is refused is no answer

    def __str__(self):
        return self.person if self.backend == "native" else f"{self.person}-{self.backend}"


@cache
def rows():
    text = (Path(__file__).parent / "matrix.tsv").read_text()
    lines = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    assert lines[0] == FIELDS, f"header {lines[0]}"
    for line in lines[1:]:
        assert len(line) == len(FIELDS), f"{len(line)} fields instead of {len(FIELDS)}: {line}"
    after = 3 + len(COLUMNS)
    return [Row(*line[:3], dict(zip(COLUMNS, line[3:after])), *line[after:]) for line in lines[1:]]


# Those that the matrix says something about.
BACKENDS = [b for b in COLUMNS if any(r.cells[b] != "-" for r in rows())]


def places(test, here):
    """Where a test of this name (file.py::test) is run: by its rows, which agree."""
    mine = [r for r in rows() if r.probe == test]
    found = []
    for backend in BACKENDS:
        for person in here:
            words = {r.word(backend, person) for r in mine if person in r.people([person])}
            assert len(words) < 2, f"{test}: its rows do not agree about {backend}: {words}"
            if words & {"=", "open", "refused"}:
                found.append(Place(person, backend, words.pop(), all(r.native != "reported" for r in mine)))
    return found
