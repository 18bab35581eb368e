# SPDX-License-Identifier: Apache-2.0
"""excludedCommands: what runs outside the sandbox, and what only looks as if it should."""
import json
import shutil

import pytest

from ambit_test import AMBIT

USER_FILE = ".config/ambit/settings.json"


@pytest.fixture
def out(box):
    """A box whose user lets `touch`, `sh ./deploy.sh` and `git push` out; out.mark is outside the
    writable directories, so that it exists only after a run without sandbox."""
    box.write(USER_FILE, json.dumps({
        "excludedCommands": ["touch", "git push:*", "printenv MARK", "false"],
        "allowUnsandboxedCommands": True}))
    box.mark = box.home / "mark"
    return box


def explain(box, line, *options):
    r = box.ambit("explain", "--json", *options, "command", line)
    answer = json.loads(r.out)
    assert r.code == (0 if answer["verdict"] == "allowed outside" else 1), str(r)
    text = box.ambit("explain", *options, "command", line)
    assert text.code == r.code and text.out.startswith(answer["verdict"] + ": command "), str(text)
    return answer


def test_three_answers(out):
    a = explain(out, "touch x")
    assert a["verdict"] == "allowed outside" and a["rule"] == "excludedCommands" and a["entry"] == "touch"
    assert a["source"] == f"{out.home}/{USER_FILE}:1" and a["autoAllowed"] is False
    a = explain(out, "touch x && curl y")
    assert a["verdict"] == "sandboxed" and "more than one command" in a["reason"]
    assert a["autoAllowed"] is True
    assert explain(out, "ls")["verdict"] == "sandboxed"
    a = explain(out, "touch x", "--set", "allowUnsandboxedCommands=false")
    assert a["verdict"] == "refused" and a["hint"] == "--set allowUnsandboxedCommands=true"
    assert explain(out, "ls", "--set", "enabled=false")["verdict"] == "allowed outside"


def test_runs_outside(out):
    r = out.ambit("run", "-c", f"touch {out.mark}")
    assert r.code == 0 and out.mark.exists(), str(r)
    assert f'outside the sandbox, with all your rights: excludedCommands "touch" ({out.home}/{USER_FILE}:1)' in r.err
    out.mark.unlink()
    r = out.run("touch", out.mark)
    assert r.code == 0 and out.mark.exists(), str(r)
    # -q does not silence it
    assert "outside" in out.ambit("run", "-q", "-c", f"touch '{out.mark}' # again").err


def test_status_and_environment(out):
    assert out.ambit("run", "-c", "false").code == 1
    r = out.ambit("run", "-c", "printenv MARK", env={"MARK": "m", "LD_AUDIT": ""})
    assert r.code == 0 and r.out == "m\n", str(r)


@pytest.mark.parametrize("line", [
    "touch {m} && true", "touch {m};", "true; touch {m}", "touch {m} | cat", "touch {m} &",
    "(touch {m})", "touch $(echo {m})", "touch {m} 2>&1", "x=1 touch {m}", "env touch {m}",
    "nohup touch {m}", "/usr/bin/touch {m}", "command touch {m}", "touch {m}*", "touch {m}\ntrue",
    "touch {m} # \\\ntrue", "time touch {m}", "! touch {m}", "eval touch {m}", "bash -c 'touch {m}'",
    "touch {{{m},{m}2}}", "touch <<E {m}\nE", "touch {m} <<<x", "PATH=/usr/bin touch {m}", "touch() {{ :; }}; command touch {m}",
    "alias touch=true; command touch {m}", "touch $'{m}'", "touch \"$HOME/mark\"", "touch `echo {m}`", "\ntouch {m}\n\ntrue",
    "exec touch {m}", "coproc touch {m}", "builtin command touch {m}", "if touch {m}; then :; fi", "{{ touch {m}; }}",
    "touch {m}\r\ntrue", "touch ~/mark", "touch {m}>&2", "touch {m} {m}[1-9]", "[[ a ]] && touch {m}",
])
def test_stays_inside(out, line):
    line = line.format(m=out.mark)
    assert explain(out, line)["verdict"] == "sandboxed"
    out.ambit("run", "-c", line)
    assert not any(out.home.glob("mark*"))
    # the control run: it would have worked
    out.host("bash", "-c", line + "\nwait")
    assert any(out.home.glob("mark*")), line


def test_refused(out):
    r = out.ambit("run", "--set", "allowUnsandboxedCommands=false", "-c", f"touch {out.mark}")
    assert r.code == 125 and not out.mark.exists() and "allowUnsandboxedCommands" in r.err, str(r)
    r = out.run("touch", out.mark, options=["--set", "allowUnsandboxedCommands=false"])
    assert r.code == 125 and not out.mark.exists(), str(r)


