# SPDX-License-Identifier: Apache-2.0
"""ambit check --attack: the escape attempts that ship with the program. How they are judged is
tested in tests/unit/t_attack.c; here they are made, and nothing may be left of them."""
import json
import os
import signal
import time
from pathlib import Path

import pytest

from ambit_test import AMBIT, mount_table, settled_changes, wait_until

# These work for everybody without a sandbox, on every kernel that ambit runs on.
ALWAYS = {
    "read-secret", "read-proc-root", "read-symlink", "read-hardlink", "read-inherited",
    "write-outside", "write-reopened", "plant-hook", "plant-envrc", "plant-bashrc", "git-config",
    "git-config-lock", "git-move", "git-swap", "setuid-file", "process-see", "process-kill",
    "process-trace", "connect-loopback", "connect-unix", "connect-abstract", "daemon",
}
# These depend on who asks and on the machine.
PERHAPS = {"read-keyring", "gain-rights", "kernel-knob", "device", "namespace", "io-uring",
           "terminal"}
PLACES = ("/tmp", "/var/tmp")


def leftovers(box):
    """Everything an attack could have left on the host."""
    dirs = [p for d in (box.home, *map(Path, PLACES)) for p in d.glob(".ambit-attack.*")]
    running = []
    for p in Path("/proc").iterdir():
        try:
            if p.name.isdigit() and (p / "comm").read_text().startswith(("attempts", "canary-")):
                running.append(p.name)
        except OSError:
            pass
    return dirs + running


def attack(box, *args, **kw):
    before, mounts = set(box.home.iterdir()), mount_table()
    r = box.ambit("check", "--attack", *args, **kw)
    assert wait_until(lambda: not leftovers(box)), leftovers(box)
    assert set(box.home.iterdir()) == before
    assert not settled_changes(mount_table, mounts)
    assert r.err == "", r
    return r


def test_everything_holds(box):
    r = attack(box, "--json")
    d = json.loads(r.out)
    attempts = {x["name"]: x for x in d["attempts"]}
    assert set(attempts) == ALWAYS | PERHAPS
    bad = {n: x for n, x in attempts.items() if x["result"] not in ("held", "n-a")}
    assert not bad, bad
    assert r.code == 0
    held = [n for n, x in attempts.items() if x["result"] == "held"]
    assert d["held"] == d["of"] == len(held)
    assert r.seconds < 15


def test_control_run(box):
    """Each attempt was really made without the sandbox, and really worked there."""
    attempts = {x["name"]: x for x in json.loads(attack(box, "--json").out)["attempts"]}
    for name in ALWAYS | (PERHAPS if box.who.uid == 0 else set()):
        x = attempts[name]
        if name in PERHAPS and x["result"] == "n-a":
            continue
        assert x["result"] == "held", x
        assert x["control"]["said"] == "worked", x
        assert x["control"]["canaryTouched"] is not False, x
        assert x["inside"]["canaryTouched"] is not True, x
    assert sum(x["control"]["canaryTouched"] is True for x in attempts.values()) >= 18


def test_for_people(box):
    r = attack(box)
    *rows, last = r.out.splitlines()
    column = rows[0].index("result"), rows[0].index("what happened")
    assert rows[0].startswith("attempt ")
    assert {row.split()[0] for row in rows[1:]} == ALWAYS | PERHAPS
    for row in rows[1:]:
        assert row[column[0]:column[1]].strip() in ("held", "n-a"), row
        assert row[column[0] - 1] == row[column[1] - 1] == " " != row[column[1]], row
    held = sum(" held " in row for row in rows)
    assert last.startswith(f"{held} of {held} attempts held")
    assert ("; " in last) == (held < len(rows) - 1)
    assert "\t" not in r.out and r.code == 0


@pytest.mark.parametrize("home", [None, "/nonexistent", "/proc"])
def test_without_a_home(plain, home):
    """The world is made elsewhere, where the sandbox has another directory in its place."""
    r = attack(plain, env={"HOME": home})
    assert r.code == 0, r


def test_long_home(plain):
    """Longer than the address of a unix socket may be."""
    deep = plain.mkdir("/".join(["d" * 60] * 4))
    attempts = json.loads(attack(plain, "--json", env={"HOME": str(deep)}).out)["attempts"]
    assert [x["result"] for x in attempts if x["name"] == "connect-unix"] == ["held"]


def test_callers_settings_do_not_count(plain):
    """It is the default policy that is attacked, in a home of its own."""
    plain.write(".config/ambit/settings.json", '{"filesystem": {"allowWrite": ["/"]}}')
    plain.write("ws/.ambit.json", "not json at all")
    assert attack(plain, env={"AMBIT_NO_SANDBOX": "1", "AMBIT_SETTINGS": "/nowhere"}).code == 0


def test_inside_a_sandbox(plain):
    """No sandbox can be made there: an error, not a table of attempts that held."""
    program = plain.write("ws/ambit", AMBIT.read_bytes(), 0o755)
    r = plain.run(program, "check", "--attack")
    assert r.code == 125 and r.out == "", r
    assert not leftovers(plain)


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.03, 0.06])
def test_interrupted(plain, delay):
    """What ends it has to wait until everything is cleaned up."""
    with plain.start(AMBIT, "check", "--attack", sandbox=False) as run:
        time.sleep(delay)
        os.kill(run.process.pid, signal.SIGINT)
        assert run.wait().code in (0, 130)
    assert wait_until(lambda: not leftovers(plain)), leftovers(plain)


def test_probes_alone(plain):
    """The hidden word does nothing by itself."""
    for words in ([], ["/tmp"], [str(plain.ws), "token", "x", "1", "1"]):
        r = plain.ambit("--attack-probes", *words)
        assert (r.code, r.out) == (2, ""), r
