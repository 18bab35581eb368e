# SPDX-License-Identifier: Apache-2.0
"""The audit log: what is in it, and that it tells the truth whatever happens to its writers."""
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ambit_test import AMBIT, skip_impossible, wait_until


def log_file(box):
    return box.state / "ambit/audit.jsonl"


def records(box, path=None):
    lines = (path or log_file(box)).read_text().splitlines()
    return [json.loads(line) for line in lines]


def verify(box, *options):
    """(intact?, the JSON verdict)"""
    r = box.ambit("log", *options, "--json", "verify")
    assert r.code in (0, 1), r
    verdict = json.loads(r.out)
    assert verdict["intact"] == (r.code == 0)
    return verdict["intact"], verdict


def small_log(box, **audit):
    """Settings with a log that is put aside often."""
    return box.write(".config/ambit/settings.json", json.dumps({"audit": audit}))


def test_a_run(box):
    out = box.mkdir("out")
    r = box.sh("echo x > ~/out/f; TOKEN=hunter2 true; exit 3")
    assert r.code == 3
    start, denied, end = records(box)
    assert [x["event"] for x in (start, denied, end)] == ["run-start", "violation", "run-end"]
    assert len({x["run"] for x in (start, denied, end)}) == 1
    assert [x["seq"] for x in (start, denied, end)] == [1, 2, 3]
    assert start["command"][:2] == ["/bin/sh", "-c"] and start["cwd"] == str(box.ws)
    assert start["sandboxed"] and start["network"] == "none"
    assert start["allowWrite"] == [str(box.ws)]
    assert denied["kind"] == "write" and denied["target"] == f"{out}/f"
    assert denied["hint"] == f"--allow-write {out}" and denied["count"] == 1
    assert end["exitCode"] == 3 and end["violations"] == 1 and "wallMs" in end
    assert verify(box)[0]


def test_nobody_else_reads_it(box):
    box.run("true").ok()
    for path, mode in ((log_file(box).parent, 0o700), (log_file(box), 0o600),
                       (log_file(box).with_name("audit.jsonl.head"), 0o600)):
        assert path.stat().st_mode & 0o7777 == mode, path
        assert path.stat().st_uid == box.who.uid


def test_secrets_are_left_out(box):
    secrets = ["hunter2", "AKIAIOSFODNN7EXAMPLE", "ghp_0123456789abcdefghij", "pw4all"]
    box.run("true", "--password", secrets[0], secrets[1], f"https://u:{secrets[3]}@host/",
            f"Authorization: Bearer {secrets[2]}").ok()
    text = log_file(box).read_text()
    for s in secrets:
        assert s not in text
    assert text.count("[redacted]") == 4
    box.run("true", "--password", "hunter2", options=["--set", "audit.redact=false"]).ok()
    assert "hunter2" in log_file(box).read_text()


def test_the_run_is_named_in_the_report(box):
    r = box.run("true", options=["--report", "-"]).ok()
    assert json.loads(r.err)["run"] == records(box)[0]["run"]


def test_what_could_not_be_run(box):
    assert box.run("no-such-program").code == 127
    start, end = records(box)
    assert start["command"] == ["no-such-program"]
    assert "not found" in end["error"]
    assert box.run("true", options=["--allow-write", "/no/such/place"]).code == 125
    assert "/no/such/place" in records(box)[-1]["error"]
    assert verify(box)[0]


def test_without_a_sandbox(box):
    box.run("true", env={"AMBIT_NO_SANDBOX": "1"}).ok()
    start, = records(box)
    assert not start["sandboxed"] and start["backend"] == "none"
    assert "NO SANDBOX" in box.ambit("log").ok().out


def test_trust_is_a_change_of_policy(box):
    box.write("ws/.ambit.json", '{"network": {"allowedDomains": ["a.example"]}}')
    box.ambit("trust").ok()
    change = records(box)[-1]
    assert (change["event"], change["by"]) == ("policy-change", "trust")
    assert change["value"] == str(box.ws / ".ambit.json")


