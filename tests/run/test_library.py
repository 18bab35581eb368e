# SPDX-License-Identifier: Apache-2.0
"""libambit: the header, the examples, threads, event loops, what happens when the caller dies."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ambit_test import AMBIT, processes_with, wait_until

TREE = Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"


def library():
    """Beside the program under test: build tree or install."""
    program = Path(AMBIT).resolve()
    built = program.parents[2] / "src/api/libambit.so"
    if built.exists():
        return built
    return next(program.parents[1].glob("lib*/**/libambit.so"))


@pytest.fixture
def compiled(plain, tmp_path):
    """Compile a C file against the library, where the person under test can run it."""
    def compile(source):
        out = plain.ws.parent / f"bin-{Path(source).stem}"
        subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", TREE / "include",
                        "-o", out, source, "-L", library().parent, "-lambit",
                        f"-Wl,-rpath,{library().parent}"], check=True)
        out.chmod(0o755)
        return out
    return compile


def python(plain, text, *args, **kw):
    """A program that uses the Python example as its module."""
    head = f"import sys; sys.path.insert(0, {str(TREE / 'examples')!r})\n" \
           "from shell_node import *\n"
    return plain.execute([PYTHON, "-B", "-c", head + textwrap.dedent(text), *map(str, args)],
                         env={"LIBAMBIT": str(library())}, **kw)


def test_c_example(plain, compiled):
    node = compiled(TREE / "examples/shell_node.c")
    canary = plain.mkdir("out") / "canary"
    r = plain.execute([node, plain.ws, f"echo hello > made; cat made; echo x > {canary}"])
    assert "hello" in r.out and r.out.splitlines()[-1].startswith("exit code 1,")
    assert f"[blocked] write {canary}" in r.err and "--allow-write" in r.err
    assert (plain.ws / "made").read_text() == "hello\n"
    assert not canary.exists()


def test_python_example(plain):
    r = plain.execute([PYTHON, "-B", TREE / "examples/shell_node.py", plain.ws,
                       "echo in; touch /etc/ambit-canary; exit 3"],
                      env={"LIBAMBIT": str(library())})
    assert r.code == 3 and r.out.startswith("in\n")
    assert "[blocked] write /etc/ambit-canary" in r.err


def test_threads_with_two_policies(plain, compiled):
    program = compiled(TREE / "tests/run/library_threads.c")
    dirs = [plain.ws / "a", plain.ws / "b"]
    for d in dirs:
        d.mkdir()
        os.chown(d, plain.who.uid, plain.who.gid)
    r = plain.execute([program, *dirs, "200"], timeout=240)
    assert r.out == "ok\n", r.out
    assert {p.name for p in dirs[0].iterdir()} == {f"t{i}" for i in range(0, 200, 2)}
    assert {p.name for p in dirs[1].iterdir()} == {f"t{i}" for i in range(1, 200, 2)}


def test_bad_policy_is_refused_before_anything_runs(plain):
    r = python(plain, """
        node = ShellNode(".", network__mode="nonsense")
        try:
            node.run("touch canary")
        except Refused as e:
            print("refused:", e)
        try:
            node.set("filesystem.alowWrite", "x")
        except Refused as e:
            print("refused:", e)
    """)
    assert "refused: libambit" in r.out and "network.mode" in r.out
    assert "alowWrite" in r.out and not (plain.ws / "canary").exists()


def test_command_not_found(plain):
    r = python(plain, """
        lib, error, result = load(), Error(), Result(size=ctypes.sizeof(Result))
        words = (c_char_p * 2)(b"no-such-program", None)
        spawn = Spawn(size=ctypes.sizeof(Spawn), argv=words, stdin_fd=-1, stdout_fd=-1, stderr_fd=-1)
        process = c_void_p()
        config = lib.ambit_config_new()
        assert lib.ambit_spawn(config, byref(spawn), byref(process), byref(error)) == 0
        assert lib.ambit_process_wait(process, -1, byref(result), byref(error)) == 0
        print(result.started, result.exit_code, error.text.decode())
    """)
    assert r.out == "False 127 no-such-program: not found\n", r


def test_the_callers_environment_is_apart(plain):
    """Variables for the command do not steer ambit."""
    r = python(plain, """
        lib, error, result = load(), Error(), Result(size=ctypes.sizeof(Result))
        env = (c_char_p * 4)(b"AMBIT_NO_SANDBOX=1", b"COLOUR=red", b"PATH=/usr/bin:/bin", None)
        spawn = Spawn(size=ctypes.sizeof(Spawn), shell=b"echo $AMBIT $COLOUR; touch /etc/ambit-canary",
                      env=env, stdin_fd=-1, stdout_fd=-1, stderr_fd=-1)
        process = c_void_p()
        config = lib.ambit_config_new()
        assert lib.ambit_spawn(config, byref(spawn), byref(process), byref(error)) == 0, error.text
        lib.ambit_process_wait(process, -1, byref(result), byref(error))
        print(result.exit_code, result.violations)
    """)
    assert r.out == "1 red\n1 1\n", r
    assert not Path("/etc/ambit-canary").exists()


def test_event_loop_and_kill(plain):
    r = python(plain, """
        import select, signal, time
        lib, error, result = load(), Error(), Result(size=ctypes.sizeof(Result))
        spawn = Spawn(size=ctypes.sizeof(Spawn), shell=b"sleep 60 & wait", stdin_fd=-1, stdout_fd=-1,
                      stderr_fd=-1)
        process = c_void_p()
        config = lib.ambit_config_new()
        assert lib.ambit_spawn(config, byref(spawn), byref(process), byref(error)) == 0, error.text
        lib.ambit_process_fd.argtypes = lib.ambit_process_dispatch.argtypes = [c_void_p]
        lib.ambit_process_kill.argtypes = [c_void_p, c_int]
        assert lib.ambit_process_wait(process, 300, byref(result), byref(error)) < 0
        start = time.monotonic()
        assert lib.ambit_process_kill(process, signal.SIGTERM) == 0
        while not lib.ambit_process_dispatch(process):
            select.select([lib.ambit_process_fd(process)], [], [], 10)
        lib.ambit_process_wait(process, 0, byref(result), byref(error))
        print(result.exit_code, result.signal, time.monotonic() - start < 5)
        lib.ambit_process_free(process)
    """)
    assert r.out == "143 15 True\n", r


def test_everything_dies_with_the_caller(plain):
    mark = f"7{os.getpid()}.5"
    p = plain.who.popen([PYTHON, "-B", "-c", textwrap.dedent(f"""
        import sys; sys.path.insert(0, {str(TREE / 'examples')!r})
        from shell_node import *
        ShellNode(".").run("sleep {mark}")
    """)], cwd=plain.ws, env=plain._env({"LIBAMBIT": str(library())}))
    wait_until(lambda: processes_with(mark))
    p.send_signal(signal.SIGKILL)
    p.wait()
    wait_until(lambda: not processes_with(mark))


def test_questions(plain):
    r = python(plain, """
        lib, error = load(), Error()
        config = lib.ambit_config_new()
        lib.ambit_should_auto_allow_shell.argtypes = [c_void_p, c_char_p]
        lib.ambit_can_bypass.argtypes = [c_void_p, c_char_p, POINTER(Error)]
        for f in (lib.ambit_should_auto_allow_shell, lib.ambit_can_bypass, lib.ambit_is_supported):
            f.restype = c_bool
        for key, value in (("excludedCommands", "ls"), ("allowUnsandboxedCommands", "true"),
                           ("autoAllowBashIfSandboxed", "true")):
            assert lib.ambit_config_set(config, key.encode(), value.encode()) == 0
        print(lib.ambit_is_supported(), lib.ambit_is_available(byref(error)))
        print(lib.ambit_should_auto_allow_shell(config, b"make test"))
        print(lib.ambit_can_bypass(config, b"ls -l", byref(error)),
              lib.ambit_can_bypass(config, b"ls; rm -rf /", byref(error)))
        line = c_char_p()
        lib.ambit_wrap_command.argtypes = [c_void_p, c_char_p, POINTER(c_char_p), POINTER(Error)]
        assert lib.ambit_wrap_command(config, b"echo 'a b' && echo $AMBIT", byref(line),
                                      byref(error)) == 0
        print(line.value.decode())
    """)
    lines = r.ok().out.splitlines()
    assert lines[:3] == ["True True", "True", "True False"], r
    assert plain.execute(["sh", "-c", lines[3]], cwd="/").ok().out == "a b\n1\n"


def test_environment(plain):
    r = python(plain, """
        lib, error = load(), Error()
        config = lib.ambit_config_new()
        env = (c_char_p * 3)(b"MY_API_KEY=secret", b"COLOUR=red", None)
        out = POINTER(c_char_p)()
        lib.ambit_environment.argtypes = [c_void_p, POINTER(c_char_p), POINTER(POINTER(c_char_p)),
                                          POINTER(Error)]
        assert lib.ambit_environment(config, env, byref(out), byref(error)) == 0
        i = 0
        while out[i]:
            print(out[i].decode())
            i += 1
    """)
    assert "COLOUR=red" in r.out and "AMBIT=1" in r.out and "secret" not in r.out


def test_exports_only_its_own_names():
    names = subprocess.run(["nm", "-D", "--defined-only", library()], check=True,
                           capture_output=True, text=True).stdout.split()[2::3]
    assert names and all(n.startswith("ambit_") for n in names), names


def test_no_global_state():
    """Nothing in it can be written to, besides what the C library's start-up code brings along."""
    table = subprocess.run(["objdump", "-t", library()], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in table.splitlines() if ".data\t" in line or ".bss\t" in line]
    names = {row[-1] for row in rows} - {".data", ".bss", "__dso_handle", "__TMC_END__", "completed.0"}
    # two buffers of native/standby.c are only used by a process that becomes a command of mcp serve
    names = {n for n in names if n.partition(".")[0] not in ("text", "list")}
    assert rows and names == set()


