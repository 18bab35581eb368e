# SPDX-License-Identifier: Apache-2.0
"""What one run leaves behind does not weaken the next: a command may close its own directories
(`chmod 000`), and so keep ambit from seeing what is to be hidden or held in them.

Each attack is two runs. Judged by whether the secret was read, or the hook written, in the second;
before, one run shows that it is refused as it should be. For root, whom modes do not stop, the second
run goes as the first.
"""
import os
import re

import pytest

SECRET = "canary-4712"
GIT_ENV = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
REFUSED = 125

# name: options, where the secret is, what is closed and how, from which directory
HIDDEN = {
    "built-in": (["--allow-write", "~/.cargo"], ".cargo/credentials.toml", ".cargo", "000", "ws"),
    "no-search": (["--allow-write", "~/.cargo"], ".cargo/credentials.toml", ".cargo", "666", "ws"),
    "home": ([], ".docker/config.json", ".docker", "000", "."),
    "named": (["--deny-read", "sub/secret"], "ws/sub/secret", "ws/sub", "000", "ws"),
    "deep": (["--deny-read", "a/b/c/secret"], "ws/a/b/c/secret", "ws/a", "000", "ws"),
    "pattern": (["--set", "filesystem.denyRead=**/.env.prod"], "ws/sub/.env.prod", "ws/sub", "000", "ws"),
    "pattern-unlisted": (["--set", "filesystem.denyRead=**/.env.prod"], "ws/sub/.env.prod", "ws/sub", "311", "ws"),
    "pattern-no-search": (["--set", "filesystem.denyRead=**/.env.prod"], "ws/a/b/.env.prod", "ws/a", "666", "ws"),
    "pattern-fixed": (["--set", "filesystem.denyRead=sub/*.prod"], "ws/sub/.env.prod", "ws/sub", "000", "ws"),
}


def mend(box, r, cwd):
    """The command that the message ends with."""
    command = re.search(r"\((chmod .*)\)\n", r.err).group(1)
    box.host("/bin/sh", "-c", command, cwd=cwd).ok()


@pytest.mark.parametrize("case", HIDDEN)
def test_hidden_in_closed_directory(box, case):
    options, secret, closed, mode, cwd = HIDDEN[case]
    cwd, options = box.home / cwd, [o.replace("~", str(box.home)) for o in options]
    path, top = box.write(secret, SECRET), box.home / closed
    script = f"chmod 755 '{top}'; cat '{path}'"
    plain = box.sh(script, options, cwd=cwd)
    assert SECRET not in plain.out and plain.code != REFUSED, plain
    assert box.host("cat", path).out == SECRET
    box.sh(f"chmod {mode} '{top}'", options, cwd=cwd)
    assert top.stat().st_mode & 0o777 == int(mode, 8), "the command may close its own directories"
    r = box.sh(script, options, cwd=cwd)
    assert SECRET not in r.out, r
    if box.who.name == "root":
        assert r.code == plain.code
        return
    assert r.code == REFUSED and f"cannot look into {top}, on the way to " in r.err, r
    for command in (["plan", *options, "-c", "true"], ["explain", *options, "read", "other"]):
        said = box.ambit(*command, cwd=cwd)
        assert said.code == REFUSED and said.err == r.err, said
    mend(box, r, cwd)
    r = box.sh(script, options, cwd=cwd)
    assert SECRET not in r.out and r.code == plain.code, r


def test_hidden_by_link_into_closed_directory(plain):
    """A pattern hides what links of that name lead to."""
    options = ["--set", "filesystem.denyRead=**/.env.prod"]
    secret = plain.write("ws/conf/secret", SECRET)
    (plain.ws / ".env.prod").symlink_to("conf/secret")
    assert SECRET not in plain.sh("cat conf/secret", options).out
    plain.sh("chmod 000 conf", options).ok()
    r = plain.sh("chmod 755 conf; cat conf/secret", options)
    assert SECRET not in r.out and r.code == REFUSED and str(secret.parent) in r.err, r


def test_directory_opened_and_closed_all_the_time(plain):
    """By another run: what cannot be seen and is not shut a moment later is no reason to go on."""
    options = ["--deny-read", "sub/secret"]
    plain.write("ws/sub/secret", SECRET)
    toggle = "import os\nwhile not os.path.exists('stop'):\n os.chmod('sub', 0)\n os.chmod('sub', 0o755)"
    with plain.start("python3", "-c", toggle, options=options) as child:
        got = [plain.sh("chmod 755 sub; cat sub/secret; :", options) for _ in range(60)]
        plain.write("ws/stop")
        child.wait()
    assert not [r for r in got if SECRET in r.out]
    assert {r.code for r in got} <= {0, REFUSED}, got


def test_closed_home(plain):
    """Where the settings cannot be read either."""
    secret = plain.write(".docker/config.json", SECRET)
    plain.sh("chmod 000 .", cwd=plain.home)
    r = plain.sh(f"chmod 755 '{plain.home}'; cat '{secret}'", cwd=plain.home)
    assert SECRET not in r.out and r.code == REFUSED and "Permission denied" in r.err, r


@pytest.mark.parametrize("name", [".claude/settings.json", ".vscode/tasks.json", ".git/hooks/pre-commit"])
def test_protected_name_in_closed_directory(box, name):
    path = box.write(f"ws/{name}", "old\n")
    top = box.ws / name.split("/")[0]
    attack = f"chmod 755 '{top}'; echo {SECRET} >>{name}"
    box.sh(attack)
    assert path.read_text() == "old\n"
    box.sh(f"chmod 000 '{top}'")
    r = box.sh(attack)
    assert path.read_text() == "old\n"
    if box.who.name == "user" and top.stat().st_mode & 0o777 == 0:
        assert r.code == REFUSED and f"cannot look into {top}" in r.err, r


