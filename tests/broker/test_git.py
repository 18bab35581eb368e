# SPDX-License-Identifier: Apache-2.0
"""Git works inside as outside, except for what would make git run programs later, outside."""
import os
import re
import shlex

import pytest

# One command per line, all in one shell. A `!` at the end: refused inside, works outside.
SCRIPT = r"""
git init -q -b main repo
cd repo
git config user.name Tester
git config user.email tester@example.org
git config commit.gpgsign false
git config core.abbrev 12
git config gc.autoDetach false
echo one > a.txt; mkdir -p sub/deep; echo two > sub/deep/b.txt; echo '*.o' > .gitignore
git add .
git commit -q -m first
echo more >> a.txt
git add -A
git commit -q -m second
git commit -q --amend -m 'second, amended'
git tag v1
git tag -a v2 -m annotated
git tag -d v1
git notes add -m note HEAD
git branch topic
git branch -m topic feature
git checkout -q feature
echo feature > f.txt; git add f.txt
git commit -q -m feature
git commit -q --allow-empty -m 'fixup! feature'
git checkout -q main
echo main >> a.txt
git commit -q -a -m 'main moves'
git merge -q --no-ff --no-edit feature
git rebase -q HEAD~1
git checkout -q feature
GIT_SEQUENCE_EDITOR=true git rebase -q -i --autosquash main~1
git checkout -q main
git merge -q feature --no-edit
git checkout -q -b pick HEAD~2
echo pick > p.txt; git add p.txt
git commit -q -m picked
git checkout -q main
git cherry-pick pick
git revert --no-edit HEAD
echo dirty >> a.txt
git stash -q
git stash list
git stash pop -q
git stash push -q -m again
git stash drop -q
git checkout -q -- .
git restore a.txt
git reset -q --soft HEAD~1
git reset -q --hard HEAD@{1}
git switch -q -c switched
git switch -q main
git branch -D switched
git rm -q --cached f.txt
git reset -q --hard
git mv a.txt moved.txt
git commit -q -m moved
git clean -q -fdx
git diff --stat HEAD~1
git log --oneline -3 --no-abbrev-commit --format=%s
git blame -s moved.txt
git grep -c one
git archive -o out.tar HEAD
git format-patch -q -1 -o patches
git reset -q --hard HEAD~1
git am -q patches/0001-moved.patch
git bisect start HEAD HEAD~4
git bisect run true
git bisect reset
git reflog expire --expire=now --all
git gc -q --prune=now
git repack -q -a -d
git pack-refs --all
git fsck --no-progress
git worktree add -q ../wt1 -b wt1
git -C ../wt1 commit -q --allow-empty -m 'in the worktree'
git -C ../wt1 status --short
git worktree move ../wt1 ../wt2
git worktree list --porcelain
git worktree remove ../wt2
git worktree add -q --detach ../wt3
rm -rf ../wt3
git worktree prune
git clone -q . ../clone
git clone -q --bare . ../bare.git
git clone -q --mirror . ../mirror.git
git clone -q --depth 1 file://$PWD ../shallow
git clone -q --separate-git-dir ../sep.git . ../sep
git -C ../sep log -1 --format=%s
git remote add origin ../bare.git
git fetch -q origin
git push -q -u origin main
git branch --set-upstream-to=origin/main main
git push -q origin feature
git pull -q --ff-only
git remote rename origin upstream
git remote set-url upstream ../bare.git
git remote add other https://example.org/x.git
git remote remove other
git config --get branch.main.remote
git config pull.rebase true
git config --unset pull.rebase
git config branch.feature.description x
git config --rename-section branch.feature branch.renamed
git sparse-checkout init --cone
git sparse-checkout set sub
git sparse-checkout disable
git update-index --assume-unchanged moved.txt
git update-ref refs/heads/made HEAD
git symbolic-ref HEAD refs/heads/made
git checkout -q main
git apply --check -R patches/0001-moved.patch
git -c protocol.file.allow=always submodule add -q ../bare.git mod
git commit -q -m 'with a submodule'
git -c protocol.file.allow=always submodule update --init
git submodule status
git submodule deinit -f mod
git shortlog -s HEAD
git describe --tags
git rev-list --count HEAD
git count-objects
git ls-files -s
git commit-graph write
git multi-pack-index write
git init -q -b main ../second
git -C ../second -c user.name=x -c user.email=x@x commit -q --allow-empty -m x
git bundle create -q ../b.bundle main
git clone -q ../b.bundle ../from-bundle
git config alias.st status!
git config core.fsmonitor ./x!
git config core.hooksPath ./h!
git config core.sshCommand ./x!
git config core.editor ./x!
git config core.pager ./x!
git config diff.external ./x!
git config filter.x.clean ./x!
git config credential.helper ./x!
git config gpg.program ./x!
git config include.path ../evil!
git config url.ext::sh.insteadOf https://!
git config remote.upstream.uploadpack ./x!
git config remote.upstream.url 'ext::sh -c x'!
git config branch.main.remote 'ext::sh -c x'!
git -C ../second config core.worktree /etc!
git config protocol.ext.allow always!
git status --short
"""