def test_neither_prints_nor_exits():
    """It does not even know the functions. (Signal handlers are changed in processes of its own only.)"""
    names = subprocess.run(["nm", "-D", "--undefined-only", library()], check=True, capture_output=True,
                           text=True).stdout.split()
    used = {n.split("@")[0] for n in names}
    forbidden = {"printf", "fprintf", "vfprintf", "__printf_chk", "__fprintf_chk", "__vfprintf_chk", "puts", "fputs",
                 "fwrite", "putchar", "perror", "stdout", "stderr", "syslog", "exit", "quick_exit", "atexit",
                 "setenv", "putenv", "unsetenv", "setlocale"}
    assert used & forbidden == set() and "posix_spawn" in used


def test_structures_of_other_versions(plain, compiled):
    """Longer ones, as a later header has them, work as long as nothing new is asked for."""
    source = plain.ws / "sizes.c"
    source.write_text(textwrap.dedent("""
        #include <ambit.h>
        #include <stdio.h>
        #include <string.h>
        struct later { struct ambit_spawn now; char more[64]; };
        struct later_result { struct ambit_result now; char more[64]; };
        static int run(struct ambit_config *c, size_t size, char more, size_t result_size)
        {
            struct later s = { .now = { AMBIT_SPAWN_INIT, .shell = "exit 3" } };
            struct later_result r;
            struct ambit_process *p;
            int code;
            s.now.size = size;
            s.more[0] = more;
            memset(&r, 'x', sizeof(r));
            r.now.size = result_size;
            code = ambit_spawn(c, &s.now, &p, NULL);
            if (code < 0)
                return code;
            code = ambit_process_wait(p, -1, &r.now, NULL);
            ambit_process_free(p);
            return code < 0 ? code : r.now.exit_code + (result_size > sizeof(r.now) ? r.more[63] : 0);
        }
        int main(void)
        {
            struct ambit_config *c = ambit_config_new();
            size_t s = sizeof(struct ambit_spawn), r = sizeof(struct ambit_result);
            printf("%d %d %d ", run(c, s, 0, r), run(c, sizeof(struct later), 0, r),
                   run(c, sizeof(struct later), 1, r));
            printf("%d %d %d %d\\n", run(c, s, 0, sizeof(struct later_result)), run(c, 8, 0, r),
                   run(c, s, 0, 8), run(c, 1 << 20, 0, r));
            printf("%d %d %d\\n", ambit_spawn(NULL, NULL, NULL, NULL), ambit_config_directory(NULL, "x"),
                   ambit_can_bypass(c, NULL, NULL));
            ambit_config_free(c);
            return 0;
        }
    """))
    r = plain.execute([compiled(source)]).ok()
    assert r.out == "3 3 -22 3 -22 -22 -22\n-22 -22 0\n", r


