# SPDX-License-Identifier: Apache-2.0
"""Every language runs what a model would write, and holds what it should not do."""
import json
import os
import shutil
import socket
import threading

import pytest
from ambit_test import skip_impossible, wait_until, whos
from mcp_client import text
from npm_cache import node22

# language: (program, hello, what execute_file does, line 2 fails)
LANGUAGES = {
    "javascript": ("node", "console.log('hi', await Promise.resolve(6*7), typeof require('fs'))",
                   "hi 42 object\n", "console.log(FILE_CONTENT.length, file_path)"),
    "typescript": (None, "const x: number = 6*7; console.log('hi', x, await Promise.resolve('p'))",
                   "hi 42 p\n", "const n: number = FILE_CONTENT.length; console.log(n, file_path)"),
    "python": ("python3", "print('hi', 6*7)", "hi 42\n", "print(len(FILE_CONTENT), file_path)"),
    "shell": ("bash", "echo hi $((6*7))", "hi 42\n", 'echo "${#FILE_CONTENT} $file_path"'),
    "ruby": ("ruby", "puts \"hi #{6*7}\"", "hi 42\n", 'puts "#{FILE_CONTENT.length} #{file_path}"'),
    "go": ("go", 'fmt.Println("hi", strings.Repeat("4", 1)+"2")', "hi 42\n",
           "fmt.Println(len(FILE_CONTENT), FILE_CONTENT_PATH)"),
    "rust": ("rustc", 'println!("hi {}", 6*7);', "hi 42\n",
             'println!("{} {}", file_content.len(), file_path);'),
    "php": ("php", 'echo "hi ", 6*7, "\\n";', "hi 42\n",
            'echo strlen($FILE_CONTENT), " $file_path\\n";'),
    "perl": ("perl", 'print "hi ", 6*7, "\\n";', "hi 42\n",
             'print length($FILE_CONTENT), " $file_path\\n";'),
    "r": ("Rscript", "cat('hi', 6*7, '\\n')", "hi 42 \n",
          "cat(nchar(FILE_CONTENT), file_path, sep=' '); cat('\\n')"),
    "elixir": ("elixir", 'IO.puts "hi #{6*7}"', "hi 42\n",
               'IO.puts "#{String.length(file_content)} #{file_path}"'),
    "csharp": ("mcs", 'Console.WriteLine("hi " + 6*7);', "hi 42\n",
               'Console.WriteLine(FILE_CONTENT.Length + " " + file_path);'),
}
SLOW = 120000  # ms; compilers on a busy machine


@pytest.fixture
def speak(request, boxes, serve):
    """speak(language) -> a server that can run it, or a skip that says what is missing."""
    def start(language, who="user", *options, **kw):
        box = boxes(who)
        program = LANGUAGES[language][0]
        if program is None:
            box.env["PATH"] = f"{node22().parent}:{box.env['PATH']}"
        elif not shutil.which(program, path=box.env["PATH"]):
            skip_impossible(f"{language}: {program} is not installed")
        s = serve(box, *options, **kw)
        s.box = box
        return s
    return start


@pytest.mark.parametrize("language", LANGUAGES)
def test_runs(speak, language):
    s = speak(language)
    _, hello, out, over_file = LANGUAGES[language]
    assert language in s.ask("tools/list")["tools"][0]["inputSchema"]["properties"]["language"]["enum"]
    r = s.tool("execute", language=language, code=hello, timeout=SLOW)
    assert r["structuredContent"]["stdout"] == out, text(r)
    assert not r["structuredContent"]["blocked"] or language == "go", text(r)
    s.box.write("ws/data file.txt", "x" * 1000)
    r = s.tool("execute_file", path="data file.txt", language=language, code=over_file, timeout=SLOW)
    assert r["structuredContent"]["stdout"] == f"1000 {s.box.ws}/data file.txt\n", text(r)


@pytest.mark.parametrize("language", LANGUAGES)
def test_failure_is_a_failure(speak, language):
    s = speak(language)
    r = s.tool("execute", language=language, code="this is )( no program", timeout=SLOW)
    assert r["isError"] and r["structuredContent"]["exitCode"] != 0
    assert r["structuredContent"]["stderr"] or r["structuredContent"]["stdout"]


