# SPDX-License-Identifier: Apache-2.0
"""The drop-in for sandbox-runtime.

Every case of srt_cases.py with our srt: what the published one answers is written down in
srt_answers.json. test_published() asks it anew, where it can be installed.
"""
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import srt_compare
from ambit_test import AMBIT, TREE, skip_impossible, who, whos

sys.modules.setdefault("srt_compare", srt_compare)
import srt_cases  # noqa: E402,F401 (fills CASES)

SRT = AMBIT.with_name("srt")
ANSWERS = json.loads(srt_compare.ANSWERS.read_text())["answers"]
LEAST = 60
# modes of files do not stop root
NOT_FOR_ROOT = {"settings_unusable"}
# an address that only root can add
ONLY_AS_ROOT = {"without_the_proxy"}


def ask_ours(person):
    """The answers of ours to all cases, from one process, which as root has a world of its own."""
    script = (f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
              f"import json, os, pwd, shutil, tempfile, srt_compare as c, srt_cases\n"
              f"c.own_world()\n"
              f"base = tempfile.mkdtemp(prefix='ambit-srt.', dir=c.base_dir()); os.chmod(base, 0o755)\n"
              f"with c.serving() as port:\n"
              f"  for name, function, expected in c.CASES:\n"
              f"    print(json.dumps([name, c.answer(function, [{str(SRT)!r}], pwd.getpwuid({person.uid}), base, port)]), flush=True)\n"
              f"shutil.rmtree(base, ignore_errors=True)\n")
    r = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, timeout=1200)
    assert r.returncode == 0, r.stderr
    return dict(json.loads(line) for line in r.stdout.splitlines())


@pytest.fixture(scope="module", params=whos())
def ours(request):
    return request.param, ask_ours(who(request.param))


@pytest.mark.parametrize("name", [c[0] for c in srt_compare.CASES])
def test_case(ours, name):
    person, answers = ours
    if person == "root" and name in NOT_FOR_ROOT:
        return
    if os.geteuid() != 0 and name in ONLY_AS_ROOT:
        skip_impossible("only root can add the address that is asked for")
    expected = next(c[2] for c in srt_compare.CASES if c[0] == name)
    problem = srt_compare.judge(expected, ANSWERS[name], answers[name])
    assert not problem, problem


def test_enough_cases():
    assert len(srt_compare.CASES) >= LEAST
    assert sorted(ANSWERS) == sorted(c[0] for c in srt_compare.CASES), "srt_compare.py --record is due"


def test_differences_are_documented():
    """docs/SRT.md has the table that srt_compare.py --table prints, row by row."""
    text = (TREE / "docs/SRT.md").read_text()
    r = subprocess.run([sys.executable, "-B", srt_compare.__file__, "--table"], capture_output=True, text=True, check=True)
    missing = [row for row in r.stdout.splitlines() if row not in text]
    assert not missing, "\n".join(missing)


def test_behaviours_have_their_tests():
    """The table of sandbox-runtime's own tests names cases and files that exist."""
    text = (TREE / "docs/SRT.md").read_text().split("### What its own tests are about")[1].split("\n## ")[0]
    rows = [line.split("|")[2] for line in text.splitlines() if line.startswith("| ") and "---" not in line][1:]
    cases = {c[0] for c in srt_compare.CASES}
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    files = {path for row in rows for path in re.findall(r"\w+/\w+\.(?:py|c)", row)}
    assert len(rows) > 10 and named <= cases, named - cases
    assert all((TREE / "tests" / f).exists() for f in files), files


def test_published():
    """The published srt still answers what is written down, and ours what is expected: of some cases,
    as it takes a second for each. All of them: srt_compare.py."""
    if os.geteuid() != 0:
        skip_impossible("only root can give the published one a network and a /tmp of its own")
    r = subprocess.run([sys.executable, "-B", srt_compare.__file__, "--json", "--every", "5"], capture_output=True, text=True,
                       env={**os.environ, "AMBIT_BIN": str(AMBIT)}, timeout=1800)
    results = json.loads(r.stdout.splitlines()[-1]) if r.stdout else pytest.fail(r.stderr)
    if isinstance(results, dict):
        skip_impossible(results["impossible"])
    wrong = [f"{c['name']}:\n{c['wrong']}" for c in results if c["wrong"]]
    assert not wrong and len(results) * 5 >= LEAST, "\n".join(wrong)


# --- ours alone -----------------------------------------------------------------------------

def settings(box, **filesystem):
    box.write(".srt-settings.json", json.dumps({
        "network": {"allowedDomains": [], "deniedDomains": []},
        "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": [], **filesystem}}))


