# SPDX-License-Identifier: Apache-2.0
"""Driven by the clients that people use: inspector, SDK, Claude Code, the conformance suite.

They come from the npm registry, once, into build/npm. Everything runs in a network namespace with
nothing but a loopback device.
"""
import json
import os
import subprocess
import sys

import pytest
from ambit_test import AMBIT, TREE, skip_impossible
from npm_cache import node22, package

LIB = TREE / "tests/lib"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
SDK = "@modelcontextprotocol/sdk@1.32.2"
SDK2 = "@modelcontextprotocol/client@2.4.0"
CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
CLAUDE = "@anthropic-ai/claude-code-linux-x64@2.1.325"


# until somebody listens
UP = "for i in $(seq 200); do (: >/dev/tcp/127.0.0.1/%d) 2>/dev/null && break; sleep 0.1; done\n"


def offline(script, cwd, env=None, timeout=120):
    """A shell script with a network of its own."""
    if os.geteuid() != 0:
        argv = ["unshare", "-rn"]
    else:
        argv = ["unshare", "-n"]
    if subprocess.run([*argv, "true"], check=False).returncode:
        skip_impossible("no network namespace can be made here")
    p = subprocess.run([*argv, "bash", "-c", "ip link set lo up\n" + script], cwd=cwd, text=True,
                       env={**os.environ, **(env or {})}, capture_output=True, timeout=timeout,
                       stdin=subprocess.DEVNULL, check=False)
    return p


@pytest.fixture
def place(boxes):
    """A project of whoever runs the tests: the clients are started as we are."""
    return boxes("root" if os.geteuid() == 0 else "user")


def env_of(box):
    return {"HOME": str(box.home), "XDG_STATE_HOME": "", "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": "",
            "CLAUDE_PROJECT_DIR": "", "CLAUDE_CONFIG_DIR": ""}


@pytest.mark.parametrize("era", ["legacy", "auto", "modern"])
def test_inspector(place, era):
    where = package(INSPECTOR)
    run = f"{node22()} {where}/node_modules/.bin/mcp-inspector --cli {AMBIT} mcp serve " \
          f"--protocol-era {era} "
    p = offline(run + "--method tools/call --tool-name execute --tool-arg language=shell "
                "--tool-arg 'code=echo hi'", place.ws, env_of(place))
    assert p.returncode == 0, p.stderr
    r = json.loads(p.stdout)
    assert r["content"][0]["text"] == "hi\n" and r["structuredContent"]["sandboxed"] is True
    p = offline(run + "--strict --method tools/list", place.ws, env_of(place))
    assert p.returncode == 0, p.stderr
    assert len(json.loads(p.stdout)["tools"]) == 5


def test_sdk_client(place):
    where = package(SDK)
    p = offline(f"{node22()} {TREE}/tests/mcp/sdk_client.mjs {where} {AMBIT} mcp serve", place.ws,
                env_of(place))
    assert p.returncode == 0, p.stderr
    seen = json.loads(p.stdout)
    assert seen["server"]["name"] == "ambit" and len(seen["tools"]) == 5
    assert seen["hi"]["content"][0]["text"] == "hi\n"
    assert seen["failed"]["isError"] and seen["failed"]["structuredContent"]["exitCode"] == 3
    assert seen["blocked"]["content"][0]["text"].startswith("[SANDBOX BLOCKED] ")
    assert seen["batch"]["structuredContent"]["passed"] == 2
    assert seen["slow"]["content"][0]["text"] == "slow\n" and seen["progress"]
    assert seen["output"]["structuredContent"]["running"]
    assert not seen["kill"]["structuredContent"]["running"]
    assert seen["read"] == 108894 and seen["cancelled"]
    assert seen["after"]["content"][0]["text"] == "after\n"


@pytest.mark.parametrize("mode, version", [("legacy", "2025-11-25"), ("auto", "2026-07-28"),
                                           ("2026-07-28", "2026-07-28")])
def test_sdk_client_of_both_eras(place, mode, version):
    """The last one speaks the stateless version only."""
    where = package(SDK2)
    p = offline(f"{node22()} {TREE}/tests/mcp/sdk2_client.mjs {where} {mode} {AMBIT} mcp serve",
                place.ws, env_of(place))
    assert p.returncode == 0, p.stderr
    seen = json.loads(p.stdout)
    assert seen["version"] == version and seen["server"]["name"] == "ambit"
    assert "sandbox" in seen["instructions"] and len(seen["tools"]) == 5
    assert seen["hi"]["content"][0]["text"] == "hi\n"
    assert seen["blocked"]["content"][0]["text"].startswith("[SANDBOX BLOCKED] ")
    assert seen["batch"]["structuredContent"]["passed"] == 2
    assert seen["slow"]["content"][0]["text"] == "slow\n" and seen["progress"]
    assert seen["read"] == 108894 and seen["cancelled"]
    assert seen["after"]["content"][0]["text"] == "after\n"