def test_none(box):
    box.run("true", options=["--set", "audit.path=none"]).ok()
    assert not log_file(box).exists()
    # what ambit remembers is hidden all the same
    assert log_file(box).parent.is_dir()
    small_log(box, path="none")
    r = box.ambit("log")
    assert r.code == 125 and "audit.path is none" in r.err, r


def test_default_place(box):
    box.run("true", env={"XDG_STATE_HOME": None}).ok()
    assert len(records(box, box.home / ".local/state/ambit/audit.jsonl")) == 2
    assert not log_file(box).exists()


@pytest.mark.parametrize("how", ["open", "write"])
def test_a_log_that_cannot_be_written(box, how):
    """The run goes on and says so, once."""
    d = box.mkdir("log", 0o700)
    log = ["--set", f"audit.path={d}/log"]
    if how == "open":
        d.chmod(0o777)
    else:
        box.mkdir("log/log")  # the head can be made, the log cannot
    r = box.sh("echo x > /etc/1; echo y > /etc/2; echo out", options=log)
    assert r.code == 0 and r.out == "out\n"
    assert r.err.count("the audit log cannot be") == 1, r


def lost_records(box, path=None):
    return [x for x in records(box, path) if x["event"] == "lost"]


def test_a_loss_is_never_silent(box):
    """Each run says so, also with -q, and the next one that can write has the number."""
    box.run("true").ok()
    log_file(box).parent.chmod(0o777)
    for _ in range(2):
        r = box.run("true", options=["-q"]).ok()
        assert r.err.count("the audit log cannot be written") == 1, r
    log_file(box).parent.chmod(0o700)
    intact, v = verify(box)
    assert intact and "4 records could not be written" in v["notes"][0], v
    assert box.run("true", options=["-q"]).ok().err == ""
    lost, = lost_records(box)
    assert lost["count"] == 4 and lost["since"] <= lost["timestamp"]
    assert "4 records could not be written" in box.ambit("log", "--kind", "lost").ok().out
    box.run("true").ok()
    assert len(lost_records(box)) == 1 and verify(box)[0]


@pytest.mark.parametrize("how", ["open", "first", "link"])
def test_a_loss_is_remembered_without_a_head(box, how):
    """The log lies elsewhere: then ambit's own directory remembers it."""
    d = box.mkdir("log", 0o700)
    small_log(box, path=f"{d}/log")
    if how == "open":
        d.chmod(0o777)
    elif how == "first":
        box.mkdir("log/log")  # the head can be made, the log cannot
    else:
        (d / "log.head").symlink_to("/nowhere")
    r = box.run("true", options=["-q"]).ok()
    assert r.err.count("the audit log cannot be written") == 1, r
    # commands do not see where that is
    kept, = log_file(box).parent.glob("lost-*")
    assert kept.stat().st_mode & 0o7777 == 0o600
    box.sh(f"rm -f {kept}; ! test -e {kept}", options=["-q", "--set", "audit.path=none"])
    assert kept.exists()
    if how == "open":
        d.chmod(0o700)
    elif how == "first":
        (d / "log").rmdir()
    else:
        (d / "log.head").unlink()
    r = box.ambit("log", "verify")
    assert "2 records could not be written" in r.out + r.err, r
    box.run("true").ok()
    assert [x["count"] for x in lost_records(box, d / "log")] == [2]
    assert not kept.exists() and verify(box, "--file", f"{d}/log")[0]


def test_a_loss_is_remembered_by_the_runtime_directory(box):
    """The directory of the log, which is ambit's own, cannot be entered at all."""
    runtime = Path(f"/run/user/{box.who.uid}")
    if box.who.uid == 0:
        skip_impossible("root enters every directory: a user cannot")
    if not runtime.is_dir():  # a login makes it
        runtime.mkdir(0o700, parents=True)
        os.chown(runtime, box.who.uid, box.who.gid)
    before = set(runtime.glob("ambit-lost-*"))
    box.run("true").ok()
    log_file(box).parent.chmod(0)
    r = box.run("true", options=["-q"]).ok()
    assert r.err.count("the audit log cannot be written") == 1, r
    kept, = set(runtime.glob("ambit-lost-*")) - before
    log_file(box).parent.chmod(0o700)
    assert "2 records could not be written" in verify(box)[1]["notes"][0]
    box.sh(f"rm -f {kept}", options=["-q", "--set", "audit.path=none"])
    assert kept.exists()
    box.run("true").ok()
    assert [x["count"] for x in lost_records(box)] == [2]
    assert not kept.exists()


