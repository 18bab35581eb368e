# SPDX-License-Identifier: Apache-2.0
"""Writing where one may not, and planting what runs later outside: W1-W19.

Races against the guard of names are in tests/broker; here: each way to change a name that
exists, to make one that does not, and whether what was made is run outside (git is asked).
"""
import hashlib
import os
import shutil
import stat
import subprocess
import time

import pytest

import ambit_test
from ambit_test import mount_table, settled_changes

START_UP = [".bashrc", ".profile", ".zshrc", ".zshenv", ".bash_login", ".bash_logout",
            ".config/fish/config.fish", ".inputrc", ".pam_environment",
            ".config/environment.d/a.conf", ".config/systemd/user/a.service",
            ".config/autostart/a.desktop", ".local/bin/git", ".gitconfig",
            ".ssh/authorized_keys"]
GIT = [".git/hooks/pre-commit", ".git/config", ".git/config.worktree", ".git/info/attributes"]
EDITORS = [".vscode/tasks.json", ".idea/workspace.xml", ".envrc", ".env",
           ".devcontainer/devcontainer.json"]
AGENTS = [".claude/settings.json", ".claude/settings.local.json", ".claude/commands/x.md",
          ".codex/config.toml", ".gemini/settings.json", ".cursor/mcp.json", ".mcp.json",
          ".ambit.json", "fence.jsonc", ".ai-jail"]
PROJECT = GIT + EDITORS + AGENTS + [".bashrc", ".gitmodules", ".zshenv"]
OPERATIONS = ["write", "append", "trunc-open", "truncate", "reopen", "mmap", "chmod", "chown",
              "utimes", "setxattr", "chattr", "link", "exchange", "rename-over", "rename-away", "tmpfile",
              "symlink", "unlink", "recreate", "parent", "parent-exchange", "parent-symlink"]
# git must be able to replace its own files, so these calls go straight to the kernel (DESIGN 5):
# a name that is gone comes back only by way of the broker, which looks at what is in it.
FREE = {"chmod", "chown", "utimes", "setxattr", "chattr", "unlink"}
GIT_FREE = {".git/config", ".git/config.worktree", ".git/info/attributes"}
GOOD = "{}\n"  # an empty object is a policy, a settings file, and good enough for the rest


def fill(box, base, names):
    for n in names:
        box.write(base / n, GOOD, 0o644)
    if any(n.startswith(".git/") for n in names):
        box.write(base / ".git/HEAD", "ref: refs/heads/main\n")
        box.mkdir(base / ".git/objects")
        box.mkdir(base / ".git/refs")
        box.write(base / ".git/config", "[core]\n\trepositoryformatversion = 0\n")


def fingerprint(path):
    """All that must not change: content, inode, mode, owner, links, time, and who is above."""
    try:
        st = path.lstat()
        above = path.parent.lstat()
        return (hashlib.sha256(path.read_bytes()).hexdigest(), st.st_ino, st.st_mode, st.st_uid,
                st.st_gid, st.st_nlink, st.st_mtime_ns, os.listxattr(path), above.st_ino,
                stat.S_IFMT(above.st_mode))
    except FileNotFoundError:
        return None


def verdicts(result):
    return {line.split("\t")[0]: line.split("\t")[1:] for line in result.out.splitlines()}


@pytest.fixture(scope="session")
def controlled(boxes, probe):
    """controlled(who) -> {operation: (before, after, verdict)}, unsandboxed, a fresh file each."""
    done = {}

    def get(name):
        if name not in done:
            box = boxes(name)
            done[name] = {}
            for op in OPERATIONS:
                target = box.write(f"{op}/.vscode/tasks.json", GOOD)
                before = fingerprint(target)
                r = box.host(probe, "attack", box.ws, target, op).ok()
                done[name][op] = (before, fingerprint(target), verdicts(r)[op])
        return done[name]

    return get


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("name", ambit_test.whos())
def test_operation_control(name, op, controlled):
    """Each operation works where nothing forbids it, and the fingerprint shows it."""
    before, after, verdict = controlled(name)[op]
    assert verdict[0] == "open", f"the control run failed: {verdict}"
    # chown to oneself and file flags change nothing but the ctime
    assert before != after or op in ("chown", "chattr")


@pytest.mark.parametrize("path", PROJECT)
def test_existing_protected_names(box, probe, path):
    """Hooks, configuration, start-up, editor and agent files that exist in the project. A tree
    for each name: what one attack moves away must not make the next one look refused."""
    fill(box, box.ws, PROJECT)
    before = fingerprint(box.ws / path)
    verdict = verdicts(box.run(probe, "attack", ".", box.ws / path, "all").ok())
    after = fingerprint(box.ws / path)
    assert sorted(verdict) == sorted(OPERATIONS)
    assert verdict["write"][1] != "ENOENT", "there was nothing to attack"
    free = FREE if path in GIT_FREE else set()
    assert {op for op, v in verdict.items() if v[0] != "denied"} <= free
    assert before is not None and (before == after or (free and after is None)), verdict


@pytest.mark.parametrize("path", START_UP)
def test_start_up_files(box, probe, path):
    """The user's own start-up files: read-only by default, whether they exist or not..."""
    target = box.home / path
    create = ["/bin/sh", "-c", 'mkdir -p "$(dirname "$1")"; echo x >> "$1"', "sh", target]
    there = sorted(box.home.rglob("*"))
    r = box.run(*create)
    assert r.code != 0 and not target.exists()
    assert sorted(box.home.rglob("*")) == there, "something was left in the home"
    assert box.host(*create).code == 0 and target.exists()


def test_start_up_files_in_writable_home(box, probe):
    """... and when the whole home is writable, at least those that exist."""
    fill(box, box.home, START_UP)
    before = {n: fingerprint(box.home / n) for n in START_UP}
    script = 'for f; do "$0" attack ~ ~/"$f" all; done'
    r = box.run("/bin/sh", "-c", script, probe, *START_UP,
                options=["--allow-write", str(box.home)]).ok()
    changed = [n for n in START_UP if fingerprint(box.home / n) != before[n]]
    assert changed == [], r.out
    box.run("sh", "-c", "echo x > ~/ordinary", options=["--allow-write", str(box.home)]).ok()


