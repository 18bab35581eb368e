# SPDX-License-Identifier: Apache-2.0
"""Every refusal is told: which path, by which rule, from where, who asked, and what would allow it."""
import json
import shlex

import pytest

CONFIG, GITDIR = "protected git configuration", "protected git directory"
DENY, OUTSIDE = "filesystem.denyWrite", "filesystem.allowWrite"


def name(pattern):
    return "protected name " + pattern


PY = "import os; "
# command, target (relative to the project unless absolute), rule, process
DENIED = {
    "redirection": ("echo x > .envrc", ".envrc", name(".envrc"), "sh"),
    "append": ("echo x >> src/.bashrc", "src/.bashrc", name(".bashrc"), "sh"),
    "deep": ("echo x > src/deep/.mcp.json", "src/deep/.mcp.json", name(".mcp.json"), "sh"),
    "two components": ("echo x > .claude/settings.json", ".claude/settings.json",
                       name(".claude/settings.json"), "sh"),
    "below a name": ("echo x > old/.vscode/tasks.json", "old/.vscode/tasks.json", name(".vscode"), "sh"),
    "directory": ("mkdir src/.idea", "src/.idea", name(".idea"), "mkdir"),
    "directory with parents": ("mkdir -p src/.cursor/rules", "src/.cursor", name(".cursor"), "mkdir"),
    "python": (f"/usr/bin/python3 -c \"open('.zshrc', 'w')\"", ".zshrc", name(".zshrc"), "python3"),
    "python, rename": (f"/usr/bin/python3 -c \"{PY}os.rename('a', 'src/.profile')\"", "src/.profile",
                       name(".profile"), "python3"),
    "python, link": (f"/usr/bin/python3 -c \"{PY}os.symlink('a', 'src/.env')\"", "src/.env", name(".env"),
                     "python3"),
    "python, hard link": (f"/usr/bin/python3 -c \"{PY}os.link('a', 'src/.envrc')\"", "src/.envrc",
                          name(".envrc"), "python3"),
    "node": ("node -e \"require('fs').writeFileSync('src/.envrc', 'x')\"", "src/.envrc", name(".envrc"),
             "node"),
    "node, asynchronous": ("node -e \"require('fs').writeFile('src/.ambit.json', 'x', () => {})\"",
                           "src/.ambit.json", name(".ambit.json"), None),
    "git config": ("git config core.pager evil", ".git/config", CONFIG, "git"),
    "git config, alias": ("git config alias.x '!evil'", ".git/config", CONFIG, "git"),
    "git config, by hand": ("echo '[core]' >> .git/config", ".git/config", CONFIG, "sh"),
    "git hook": ("echo x > .git/hooks/pre-commit", ".git/hooks/pre-commit", name(".git/hooks"), "sh"),
    "git hook, copied": ("cp a .git/hooks/pre-push", ".git/hooks/pre-push", name(".git/hooks"), "cp"),
    "git hooks, linked": ("git init -q r; rm -rf r/.git/hooks; ln -s ../../src r/.git/hooks", "r/.git/hooks",
                          name(".git/hooks"), "ln"),
    "held, delete": ("rm -f .bashrc", ".bashrc", name(".bashrc"), "rm"),
    "held, delete below": ("rm -f .git/hooks/pre-commit.sample", ".git/hooks/pre-commit.sample",
                           name(".git/hooks"), "rm"),
    "held, mode": ("chmod 600 .bashrc", ".bashrc", name(".bashrc"), "chmod"),
    "held, moved away": ("mv .bashrc x", ".bashrc", name(".bashrc"), "mv"),
    "commondir": ("echo x > .git/commondir", ".git/commondir", name(".git/commondir"), "sh"),
    "attributes": ("echo x > .git/info/attributes", ".git/info/attributes",
                   name(".git/info/attributes"), "sh"),
    "birth": ("mkdir -p b/refs; echo '[core] pager=x' > b/config; mkdir b/objects", "b/objects", CONFIG,
              "mkdir"),
    "birth with hooks": ("mkdir -p b/refs b/hooks; echo > b/hooks/pre-commit; mkdir b/objects",
                         "b/objects", GITDIR, "mkdir"),
    "tar": ("tar -xf names.tar", "src/.envrc", name(".envrc"), "tar"),
    "mv": ("mv a src/.bash_profile", "src/.bash_profile", name(".bash_profile"), "mv"),
    "mv, over": ("mv -f a src/deep/.gdbinit", "src/deep/.gdbinit", name(".gdbinit"), "mv"),
    "mv, directory": ("mkdir n; touch n/settings.json; mv -T n src/.claude", "src/.claude",
                      name(".claude/settings.json"), "mv"),
    "mv, link": ("ln -s deep l; mv -T l src/.claude", "src/.claude", name(".claude/settings.json"), "mv"),
    "ln": ("ln a src/.gitconfig", "src/.gitconfig", name(".gitconfig"), "ln"),
    "ln, source": ("ln src/deep/.gdbinit y", "src/deep/.gdbinit", name(".gdbinit"), "ln"),
    "ln -s": ("ln -s a src/.npx; ln -s a src/.vimrc", "src/.vimrc", name(".vimrc"), "ln"),
    "cp": ("cp a src/.exrc", "src/.exrc", name(".exrc"), "cp"),
    "cp, over": ("cp a src/deep/.gdbinit", "src/deep/.gdbinit", name(".gdbinit"), "cp"),
    "sed -i": ("sed -i s/x/y/ src/deep/.gdbinit", "src/deep/.gdbinit", name(".gdbinit"), "sed"),
    "static": ("$TOOL plain src/.envrc", "src/.envrc", name(".envrc"), "tool"),
    "thread": ("$TOOL thread src/.zshenv", "src/.zshenv", name(".zshenv"), "tool"),
    "relative": ("cd src/deep && echo x > ../../src/./.envrc", "src/.envrc", name(".envrc"), "sh"),
    "symlink on the way": ("ln -s deep src/l; echo x > src/l/.envrc", "src/deep/.envrc", name(".envrc"),
                           "sh"),
    "symlink at the end": ("ln -s deep/.gdbinit src/l; echo x > src/l", "src/deep/.gdbinit",
                           name(".gdbinit"), "sh"),
    "dangling symlink": ("ln -s .envrc src/l; echo x > src/l", "src/.envrc", name(".envrc"), "sh"),
    "directory renamed": ("$TOOL cwd old ../old ../older .envrc", "older/.envrc", name(".envrc"), "tool"),
    "absolute": ("echo x > $PWD/src/.envrc", "src/.envrc", name(".envrc"), "sh"),
    "through /proc": ("echo x > /proc/self/cwd/src/.envrc", "src/.envrc", name(".envrc"), "sh"),
    "directory descriptor": ("$TOOL at src .envrc", "src/.envrc", name(".envrc"), "tool"),
    "unnamed file": ("$TOOL unnamed src/.envrc", "src/.envrc", name(".envrc"), "tool"),
    "opened again": ("$TOOL again src/deep/.gdbinit", "src/deep/.gdbinit", name(".gdbinit"), "tool"),
    "truncate": ("$TOOL truncate src/deep/.gdbinit", "src/deep/.gdbinit", name(".gdbinit"), "tool"),
    "exchange": ("$TOOL exchange a src/deep/.gdbinit", "src/deep/.gdbinit", name(".gdbinit"), "tool"),
    "mknod": ("$TOOL mknod src/.envrc", "src/.envrc", name(".envrc"), "tool"),
    "fifo": ("mkfifo src/.envrc", "src/.envrc", name(".envrc"), "mkfifo"),
    "denied path": ("echo x > locked.txt", "locked.txt", DENY, "sh"),
    "denied pattern": ("echo x > src/deep/k.pem", "src/deep/k.pem", DENY, "sh"),
    "denied below": ("mkdir d; touch d/x; mv d denied", "denied", DENY, "mv"),
    "outside": ("echo x > /etc/ambit-test", "/etc/ambit-test", OUTSIDE, "sh"),
    "outside, directory": ("mkdir /usr/ambit-test", "/usr/ambit-test", OUTSIDE, "mkdir"),
    "outside, rename": ("mv a /opt/ambit-test", "/opt/ambit-test", OUTSIDE, "mv"),
    "other case": ("echo x > src/.ENVRC", "src/.ENVRC", name(".envrc"), "sh"),
    "other case, directory": ("mkdir src/.VSCode", "src/.VSCode", name(".vscode"), "mkdir"),
    "other case, git": ("echo x > .git/CONFIG", ".git/CONFIG", CONFIG, "sh"),
    "invisible letter": ("touch $(printf 'src/.env\\342\\200\\214rc')", "src/.env\u200crc",
                         name(".envrc"), "touch"),
    "one letter for two": ("touch $(printf 'src/.pro\\357\\254\\201le')", "src/.pro\ufb01le",
                           name(".profile"), "touch"),
    "odd name": ("mkdir \"src/a b'c\"; echo x > \"src/deep/.envrc\"", "src/deep/.envrc", name(".envrc"), "sh"),
}