# --- reading it --------------------------------------------------------------------------

def test_log_for_people(box):
    box.sh("echo x > '/etc/a\x1b[31mb'", options=["-q"])
    r = box.ambit("log").ok()
    assert "\x1b" not in r.out and "denied write /etc/a" in r.out
    assert [line.split()[3] for line in r.out.splitlines()] == ["run-start", "violation", "run-end"]


def test_filters(box):
    box.sh("echo x > /etc/1", options=["-q"])
    box.run("true").ok()
    runs = [x["run"] for x in records(box) if x["event"] == "run-start"]

    def shown(*options):
        return [json.loads(x) for x in box.ambit("log", "--json", *options).ok().out.splitlines()]

    assert shown() == records(box)
    assert [x["event"] for x in shown("--violations")] == ["violation"]
    assert [x["event"] for x in shown("--kind", "write")] == ["violation"]
    assert len(shown("--kind", "run-end")) == 2
    assert {x["run"] for x in shown("--run", runs[1][:5])} == {runs[1]}
    assert len(shown("--since", "1h")) == 5 and shown("--until", "1h") == []
    first = records(box)[0]["timestamp"]
    assert len(shown("--since", first)) == 5
    assert shown("--since", "2099-01-01") == []
    r = box.ambit("log", "--since", "yesterdayish")
    assert r.code == 125 and "is not a time" in r.err
    for none in "2026-13-45", "2026-02-30", "2026-01-31T25:00:00Z":
        assert box.ambit("log", "--since", none).code == 125
    assert box.ambit("log", "verfy").code == 125


def test_no_log_yet(box):
    r = box.ambit("log")
    assert r.code == 125 and "there is no log yet" in r.err


def test_from_its_own_directory(box):
    box.run("true").ok()
    assert len(box.ambit("log", cwd=log_file(box).parent).ok().out.splitlines()) == 2
    r = box.run("true", cwd=log_file(box).parent)
    assert r.code == 125 and "hidden from the command" in r.err


def test_follow_across_files(box):
    small_log(box, maxSize=2000, maxFiles=50)
    box.run("true").ok()
    out = box.home / "followed"
    with out.open("wb") as f:
        p = box.who.popen([AMBIT, "log", "-f", "--json"], cwd=box.ws, env=box.env, stdout=f)
        try:
            assert wait_until(lambda: out.read_text().count("\n") == 2)
            for i in range(15):
                box.run("true", str(i)).ok()
            assert wait_until(lambda: out.read_text().count("\n") == 32)
        finally:
            p.kill()
            p.wait()
    seqs = [json.loads(line)["seq"] for line in out.read_text().splitlines()]
    assert seqs == list(range(1, 33))
    assert len(list(log_file(box).parent.glob("audit.jsonl.0*"))) > 3
    assert verify(box)[1]["records"] == 32


def test_follow_ends_with_its_reader(box):
    box.run("true").ok()
    with box.start(AMBIT, "log", "-f", sandbox=False) as child:
        assert child.process.stdout.readline()
        child.process.stdout.close()
        child.process.wait(timeout=10)


def test_follow_ends_when_the_time_is_over(box):
    """No record can come any more that --until takes: what there is is shown, and that is all."""
    box.run("true").ok()
    r = box.ambit("log", "-f", "--until", "1d", timeout=20).ok()
    assert r.out == ""
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3))
    with box.start(AMBIT, "log", "-f", "--json", "--until", soon, sandbox=False) as child:
        assert child.process.stdout.readline() and child.process.stdout.readline()
        box.run("true").ok()
        assert child.wait(timeout=20).out.count("\n") == 2