def test_pkg_config_and_install(tmp_path):
    build = Path(AMBIT).resolve().parents[2]
    if not (build / "build.ninja").exists() or not shutil.which("meson"):
        pytest.skip("the program under test is not in a build tree")
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet"], check=True,
                   env=os.environ | {"DESTDIR": str(tmp_path)}, stdout=subprocess.DEVNULL)
    pc = next(tmp_path.glob("**/libambit.pc"))
    assert "-lambit" in pc.read_text()
    header = next(tmp_path.glob("**/ambit.h"))
    program = next(tmp_path.glob("**/bin/ambit"))
    source = tmp_path / "t.c"
    source.write_text('#include <ambit.h>\n#include <stdio.h>\nint main(void) { struct ambit_config '
                      '*c = ambit_config_new(); char *s; struct ambit_error e; if '
                      '(ambit_wrap_command(c, "true", &s, &e) < 0) { puts(e.text); return 1; } '
                      'puts(s); return 0; }\n')
    lib = next(tmp_path.glob("**/libambit.so"))
    subprocess.run(["cc", "-I", header.parent, "-o", tmp_path / "t", source, "-L", lib.parent,
                    "-lambit", f"-Wl,-rpath,{lib.parent}"], check=True)
    out = subprocess.run([tmp_path / "t"], capture_output=True, text=True, check=False).stdout
    assert out.startswith(str(program)), (out, json.dumps(sys.argv))
    page = next(tmp_path.glob("**/man3/ambit_spawn.3"))
    assert page.resolve().name == "libambit.3" and page.exists()


