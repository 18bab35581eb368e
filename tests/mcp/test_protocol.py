# SPDX-License-Identifier: Apache-2.0
"""Framing, versions, methods: what a client of any era sees on the wire."""
import json
import time

import pytest
from mcp_client import META, MODERN, RpcError, text

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


def raw(s, line):
    s.send_line(line if isinstance(line, bytes) else line.encode())
    return s.next()


@pytest.fixture
def fresh(boxes, serve):
    return serve(boxes("user"), initialize=False)


# --- versions ---------------------------------------------------------------------------

@pytest.mark.parametrize("version", LEGACY)
def test_each_legacy_version_is_echoed(fresh, version):
    r = fresh.initialize(version)
    assert r["protocolVersion"] == version
    assert set(r["capabilities"]) == {"tools", "resources", "prompts", "logging"}
    assert r["serverInfo"]["name"] == "ambit" and r["serverInfo"]["version"]
    assert "sandbox" in r["instructions"]
    assert text(fresh.tool("execute", language="shell", code="echo hi")) == "hi\n"


def test_unknown_version_gets_our_latest(fresh):
    assert fresh.initialize("1999-01-01")["protocolVersion"] == "2025-11-25"


def test_initialize_without_version(fresh):
    with pytest.raises(RpcError) as e:
        fresh.ask("initialize", {})
    assert e.value.code == -32602


def test_discover_is_answered_at_once_and_initialize_still_works(fresh):
    """What Claude Code does: probe, then whichever era."""
    started = time.monotonic()
    r = fresh.modern("server/discover")
    assert time.monotonic() - started < 8
    assert r["supportedVersions"] == ["2026-07-28"] and r["resultType"] == "complete"
    assert r["ttlMs"] >= 0 and r["cacheScope"] == "private" and r["instructions"]
    assert r["_meta"][META + "serverInfo"]["name"] == "ambit"
    assert fresh.initialize()["protocolVersion"] == "2025-11-25"
    assert fresh.ask("ping") == {}


def test_modern_requests_need_no_state(fresh):
    tools = fresh.modern("tools/list")
    assert tools["resultType"] == "complete" and tools["ttlMs"] > 0
    r = fresh.modern("tools/call", name="execute",
                     arguments={"language": "shell", "code": "echo hi"})
    assert r["resultType"] == "complete" and text(r) == "hi\n"
    assert r["_meta"][META + "serverInfo"]["name"] == "ambit"
    listed = fresh.modern("resources/list")
    assert listed["ttlMs"] == 0 and listed["resources"]


@pytest.mark.parametrize("meta", [
    None, {}, {META + "protocolVersion": "2026-07-28"}, {META + "clientCapabilities": {}},
    {META + "protocolVersion": 1, META + "clientCapabilities": {}},
    {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": []},
])
def test_modern_meta_must_be_whole(fresh, meta):
    with pytest.raises(RpcError) as e:
        fresh.ask("server/discover", {} if meta is None else {"_meta": meta})
    assert e.value.code == -32602


def test_modern_unknown_version(fresh):
    with pytest.raises(RpcError) as e:
        fresh.ask("tools/list", {"_meta": {**MODERN, META + "protocolVersion": "2030-01-01"}})
    assert e.value.code == -32022
    assert e.value.data == {"supported": ["2026-07-28"], "requested": "2030-01-01"}


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel",
                                    "resources/subscribe", "no/such"])
def test_methods_that_the_modern_era_does_not_have(fresh, method):
    with pytest.raises(RpcError) as e:
        fresh.modern(method, protocolVersion="2025-11-25", level="info")
    assert e.value.code == -32601


