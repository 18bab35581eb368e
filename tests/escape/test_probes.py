# SPDX-License-Identifier: Apache-2.0
"""The attempts written in C: all in one run per person, one test for each."""
import os

import pytest

import ambit_test
import matrix
from ambit_test import AMBIT

ROWS = [r for r in matrix.rows() if r.in_c and r.tested]
CASES = [pytest.param(w, r, b, id=f"{r.id}-{r.probe}-{w}" + ("" if b == "native" else f"-{b}"))
         for b in matrix.BACKENDS for r in ROWS for w in r.people(ambit_test.whos())
         if r.word(b, w) in ("=", "open")]
# What a kernel may lack; there the attempt has no control run. Nothing else is excused.
OPTIONAL = ("sys-", "family-", "knob-", "dev-", "x32-", "ia32-", "net-mptcp")
LACKS = ("ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ENOENT")


@pytest.fixture(scope="session")
def control(worlds):
    """control(who, kind) -> World attacked by all attempts of that kind of control run."""
    done = {}

    def get(name, kind):
        if kind == "root":
            if "root" not in ambit_test.whos():
                return None
            name = "root"
        if (name, kind) not in done:
            w = done[name, kind] = worlds(name, "control-" + kind)
            prefix = []
            if kind == "ns":
                prefix = ["unshare", "--mount", "--pid", "--fork", "--mount-proc",
                          "--propagation", "private"]
                if name != "root":
                    prefix += ["--user", "--map-root-user"]
            r = w.attack([r.probe for r in ROWS if r.control == kind], prefix)
            assert r.code == 0, str(r)
        return done[name, kind]

    return get


@pytest.fixture(scope="session")
def inside(worlds):
    """inside(who, backend) -> World attacked by all attempts from inside the sandbox."""
    done = {}

    def get(name, backend="native"):
        if (name, backend) not in done:
            w = done[name, backend] = worlds(name, "probes", backend)
            names = [r.probe for r in ROWS if name in r.people([name])]
            r = w.attack(dict.fromkeys(names), [AMBIT, "run", "--backend", backend, "--"])
            assert r.code == 0, str(r)
        return done[name, backend]

    return get


@pytest.mark.parametrize("name, row, backend", CASES)
def test_probe(name, row, backend, inside, control):
    world = inside(name, backend)
    verdict, detail = world.lines[row.probe]
    if row.word(backend, name) == "open":  # what this backend does not hold, and says so
        assert verdict == "open", f"held after all, the matrix should say so: {verdict} {detail}"
        return
    assert verdict in ("denied", "absent"), f"inside: {verdict} {detail}"
    assert not world.touched(row.probe), f"{row.probe} reached its canary"

    bare = control(name, row.control)
    if bare is None:
        pytest.skip("the control run of this attempt needs root")
    verdict, detail = bare.lines[row.probe]
    if row.probe.startswith(OPTIONAL) and detail.split(" ")[0] in LACKS:
        pytest.skip(f"this kernel has no {row.probe}: {detail}")
    if row.probe == "unix-run" and detail.startswith("ENOENT") and os.geteuid() != 0:
        pytest.skip("no /run/user directory here")
    assert verdict == "open", f"the control run failed: {verdict} {detail}"
    assert bare.touched(row.probe) is not False, "the canary did not see the control run"


@pytest.mark.parametrize("backend", matrix.BACKENDS)
@pytest.mark.parametrize("name", ambit_test.whos())
def test_no_secret_in_output(name, backend, inside):
    """Whatever the single attempts said: no secret of any kind came out."""
    world = inside(name, backend)
    assert world.token not in world.output