def test_old_files_go(box):
    small_log(box, maxSize=1500, maxFiles=3)
    for _ in range(20):
        box.run("true").ok()
    assert len(list(log_file(box).parent.glob("audit.jsonl.0*"))) == 3
    intact, v = verify(box)
    assert intact and v["last"] == 40 and v["first"] > 10


# --- the truth ---------------------------------------------------------------------------

def test_tampering_is_found(box):
    for _ in range(3):
        box.run("true").ok()
    log = log_file(box)
    text = log.read_bytes()
    lines = text.splitlines(keepends=True)
    for what, where, changed in (
            ("changed", 3, text.replace(b'"run-start"', b'"run-st4rt"', 2).replace(b'"run-st4rt"', b'"run-start"', 1)),
            ("missing", 3, b"".join(lines[:2] + lines[3:])),
            ("reordered", 3, b"".join([*lines[:2], lines[3], lines[2], *lines[4:]])),
            ("truncated", 0, b"".join(lines[:4]))):
        log.write_bytes(changed)
        intact, v = verify(box)
        assert not intact, what
        assert (v["problems"][0]["problem"], v["problems"][0]["line"]) == (what, where), v
    r = box.ambit("log", "verify")
    assert r.code == 1 and "NOT INTACT" in r.out and "truncated" in r.out
    log.write_bytes(text)
    assert verify(box)[0]
    # a copy is judged by its own head
    for f in log.parent.glob("audit.jsonl*"):
        copy = box.write(f"copy/{f.name}", f.read_bytes(), 0o600)
    assert verify(box, "--file", str(copy.parent / "audit.jsonl"))[0]


@pytest.mark.parametrize("how", ["removed", "emptied"])
def test_a_cut_end_stays_known_without_the_head(box, how):
    """Whoever goes on writing does not make it whole."""
    for _ in range(4):
        box.run("true").ok()
    log, head = log_file(box), log_file(box).with_name("audit.jsonl.head")
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-2]))
    if how == "removed":
        head.unlink()
    else:
        head.write_bytes(b"")
    assert not verify(box)[0]
    for _ in range(2):
        box.run("true").ok()
        r = box.ambit("log", "verify")
        assert r.code == 1 and "audit.jsonl:7: head: " in r.out and "NOT INTACT" in r.out, r


def test_fifty_at_once(box):
    small_log(box, maxSize=20000, maxFiles=100)
    children = [box.who.popen(box.argv("/bin/sh", "-c", f"echo x > /etc/{i}", options=["-q"]),
                              cwd=box.ws, env=box.env, stderr=subprocess.DEVNULL)
                for i in range(50)]
    for c in children:
        c.wait(120)
    intact, v = verify(box)
    assert intact and v["records"] == 150 and not v["notes"], v
    everything = [json.loads(x) for x in box.ambit("log", "--json").ok().out.splitlines()]
    by_run = {}
    for r in everything:
        by_run.setdefault(r["run"], []).append(r["event"])
    assert len(by_run) == 50
    assert set(map(tuple, by_run.values())) == {("run-start", "violation", "run-end")}


def test_fifty_at_once_half_of_them_killed(box):
    """What the others wrote is all there, in order, whoever was killed in the middle of writing."""
    rng = random.Random(11)
    small_log(box, maxSize=20000, maxFiles=100)
    script = "for i in $(seq 30); do echo x > /etc/$0-$i; done; sleep 0.2"
    children = [box.who.popen(box.argv("/bin/sh", "-c", script, str(i), options=["-q"]), cwd=box.ws,
                              env=box.env, stderr=subprocess.DEVNULL) for i in range(50)]
    for c in rng.sample(children, 25):
        time.sleep(rng.uniform(0, 0.02))
        c.kill()
    ended = sum(c.wait(120) >= 0 for c in children)
    intact, v = verify(box)
    assert {p["problem"] for p in v["problems"]} <= {"torn"}, v
    box.run("true").ok()
    intact, v = verify(box)
    assert intact and not [n for n in v["notes"] if "cut short" not in n], v
    by_run = {}
    for line in box.ambit("log", "--json").ok().out.splitlines():
        r = json.loads(line)
        by_run.setdefault(r.get("run"), []).append(r["event"])
    whole = [events for events in by_run.values() if "run-end" in events]
    assert len(whole) >= ended + 1
    assert all(e[:-1] == ["run-start"] + ["violation"] * (len(e) - 2) for e in whole)
    assert sum(len(e) == 32 for e in whole) >= ended


