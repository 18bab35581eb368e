# SPDX-License-Identifier: Apache-2.0
"""What of the file system is seen and can be changed from inside, and that nothing is left in it."""
import json
import os
import stat
import subprocess
import tempfile

import pytest

from ambit_test import AMBIT, skip_impossible

GIT_ENV = {"GIT_CONFIG_NOSYSTEM": "1"}


def snapshot(top):
    """Every object below, with what a stray mount point or temporary file would change. What
    ambit keeps for itself in ~/.local/state is left out."""
    seen = {}
    for dirpath, dirs, files in os.walk(os.fsencode(top)):
        if dirpath == os.fsencode(top) and b".local" in dirs:
            dirs.remove(b".local")
        for name in [b".", *dirs, *files]:
            path = os.path.join(dirpath, name)
            st = os.lstat(path)
            if name == b"." and dirpath == os.fsencode(top):
                continue
            content = open(path, "rb").read() if stat.S_ISREG(st.st_mode) else None
            seen[path] = (st.st_mode, st.st_uid, st.st_gid, st.st_ino, st.st_size, st.st_mtime_ns, content)
    return seen


def attempt(box, *scripts, **kw):
    """Which of the scripts succeed, in one run."""
    text = "".join(f"({s}) >/dev/null 2>&1 && echo yes || echo no\n" for s in scripts)
    return box.sh(text, **kw).ok().out.split()


# --- rules ------------------------------------------------------------------------------------

def test_defaults(box):
    box.write("file", "text")
    box.write(".ssh/id_ed25519", "secret", mode=0o600)
    box.write(".netrc", "secret")
    box.write(".config/gh/hosts.yml", "secret")
    assert attempt(
        box, "cat ../file", "touch new", "mkdir d && mv d e && rmdir e", "touch ../file",
        "rm -f ../file", "cat ../.ssh/id_ed25519", "ls ../.ssh | grep .", "cat ../.netrc",
        "cat ../.config/gh/hosts.yml", "touch ../.ssh/x", "touch /etc/x", "touch /usr/x",
        "touch /x", "cat /etc/shadow", "chmod 777 ../file", "touch -d 2000-01-01 ../file",
        "ln ../file hard && echo x >>hard", "mv ../file .") == [
        "yes", "yes", "yes"] + ["no"] * 15
    assert (box.home / "file").read_text() == "text"


def test_project_secrets(box):
    box.write("ws/.env", "KEY=1")
    assert attempt(box, "echo x >>.env", "rm .env", "mv .env a", "touch src.c") == ["no", "no", "no", "yes"]
    assert (box.ws / ".env").read_text() == "KEY=1"


@pytest.mark.parametrize("backend", [None, "landlock"])
def test_protected_place_that_a_rule_names(box, backend):
    """allowWrite that names a protected place, or what is in one, lifts it there and nowhere else."""
    for name in ("a/.vscode/s.json", ".vscode/tasks.json", ".vscode/other", ".vscode/sub/x", "b/x", ".env",
                 ".git/hooks/x", ".git/info/attributes", ".git/refs/x", ".git/objects/x"):
        box.write(f"ws/{name}", "x")
    named = ["a/.vscode", ".vscode/tasks.json", ".vscode/sub", ".env", ".git/hooks", ".git/info/attributes"]
    options = ["--backend", backend] if backend else []
    open_ = ["a/.vscode/s.json", "a/.vscode/new", "a/.vscode/d/new", ".vscode/tasks.json", ".vscode/sub/new",
             ".env"]
    shut = ["a/.vscode/.envrc", ".vscode/other", ".vscode/new", "b/.vscode/x", "b/.env", ".git/hooks/x",
            ".git/hooks/new", ".git/info/attributes"]
    tries = [f"mkdir -p $(dirname {f}); echo y >{f}" for f in open_ + shut]
    assert attempt(box, *tries, options=options) == ["no"] * len(tries), "the control run failed"
    options += [word for name in named for word in ("--allow-write", name)]
    assert attempt(box, *tries, options=options) == ["yes"] * len(open_) + ["no"] * len(shut)
    for name in open_ + shut:
        r = box.ambit("explain", "--json", *options, "write", name)
        answer = json.loads(r.out)
        assert (answer["verdict"] == "allowed") == (name in open_), r
        if name in open_:
            assert (answer["rule"], answer["source"]) == ("filesystem.allowWrite", "--allow-write"), r
            assert name.startswith(answer["entry"]), r
            continue
        # what it advises for the others helps, for git's own too
        hint = answer["hint"].split()
        assert json.loads(box.ambit("explain", "--json", *options, *hint, "write", name).out)["verdict"] == "allowed", r
        assert attempt(box, f"mkdir -p $(dirname {name}); echo y >{name}", options=options + hint) == ["yes"], r


def test_named_protected_place_cannot_be_moved(box):
    """What was written there must not get to where the name is not lifted."""
    box.write("ws/a/.vscode/s.json", "x")
    box.write("ws/b/x", "x")
    assert attempt(box, "echo evil >a/.vscode/s.json", "mv a c", "mv -T a/.vscode b/.vscode",
                   "mv -T a/.vscode/s.json b/.env", "ln a/.vscode/s.json b/.env", "rmdir a/.vscode",
                   "mv b/x a/.vscode/ && mkdir -p a/.vscode",
                   options=["--allow-write", "a/.vscode"]) == ["yes"] + ["no"] * 5 + ["yes"]
    assert not (box.ws / "b/.vscode").exists() and not (box.ws / "b/.env").exists()