def test_subscription_lives_until_cancelled(fresh):
    fresh.start("subscriptions/listen", {"_meta": MODERN, "notifications": {
        "toolsListChanged": True}}, id="listen:0")
    ack = fresh.next()
    assert ack["method"] == "notifications/subscriptions/acknowledged"
    assert ack["params"]["_meta"][META + "subscriptionId"] == "listen:0"
    assert ack["params"]["notifications"] == {}  # nothing of it ever changes
    fresh.notify("notifications/cancelled", requestId="listen:0")
    fresh.start("subscriptions/listen", {"_meta": MODERN, "notifications": {}}, id="listen:1")
    assert fresh.next()["params"]["_meta"][META + "subscriptionId"] == "listen:1"
    fresh.process.stdin.close()
    end = fresh.next()
    assert end["id"] == "listen:1" and end["result"]["resultType"] == "complete"
    assert end["result"]["_meta"][META + "subscriptionId"] == "listen:1"


def test_legacy_conveniences(plain_server):
    s = plain_server
    assert s.ask("ping") == {}
    assert s.ask("prompts/list") == {"prompts": []}
    assert s.ask("resources/list") == {"resources": []}
    assert s.ask("resources/templates/list")["resourceTemplates"][0]["uriTemplate"]
    assert s.ask("logging/setLevel", {"level": "warning"}) == {}
    for bad in ({}, {"level": "loud"}, {"level": 3}):
        with pytest.raises(RpcError) as e:
            s.ask("logging/setLevel", bad)
        assert e.value.code == -32602


# --- framing -----------------------------------------------------------------------------

