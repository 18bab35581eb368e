# SPDX-License-Identifier: Apache-2.0
"""Directories that are granted directly, and ambit-direct.so, by which programs fill them unasked.

The mark that the library uses opens nothing: by hand, on what the broker guards, it is refused by the
kernel. Controls: the same calls outside, and in the directory that is granted."""
import os
import shutil
import subprocess

import pytest
from ambit_test import AMBIT, compile_c, skip_impossible

BULK = ["--set", "filesystem.bulk=node_modules"]
LIBRARY = AMBIT.parents[1] / "sandbox/ambit-direct.so"
DENIED = "Permission denied"


@pytest.fixture
def marked(box, programs):
    program = programs("marked", "marked.c")
    box.mkdir("ws/node_modules")
    box.write("ws/.bashrc", "original\n")

    def call(way, path, *options, sandbox=True):
        argv = [str(program), way, path]
        return (box.run(*argv, options=["-q", *options]) if sandbox else box.host(*argv)).ok().out.strip()

    return call


@pytest.mark.parametrize("way, path", [
    ("file", ".envrc"), ("file", "plain"), ("cut", ".bashrc"), ("file", ".bashrc"), ("dir", ".vscode"),
    ("file", "sub/.git/config"), ("dir", "sub/plain"), ("file", "node_modules/../.envrc"),
    ("file", "node_modules/out/.envrc"), ("file", "/etc/ambit-test-file")])
def test_the_mark_opens_nothing(box, marked, way, path):
    box.host("git", "init", "-q", "sub").ok()
    os.symlink("..", box.ws / "node_modules/out")
    before = box.host("find", ".", "-type", "f", "-exec", "sha256sum", "{}", "+").ok().out
    assert marked(way, path, *BULK) in (DENIED, "Read-only file system")
    assert before == box.host("find", ".", "-type", "f", "-exec", "sha256sum", "{}", "+").ok().out
    assert not os.path.lexists(box.ws / path) or path.endswith((".bashrc", "config"))
    if not path.startswith("/"):
        assert marked(way, path, sandbox=False) == "done"


@pytest.mark.parametrize("way, path", [("file", "node_modules/.envrc"), ("dir", "node_modules/d")])
def test_where_it_is_granted(box, marked, way, path):
    assert marked(way, path, *BULK) == "done"
    assert (box.ws / path).exists()


def test_without_bulk_directories_it_is_nothing_special(box, marked):
    assert marked("file", "plain") == "done"
    assert marked("file", ".envrc") == DENIED
    assert (box.ws / "plain").read_text() == "EVIL\n"


@pytest.mark.parametrize("options", [BULK, ["--set", "filesystem.protect=anchors"], [*BULK, "--backend", "bwrap"],
                                     ["--tmp", "shared"]], ids=["bulk", "anchors", "bwrap", "tmp"])
@pytest.mark.parametrize("way", ["setuid", "setuid-unnamed"])
def test_no_set_uid_file_is_made(box, marked, tmp_path_factory, way, options):
    """Nor where the kernel makes files as it is told: it would run outside with the caller's rights."""
    where = f"/tmp/ambit-setuid.{os.getpid()}.{box.who.uid}" if "shared" in options else "node_modules/x"
    try:
        assert marked(way, where, sandbox=False) == "done"
        assert os.stat(box.ws / where).st_mode & 0o4000, "control"
        os.unlink(box.ws / where)
        marked(way, where, *options)
        assert not (box.ws / where).exists() or not os.stat(box.ws / where).st_mode & 0o6000
    finally:
        (box.ws / where).unlink(missing_ok=True)


PROGRAMS = {
    "sh": "echo x > $D/a; mkdir $D/b; cp $D/a $D/b/a",
    "python": "python3 -c \"import os; os.makedirs('$D/p/q'); open('$D/p/q/f', 'w').write('x'); "
              "os.close(os.open('$D/p/new', os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o640))\"",
    "tar": "mkdir $D/t; tar cf - -C /usr/include/linux . | tar xf - -C $D/t",
    "git": "git init -q $D/g; cd $D/g; echo x > f; git add f; git -c user.name=a -c user.email=a@b commit -qm x; git log -1 --format=%s",
    "node": "node -e \"const fs = require('fs'); fs.mkdirSync('$D/n/m', {recursive: true}); "
            "fs.writeFileSync('$D/n/m/f', 'x'); fs.copyFileSync('$D/n/m/f', '$D/n/g')\"",
}


