# SPDX-License-Identifier: Apache-2.0
"""The log of what was done, attacked by what it is about: the whole home is writable, and still
nobody inside reads, changes, moves, replaces or locks what ambit remembers."""
import json

import pytest

ATTEMPTS = {
    "read": 'cat "$D/audit.jsonl"',
    "read-head": 'cat "$D/audit.jsonl.head"',
    "append": 'echo ${W}ged >> "$D/audit.jsonl"',
    "truncate": ': > "$D/audit.jsonl"',
    "remove": 'rm -f "$D/audit.jsonl" "$D/audit.jsonl.head"',
    "replace": 'echo ${W}ged > "$D/x" && mv "$D/x" "$D/audit.jsonl"',
    "move-directory": 'mv "$D" "$D.away"',
    "move-parent": 'mv "$(dirname "$D")" "$(dirname "$D").away"',
    "hardlink": 'ln "$D/audit.jsonl" "$HOME/ws/link" && echo ${W}ged >> "$HOME/ws/link"',
    "trust": 'echo ${W}ged > "$D/trust"',
    "lock": 'exec 9< "$D/audit.jsonl.head" && flock -n 9 && echo locked',
}


def state_dir(box, where):
    """The directory, and what makes ambit use it."""
    if where == "default":
        return box.home / ".local/state/ambit", {"XDG_STATE_HOME": None}, []
    if where == "xdg":
        return box.home / "ws/state/ambit", {"XDG_STATE_HOME": str(box.home / "ws/state")}, []
    return box.home / "ws/log", {}, ["--set", f"audit.path={box.home}/ws/log/audit.jsonl"]


def snapshot(d):
    return {p.name: p.read_bytes() for p in d.iterdir() if p.name != "lock"} if d.is_dir() else None


@pytest.mark.parametrize("where", ["default", "xdg", "path"])
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_out_of_reach(box, attempt, where):
    d, env, options = state_dir(box, where)
    options = [*options, "--allow-write", str(box.home)]
    script = f'D="{d}"; W=for; {ATTEMPTS[attempt]}'
    box.run("true", options=options, env=env).ok()
    before = snapshot(d)
    assert set(before) >= {"audit.jsonl", "audit.jsonl.head"}
    r = box.sh(script, options=[*options, "-q"], env=env)
    after = snapshot(d)
    assert after and after["audit.jsonl"].startswith(before["audit.jsonl"])
    assert b"forged" not in b"".join(after.values())
    assert "locked" not in r.out and '"seq"' not in r.out and "ambit-audit" not in r.out
    v = box.ambit("log", "--file", str(d / "audit.jsonl"), "--json", "verify")
    assert json.loads(v.out)["records"] >= 4 and v.code == 0, v
    # the control: outside, each of them gets somewhere
    c = box.host("/bin/sh", "-c", script, env=env)
    got = snapshot(d) != after or "locked" in c.out or '"seq"' in c.out or "ambit-audit" in c.out
    assert got, c
