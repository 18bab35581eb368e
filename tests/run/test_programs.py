# SPDX-License-Identifier: Apache-2.0
"""Real programs do inside what they do outside."""
import hashlib
import os
import shutil
import subprocess

import pytest

from ambit_test import AMBIT, skip_impossible

GIT_ENV = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@x", "GIT_COMMITTER_NAME": "A",
           "GIT_COMMITTER_EMAIL": "a@x", "GIT_CONFIG_NOSYSTEM": "1"}


def need(program):
    if not shutil.which(program):
        skip_impossible(f"{program} is not installed")


def clean(r):
    """Success, and nobody complained."""
    r.ok()
    assert r.err == "", str(r)
    return r


# --- git ------------------------------------------------------------------------------------

GIT_WORK = """set -e
echo one >a; git add a; git commit -qm first
git status --short
git checkout -q -b side; echo two >>a; git commit -qam second
git checkout -q -; echo more >b; git add b; git stash -q; git stash pop -q
git diff --cached --stat | tail -1
git commit -qm third; git merge -q --no-edit side; git log --oneline | wc -l
git tag v1; git rebase -q side; git reset -q --hard; git gc -q
git worktree list | wc -l; git status --short | wc -l
"""


@pytest.mark.parametrize("where", ["new", "existing"])
def test_git(box, where):
    if where == "existing":
        box.host("git", "init", "-q", env=GIT_ENV).ok()
        box.write("ws/.git/hooks/pre-commit", "#!/bin/sh\nexit 0\n", mode=0o755)
        script = GIT_WORK
    else:
        script = "git init -q sub\ncd sub\n" + GIT_WORK
    r = box.sh(script, env=GIT_ENV)
    assert r.code == 0, str(r)
    assert r.out.split("\n") == [" 1 file changed, 1 insertion(+)", "4", "1", "0", ""], str(r)
    top = box.ws if where == "existing" else box.ws / "sub"
    # the repository is whole when looked at from outside
    assert box.host("git", "fsck", "--strict", cwd=top, env=GIT_ENV).code == 0
    assert box.host("git", "log", "--oneline", cwd=top, env=GIT_ENV).ok().out.count("\n") == 3


def test_git_same_as_outside(box):
    """The same commands give the same commit ids."""
    env = {**GIT_ENV, "GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000"}
    script = ("set -e; git init -q; printf 'x\\n' >f; chmod 755 f; ln -s f l; mkdir d; printf y >d/g; git add .;"
              "git commit -qm m; git rev-parse HEAD; git ls-tree -r HEAD")
    inside = box.sh(f"mkdir in && cd in && {script}", env=env).ok().out
    outside = box.host("sh", "-c", f"mkdir out && cd out && {script}", env=env).ok().out
    assert inside == outside


def test_git_clone(box):
    box.host("sh", "-c", "git init -q ../src && cd ../src && echo x >f && git add f && git commit -qm m",
             env=GIT_ENV).ok()
    for args in ("", "--no-hardlinks", "--depth 1 --no-local"):
        r = box.sh(f"git clone -q {args} ~/src copy && cat copy/f && git -C copy log --oneline | wc -l &&"
                   "rm -rf copy", env=GIT_ENV)
        assert r.code == 0 and r.out == "x\n1\n", str(r)


def test_git_in_a_subdirectory(box):
    box.host("sh", "-c", "git init -q && mkdir sub && echo x >sub/f && git add . && git commit -qm m",
             env=GIT_ENV).ok()
    r = box.sh("git status --short; git log --oneline -- . | wc -l; git diff --stat; git rev-parse --show-toplevel",
               cwd=box.ws / "sub", env=GIT_ENV)
    assert r.ok().out == f"1\n{box.ws}\n", str(r)


# --- compilers and build tools --------------------------------------------------------------------

def test_compile(box):
    need("gcc"), need("make")
    box.write("ws/hello.h", "const char *greeting(void);\n")
    box.write("ws/greeting.c", '#include "hello.h"\nconst char *greeting(void) { return "hello"; }\n')
    box.write("ws/main.c", '#include <stdio.h>\n#include "hello.h"\nint main(void) { puts(greeting()); return 0; }\n')
    box.write("ws/Makefile", "CFLAGS = -O1 -g -Wall -Werror -pipe\nhello: main.o greeting.o\n\t$(CC) -o $@ $^\n"
                             "lib.a: greeting.o\n\t$(AR) rcs $@ $^\nclean:\n\trm -f *.o hello lib.a\n")
    r = clean(box.sh("make -s -j4 hello lib.a && ./hello && ar t lib.a && make -q hello && make -s clean && ls"))
    assert r.out.split() == ["hello", "greeting.o", "Makefile", "greeting.c", "hello.h", "main.c"], str(r)


