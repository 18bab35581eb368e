# SPDX-License-Identifier: Apache-2.0
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "lib"))
from ambit_test import *  # noqa: E402,F401,F403
import ambit_test  # noqa: E402
from world import World  # noqa: E402


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
