# SPDX-License-Identifier: Apache-2.0
"""Cancelling, ending, many calls: nothing is left, whatever happens."""
import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from ambit_test import AMBIT, mount_table, processes_with, settled_changes, skip_impossible, wait_until
from mcp_client import Closed, text

CALLS = int(os.environ.get("AMBIT_MCP_CALLS", "1000"))


def sh(s, code, **kw):
    return s.tool("execute", language="shell", code=code, **kw)


def marked(box):
    return f"ambit-mcp-mark-{box.home.name}"


def sleepers(box):
    return processes_with(marked(box))


TREE_CODE = """
for i in 1 2 3; do (trap '' TERM INT HUP; setsid sh -c 'sleep 600; :' {mark}) & done
trap '' TERM; echo begun; sleep 600
"""


def start_tree(s, box, **kw):
    id = s.start_tool("execute", language="shell", code=TREE_CODE.replace("{mark}", marked(box)), **kw)
    assert wait_until(lambda: len(sleepers(box)) >= 3, 20)
    return id


def test_cancel_ends_the_tree_within_100_ms(server):
    box, late = server.box, []
    for _ in range(25):
        id = start_tree(server, box)
        started = time.monotonic()
        server.notify("notifications/cancelled", requestId=id, reason="test")
        while sleepers(box):
            assert time.monotonic() - started < 20
        took = time.monotonic() - started
        # looking for them takes its time: the server's own part is a fraction of this
        late.append(took - look_ms(box) / 1000)
        assert text(sh(server, "echo still here")) == "still here\n"
        if len([t for t in late if t < 0.1]) == 3:  # others may want the processors, too
            break
    else:
        pytest.fail(f"it takes longer: {late}")
    assert not server.early  # a cancelled call is not answered


def look_ms(box):
    started = time.monotonic()
    sleepers(box)
    return 2000 * (time.monotonic() - started)


def test_cancel_of_batches_and_of_what_has_ended(plain_server):
    s, box = plain_server, plain_server.box
    code = TREE_CODE.replace("{mark}", marked(box))
    id = s.start_tool("batch_execute", commands=[code] * 3, concurrency=3)
    assert wait_until(lambda: len(sleepers(box)) >= 9, 20)
    s.notify("notifications/cancelled", requestId=id)
    assert wait_until(lambda: not sleepers(box))
    s.notify("notifications/cancelled", requestId=id)
    s.notify("notifications/cancelled", requestId="never")
    s.notify("notifications/cancelled", requestId=1)  # initialize: long answered
    assert text(sh(s, "echo hi")) == "hi\n"


def test_cancel_of_a_wait_leaves_the_job(plain_server):
    s = plain_server
    job = sh(s, "sleep 1; echo end", background=True)["structuredContent"]["jobId"]
    id = s.start_tool("job_output", jobId=job, offset=0, wait=60000)
    s.notify("notifications/cancelled", requestId=id)
    r = s.tool("job_output", jobId=job, wait=20000)["structuredContent"]
    assert r["stdout"] == "end\n"


@pytest.mark.parametrize("how", ["eof", "SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_every_end_is_the_end_of_everything(server, how):
    s, box = server, server.box
    mounts, before = mount_table(), set(Path("/tmp").glob("ambit-mcp.*"))
    start_tree(s, box)
    sh(s, TREE_CODE.replace("{mark}", marked(box)), background=True)
    assert wait_until(lambda: len(sleepers(box)) >= 6, 20)
    started = time.monotonic()
    if how == "eof":
        s.process.stdin.close()
    else:
        s.process.send_signal(getattr(signal, how))
    assert wait_until(lambda: not sleepers(box), 10)
    code = s.process.wait(10)
    assert code == (-9 if how == "SIGKILL" else 0)
    assert time.monotonic() - started < 20
    assert not settled_changes(mount_table, mounts)
    assert set(Path("/tmp").glob("ambit-mcp.*")) <= before


def test_a_client_that_does_not_read_any_more(boxes):
    box = boxes("user")
    p = box.who.popen([AMBIT, "mcp", "serve"], cwd=box.ws, env=box._env(None),
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "execute", "arguments": {
            "language": "shell", "code": TREE_CODE.replace("{mark}", marked(box))}}}).encode() + b"\n")
    p.stdin.flush()
    assert wait_until(lambda: len(sleepers(box)) >= 3, 20)
    p.stdout.close()
    assert wait_until(lambda: not sleepers(box)) and p.wait(20) == 0
    p.stdin.close()


def test_calls_on_their_way_are_answered_after_eof(plain_server):
    s = plain_server
    id = s.start_tool("execute", language="shell", code="sleep 0.3; echo hi")
    s.process.stdin.close()
    assert text(s.reply(id)) == "hi\n"
    with pytest.raises(Closed):
        s.next()


def test_used_from_a_shell(boxes):
    box = boxes("user")
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "execute", "arguments": {"language": "shell", "code": "echo hi"}}})
    r = box.ambit("mcp", "serve", input=line + "\n").ok()
    assert json.loads(r.out)["result"]["content"][0]["text"] == "hi\n" and not r.err


