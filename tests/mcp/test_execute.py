# SPDX-License-Identifier: Apache-2.0
"""The tools, as a model uses them."""
import base64
import json
import re
import time

import pytest
from mcp_client import RpcError, text


def run(s, code, language="shell", **kw):
    return s.tool("execute", language=language, code=code, **kw)


def data(result):
    return result["structuredContent"]


# --- results ----------------------------------------------------------------------------------

def test_plain(server):
    r = run(server, "echo hi")
    assert text(r) == "hi\n" and r["isError"] is False
    d = data(r)
    assert d["stdout"] == "hi\n" and d["stderr"] == "" and d["exitCode"] == 0
    assert d["stdoutBytes"] == 3 and d["stderrBytes"] == 0 and not d["truncated"]
    assert d["sandboxed"] is True and d["blocked"] == [] and not d["timedOut"]
    assert d["durationMs"] >= 0 and d["cpuMs"] >= 0 and d["maxRssKb"] > 500


def test_stderr_is_kept_on_success(plain_server):
    r = run(plain_server, "echo out; echo err >&2")
    assert text(r) == "out\n[stderr]\nerr\n" and not r["isError"]
    assert data(r)["stderr"] == "err\n"


def test_small_outputs_have_no_links(plain_server):
    r = run(plain_server, "head -c 30000 /dev/zero | tr '\\0' x")
    assert len(r["content"]) == 1 and not data(r)["truncated"] and len(data(r)["stdout"]) == 30000


def test_data_says_in_words_what_the_text_says(plain_server):
    """Claude Code shows the data of a result to the model, and leaves the text away."""
    r = run(plain_server, "echo x > /etc/hosts; echo done")
    assert not r["isError"]
    assert data(r)["messages"][0] == ("[SANDBOX BLOCKED] denied write to /etc/hosts — this path is "
                                      "outside the project directory")
    assert list(data(r))[:2] == ["messages", "stdout"]
    assert "messages" not in data(run(plain_server, "exit 3"))
    assert "timed out" in data(run(plain_server, "sleep 9", timeout=100))["messages"][0]


def test_failures(plain_server):
    r = run(plain_server, "echo out; echo why >&2; exit 3")
    assert r["isError"] and data(r)["exitCode"] == 3
    assert text(r) == "out\n[stderr]\nwhy\n[exit code 3]\n"
    r = run(plain_server, "kill -SEGV $$")
    assert r["isError"] and data(r)["signal"] == "SIGSEGV" and data(r)["exitCode"] == 139
    assert "[killed by SIGSEGV]" in text(r)
    assert text(run(plain_server, "true")) == "[no output]\n"


def test_grep_and_diff_are_no_failures(plain_server):
    r = run(plain_server, "printf 'a\\n' > 1; printf 'b\\n' > 2; diff 1 2")
    assert not r["isError"] and data(r)["exitCode"] == 1 and "[exit code 1]" in text(r)
    assert run(plain_server, "grep x /dev/null")["isError"]
    assert run(plain_server, "import sys; print('x'); sys.exit(1)", "python")["isError"]


def test_binary_and_broken_text(plain_server):
    r = run(plain_server, "printf 'a\\xff\\x00\\xe2\\x82z'")
    assert data(r)["stdout"] == "a\ufffd\u0000\ufffd\ufffdz"
    r = run(plain_server, "printf 'a\\xff\\x00'", encoding="base64")
    assert base64.b64decode(data(r)["stdout"]) == b"a\xff\0"
    uri = f"exec://{data(r)['jobId']}/stdout"
    got = plain_server.ask("resources/read", {"uri": uri})["contents"][0]
    assert base64.b64decode(got["blob"]) == b"a\xff\0"


# --- long outputs ------------------------------------------------------------------------------

def read_all(s, uri):
    whole = ""
    while uri:
        part = s.ask("resources/read", {"uri": uri})["contents"][0]
        assert part["uri"] == uri
        whole += part["text"]
        uri = part["_meta"].get("ambit/next")
    return whole