def commands():
    lines = [x for x in SCRIPT.strip().splitlines() if x]
    return [(x.rstrip("!"), x.endswith("!")) for x in lines]


def shell_script():
    parts = ["export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' "
             "GIT_COMMITTER_DATE='2026-01-01T00:00:00Z' GIT_PAGER=cat GIT_EDITOR=true"]
    for i, (command, _) in enumerate(commands()):
        parts.append(f"{{ {command}; }} >>$LOG.out 2>&1 </dev/null; echo {i} $? >>$LOG")
    parts.append("cd ..; for d in repo clone bare.git mirror.git shallow sep from-bundle; do "
                 "echo == $d; git -C $d for-each-ref --format='%(refname) %(objectname)'; "
                 "git -C $d rev-parse HEAD; git -C $d config --local --list; "
                 "git -C $d status --short; done")
    return "\n".join(parts)


def run(box, where, sandbox):
    ws = box.mkdir(where)
    env = {"LOG": str(ws / "log")}
    argv = ["/bin/bash", "-c", shell_script()]
    r = (box.run(*argv, cwd=ws, env=env, options=["-q", "--env", "LOG"], timeout=90)
         if sandbox else box.host(*argv, cwd=ws, env=env, timeout=90))
    codes = dict(map(int, x.split()) for x in (ws / "log").read_text().splitlines())
    return r.out.replace(str(ws), "WS"), codes, (ws / "log.out").read_text()


def test_script(boxes):
    assert len(commands()) >= 100
    box = boxes("user")
    out, codes, log = run(box, "outside", False)
    out_inside, codes_inside, log_inside = run(box, "inside", True)
    wrong = []
    for i, (command, refused) in enumerate(commands()):
        native, inside = codes.get(i), codes_inside.get(i)
        if refused and not (native == 0 and inside not in (0, None)):
            wrong.append(f"{command}: {native} outside, {inside} inside, should be refused")
        if not refused and not (native == inside == 0):
            wrong.append(f"{command}: {native} outside, {inside} inside")
    assert not wrong, "\n".join(wrong) + "\n" + log_inside[-3000:]
    assert refs(out) == refs(out_inside)


def refs(text):
    """What the repositories hold, without what is wanted to be different."""
    secret = re.compile(r"(alias|core\.(fsmonitor|hookspath|sshcommand|editor|pager|worktree)|diff|"
                        r"filter|credential|gpg|include|url|protocol|submodule)\b"
                        r"|remote\.upstream\.(uploadpack|url)|branch\.main\.remote|.*(mod|\.gitmodules)$")
    return [x for x in text.splitlines() if not secret.match(x)]


# --- what must not come to life outside -----------------------------------------------------

MARK = "#!/bin/sh\ntouch {}\n"


@pytest.fixture
def trap(boxes):
    """A box with a repository, and a program whose running leaves a mark on the host."""
    box = boxes("user")
    box.host("git", "init", "-q", "-b", "main", ".").ok()
    box.host("git", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty",
             "-m", "x").ok()
    box.marker = box.home / "it-ran"
    box.write("ws/prog", MARK.format(box.marker), 0o755)
    return box


