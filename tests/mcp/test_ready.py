# SPDX-License-Identifier: Apache-2.0
"""A sandbox stands ready for the next call: it is used, for one call only, and never when it would
not be what the policy makes now."""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from ambit_test import AMBIT, processes_with, skip_impossible, wait_until
from mcp_client import Server, text


def sh(s, code, **kw):
    return s.tool("execute", language="shell", code=code, **kw)


def out(r):
    return r["structuredContent"]["stdout"]


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        return []


def waiting(s):
    """pid of the init whose child is no command yet, or None."""
    for init in children(s.process.pid):
        for command in children(init):
            try:
                with open(f"/proc/{command}/wchan", encoding="ascii") as f, \
                        open(f"/proc/{command}/cmdline", "rb") as words:
                    if words.read().startswith(b"ambit-init") and "poll" in f.read():
                        return init
            except OSError:
                pass
    return None


def get_ready(s):
    """After a call: the sandbox that waits for the next one."""
    for _ in range(40):
        assert text(sh(s, "echo first")) == "first\n"
        if wait_until(lambda: waiting(s), 0.5):
            init = waiting(s)
            if init:
                return init
        # whatever is mounted on this machine, by suites beside this one, too, makes it go
    pytest.fail("none stands ready")


@pytest.fixture(autouse=True)
def only_root_can_look():
    if os.geteuid() != 0:
        skip_impossible("who stands ready can be seen by root only: tried as root")