def test_head_and_tail_and_the_whole_as_a_resource(plain_server):
    s = plain_server
    r = run(s, "for i in $(seq 1 400000); do echo \"line $i é\"; done", timeout=60000)
    d, t = data(r), text(r)
    whole = "".join(f"line {i} é\n" for i in range(1, 400001))
    assert d["truncated"] and d["stdoutBytes"] == len(whole.encode())
    assert t.startswith("line 1 é\n") and t.endswith("line 400000 é\n")
    assert len(t) < 40000 and "\ufffd" not in t
    left_out = re.search(r"\n\[\.\.\. (\d+) of (\d+) bytes left out; .*\]\n", t)
    assert int(left_out[2]) == d["stdoutBytes"]
    shown = t.replace(left_out[0], "\n").encode()
    assert int(left_out[1]) == d["stdoutBytes"] - len(shown)
    link = next(c for c in r["content"] if c["type"] == "resource_link")
    assert link["size"] == d["stdoutBytes"]
    assert read_all(s, link["uri"]) == whole
    listed = s.ask("resources/list")["resources"]
    assert link["uri"] in [x["uri"] for x in listed]
    # the same by a tool, for models whose client shows no resources
    half = s.tool("job_output", jobId=d["jobId"], offset=d["stdoutBytes"] - 16)
    assert data(half)["stdout"] == "line 400000 é\n"[-16:] or data(half)["stdout"].endswith("é\n")
    with pytest.raises(RpcError):
        s.ask("resources/read", {"uri": link["uri"] + "?offset=x"})


def test_old_clients_get_no_links(boxes, serve):
    s = serve(boxes("user"), initialize=False)
    s.initialize("2024-11-05")
    r = run(s, "yes | head -c 300000")
    assert [c["type"] for c in r["content"]] == ["text"] and data(r)["truncated"]


def test_output_limit(boxes, serve):
    s = serve(boxes("user"))
    r = run(s, "yes", timeout=60000)
    d = data(r)
    assert r["isError"] and "ended because of its output" in text(r)
    assert 100 << 20 <= d["stdoutBytes"] < 102 << 20
    with open(f"/proc/{s.process.pid}/status", encoding="utf-8") as f:
        kb = int(next(line for line in f if line.startswith("VmHWM")).split()[1])
    assert kb < 8000


def test_old_runs_are_forgotten(plain_server):
    first = data(run(plain_server, "echo first"))["jobId"]
    for _ in range(40):
        run(plain_server, "echo x")
    assert plain_server.tool("job_output", jobId=first)["isError"]
    assert len(data(plain_server.tool("job_output"))["jobs"]) <= 33


# --- what a call can say -------------------------------------------------------------------------

def test_stdin_args_env_cwd(plain_server):
    s = plain_server
    s.box.mkdir("ws/sub")
    r = run(s, 'cat; echo "$1|$2|$MY_X|$MY_Y"; pwd', stdin="ü\nb", args=["a b", "$HOME"],
            env=["MY_X=1=2", "MY_Y="], cwd="sub")
    assert data(r)["stdout"] == f"ü\nba b|$HOME|1=2||\n".replace("ba b", "ba b").replace(
        "||\n", "|\n") + f"{s.box.ws}/sub\n"
    r = run(s, "import sys; print(sys.argv[1:], sys.stdin.read())", "python", args=["x"], stdin="y")
    assert data(r)["stdout"] == "['x'] y\n"
    assert data(run(s, "cat"))["stdout"] == ""  # no input is the end of input


def test_files_are_written_with_the_rights_of_the_sandbox(plain_server):
    s = plain_server
    r = run(s, "cat a/b.txt c.txt; ls -l c.txt", files=[
        {"path": "a/b.txt", "content": "one\n"}, {"path": "c.txt", "content": "two ü\n"}])
    assert data(r)["stdout"].startswith("one\ntwo ü\n")
    assert (s.box.ws / "a/b.txt").read_text() == "one\n"
    for path in (".env", ".git/hooks/pre-commit", "/etc/ambit-test", str(s.box.home / "out.txt")):
        r = run(s, "echo ran", files=[{"path": path, "content": "x"}])
        assert r["isError"] and text(r).startswith("[SANDBOX BLOCKED]"), text(r)
        assert "ran" not in data(r)["stdout"]
    assert not (s.box.ws / ".env").exists() and not (s.box.home / "out.txt").exists()