def test_deny_in_allow(box):
    box.write("ws/keep/deep/file", "x")
    box.write("ws/secret/file", "x")
    box.write("ws/one.txt", "x")
    options = ["--deny-write", "keep", "--deny-read", "secret", "--deny-write", "one.txt"]
    assert attempt(
        box, "cat keep/deep/file one.txt", "touch new", "touch keep/x", "rm keep/deep/file",
        "mv keep gone", "rm -rf keep", "cat secret/file", "touch secret/x", "mv secret open",
        "echo y >one.txt", "rm one.txt", "mv one.txt two.txt", "mv new one.txt", "ln one.txt l",
        options=options) == ["yes", "yes"] + ["no"] * 12
    assert (box.ws / "keep/deep/file").exists() and (box.ws / "one.txt").read_text() == "x"


def test_ancestors_of_a_rule_cannot_be_moved_away(box):
    """Renaming a parent of a protected path and making a new one in its place."""
    box.write("ws/a/b/c/keep", "x")
    assert attempt(box, "mv a z", "mv a/b a/z", "mv a/b/c a/z", "rm -rf a", "echo y >a/b/c/keep",
                   "touch a/b/new", options=["--deny-write", "a/b/c/keep"]) == ["no"] * 5 + ["yes"]
    assert (box.ws / "a/b/c/keep").read_text() == "x"


def test_allow_in_deny(box):
    box.write("data/public/file", "x")
    box.write("data/public/deep/file", "x")
    box.write("data/file", "x")
    box.mkdir("data/in")
    options = ["--deny-read", "~/data", "--allow-read", "~/data/public", "--allow-write", "~/data/in",
               "--deny-read", "~/data/public/deep"]
    assert attempt(
        box, "cat ~/data/public/file", "touch ~/data/in/x", "cat ~/data/file", "touch ~/data/x",
        "touch ~/data/public/x", "cat ~/data/public/deep/file", "touch ~/data/public/deep/x",
        options=options) == ["yes", "yes", "no", "no", "no", "no", "no"]
    r = box.sh("ls ~/data", options=options).ok()
    assert r.out.split() == ["in", "public"], "a hidden directory shows nothing but what is allowed"
    assert (box.home / "data/in/x").exists()


def test_deep_nesting(box):
    path, options = "n", []
    for i in range(12):
        path += f"/{i}"
        box.write(f"ws/{path}/file", str(i))
        options += ["--deny-read" if i % 2 else "--allow-write", path]
    r = box.sh("find n -name file -exec cat {} \\; -exec echo \\; -exec sh -c 'echo + >>$1' - {} \\;",
               options=options)
    assert sorted(map(int, r.out.split())) == list(range(0, 12, 2)), str(r)
    path = "n"
    for i in range(12):
        path += f"/{i}"
        text = (box.ws / path / "file").read_text()
        assert text == (f"{i}+\n" if i % 2 == 0 else str(i)), path


def test_globs(box):
    for name in ("a.key", "sub/b.key", "sub/deep/c.key", "sub/b.txt", "[x].key", "out-1/f", "out-2/f"):
        box.write(f"ws/{name}", "x")
    box.write("log-1/f", "x")
    options = ["--deny-read", "**/*.key", "--deny-write", "out-?", "--allow-write", "~/log-*"]
    assert attempt(box, "cat sub/b.txt", "touch ~/log-1/new", "cat a.key", "cat sub/b.key",
                   "cat sub/deep/c.key", "cat '[x].key'", "touch out-1/new", "rm out-2/f", "mv out-1 x",
                   options=options) == ["yes", "yes"] + ["no"] * 7


def test_literal_pattern_characters(plain):
    plain.write("ws/a[1]", "x")
    plain.write("ws/a1", "x")
    assert attempt(plain, "cat a1", "cat 'a[1]'", options=["--deny-read", "a\\[1]"]) == ["yes", "no"]
    plain.write("s.json", json.dumps({"filesystem": {"denyRead": [{"path": "a[1]", "literal": True}]}}))
    assert attempt(plain, "cat a1", "cat 'a[1]'", options=["-s", "../s.json"]) == ["yes", "no"]


def test_file_rules(box):
    box.write("one", "1")
    box.write("two", "2")
    options = ["--allow-write", "~/one", "--deny-read", "~/two"]
    assert attempt(box, "echo x >>~/one", "cat ~/two", "echo x >>~/two", "rm ~/one", "touch ~/three",
                   options=options) == ["yes", "no", "no", "no", "no"]
    assert (box.home / "one").read_text() == "1x\n" and (box.home / "two").read_text() == "2"


def test_rules_on_links(box):
    """A rule on a link is about what it points to, and the way through the link is shut too."""
    box.write("vault/key", "x")
    os.symlink(box.home / "vault", box.home / "keys")
    os.symlink("../vault/key", box.ws / "link")
    assert attempt(box, "cat ~/keys/key", "cat ~/vault/key", "cat link",
                   options=["--deny-read", "~/keys"]) == ["no"] * 3
    assert attempt(box, "touch ~/vault/x", options=["--allow-write", "~/keys"]) == ["yes"]
    # a link in a writable directory does not make writable what it points to
    assert attempt(box, "echo x >>link", "rm link") == ["no", "yes"]
    assert (box.home / "vault/key").read_text() == "x"