def test_hooks_stay(box):
    """The hooks cannot be replaced by way of the directory above them."""
    attack = ["/bin/sh", "-c", "mv .git old; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; "
              "chmod +x .git/hooks/pre-commit; rm -rf .git; git init -q .; "
              "echo evil > .git/hooks/post-commit; mkdir -p h; echo evil > h/pre-commit; "
              "mv .git/hooks hooks.old; mv h .git/hooks; :"]

    def evil():
        return [p for p in (box.ws / ".git/hooks").glob("*") if p.read_text() == "evil\n"]

    box.host("git", "init", "-q", ".").ok()
    box.write("ws/.git/hooks/pre-commit", "good", 0o755)
    r = box.run(*attack)
    assert evil() == [], r
    assert (box.ws / ".git/hooks/pre-commit").read_text() == "good", r
    box.host(*attack)
    assert evil() != []


GIT_KEYS = ["core.hooksPath ./h", "core.fsmonitor ./x", "core.sshCommand ./x", "core.editor ./x",
            "core.pager ./x", "diff.external ./x", "filter.x.clean ./x", "alias.st !x",
            "credential.helper ./x", "gpg.program ./x", "include.path ./x",
            "url.http://evil/.insteadOf https://good/", "remote.x.uploadpack ./x",
            "protocol.ext.allow always"]


def test_git_config_keys(box):
    """Configuration that makes git start programs: the existing file takes none of it."""
    box.host("git", "init", "-q", ".").ok()
    before = fingerprint(box.ws / ".git/config")
    script = "; ".join("git config " + k.replace(" ", " '", 1) + "'" for k in GIT_KEYS)
    script += "; git config --worktree core.pager ./x; git config --file .git/config core.pager x; :"
    r = box.run("/bin/sh", "-c", script)
    assert fingerprint(box.ws / ".git/config") == before, r
    box.host("/bin/sh", "-c", script)
    after = (box.ws / ".git/config").read_text()
    assert "fsmonitor" in after and "uploadpack" in after


@pytest.mark.parametrize("worktree", [False, True], ids=["plain", "worktree"])
def test_git_commit_works(box, worktree):
    """The other side: with all that protected, git itself works, and runs no planted hook."""
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x"]
    box.host("git", "init", "-q", ".").ok()
    box.write("ws/a", "1")
    box.host(*git, "add", "a").ok()
    box.host(*git, "commit", "-qm", "one").ok()
    where = box.ws
    options = []
    if worktree:
        box.host("git", "worktree", "add", "-q", "../wt").ok()
        where = box.home / "wt"
        options = ["--allow-write", str(box.ws / ".git")]
    script = ("echo 2 > a && git add a && git -c user.name=n -c user.email=e@x commit -qm two "
              "&& git branch other && git tag t && git status --short")
    box.run("/bin/sh", "-c", script, cwd=where, options=options).ok()
    assert box.host("git", "log", "--format=%s", cwd=where).out.split() == ["two", "one"]


def test_swap_race(box, probe):
    """A name that flips between the project and a place outside, while it is written to."""
    good, bad = box.mkdir("ws/good"), box.mkdir("bad")
    box.write("bad/file", "GOOD")
    argv = [probe, "swap", box.ws / "flip", good, bad]
    written = 0
    for _ in range(5):  # on a busy machine one go may see no flip
        r = box.run(*argv, "300").ok()
        written += int(r.out.split()[2])
        assert (bad / "file").read_text() == "GOOD"
        assert os.listdir(bad) == ["file"]
        if written > 100:
            break
    assert written > 0, "the race was not run"
    for _ in range(5):
        box.host(*argv, "300").ok()
        if not (bad / "file").exists() or (bad / "file").read_text() == "EVIL":
            return
    pytest.fail("the control run failed")


def test_ancestors_stay(box):
    """The parent of the project is writable too: the project cannot be swapped for another."""
    attack = ["/bin/sh", "-c", "cd ..; mv ws ws2 && mkdir ws && echo evil > ws/planted; "
              "mv deny d2 && mkdir deny && echo evil > deny/file; :"]
    box.write("deny/file", "good")
    box.write("ws/.bashrc", "good")
    options = ["--allow-write", str(box.home), "--deny-write", str(box.home / "deny")]
    ino = box.ws.stat().st_ino
    r = box.run(*attack, options=options)
    assert box.ws.stat().st_ino == ino and not (box.ws / "planted").exists(), r
    assert (box.home / "deny/file").read_text() == "good"
    box.host(*attack)
    assert (box.ws / "planted").exists() and (box.home / "deny/file").read_text() == "evil\n"


def test_denied_ancestors(box):
    """A directory that holds a read-only one deep below cannot be renamed from above it."""
    attack = ["/bin/sh", "-c", "mv a b; mkdir -p a/x/y; echo evil > a/x/y/f; :"]
    box.write("ws/a/x/y/f", "good")
    r = box.run(*attack, options=["--deny-write", "a/x/y"])
    assert (box.ws / "a/x/y/f").read_text() == "good", r
    box.host(*attack)
    assert (box.ws / "a/x/y/f").read_text() == "evil\n"


@pytest.mark.parametrize("top", ["/tmp", "/var/tmp", "/dev/shm", "/run"])
def test_private_places(box, top):
    """What is written there stays inside; what the host has there is not seen."""
    if not os.access(top, os.W_OK):
        ambit_test.skip_impossible(f"{top} is not writable for the test itself")
    name = f"ambit-canary-{os.getpid()}-{box.who.name}"
    there, planted = os.path.join(top, name), os.path.join(top, name + "-planted")
    try:
        with open(there, "w") as f:
            f.write("TOKEN")
        os.chmod(there, 0o666)
        script = ["/bin/sh", "-c", f"cat {there}; echo evil > {there}; echo x > {planted}; :"]
        assert "TOKEN" not in box.run(*script).out
        assert open(there).read() == "TOKEN" and not os.path.exists(planted)
        out = box.host(*script).out
        assert "TOKEN" in out and open(there).read() == "evil\n"
    finally:
        for f in (there, planted):
            if os.path.exists(f):
                os.unlink(f)


def test_hostile_temporary_directory(box):
    """TMPDIR of the caller does not lead out of the private /tmp; it exists and is writable."""
    outside = box.mkdir("outside")
    r = box.run("/bin/sh", "-c", 'f=$(mktemp) && echo evil > "$f" && echo made', env={"TMPDIR": str(outside)})
    assert list(outside.iterdir()) == []
    assert "made" in r.out, r


@pytest.mark.parametrize("probe_name", ["stdin-reopen", "stdin-truncate", "stdin-chmod", "stdin-chmod-path",
                                        "stdin-chmod-dev", "stdin-chmod-empty", "stdin-xattr-path",
                                        "stdin-chmod-race", "stdin-chmod-after", "stdin-chmod-swap"])