@pytest.mark.parametrize("arguments, stdout", [
    ({"timeout": "5000"}, "hi\n"), ({"timeout": 5000.0}, "hi\n"), ({"background": "false"}, "hi\n"),
    ({"background": "False", "readOnly": "true"}, "hi\n"), ({"cwd": None, "timeout": None}, "hi\n"),
    ({"args": "one"}, "hi one\n"), ({"args": '["one", "two"]'}, "hi one two\n"),
    ({"args": [1, True]}, "hi 1 true\n"), ({"env": {"X": "1"}}, "hi\n"),
    ({"env": '{"X": "1"}'}, "hi\n"), ({"files": {"f": "x"}}, "hi\n"),
    ({"language": "bash"}, "hi\n"), ({"language": "SH"}, "hi\n"),
])
def test_coercions(plain_server, arguments, stdout):
    r = plain_server.tool("execute", **{"language": "shell", "code": "echo hi $*", **arguments})
    assert data(r)["stdout"] == stdout, r


def test_arguments_as_a_string(plain_server):
    r = plain_server.ask("tools/call", {"name": "execute", "arguments": json.dumps(
        {"language": "shell", "code": "echo hi"})})
    assert text(r) == "hi\n"


@pytest.mark.parametrize("arguments, words", [
    ({}, "language is missing"), ({"language": "shell"}, "code is missing"),
    ({"language": "cobol", "code": "x"}, "cobol"), ({"language": 3, "code": "x"}, "language"),
    ({"language": "shell", "code": ["x"]}, "code"),
    ({"language": "shell", "code": "x", "timeout": "soon"}, "timeout"),
    ({"language": "shell", "code": "x", "timeout": -1}, "timeout"),
    ({"language": "shell", "code": "x", "timeout": 1e300}, "timeout"),
    ({"language": "shell", "code": "x", "background": "maybe"}, "background"),
    ({"language": "shell", "code": "x", "readonly": True}, "did you mean readOnly"),
    ({"language": "shell", "code": "x", "dangerouslyDisableSandbox": True}, "no argument"),
    ({"language": "shell", "code": "x", "env": ["1X=2"]}, "env"),
    ({"language": "shell", "code": "x", "env": ["X"]}, "env"),
    ({"language": "shell", "code": "x", "files": [{"path": "x"}]}, "files"),
    ({"language": "shell", "code": "x", "args": ["x"] * 300}, "args"),
    ({"language": "shell", "code": "x", "encoding": "rot13"}, "encoding"),
    ({"language": "shell", "code": "x", "cwd": "/no/such"}, "cwd"),
    ({"language": "shell", "code": "x", "cwd": "/etc/passwd"}, "not a directory"),
])
def test_mistakes_are_told_to_the_model(plain_server, arguments, words):
    r = plain_server.tool("execute", **arguments)
    assert r["isError"] and words in text(r) and "structuredContent" not in r


def test_names_of_the_other_tools(plain_server):
    assert text(plain_server.tool("ctx_execute", language="shell", code="echo hi")) == "hi\n"


def test_tool_without_arguments(plain_server):
    r = plain_server.ask("tools/call", {"name": "execute"})
    assert r["isError"] and "language is missing" in text(r)


# --- time ------------------------------------------------------------------------------------------

def test_timeout_keeps_what_was_printed_and_ends_the_tree(plain_server):
    started = time.monotonic()
    r = run(plain_server, "trap '' TERM; (trap '' TERM; sleep 60) & echo begun; sleep 60",
            timeout=2000)
    assert time.monotonic() - started < 15
    d = data(r)
    assert r["isError"] and d["timedOut"] and d["exitCode"] == 124 and d["stdout"] == "begun\n"
    assert "[timed out after" in text(r)


def test_limit_of_the_settings(boxes, serve):
    s = serve(boxes("user"), "--timeout", "2s")
    r = run(s, "echo begun; sleep 30")
    assert data(r)["timedOut"] and data(r)["stdout"] == "begun\n"


# --- execute_file -----------------------------------------------------------------------------------

def test_execute_file(plain_server):
    s = plain_server
    s.box.write("ws/it's a \"file\".txt", "one\ntwo\n")
    r = s.tool("execute_file", path="it's a \"file\".txt", language="shell",
               code='echo "$FILE_CONTENT" | wc -l; echo "$FILE_CONTENT_PATH"')
    assert data(r)["stdout"] == f"2\n{s.box.ws}/it's a \"file\".txt\n"
    r = s.tool("execute_file", path="it's a \"file\".txt", language="python",
               code="print(len(FILE_CONTENT.splitlines()), file_path == FILE_CONTENT_PATH)")
    assert data(r)["stdout"] == "2 True\n"
    r = s.tool("execute_file", path="nope", language="python", code="print(1)")
    assert r["isError"] and "nope" in data(r)["stderr"]