def test_hidden_default_behind_a_link(box):
    """~/.ssh that is a link to somewhere else is hidden there as well."""
    box.write("dotfiles/ssh/id", "x")
    os.symlink("dotfiles/ssh", box.home / ".ssh")
    assert attempt(box, "cat ~/.ssh/id", "cat ~/dotfiles/ssh/id") == ["no", "no"]


def test_missing_write_directory_is_made(box):
    r = box.sh("touch ~/fresh/x", options=["--allow-write", "~/fresh"]).ok()
    st = (box.home / "fresh").stat()
    assert (box.home / "fresh/x").exists() and (st.st_uid, st.st_gid) == (box.who.uid, box.who.gid), str(r)
    r = box.run("touch", "canary", options=["--allow-write", "~/no/such/parent"])
    assert r.code == 125 and "no/such/parent" in r.err and not (box.ws / "canary").exists(), str(r)


@pytest.mark.parametrize("place,made", [("~/.cache/tool", True), ("~/.local/share/tool", True), ("~/new", True),
                                        ("~/.cache/tool/deep", False), ("~/no/parent", False)])
def test_plan_knows_which_directories_are_made(box, place, made):
    """What programs share is made on the way, and `ambit plan`, which makes nothing, says the same."""
    options = ["--allow-write", place]
    assert (box.ambit("plan", *options, "--", "true").code == 0) == made
    path = box.home / place[2:]
    assert not path.exists()
    assert (box.run("true", options=options).code == 0) == made and path.exists() == made


def test_missing_path_that_must_not_be_made(box):
    """denyWrite of what does not exist yet holds; nothing stands in its place meanwhile."""
    options = ["--deny-write", "later", "--deny-write", "sub/*.lock"]
    assert attempt(box, "test ! -e later", "touch later", "mkdir later", "ln -s x later", "mkdir sub && touch sub/a",
                   "mv sub/a later", "touch sub/b.lock", "mv sub/a sub/c.lock", "ln sub/a later", "mkfifo later",
                   options=options) == ["yes", "no", "no", "no", "yes", "no", "no", "no", "no", "no"]
    assert sorted(os.listdir(box.ws)) == ["sub"] and os.listdir(box.ws / "sub") == ["a"]


@pytest.mark.parametrize("setting", ["filesystem.protect=anchors", "filesystem.bulk=sub"])
def test_missing_path_in_a_directory_that_is_not_watched(box, setting):
    """Where files are made directly, a rule about one that does not exist is held or refused."""
    box.mkdir("ws/sub")
    r = box.sh("touch sub/later; touch sub/other", options=["--set", setting, "--deny-write", "sub/later"])
    assert not (box.ws / "sub/later").exists(), str(r)
    assert r.code == 125 or (box.ws / "sub/other").exists(), str(r)


def test_denied_link_stays(box):
    """denyWrite of a link: neither what it points to nor the link itself changes."""
    box.mkdir("ws/v1")
    box.mkdir("ws/v2")
    os.symlink("v1", box.ws / "current")
    # (that it can be removed, but not made again, is told in docs/THREATS.md)
    assert attempt(box, "touch current/x", "touch v1/x", "ln -sfn v2 current", "mv current c",
                   "rm current && ln -s v2 current", options=["--deny-write", "current"]) == ["no"] * 5
    assert not os.path.lexists(box.ws / "current") and os.listdir(box.ws / "v1") == []


@pytest.mark.parametrize("option", ["--allow-write", "--allow-read"])
def test_planted_link_opens_nothing(box, option):
    """A directory of the project that is named in a rule, made a link by an earlier run."""
    box.write(".ssh/id", "secret")
    box.mkdir("ws/dist")
    box.sh("rmdir dist").ok()
    box.sh("ln -s ../.ssh dist").ok()  # in the next run the place is free
    r = box.sh("cat dist/id; touch dist/x", options=[option, "dist"])
    assert "secret" not in r.out and os.listdir(box.home / ".ssh") == ["id"], str(r)


def test_planted_link_lifts_no_name(box):
    """The same to a protected name of the project: only its own path lifts it, or opens what is in it."""
    box.write("ws/.vscode/sub/x", "x")
    for target in (".vscode", ".vscode/sub"):
        box.sh(f"ln -sfn {target} dist").ok()
        r = box.sh("echo evil > .vscode/sub/x; touch canary", options=["--allow-write", "dist"])
        assert r.code == 125 and f"leads to {box.ws / target} through a symbolic link" in r.err, str(r)
        assert (box.ws / ".vscode/sub/x").read_text() == "x" and not (box.ws / "canary").exists()
        box.sh("echo y > .vscode/sub/x", options=["--allow-write", target]).ok()
        box.write("ws/.vscode/sub/x", "x")


def test_write_directory_that_cannot_be_made(plain):
    r = plain.run("touch", "canary", options=["--allow-write", "/usr/ambit-test-none"])
    assert r.code == 125 and not (plain.ws / "canary").exists(), str(r)
    assert not os.path.exists("/usr/ambit-test-none")


def test_refused_run_makes_nothing(plain):
    """A policy that is refused in the end must not have made its directories before."""
    r = plain.run("true", options=["--allow-write", "~/fresh", "--allow-write", "/no/such/parent"])
    assert r.code == 125 and not (plain.home / "fresh").exists(), str(r)


