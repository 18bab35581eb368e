# SPDX-License-Identifier: Apache-2.0
"""What a run leaves behind that runs later outside is told at its end, from content where it counts."""
import json

import pytest

LOCK = '{"packages": {"node_modules/a": {"version": "1.0.0", "resolved": "https://%s/a.tgz"}}}\n'
OLD, NEW = LOCK % "old.example", LOCK % "new.example"
FROM_NEW = "packages come from new.example"

# script, {path relative to the project: reason}
LATER = {
    "package scripts": ("echo '{}' > package.json", {"package.json": "package scripts"}),
    "build rules": ("echo x >> Makefile; mkdir -p b; echo x > b/CMakeLists.txt",
                    {"Makefile": "make rules", "b/CMakeLists.txt": "build rules"}),
    "CI": ("mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; echo x > .gitlab-ci.yml",
           {".github/workflows/ci.yml": "CI", ".gitlab-ci.yml": "CI"}),
    "hooks of tools": ("mkdir .husky; echo x > .husky/pre-commit", {".husky/pre-commit": "git hooks"}),
    "package manager": ("echo x > .npmrc; mkdir .cargo; echo x > .cargo/config.toml",
                        {".npmrc": "package manager settings", ".cargo/config.toml": "cargo settings"}),
    "settings that are code": ("echo x > vite.config.ts; touch conftest.py",
                               {"vite.config.ts": "settings that are code", "conftest.py": "run by pytest"}),
    "agents' instructions": ("echo x >> CLAUDE.md", {"CLAUDE.md": "instructions for agents"}),
    "by rename": ("echo x > t; mv t Makefile", {"Makefile": "make rules"}),
    "in a directory that moved": ("mkdir d; echo x > d/Makefile; mv d e", {"e/Makefile": "make rules"}),
    "made and removed": ("echo x > Justfile; rm Justfile", {}),
    "installed packages": ("mkdir -p node_modules/a; echo '{}' > node_modules/a/package.json", {}),
    "a pipe": ("mkfifo ff gone; rm gone", {"ff": "a pipe: a program that opens it waits"}),
    "only read": ("cat Makefile package-lock.json", {}),
    "new territory": ("mkdir -p n/.vscode; echo x > n/.vscode/tasks.json; echo x > n/.envrc",
                      {"n/.vscode/tasks.json": "an editor runs tasks and tools from it",
                       "n/.envrc": "direnv runs it on entering the directory"}),
    "changed remote": ("git remote add o https://new.example/r.git",
                       {".git/config": "where git fetches from and pushes to"}),
    "push elsewhere": ("git config remote.pushDefault https://new.example/r.git",
                       {".git/config": "where git fetches from and pushes to"}),
    "another remote of a branch": ("git config branch.main.remote upstream",
                                   {".git/config": "where git fetches from and pushes to"}),
    "another remote to push to": ("git config branch.main.pushRemote ../elsewhere",
                                  {".git/config": "where git fetches from and pushes to"}),
    "the usual remote of a new branch": ("git config branch.topic.remote origin;"
                                         "git config branch.topic.merge refs/heads/topic", {}),
    "the usual remote in place of another": ("git config branch.theirs.remote origin",
                                             {".git/config": "where git fetches from and pushes to"}),
    "a copy with remotes": ("mkdir n; cp src/repo/.git/config n; mkdir n/objects n/refs",
                            {"n/config": "where git fetches from and pushes to"}),
    "other git configuration": ("git config user.name x", {}),
    "rebase with exec": ("mkdir .git/rebase-merge; printf 'pick 1\\n\\texec  evil\\n' > .git/rebase-merge/git-rebase-todo",
                         {".git/rebase-merge/git-rebase-todo": "a rebase in progress"}),
    "rebase with x": ("mkdir .git/rebase-merge; printf ' x\\tevil\\n' > .git/rebase-merge/git-rebase-todo",
                      {".git/rebase-merge/git-rebase-todo": "a rebase in progress"}),
    "rebase without": ("mkdir .git/rebase-merge; printf 'pick 1 exec x\\n' > .git/rebase-merge/git-rebase-todo", {}),
    "rebase, a pipe": ("mkdir .git/rebase-merge; mkfifo .git/rebase-merge/git-rebase-todo; "
                       "(cat > .git/rebase-merge/git-rebase-todo &) ; "
                       "dd if=.git/rebase-merge/git-rebase-todo count=0 status=none; rm -r .git/rebase-merge", {}),
    "same hosts": ("echo >> package-lock.json", {}),
    "another host": (f"cat > package-lock.json <<'E'\n{NEW}E\n", {"package-lock.json": FROM_NEW}),
    "another host, by rename": (f"cat > t <<'E'\n{NEW}E\nmv t package-lock.json", {"package-lock.json": FROM_NEW}),
    "another host, removed first": (f"rm package-lock.json; cat > package-lock.json <<'E'\n{NEW}E\n",
                                    {"package-lock.json": FROM_NEW}),
    "same hosts, removed first": (f"cp package-lock.json t; rm package-lock.json; mv t package-lock.json", {}),
    "a new lock file": (f"mkdir l; cat > l/package-lock.json <<'E'\n{NEW}E\n", {"l/package-lock.json": FROM_NEW}),
    "a hidden host": ("echo '{\"resolved\": \"https:\\/\\/evil.example\"}' > package-lock.json",
                      {"package-lock.json": "packages come from where cannot be read plainly"}),
    "a lock file that is a link": ("rm package-lock.json; ln -s Makefile package-lock.json; echo >> package-lock.json",
                                   {"Makefile": "make rules", "package-lock.json":
                                    "packages come from where cannot be read plainly"}),
    "index of packages": ("echo '--index-url https://new.example/simple' > requirements-dev.txt",
                          {"requirements-dev.txt": FROM_NEW}),
}