ATTEMPTS = {
    "config key": "git config core.fsmonitor $PWD/prog",
    "config file": "printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/prog >> .git/config",
    "config replaced": "cp .git/config c; git config -f c core.fsmonitor $PWD/prog; mv c .git/config",
    "config through a link": "ln .git/config l; git config -f l core.fsmonitor $PWD/prog;"
                             "printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/prog >> l",
    "config by sed": "sed -i \"s#bare = false#fsmonitor = $PWD/prog#\" .git/config",
    "config included": "printf '[include]\\n\\tpath = ../c\\n' > .git/config.lock;"
                       "mv .git/config.lock .git/config",
    "section with a trick": "printf '[core]#x\\n[core \"\"]\\n[CORE] FSMonitor=%s\\n' $PWD/prog > c;"
                            "mv c .git/config",
    "continued line": "printf '[user]\\n\\tname = a \\\\\\n\\n[core]\\n\\tfsmonitor=%s\\n' $PWD/prog > c;"
                      "mv c .git/config",
    "worktree config": "git config extensions.worktreeConfig true;"
                       "git config --worktree core.fsmonitor $PWD/prog;"
                       "printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/prog > .git/config.worktree",
    "hook": "cp prog .git/hooks/post-index-change; cp prog .git/hooks/pre-commit",
    "hook by renaming": "mkdir h; cp prog h/pre-commit; cp prog h/post-index-change;"
                        "mv .git/hooks h2; mv h .git/hooks; ln -s ../h .git/hooks",
    "hook by template": "mkdir -p t/hooks; cp prog t/hooks/post-index-change;"
                        "cp prog t/hooks/pre-commit; git init -q --template=$PWD/t .",
    "new git directory": "mkdir t; cp -r .git t/g; printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/prog"
                         " > t/g/config; mv .git old; mv t/g .git; cp -r t/g .git",
    "commondir": "cp -r .git evil; printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/prog > evil/config;"
                 "echo ../evil > .git/commondir",
    "bare plant": "cp -r .git docs; rm -f docs/config; printf "
                  "'[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = ..\\n\\tfsmonitor = %s\\n' $PWD/prog > docs/config",
    "bare plant, config first": "mkdir docs; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = ..\\n\\tfsmonitor = %s\\n' "
                                "$PWD/prog > docs/config; cp -r .git/HEAD .git/objects .git/refs docs",
    "bare plant, moved": "mkdir -p t/d; printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/prog > t/d/config;"
                         "cp -r .git/HEAD .git/objects t/d; mkdir t/r; mv t/r t/d/refs; mv t/d docs",
    "half a repository": "rm -rf .git/refs; printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/prog > .git/config;"
                         "mkdir .git/refs; mkdir -p .git/refs/heads",
    "git file": "cp -r .git g2; git config -f g2/config core.fsmonitor $PWD/prog; mv .git old;"
                "echo 'gitdir: g2' > .git",
    "module": "mkdir -p .git/modules; cp -r .git/objects/../../.git /tmp/m; cp -r /tmp/m .git/modules/m;"
              "git config -f .git/modules/m/config core.fsmonitor $PWD/prog;"
              "cp prog .git/modules/m/hooks/post-index-change; mkdir docs;"
              "echo 'gitdir: ../.git/modules/m' > docs/.git",
    "attributes": "git config filter.x.clean $PWD/prog; echo '* filter=x' > .git/info/attributes;"
                  "mkdir i; echo '* filter=x' > i/attributes; mv .git/info i2; mv i .git/info",
    "worktree elsewhere": "git worktree add -q wt; echo ../../../evil > .git/worktrees/wt/commondir;"
                          "printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/prog > .git/worktrees/wt/config.worktree",
}


def use_outside(box):
    """What a person does in the project afterwards, in every directory that git would take."""
    box.write("ws/new-file", "x")
    for d in [".", "docs", "wt", "g2", "evil"]:
        where = box.ws / d
        if not where.is_dir():
            continue
        for command in ("status", "add -A .", "diff HEAD", "commit -q -m y", "gc -q", "log -1"):
            box.host("git", "-c", "user.name=x", "-c", "user.email=x@x", *shlex.split(command),
                     cwd=where)


@pytest.mark.parametrize("name", ATTEMPTS)
def test_nothing_runs_outside(trap, name):
    trap.sh(ATTEMPTS[name], options=["-q"])
    use_outside(trap)
    assert not trap.marker.exists(), trap.host("find", ".", "-newer", "prog", "-not", "-path",
                                               "*/objects/*").out


@pytest.mark.parametrize("where", ["docs", "build"])
def test_nothing_runs_from_a_bulk_directory(trap, where):
    trap.mkdir("ws/build")
    trap.sh("cp -r .git build/evil; git config -f build/evil/config core.fsmonitor $PWD/prog;"
            "mkdir docs; echo 'gitdir: ../build/evil' > docs/.git; cp -r build/evil build/.git",
            options=["-q"])
    trap.host("git", "status", cwd=trap.ws / where)
    assert not trap.marker.exists()