@pytest.mark.parametrize("many", [100, 1500])
def test_a_supervisor_that_was_stopped_hears_of_every_denial(box, many):
    """Or of how many there were: none is lost without a word."""
    script = ("echo x > /etc/1; echo ready; read x; "  # the broker is there from the first on
              f"for i in $(seq 2 {many}); do echo x > /etc/$i; done; echo done")
    with box.start("/bin/sh", "-c", script, options=["-q", "--report", "report.json"],
                   stderr=subprocess.DEVNULL) as child:
        p = child.process
        assert p.stdout.readline() == b"ready\n"
        p.send_signal(signal.SIGSTOP)
        p.stdin.write(b"go\n")
        p.stdin.flush()
        if many == 100:  # all of them, and the end
            assert p.stdout.readline() == b"done\n"
        else:  # until it has given up waiting
            time.sleep(3)
        p.send_signal(signal.SIGCONT)
        assert child.wait().code == 0
    report = json.loads((box.ws / "report.json").read_text())
    assert len(report["violations"]) + report["violationsNotListed"] == many
    logged = [r["event"] for r in records(box)].count("violation")
    assert logged == len(report["violations"]) and (many > 100 or logged == many)
    assert records(box)[-1].get("recordsLeftOut", 0) == report["violationsNotListed"]
    assert verify(box)[0]


def test_killed_writers(box):
    """kill -9 at any moment: the log stays whole or says what is wrong with its end, and the
    next run goes on from there."""
    rng = random.Random(7)
    seen = set()
    for _ in range(40):
        with box.start("/bin/sh", "-c", "for i in 1 2 3 4 5 6; do echo x > /etc/$i; done",
                       options=["-q"]) as child:
            time.sleep(rng.uniform(0, 0.03))
            child.process.send_signal(signal.SIGKILL)
            child.process.wait()
        r = box.ambit("log", "verify")
        if r.code == 125:
            assert "no log yet" in r.err
            continue
        _, v = verify(box)
        for problem in v["problems"]:
            seen.add(problem["problem"])
    assert seen <= {"torn"}, seen
    box.run("true").ok()
    intact, v = verify(box)
    assert intact, v


def in_small_disk(box, script, options="size=64k"):
    """As this person with a tmpfs of 64 KiB at $HOME/disk, in a mount namespace of its own."""
    box.mkdir("disk")
    ns = ["unshare", "-m"] if box.who.uid == 0 else ["unshare", "-U", "-r", "-m"]
    probe = box.host(*ns, "true")
    if probe.code != 0:
        skip_impossible("no mount namespace: " + probe.err.strip())
    mount = f"mount -t tmpfs -o {options},mode=700 none {box.home}/disk && "
    return box.host(*ns, "sh", "-c", mount + script, timeout=120)


def test_disk_full(box):
    """What does not fit is not written at all, and that is said."""
    log = f"{box.home}/disk/log"
    run = f"{AMBIT} run -q --set audit.path={log} --"
    many = "for i in $(seq 60); do echo x > /etc/$i; done; exit 7"
    script = f"""
        cd {box.ws}
        {run} true || exit 1
        head -c 60000 /dev/zero > {box.home}/disk/fill
        {AMBIT} run --set audit.path={log} -- sh -c '{many}' 2> {box.home}/err; echo "run $?"
        {AMBIT} log --file {log} --json verify; echo "full $?"
        tail -c 1 {log} | od -An -c
        rm {box.home}/disk/fill
        {run} true || exit 1
        {AMBIT} log --file {log} --json verify; echo "after $?"
    """
    r = in_small_disk(box, script)
    assert "run 7" in r.out and "full 0" in r.out and "after 0" in r.out, r
    assert (box.home / "err").read_text().count("the audit log cannot be written") == 1
    # the last line is a whole one: rolled back, not cut
    assert r.out.split("full 0")[1].split("{")[0].strip() == "\\n"