def test_execute_file_sees_no_secrets(server):
    server.box.write(".ssh/id_rsa", "SECRET-KEY", 0o600)
    r = server.tool("execute_file", path=str(server.box.home / ".ssh/id_rsa"), language="shell",
                    code='echo "got $FILE_CONTENT"')
    assert "SECRET-KEY" not in json.dumps(r)
    assert text(r).startswith("[SANDBOX BLOCKED] denied read of ")


# --- batches -----------------------------------------------------------------------------------------

def test_batch_in_order(plain_server):
    r = plain_server.tool("batch_execute", commands=[
        {"label": "slow", "command": "sleep 0.4; echo one"}, {"label": "bad", "command": "exit 3"},
        "echo plain", {"command": "print(6*7)", "language": "python"}], concurrency=4)
    d = data(r)
    assert [c["label"] for c in d["commands"]] == ["slow", "bad", "cmd_3", "cmd_4"]
    assert [c["stdout"] for c in d["commands"]] == ["one\n", "", "plain\n", "42\n"]
    assert [c["exitCode"] for c in d["commands"]] == [0, 3, 0, 0]
    assert (d["passed"], d["failed"], d["skipped"]) == (3, 1, 0) and not r["isError"]
    assert text(r).index("# slow") < text(r).index("# bad") < text(r).index("# cmd_3")
    assert "# bad (exit code 3" in text(r) and text(r).endswith("[3 passed, 1 failed, 0 not started]\n")


def test_parallel_is_parallel_and_serial_is_serial(plain_server):
    started = time.monotonic()
    plain_server.tool("batch_execute", commands=["sleep 2"] * 4, concurrency=4)
    assert time.monotonic() - started < 7
    started = time.monotonic()
    plain_server.tool("batch_execute", commands=["sleep 0.4"] * 3)
    assert time.monotonic() - started >= 1.2


def test_stop_on_error(plain_server):
    r = plain_server.tool("batch_execute", stopOnError=True, commands=[
        "echo one", "false", "touch never", "echo never"])
    d = data(r)
    assert r["isError"] and (d["passed"], d["failed"], d["skipped"]) == (1, 1, 2)
    assert d["commands"][2] == {"label": "cmd_3", "skipped": True}
    assert not (plain_server.box.ws / "never").exists()
    assert plain_server.tool("batch_execute", commands=["false", "false"])["isError"]


def test_batch_shares_its_time(plain_server):
    r = plain_server.tool("batch_execute", timeout=2000, commands=["echo a", "sleep 30", "echo b"])
    d = data(r)
    assert d["commands"][1]["timedOut"] and d["commands"][2].get("skipped")


def test_each_command_has_its_own_sandbox(plain_server):
    r = plain_server.tool("batch_execute", commands=["echo x > /tmp/f; cat /tmp/f", "ls /tmp/f"])
    assert data(r)["commands"][0]["stdout"] == "x\n" and data(r)["commands"][1]["exitCode"] != 0


@pytest.mark.parametrize("commands", [
    '[{"label": "a", "command": "echo hi"}]', "echo hi", ["echo hi"], [{"command": "echo hi"}],
    ['{"label": "a", "command": "echo hi"}'], {"label": "a", "command": "echo hi"},
])
def test_batch_coercions(plain_server, commands):
    assert data(plain_server.tool("batch_execute", commands=commands))["commands"][0][
        "stdout"] == "hi\n"


@pytest.mark.parametrize("arguments", [
    {}, {"commands": []}, {"commands": [{}]}, {"commands": [{"label": "x"}]}, {"commands": [[]]},
    {"commands": ["x"] * 65}, {"commands": ["x"], "concurrency": 0},
    {"commands": ["x"], "concurrency": 9}, {"commands": [{"command": "x", "language": "cobol"}]},
])
def test_batch_mistakes(plain_server, arguments):
    assert plain_server.tool("batch_execute", **arguments)["isError"]


# --- searching ------------------------------------------------------------------------------------------

LOG = ("for i in $(seq 1 3000); do echo \"info request $i served\"; "
       "[ $i = 1234 ] && echo 'ERROR: database connection refused by db7'; done; true")