def parent(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return int(f.read().rpartition(")")[2].split()[1])


def test_it_is_the_one_that_is_used(server):
    for i in range(10):
        init = get_ready(server)
        mark = f"ambit-ready-{server.box.home.name}-{i}."
        job = sh(server, f"sleep 60; : {mark}", background=True)["structuredContent"]["jobId"]
        used = [p for p in processes_with(mark) if parent(p) == init]
        server.tool("job_kill", jobId=job)
        if used:
            return
    pytest.fail("others were used")


def test_each_is_used_once(server):
    seen = set()
    for i in range(5):
        init = get_ready(server)
        assert init not in seen
        seen.add(init)
        sh(server, f"echo {i} > /tmp/f; echo {i} > /dev/shm/f; export X={i}; sleep 30 &", env=[f"Y={i}"])
        r = sh(server, "ls /tmp /dev/shm; echo \"$X$Y\"; ps ax | grep -c '[s]leep'")
        assert out(r).split() == ["/dev/shm:", "/tmp:", "0"], r
    assert wait_until(lambda: not any(os.path.exists(f"/proc/{p}") for p in list(seen)[:-1]), 10)


def test_a_call_that_asks_for_less_gets_its_own(server):
    get_ready(server)
    assert sh(server, "echo x > planted", readOnly=True)["isError"]
    assert not (server.box.ws / "planted").exists()
    get_ready(server)
    assert out(sh(server, "env | grep -ci _proxy; true", network=False)) == "0\n"
    get_ready(server)
    server.box.mkdir("ws/sub")
    get_ready(server)
    assert out(sh(server, "pwd; echo $MY_X; cat", cwd="sub", env=["MY_X=1"], stdin="in")) == \
        f"{server.box.ws}/sub\n1\nin"
    get_ready(server)
    assert out(server.tool("execute", language="python", code="print(6*7)")) == "42\n"


# --- what changes while it waits ----------------------------------------------------------------

SECRETS = [".netrc", ".ssh/id_rsa", ".aws/credentials", ".config/gh/hosts.yml"]


def replace_by_rename(box, path):
    box.write(path + ".new", "SECRET-KEY", 0o600).rename(box.home / path)


def remove_and_make(box, path):
    """On many file systems the new one gets the number of the old one."""
    (box.home / path).unlink()
    box.write(path, "SECRET-KEY", 0o600)


def replace_directory(box, path):
    top = (box.home / path).parent if "/" in path else None
    if top:
        shutil.rmtree(top)
    else:
        (box.home / path).unlink()
    box.write(path, "SECRET-KEY", 0o600)


def move_behind_a_link(box, path):
    p = box.home / path
    kept = box.mkdir("elsewhere") / p.name
    shutil.move(p, kept)
    p.symlink_to(kept)


def move_directory_behind_a_link(box, path):
    top = (box.home / path).parent if "/" in path else box.home / path
    shutil.move(top, box.home / "moved")
    top.symlink_to(box.home / "moved")


@pytest.mark.parametrize("path, change", [
    *[(p, c) for p in SECRETS for c in (replace_by_rename, remove_and_make, replace_directory,
                                        move_directory_behind_a_link)],
    (".netrc", move_behind_a_link)])  # of the others the directory is hidden, not the file
def test_hidden_files_that_are_replaced_stay_hidden(boxes, serve, path, change):
    box = boxes("user")
    box.write(path, "SECRET-KEY", 0o600)
    s = serve(box)
    get_ready(s)
    change(box, path)
    r = sh(s, f"cat ~/{path} ~/elsewhere/* ~/moved ~/moved/*; ls -l ~/{path}; echo asked")
    assert "SECRET-KEY" not in json.dumps(r) and "asked" in out(r), r
    assert box.host("cat", f"{box.home}/{path}").out == "SECRET-KEY"  # control


@pytest.mark.parametrize("path", SECRETS)
def test_hidden_files_that_appear_are_hidden(boxes, serve, path):
    box = boxes("user")
    s = serve(box)
    get_ready(s)
    box.write(path, "SECRET-KEY", 0o600)
    assert "SECRET-KEY" not in json.dumps(sh(s, f"cat ~/{path}"))


def test_project_that_is_replaced(boxes, serve):
    box = boxes("user")
    s = serve(box)
    get_ready(s)
    box.ws.rename(box.home / "old")
    box.mkdir("ws")
    r = sh(s, "echo x > f; pwd")
    assert out(r) == f"{box.ws}\n" and (box.ws / "f").exists() and not (box.home / "old/f").exists()
    s.process.stdin.close()


def test_bulk_directory_that_is_replaced(boxes, serve):
    box = boxes("user")
    box.write("ws/node_modules/a/x.js", "1")
    s = serve(box)
    get_ready(s)
    shutil.rmtree(box.ws / "node_modules")
    box.write("ws/node_modules/b/y.js", "2")
    r = sh(s, "echo 3 > node_modules/c.js && mkdir node_modules/d && echo made")
    assert out(r) == "made\n" and (box.ws / "node_modules/c.js").read_text() == "3\n", r
    shutil.rmtree(box.ws / "node_modules")
    get_ready(s)
    box.write("ws/node_modules/.bin/x", "x")
    assert out(sh(s, "echo 3 > node_modules/c.js && echo made")) == "made\n"


def test_protected_file_that_appears(boxes, serve):
    box = boxes("user")
    s = serve(box)
    get_ready(s)
    box.write("ws/.env", "A=1\n")
    r = sh(s, "echo A=2 > .env; mv .env x; cat .env")
    assert (box.ws / ".env").read_text() == "A=1\n" and out(r) == "A=1\n", r


def test_host_names_of_now(boxes, serve):
    """What the host's files say is shown as it is now: here a mount that came meanwhile."""
    box = boxes("root")
    argv = ["unshare", "-m", "--propagation", "private", AMBIT, "mcp", "serve"]
    with Server(argv, popen=box.who.popen, cwd=box.ws, env=box._env(None)) as s:
        s.initialize()
        box.mkdir("ws/mnt")
        get_ready(s)
        enter = ["nsenter", "-t", str(s.process.pid), "-m"]
        subprocess.run([*enter, "mount", "-t", "tmpfs", "none", box.ws / "mnt"], check=True)
        subprocess.run([*enter, "touch", box.ws / "mnt/seen"], check=True)
        assert out(sh(s, "ls mnt")) == "seen\n"
        init = get_ready(s)
        subprocess.run([*enter, "umount", box.ws / "mnt"], check=True)
        # what is unmounted is not kept in use
        assert wait_until(lambda: not os.path.exists(f"/proc/{init}"))
        assert out(sh(s, "ls mnt")) == ""


# --- when it is lost ------------------------------------------------------------------------------

def test_somebody_ends_it(server):
    for _ in range(3):
        init = get_ready(server)
        os.kill(init, signal.SIGKILL)
        assert wait_until(lambda: not os.path.exists(f"/proc/{init}"))
        assert out(sh(server, "echo fine")) == "fine\n"


@pytest.mark.parametrize("how", ["eof", "SIGTERM", "SIGKILL"])
def test_it_ends_with_the_server(server, how):
    init = get_ready(server)
    all_of_it = children(server.process.pid) + children(init)
    if how == "eof":
        server.process.stdin.close()
    else:
        server.process.send_signal(getattr(signal, how))
    server.process.wait(10)
    assert wait_until(lambda: not any(os.path.exists(f"/proc/{p}") for p in all_of_it))


def test_it_does_not_wait_for_ever(plain_server):
    get_ready(plain_server)
    assert wait_until(lambda: not children(plain_server.process.pid), 40)
    assert out(sh(plain_server, "echo again")) == "again\n"


def test_long_commands_find_their_way(server):
    for size in (100, 30000, 60000, 70000, 200000):
        get_ready(server)
        assert out(sh(server, f"echo {'x' * size} | wc -c", env=["A=" + "y" * 1000])) == f"{size + 1}\n"


def test_exec_that_fails_is_told(boxes, serve):
    """The interpreter goes away after the server has found it."""
    box = boxes("user")
    bin = box.mkdir("bin")
    shutil.copy(shutil.which("bash"), bin / "bash")
    s = serve(box, env={"PATH": f"{bin}:/usr/bin:/bin"})
    get_ready(s)
    (bin / "bash").unlink()
    r = sh(s, "echo hi")
    assert r["isError"] and "not found" in text(r) and r["structuredContent"]["exitCode"] == 127


def test_the_log_tells_of_the_call_only(server):
    get_ready(server)
    sh(server, "echo x > /etc/hosts", cwd="/usr")
    get_ready(server)
    log = [json.loads(x) for x in (server.box.state / "ambit/audit.jsonl").read_text().splitlines()]
    starts = [x for x in log if x["event"] == "run-start"]
    assert [x["cwd"] for x in starts].count("/usr") == 1
    calls = [x for x in log if x["event"] == "mcp-call"]
    ends = [x for x in log if x["event"] == "run-end"]
    assert len(starts) == len(ends) >= len(calls)  # node was asked for its version, too
    assert {c["run"] for c in calls} <= {x["run"] for x in starts}
    assert server.box.ambit("log", "verify").code == 0


def test_times_are_those_of_the_call(server):
    get_ready(server)
    time.sleep(3)
    d = sh(server, "true")["structuredContent"]
    assert d["durationMs"] < 2500


def test_limits_hold(boxes, serve):
    s = serve(boxes("root"), "--memory", "150m", "--pids", "60", "--timeout", "20s")
    for _ in range(2):
        get_ready(s)
        r = sh(s, "head -c 400m /dev/zero | tail")
        assert "[SANDBOX BLOCKED] limit memory 150m" in text(r), text(r)
    get_ready(s)
    r = sh(s, "for i in $(seq 200); do sleep 5 & done", timeout=20000)
    assert "[SANDBOX BLOCKED] limit pids 60" in text(r) or "Resource temporarily" in text(r)
    s = serve(boxes("root"), "--timeout", "2s")
    get_ready(s)
    time.sleep(2.2)  # the time of waiting is not the command's
    assert out(sh(s, "echo fine")) == "fine\n"
    get_ready(s)
    assert sh(s, "sleep 30")["structuredContent"]["timedOut"]