@pytest.mark.parametrize("name", ["config key", "hook", "bare plant, config first", "half a repository",
                                  "git file", "config file"])
def test_control_runs_without_sandbox(trap, name):
    """The same attempts without the sandbox do run: the trap works."""
    trap.host("/bin/sh", "-c", ATTEMPTS[name])
    use_outside(trap)
    assert trap.marker.exists()


HALF = ("mkdir -p n/g/refs n/g/hooks; printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/prog > n/g/config; "
        "cp prog n/g/hooks/post-index-change; mv n/g n/.git; true")


@pytest.mark.parametrize("mode", ["755", "0"])
@pytest.mark.parametrize("sandbox", [True, False], ids=["inside", "control"])
def test_half_a_repository_does_not_become_one(trap, sandbox, mode):
    """A directory that is no git directory is not renamed to .git, where `git init` would wake it;
    one that cannot be looked into neither."""
    script = HALF.replace("mv n/g n/.git", f"chmod {mode} n/g; mv n/g n/.git; chmod 755 n/g n/.git 2>/dev/null")
    r = trap.sh(script) if sandbox else trap.host("/bin/sh", "-c", script)
    trap.host("git", "init", "-q", ".", cwd=trap.ws / "n")
    trap.write("ws/n/f", "x")
    trap.host("git", "add", "f", cwd=trap.ws / "n")
    assert trap.marker.exists() != sandbox, str(r)
    assert (f"denied write to {trap.ws}/n/.git " in r.err) == sandbox, str(r)


@pytest.mark.parametrize("how", ["ln -s g n/.git", "ln -s g n/l; ln -P n/l n/.git",
                                 "ln -s g n/l; mv -T n/l n/.git"])
@pytest.mark.parametrize("sandbox", [True, False], ids=["inside", "control"])
def test_half_a_repository_is_not_linked_to(trap, sandbox, how):
    """Nor is it called so by a link: outside, `git init` would complete what that leads to."""
    script = HALF.replace("mv n/g n/.git", how)
    r = trap.sh(script) if sandbox else trap.host("/bin/sh", "-c", script)
    trap.host("git", "init", "-q", ".", cwd=trap.ws / "n")
    trap.write("ws/n/f", "x")
    trap.host("git", "add", "f", cwd=trap.ws / "n")
    assert trap.marker.exists() != sandbox, str(r)
    assert (f"{trap.ws}/n/.git " in r.err) == sandbox, str(r)


@pytest.mark.parametrize("name", ["config", "second"])
def test_configuration_renamed_to_itself(trap, name):
    """rename(2) does nothing then; as a change it would be installed, and the old name removed."""
    trap.host("ln", ".git/config", ".git/second").ok()
    before = (trap.ws / ".git/config").read_text()
    trap.run("python3", "-c", f"import os; os.rename('.git/{name}', '.git/config')").ok()
    assert (trap.ws / ".git/config").read_text() == before
    assert (trap.ws / ".git/second").stat().st_nlink == 2


def test_a_repository_is_renamed(trap):
    trap.sh("mkdir n; git init -q n/a; mv n/a/.git n/g; mv n/g n/.git; git -C n rev-parse --git-dir").ok()


MODULES = {
    "name": ("printf '[submodule \"../../x\"]\\n\\tpath = m\\n' > t; mv t .gitmodules"),
    "path": ("git config -f .gitmodules submodule.m.path ../out"),
    "hidden": ("git config -f .gitmodules submodule.m.path .vscode"),
    "carriage return": ("git config -f .gitmodules submodule.m.path \"$(printf 'm\\r')\""),
    "url": ("git config -f .gitmodules submodule.m.url 'ext::sh -c x'"),
    "option": ("git config -f .gitmodules submodule.m.url -u./prog"),
    "command": ("git config -f .gitmodules submodule.m.update '!./prog'"),
    "by hand": ("echo '[submodule \"m\"]' > .gitmodules"),
    "link": ("echo '[submodule \"m\"]' > t; ln -s t .gitmodules; ln t .gitmodules"),
}