# What the suite asks for and this server does not have, by the id of the check.
NOT_OURS = {
    # checks of HTTP headers
    "sep-2575-http-server-header-mismatch-400",
    # need tools made for the suite
    "sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
SCENARIOS = [
    ("2025-11-25", ["server-initialize", "ping", "logging-set-level", "tools-list", "resources-list",
                    "prompts-list"]),
    ("2026-07-28", ["server-stateless", "tools-list", "resources-list", "prompts-list", "caching",
                    "sep-2164-resource-not-found"]),
]


@pytest.mark.parametrize("version, scenarios", SCENARIOS)
def test_conformance(place, tmp_path, version, scenarios):
    where = package(CONFORMANCE)
    suite = f"{node22()} {where}/node_modules/.bin/conformance server " \
            f"--url http://localhost:8600/mcp --spec-version {version}"
    script = (f"{sys.executable} -B {LIB}/http_stdio.py 8600 {AMBIT} mcp serve & front=$!\n" + UP % 8600 +
              "".join(f"{suite} --scenario {s} -o {tmp_path}/{s} >{tmp_path}/{s}.log 2>&1\n"
                      for s in scenarios) + "kill $front\n")
    offline(script, place.ws, env_of(place), timeout=200)
    for s in scenarios:
        checks = []
        for f in (tmp_path / s).rglob("checks.json"):
            checks += json.loads(f.read_text())
        assert checks, (tmp_path / f"{s}.log").read_text()[-3000:]
        failed = {c["id"]: c.get("errorMessage") for c in checks if c["status"] == "FAILURE"}
        assert not set(failed) - NOT_OURS, failed
        assert any(c["status"] == "SUCCESS" for c in checks)
        assert not [c for c in checks if c["id"] == "wire-schema-valid" and c["status"] != "SUCCESS"]


def claude_says(place, tmp_path, blocks, *options):
    """Run Claude Code against the script; (its messages, what the model was sent)."""
    program = package(CLAUDE) / "node_modules/@anthropic-ai/claude-code-linux-x64/claude"
    if not program.exists():
        skip_impossible("the package has no program for this machine")
    (tmp_path / "script.json").write_text(json.dumps(blocks))
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"ambit": {
        "command": str(AMBIT), "args": ["mcp", "serve"]}}}))
    script = (f"{sys.executable} -B {LIB}/fake_api.py 8599 {tmp_path}/script.json {tmp_path}/log & api=$!\n" + UP % 8599 +
              f"timeout 90 {program} -p hi --mcp-config {tmp_path}/mcp.json --strict-mcp-config "
              "--allowedTools mcp__ambit --output-format stream-json --verbose </dev/null\n"
              "code=$?; kill $api; exit $code\n")
    p = offline(script, place.ws, {
        **env_of(place), "ANTHROPIC_BASE_URL": "http://127.0.0.1:8599", "ANTHROPIC_API_KEY": "sk-ant-x",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"})
    assert p.returncode == 0, p.stdout[-2000:] + p.stderr[-2000:]
    return [json.loads(line) for line in p.stdout.splitlines() if line.startswith("{")]


def tool_results(messages):
    for m in messages:
        if m["type"] == "user":
            for c in m["message"]["content"]:
                if c["type"] == "tool_result":
                    yield c["content"] if isinstance(c["content"], str) else json.dumps(
                        c["content"]), bool(c.get("is_error"))


def use(**arguments):
    return {"type": "tool_use", "name": "mcp__ambit__execute",
            "input": {"language": "shell", **arguments}}


def test_claude_code(place, tmp_path):
    place.write(".ssh/id_rsa", "SECRET-KEY", 0o600)
    messages = claude_says(place, tmp_path, [
        use(code="echo from-the-sandbox; echo x > made-by-claude"),
        use(code="echo x > /etc/hosts"),
        use(code="cat ~/.ssh/id_rsa; echo tried"),
        {"type": "text", "text": "all done"}])
    init = messages[0]
    assert {"name": "ambit", "status": "connected"}.items() <= init["mcp_servers"][0].items()
    assert "mcp__ambit__batch_execute" in init["tools"]
    (first, error1), (second, error2), (third, _) = list(tool_results(messages))
    assert "from-the-sandbox" in first and not error1
    assert (place.ws / "made-by-claude").read_text() == "x\n"
    assert "[SANDBOX BLOCKED] denied write to /etc/hosts — this path is outside the project " \
           "directory" in second and error2
    assert "[SANDBOX BLOCKED] denied read of " in third and "SECRET-KEY" not in third
    assert messages[-1]["type"] == "result" and messages[-1]["result"] == "all done"
    log = [json.loads(x) for x in (place.home / ".local/state/ambit/audit.jsonl").read_text().splitlines()]
    assert len([x for x in log if x["event"] == "mcp-call"]) == 3


def test_claude_code_shows_long_outputs(place, tmp_path):
    """What is shown of a long output is short enough not to be put into a file instead."""
    messages = claude_says(place, tmp_path, [use(code="seq 1 100000"), {"type": "text", "text": "ok"}])
    (shown, _), = tool_results(messages)
    assert "bytes left out" in shown and "99999" in shown and "persisted-output" not in shown