OPTIONS = ["-q", "--deny-write", "locked.txt", "--deny-write", "**/*.pem", "--deny-write", "denied/x"]

# The hint of these is tried.
HINTS = ["redirection", "deep", "two components", "below a name", "python", "tar", "static",
         "git config", "git config, by hand", "attributes"]

ALLOWED = """
echo x > file; echo y >> file; mkdir -p p/q/r; mv file p/q; cp p/q/file f2; ln f2 f3; ln -s f2 f4
sed -i s/y/z/ f2; tar -cf t.tar f2 p; tar -xf t.tar -C p; rm -rf p; touch envrc .envrc.example
mkdir .claude/notes; echo x > .claude/CLAUDE.md; echo x > .env.example; mkfifo ff; rm ff
git add f2; git -c user.name=x -c user.email=x@x commit -q -m m; git config user.name me
git branch b; git checkout -q b; git tag t; git stash list; git gc -q; git worktree add -q wt
git clone -q . cl; echo x > .git/info/exclude; mkdir hooks; echo x > hooks/pre-commit
mkdir objects refs.d; echo x > config; echo x > HEAD; truncate -s 10 f2; chmod 600 f2; touch -d yesterday f2
/usr/bin/python3 -c "open('py', 'w').write('x')"; node -e "require('fs').writeFileSync('js', 'x')"
$TOOL plain st; $TOOL thread th; $TOOL at src at; $TOOL unnamed un; $TOOL exchange st th; $TOOL truncate st
dd if=/dev/zero of=big bs=1k count=3 status=none; split -b 1k big part.; gzip -k big; install -m 755 big inst
mktemp -p . > name; echo x > /tmp/t; echo x > /dev/null; mkdir new; mkdir new/.vscode; echo x > new/.vscode/a
rename_me=1; mv new newer; mv -T newer src/n; rm -r src/n; ln -sf f2 f4; cat < f4 > f5; : > f5; rm f5
"""


