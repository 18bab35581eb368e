# SPDX-License-Identifier: Apache-2.0
"""matrix.tsv: which attempt, by whom, with which result on which backend."""
from dataclasses import dataclass
from pathlib import Path

FIELDS = ["id", "probe", "who", "native", "landlock", "control", "broken_by", "note"]
BACKENDS = ["native", "landlock"]
LANDLOCK = {"=", "open", "open-root", "open-user", "refused", "differs", "-"}
EXPECT = {"denied", "reported", "works", "elsewhere", "later", "n-a"}
CONTROL = {"self", "root", "ns", "own", "-"}


@dataclass(frozen=True)
class Row:
    id: str
    probe: str      # an attempt of probes/*.c, or file.py::test
    who: str        # both, root, user
    native: str     # denied | reported | works: tested here; elsewhere, later, n-a: not, see note
    landlock: str   # = the same; open: it works there, as the manual says; refused, differs: README
    control: str    # who must succeed without the sandbox: self, root, ns (self, in namespaces
                    # of its own), own (the test does it)
    broken_by: str  # how the test was seen to fail
    note: str

    def people(self, here):
        return [w for w in here if self.who in ("both", w)]

    @property
    def tested(self):
        return self.native in ("denied", "reported", "works")

    def expects(self, backend, person):
        """denied, open, ...; None: not tried on this backend."""
        if backend == "native" or self.landlock == "=":
            return self.native if self.tested else None
        if self.landlock in ("open", f"open-{person}"):
            return "open"
        return self.native if self.landlock.startswith("open-") else None

    @property
    def in_c(self):
        return "::" not in self.probe


def rows():
    text = (Path(__file__).parent / "matrix.tsv").read_text()
    lines = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    assert lines[0] == FIELDS, f"header {lines[0]}"
    for line in lines[1:]:
        assert len(line) == len(FIELDS), f"{len(line)} fields instead of {len(FIELDS)}: {line}"
    return [Row(*line) for line in lines[1:]]