def test_planted_program(out):
    """A `touch` that a sandboxed command left in a directory of PATH is not what runs outside."""
    out.write("ws/bin/touch", f"#!/bin/sh\n: > {out.mark}\n", mode=0o755)
    path = {"PATH": f"{out.ws}/bin:/usr/bin:/bin"}
    r = out.ambit("run", "-c", "touch x", env=path)
    assert not out.mark.exists() and "could be changed from inside" in r.err, str(r)
    r = out.run("touch", "x", env=path)
    assert not out.mark.exists(), str(r)
    # by a relative entry of PATH
    r = out.ambit("run", "-c", "touch x", env={"PATH": "bin:/usr/bin:/bin"})
    assert r.code == 0 and not out.mark.exists() and (out.ws / "x").exists(), str(r)
    # by an exported function
    r = out.ambit("run", "-c", "touch y", env={"BASH_FUNC_touch%%": f"() {{ : > {out.mark}; }}"})
    assert r.code == 0 and not out.mark.exists() and (out.ws / "y").exists(), str(r)
    # the control run
    out.host("bash", "-c", "touch x", env=path)
    assert out.mark.exists()


def test_planted_helper(out):
    """What an excluded program finds by PATH, or is told to load, is not the project's either."""
    out.write("tools/tool", "#!/usr/bin/env helper\n", 0o755)
    out.write("ws/bin/helper", f"#!/bin/sh\n: > {out.mark}\n", 0o755)
    out.write("good/helper", "#!/bin/sh\necho good \"PATH=$PATH\" \"PY=$PYTHONPATH\"\n", 0o755)
    out.write(USER_FILE, json.dumps({"excludedCommands": ["tool"], "allowUnsandboxedCommands": True}))
    path = {"PATH": f"{out.ws}/bin:bin::{out.home}/tools:{out.home}/good:/usr/bin:/bin",
            "PYTHONPATH": f"{out.ws}/lib:/usr/lib/x:lib"}
    r = out.ambit("run", "-c", "tool", env=path)
    assert r.code == 0 and not out.mark.exists() and r.out.startswith("good"), str(r)
    assert f"PATH={out.home}/tools:{out.home}/good:/usr/bin:/bin PY=/usr/lib/x\n" in r.out, str(r)
    # a directory that holds one writable file will not do
    r = out.ambit("run", "--allow-write", out.home / "good/helper", "-c", "tool", env=path)
    assert r.code != 0 and "good" not in r.out, str(r)
    out.host("tool", env=path)  # the control run
    assert out.mark.exists()


@pytest.mark.parametrize("line", ["sh ./deploy.sh", "bash deploy.sh", "python3 deploy.py", "timeout 9 ./deploy.sh",
                                  "sh {ws}/deploy.sh", "sh link.sh"])
def test_script_of_the_project(out, line):
    """A script that could have been changed from inside is not run outside."""
    line = line.format(ws=out.ws)
    out.write(USER_FILE, json.dumps({"excludedCommands": [line], "allowUnsandboxedCommands": True}))
    out.write("ws/deploy.sh", f"#!/bin/sh\n: > {out.mark}\n", 0o755)
    out.write("ws/deploy.py", f"open({str(out.mark)!r}, 'w')\n")
    (out.ws / "link.sh").symlink_to("deploy.sh")
    a = explain(out, line)
    assert a["verdict"] == "sandboxed" and "could be changed from inside" in a["reason"], a
    out.ambit("run", "-c", line)
    assert not out.mark.exists()
    out.host("sh", "-c", line)  # the control run
    assert out.mark.exists()
    # elsewhere it is another thing
    out.mark.unlink()
    out.write("deploy.sh", f"#!/bin/sh\n: > {out.mark}\n", 0o755)
    out.write(USER_FILE, json.dumps({"excludedCommands": [f"sh {out.home}/deploy.sh"], "allowUnsandboxedCommands": True}))
    assert out.ambit("run", "-c", f"sh {out.home}/deploy.sh").code == 0 and out.mark.exists()


def test_project_cannot_let_out(box):
    mark = box.home / "mark"
    box.write("ws/.ambit.json", json.dumps({"excludedCommands": ["touch"], "allowUnsandboxedCommands": True}))
    r = box.ambit("run", "-c", f"touch {mark}")
    assert r.code != 0 and not mark.exists() and "would widen" in r.err, str(r)
    box.ambit("trust", box.ws).ok()
    r = box.ambit("run", "-c", f"touch {mark}")
    assert r.code == 0 and mark.exists(), str(r)


def test_not_from_inside(out):
    """Inside a sandbox nothing is let out, and nothing fails either."""
    inner = shutil.copy(AMBIT, out.ws / "inner")
    out.write(".config/ambit/settings.json", json.dumps({
        "excludedCommands": ["touch"], "allowUnsandboxedCommands": True}))
    r = out.run(inner, "run", "--", "touch", out.mark)
    assert not out.mark.exists(), str(r)


def test_bad_entries(box):
    for entry in ["sudo", "docker && id", "*", "env A=B"]:
        r = box.ambit("run", "--set", f"excludedCommands={entry}", "--", "true")
        assert r.code == 125 and "excludedCommands" in r.err, str(r)