def test_others_closed_directories_are_harmless(rooted, boxes):
    """Of another owner: neither ambit nor the command can look, nor change that."""
    box = boxes("user")
    secret = box.write("ws/theirs/secret", SECRET)
    git = box.mkdir("ws/repo/.git")
    for d in (secret.parent, git):
        os.chown(d, 0, 0)
        d.chmod(0o700)
    options = ["--set", "filesystem.denyRead=theirs/secret", "--set", "filesystem.denyRead=**/.env.prod",
               "--set", "filesystem.denyWrite=theirs/x"]
    r = box.sh("chmod 755 theirs; cat theirs/secret; echo end", options)
    assert r.code == 0 and r.out == "end\n", r
    r = box.sh("chmod 755 .git; echo end", cwd=box.ws / "repo")
    assert r.code == 0 and r.out == "end\n", r


def test_closed_directory_outside_the_writable(plain):
    """The command cannot open it: as it was."""
    secret = plain.write("out/secret", SECRET)
    secret.parent.chmod(0)
    r = plain.sh(f"chmod 755 '{secret.parent}'; cat '{secret}'; echo end", ["--deny-read", str(secret)])
    secret.parent.chmod(0o755)
    assert r.code == 0 and r.out == "end\n", r


def test_closed_directory_without_a_rule(plain):
    """What nothing is to be hidden in may be closed, as test suites do."""
    plain.mkdir("ws/closed", 0)
    r = plain.sh("chmod 755 closed; echo x >closed/y; cat closed/y")
    assert r.code == 0 and r.out == "x\n", r


# --- what git's configuration leads to --------------------------------------------------------

def make_repository(box):
    box.host("git", "init", "-q", ".", env=GIT_ENV).ok()
    box.host("git", "config", "core.hooksPath", ".githooks", env=GIT_ENV).ok()
    return box.write("ws/.githooks/pre-commit", "#!/bin/sh\n", 0o755)


GROW = ("cp .git/config .git/config.lock; { echo '[pull]'; yes 'ff = true' | head -n %d; } >>.git/config.lock;"
        " mv .git/config.lock .git/config")

# name: the first run, what the second does before it writes, what it is refused for
HOOKS = {
    "git-directory": ("chmod 000 .git", "chmod 755 .git", ".git"),
    "no-search": ("chmod 666 .git", "chmod 755 .git", ".git"),
    "config": ("chmod 000 .git/config", "chmod 644 .git/config", ".git/config"),
    "large": (GROW % 8000, ":", None),
}


@pytest.mark.parametrize("case", HOOKS)
def test_hooks_path_is_held_in_the_next_run(box, case):
    first, again, closed = HOOKS[case]
    hook = make_repository(box)
    attack = f"{again}; echo 'echo {SECRET}' >>.githooks/pre-commit"
    box.sh(attack, env=GIT_ENV)
    assert SECRET not in hook.read_text()
    box.sh(first, env=GIT_ENV)
    r = box.sh(attack, env=GIT_ENV)
    assert SECRET not in hook.read_text(), r
    if box.who.name == "user" and closed:
        assert r.code == REFUSED and f"{box.ws / closed}, " in r.err, r
        assert box.ambit("plan", "-c", "true", env=GIT_ENV).err == r.err
        mend(box, r, box.ws)
        assert box.sh("true", env=GIT_ENV).code == 0
    elif closed is None:
        assert (box.ws / ".git/config").stat().st_size > 64 << 10 and r.code != REFUSED, r


def test_config_too_large_is_refused(box):
    """More than the broker would let it grow to: somebody else wrote it."""
    hook = make_repository(box)
    config = box.ws / ".git/config"
    config.write_text(config.read_text() + "# x\n" * (1 << 18))
    r = box.sh(f"echo 'echo {SECRET}' >>.githooks/pre-commit", env=GIT_ENV)
    assert SECRET not in hook.read_text()
    assert r.code == REFUSED and f"{config} is larger than 1 MiB" in r.err, r
    r = box.sh("true", ["--set", "filesystem.unprotect=.git/hooks", "--set", "filesystem.unprotect=.git/config"],
               env=GIT_ENV)
    assert r.code == 0, r


@pytest.mark.parametrize("closed", [".git", "main/.git/worktrees/w/commondir", "main/.git/worktrees/w",
                                    "main/.git/config"])
def test_worktree_pointers_are_read(plain, closed):
    """A work tree whose repository is writable, too."""
    commands = ("git init -q main && cd main && git config core.hooksPath .githooks &&"
                " git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git worktree add -q ../w")
    plain.host("/bin/sh", "-c", commands, env=GIT_ENV).ok()
    hook = plain.write("ws/w/.githooks/pre-commit", "#!/bin/sh\n", 0o755)
    options = ["--allow-write", str(plain.ws / "main")]
    top = plain.ws / ("w/.git" if closed == ".git" else closed)
    mode = 0o755 if top.is_dir() else 0o644
    attack = f"chmod {mode:o} '{top}'; echo 'echo {SECRET}' >>.githooks/pre-commit"
    plain.sh(attack, options, cwd=plain.ws / "w", env=GIT_ENV)
    assert SECRET not in hook.read_text()
    plain.sh(f"chmod 000 '{top}'", options, cwd=plain.ws / "w", env=GIT_ENV)
    if top.stat().st_mode & 0o777:
        top.chmod(0)  # the broker does not let the command: shown all the same
    r = plain.sh(attack, options, cwd=plain.ws / "w", env=GIT_ENV)
    assert SECRET not in hook.read_text(), r
    assert r.code == REFUSED and f"{top}, " in r.err, r
