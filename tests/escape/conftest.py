# SPDX-License-Identifier: Apache-2.0
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "lib"))
from ambit_test import *  # noqa: E402,F401,F403
import ambit_test  # noqa: E402
import matrix  # noqa: E402
from world import World  # noqa: E402


def pytest_generate_tests(metafunc):
    """Every test with a box runs for every person, on every backend that its row names."""
    if "box" not in metafunc.fixturenames:
        return
    name = f"{metafunc.module.__name__}.py::{metafunc.function.__name__}"
    rows = [r for r in matrix.rows() if r.probe == name]
    on = [b for b in matrix.BACKENDS
          if b == "native" or (b != "podman" and rows and all(r.cells[b] == "=" for r in rows))]
    metafunc.parametrize("box", [w if b == "native" else f"{w}-{b}"
                                 for b in on for w in ambit_test.whos()], indirect=True)


def pytest_collection_modifyitems(config, items):
    """Of tests with many parameters, backends that are like native get a part, evenly spread."""
    groups = {}
    for item in items:
        param = getattr(item, "callspec", None) and item.callspec.params.get("box", "")
        if param and param.partition("-")[2] in matrix.SAMPLED:
            groups.setdefault((item.originalname, item.path, param), []).append(item)
    left = set()
    for group in groups.values():
        step = -(-len(group) // matrix.SAMPLE)
        left |= {item for i, item in enumerate(group) if i % step}
    if left:
        config.hook.pytest_deselected(items=[i for i in items if i in left])
        items[:] = [i for i in items if i not in left]


@pytest.fixture
def box(request, boxes):
    """A fresh home and project of one person; every ambit in it uses one backend."""
    person, _, backend = request.param.partition("-")
    b = boxes(person)
    if backend:
        b.env["AMBIT_BACKEND"] = backend
    return b


@pytest.fixture(scope="session")
def probe(base_dir):
    """The attempts written in C, as one static program that everybody may run."""
    return ambit_test.compile_c(HERE / "probes/main.c", base_dir / "probe", "-static", "-pthread",
                                *(p for p in sorted((HERE / "probes").glob("*.c"))
                                  if p.name != "main.c"))


@pytest.fixture(scope="session")
def worlds(boxes, probe):
    """worlds(who, kind) -> a World, made once; kind is free text ("control", "sandbox")."""
    made = {}

    def get(name, kind):
        if (name, kind) not in made:
            made[name, kind] = World(boxes(name), probe)
        return made[name, kind]

    yield get
    for w in made.values():
        w.close()
