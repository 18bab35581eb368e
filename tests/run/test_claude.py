# SPDX-License-Identifier: Apache-2.0
"""Claude Code's own settings, asked for by the profile `claude`."""
import json

USER = ".claude/settings.json"
PROFILE = ["-p", "claude"]


def settings(**keys):
    return json.dumps(keys, indent=1)


def can_write(box, path):
    return box.run("touch", path, options=PROFILE).code == 0


def test_rules_come_with_their_place(box):
    box.mkdir("out")
    box.write(USER, '{\n "model": "x",\n "sandbox": {"filesystem": {"allowWrite": [\n  "~/out"]}},\n'
                    ' "permissions": {"deny": [\n  "Read(./.token)",\n  "WebFetch(domain:bad.example)"]}}')
    text = box.ambit("policy", *PROFILE).ok().out
    file = f"{box.home}/{USER}"
    for line, words in ((4, "~/out"), (6, "./.token"), (7, "bad.example")):
        assert any(words in row and f"{file}:{line}" in row for row in text.splitlines()), text
    p = json.loads(box.ambit("policy", "--json", *PROFILE).ok().out)
    assert p["claudeSettings"] is True and str(box.home / "out") in p["filesystem"]["allowWrite"]
    # nobody asked: nothing of it
    assert file not in box.ambit("policy").ok().out


def test_rules_hold(box):
    box.mkdir("out")
    box.write("ws/.token", "s3cret")
    box.write("ws/src/.token", "s3cret")
    assert not can_write(box, box.home / "out/a")
    box.write(USER, settings(sandbox={"filesystem": {"allowWrite": ["~/out"], "denyWrite": ["~/ws/fixed"]}},
                             permissions={"deny": ["Read(.token)", "Edit(src/**)"]}))
    assert can_write(box, box.home / "out/a")
    assert not can_write(box, "fixed")
    assert not can_write(box, "src/x") and can_write(box, "y")
    for name in (".token", "src/.token"):
        r = box.run("cat", name, options=PROFILE)
        assert r.code != 0 and "s3cret" not in r.out, str(r)
    assert box.run("cat", ".token").out == "s3cret"


def test_project_only_narrows(box):
    box.mkdir("out")
    box.write("ws/hidden", "x")
    box.write("ws/.claude/settings.json", settings(
        sandbox={"filesystem": {"allowWrite": ["~/out"], "denyRead": ["hidden"]},
                 "excludedCommands": ["touch"], "allowUnsandboxedCommands": True}))
    box.write("ws/.claude/settings.local.json", settings(permissions={"allow": ["Edit(~/out/**)"]}))
    r = box.run("touch", box.home / "out/a", options=PROFILE)
    assert r.code != 0 and not (box.home / "out/a").exists(), str(r)
    assert "settings.json: ignored: 3 entries" in r.err and "settings.local.json: ignored: 1 entry" in r.err, str(r)
    assert box.run("cat", "hidden", options=PROFILE).code != 0
    assert box.run("cat", "hidden").code == 0


def test_config_dir_and_errors(box):
    box.mkdir("out")
    box.write("cfg/settings.json", settings(sandbox={"filesystem": {"allowWrite": ["~/out"]}}))
    env = {"CLAUDE_CONFIG_DIR": str(box.home / "cfg")}
    assert box.run("touch", box.home / "out/a", options=PROFILE, env=env).code == 0
    box.write("cfg/settings.json", '{"sandbox":\n {"network": {"allowedDomains": 3}}}')
    r = box.run("true", options=PROFILE, env=env)
    assert r.code == 125 and "cfg/settings.json:2:33: network.allowedDomains: must be a list" in r.err, str(r)
    assert box.run("true", env=env).code == 0


def test_denied_commands(box):
    box.write(USER, settings(permissions={"deny": ["Bash(touch:*)"]}))
    for args in (["-c", "touch x"], ["-c", "true && touch x"], ["--", "touch", "x"]):
        r = box.ambit("run", *PROFILE, *args)
        assert r.code == 125 and f'deniedCommands "touch:*" ({box.home}/{USER}:4)' in r.err, str(r)
    assert not (box.ws / "x").exists()
    a = json.loads(box.ambit("explain", "--json", *PROFILE, "command", "ls | touch x").out)
    assert a["verdict"] == "refused" and a["rule"] == "deniedCommands", a
    assert box.ambit("run", *PROFILE, "-c", "echo touch").code == 0


def test_variables(box):
    box.write(USER, settings(sandbox={"credentials": {"envVars": [{"name": "CLAUDE_X", "mode": "deny"}]}}))
    env = {"CLAUDE_X": "1", "CLAUDE_Y": "2"}
    assert box.sh('echo "$CLAUDE_X$CLAUDE_Y"', options=PROFILE, env=env).out == "2\n"
    assert box.sh('echo "$CLAUDE_X$CLAUDE_Y"', env=env).out == "12\n"


def test_domains_decide(box):
    """explain sees the domains; a host of the project's list stays shut."""
    box.write(USER, settings(permissions={"allow": ["WebFetch(domain:docs.example)"], "deny": []}))
    box.write("ws/.claude/settings.json", settings(sandbox={"network": {"allowedDomains": ["evil.example"]}}))
    assert box.ambit("explain", *PROFILE, "connect", "docs.example").code == 0
    assert box.ambit("explain", *PROFILE, "connect", "evil.example").code == 1