def test_slow_reader_loses_nothing(boxes):
    """Much more than a pipe holds, to somebody who is slow: the server neither blocks nor forgets."""
    box = boxes("user")
    p = box.who.popen([AMBIT, "mcp", "serve"], cwd=box.ws, env=box._env(None),
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    n = 30
    for i in range(n):
        p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": {
            "name": "execute", "arguments": {"language": "shell",
                                             "code": "head -c 30000 /dev/zero | tr '\\0' x"}}}
                                 ).encode() + b"\n")
    p.stdin.flush()
    time.sleep(1.5)  # all of it is waiting for us
    seen = set()
    while len(seen) < n:
        m = json.loads(p.stdout.readline())
        assert len(m["result"]["structuredContent"]["stdout"]) == 30000
        seen.add(m["id"])
    p.stdin.close()
    assert p.wait(10) == 0
    p.stdout.close()


def is_alive(pid):
    """What is left of the call before may not be reaped yet."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def state(s):
    fds = os.listdir(f"/proc/{s.process.pid}/fd")
    status = Path(f"/proc/{s.process.pid}/status").read_text()
    children = Path(f"/proc/{s.process.pid}/task/{s.process.pid}/children").read_text().split()
    # what it has of its own; of its program more is in memory now than then
    return (len(fds), int(re.search(r"RssAnon:\s+(\d+)", status)[1]),
            [pid for pid in children if is_alive(pid)])


def settled(s):
    """Once the sandbox for the next call stands ready (init, its broker, and who removes its cgroup,
    where it has one), and nothing changes any more. It is thrown away when something is mounted on
    the host, which other suites do: then another call makes the next."""
    for _ in range(20):
        last = None
        for _ in range(25):
            now = state(s)
            if now == last and len(now[2]) in (2, 3):
                return now
            last = now
            time.sleep(0.2)
        sh(s, "true")
    pytest.fail(f"not settled: {now}")


def test_many_calls_leave_nothing(server):
    if os.geteuid() != 0:
        skip_impossible("only root can look into the server, which is not dumpable")
    mounts = mount_table()
    # The allocator takes a while (about 1000 calls) until it has as much as it needs for the runs
    # that are kept; a leak would show in every span of calls, however late.
    spans = [settled(server)]
    for span in range(8):
        for i in range(CALLS // 2):
            r = sh(server, f"echo {i}; echo x > f; rm f")
            assert r["structuredContent"]["stdout"] == f"{i}\n"
        spans.append(settled(server))
        if span > 0 and spans[-1][1] <= spans[-2][1] + 200:
            break
    else:
        pytest.fail(f"it grows: {spans}")
    assert spans[-1][0] <= spans[1][0] and spans[-1][1] <= 6 * 1024, spans
    assert not settled_changes(mount_table, mounts) and not os.listdir(server.box.ws)


def test_sixteen_in_parallel(server):
    started = time.monotonic()
    ids = [server.start_tool("execute", language="shell", code=f"sleep 1; echo {i}")
           for i in range(16)]
    assert [text(server.reply(id)) for id in ids] == [f"{i}\n" for i in range(16)]
    assert time.monotonic() - started < 15


def test_more_than_fit_wait_their_turn(plain_server):
    s = plain_server
    ids = [s.start_tool("execute", language="shell", code=f"sleep 0.5; echo {i}") for i in range(80)]
    assert [text(s.reply(id)) for id in ids] == [f"{i}\n" for i in range(80)]


def test_answers_while_others_run(plain_server):
    s = plain_server
    for _ in range(4):
        s.start_tool("execute", language="shell", code="while :; do :; done", timeout=40000)
    started = time.monotonic()
    assert s.ask("ping") == {}
    assert text(sh(s, "echo hi")) == "hi\n"
    assert time.monotonic() - started < 20


def test_two_servers_do_not_disturb_each_other(boxes, serve):
    box = boxes("user")
    one, two = serve(box), serve(box)
    results = {}

    def calls(s, name):
        results[name] = [sh(s, f"echo {name} {i}")["structuredContent"]["stdout"] for i in range(20)]

    threads = [threading.Thread(target=calls, args=a) for a in ((one, "a"), (two, "b"))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {n: [f"{n} {i}\n" for i in range(20)] for n in "ab"}
    lines = (box.state / "ambit/audit.jsonl").read_text().splitlines()
    assert len([x for x in lines if '"mcp-call"' in x]) == 40
    assert box.ambit("log", "verify").code == 0


@pytest.mark.parametrize("leader", ["", "exec "])
def test_the_terminal_of_the_client_is_out_of_reach(boxes, leader):
    """A server in somebody's terminal: code that it runs can neither write to it nor read it."""
    box = boxes("user")
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "execute", "arguments": {"language": "shell", "code":
                                         "echo intruder > /dev/tty; echo intruder > /dev/console"}}})
    box.write("ws/in", line + "\n")
    shown = box.pty(["/bin/sh", "-c", f"{leader}{AMBIT} mcp serve < in > out"], sandbox=False)
    result = json.loads((box.ws / "out").read_text())["result"]
    assert "intruder" not in shown.out
    assert "/dev/tty: No such device" in result["structuredContent"]["stderr"]