def test_stdin_is_a_file(place, probe_name, boxes_on, probe):
    """`ambit run ... < file`: a descriptor for reading is no way to change the file."""
    for prefix in (True, False):
        box = boxes_on(place.person, place.backend)
        target = box.write("outside/file", "GOOD", 0o600)
        before = fingerprint(target)
        argv = [probe, "run", "x=y", probe_name]
        with open(target) as f:
            p = box.who.popen(box.argv(*argv) if prefix else argv, cwd=box.ws, env=box.env,
                              stdin=f, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            out, err = p.communicate(timeout=20)
        if prefix:
            # in a container it is a pipe, and may be changed
            assert f"{probe_name}\tdenied" in out or (place.backend == "podman" and probe_name in out), out + err
            assert fingerprint(target) == before
        else:
            if "ENOSYS" in out:  # fchmodat2(2), before Linux 6.6
                ambit_test.skip_impossible(f"this kernel has no {probe_name}: ENOSYS")
            assert f"{probe_name}\topen" in out, out + err
            assert fingerprint(target) != before


def test_nothing_left(box, probe):
    """After a run that attacked everything: no stub, no mount, nothing but what it made."""
    box.host("git", "init", "-q", ".").ok()
    before, mounts = tree(box.home), mount_table()
    names = [str(box.ws / n) for n in PROJECT] + [str(box.home / n) for n in START_UP]
    box.run("/bin/sh", "-c", "ls -lA / ~ . > /dev/null; cat \"$@\" > /dev/null; git status; :", "sh",
            *names)
    assert tree(box.home) == before
    assert not settled_changes(mount_table, mounts)


def tree(top):
    return sorted((str(p), p.lstat().st_mode, p.lstat().st_ino) for p in top.rglob("*")
                  if p.name not in ("index", "index.lock"))


def test_two_in_one_directory(box):
    """One sandbox ends while another runs in the same place: its protection stays."""
    box.write("ws/.bashrc", "good")
    box.write("ws/.vscode/tasks.json", "good")
    attack = ["/bin/sh", "-c", "read x; echo evil > .bashrc; rm -rf .vscode; mkdir -p .vscode; "
              "echo evil > .vscode/tasks.json; :"]
    with box.start(*attack) as second:
        time.sleep(0.1)
        with box.start("/bin/sh", "-c", "echo up; sleep 20") as first:
            assert first.process.stdout.readline() == b"up\n"
            first.process.kill()
            first.process.wait()
        r = second.wait(input=b"go\n")
    assert (box.ws / ".bashrc").read_text() == "good", r
    assert (box.ws / ".vscode/tasks.json").read_text() == "good", r
    box.host(*attack, input="go\n")
    assert (box.ws / ".bashrc").read_text() == "evil\n"


def test_host_replaces_a_protected_file(box):
    """The user saves .bashrc with an editor (rename over) while a sandbox runs: the new file is
    not open to the command because the mount went with the old one."""
    box.write("ws/.bashrc", "good")
    with box.start("/bin/sh", "-c", "echo up; read x; echo evil > .bashrc; :") as child:
        assert child.process.stdout.readline() == b"up\n"
        box.write("ws/.bashrc.new", "edited")
        os.rename(box.ws / ".bashrc.new", box.ws / ".bashrc")
        r = child.wait(input=b"go\n")
    assert (box.ws / ".bashrc").read_text() == "edited", r


def test_symlinked_protected_name(box):
    """A protected name that is a link: what it leads to is protected."""
    box.write("ws/dotfiles/bashrc", "good")
    (box.ws / ".bashrc").symlink_to("dotfiles/bashrc")
    attack = ["/bin/sh", "-c", "echo evil > .bashrc; echo evil > dotfiles/bashrc; mv dotfiles d2; :"]
    r = box.run(*attack)
    assert (box.ws / "dotfiles/bashrc").read_text() == "good", r
    box.host(*attack)
    assert (box.ws / "d2/bashrc").read_text() == "evil\n"


def test_symlinked_protected_name_replaced(box):
    """... and the link cannot be replaced by something else."""
    box.write("ws/dotfiles/bashrc", "good")
    (box.ws / ".bashrc").symlink_to("dotfiles/bashrc")
    attack = ["/bin/sh", "-c", "rm -f .bashrc; echo evil > .bashrc; :"]
    box.run(*attack)
    assert not (box.ws / ".bashrc").exists() or (box.ws / ".bashrc").read_text() == "good"
    box.host(*attack)
    assert (box.ws / ".bashrc").read_text() == "evil\n"


# Links with protected names, or on the way to one, and who changes what they show: links, files
# and directories of the project; the name as it is read outside; what the attacker does.
LINKED = {
    "file": ({".env": ".env.local"}, [], ".env", "evil .env.local"),
    "folded": ({".env": ".env.local"}, [], ".env", "evil .env.local; evil .ENV.local; :"),
    "above": ({".claude/settings.json": "../shared.json"}, [], ".claude/settings.json", "evil shared.json"),
    "absolute": ({".mcp.json": "{ws}/mcp"}, [], ".mcp.json", "evil mcp"),
    "missing-directory": ({".env": "conf/env"}, [], ".env",
                          "mkdir conf; evil conf/env; mkdir c2; echo evil > c2/env; rmdir conf; mv -T c2 conf"),
    "linked-directory": ({".env": "conf/env"}, [], ".env", "mkdir c2; echo evil > c2/env; ln -s c2 conf"),
    "directory": ({".vscode": "tools/vscode"}, [], ".vscode/tasks.json",
                  "mkdir -p tools/vscode; evil tools/vscode/tasks.json"),
    "behind-a-link": ({".claude": "agents"}, ["agents/notes"], ".claude/settings.json", "evil agents/settings.json"),
    "deeper": ({".config/systemd": "../units"}, ["units/x"], ".config/systemd/user/a.service",
               "mkdir units/user; evil units/user/a.service"),
    "chain": ({".env": "one", "one": "two"}, [], ".env", "evil two; rm -f one; evil one"),
    "chain-that-leads-somewhere": ({".env": "one", "one": "two"}, ["two"], ".env", "rm -f one; evil one"),
    "chain-of-directories": ({".env": "dir/env", "dir": "real"}, ["real/env"], ".env",
                             "rm -f dir; mkdir dir; evil dir/env; rm -rf dir; mkdir d; evil d/env; mv -T d dir"),
    "down-and-up": ({".env": "src/../env"}, ["src/main.c"], ".env",
                    "mv src s2; mkdir -p o/p; ln -s o/p src; evil o/env"),
    "git-config": ({".git/config": "../shared-config"}, ["shared-config"], ".git/config", "evil shared-config"),
    "git-hooks": ({".git/hooks": "../githooks"}, [], ".git/hooks/pre-commit", "mkdir githooks; evil githooks/pre-commit"),
    "bulk": ({".env": "node_modules/env"}, ["node_modules/x"], ".env", "evil node_modules/env"),
}
EVIL = """evil() { echo evil > "$1"; echo evil > t; mv -f t "$1"; echo evil > t; ln -f t "$1"
    ln -sf "$PWD/t" "$1"; cp --remove-destination t "$1"; }; """


@pytest.mark.parametrize("kind", LINKED)
def test_what_protected_names_lead_to(box, kind):
    """What a link with a protected name shows cannot be filled where it leads to, whether that is
    there or not, nor by another thing in the place of a link on the way."""
    links, files, shown, script = LINKED[kind]

    def prepare():
        box.host("/bin/sh", "-c", "rm -rf ~/ws/* ~/ws/.[a-z]*; git init -q --template= .").ok()
        (box.ws / ".git/config").unlink()
        for name in files:
            box.write(f"ws/{name}", "good")
        for name, target in links.items():
            box.mkdir((box.ws / name).parent)
            (box.ws / name).symlink_to(target.format(ws=box.ws))

    def is_evil():
        return (box.ws / shown).exists() and "evil" in (box.ws / shown).read_text()

    prepare()
    r = box.run("/bin/sh", "-c", EVIL + script, options=["--set", "filesystem.bulk=node_modules"])
    assert not is_evil(), r
    assert not any((box.ws / name).read_text() != "good" for name in files if (box.ws / name).exists()), r
    assert "denied write to" in r.err, r
    prepare()
    box.host("/bin/sh", "-c", EVIL + script)
    assert is_evil(), "the control run failed"


def test_lifted_name_leads_anywhere(box):
    """With the name lifted, what it leads to is free; and what it does not lead to is free anyway."""
    (box.ws / ".env").symlink_to("src/env")
    box.sh("mkdir src; echo x > src/env2; echo x > src/env; [ ! -e src/env ]").ok()
    box.sh("echo x > .env; cat src/env", options=["--set", "filesystem.unprotect=.env"]).ok()


def attack_all(box, probe, names, options=()):
    """Every operation on every name, from inside; the names that say something else now (gone
    is harmless, and a commondir of "../.." is written by the broker itself)."""
    before = {n: {(box.home / n).read_text(), "../..\n"} for n in names}
    script = 'for f; do "$0" attack "$PWD" "$f" all; done'
    r = box.run("/bin/sh", "-c", script, probe, *(str(box.home / n) for n in names),
                options=options).ok()
    return [n for n in names if os.path.lexists(box.home / n)
            and (not (box.home / n).is_file() or (box.home / n).read_text() not in before[n])], r


def test_git_inner_directories(box, probe):
    """Existing configuration of submodules and worktrees inside .git."""
    names = [f"ws/.git/{n}" for n in (
        "modules/sub/config", "modules/sub/hooks/post-checkout", "worktrees/w/commondir",
        "worktrees/w/config.worktree", "commondir")]
    fill(box, box.ws, GIT)
    fill(box, box.home, names)
    box.write("ws/.git/modules/sub/HEAD", "ref: refs/heads/main\n")
    box.mkdir("ws/.git/modules/sub/objects")
    box.mkdir("ws/.git/modules/sub/refs")
    changed, r = attack_all(box, probe, names)
    assert changed == [], r


def test_git_directory_allowed_alone(box, probe):
    """--allow-write REPO/.git (for a worktree): what is protected in it stays protected."""
    fill(box, box.home / "main", GIT)
    names = [f"main/{n}" for n in GIT]
    changed, r = attack_all(box, probe, names, ["--allow-write", str(box.home / "main/.git")])
    assert changed == [], r


WAYS = ["write", "rename", "exchange", "link", "symlink", "tmpfile", "directory", "directory-link"]
ABSENT = sorted(set(PROJECT + START_UP + [
    ".git/commondir", ".bash_profile", ".claude/hooks/x", ".idea/misc.xml", ".pdbrc", ".hg/hgrc", ".vim/a.vim",
    "crush.json", ".qwen/settings.json"]) - {".ssh/authorized_keys"})


@pytest.fixture(scope="session")
def made(boxes_on, probe):
    """made(place, sandbox) -> {name: the ways in which it could be made}, everything in one run."""
    done = {}

    def prepare(box, pattern):
        for way in WAYS:
            for i, name in enumerate(ABSENT):
                base = box.mkdir(f"ws/deep/{way}/{i}")
                if name.startswith(".git/"):
                    shutil.copytree(pattern, base / ".git")
                    target = base / name
                    if target.exists():
                        target.unlink()
                    for top, dirs, files in os.walk(base / ".git"):
                        for f in [top, *(os.path.join(top, n) for n in dirs + files)]:
                            os.chown(f, box.who.uid, box.who.gid)

    def evil(path):
        return path.is_file() and "evil" in path.read_text()

    def get(place, sandbox):
        if (place, sandbox) not in done:
            box = boxes_on(place.person, place.backend)
            box.host("git", "init", "-q", "--template=", "../pattern").ok()
            prepare(box, box.home / "pattern/.git")
            argv = [probe, "make", box.ws / "deep", *ABSENT]
            (box.run if sandbox else box.host)(*argv).ok()
            done[place, sandbox] = {
                n: [w for w in WAYS if evil(box.ws / "deep" / w / str(i) / n)]
                for i, n in enumerate(ABSENT)}
        return done[place, sandbox]

    return get


@pytest.mark.parametrize("path", ABSENT)
def test_absent_protected_names(place, path, made):
    """Names that do not exist yet cannot be made in a directory that does, by no way."""
    ways = set(WAYS) - (set() if "/" in path else {"directory", "directory-link"})
    if path.startswith(".git/"):  # the repository is there already
        ways -= {"directory", "directory-link"}
    assert set(made(place, False)[path]) == ways, "the control run failed"
    assert made(place, True)[path] == []


@pytest.mark.parametrize("path", [".ENVRC", ".EnvRc", ".VSCode/tasks.json", ".CLAUDE/settings.json",
                                  ".claude/SETTINGS.JSON", ".GIT/hooks/pre-commit", ".git/HOOKS/pre-commit",
                                  ".git/Config", ".en\u200cvrc", ".pro\ufb01le", ".v\u017fcode/x"])
def test_folded_names(box, path):
    """Spellings that some file system takes for a protected name: refused on all of them."""
    box.host("git", "init", "-q", ".").ok()
    script = 'mkdir -p "$(dirname "$1")"; echo EVIL >> "$1"; [ -e "$1" ]'
    box.host("/bin/sh", "-c", script, "sh", path, cwd=box.mkdir("control")).ok()
    r = box.run("/bin/sh", "-c", script, "sh", path)
    assert r.code != 0, r
    found = [p for p in box.ws.rglob("*") if p.is_file() and b"EVIL" in p.read_bytes()]
    assert found == [], r
    assert "denied write to" in r.err, r


@pytest.mark.parametrize("path", [".bashrc", ".vscode/tasks.json", ".claude/settings.json", ".envrc",
                                  ".mcp.json", ".ambit.json"])
def test_names_in_new_directories_are_said(box, path):
    """In a directory made in this run a clone may bring such files: they are listed at the end,
    where they then are."""
    r = box.run("/bin/sh", "-c", 'mkdir -p "$(dirname "new/$1")"; echo x > "new/$1"; mv new newer; :',
                "sh", path)
    where = [str(p) for p in box.ws.rglob(path)]
    assert len(where) == 1 and where[0] in r.err, r


@pytest.mark.parametrize("path", [".bashrc", ".vscode/tasks.json"])
def test_new_directory_does_not_replace_an_old_one(box, path):
    """A new directory with such files in it does not get the name of an old one."""
    attack = ["/bin/sh", "-c", 'mkdir -p "$(dirname "new/$1")"; echo x > "new/$1"; '
              'rmdir old/sub; mv -T new old/sub; :', "sh", path]
    box.mkdir("ws/old/sub")
    r = box.run(*attack)
    assert not (box.ws / "old/sub" / path).exists(), r
    box.host("/bin/sh", "-c", "rm -rf new old; mkdir -p old/sub").ok()
    box.host(*attack)
    assert (box.ws / "old/sub" / path).exists()


# Ways to make git outside run a program. After each, the user types `git status` there.
GIT_PLANTS = {
    "commondir": ("repo", "mkdir x; cp -r .git/HEAD .git/objects .git/refs .git/config x/; "
                  "cat evil >> x/config; echo ../x > .git/commondir"),
    "init": ("empty", "git init -q .; git config core.fsmonitor \"$RUN\"; cat evil >> .git/config"),
    "init-template": ("empty", "mkdir -p t/hooks; cat evil > t/config; git init -q --template=t ."),
    "move-and-init": ("repo", "mv .git old; mkdir t; cat evil > t/config; git init -q --template=t .; "
                      "cat evil >> .git/config; :"),
    "copy": ("repo", "cp -r .git n; cat evil >> n/config; rm -rf .git; mv n .git"),
    "link": ("repo", "cp -r .git n; cat evil >> n/config; rm -rf .git; ln -s n .git"),
    "git-file": ("repo", "mkdir e; cp -r .git/HEAD .git/objects .git/refs .git/config e/; "
                 "cat evil >> e/config; mv .git old; echo 'gitdir: e' > .git"),
    "git-file-into-bulk": ("repo", "mkdir -p node_modules/e; cp -r .git/HEAD .git/objects .git/refs "
                           ".git/config node_modules/e/; cat evil >> node_modules/e/config; "
                           "mv .git old; echo 'gitdir: node_modules/e' > .git"),
    "link-into-bulk": ("repo", "cp -r .git node_modules/e; cat evil >> node_modules/e/config; "
                       "mv .git old; ln -s node_modules/e .git"),
    "move-out-of-bulk": ("repo", "cp -r .git node_modules/e; cat evil >> node_modules/e/config; "
                         "mv .git old; mv node_modules/e .git"),
    "config-worktree": ("repo", "git config extensions.worktreeConfig true; "
                        "cat evil > .git/config.worktree"),
    "include": ("repo", "git config include.path ../evil"),
    "subdirectory": ("repo", "mkdir -p docs; cp -r .git/HEAD .git/objects .git/refs .git/config docs/; "
                     "cat evil >> docs/config; git config -f docs/config core.worktree .."),
    "submodule": ("repo", "mkdir -p sub .git/modules/sub; cat evil > .git/modules/sub/config; "
                  "cp -r .git/HEAD .git/objects .git/refs .git/modules/sub/; "
                  "echo 'gitdir: ../.git/modules/sub' > sub/.git"),
    "fixture": ("fixture", "mv .git old; echo 'gitdir: fixture' > .git"),
    "fixture-worktree": ("fixture-worktree", "echo 'gitdir: fixture' > .git"),
    "fixture-link": ("fixture-worktree", "rm -f .git; ln -s fixture .git"),
    "fixture-moved": ("fixture-worktree", "rm -f .git; mv fixture .git"),
    "fixture-commondir": ("fixture", "echo ../fixture > .git/commondir"),
}


@pytest.mark.parametrize("plant", GIT_PLANTS)
def test_git_runs_nothing_planted(box, plant):
    """Whatever was done inside, git outside starts no program of the attacker's."""
    kind, script = GIT_PLANTS[plant]

    def prepare():
        box.host("/bin/sh", "-c", "rm -rf ~/ws/* ~/ws/.git ~/pwned; mkdir -p ~/ws/node_modules").ok()
        if kind != "empty":
            box.host("git", "init", "-q", ".").ok()
        box.write("ws/evil", f'[core]\n\tfsmonitor = "touch {box.home}/pwned; false"\n')
        if kind.startswith("fixture"):  # came with the project, checked in as plain files
            box.host("/bin/sh", "-c", "mkdir fixture; cp -r .git/HEAD .git/objects .git/refs "
                     ".git/config fixture/; cat evil >> fixture/config").ok()
        if kind == "fixture-worktree":
            box.host("/bin/sh", "-c", "rm -rf ~/main; mkdir ~/main; mv .git ~/main/.git; "
                     "echo 'gitdir: ../main/.git' > .git").ok()

    def asked():
        for where in (".", "docs", "sub"):
            if (box.ws / where).is_dir():
                box.host("git", "status", cwd=box.ws / where)
        return (box.home / "pwned").exists()

    env = {"RUN": f"touch {box.home}/pwned; false"}
    prepare()
    r = box.run("/bin/sh", "-c", script, env=env, options=["--env", "RUN"])
    assert not asked(), r
    prepare()
    box.host("/bin/sh", "-c", script, env=env)
    assert asked(), "the control run failed"


# Links by which git outside would write to a file of the home. Then the user commits, and mends a
# worktree; MERGE_MSG is what a commit takes its text from.
GIT_LINKS = {
    "message": 'ln -sf "$OUT" .git/COMMIT_EDITMSG',
    "moved": 'ln -s "$OUT" l; mv -f l .git/COMMIT_EDITMSG',
    "second-name": 'ln -s "$OUT" l; rm -f .git/COMMIT_EDITMSG; ln -P l .git/COMMIT_EDITMSG',
    "tested": 'ln -s "$OUT" .git/tAbCdEf; mv -f .git/tAbCdEf .git/COMMIT_EDITMSG',
    "exchange": 'ln -s "$OUT" l; python3 -c "import ctypes; '
                'ctypes.CDLL(None).renameat2(-100, b\'l\', -100, b\'.git/COMMIT_EDITMSG\', 2)"',
    "exchange-back": 'ln -s "$OUT" l; python3 -c "import ctypes; '
                     'ctypes.CDLL(None).renameat2(-100, b\'.git/COMMIT_EDITMSG\', -100, b\'l\', 2)"',
    "log": 'rm .git/logs/HEAD; ln -s "$OUT" .git/logs/HEAD',
    "directory": 'mkdir d; ln -s "$OUT" d/HEAD; mv .git/logs old; mv -T d .git/logs',
    "linked-directory": 'mkdir d; ln -s "$OUT" d/HEAD; mv .git/logs old; ln -s ../d .git/logs',
    "from-objects": 'mkdir -p g/objects/d; ln -s "$OUT" g/objects/d/HEAD; mkdir g/refs; mv g/objects/d g/d; '
                    'mv .git/logs old; mv -T g/d .git/logs',
    "gitdir": 'ln -sf "$OUT" .git/worktrees/wt/gitdir',
    "worktree": 'rm -f .git/worktrees/wt/COMMIT_EDITMSG; ln -s "$OUT" .git/worktrees/wt/COMMIT_EDITMSG; '
                'echo evil > .git/worktrees/wt/MERGE_MSG',
    "new": 'mkdir n g; ln -s "$OUT" g/COMMIT_EDITMSG; cp .git/HEAD .git/config .git/MERGE_MSG g; mkdir g/objects g/refs; '
           'echo "gitdir: ../g" > n/.git',
    "new-and-deep": 'mkdir -p n g/logs; ln -s "$OUT" g/logs/HEAD; cp .git/HEAD .git/config .git/MERGE_MSG g; mkdir g/refs g/objects; '
                    'echo "gitdir: ../g" > n/.git',
    "half": 'mkdir -p n g/objects g/refs; cp .git/HEAD .git/config .git/MERGE_MSG g; mv g/refs r; '
            'ln -s "$OUT" g/COMMIT_EDITMSG; mv r g/refs; mkdir -p g/refs; echo "gitdir: ../g" > n/.git',
}


@pytest.mark.parametrize("plant", GIT_LINKS)
def test_git_writes_through_no_link(box, plant):
    """What git outside writes to its own files does not get to others: the text can be commands."""
    out = box.home / ".bash_aliases"
    me = {"GIT_EDITOR": ":", "OUT": str(out), "GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "user.name",
          "GIT_CONFIG_VALUE_0": "x", "GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "x@x"}

    def prepare():
        box.host("/bin/sh", "-c", "rm -rf ~/ws/* ~/ws/.git ~/.bash_aliases; git init -q . && "
                 "git commit -q --allow-empty -m x && git worktree add -q wt && echo evil > .git/MERGE_MSG", env=me).ok()

    def used():
        for where in (".", "n", "wt"):
            if (box.ws / where / ".git").exists():
                box.host("git", "commit", "--allow-empty", cwd=box.ws / where, env=me)
                box.host("git", "worktree", "repair", cwd=box.ws / where, env=me)
        return out.exists()

    prepare()
    r = box.run("/bin/sh", "-c", GIT_LINKS[plant], env=me, options=["--env", "OUT"])
    assert not used(), r
    prepare()
    box.host("/bin/sh", "-c", GIT_LINKS[plant], env=me)
    assert used(), "the control run failed"


@pytest.mark.parametrize("kind", ["directory", "worktree", "file"])
def test_worktree_elsewhere(box, kind):
    """The gitdir of a worktree can name any place, which is git's to write: nothing that git does by
    itself outside changes anything there. `git worktree repair`, the control, does."""
    me = {"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "x",
          "GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "x@x"}
    box.host("/bin/sh", "-c", "git init -q . && git commit -q --allow-empty -m x && git worktree add -q wt && mkdir ~/there && "
             "echo good > ~/there/file", env=me).ok()
    if kind == "worktree":
        box.host("/bin/sh", "-c", "git init -q ~/other && cd ~/other && git commit -q --allow-empty -m x && "
                 "git worktree add -q ~/there/wt", env=me).ok()
    place = box.home / {"directory": "there/.git", "worktree": "there/wt/.git", "file": "there/file"}[kind]

    def look():
        return {str(p): p.is_file() and p.read_text() for p in sorted((box.home / "there").rglob("*"))}

    before = look()
    box.run("/bin/sh", "-c", f"echo {place} > .git/worktrees/wt/gitdir").ok()
    for command in (["status"], ["worktree", "list"], ["branch", "-v"], ["worktree", "remove", "-f", str(place.parent)],
                    ["worktree", "move", str(place.parent), str(box.home / "moved")], ["gc", "-q"], ["fetch", "-q"],
                    ["commit", "-q", "--allow-empty", "-m", "y"]):
        box.host("git", *command, env=me)
        assert look() == before, command
    if kind != "file":
        box.host("/bin/sh", "-c", f"mkdir -p .git/worktrees/wt; echo {place} > .git/worktrees/wt/gitdir; git worktree repair").ok()
        assert look() != before, "the control run failed"
    box.host("git", "worktree", "prune").ok()
    assert (box.home / "there/file").read_text() == "good\n"


def test_git_makes_links_elsewhere(box):
    """Links next to git directories, git's own test for them, and a repository that is moved."""
    r = box.sh("git init -q new && ln -s a new/link && ln -s a new/hooks && mkdir d && ln -s a d/l && mv d new/d && "
               "mkdir new/x && mv new/x .git-x && git init -q --bare b && mv b new/.git/b && git -C new config core.symlinks")
    assert "denied" not in r.err and (box.ws / "new/.git/b/HEAD").exists(), r
    assert r.out == "", f"git believes that there are no links here: {r}"


def test_planted_link_in_an_allow_write(box):
    """A rule names a directory of the project; an earlier run put a link to the home in its
    place. The next run must neither make the home writable nor create anything there."""
    box.mkdir("ws/build")
    box.run("/bin/sh", "-c", "rmdir build").ok()
    box.run("/bin/sh", "-c", 'ln -s "$HOME" build && ln -s "$HOME" out').ok()  # the place is free now
    for rule in ("build", "out/new"):
        r = box.run("/bin/sh", "-c", 'echo evil > "$HOME/planted"; echo evil > "$HOME/new/planted"; :',
                    options=["--allow-write", rule])
        assert not (box.home / "planted").exists(), r
        assert not (box.home / "new").exists(), f"made by ambit itself, through the link: {r}"


def test_planted_link_behind_a_link(box):
    """The same where the rule names a link of the user's own that leads to the planted one."""
    box.mkdir("ws/build")
    target = box.mkdir("private")
    (box.home / "short").symlink_to("ws/build")
    plant = 'echo evil > "$HOME/private/planted"; :'
    options = ["--allow-write", "~/short"]
    box.run("/bin/sh", "-c", "echo good > build/x", options=options).ok()
    box.run("/bin/sh", "-c", "rm -r build").ok()
    box.run("/bin/sh", "-c", "ln -s ../private build").ok()  # in the next run the place is free
    r = box.run("/bin/sh", "-c", plant, options=options)
    assert not (target / "planted").exists(), r
    box.host("/bin/sh", "-c", plant).ok()
    assert (target / "planted").exists(), "the control run failed"


def test_files_of_the_policy(box):
    """The files that a run takes its policy from lie in the project: a command inside could write
    the policy of the next run."""
    texts = {"conf/s.json": '{"filesystem": {"allowWrite": ["."]}}', "conf/p.json": "{}", "conf/hosts": "a.test\n"}
    for name, text in texts.items():
        box.write(f"ws/{name}", text)
    options = ["-s", "conf/s.json", "-p", "./conf/p.json", "--deny-domain", "@conf/hosts"]
    evil = '{"enabled": false}'
    attack = f"""for f in {" ".join(texts)}; do
        echo '{evil}' > $f; echo '{evil}' > evil; mv -f evil $f; ln -sf /dev/null $f; cp --remove-destination evil $f
        rm -f $f; echo '{evil}' > $f; done
        mv conf old; mkdir conf; for f in {" ".join(texts)}; do echo '{evil}' > $f; done; :"""
    plant = 'echo evil > "$HOME/planted"; :'
    box.run("/bin/sh", "-c", attack, options=options)
    for name, text in texts.items():
        assert (box.ws / name).read_text() == text
    box.run("/bin/sh", "-c", plant, options=options)
    assert not (box.home / "planted").exists()
    box.host("/bin/sh", "-c", attack)
    box.run("/bin/sh", "-c", plant, options=["-s", "conf/s.json"])
    assert (box.home / "planted").exists(), "the control run failed"


ESCAPES = "\x1b]0;title\x07\x1b[2J\r\n-rf"


def test_escape_codes_in_messages(box):
    """File names and commands with terminal codes come out of ambit escaped."""
    box.mkdir("ws/" + ESCAPES.replace("/", ""))
    runs = [
        box.run(ESCAPES),
        box.run("true", options=["--allow-write", "no/" + ESCAPES]),
        box.run("true", options=["--chdir", "no" + ESCAPES]),
        box.run("true", options=["--settings", "no" + ESCAPES]),
        box.run("true", options=["--no-such-option-" + ESCAPES]),
        box.ambit("explain", "write", "/etc/" + ESCAPES),
        box.ambit(ESCAPES),
    ]
    assert "\x1b" in box.host("ls", "--show-control-chars").out, "the control run failed"
    for r in runs:
        assert r.err or r.out, r
        assert "\x1b" not in r.err + r.out and "\x07" not in r.err + r.out, r


def test_escape_codes_in_reports(box):
    """What the command chose itself comes out escaped, too: where it was denied to write (the path, the
    directory, the key of git's), what runs later, and what it removed."""
    odd = ESCAPES.replace("/", "") + "\u009b2J"  # the last is what terminals take for ESC [
    box.host("git", "init", "-q", ".").ok()
    box.write(f"ws/{odd}/.env", "original\n")
    box.mkdir(f"other/{odd}")
    script = """exec 2>/dev/null
    echo x > "$HOME/$1"; echo x > "$HOME/other/$1/f"; echo x > "$1/.envrc"
    git config "filter.$2.clean" evil
    echo x > "$1/Makefile"; rm "$1/.env"; :"""
    argv = ["/bin/sh", "-c", script, "sh", odd, odd.replace("\n", "")]
    r = box.run(*argv)
    lines = [line for line in r.err.splitlines() if "\\x1b[2J" in line]
    for wanted in (f"denied write to {box.home}/\\x1b", "-rf\\xc2\\x9b2J/f", "-rf\\xc2\\x9b2J/.envrc",
                   "git configuration key filter.\\x1b", "2J/Makefile (make rules)", "2J/.env"):
        assert any(wanted in line for line in lines), f"{wanted}: {r}"
    for raw in "\x1b\x07\r\u009b":
        assert raw not in r.err + r.out, f"{raw!r}: {r}"
    assert not [line for line in r.err.split("\n") if line and not line.startswith("ambit: ")], r
    box.host(*argv)
    assert "\x1b" in box.host("git", "config", "-l").out, "the control run failed"
    assert "\x1b" in box.host("ls", "--show-control-chars", box.home).out, "the control run failed"


def test_odd_names_as_rules(box):
    """Names with newlines, blanks, quotes and a dash in front are names, not options or two."""
    for odd in ("a b", "a\nb", "-rf", "'\"$(id)", "ü\u200b"):
        box.write(f"odd/{odd}/f", "good")
        r = box.run("sh", "-c", 'echo x > "$1/f"; echo x > "$1/../escaped"', "sh",
                    str(box.home / "odd" / odd), options=["--allow-write", str(box.home / "odd" / odd)])
        assert (box.home / "odd" / odd / "f").read_text() == "x\n", r
        assert not (box.home / "odd/escaped").exists()


@pytest.mark.parametrize("path", ["package.json", "Makefile", ".github/workflows/ci.yml", "setup.py",
                                  ".pre-commit-config.yaml", "CLAUDE.md", "configure", "flake.lock",
                                  ".github/copilot-instructions.md", ".buildkite/pipeline.yml"])
def test_runs_later_is_said(box, path):
    """What is not forbidden but will be run outside is listed at the end of the run."""
    r = box.sh(f'mkdir -p "$(dirname {path})"; echo x > {path}')
    assert (box.ws / path).exists(), r
    assert path in r.err, r


FILLS = {
    "one file": "dd if=/dev/zero of=big bs=1M count=64 status=none",
    "sparse": "truncate -s 1T big",
    # seen by samples: there is enough to come that one is taken in time on a busy machine too
    "many files": "for i in $(seq 500); do dd if=/dev/zero of=f$i bs=1M count=1 status=none || exit 1; done; sleep 1",
    "private": "dd if=/dev/zero of=/tmp/big bs=1M count=64 status=none",
    "inodes": "mkdir /tmp/ambit-inodes && cd /tmp/ambit-inodes && seq 20000 | xargs touch",
}


@pytest.mark.parametrize("how", FILLS)
def test_disk_is_not_filled(box, place, how):
    """With --disk, a command neither fills the disk nor uses up its inodes, and hears why."""
    r = box.sh(FILLS[how], options=["--disk", "16m"])
    assert r.code != 0, str(r)
    left = [p.stat() for p in box.ws.iterdir()]
    most = (300 if how == "many files" else 48) << 20
    assert sum(s.st_blocks for s in left) * 512 < most and sum(s.st_size for s in left) < most
    if place.backend == "landlock" and "/tmp" in FILLS[how]:  # there is none; TMPDIR: tests/run/test_landlock.py
        assert "Permission denied" in r.err, str(r)
        return
    assert "limit disk 16m reached" in r.err or "No space left" in r.err, str(r)
    box.host("/bin/sh", "-c", "rm -f big f*").ok()
    # the control run; of private places without the limit, not of the machine's own
    control = box.sh(FILLS[how]) if "/tmp" in FILLS[how] else box.host("/bin/sh", "-c", FILLS[how])
    control.ok()
    box.host("/bin/sh", "-c", "rm -f big f*").ok()


def test_fifo_and_device(box):
    """No device nodes; a fifo may be made, but ambit's own start must not hang on one."""
    r = box.run("mkfifo", "README.md").ok()
    assert f"{box.ws}/README.md (a pipe" in r.err, str(r)
    r = box.run("sh", "-c", "mkfifo .env .bashrc; true", options=["--allow-write", "README.md"])
    assert r.seconds < 15
    for name in (".ambit.json", ".env", ".gitconfig"):
        p = box.ws / name
        if not p.exists():
            os.mkfifo(p)
            os.chown(p, box.who.uid, box.who.gid)
    assert box.run("true").seconds < 15


def test_modes_of_devices(box):
    """They are the host's. The mode that it has already: the host's time of change tells."""
    before = os.stat("/dev/full").st_ctime_ns
    box.run("sh", "-c", "echo x >/dev/null; chmod 0666 /dev/full; :").ok()
    assert os.stat("/dev/full").st_ctime_ns == before
    box.host("chmod", "0666", "/dev/full").ok()
    assert os.stat("/dev/full").st_ctime_ns != before


# In a terminal of its own: its mode before and after what argv does to it.
IN_TERMINAL = """
import fcntl, os, pty, struct, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
name = "/dev/pts/%d" % struct.unpack("I", fcntl.ioctl(fd, 0x80045430, bytes(4)))[0]
os.chmod(name, 0o600)
os.write(fd, b"go\\n")
try:
    while os.read(fd, 4096): pass
except OSError: pass
os.waitpid(pid, 0)
print(oct(os.stat(name).st_mode & 0o777))
"""
# by every name that it has; /dev/console only where that is this terminal
OPEN_TERMINAL = """read -r go; chmod 0666 /proc/self/fd/0; chmod 0666 "$(tty)"
[ "$(stat -c %t:%T /dev/console)" != "$(stat -Lc %t:%T /proc/self/fd/0)" ] || chmod 0666 /dev/console; :"""


def test_mode_of_the_terminal(box):
    """Other users could open it then."""
    outer = ["/usr/bin/python3", "-c", IN_TERMINAL]
    r = box.host(*outer, *box.argv("/bin/sh", "-c", OPEN_TERMINAL)).ok()
    assert r.out == "0o600\n", str(r)
    r = box.host(*outer, "/bin/sh", "-c", OPEN_TERMINAL).ok()
    assert r.out == "0o666\n", f"the control run failed: {r}"


# A protected file that is open, and whose name goes: what it is called then is no protected name, or
# one in another directory.
NAME_GONE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("a/.envrc", os.O_RDONLY)
proc = f"/proc/self/fd/{fd}"
if "moved" in sys.argv:  # its directory is one of this run's by then
    os.mkdir("n"); os.rename("a", "n/x"); os.unlink("n/x/.envrc"); os.rmdir("n/x"); os.mkdir("n/x")
else:
    os.unlink("a/.envrc")
try:
    if "open" in sys.argv:
        os.close(os.open("a/.envrc (deleted)", os.O_CREAT | os.O_WRONLY))
        w = os.open(proc, os.O_WRONLY | os.O_APPEND)
    else:
        if libc.linkat(-100, proc.encode(), -100, b"innocent", 0x400): raise OSError("linkat")
        w = os.open("innocent", os.O_WRONLY | os.O_APPEND)
    os.write(w, b"evil")
except OSError as e: print(e)
"""


@pytest.mark.parametrize("way", ["link", "link moved", "open"])
def test_file_whose_name_is_gone(box, way):
    """The other name of it is protected too, and never touched."""
    argv = ["/usr/bin/python3", "-c", NAME_GONE, *way.split()]

    def attempt(run):
        shutil.rmtree(box.ws / "n", ignore_errors=True)
        for d in "ab":
            box.mkdir(box.ws / d)
        for p in (box.ws / "a/.envrc", box.ws / "b/.envrc", box.ws / "innocent"):
            p.unlink(missing_ok=True)
        box.write(box.ws / "a/.envrc", "good")
        os.link(box.ws / "a/.envrc", box.ws / "b/.envrc")
        run(*argv).ok()
        return (box.ws / "b/.envrc").read_text()

    assert attempt(box.run) == "good"
    assert attempt(box.host) == "goodevil", "the control run failed"
