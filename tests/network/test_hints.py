# SPDX-License-Identifier: Apache-2.0
"""Hints about the network work as they are printed."""
import json
import shlex

import pytest


def denied(box, command, options):
    box.options = []
    r = box.run(*command, options=[*options, "--report", "report.json"])
    return r, json.loads((box.ws / "report.json").read_text())["violations"]


@pytest.mark.parametrize("host", ["other.test", "11.2.2.2", "[2a0b:99::2]"])
@pytest.mark.parametrize("before", [(), ("--network", "none"), ("--allow-domain", "allowed.test")],
                         ids=["default", "none", "list"])
def test_connect(net, box, host, before):
    command = ("curl", "-gsSf", "--noproxy", "*", "-m", "5", f"http://{host}/")
    r, violations = denied(box, command, before)
    assert r.code != 0 and violations, r
    options, hints = list(before), [v["hint"] for v in violations]
    if hints == [None]:  # a name, and no network: what was asked for is told with one
        assert "--network allowlist tells" in violations[0]["reason"]
        options = ["--network", "allowlist"]
        r, violations = denied(box, command, options)
        hints = [v["hint"] for v in violations]
    assert hints and None not in hints, violations
    for h in hints:
        options += shlex.split(h)
    r, violations = denied(box, command, options)
    assert r.code == 0 and "hello from" in r.out and violations == [], r