@pytest.mark.parametrize("language, code, line", [
    ("javascript", "const a = 1;\nthrow new Error('boom')", "main.cjs:2"),
    ("python", "a = 1\nraise ValueError('boom')", 'main.py", line 2'),
    ("shell", "true\nnot-a-command-at-all", "main.sh: line 2"),
    ("ruby", "a = 1\nraise 'boom'", "main.rb:2"),
    ("php", "$a = 1;\nthrow new Exception('boom');", "main.php:2"),
    ("perl", "my $a = 1;\ndie 'boom'", "main.pl line 2"),
    ("go", "fmt.Println(1)\npanic(\"boom\")", "main.go:2"),
    ("rust", "let a = 1;\npanic!(\"boom {}\", a);", "main.rs:2"),
    ("csharp", "var a = 1;\nthrow new Exception(\"boom\" + a);", "main.cs:2"),
    ("csharp", "var a = 1;\nundefined(a);", "main.cs(2,"),
])
def test_lines_in_errors_are_the_models_own(speak, language, code, line):
    r = speak(language).tool("execute", language=language, code=code, timeout=SLOW)
    assert r["isError"]
    assert line in r["structuredContent"]["stderr"] + r["structuredContent"]["stdout"], text(r)


@pytest.mark.parametrize("language, code, out", [
    ("javascript", "import fs from 'node:fs';\nimport {x} from './m.mjs';\nconsole.log(x, typeof fs)",
     "7 object\n"),
    ("javascript", "console.log(require('thing'), require('./own.js'))", "thing own\n"),
    ("javascript", "#!/usr/bin/env node\nconsole.log('hi')", "hi\n"),
    ("javascript", "console.log((await import('node:path')).sep)", "/\n"),
    ("typescript", "import {x} from './m.mjs';\nenum_: { const y: string = 'y'; console.log(x, y) }",
     "7 y\n"),
    ("python", "import own\nprint(own.x)", "7\n"),
    ("python", "import os; print(os.getcwd().endswith('/ws'))", "True\n"),
    ("php", "<?php echo 'hi';", "hi"),
    ("go", "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"whole\") }", "whole\n"),
    ("go", "import (\n\t\"fmt\"\n)\n\nfmt.Println(\"imports\")", "imports\n"),
    ("go", "func main() { fmt.Println(\"only main\") }", "only main\n"),
    ("rust", "fn main() { println!(\"whole\"); }", "whole\n"),
    ("csharp", "using System.Net;\nConsole.WriteLine(IPAddress.Loopback);", "127.0.0.1\n"),
    ("csharp", "using System;\nclass P { static void Main() { Console.WriteLine(\"whole\"); } }", "whole\n"),
    ("csharp", "await Task.Delay(10);\nConsole.WriteLine(new[] { 1, 2 }.Sum() + Args.Length);", "3\n"),
    ("ruby", "require 'json'; puts JSON.dump([1])", "[1]\n"),
    ("shell", "for i in {1..3}; do printf %s $i; done", "123"),
])
def test_as_models_write_it(speak, language, code, out):
    s = speak(language)
    s.box.write("ws/m.mjs", "export const x = 7;\n")
    s.box.write("ws/own.js", "module.exports = 'own';\n")
    s.box.write("ws/own.py", "x = 7\n")
    s.box.write("ws/node_modules/thing/index.js", "module.exports = 'thing';\n")
    r = s.tool("execute", language=language, code=code, timeout=SLOW)
    assert r["structuredContent"]["stdout"] == out, text(r)


def test_missing_language_says_what_there_is(boxes, serve):
    box = boxes("user")
    bin = box.mkdir("bin")
    for program in ("bash", "env"):
        (bin / program).symlink_to(shutil.which(program))
    s = serve(box, env={"PATH": str(bin)})
    tool = s.ask("tools/list")["tools"][0]
    assert tool["inputSchema"]["properties"]["language"]["enum"] == ["shell"]
    assert "Languages here: shell." in tool["description"]
    r = s.tool("execute", language="python", code="1")
    assert r["isError"] and "python3 is not installed" in text(r) and "Languages here: shell" in text(r)


# --- hostile ------------------------------------------------------------------------------------

