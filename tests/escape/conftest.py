# SPDX-License-Identifier: Apache-2.0
import json
import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "lib"))
from ambit_test import *  # noqa: E402,F401,F403
import ambit_test  # noqa: E402
import matrix  # noqa: E402
from containers import IMAGE, engines  # noqa: E402,F401
from world import World  # noqa: E402

RUNS = []  # every `ambit run` that a test has started: (words, environment, process)
proven = set()  # (test, place): a run on this backend was seen


class Ledger(ambit_test.Who):
    """Writes down who runs what, so that no cell of the matrix is proven by another backend."""

    def popen(self, argv, **kw):
        p = super().popen(argv, **kw)
        words = [os.fspath(a) for a in argv]
        if any(str(ambit_test.AMBIT) in w or w.endswith("/ambit") for w in words):
            RUNS.append((words, kw.get("env") or {}, p))
        return p


ambit_test.Who = Ledger


def backend_of(words, env):
    if "--backend" in words:
        return words[words.index("--backend") + 1]
    return env.get("AMBIT_BACKEND", "native")


def name_of(item):
    return f"{item.path.name}::{item.originalname}"


def place_of(item):
    """None, too, where no row is about the present user: pytest then skips the test by itself."""
    place = getattr(item, "callspec", None) and item.callspec.params.get("place")
    return place if hasattr(place, "backend") else None


def pytest_generate_tests(metafunc):
    """Every test with a place runs for the people and on the backends that its rows name."""
    if "place" not in metafunc.fixturenames:
        return
    name = f"{metafunc.module.__name__}.py::{metafunc.function.__name__}"
    places = matrix.places(name, ambit_test.whos())
    metafunc.parametrize("place", places, ids=str)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Of tests with many parameters, backends that are like native get a part, evenly spread."""
    groups = defaultdict(list)
    found = config.stash.setdefault(matrix.COLLECTED, set())
    for item in items:
        place = place_of(item)
        if hasattr(item, "originalname"):
            found.add((name_of(item), place.person if place else None, place.backend if place else None))
        if place and place.backend in matrix.SAMPLE:
            groups[name_of(item), place].append(item)
    left = set()
    for (_, place), group in groups.items():
        step = -(-len(group) // matrix.SAMPLE[place.backend])
        left |= {item for i, item in enumerate(group) if i % step}
    if left:
        config.hook.pytest_deselected(items=[i for i in items if i in left])
        items[:] = [i for i in items if i not in left]


def judge(place, item, failure, runs):
    """What is wrong with how the test ended, by the word of the matrix. None: nothing."""
    if place.word == "open":
        if failure is None:
            return "held after all, the matrix should say so"
        return None if all(p.returncode != 125 for _, _, p in runs) else "refused, not open"
    if place.word == "refused":
        codes = [p.poll() for _, _, p in runs]
        refused = failure is not None and codes and codes[-1] == 125
        return None if refused or (codes and set(codes) == {125}) else f"not refused: {codes}"
    if failure is None and place.strict and runs and all(p.poll() == 125 for _, _, p in runs):
        return "every run was refused: nothing was tried"
    return failure


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    place = place_of(pyfuncitem)
    before = len(RUNS)
    outcome = yield
    if not place:
        return
    failure = outcome.excinfo[1] if outcome.excinfo else None
    if failure is not None and not isinstance(failure, AssertionError if place.word != "refused" else Exception):
        return
    runs = [r for r in RUNS[before:] if backend_of(r[0], r[1]) == place.backend]
    if runs:
        proven.add((name_of(pyfuncitem), place))
    wrong = judge(place, pyfuncitem, failure, runs)
    if wrong is None and (name_of(pyfuncitem), place) not in proven:
        wrong = f"nothing was run on {place.backend}: this proves no cell"
    if wrong is None:
        outcome.force_result(True)
    elif wrong is not failure:
        raise AssertionError(wrong) from failure


@pytest.fixture(scope="session")
def boxes_on(boxes, base_dir, engines):  # noqa: F811
    """boxes_on(who, backend) -> a new Box, in which every ambit uses this backend."""
    def make(name, backend="native"):
        b = boxes(name)
        if backend != "native":
            b.env["AMBIT_BACKEND"] = backend
        if backend == "landlock" and ambit_test.landlock_abi() < ambit_test.SCOPES_ABI:
            # it could be accepted (--fallback warn): then attempts to kill everybody would
            ambit_test.skip_impossible("the landlock backend is refused here: signals are not held")
        if backend == "podman":
            engine = engines.of(b)
            config = base_dir / f"config-{name}"
            (config / "ambit").mkdir(parents=True, exist_ok=True)
            os.chown(config, b.who.uid, b.who.gid)  # podman keeps things there
            (config / "ambit/settings.json").write_text(json.dumps({
                "container": {"image": IMAGE, "args": engine.words},
                # a container shows of the host what is named only
                "filesystem": {"allowRead": [str(base_dir / "probe"), "~/probe", str(ambit_test.AMBIT)]}}))
            b.env["XDG_CONFIG_HOME"] = str(config)
            b.write(".config/cni/net.d/cni.lock")  # rootless podman makes it
            b.options = ["-q"]  # what is not enforced is known
        return b

    return make


@pytest.fixture
def box(place, boxes_on):
    """A fresh home and project of one person; every ambit in it uses one backend."""
    return boxes_on(place.person, place.backend)


@pytest.fixture(scope="session")
def probe(base_dir):
    """The attempts written in C, as one static program that everybody may run."""
    return ambit_test.compile_c(HERE / "probes/main.c", base_dir / "probe", "-static", "-pthread",
                                *(p for p in sorted((HERE / "probes").glob("*.c"))
                                  if p.name != "main.c"))


@pytest.fixture(scope="session")
def worlds(boxes_on, probe):
    """worlds(who, kind, backend) -> a World, made once; kind is free text ("control", "sandbox")."""
    made = {}

    def get(name, kind, backend="native"):
        if (name, kind, backend) not in made:
            made[name, kind, backend] = World(boxes_on(name, backend), probe)
        return made[name, kind, backend]

    yield get
    for w in made.values():
        w.close()