def srt(box, *args, env=None, **kw):
    return box.execute([SRT, *args], env={"CLAUDE_TMPDIR": str(box.home / "tmp"), **(env or {})}, **kw)


def test_own_settings_do_not_count(box):
    """ambit's own user and project files are not srt's."""
    box.write(".config/ambit/settings.json", json.dumps({"filesystem": {"allowWrite": ["~"]}}))
    box.write("ws/.ambit.json", json.dumps({"filesystem": {"denyRead": ["x"]}}))
    box.write("ws/x", "text")
    assert srt(box, "touch", box.home / "f").code != 0
    assert srt(box, "cat", "x").out == "text"
    r = srt(box, "true", env={"AMBIT_NO_SANDBOX": "1", "AMBIT_BACKEND": "none"})
    assert r.code == 0 and "NO SANDBOX" not in r.err, str(r)


def test_named_names_stay_protected(box):
    """With sandbox-runtime no entry of allowWrite opens what it always denies; with us it would."""
    box.write("ws/.vscode/x", "x")
    settings(box, allowWrite=[".", ".vscode"])
    assert srt(box, "-c", "echo y > f; echo y > .vscode/x").code and (box.ws / "f").exists()
    assert (box.ws / ".vscode/x").read_text() == "x"


def test_foreign_tmp_is_not_used(box):
    """/tmp/claude of somebody else, or a link, is neither written to nor trusted."""
    if os.geteuid() != 0:
        skip_impossible("only root can give the test a /tmp of its own")
    own = f"/tmp/claude-{box.who.uid}"
    for foreign in ("ln -s /etc /tmp/claude", "mkdir -m 1777 /tmp/claude", "mkdir /tmp/claude; chown 12345 /tmp/claude"):
        script = (f"mount --make-rprivate / && mount -t tmpfs -o mode=1777 tmpfs /tmp && {{ {foreign}; }} && "
                  f"exec setpriv --reuid {box.who.uid} --regid {box.who.gid} --clear-groups "
                  f"{SRT} -c 'echo $TMPDIR; mktemp; stat -c %a $TMPDIR; ls /tmp/claude | wc -l'")
        r = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=box.ws, env=box.env, capture_output=True, text=True)
        lines = r.stdout.splitlines()
        assert r.returncode == 0 and lines[0] == own and lines[1].startswith(own + "/") and lines[2] == "700", str(r)


def test_given_tmp_is_made(box):
    r = srt(box, "-c", "mktemp", env={"CLAUDE_TMPDIR": str(box.home / "t")}).ok()
    assert r.out.startswith(f"{box.home}/t/")
    box.write("file")
    r = srt(box, "-c", "true", env={"CLAUDE_TMPDIR": str(box.home / "file")})
    assert r.code == 1 and r.err.startswith("Error: ") and "no directory" in r.err, str(r)


def test_denials_have_no_hints_at_our_options(box):
    r = srt(box, "-c", ": > /etc/nope")
    assert "srt: denied write to /etc/nope" in r.err and "--allow" not in r.err, str(r)


def test_errors_name_the_place(box):
    settings(box, denyRead=["~/a", 3])
    r = srt(box, "true")
    assert r.code == 1 and ".srt-settings.json does not hold a valid config" in r.err, str(r)
    assert ":1:" in r.err and "filesystem.denyRead" in r.err, str(r)


def test_subcommands_are_refused(box):
    for word in ("proxy", "windows-install", "windows-uninstall"):
        r = srt(box, word, "x")
        assert r.code == 1 and word in r.err, str(r)


def test_link_of_any_path(box):
    """The name decides, wherever the link lies; profiles and the proxy are found all the same."""
    link = box.home / "bin/srt"
    box.mkdir("bin")
    link.symlink_to(AMBIT)
    r = box.execute([link, "-c", "curl -s -o /dev/null -w '%{http_code}' http://denied.example/"],
                    env={"CLAUDE_TMPDIR": str(box.home / "tmp")})
    assert r.out == "403", str(r)


def test_killed_while_starting(box):
    """Whenever it dies, nothing is left."""
    settings(box, allowWrite=["."])
    for delay in (0.001, 0.005, 0.02):
        p = box.who.popen([SRT, "-c", "echo x > f; sleep 60"], cwd=box.ws,
                          env={**box.env, "CLAUDE_TMPDIR": str(box.home / "tmp")})
        time.sleep(delay)
        p.kill()
        p.wait()
    time.sleep(0.3)
    mark = f"HOME={box.home}\0".encode()
    left = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes():
                left.append(Path(f"/proc/{pid}/cmdline").read_bytes())
        except OSError:
            pass
    assert not left and sorted(os.listdir(box.ws)) in ([], ["f"])