def test_submodule_in_an_old_repository(trap):
    """`git submodule add` writes .gitmodules as it writes its configuration; told at the end."""
    trap.host("git", "init", "-q", "--bare", "../m.git").ok()
    trap.host("git", "push", "-q", "../m.git", "HEAD:refs/heads/main").ok()
    trap.host("git", "--git-dir", "../m.git", "symbolic-ref", "HEAD", "refs/heads/main").ok()
    r = trap.sh("git -c protocol.file.allow=always submodule add -q ../m.git lib/m && git submodule status && "
                "git -c user.name=x -c user.email=x@x commit -qm module && git -C lib/m log -1 --format=%s && "
                "git -c protocol.file.allow=always submodule update --init -q && git rm -q lib/m").ok()
    assert r.out.split()[-1] == "x" and f"{trap.ws}/.gitmodules (where git fetches" in r.err, str(r)
    assert "denied" not in r.err, str(r)
    trap.host("git", "reset", "-q", "--hard").ok()
    assert "m.git" in (trap.ws / ".gitmodules").read_text()


@pytest.mark.parametrize("case", MODULES)
def test_gitmodules_refused(trap, case):
    r = trap.sh(MODULES[case])
    assert r.code != 0 and f"denied write to {trap.ws}/.gitmodules " in r.err, str(r)
    assert "unprotect=.gitmodules" in r.err and not (trap.ws / ".gitmodules").exists()
    trap.host("/bin/sh", "-c", MODULES[case])
    assert (trap.ws / ".gitmodules").exists()


def test_hooks_stay_as_they_were(trap):
    """A hook of the user's own is neither changed nor replaced, and runs when git commits inside."""
    trap.write("ws/.git/hooks/pre-commit", "#!/bin/sh\necho own hook >&2\n", 0o755)
    r = trap.sh("git -c user.name=x -c user.email=x@x commit -q --allow-empty -m y;"
                "echo evil > .git/hooks/pre-commit; cp prog .git/hooks/pre-push; ls .git/hooks",
                options=["-q"])
    assert "own hook" in r.err and "pre-push\n" not in r.out
    assert "own hook" in (trap.ws / ".git/hooks/pre-commit").read_text()


def test_lock_file_is_gits_own(trap):
    """Installing a configuration leaves no file of ours, nor a lock."""
    trap.sh("for i in 1 2 3 4 5; do git config user.name n$i; done; git config core.pager x;"
            "touch .git/config.lock; git config user.name blocked; rm .git/config.lock;"
            "git config user.name last").ok()
    left = [p for p in os.listdir(trap.ws / ".git") if "lock" in p or "ambit" in p]
    assert left == [] and "last" in (trap.ws / ".git/config").read_text()


WORKTREES = {
    "a link": "git config core.worktree ../link",
    "a link below": "mkdir d; ln -s \"$OUT\" d/link; git config core.worktree ../d/link",
    "a directory that becomes a link": "mkdir d; git config core.worktree ../d; rmdir d; ln -s \"$OUT\" d",
    "by hand": "cp .git/config .git/config.lock; git config -f .git/config.lock core.worktree ../link;"
               " mv .git/config.lock .git/config",
}


@pytest.mark.parametrize("sandboxed", [True, False], ids=["inside", "control"])
@pytest.mark.parametrize("how", WORKTREES)
def test_git_outside_works_where_it_did(boxes, how, sandboxed):
    """With another core.worktree `git reset --hard` outside would write files that were chosen inside."""
    box = boxes("user")
    out = box.mkdir("out")
    box.host("git", "init", "-q", "-b", "main", ".").ok()
    script = (f"OUT={out}; ln -s \"$OUT\" link; h=$(echo evil | git hash-object -w --stdin);"
              " git update-index --add --cacheinfo 100644,$h,.bashrc;"
              " git -c user.name=x -c user.email=x@x commit -q -m x;" + WORKTREES[how])
    (box.sh if sandboxed else lambda s: box.host("sh", "-c", s))(script)
    box.host("git", "reset", "-q", "--hard")
    assert (out / ".bashrc").exists() != sandboxed


@pytest.mark.parametrize("worktree, passes", [("../../../sub", True), ("../../../link", False),
                                              ("../../../other", False), ("../../../none", False)])