def test_deny_everything(box):
    """denyRead / with the few things that programs need."""
    box.write("file", "x")
    options = ["--deny-read", "/"]
    for path in ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache"):
        if os.path.exists(path):
            options += ["--allow-read", path]
    script = "cat /etc/passwd ~/file; ls -A /etc /home /root /var /opt; ls ..; cat here; echo w >here"
    box.write("ws/here", "y")
    r = box.run("/bin/sh", "-c", script, options=options)
    # of the hidden directories nothing shows but the way to what is allowed
    names = [w for w in r.out.split() if not w.endswith(":")]
    assert set(names) <= {"y", "ws", "ld.so.cache", "tmp", *box.home.parts} and "y" in names, str(r)
    assert (box.ws / "here").read_text() == "w\n"


# --- places of the sandbox's own ----------------------------------------------------------------

def test_private_tmp(box):
    mark = f"/tmp/ambit-test-{os.getpid()}"
    with open(mark, "w") as f:
        f.write("x")
    try:
        r = box.sh(f'test ! -e {mark} && echo "$TMPDIR" && f=$(mktemp) && echo ok >$f && cat $f && '
                   'd=$(mktemp -d) && ls -A /tmp | wc -l && touch /var/tmp/x && stat -c %a /tmp /var/tmp '
                   '&& test -w "$TMPDIR" && cp /bin/true "$d/t" && "$d/t" && echo executable').ok()
        assert r.out == "/tmp\nok\n2\n1777\n1777\nexecutable\n", str(r)
    finally:
        os.unlink(mark)
    assert not os.path.exists("/var/tmp/x")
    assert attempt(box, "ls -A /tmp | grep .") == ["no"], "the next one starts empty"


def test_shared_tmp(box):
    """The host's /tmp: seen, writable, and TMPDIR works."""
    mark = f"/tmp/ambit-test-{os.getpid()}"
    with open(mark, "w") as f:
        f.write("shared")
    made = ""
    try:
        r = box.sh(f'cat {mark}; mktemp "${{TMPDIR:-/tmp}}/ambit-test-XXXXXX"', options=["--tmp", "shared"])
        made = r.out.removeprefix("shared").strip()
        assert r.code == 0 and r.out.startswith("shared") and os.path.exists(made), str(r)
    finally:
        for path in (mark, made):
            if path and os.path.exists(path):
                os.unlink(path)


def test_started_in_tmp(plain):
    """The private /tmp takes the place of the working directory: that must not go unsaid."""
    name = f"ambit-test-{os.getpid()}"
    r = plain.sh(f"touch {name}", cwd="/tmp")
    lost = not os.path.exists(f"/tmp/{name}")
    if not lost:
        os.unlink(f"/tmp/{name}")
    assert not lost or "/tmp" in r.err, f"the file is lost without a word: {r}"


@pytest.fixture
def in_tmp(box, tmp_path_factory):
    top = subprocess.run(["mktemp", "-d", "/tmp/ambit-test.XXXXXX"], capture_output=True, text=True).stdout.strip()
    os.chmod(top, 0o755)
    os.mkdir(f"{top}/project")
    with open(f"{top}/other", "w") as f:
        f.write("x")
    for path in (top, f"{top}/project", f"{top}/other"):
        os.chown(path, box.who.uid, box.who.gid)
    yield top
    subprocess.run(["rm", "-rf", top])


def test_project_in_tmp(box, in_tmp):
    r = box.sh('pwd; touch made && echo "$TMPDIR" && mktemp >/dev/null && ls /tmp/*/; cat ../other',
               cwd=f"{in_tmp}/project")
    assert r.out.split("\n")[:2] == [f"{in_tmp}/project", "/tmp"], str(r)
    assert os.path.exists(f"{in_tmp}/project/made")
    assert r.code != 0 and "other" not in r.out, "neighbours in /tmp are not seen"
    assert sorted(os.listdir(in_tmp)) == ["other", "project"]


def test_private_home(box):
    box.write("file", "x")
    box.write("tools/t", "x")
    box.write("ws/a", "x")
    r = box.sh("ls -A ~; cat a; echo 1 >~/.cache-file; mkdir -p ~/.config/x; touch b; cat ~/tools/t",
               options=["--home", "private", "--allow-read", "~/tools"]).ok()
    assert sorted(r.out.split()) == ["tools", "ws", "x", "x"] or r.out == "tools\nws\nxx", str(r)
    assert set(os.listdir(box.home)) - {".local"} == {"file", "tools", "ws"}, "what is made there is gone"
    assert (box.ws / "b").exists()


def test_private_home_from_elsewhere(box):
    """The home is empty, and the project lies outside of it."""
    (box.home.parent / f"{box.home.name}-p").mkdir()
    other = box.home.parent / f"{box.home.name}-p"
    os.chown(other, box.who.uid, box.who.gid)
    box.write("file", "x")
    r = box.sh("ls -A ~; touch here ~/x && pwd", options=["--home", "private"], cwd=other).ok()
    assert r.out == f"{other}\n" and (other / "here").exists() and not (box.home / "x").exists(), str(r)


def test_home_that_is_a_link(plain):
    os.symlink(plain.home, plain.home.parent / "link-home")
    try:
        plain.write(".ssh/id", "x")
        env = {"HOME": str(plain.home.parent / "link-home")}
        assert attempt(plain, "cat ~/.ssh/id", f"cat {plain.home}/.ssh/id", "touch x", env=env) == ["no", "no", "yes"]
    finally:
        os.unlink(plain.home.parent / "link-home")