def test_python_venv(box):
    r = box.run("/usr/bin/python3", "-m", "venv", "--without-pip", "env")
    clean(r)
    r = clean(box.sh("env/bin/python -c 'import sys, json, ssl, sqlite3, multiprocessing; print(sys.prefix)'"))
    assert r.out == f"{box.ws}/env\n", str(r)


def test_python_venv_with_pip(plain):
    r = plain.run("/usr/bin/python3", "-m", "venv", "env", timeout=60)
    if r.code != 0 and "ensurepip" in r.out + r.err:
        skip_impossible("python3-venv is not installed")
    r.ok()
    r = plain.run("env/bin/pip", "--version", timeout=60).ok()
    assert r.out.startswith("pip ") and str(plain.ws) in r.out, str(r)


def test_python_pools(plain):
    """Semaphores in /dev/shm, pipes, fork and spawn."""
    code = ("import multiprocessing as m\n"
            "if __name__ == '__main__':\n"
            " for how in ('fork', 'spawn'):\n"
            "  with m.get_context(how).Pool(2) as p: print(sum(p.map(abs, range(-50, 0))))\n")
    plain.write("ws/pool.py", code)
    assert clean(plain.run("/usr/bin/python3", "pool.py")).out == "1275\n1275\n"


def test_python_subprocess_and_threads(plain):
    code = ("import subprocess, concurrent.futures as c\n"
            "f = lambda i: subprocess.run(['echo', str(i)], capture_output=True, text=True).stdout.strip()\n"
            "with c.ThreadPoolExecutor(8) as e: print(','.join(e.map(f, range(20))))\n")
    assert clean(plain.run("/usr/bin/python3", "-c", code)).out == ",".join(map(str, range(20))) + "\n"


def test_node(box):
    need("node")
    box.write("ws/main.js", """
const fs = require('fs'), cp = require('child_process'), os = require('os');
const { Worker, isMainThread, parentPort } = require('worker_threads');
if (!isMainThread) { parentPort.postMessage(6 * 7); return; }
fs.mkdirSync('d/e', { recursive: true });
fs.writeFileSync('d/e/f', 'text');
const child = cp.execFileSync('sh', ['-c', 'cat d/e/f']).toString();
const server = require('http').createServer((q, s) => s.end('served')).listen(0, '127.0.0.1', () => {
  require('http').get({ port: server.address().port, host: '127.0.0.1' }, r => {
    r.on('data', d => { console.log(child, d.toString(), os.tmpdir());
      new Worker(__filename).on('message', m => { console.log(m); server.close(); }); });
  });
});
""")
    assert clean(box.run("node", "main.js")).out == "text served /tmp\n42\n"


def test_npm(box):
    need("npm")
    box.write("ws/package.json", '{"name": "x", "version": "1.0.0", "scripts": {'
              '"hello": "node -e \\"console.log(process.env.npm_lifecycle_event)\\"", "fail": "exit 3"}}')
    # npm wants a cache and logs in the home directory, which is read-only: it must live with that
    r = box.run("npm", "run", "--silent", "hello", timeout=60)
    assert r.code == 0 and r.out == "hello\n", str(r)
    assert box.run("npm", "run", "--silent", "fail", timeout=60).code == 3


def test_npm_version(plain):
    need("npm")
    inside = plain.run("npm", "--version", timeout=60)
    assert inside.ok().out == plain.host("npm", "--version", timeout=60).out


# --- small tools -------------------------------------------------------------------------------------

def test_archives(box):
    r = clean(box.sh("set -e; mkdir -p t/a; for i in 1 2 3; do echo $i >t/a/$i; done; ln -s a t/l; chmod 600 t/a/1;"
                     "tar czf t.tgz t; mv t old; tar xzf t.tgz; diff -r t old && stat -c %a t/a/1; gzip -k t/a/2;"
                     "gunzip -c t/a/2.gz; tar cf - t | (cd /tmp && tar xf -) && ls /tmp/t/a | wc -l"))
    assert r.out.split() == ["600", "2", "4"], str(r)


