# SPDX-License-Identifier: Apache-2.0
"""Older kernels, and places where something is taken: held as well, or refused and said.

old-kernel is ambit as it would be on a kernel with fewer rights in Landlock (old_kernel.c).
"""
import json

import ambit_test
import pytest
import test_attacker
import test_semantics

NAMES_MISSING = "only names that exist at the top of writable directories"


@pytest.fixture
def old(boxes, monkeypatch):
    """old(abi, who) -> a box whose ambit sees a Landlock of that ABI."""
    program = ambit_test.AMBIT.parents[2] / "tests/broker/old-kernel"
    assert program.exists(), f"{program} is not there: tools/build --tests"
    monkeypatch.setattr(ambit_test, "AMBIT", program)

    def make(abi, who="user"):
        if abi and abi > ambit_test.landlock_abi():
            ambit_test.skip_impossible(f"this kernel has no Landlock ABI {abi}")
        box = boxes(who)
        box.env["AMBIT_TEST_ABI"] = str(abi)
        return box

    return make


def names_of(box):
    r = box.ambit("check", "--json")
    return next(p for p in json.loads(r.out)["properties"] if p["name"] == "names")


def report(box, script, options=()):
    r = box.sh(script, options=["--report", str(box.home / "report.json"), *options])
    return r, json.loads((box.home / "report.json").read_text())


@pytest.mark.parametrize("abi", [1, 2])
@pytest.mark.parametrize("who", ["root", "user"])
def test_races(old, programs, abi, who):
    """Before ABI 3 the kernel lets files be emptied that may not be written to."""
    for ideas in (["cut"], []):
        assert test_attacker.attack(old(abi, who), programs, 1, seconds=3, ideas=ideas) == []


@pytest.mark.parametrize("abi", [1, 2])
def test_calls_as_without(old, programs, abi):
    """All but openat2(2), and emptying a file outside that was opened for reading only."""
    box = old(abi)
    program = programs("semantics", "semantics.c", "cases_open.c", "cases_names.c",
                       "cases_state.c", "cases_change.c")
    native, inside = (test_semantics.parse(test_semantics.run(box, program, where, where == "inside").out)
                      for where in ("native", "inside"))
    assert len(native) == len(inside)
    wrong = test_semantics.differences(native, inside, box.who.name, abi)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("abi", [1, 2, 3, 5])
def test_work_and_refusals(old, abi):
    box = old(abi)
    box.host("git", "init", "-q", ".").ok()
    r, told = report(box, "git clone -q . c; cd c && echo x > f && git add f && "
                          "git -c user.name=x -c user.email=x@x commit -qm m && git log --format=%s; "
                          "cd ..; mkdir a b; touch a/f; mv a/f b/f; ln b/f a/g; truncate -s 3 b/f; "
                          "truncate -s 5 /tmp/x; stat -c %s b/f /tmp/x; "
                          "echo x > .envrc; echo x > c/.git/hooks/pre-commit; git config core.pager x")
    assert r.out.split() == ["m", "3", "5"], str(r)
    assert sorted(v["target"] for v in told["violations"]) == \
        sorted(str(box.ws / p) for p in (".envrc", "c/.git/hooks/pre-commit", ".git/config"))
    assert told["notes"] == []
    assert not (box.ws / ".envrc").exists()
    names = names_of(box)
    assert names["enforced"] and ("openat2" in (names["missing"] or "")) == (abi < 3)


def test_without_landlock(old):
    box = old(0)
    box.write("ws/.bashrc", "old\n")
    r = box.sh("true")
    assert r.code == 125 and "Landlock" in r.err and "--fallback warn" in r.err, str(r)
    names = names_of(box)
    assert not names["enforced"] and NAMES_MISSING in names["missing"]
    r, told = report(box, "echo x > .bashrc; echo x > .envrc", options=["--fallback", "warn"])
    assert "not enforced: protected names that do not exist yet" in r.err
    assert len(told["notes"]) == 1 and "not enforced" in told["notes"][0]
    assert (box.ws / ".bashrc").read_text() == "old\n"
    assert (box.ws / ".envrc").exists()  # as it says


def test_before_5_12(old):
    """Nothing makes a tree read-only there: refused whatever is accepted, and the reason is the kernel."""
    box = old(0)
    box.env["AMBIT_TEST_NO_SEAL"] = "1"
    r = box.sh("touch made")
    assert r.code == 125 and "too old" in r.err and "5.12" in r.err and "--fallback" not in r.err, str(r)
    r = box.sh("touch made", options=["--fallback", "warn"])
    assert r.code == 125 and "5.12" in r.err, str(r)
    assert not (box.ws / "made").exists()
    rows = {p["name"]: p for p in json.loads(box.ambit("check", "--json").out)["properties"]}
    for name in ("files", "attributes", "hidden"):
        assert not rows[name]["enforced"] and "5.12" in rows[name]["missing"], rows[name]
    # no parameter of the kernel's would help: Landlock is not in it
    assert not rows["landlock"]["remedy"] and not rows["names"]["remedy"], rows


def test_signals_interrupt(old):
    box = old("")
    box.env["AMBIT_TEST_SIGNALS"] = "1"
    r, told = report(box, "git init -q r && cd r && git -c user.name=x -c user.email=x@x commit -q "
                          "--allow-empty -m m && git log --format=%s; echo x > .envrc")
    assert r.out == "m\n" and "before Linux 5.19" in r.err, str(r)
    assert ["before Linux 5.19" in n for n in told["notes"]] == [True]
    assert "signals" in names_of(box)["missing"]


def test_listener_is_taken(box, programs):
    """A runtime around us that uses notifications itself: refused, and said why."""
    listener = programs("listener", "listener.c")
    r = box.host(listener, *box.argv("/bin/true"))
    assert r.code == 125 and "another sandbox around this one" in r.err, str(r)
    r = box.host(listener, ambit_test.AMBIT, "check", "--json")
    names = next(p for p in json.loads(r.out)["properties"] if p["name"] == "names")
    assert not names["enforced"] and "watches the system calls already" in names["missing"]


def test_inside_itself(box):
    """The inner one says that names are the outer one's to hold, and they are."""
    r = box.sh(f"{ambit_test.AMBIT} run -- sh -c 'echo x > in; echo x > .envrc; echo x > .git/hooks/x'",
               options=["-q"])
    assert "protected names" in r.err and "are held by its policy" in r.err, str(r)
    assert (box.ws / "in").exists() and not (box.ws / ".envrc").exists()