def test_own_dev(box):
    r = box.sh("ls /dev | sort | tr '\\n' ' '; echo x >/dev/null; head -c 4 /dev/zero | wc -c;"
               "head -c 8 /dev/urandom | wc -c; echo y >/dev/full || echo full; echo z >/dev/stderr;"
               "touch /dev/shm/x && ls /dev/shm; exec 3<>/dev/ptmx && echo ptmx").ok()
    assert r.out.split()[-6:] == ["4", "8", "full", "x", "ptmx"][-6:] or "full" in r.out, str(r)
    names = r.out.split("\n")[0].split()
    assert {"null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "shm", "pts", "ptmx"} <= set(names)
    for bad in ("sda", "vda", "mem", "kmsg", "loop0", "fuse", "kvm", "net"):
        assert bad not in names
    assert "ptmx\n" in r.out and not os.path.exists("/dev/shm/x")


def test_own_proc(box):
    r = box.sh("echo $$; ls -d /proc/[0-9]* | wc -l; cat /proc/self/status | grep -c ^Name").ok()
    assert r.out.split()[0] == "2" and int(r.out.split()[1]) <= 6, str(r)


def test_dev_fd_and_process_substitution(plain):
    r = plain.ambit("run", "-c", "cat <(echo one) <(echo two); echo three > >(cat); wait $!").ok()
    assert r.out == "one\ntwo\nthree\n", str(r)


# --- names -----------------------------------------------------------------------------------------

ODD = [b"two words", b" lead", b"new\nline", "übung ☃".encode(), b"-rf", b"--", b"\xff\xfe", b"a\\b",
       b"q'uote", b'd"quote', b"$HOME", b"*", b"[", b"a\tb", b"\x01", b"x" * 255, b"...", b"#", b"~"]


@pytest.mark.parametrize("name", ODD, ids=lambda n: repr(n[:12]))
def test_odd_working_directory(plain, name):
    path = os.path.join(os.fsencode(plain.ws), name)
    os.mkdir(path)
    os.chown(path, plain.who.uid, plain.who.gid)
    r = plain.execute(plain.argv("sh", "-c", "pwd; echo x >made && cat made && rm made"), cwd=path)
    assert r.code == 0 and os.fsencode(r.out) == path + b"\nx\n", str(r)
    assert os.listdir(path) == []


def test_odd_names_in_rules(plain):
    names = [n for n in ODD if n != b"..."]
    options = []
    for name in names:
        path = os.path.join(os.fsencode(plain.ws), name)
        with open(path, "wb") as f:
            f.write(b"x")
        os.chown(path, plain.who.uid, plain.who.gid)
        text = b"".join(b"\\" + bytes([c]) if c in b"*?[\\" else bytes([c]) for c in name)
        options += [b"--deny-read", os.path.join(os.fsencode(plain.ws), text)]
    argv = [os.fsencode(AMBIT), b"run", *options, b"--", b"sh", b"-c",
            b'for f in "$@"; do cat "./$f" 2>/dev/null && echo "readable: $f"; done; :', b"sh", *names]
    p = plain.who.popen(argv, cwd=plain.ws, env=plain.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = p.communicate(timeout=120)
    assert p.returncode == 0 and out == b"", (out, err)


def test_files_with_odd_names(plain):
    """Made inside, seen outside, byte for byte."""
    script = "import os, sys\nfor n in eval(sys.argv[1]): open(b'./' + n, 'wb').close()"
    plain.run("/usr/bin/python3", "-c", script, repr(ODD)).ok()
    assert sorted(os.listdir(os.fsencode(plain.ws))) == sorted(ODD)


def test_working_directory_through_a_link(box):
    os.symlink("ws", box.home / "link")
    r = box.host("bash", "-c", f'cd ~/link && exec "{AMBIT}" run -- '
                 'bash -c "pwd; /bin/pwd -P; touch x && cd .. && ls"')
    lines = r.ok().out.split("\n")
    assert lines[1] == str(box.ws) and (box.ws / "x").exists() and "ws" in lines, str(r)


def test_long_path(plain):
    path = plain.ws
    while len(str(path)) < 3500:
        path = path / ("d" * 200)
    path.mkdir(parents=True)
    for p in [*path.parents, path]:
        if p.is_relative_to(plain.ws):
            os.chown(p, plain.who.uid, plain.who.gid)
    r = plain.sh("touch x && pwd | wc -c", cwd=path)
    assert r.code == 0 and r.out == f"{len(str(path)) + 1}\n", str(r)


# --- what is written, and what is left ----------------------------------------------------------------

def test_owner_and_mode(box):
    r = box.host("sh", "-c", f'umask 027; exec "{AMBIT}" run -- sh -c "umask; : >file; mkdir dir; id -u; id -g"').ok()
    assert r.out == f"0027\n{box.who.uid}\n{box.who.gid}\n", str(r)
    for name, mode in (("file", 0o640), ("dir", 0o750)):
        st = (box.ws / name).stat()
        assert (stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid) == (mode, box.who.uid, box.who.gid)


def test_ordinary_operations(box):
    """What editors, build tools and package managers do to files."""
    r = box.sh("set -e\n"
               "echo a >f; chmod 600 f; chmod u+x f; touch -d 2020-01-01 f; truncate -s 10 f; ln f g; ln -s f l\n"
               "readlink l; cp -a f h; mv h i; mkdir -p a/b/c; mv a x; rm -r x; mkfifo p; rm p\n"
               "echo new >f.tmp; mv f.tmp f; cat f; install -m 755 f prog\n"
               "dd if=/dev/zero of=big bs=1k count=64 2>/dev/null; sync f; stat -c %s big\n"
               "cp -r --reflink=auto . /tmp/copy; ls /tmp/copy | wc -l; sed -i s/new/old/ f; cat f").ok()
    assert r.out.split() == ["f", "new", "65536", "6", "old"], str(r)


def test_locks_mmap_and_events(plain):
    code = """
import fcntl, mmap, os, socket, select, threading
f = open("f", "w+b"); f.write(b"x" * 8192); f.flush()
fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX)
m = mmap.mmap(f.fileno(), 8192); m[0:3] = b"abc"; m.flush(); m.close()
a, b = socket.socketpair(); a.send(b"hi"); assert b.recv(2) == b"hi"
s = socket.socket(socket.AF_UNIX); s.bind("sock"); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect("sock"); c.send(b"y"); assert s.accept()[0].recv(1) == b"y"
e = select.epoll(); e.register(a, select.EPOLLIN); b.send(b"z"); assert e.poll(1)
t = threading.Thread(target=lambda: os.mkdir("t")); t.start(); t.join()
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen()
k = socket.create_connection(l.getsockname()); k.send(b"q"); assert l.accept()[0].recv(1) == b"q"
print(open("f", "rb").read(3), os.path.isdir("t"))
"""
    r = plain.run("/usr/bin/python3", "-c", code).ok()
    assert r.out == "b'abc' True\n", str(r)


def test_nothing_is_left_in_the_tree(box):
    box.write("ws/a/b/file", "x")
    box.write("ws/.git/hooks/pre-commit", "x")
    box.write("ws/.git/config", "x")
    box.write("ws/.vscode/tasks.json", "{}")
    box.write(".bashrc", "x")
    box.write(".ssh/id", "x")
    box.write("data/in/x", "x")
    before = snapshot(box.home)
    box.run("true", options=["--deny-read", "~/data", "--allow-read", "~/data/in", "--deny-write", "a/b/file",
                             "--deny-read", "**/*.none", "--home", "private"]).ok()
    box.run("true").ok()
    box.run("no-such-command")
    box.run("true", options=["--deny-write", "missing"])
    box.run("sleep", "5", options=["--timeout", "100ms"])
    assert snapshot(box.home) == before


PROTECTED = [".vscode/tasks.json", ".mcp.json", ".bashrc", ".claude/settings.json", ".envrc", ".ambit.json"]


def test_protected_names(box):
    """What runs later outside cannot be changed where it exists."""
    for name in PROTECTED:
        box.write(f"ws/{name}", "{}")
    before = snapshot(box.ws)
    r = box.sh(f"""for f in {" ".join(PROTECTED)}; do
    (echo x >>$f) 2>/dev/null && echo "wrote $f"
    (echo x >$f) 2>/dev/null && echo "truncated $f"
    rm -f $f 2>/dev/null; [ -e $f ] || echo "removed $f"
    mv $f moved 2>/dev/null && echo "moved $f"; rm -f moved
    echo x >new; mv -f new $f 2>/dev/null && echo "replaced $f"; rm -f new
    ln $f hard 2>/dev/null && (echo x >>hard) 2>/dev/null && echo "wrote through a hard link $f"; rm -f hard
    ln -f /etc/passwd $f 2>/dev/null; ln -sf /etc/passwd $f 2>/dev/null && echo "linked $f"
done
mv .claude c2 2>/dev/null && echo 'moved .claude'; touch .claude/notes && rm .claude/notes; :""").ok()
    assert r.out == "", str(r)
    after = snapshot(box.ws)
    assert set(after) == set(before)
    assert all(after[path] == entry for path, entry in before.items() if stat.S_ISREG(entry[0]))
    for name in PROTECTED:
        assert f"ambit: denied write to {box.ws}/{name.split('/tasks')[0]}" in r.err, name


def test_git_directory_is_guarded(box):
    """No hook and no configuration that runs programs, in no way; what git itself does works."""
    box.host("git", "init", "-q", env=GIT_ENV).ok()
    box.write("ws/.git/hooks/pre-commit", "#!/bin/sh\n", mode=0o755)
    r = box.sh("""
(echo evil >>.git/hooks/pre-commit) 2>/dev/null; (echo evil >.git/hooks/post-commit) 2>/dev/null
echo evil >e; mv e .git/hooks/post-merge 2>/dev/null; ln -s ../../e .git/hooks/pre-push 2>/dev/null
ln e .git/hooks/update 2>/dev/null
mkdir h; echo evil >h/pre-rebase; mv .git/hooks old 2>/dev/null; mv h .git/hooks 2>/dev/null
ln .git/hooks/pre-commit l 2>/dev/null && (echo evil >>l) 2>/dev/null
printf '[core]\n\tfsmonitor = evil\n' >>.git/config 2>/dev/null; git config core.pager evil 2>/dev/null
git config core.hooksPath . 2>/dev/null; git config alias.x '!evil' 2>/dev/null
cp .git/config c; echo '[core] fsmonitor = evil' >>c; mv c .git/config 2>/dev/null
mkdir -p x/objects x/refs x/hooks; (echo evil >x/hooks/pre-commit) 2>/dev/null; cp .git/HEAD x
mv x/objects .git/ 2>/dev/null
git config user.name Me; git checkout -q -b side; git config branch.side.remote origin; :""", env=GIT_ENV).ok()
    assert (box.ws / ".git").is_dir(), str(r)
    found = box.host("grep", "-rl", "evil", ".git", "x", env=GIT_ENV).out.split()
    assert [f for f in found if "hooks" in f or "config" in f] == [], str(r)
    config = (box.ws / ".git/config").read_text()
    assert "name = Me" in config and "origin" in config and "hooksPath" not in config and "pager" not in config


def test_git_directory_is_not_replaced(box):
    """Another directory, put together outside or in the place of .git, brings no hooks in."""
    box.host("git", "init", "-q", env=GIT_ENV).ok()
    r = box.sh("""
mkdir -p new/hooks; (echo 'touch ran' >new/hooks/pre-commit; chmod +x new/hooks/pre-commit) 2>/dev/null
cp -r .git/objects .git/refs .git/HEAD .git/config new/ 2>/dev/null
mv .git old 2>/dev/null; mv new .git 2>/dev/null || { mkdir -p .git/hooks; echo 'touch ran' >.git/hooks/pre-commit
chmod +x .git/hooks/pre-commit; cp -r old/objects old/refs old/HEAD old/config .git/; } 2>/dev/null; :""", env=GIT_ENV)
    env = {**GIT_ENV, **{f"GIT_{w}_{n}": "x" for w in ("AUTHOR", "COMMITTER") for n in ("NAME", "EMAIL")}}
    box.host("git", "commit", "-q", "--allow-empty", "-m", "x", env=env)
    assert not (box.ws / "ran").exists(), str(r)


def test_hooks_planted_before_git_init(box):
    """Where there is no repository yet: the user's own `git init` would make them live."""
    box.mkdir("ws/sub")
    r = box.sh("for d in . sub; do mkdir -p $d/.git/hooks && echo evil >$d/.git/hooks/pre-commit && "
               "chmod +x $d/.git/hooks/pre-commit; printf '[core]\n\tfsmonitor = evil\n' >$d/.git/config; done")
    for top in (box.ws, box.ws / "sub"):
        box.host("git", "init", "-q", cwd=top, env=GIT_ENV).ok()
        assert not (top / ".git/hooks/pre-commit").exists(), str(r)
        assert "evil" not in (top / ".git/config").read_text(), str(r)


def test_protected_names_that_do_not_exist(box):
    """Made neither at the top nor deep down, nor moved there from elsewhere."""
    box.mkdir("ws/deep/down")
    names = [*PROTECTED, "deep/down/.bashrc", "deep/.vscode/x", ".env", "deep/.env", ".config/autostart/x.desktop"]
    lines = "".join(f'mkdir -p "$(dirname {n})" 2>/dev/null; (echo evil >{n}) 2>/dev/null && echo "made {n}"\n'
                    for n in names)
    r = box.sh(lines + """
mkdir -p src/.x && echo evil >src/.x/tasks.json; mv src/.x .vscode 2>/dev/null && echo 'moved a directory there'
mv src/.x/tasks.json .mcp.json 2>/dev/null && echo 'moved a file there'
ln src/.x/tasks.json .mcp.json 2>/dev/null && echo linked
ln -s src/.x .vscode 2>/dev/null && echo symlinked; mknod .envrc p 2>/dev/null && echo fifo
mv src/.x deep/.vscode 2>/dev/null && echo 'moved a directory deep down'
cd deep/down && (: >.profile) 2>/dev/null && echo relative
mkdir -p /tmp/t/.vscode && echo evil >/tmp/t/.vscode/x; cp -r /tmp/t/.vscode . 2>/dev/null
[ -e .vscode/x ] && echo copied; :""").ok()
    assert r.out == "", str(r)
    assert [p for p in box.ws.rglob("*") if p.name in (".vscode", ".bashrc", ".mcp.json", ".envrc", ".env")] == []


def test_protected_names_as_links(box):
    """A start-up file that is a link: neither the file behind it nor another one gets its name."""
    box.write("ws/dotfiles/bashrc", "x")
    os.symlink("dotfiles/bashrc", box.ws / ".bashrc")
    r = box.sh("echo evil >>dotfiles/bashrc; echo evil >>.bashrc; rm -f .bashrc; echo evil >.bashrc; mv dotfiles d2;"
               "ln -s d2 .bashrc; echo evil >e; ln e .bashrc; mv e .bashrc; :")
    assert (box.ws / "dotfiles/bashrc").read_text() == "x", str(r)
    assert not os.path.lexists(box.ws / ".bashrc") or os.readlink(box.ws / ".bashrc") == "dotfiles/bashrc"


def test_foreign_files(rooted):
    """root inside is root without capabilities: files of others keep their protection."""
    rooted.write("ws/theirs", "x", mode=0o600)
    os.chown(rooted.ws / "theirs", 12345, 12345)
    assert attempt(rooted, "cat theirs", "chown 1:1 mine", "chmod 777 theirs") == ["no", "no", "no"]


def test_mounts_below_the_project(rooted):
    """A file system mounted below a writable directory is writable, one below / is not."""
    rooted.mkdir("ws/mnt")
    rooted.mkdir("mnt")
    script = ('mount -t tmpfs t "$1/ws/mnt" && mount -t tmpfs t "$1/mnt" && cd "$1/ws" && '
              'exec "$2" run -- sh -c "touch mnt/x && echo ok; touch ../mnt/x || echo refused"')
    p = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", str(rooted.home), str(AMBIT)],
                       env=rooted.env, capture_output=True, text=True, timeout=20)
    assert p.stdout == "ok\nrefused\n", p


def test_read_only_project(plain):
    r = plain.sh("cat a; touch b; echo $?", options=["--deny-write", "."])
    assert not (plain.ws / "b").exists(), str(r)


def test_device_files_on_disk_do_not_open(rooted):
    path = rooted.ws / "node"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError as e:
        skip_impossible(f"device nodes cannot be made here: {e}")
    assert attempt(rooted, "cat node") == ["no"]


@pytest.mark.parametrize("count", [3, 600])
def test_secrets_are_hidden_in_any_home(box, count):
    """A home that is too large for one look: each name is looked for."""
    box.write(".ssh/id_ed25519", "TOKEN")
    box.write(".config/gh/hosts.yml", "TOKEN")
    for i in range(count):
        box.write(f"file{i}", "")
        box.write(f".config/app{i}/x", "")
    for path in ("~/.ssh/id_ed25519", "~/.config/gh/hosts.yml"):
        assert box.host("sh", "-c", f"cat {path}").out == "TOKEN", f"the control run: {path}"
        r = box.sh(f"cat {path}")
        assert r.code and "TOKEN" not in r.out, str(r)
        assert box.ambit("explain", "read", path).code == 1


def test_rules_for_a_private_place_are_told(box):
    """/tmp is the sandbox's own: a rule for it, and not for something in it, changes nothing."""
    option = {"--allow-write": "--tmp shared", "--allow-read": "--tmp host"}
    for rule, instead in option.items():
        r = box.run("true", options=[rule, "/tmp"]).ok()
        assert r.err.count("/tmp is private to the sandbox") == 1 and instead in r.err, r
        assert "private" not in box.run("true", options=[rule, "/tmp", *instead.split()]).ok().err
        r = box.ambit("explain", rule, "/tmp", "read", "/tmp/x")
        assert r.code == 1 and "own private directory" in r.out and "--tmp host" in r.out, r
    r = box.ambit("explain", "--allow-write", "/tmp", "write", "/tmp/x").ok()
    assert "gone afterwards" in r.out and "--tmp shared" in r.out, r
    with tempfile.TemporaryDirectory(dir="/tmp") as deeper:
        os.chown(deeper, box.who.uid, box.who.gid)
        r = box.sh(f"echo x > {deeper}/x", options=["--allow-write", deeper]).ok()
        assert not r.err and os.path.exists(f"{deeper}/x"), r


def test_pattern_that_looks_like_a_file(box):
    box.write("ws/app/[slug].ts", "x")
    r = box.sh("echo y > 'app/[slug].ts'", options=["--deny-write", "app/[slug].ts"]).ok()
    assert "is a pattern" in r.err and "app/\\[slug].ts" in r.err, r
    for told in ("app/\\[slug].ts", "app/[[]slug].ts"):
        r = box.sh("echo z > 'app/[slug].ts'", options=["--deny-write", told])
        assert r.code != 0 and "is a pattern" not in r.err, r
    # a pattern that means one, or where there is no such file
    for rule in ("app/*.ts", "app/[abc].ts"):
        assert "is a pattern" not in box.run("true", options=["--deny-write", rule]).ok().err


@pytest.mark.parametrize("profile, made, skipped", [
    ("npm", [".npm", ".cache/yarn"], []), ("pip", [".cache/pip"], []), ("go", ["go/pkg", ".cache/go-build"], []),
    ("cargo", [".cargo/registry"], [".cargo/.package-cache"]), ("claude", [".claude"], [".claude.json"]),
])
def test_caches_of_a_profile(box, profile, made, skipped):
    """A new account has none yet: those that are directories are made, so that the tool finds them."""
    for d in made:
        assert box.ambit("explain", "-p", profile, "write", f"~/{d}/x").code == 0
        assert not (box.home / d).exists()
        box.sh(f"mkdir -p ~/{d} && echo x > ~/{d}/x", options=["-p", profile]).ok()
        assert (box.home / d / "x").read_text() == "x\n"
        assert (box.home / d).stat().st_uid == box.who.uid
        subprocess.run(["rm", "-rf", *(box.home / p for p in ("go", ".cargo", ".cache", ".npm", ".claude"))], check=True)
    for f in skipped:
        assert not (box.home / f).exists()


def test_caches_that_cannot_be_made(box):
    """They are left out: the profile is for more than one tool."""
    box.write(".npm", "a file in its place")
    box.sh("echo x > ~/.cache/yarn/x; echo y > ~/.npm", options=["-p", "npm"])
    assert (box.home / ".cache/yarn/x").read_text() == "x\n"


def test_working_directory_in_dev_shm(box):
    """It is put into the sandbox's own /dev, whatever other places rules speak of."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as here:
        os.chown(here, box.who.uid, box.who.gid)
        box.sh("pwd; echo x >f", options=["--deny-read", "/boot", "--chdir", here]).ok()
        assert os.listdir(here) == ["f"]


@pytest.mark.parametrize("backend", ["native", "bwrap"])
def test_devices_keep_their_modes(box, backend):
    """They are the host's. The mode that it has already: the host's time of change tells."""
    before = os.stat("/dev/full").st_ctime_ns
    r = box.run("sh", "-c", "echo x >/dev/null && chmod 0666 /dev/full", options=["--backend", backend])
    assert r.code == 1 and "chmod" in r.err, str(r)
    assert os.stat("/dev/full").st_ctime_ns == before
    if os.geteuid() == 0:
        os.chmod("/dev/full", 0o666)  # the control
        assert os.stat("/dev/full").st_ctime_ns != before