def test_find_xargs(plain):
    r = clean(plain.sh("mkdir -p d/e; for i in $(seq 50); do echo $i >d/e/$i; done;"
                       "find d -type f -print0 | xargs -0 -P4 -n5 cat | sort -n | tail -1; find d -name '4*' -delete;"
                       "find d -type f | wc -l; find d -type f -exec grep -l 33 {} +"))
    assert r.out.split() == ["50", "39", "d/e/33"], str(r)


def test_shell_scripts(plain):
    script = r"""
set -euo pipefail
cat <<EOF | tr a-z A-Z
here $((6*7))
EOF
for i in {1..3}; do printf '%s ' "$i"; done; echo
a=(x "y z"); echo "${#a[@]}"
f() { local v=$1; return "$v"; }; f 4 || echo "status $?"
(sleep 0.05; echo late) & wait $!
echo "$(yes | head -3 | wc -l)" || true
coproc cat; echo co >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo "$line"
ulimit -n >/dev/null
trap 'echo bye' EXIT
"""
    r = plain.run("bash", "-c", script.replace("pipefail", "nounset")).ok()
    assert r.out.split("\n") == ["HERE 42", "1 2 3 ", "2", "status 4", "late", "3", "co", "bye", ""], str(r)


def test_perl(plain):
    need("perl")
    r = clean(plain.run("perl", "-we", 'use strict; use File::Temp "tempfile"; my ($h, $n) = tempfile(); '
                        'print $h "x"; close $h; print -s $n, " ", scalar(`echo sub`); my $p = fork; '
                        'if (!$p) { exit 5 } waitpid $p, 0; print $? >> 8, "\\n"'))
    assert r.out == "1 sub\n5\n", str(r)


def test_sqlite(box):
    need("sqlite3")
    r = clean(box.sh("sqlite3 db 'pragma journal_mode=wal; create table t(x); insert into t values (1),(2);"
                     "select sum(x) from t;' && sqlite3 db 'select count(*) from t'"))
    assert r.out == "wal\n3\n2\n", str(r)


def test_names_of_users_and_hosts(box):
    r = clean(box.sh("id -un; getent passwd root | cut -d: -f1; getent hosts 127.0.0.1 | grep -c localhost;"
                     "hostname >/dev/null"))
    assert r.out == f"{box.who.account}\nroot\n1\n", str(r)


def test_locale_and_time(plain):
    r = clean(plain.sh("date +%Z; locale charmap; printf '%s' äöü | wc -m", env={"TZ": "Asia/Tokyo"}))
    assert r.out == "JST\nUTF-8\n3\n", str(r)


def test_set_user_id_gives_nothing(box):
    r = box.sh("su -c 'id -u' nobody </dev/null 2>&1; sudo -n id 2>&1; grep NoNewPrivs /proc/self/status")
    assert "NoNewPrivs:\t1" in r.out and "uid=" not in r.out, str(r)


# --- standard streams ------------------------------------------------------------------------------

def test_binary_data_through_pipes(box):
    data = os.urandom(1 << 20)
    p = box.who.popen(box.argv("sh", "-c", "cat | cat"), cwd=box.ws, env=box.env, stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = p.communicate(data, timeout=30)
    assert p.returncode == 0 and err == b"" and hashlib.sha256(out).digest() == hashlib.sha256(data).digest()


def test_large_output(plain):
    p = plain.who.popen(plain.argv("sh", "-c", "head -c 30000000 /dev/zero | tr '\\0' x; echo end >&2"),
                        cwd=plain.ws, env=plain.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = p.communicate(timeout=30)
    assert len(out) == 30000000 and err == b"end\n"


def test_streams_stay_apart(plain):
    r = plain.sh("echo out; echo err >&2; cat", input="in\n")
    assert (r.out, r.err) == ("out\nin\n", "err\n")


def test_files_as_streams(plain):
    """Files outside the writable directories can be redirected to: the caller opened them."""
    plain.write("input", "from a file")
    script = f'"{AMBIT}" run -- sh -c "cat; echo e >&2" <../input >../output 2>../errors'
    plain.host("sh", "-c", script).ok()
    assert (plain.home / "output").read_text() == "from a file"
    assert (plain.home / "errors").read_text() == "e\n"
