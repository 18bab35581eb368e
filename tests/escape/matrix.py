# SPDX-License-Identifier: Apache-2.0
"""matrix.tsv: which attempt, by whom, with which result on which backend."""
from dataclasses import dataclass
from functools import cache
from pathlib import Path

COLUMNS = ["native", "bwrap", "landlock", "podman"]  # a column for each backend
FIELDS = ["id", "probe", "who", *COLUMNS, "control", "broken_by", "note"]
EXPECT = {"denied", "reported", "works", "elsewhere", "later", "n-a"}  # of native
CELLS = {"=", "open", "open-root", "open-user", "refused", "differs", "apart", "-"}  # of the others
# Everything but who mounts is native's code there: of a long list of names a few are enough.
SAMPLED, SAMPLE = {"bwrap"}, 6
CONTROL = {"self", "root", "ns", "own", "-"}


@dataclass(frozen=True)
class Row:
    id: str
    probe: str      # an attempt of probes/*.c, or file.py::test
    who: str        # both, root, user
    cells: dict     # backend -> a word. native: denied | reported | works: tested here;
                    # elsewhere, later, n-a: not, see note. The others: = the same; open: it works
                    # there, as the manual says; refused, differs, apart: README; -: no word
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

    def expects(self, backend, person):
        """denied, open, ...; None: not tried on this backend."""
        cell = self.cells[backend]
        if backend == "native" or cell == "=":
            return self.native if self.tested else None
        if cell in ("open", f"open-{person}"):
            return "open"
        return self.native if cell.startswith("open-") else None

    @property
    def in_c(self):
        return "::" not in self.probe


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