# --- ambit_apply: the process itself -----------------------------------------------------

@pytest.fixture(scope="session")
def apply_program(base_dir):
    program = base_dir / "apply"
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-pthread", "-I", TREE / "include",
                    "-o", program, TREE / "tests/run/apply.c", "-L", library().parent, "-lambit",
                    f"-Wl,-rpath,{library().parent}"], check=True)
    program.chmod(0o755)
    return program


@pytest.fixture
def self_confined(box, apply_program):
    """Run tests/run/apply.c: what it said, and what came of each attempt."""
    program = apply_program
    secret = box.write(".ssh/key", "SECRET\n", 0o600)
    outside = box.write("outside", "GOOD\n", 0o600)
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(box.home / "sock"))
    os.chmod(box.home / "sock", 0o777)
    sock.listen()
    with box.start("sleep", "1000", sandbox=False) as victim:
        def run(*settings, control=False):
            words = [box.ws, secret, outside, box.home / "sock", victim.process.pid, *settings]
            r = box.execute([program, *(["control"] if control else []), *map(str, words)])
            text, _, rest = r.out.rpartition("---\n")
            tried = dict(line.split(" ", 1) for line in rest.splitlines() if " " in line)
            return r, text, tried
        run.outside = outside
        yield run
    sock.close()