REMOVED = {
    "file": ("rm src/.envrc", {"src/.envrc"}),
    "moved away": ("mv src x", {"src/.envrc", "src/.vscode"}),
    "directory": ("rm -rf src/.vscode", {"src/.vscode"}),
    "part of a directory": ("rm src/.vscode/b", {"src/.vscode/b"}),
    "with all above": ("rm -rf src", {"src/.envrc", "src/.vscode", "src/repo/.git/hooks/pre-commit",
                                      "src/repo/.git/config"}),
    "hook": ("cd src/repo && rm .git/hooks/pre-commit", {"src/repo/.git/hooks/pre-commit"}),
    "git configuration": ("rm .git/config", {".git/config"}),
    "of this run": ("mkdir n; touch n/.envrc; rm -r n; git init -q c; rm -rf c", set()),
    "replaced by git": ("git config user.name y; git config user.name z", set()),
    "not protected": ("rm a; rm -rf dir", set()),
    "held": ("rm -f .bashrc; rm -rf .git/hooks", set()),
}


@pytest.fixture
def place(boxes):
    box = boxes("user")
    box.host("git", "init", "-q", ".").ok()
    box.host("git", "init", "-q", "src/repo").ok()
    box.host("git", "config", "branch.theirs.remote", "upstream").ok()
    box.host("git", "-C", "src/repo", "remote", "add", "origin", "https://old.example/r.git").ok()
    for f in ("a", "dir/b", ".bashrc", "src/.envrc", "src/.vscode/a", "src/.vscode/b", "Makefile", "CLAUDE.md",
              "src/repo/.git/hooks/pre-commit"):
        box.write(f"ws/{f}", "x\n")
    box.write("ws/package-lock.json", OLD)
    return box


def report(box, script, options=()):
    r = box.sh(script, options=["--report", str(box.home / "report.json"), *options])
    return r, json.loads((box.home / "report.json").read_text())


@pytest.mark.parametrize("case", LATER)
def test_runs_later(place, case):
    script, expected = LATER[case]
    r, told = report(place, script)
    assert {e["path"]: e["reason"] for e in told["runsLater"]} == \
        {str(place.ws / path): reason for path, reason in expected.items()}, str(r)
    for path in expected:
        assert str(place.ws / path) in r.err, r.err
    assert bool(expected) == ("run later outside" in r.err), r.err


@pytest.mark.parametrize("case", REMOVED)
def test_removed(place, case):
    script, expected = REMOVED[case]
    r, told = report(place, script)
    assert {e["path"] for e in told["removed"]} == {str(place.ws / p) for p in expected}, str(r)
    assert all(e["reason"] for e in told["removed"])
    for path in expected:
        assert not (place.ws / path).exists() and str(place.ws / path) in r.err, r.err


def test_quiet(place):
    r, told = report(place, "echo x >> Makefile; rm src/.envrc", options=["-q"])
    assert r.err == "" and len(told["runsLater"]) == 1 and len(told["removed"]) == 1


def test_a_flood_hides_nothing(place):
    """Denials are lost when there are too many at once; what was let happen is not."""
    script = ("import os\n"
              "for i in range(20000):\n"
              "    try: os.open(f'src/.bashrc/../.zshrc', os.O_WRONLY | os.O_CREAT)\n"
              "    except OSError: pass\n"
              "    try: os.mkdir(f'/etc/ambit-test-{i}')\n"
              "    except OSError: pass\n"
              "open('Makefile', 'a').write('x')\n")
    place.write("ws/flood.py", script)
    _, told = report(place, "/usr/bin/python3 flood.py", options=["-q"])
    assert [e["path"] for e in told["runsLater"]] == [str(place.ws / "Makefile")]
    assert told["violationsNotListed"] > 0