# What each language does against us. %(home)s: the home, %(port)s: a listener outside.
HOSTILE = {
    "python": {
        "read": "print(open('%(home)s/.ssh/id_rsa').read())",
        "write": "open('%(home)s/planted', 'w').write('x')",
        "connect": "import socket; socket.create_connection(('127.0.0.1', %(port)s), 3); print('in')",
        "fork": "import os, time\nfor _ in range(20):\n  if os.fork() == 0: os.setsid(); time.sleep(300)",
        "deaf": "import signal, time; [signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)]; print('begun', flush=True); time.sleep(300)",
        "closed": "import os, time; os.close(1); os.close(2); time.sleep(0.2)",
        "loud": "import sys\nwhile True: sys.stdout.write('x' * 65536)",
    },
    "shell": {
        "read": "cat %(home)s/.ssh/id_rsa",
        "write": "echo x > %(home)s/planted",
        "connect": "exec 3<>/dev/tcp/127.0.0.1/%(port)s && echo in",
        "fork": "for i in $(seq 20); do setsid sleep 317 & done",
        "deaf": "trap '' TERM INT HUP; echo begun; while :; do sleep 1; done",
        "closed": "exec >&- 2>&-; sleep 0.2",
        "loud": "yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    },
    "javascript": {
        "read": "console.log(require('fs').readFileSync('%(home)s/.ssh/id_rsa', 'utf8'))",
        "write": "require('fs').writeFileSync('%(home)s/planted', 'x')",
        "connect": "await new Promise((y, n) => require('net').connect(%(port)s, '127.0.0.1', y).on('error', n)); console.log('in'); process.exit()",
        "fork": "for (let i = 0; i < 20; i++) require('child_process').spawn('sleep', ['317'], {detached: true, stdio: 'ignore'}).unref()",
        "deaf": "for (const s of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(s, () => {}); console.log('begun'); setTimeout(() => {}, 300000)",
        "closed": "require('fs').closeSync(1); await new Promise(y => setTimeout(y, 200))",
        "loud": "const b = 'x'.repeat(65536); for (;;) require('fs').writeSync(1, b)",
    },
    "perl": {
        "read": "my $p = '%(home)s/.ssh/id_rsa'; open my $f, '<', $p or die \"$p: $!\"; print <$f>;",
        "write": "open my $f, '>', '%(home)s/planted' or die; print $f 'x';",
        "connect": "use IO::Socket::INET; IO::Socket::INET->new(PeerAddr => '127.0.0.1:%(port)s') or die; print 'in';",
        "fork": "for (1..20) { if (!fork) { sleep 317; exit } }",
        "deaf": "$| = 1; $SIG{$_} = 'IGNORE' for qw(TERM INT HUP); print \"begun\\n\"; sleep 317 while 1;",
        "closed": "close STDOUT; close STDERR; select undef, undef, undef, 0.2;",
        "loud": "print 'x' x 65536 while 1;",
    },
    "ruby": {
        "read": "puts File.read('%(home)s/.ssh/id_rsa')",
        "write": "File.write('%(home)s/planted', 'x')",
        "connect": "require 'socket'; TCPSocket.new('127.0.0.1', %(port)s); puts 'in'",
        "fork": "20.times { fork { Process.setsid; sleep 317 } }",
        "deaf": "%%w[TERM INT HUP].each { |s| trap(s, 'IGNORE') }; puts 'begun'; STDOUT.flush; sleep 317",
        "closed": "STDOUT.close; STDERR.close; sleep 0.2",
        "loud": "loop { print 'x' * 65536 }",
    },
    "php": {
        "read": "$t = file_get_contents('%(home)s/.ssh/id_rsa'); if ($t === false) exit(1); echo $t;",
        "write": "file_put_contents('%(home)s/planted', 'x') or exit(1);",
        "connect": "fsockopen('127.0.0.1', %(port)s) or exit(1); echo 'in';",
        "fork": "for ($i = 0; $i < 20; $i++) exec('setsid sleep 317 >/dev/null 2>&1 &');",
        "deaf": "foreach ([SIGTERM, SIGINT, SIGHUP] as $s) pcntl_signal($s, SIG_IGN); echo \"begun\\n\"; sleep(300);",
        "closed": "fclose(STDOUT); fclose(STDERR); usleep(200000);",
        "loud": "while (true) echo str_repeat('x', 65536);",
    },
    "r": {
        "read": "cat(readLines('%(home)s/.ssh/id_rsa'))",
        "write": "cat('x', file='%(home)s/planted')",
        "connect": "socketConnection('127.0.0.1', %(port)s, timeout=3); cat('in')",
        "fork": "for (i in 1:20) system('setsid sleep 317 &')",
        "deaf": "system(\"trap '' TERM INT HUP; echo begun; sleep 317\")",
        "closed": "system('exec >&- 2>&-; sleep 0.2')",
        "loud": "while (TRUE) cat(strrep('x', 65536))",
    },
    "elixir": {
        "read": "IO.puts File.read!(\"%(home)s/.ssh/id_rsa\")",
        "write": "File.write!(\"%(home)s/planted\", \"x\")",
        "connect": "{:ok, _} = :gen_tcp.connect({127,0,0,1}, %(port)s, [], 3000); IO.puts \"in\"",
        "fork": "for _ <- 1..20, do: System.cmd(\"sh\", [\"-c\", \"setsid sleep 317 >/dev/null 2>&1 &\"])",
        "deaf": "for s <- [:sigterm, :sighup], do: :os.set_signal(s, :ignore); IO.puts \"begun\"; Process.sleep(300000)",
        "closed": "System.cmd(\"sh\", [\"-c\", \"exec >&- 2>&-; sleep 0.2\"])",
        "loud": "Stream.repeatedly(fn -> IO.write(String.duplicate(\"x\", 65536)) end) |> Stream.run()",
    },
    "go": {
        "read": 'b, err := os.ReadFile("%(home)s/.ssh/id_rsa"); if err != nil { panic(err) }; fmt.Println(string(b))',
        "write": 'if err := os.WriteFile("%(home)s/planted", nil, 0644); err != nil { panic(err) }',
        "connect": 'if _, err := net.Dial("tcp", "127.0.0.1:%(port)s"); err != nil { panic(err) }; fmt.Println("in")',
        "fork": 'for i := 0; i < 20; i++ { exec.Command("setsid", "sleep", "317").Start() }',
        "deaf": 'import (\n"fmt"\n"os/signal"\n"syscall"\n"time"\n)\nsignal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP); fmt.Println("begun"); time.Sleep(300 * time.Second)',
        "closed": "os.Stdout.Close(); os.Stderr.Close()",
        "loud": 's := strings.Repeat("x", 65536); for { fmt.Print(s) }',
    },
    "rust": {
        "read": 'println!("{}", std::fs::read_to_string("%(home)s/.ssh/id_rsa").unwrap());',
        "write": 'std::fs::write("%(home)s/planted", "x").unwrap();',
        "connect": 'std::net::TcpStream::connect("127.0.0.1:%(port)s").unwrap(); println!("in");',
        "fork": 'for _ in 0..20 { std::process::Command::new("setsid").args(["sleep", "317"]).spawn().unwrap(); }',
        "deaf": 'extern "C" { fn signal(n: i32, h: usize) -> usize; } unsafe { for s in [1, 2, 15] { signal(s, 1); } } println!("begun"); std::thread::sleep(std::time::Duration::from_secs(300));',
        "closed": 'extern "C" { fn close(n: i32) -> i32; } unsafe { close(1); close(2); } std::thread::sleep(std::time::Duration::from_millis(200));',
        "loud": 'let s = "x".repeat(65536); loop { print!("{}", s); }',
    },
    "csharp": {
        "read": 'Console.WriteLine(File.ReadAllText("%(home)s/.ssh/id_rsa"));',
        "write": 'File.WriteAllText("%(home)s/planted", "x");',
        "connect": 'new System.Net.Sockets.TcpClient("127.0.0.1", %(port)s); Console.WriteLine("in");',
        "fork": 'for (int i = 0; i < 20; i++) Process.Start("setsid", "sleep 317");',
        "deaf": 'using System.Runtime.InteropServices;\nclass P { [DllImport("libc")] static extern IntPtr signal(int n, IntPtr h); '
                'static void Main() { foreach (var s in new[] { 1, 2, 15 }) signal(s, (IntPtr)1); '
                'Console.WriteLine("begun"); Thread.Sleep(300000); } }',
        "closed": "Console.Out.Close(); Console.Error.Close(); Thread.Sleep(200);",
        "loud": "var s = new string('x', 65536); while (true) Console.Write(s);",
    },
}
HOSTILE["typescript"] = {act: "const typed: number = 1; " + code for act, code in HOSTILE["javascript"].items()}


@pytest.fixture
def outside():
    """A listener on the host's loopback; .reached says whether anybody came."""
    class Outside:
        reached = False
    listener = socket.create_server(("127.0.0.1", 0))
    o = Outside()
    o.port = listener.getsockname()[1]

    def accept():
        try:
            while True:
                listener.accept()[0].close()
                o.reached = True
        except OSError:
            pass
    threading.Thread(target=accept, daemon=True).start()
    yield o
    listener.close()


def cases():
    for language, acts in HOSTILE.items():
        for act in [*acts, "reach"]:
            yield pytest.param(language, act, id=f"{language}-{act}")


def hostile_code(language, act, box, port):
    if act == "reach":  # the same to a host that is not on the list
        code = HOSTILE[language]["connect"].replace("127.0.0.1", "evil.example.com")
        return code.replace("{127,0,0,1}", "~c\"evil.example.com\"") % {"port": 80}
    return HOSTILE[language][act] % {"home": box.home, "port": port}


@pytest.mark.parametrize("language, act", cases())
def test_hostile(speak, outside, language, act):
    s = speak(language, "root" if "root" in whos() and act in ("read", "write") else "user")
    box = s.box
    secret = box.write(".ssh/id_rsa", "SECRET-KEY", 0o600)
    code = hostile_code(language, act, box, outside.port)
    timeout = {"deaf": 8000 if language in ("go", "rust", "csharp") else 1500}.get(act, SLOW)
    r = s.tool("execute", language=language, code=code, timeout=timeout)
    d, shown = r["structuredContent"], json.dumps(r)
    if act == "read":
        assert r["isError"] and "SECRET-KEY" not in shown
        assert text(r).startswith("[SANDBOX BLOCKED] denied read of ") and str(secret) in text(r)
        assert any(b["kind"] == "read" and b["target"] == str(secret) for b in d["blocked"])
    elif act == "write":
        assert r["isError"] and not (box.home / "planted").exists()
        assert (f"[SANDBOX BLOCKED] denied write to {box.home}/planted — this path is outside the "
                "project directory") in text(r)
    elif act == "connect":
        assert r["isError"] and not outside.reached  # its own loopback, with nobody there
    elif act == "reach":
        assert r["isError"]
        assert "[SANDBOX BLOCKED] denied connect to evil.example.com" in text(r), text(r)
        assert any(b["kind"] == "connect" for b in d["blocked"])
    elif act == "deaf":
        assert d["timedOut"] and d["exitCode"] == 124
    elif act == "loud":
        assert "ended because of its output" in text(r) and d["stdoutBytes"] <= (100 << 20) + 65536
    elif act == "closed":
        assert d["exitCode"] == 0 and d["stdout"] == ""
    if act in ("fork", "deaf"):
        s.tool("execute", language="shell", code="true")  # it still answers
    assert wait_until(lambda: not [p for p in os.listdir("/proc")
                                   if p.isdigit() and is_sleeper(p, box.who.uid)], 2)


def is_sleeper(pid, uid):
    """One of those above: other suites have sleepers of this account too."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read() == b"sleep\x00317\x00" and os.stat(f"/proc/{pid}").st_uid == uid
    except OSError:
        return False


DEAF_TO = [x for x in HOSTILE if x not in ("go", "r")]  # there another process of theirs hears it, and ends all


@pytest.mark.parametrize("language", DEAF_TO)
def test_deaf_jobs_are_killed(speak, language):
    """SIGTERM is really ignored, and job_kill ends it all the same."""
    s = speak(language)
    code = hostile_code(language, "deaf", s.box, 0)
    job = s.tool("execute", language=language, code=code, background=True)["structuredContent"]["jobId"]
    seen = s.tool("job_output", jobId=job, offset=0, wait=60000)["structuredContent"]
    assert seen["stdout"] == "begun\n" and seen["running"], seen
    assert s.tool("job_kill", jobId=job, signal="TERM")["structuredContent"]["running"]
    ended = s.tool("job_kill", jobId=job)["structuredContent"]
    assert not ended["running"] and ended["signal"] == "SIGKILL"


# language: (limit, what fills the memory); compilers need some for themselves
MEMORY = {
    "python": ("150m", "x = []\nwhile True: x.append(bytearray(b'x' * (1 << 20)))"),
    "javascript": ("150m", "const x = []; for (;;) x.push(Buffer.alloc(1 << 20, 1))"),
    "typescript": ("150m", "const x: Buffer[] = []; for (;;) x.push(Buffer.alloc(1 << 20, 1))"),
    "perl": ("150m", "my @x; push @x, 'x' x (1 << 20) while 1;"),
    "ruby": ("150m", "x = []; loop { x << 'x' * (1 << 20) }"),
    "shell": ("150m", "head -c 400m /dev/zero > /tmp/x; head -c 400m /dev/zero | tail"),
    "php": ("150m", "ini_set('memory_limit', -1); $x = []; while (true) $x[] = str_repeat('x', 1 << 20);"),
    "r": ("250m", "x <- list(); i <- 0; repeat { i <- i + 1; x[[i]] <- rep(1, 200000) }"),
    "elixir": ("400m", "Enum.reduce(Stream.cycle([1]), [], fn _, a -> [:binary.copy(<<1>>, 1048576) | a] end)"),
    "go": ("600m", "var x [][]byte; for { b := make([]byte, 1<<20); for i := range b { b[i] = 1 }; "
                   "x = append(x, b); if len(x) == 3 { fmt.Println(\"begun\") } }"),
    "rust": ("600m", "let mut x = Vec::new(); loop { x.push(vec![1u8; 1 << 20]); "
                     "if x.len() == 3 { println!(\"begun\"); } }"),
    "csharp": ("400m", "var x = new List<byte[]>(); while (true) { var b = new byte[1 << 20]; "
                       "for (int i = 0; i < b.Length; i += 4096) b[i] = 1; x.Add(b); "
                       "if (x.Count == 3) Console.WriteLine(\"begun\"); }"),
}


@pytest.mark.parametrize("language", MEMORY)
def test_fills_memory(speak, language):
    limit, code = MEMORY[language]
    s = speak(language, "root" if "root" in whos() else "user", "--memory", limit)
    r = s.tool("execute", language=language, code=code, timeout=SLOW)
    assert r["isError"] and not r["structuredContent"]["timedOut"]
    assert f"[SANDBOX BLOCKED] limit memory {limit}" in text(r), text(r)
    assert any(b["kind"] == "limit" for b in r["structuredContent"]["blocked"])
    assert "begun" not in code or "begun" in r["structuredContent"]["stdout"], r  # not its compiler
    assert text(s.tool("execute", language="shell", code="echo fine")) == "fine\n"


def test_every_language_is_tried():
    assert set(LANGUAGES) == set(HOSTILE) == set(MEMORY)
    for language, acts in HOSTILE.items():
        assert set(acts) == {"read", "write", "connect", "fork", "deaf", "closed", "loud"}, language


def test_fork_bomb(speak):
    s = speak("python", "user", "--pids", "60")
    r = s.tool("execute", language="python", timeout=20000, code="""
import os, time
try:
    for _ in range(200):
        if os.fork() == 0: time.sleep(300)
except OSError as e: print(e)
""")
    # a program that takes the refusal and ends may be quicker than the one who tells
    assert "[SANDBOX BLOCKED] limit pids 60" in text(r) or "Resource temporarily" in text(r)
    assert wait_until(lambda: not [p for p in os.listdir("/proc")
                                   if p.isdigit() and is_python_child(p, s.box.who.uid)])


def is_python_child(pid, uid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return b"/run/ambit/main.py" in f.read() and os.stat(f"/proc/{pid}").st_uid == uid
    except OSError:
        return False


def test_limits_without_being_asked_for(speak):
    """By default there are some: what a program sees of them is the number of its processes."""
    s = speak("python")
    r = s.tool("execute", language="python", timeout=SLOW, code="""
import os, time
n = 0
try:
    while n < 1500:
        if os.fork() == 0: time.sleep(300)
        n += 1
except OSError: pass
print(n)
""")
    assert 500 < int(r["structuredContent"]["stdout"]) < 1100


@pytest.mark.parametrize("language", HOSTILE)
def test_control_the_attacks_work_without_a_sandbox(boxes, speak, outside, language):
    """The same code does its work when nothing confines it: the tests above can fail."""
    tmp = boxes("user").mkdir("tmp", 0o777)
    s = speak(language, env={"AMBIT_NO_SANDBOX": "1", "TMPDIR": str(tmp)})
    box = s.box
    box.write(".ssh/id_rsa", "SECRET-KEY", 0o600)
    for act in ("read", "write", "connect"):
        code = hostile_code(language, act, box, outside.port)
        r = s.tool("execute", language=language, code=code, timeout=SLOW)
        assert not r["isError"], text(r)
        assert act != "read" or "SECRET-KEY" in text(r)
    assert (box.home / "planted").exists() and wait_until(lambda: outside.reached)
    assert wait_until(lambda: not [*tmp.iterdir()], 5), "left behind"