@pytest.fixture
def place(boxes, programs):
    box = boxes("user")
    tool = programs("tool", "tool.c")
    box.env["TOOL"] = str(tool)
    box.options = [*OPTIONS, "--env", "TOOL"]
    box.host("git", "init", "-q", ".").ok()
    for f in ("a", ".bashrc", "old/f", "old/.vscode/x", "src/deep/.gdbinit", ".claude/note"):
        box.write(f"ws/{f}", "x\n")
    box.host("sh", "-c", "mkdir -p t/src; echo x > t/src/.envrc; tar -C t -cf names.tar src; rm -r t").ok()
    return box


def report(box, script, options=()):
    box.write("ws/../report.json", "{}")
    r = box.sh(script, options=["--report", str(box.home / "report.json"), *options])
    return r, json.loads((box.home / "report.json").read_text())


@pytest.mark.parametrize("case", DENIED)
def test_denied_and_told(place, case):
    command, target, rule, process = DENIED[case]
    r, told = report(place, command)
    path = target if target.startswith("/") else str(place.ws / target)
    found = [v for v in told["violations"] if v["target"] == path]
    assert len(found) == 1, (str(r), told["violations"])
    v = found[0]
    assert (v["kind"], v["rule"]) == ("write", rule), v
    assert process is None or v["process"] in (process, "MainThread"), v
    assert v["source"] == ("--deny-write" if rule == DENY else "default"), v
    assert v["pid"] > 1 and v["time"] > 1.7e12 and v["count"] >= 1 and v["reason"], v
    others = [v for v in told["violations"] if v["target"] != path]
    assert not others, others


@pytest.mark.parametrize("case", HINTS)
def test_hint_works(place, case):
    command, target, _, _ = DENIED[case]
    _, told = report(place, command)
    hint = shlex.split(told["violations"][0]["hint"])
    place.host("sh", "-c", "rm -rf l n").ok()
    r, told = report(place, command, options=hint)
    assert r.code == 0 and not told["violations"], (str(r), told["violations"])
    assert (place.ws / target).exists()


def test_enough_cases():
    assert len(DENIED) >= 40


def test_allowed_and_silent(place):
    lines = [c.strip() for line in ALLOWED.strip().splitlines() for c in line.split("; ")]
    assert len(lines) >= 40
    r, told = report(place, "set -e\n" + ALLOWED)
    r.ok()
    assert told["violations"] == [] and r.err == "", (r.err, told["violations"])