def test_apply_holds(box, self_confined):
    r, _, tried = self_confined(control=True)
    works = ["write-inside", "set-uid", "read-secret", "read-link", "write-outside", "truncate-outside",
             "socket-inet", "socket-inet6-udp", "unix", "pair", "signal", "trace", "namespace"]
    assert [w for w in works if tried[w] != "ok"] == [] and "SECRET" in r.out, r
    Path("/etc/ambit-apply").unlink(missing_ok=True)
    self_confined.outside.write_text("GOOD\n")

    r, text, tried = self_confined()
    assert tried["write-inside"] == tried["pair"] == "ok", r
    assert {w: tried[w] for w in tried if w not in ("write-inside", "pair") and tried[w] == "ok"} == {}, r
    assert "SECRET" not in r.out and "child" in r.out, r
    assert self_confined.outside.read_text() == "GOOD\n"
    assert not Path("/etc/ambit-apply").exists()
    for name in ("names", "attributes", "processes", "hidden"):
        assert f"not enforced: {name}:" in text, text


def test_apply_network_host(self_confined):
    r, _, tried = self_confined("network.mode=host")
    assert tried["socket-inet"] == "ok" and tried["unix"] == "EAFNOSUPPORT", r
    r, _, tried = self_confined("network.allowAllUnixSockets=true")
    assert tried["unix"] == "ok" and tried["socket-inet"] == "EAFNOSUPPORT", r


@pytest.mark.parametrize("setting, code, says", [
    ("threads=2", "EBUSY", "2 threads"),
    ("limits.memory=1g", "EOPNOTSUPP", "limits"),
    ("network.allowedDomains=example.com", "EOPNOTSUPP", "allowlist"),
    ("network.allowUnixSockets=/run/x", "EOPNOTSUPP", "allowUnixSockets"),
    ("network.publish=8080", "EOPNOTSUPP", "publish"),
    ("filesystem.denyWrite=made", "EOPNOTSUPP", "denyWrite made"),
    ("filesystem.protectNames=.mine", "EOPNOTSUPP", ".mine"),
    ("filesystem.home=private", "EOPNOTSUPP", "home"),
    ("require=names", "EOPNOTSUPP", "names"),
    ("enabled=false", "EINVAL", "no sandbox"),
])
def test_apply_refuses(self_confined, setting, code, says):
    r, _, _ = self_confined(setting)
    assert r.code == 1 and r.out.startswith(f"refused {code}:") and says in r.out, r


def test_apply_from_python(box):
    """With ctypes; the interpreter goes on, confined."""
    box.write(".ssh/key", "SECRET\n", 0o600)
    r = box.execute([PYTHON, "-B", "-c", textwrap.dedent("""
        import ctypes, os, sys
        lib = ctypes.CDLL(sys.argv[1])
        lib.ambit_config_new.restype = ctypes.c_void_p
        c = ctypes.c_void_p(lib.ambit_config_new())
        lib.ambit_config_directory(c, sys.argv[2].encode())
        text = ctypes.c_char_p()
        print(open(sys.argv[3]).read())
        sys.stdout.flush()
        assert lib.ambit_apply(c, ctypes.byref(text), None) == 0
        assert b"not enforced: names:" in text.value
        open(sys.argv[2] + "/made", "w").write("in")
        for attempt in (lambda: open(sys.argv[3]), lambda: open("/etc/ambit-apply", "w"),
                        lambda: os.system("exit $(cat " + sys.argv[3] + " 2>/dev/null | wc -l)")):
            try:
                r = attempt()
                print("got through" if r else "stopped")
            except OSError:
                print("stopped")
        """), str(library()), str(box.ws), str(box.home / ".ssh/key")])
    assert r.code == 0 and r.out.split("\n") == ["SECRET", "", "stopped", "stopped", "stopped", ""], r
    assert (box.ws / "made").read_text() == "in" and not Path("/etc/ambit-apply").exists()