def test_intent_finds_the_needle(plain_server):
    r = run(plain_server, LOG, intent="why did the database connection fail?")
    place = data(r)["matches"][0]["places"][0]
    assert "ERROR: database connection refused by db7" in place["text"] and place["line"] == 1233
    assert "db7" in text(r) and len(text(r)) < 8000 and data(r)["stdoutBytes"] > 60000
    r = run(plain_server, "echo short", intent="database")
    assert text(r) == "short\n" and "matches" not in data(r)
    r = run(plain_server, LOG, intent="zebra crossing")
    assert data(r)["matches"][0]["places"] == [] and "[nothing found]" in text(r)


def test_queries_over_a_batch(plain_server):
    s = plain_server
    run(s, "echo the quick zebra")
    r = s.tool("batch_execute", commands=[
        {"label": "log", "command": LOG}, {"label": "other", "command": "echo disk full on sda1"}],
        queries=["database error", "disk sda1", "zebra"])
    found = {m["query"]: m["places"] for m in data(r)["matches"]}
    assert found["database error"][0]["label"] == "log"
    assert found["disk sda1"][0] == {"label": "other", "line": 1, "text": "disk full on sda1"}
    assert found["zebra"] == [] and len(text(r)) < 12000
    r = s.tool("batch_execute", commands=["true"], queries="zebra", query_scope="global")
    assert data(r)["matches"][0]["places"][0]["text"] == "the quick zebra"


# --- jobs ----------------------------------------------------------------------------------------------

def test_background_job(plain_server):
    s = plain_server
    started = time.monotonic()
    r = run(s, "echo one; sleep 3; echo two; sleep 3; echo three; exit 4", background=True)
    assert time.monotonic() - started < 2.5
    job = data(r)["jobId"]
    assert data(r)["running"] and not r["isError"] and job in text(r)
    assert data(r)["stdout"] in ("one\n", "") and "exitCode" not in data(r)  # on a busy machine it comes later
    first = data(s.tool("job_output", jobId=job, offset=0, wait=20000))
    assert first["stdout"] == "one\n" and first["running"] and first["nextOffset"] == 4
    more = data(s.tool("job_output", jobId=job, offset=4, wait=20000))
    assert more["stdout"] == "two\n" and more["running"] and more["nextOffset"] == 8
    more = data(s.tool("job_output", jobId=job, offset=8, wait=20000))
    assert more["stdout"] == "three\n"
    end = data(s.tool("job_output", jobId=job, offset=14, wait=20000))
    assert not end["running"] and end["exitCode"] == 4 and end["stdout"] == ""
    assert data(s.tool("job_output", jobId=job))["stdout"] == "one\ntwo\nthree\n"


def test_background_with_timeout_waits_that_long(plain_server):
    r = run(plain_server, "sleep 0.3; echo done", background=True, timeout=20000)
    assert data(r)["stdout"] == "done\n" and not data(r)["running"]
    r = run(plain_server, "echo begun; sleep 20", background=True, timeout=2000)
    assert data(r)["running"] and data(r)["stdout"] == "begun\n"


def test_job_that_fails_at_once(plain_server):
    for _ in range(20):  # at once is 100 ms, which a busy machine may need for its start
        r = run(plain_server, "exit 7", background=True)
        if not data(r)["running"]:
            break
    assert r["isError"] and data(r)["exitCode"] == 7 and not data(r)["running"]


def test_job_kill(plain_server):
    s = plain_server
    job = data(run(s, "trap '' TERM INT; sleep 60 & sleep 60", background=True))["jobId"]
    r = s.tool("job_kill", jobId=job)
    assert not data(r)["running"] and data(r)["signal"] == "SIGKILL"
    job = data(run(s, "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done",
                   background=True))["jobId"]
    assert data(s.tool("job_output", jobId=job, offset=0, wait=20000))["stdout"] == "up\n"
    r = s.tool("job_kill", jobId=job, signal="TERM")
    assert data(r)["exitCode"] == 5
    assert data(s.tool("job_output", jobId=job))["stdout"] == "up\nbye\n"
    assert s.tool("job_kill", jobId="r999")["isError"]
    assert s.tool("job_kill")["isError"]


def test_too_many_jobs(plain_server):
    for _ in range(16):
        assert not run(plain_server, "sleep 30", background=True)["isError"]
    r = run(plain_server, "sleep 30", background=True)
    assert r["isError"] and "16 background jobs" in text(r)
    assert len([j for j in data(plain_server.tool("job_output"))["jobs"] if j["running"]]) == 16