def test_worktree_of_a_submodule(boxes, worktree, passes):
    """Only to the directory whose .git leads back."""
    box = boxes("user")
    box.mkdir("ws/other")
    script = ("git init -q -b main .; ln -s sub link; mkdir sub;"
              " git init -q --bare .git/modules/sub; echo 'gitdir: ../.git/modules/sub' > sub/.git;"
              f" git --git-dir=.git/modules/sub config core.worktree {worktree}")
    box.sh(script)
    config = (box.ws / ".git/modules/sub/config").read_text()
    assert ("worktree" in config) == passes, config


# Remotes as git knew them before its configuration did; $EVIL is where they lead.
OLD_REMOTES = {
    "remotes": "mkdir -p .git/remotes; echo URL: $EVIL > .git/remotes/origin",
    "branches": "mkdir -p .git/branches; echo $EVIL > .git/branches/origin",
    "a directory moved in": "mkdir r; echo URL: $EVIL > r/origin; rmdir .git/remotes; mv -T r .git/remotes",
    "a file moved in": "mkdir -p .git/remotes; echo URL: $EVIL > o; mv o .git/remotes/origin",
    "a link": "mkdir -p .git/remotes; echo URL: $EVIL > o; ln o .git/remotes/origin",
    "in capitals": "mkdir -p .git/REMOTES; echo URL: $EVIL > .git/REMOTES/origin;"
                   "[ -e .git/remotes ] || mv .git/REMOTES .git/remotes",
    "before it is a repository": "cp -r .git n; mkdir n/remotes; rm -r n/refs; echo URL: $EVIL > n/remotes/origin;"
                                 "cp -r .git/refs n; mv .git old; mv n .git",
}


@pytest.mark.parametrize("sandboxed", [True, False], ids=["inside", "control"])
@pytest.mark.parametrize("how", OLD_REMOTES)
def test_remotes_of_the_old_kind(trap, how, sandboxed):
    """What the configuration does not say git takes from there: a push outside would go elsewhere."""
    for bare in ("evil.git", "good.git"):
        trap.host("git", "init", "-q", "--bare", "-b", "main", trap.home / bare).ok()
    trap.host("git", "remote", "add", "origin", trap.home / "good.git").ok()
    script = f"EVIL={trap.home}/evil.git; git remote remove origin; {OLD_REMOTES[how]}"
    r = trap.sh(script) if sandboxed else trap.host("/bin/sh", "-c", script)
    trap.host("git", "push", "origin", "HEAD:refs/heads/main")
    came = trap.host("git", "-C", trap.home / "evil.git", "show-ref").out
    assert ("refs/heads/main" in came) != sandboxed, str(r)


def test_remotes_of_the_old_kind_can_be_lifted(trap):
    r = trap.sh("mkdir -p .git/remotes; echo x > .git/remotes/o")
    hint = r.err.split("allow with: ")[1].split(")")[0]
    trap.sh("echo x > .git/remotes/o", options=hint.split()).ok()
    trap.sh("git update-ref refs/remotes/branches/remotes HEAD; git branch remotes/branches/x;"
            "mkdir -p src/branches src/remotes; touch src/branches/x src/remotes/x").ok()


@pytest.mark.parametrize("path", [".git/worktrees/wt/gitdir", ".git/worktrees/wt/commondir",
                                  ".git/remotes/x", ".git/modules/m/branches/x", ".git/worktrees/wt/HEAD"])
def test_explain_is_what_run_does(trap, path):
    trap.host("git", "worktree", "add", "-q", "wt").ok()
    trap.host("git", "init", "-q", "--bare", ".git/modules/m").ok()
    trap.host("mkdir", "-p", ".git/remotes", ".git/modules/m/branches").ok()
    said = trap.ambit("explain", "write", path)
    done = trap.sh(f"echo x >> {path}")
    assert (said.code == 0) == (done.code == 0), (str(said), str(done))


@pytest.mark.parametrize("key, reason", [
    ("core.sshCommand", "git may run programs because of this key"),
    ("http.proxy", "git may send data elsewhere, or trust others, because of this key"),
    ("help.autoCorrect", "it is not among the keys that are known to be harmless"),
    ("user.signingKey", None), ("http.postBuffer", None), ("core.symlinks", None)])
def test_what_is_said_of_a_key(boxes, key, reason):
    box = boxes("root")
    box.host("git", "init", "-q", ".").ok()
    r = box.run("git", "config", key, "1")
    assert (r.code == 0) == (reason is None), str(r)
    said = f"denied write to {box.ws}/.git/config — git configuration key {key.lower()}: {reason} ("
    assert (said in r.err) == (reason is not None), str(r)