@pytest.mark.parametrize("full", ["space", "inodes", "inodes, from the first"])
def test_disk_full_is_remembered_by_the_next_run(box, full):
    log = f"{box.home}/disk/log"
    run = f"{AMBIT} run -q --set audit.path={log} --set audit.maxSize=700 --"
    fill = f"head -c 60000 /dev/zero > {box.home}/disk/fill"
    if full != "space":
        fill = f"for i in $(seq 12); do touch {box.home}/disk/fill$i; done 2> /dev/null"
    first = "" if full.endswith("first") else f"{run} true || exit 1"
    script = f"""
        cd {box.ws}
        {first}
        {fill}
        {run} true 2> {box.home}/err || exit 1
        {run} sh -c 'echo x > /etc/1' 2>> {box.home}/err
        rm {box.home}/disk/fill*
        {run} true || exit 1
        {AMBIT} log --file {log} --json > {box.home}/copy
        {AMBIT} log --file {log} --json verify; echo "after $?"
    """
    r = in_small_disk(box, script, "size=64k" if full == "space" else "size=1m,nr_inodes=8")
    assert "after 0" in r.out, r
    assert (box.home / "err").read_text().count("the audit log cannot be written") == 2
    all_of_it = records(box, box.home / "copy")
    written = sum(x["event"] not in ("lost", "repair") for x in all_of_it)
    lost = sum(x["count"] for x in all_of_it if x["event"] == "lost")
    assert lost > 0 and written + lost == (9 if first else 7), all_of_it


def test_disk_full_is_remembered(box):
    """One writer that meets a full disk and then room: its next record says what was lost."""
    log = f"{box.home}/disk/log"
    script = f"""
        cd {box.ws}
        {AMBIT} run -q --set audit.path={log} -- true
        head -c 60000 /dev/zero > {box.home}/disk/fill
        {AMBIT} run --set audit.path={log} -- sh -c '
            for i in $(seq 60); do echo x > /etc/$i; done 2>/dev/null
            echo ready; read x; echo y > /etc/last' < {box.home}/go > {box.home}/out 2>/dev/null &
        exec 9> {box.home}/go
        until grep -q ready {box.home}/out; do sleep 0.02; done
        rm {box.home}/disk/fill; echo go >&9; wait
        cat {log} > {box.home}/copy
        {AMBIT} log --file {log} verify
    """
    os.mkfifo(box.home / "go")
    os.chown(box.home / "go", box.who.uid, box.who.gid)
    r = in_small_disk(box, script)
    assert "intact" in r.out and "could not be written: No space left" in r.out, r
    lost = [x for x in records(box, box.home / "copy") if x["event"] == "lost"]
    assert len(lost) == 1 and lost[0]["count"] > 5


def test_questions_without_an_answer(box):
    """A kind that does not exist and a file that is not there are mistakes, not empty logs."""
    box.run("true").ok()
    r = box.ambit("log", "--kind", "wrte")
    assert r.code == 125 and "did you mean write?" in r.err, r
    assert box.ambit("log", "--kind", "write").ok().out == ""
    for words in ((), ("verify",)):
        r = box.ambit("log", *words, "--file", box.home / "none.jsonl")
        assert r.code == 125 and "there is no log" in r.err, r


def test_a_link_is_not_followed(box):
    """And that is what is said, with what to do."""
    box.run("true").ok()
    d = box.mkdir("links", 0o700)
    (d / "log").symlink_to(log_file(box))
    (d / "log.head").symlink_to(log_file(box).with_name("audit.jsonl.head"))
    for words in ((), ("verify",)):
        r = box.ambit("log", *words, "--file", d / "log")
        assert r.code == 125 and "is a symbolic link and is not followed" in r.err, r
        assert "name the file that it leads to" in r.err and "loop" not in r.err, r
    r = box.run("true", options=["--set", f"audit.path={d}/log"]).ok()
    assert "is a symbolic link and is not followed" in r.err, r
    assert len(records(box)) == 2