@pytest.mark.parametrize("where", ["node_modules/in", "beside"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(box, name, where):
    """In the directory, and beside it, where every call is made twice: the same as outside."""
    box.mkdir("ws/node_modules")
    trees = []
    for sandbox in (False, True):
        top = f"{where}-{sandbox}"
        script = f"mkdir {top}; D=$PWD/{top}; umask 027; {PROGRAMS[name]}"
        r = box.sh(script, options=["--env", "PATH", *BULK]) if sandbox else box.host("sh", "-c", script)
        assert (r.code, "denied" in r.err) == (0, False), str(r)
        names = box.host("sh", "-c", f"cd {top} && find . -path '*/.git' -prune -o -printf '%P %y %m %s\\n' | sort").ok().out
        trees.append((names, r.out))
    assert trees[0] == trees[1]


def test_refusals_are_told_once(box):
    box.mkdir("ws/node_modules")
    r = box.sh("touch .envrc; mkdir .vscode; touch node_modules/ok; echo x > /etc/ambit-test-file", options=BULK)
    assert [ln for ln in r.err.splitlines() if ln.startswith("ambit: denied")] == [
        ln for ln in r.err.splitlines() if ln.startswith("ambit: ")], str(r)
    for path in (box.ws / ".envrc", box.ws / ".vscode", "/etc/ambit-test-file"):
        assert r.err.count(f"{path} — ") == 1, str(r)


def test_the_library_is_seen_and_cannot_be_changed(box):
    box.mkdir("ws/node_modules")
    r = box.sh('echo "$LD_PRELOAD"; cmp "$LD_PRELOAD" /proc/self/exe >/dev/null 2>&1; test -r "$LD_PRELOAD" && echo seen; '
               '( : >> "$LD_PRELOAD" ) 2>/dev/null || echo kept', options=BULK).ok()
    assert r.out.split() == [str(LIBRARY), "seen", "kept"], str(r)
    assert box.sh('echo "$LD_PRELOAD."').ok().out == ".\n"


@pytest.mark.parametrize("options", [["--deny-read", str(LIBRARY.parent)], ["--backend", "bwrap"],
                                     ["--backend", "landlock"]], ids=["hidden", "bwrap", "landlock"])
def test_without_the_library(box, options):
    """By way of the broker then, and no loader complains."""
    box.mkdir("ws/node_modules")
    r = box.sh('echo "$LD_PRELOAD."; touch node_modules/x', options=[*BULK, *options]).ok()
    assert (r.out, "ld.so" in r.err, (box.ws / "node_modules/x").exists()) == (".\n", False, True), str(r)


def test_beside_a_library_of_the_user(box):
    box.mkdir("ws/node_modules")
    source = box.write("ws/mine.c", "int getpagesize(void) { return 77; }")
    box.host("cc", "-shared", "-fPIC", "-o", "mine.so", str(source)).ok()
    mine = box.ws / "mine.so"
    r = box.sh("getconf PAGESIZE >/dev/null; echo $LD_PRELOAD; touch node_modules/x",
               options=[*BULK, "--env", f"LD_PRELOAD={mine}"]).ok()
    assert r.out == f"{mine}:{LIBRARY}\n"


def test_sanitized_programs_start(box, base_dir):
    box.mkdir("ws/node_modules")
    source = box.write("ws/s.c", '#include <stdio.h>\nint main(void) { return !fopen("node_modules/x", "w"); }')
    try:
        program = compile_c(source, base_dir / f"sanitized-{box.who.name}", "-fsanitize=address")
    except (subprocess.CalledProcessError, AssertionError):
        skip_impossible("no -fsanitize=address here")
    box.run(program, options=BULK).ok()
    assert (box.ws / "node_modules/x").exists()


@pytest.mark.parametrize("options", ["", "detect_leaks=0"])
def test_sanitized_programs_with_options(box, base_dir, options):
    box.mkdir("ws/node_modules")
    source = box.write("ws/s.c", "int main(void) { return 0; }")
    program = compile_c(source, base_dir / f"sanitized-options-{box.who.name}", "-fsanitize=address")
    box.run(program, options=[*BULK, "--env", f"ASAN_OPTIONS={options}"]).ok()


WAITS = {"alarm": "Interrupted system call\n1", "restart": "opened\n3", "cancel": "cancelled",
         "cancel-at": "cancelled"}


@pytest.mark.parametrize("where", ["node_modules/pipe", "/tmp/pipe", "beside"])
@pytest.mark.parametrize("way", WAITS)
def test_who_waits_can_be_interrupted(box, base_dir, way, where):
    """At a pipe: with a library in between, and where the broker waits for the caller. Cancelling needs a
    signal that the C library handles by itself."""
    box.mkdir("ws/node_modules")
    program = compile_c(os.path.join(os.path.dirname(__file__), "waits.c"), base_dir / "waits", "-pthread")
    for options in (BULK, []):
        r = box.run(program, way, where, options=["-q", *options]).ok()
        assert r.out.strip() == WAITS[way], str(r)
        (box.ws / where).unlink(missing_ok=True)
    if not where.startswith("/tmp"):
        assert box.host(program, way, where).ok().out.strip() == WAITS[way]


def test_who_watches_is_told(box, programs):
    box.mkdir("ws/node_modules")
    marked = programs("marked", "marked.c")
    r = box.run(marked, "file", ".envrc", options=["--report-reads", *BULK]).ok()
    assert r.out.strip() == DENIED and "/.envrc — " in r.err, str(r)


def test_programs_of_another_c_library(box, base_dir):
    if not shutil.which("musl-gcc"):
        skip_impossible("no musl-gcc here")
    box.mkdir("ws/node_modules")
    source = box.write("ws/m.c", "#include <fcntl.h>\n#include <stdio.h>\n#include <sys/stat.h>\n#include <errno.h>\n"
                       'int main(void) { int a = mkdir("node_modules/d", 0755), b = mkdir("node_modules/d", 0755), '
                       'c = errno == EEXIST, f = open("node_modules/d/f", O_CREAT | O_WRONLY, 0600), '
                       'g = open("beside", O_CREAT | O_WRONLY, 0600), h = open("beside", O_RDONLY);\n'
                       'printf("%d %d %d %d %d %d\\n", a, b, c, f > 2, g > 2, h > 2); return 0; }')
    program = base_dir / f"musl-{box.who.name}"
    subprocess.run(["musl-gcc", "-o", str(program), str(source)], check=True)
    program.chmod(0o755)
    assert box.run(program, options=BULK).ok().out == "0 -1 1 1 1 1\n"


def test_who_learns_is_told(box):
    box.mkdir("ws/node_modules")
    box.ambit("learn", *BULK, "-o", "out.yaml", "--", "sh", "-c", 'test -z "$LD_PRELOAD" && touch node_modules/x').ok()
    assert (box.ws / "node_modules/x").exists()