def test_lines_in_pieces_and_many_in_one(fresh):
    one = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    for byte in one:
        fresh.process.stdin.write(bytes([byte]))
        fresh.process.stdin.flush()
    fresh.process.stdin.write(b"\n")
    fresh.process.stdin.flush()
    assert fresh.next() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    fresh.process.stdin.write(b"\r\n\n \n" + b"".join(
        b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\r\n' % i for i in range(2, 102)))
    fresh.process.stdin.flush()
    assert [fresh.next()["id"] for _ in range(100)] == list(range(2, 102))


def test_last_line_without_newline(fresh):
    fresh.process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    fresh.process.stdin.close()
    assert fresh.next()["id"] == 1
    assert fresh.process.wait(5) == 0


@pytest.mark.parametrize("line", [
    "", "{", "nonsense", '{"jsonrpc":"2.0","id":1,"method":"ping"', "\x00", "\xff\xfe", "{}}",
    '{"a":1,}', "[1,]", '"\\ud800', "'x'", "01", "1e", "--1", "nul", '{"a" "b"}', '{"\x01":1}',
    "[" * 5000, '{"a":' * 5000, "[" * 100 + "]" * 100, "\ufeff{}",
])
def test_what_is_no_json(fresh, line):
    fresh.send_line(line.encode("utf-8", "surrogateescape") if "\xff" not in line
                    else b"\xff\xfe{}")
    if line.strip():
        m = fresh.next()
        assert m["error"]["code"] == -32700 and m["id"] is None
    assert raw(fresh, '{"jsonrpc":"2.0","id":7,"method":"ping"}')["id"] == 7


@pytest.mark.parametrize("message, code, id", [
    ("1", -32600, None), ('"x"', -32600, None), ("null", -32600, None), ("[]", -32600, None),
    ('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None), ("{}", -32600, None),
    ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
    ('{"id":1,"method":"ping"}', -32600, 1), ('{"jsonrpc":"2.0","id":1}', -32600, 1),
    ('{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    ('{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
    ('{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600, None),
    ('{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    ('{"jsonrpc":"2.0","id":1,"method":7}', -32600, 1),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602, 1),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', -32602, 1),
    ('{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32600, 1),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}', -32600, 1),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","\\u006dethod":"tools/list"}', -32600, 1),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', -32600, 1),
    ('{"jsonrpc":"2.0","id":1,"method":"%s"}' % ("x" * 1000), -32600, 1),
    ('{"jsonrpc":"2.0","id":"%s","method":"ping"}' % ("x" * 5000), -32600, None),
    ('{"jsonrpc":"2.0","id":1,"method":"no/such"}', -32601, 1),
    ('{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32602, 1),
    ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}', -32602, 1),
    ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":{"a":1}}}', -32602, 1),
    ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute",'
     '"name":"job_kill"}}', -32602, 1),
    ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute",'
     '"arguments":{},"arguments":{}}}', -32600, 1),
    ('{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"exec://r9/x"}}',
     -32002, 1),
])
def test_refusals(plain_server, message, code, id):
    m = raw(plain_server, message)
    assert m["error"]["code"] == code and m["id"] == id, m


def test_notifications_and_responses_are_never_answered(plain_server):
    s = plain_server
    for line in ('{"jsonrpc":"2.0","method":"no/such"}', '{"jsonrpc":"2.0","method":"ping"}',
                 '{"jsonrpc":"2.0","method":"notifications/cancelled"}',
                 '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
                 '{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}',
                 '{"jsonrpc":"2.0","id":5,"result":{}}',
                 '{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"x"}}'):
        s.send_line(line.encode())
    assert raw(s, '{"jsonrpc":"2.0","id":6,"method":"ping"}')["id"] == 6


@pytest.mark.parametrize("id", [
    "0", "-1", "12345678901234567890123456789012345678901234567890", "1e400", "1.50", '"x"', '""',
    '"\\u00e9\\ud83d\\ude00\\ud800"', '"server-discover-probe-1"',
])
def test_ids_come_back_as_they_were(fresh, id):
    fresh.send_line(b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % id.encode())
    assert fresh.next_line() == b'{"jsonrpc":"2.0","id":%s,"result":{}}\n' % id.encode()


def test_too_long_a_line_is_refused_and_forgotten(fresh):
    fresh.process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"')
    for _ in range(12):
        fresh.process.stdin.write(b"y" * (1 << 20))
    fresh.process.stdin.write(b'"}}\n')
    fresh.process.stdin.flush()
    assert fresh.next()["error"]["code"] == -32600
    assert raw(fresh, '{"jsonrpc":"2.0","id":2,"method":"ping"}') == {
        "jsonrpc": "2.0", "id": 2, "result": {}}
    with open(f"/proc/{fresh.process.pid}/status", encoding="utf-8") as f:
        kb = int(next(line for line in f if line.startswith("VmRSS")).split()[1])
    assert kb < 12000


def test_nine_megabytes_of_code(plain_server):
    code = "echo hi\n#" + "x" * (9 << 20)
    assert text(plain_server.tool("execute", language="shell", code=code)) == "hi\n"


def test_batch_of_the_one_version_that_had_them(fresh):
    fresh.initialize("2025-03-26")
    call = {"jsonrpc": "2.0", "id": "c", "method": "tools/call",
            "params": {"name": "execute", "arguments": {"language": "shell", "code": "echo hi"}}}
    fresh.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"},
                {"jsonrpc": "2.0", "method": "notifications/initialized"}, call,
                {"jsonrpc": "2.0", "id": 2, "method": "nope"}, 7])
    answers = fresh.next()
    assert isinstance(answers, list)
    assert sorted(str(a["id"]) for a in answers) == ["1", "2", "None", "c"]
    assert text(next(a for a in answers if a["id"] == "c")["result"]) == "hi\n"
    fresh.send([{"jsonrpc": "2.0", "method": "notifications/x"}])  # nothing to answer
    fresh.send([{"jsonrpc": "2.0", "id": 9, "method": "initialize", "params": {}}])
    assert fresh.next()[0]["error"]["code"] == -32600


# --- cancel, progress, log --------------------------------------------------------------------

def test_progress_keeps_the_client_waiting(plain_server):
    s = plain_server
    id = s.start_tool("execute", meta={"progressToken": "t/1"}, language="shell",
                      code="echo begun; sleep 2.2")
    assert text(s.reply(id)) == "begun\n"
    seen = [m["params"] for _, m in s.notifications if m["method"] == "notifications/progress"]
    assert seen and all(p["progressToken"] == "t/1" for p in seen)
    assert [p["progress"] for p in seen] == sorted({p["progress"] for p in seen})
    assert "6 bytes" in seen[0]["message"]
    s.notifications.clear()
    s.tool("execute", language="shell", code="sleep 1.5")  # not asked for
    assert not s.notifications


def test_log_messages_only_when_asked_for(plain_server):
    s = plain_server
    s.tool("execute", language="shell", code="echo x > /etc/hosts")
    assert not s.notifications
    s.ask("logging/setLevel", {"level": "info"})
    s.tool("execute", language="shell", code="echo x > /etc/hosts")
    (_, m), = s.notifications
    assert m["method"] == "notifications/message" and m["params"]["level"] == "warning"
    assert "/etc/hosts" in m["params"]["data"]
    s.notifications.clear()
    s.ask("logging/setLevel", {"level": "error"})
    s.tool("execute", language="shell", code="echo x > /etc/hosts")
    assert not s.notifications


def test_modern_log_level_is_of_the_request(fresh):
    args = {"name": "execute", "arguments": {"language": "shell", "code": "echo x > /etc/hosts"}}
    fresh.modern("tools/call", **args)
    assert not fresh.notifications
    fresh.modern("tools/call", meta={META + "logLevel": "info"}, **args)
    assert [m["params"]["level"] for _, m in fresh.notifications] == ["warning"]


# --- tools ------------------------------------------------------------------------------------

def walk(schema):
    yield schema
    for sub in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
        yield from walk(sub)


def test_tools_and_their_schemas(plain_server):
    tools = {t["name"]: t for t in plain_server.ask("tools/list")["tools"]}
    assert list(tools) == ["execute", "execute_file", "batch_execute", "job_output", "job_kill"]
    for t in tools.values():
        assert t["title"] and t["description"] and t["annotations"]["title"]
        for schema in (t["inputSchema"], t["outputSchema"]):
            assert schema["type"] == "object"
            for part in walk(schema):
                # what Gemini-family clients drop a tool for
                assert not set(part) & {"additionalProperties", "const", "$ref", "$schema", "oneOf",
                                        "anyOf", "allOf", "not", "patternProperties"}, part
                assert isinstance(part["type"], str)
                assert part["type"] != "array" or "items" in part
                assert set(part.get("required", [])) <= set(part.get("properties", {}))
    execute = tools["execute"]
    assert execute["inputSchema"]["required"] == ["language", "code"]
    assert tools["batch_execute"]["inputSchema"]["required"] == ["commands"]
    assert {"exitCode", "timedOut", "truncated", "stdout", "stderr", "stdoutBytes", "stderrBytes",
            "durationMs", "cpuMs", "maxRssKb", "sandboxed", "blocked", "signal"} <= set(
                execute["outputSchema"]["properties"])
    assert execute["annotations"]["destructiveHint"] and execute["annotations"]["openWorldHint"]
    assert "sandbox" not in json.dumps(execute["inputSchema"]["properties"]).lower().replace(
        "sandbox of its own", "")  # no off switch


def test_hints_follow_the_policy(boxes, serve):
    s = serve(boxes("user"), "--network", "none")
    execute = s.ask("tools/list")["tools"][0]
    assert execute["annotations"]["openWorldHint"] is False


def test_same_list_every_time(plain_server):
    plain_server.ask("tools/list")
    plain_server.start("tools/list", id="a")
    one = plain_server.next()["result"]
    plain_server.start("tools/list", id="b")
    assert plain_server.next()["result"] == one


def test_an_id_in_use(plain_server):
    s = plain_server
    args = {"name": "execute", "arguments": {"language": "shell", "code": "sleep 0.5; echo done"}}
    s.start("tools/call", args, id=50)
    s.start("tools/call", args, id=50)
    assert s.next()["error"]["code"] == -32600
    assert text(s.reply(50)) == "done\n"
