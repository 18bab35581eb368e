# SPDX-License-Identifier: Apache-2.0
"""ambit learn: what a command was seen to use becomes a policy under which it runs again without
a violation; what must not be learned is refused and listed."""
import json
import re
import shutil
import socket

from ambit_test import skip_impossible


def learn(box, *command, options=(), **kw):
    return box.ambit("learn", "-o", "learned.yaml", *options, "--", *command, **kw)


def policy(box):
    return (box.ws / "learned.yaml").read_text()


def again(box, *command, **kw):
    """Under the learned policy: it works, and nothing is denied."""
    r = box.run(*command, options=["-s", "learned.yaml", "--report", "report.json"], **kw)
    assert json.loads((box.ws / "report.json").read_text())["violations"] == [], r
    return r.ok()


def need(program):
    if not shutil.which(program, path="/usr/local/bin:/usr/bin:/bin"):
        skip_impossible(f"{program} is not installed")


def test_scope_is_said(box):
    r = learn(box, "true", options=["-q"])
    assert "LEARNING" in r.err and "Learn only from what you trust" in r.err, r


def test_writes_become_directories(box):
    box.mkdir("work")
    script = ("mkdir -p ~/.cache/tool/a ~/.tool/x ~/work/lib/out; echo 1 > ~/.cache/tool/a/f; "
              "echo 2 > ~/.tool/x/y; echo 3 > ~/work/lib/out/a; echo 4 > ~/work/lib/b; "
              "echo 5 > ~/.cache/tool/tmp; mv ~/.cache/tool/tmp ~/.cache/tool/done; echo 6 > here")
    learn(box, "sh", "-c", script).ok()
    text = policy(box)
    for line in ('- "~/.cache/tool" # ', '- "~/.tool" # ', '- "~/work/lib" # '):
        assert line in text, text
    assert '"~/.cache"' not in text and '"~"' not in text
    again(box, "sh", "-c", script)
    # and no more than that
    r = box.sh("echo x > ~/.cache/other; echo y > ~/work/z", options=["-s", "learned.yaml"])
    assert r.err.count("ambit: denied write") == 2


def test_deletions_count(box):
    box.write(".cache/tool/old", "x")
    learn(box, "sh", "-c", "rm ~/.cache/tool/old").ok()
    assert '"~/.cache/tool"' in policy(box)


def test_a_file_of_its_own(box):
    box.write(".toolrc", "x")
    learn(box, "sh", "-c", "echo y >> ~/.toolrc").ok()
    assert '- "~/.toolrc" # sh' in policy(box)
    again(box, "sh", "-c", "echo y >> ~/.toolrc")


def forget(box):
    """The home directory as it was before anything was made there."""
    for path in box.home.iterdir():
        if path.name in ("d1", "d2", "docs", "foo.txt", ".cache", ".tool", "work"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_again_from_the_start(box):
    """What the lesson made is gone: the rules make it again, and never something else."""
    for script in ("mkdir ~/d1", "mkdir -m 700 ~/d1 && echo > ~/d1/f", "mkdir -p ~/d1/x/y",
                   "mkdir -p ~/d2/e; echo > ~/d2/e/f", "mkdir ~/d2 ~/d2/e && echo > ~/d2/e/f",
                   "mkdir -p ~/.cache/tool && echo > ~/.cache/tool/f",
                   "mkdir ~/.tool ~/.tool/x && echo > ~/.tool/x/f",
                   "mkdir -p ~/work/lib/out && echo > ~/work/lib/out/a && echo > ~/work/lib/b",
                   "mkdir -p ~/d1/1/2/3/4 && echo > ~/d1/1/x && mkdir -p ~/d1/1/2/3/4/5/6/7"):
        learn(box, "sh", "-ec", script).ok()
        text = policy(box)
        assert '"~"' not in text and "# Not learned" not in text, (script, text)
        forget(box)
        again(box, "sh", "-ec", script)
        forget(box)
        (box.ws / "learned.yaml").unlink()


def test_mkdir_of_what_the_run_makes(box):
    """Once, with its mode; the second is told the truth."""
    r = box.sh("umask 022; mkdir -m 700 ~/d1 && ls -ld ~/d1; mkdir ~/d1; mkdir ws2; ls -d ws2",
               options=["--allow-write", "~/d1"])
    assert r.out.startswith("drwx------") and "ws2" in r.out and "File exists" in r.err, r
    forget(box)
    box.sh("mkdir ~/.cache && ! mkdir ~/.cache && ! mkdir ~/.cache/x && mkdir ~/.cache/e && "
           "echo > ~/.cache/e/f", options=["--allow-write", "~/.cache/e"]).ok()
    assert (box.home / ".cache/e/f").exists()
    r = box.run("true", options=["--allow-write", "/proc/nowhere/deep"])
    assert r.code == 125 and "does not exist" in r.err


def test_new_files(box):
    """A file that is made right in the home directory is not learned, and how it could be is said."""
    learn(box, "sh", "-c", "echo x > ~/foo.txt").ok()
    rules, _, listed = policy(box).partition("# Not learned")
    assert "filesystem" not in rules, rules
    assert "allowWrite=~/foo.txt' # made by sh" in listed and "make an empty one" in listed
    # as it says
    box.sh("echo y > ~/foo.txt", options=["--set", "filesystem.allowWrite=~/foo.txt"]).ok()
    (box.ws / "learned.yaml").unlink()
    # beside the home directory there is one to allow
    box.mkdir("docs")
    script = "echo y > ~/docs/a.txt"
    learn(box, "sh", "-c", script).ok()
    assert '- "~/docs" # sh: ~/docs/a.txt' in policy(box)
    (box.home / "docs/a.txt").unlink()
    again(box, "sh", "-c", script)
    # gone again
    (box.ws / "learned.yaml").unlink()
    learn(box, "sh", "-c", "echo x > ~/.x.tmp; rm ~/.x.tmp").ok()
    rules, _, listed = policy(box).partition("# Not learned")
    assert "filesystem" not in rules and "--set 'filesystem.allowWrite=~' # sh made or removed ~/.x.tmp" in listed


def test_files_in_shared_places(box):
    """Never all of ~/.config for a file in it: the file itself, or what would allow it is listed."""
    for path in (".config", ".local/share", ".local/bin"):
        box.mkdir(path)
    script = "echo x > ~/.config/solo; echo y > ~/.local/share/solo.db"
    learn(box, "sh", "-c", script).ok()
    text = policy(box)
    assert '- "~/.config/solo" # ' in text and '- "~/.local/share/solo.db" # ' in text, text
    again(box, "sh", "-c", script)
    r = box.sh("echo x > ~/.config/other; echo y > ~/.local/z", options=["-s", "learned.yaml"])
    assert r.err.count("ambit: denied write") == 2, r
    box.ambit("learn", "--update", "learned.yaml", "--set", "filesystem.unprotect=.local/bin", "--",
              "sh", "-c", "echo z > ~/.local/bin/tool").ok()
    assert '- "~/.local/bin/tool" # ' in policy(box) and '"~/.local"' not in policy(box)
    (box.ws / "learned.yaml").unlink()
    # what is replaced by renaming is no file to write to
    learn(box, "sh", "-c", "echo x > ~/.config/solo.tmp; mv ~/.config/solo.tmp ~/.config/solo").ok()
    rules, _, listed = policy(box).partition("# Not learned")
    assert "filesystem" not in rules, rules
    assert ("--set 'filesystem.allowWrite=~/.config' # sh replaced ~/.config/solo, by way of "
            "~/.config/solo.tmp: ") in listed.replace("mv replaced", "sh replaced"), listed


def test_odd_names(box):
    script = "mkdir -p ~/.cache/'a *[b]\"'; echo 1 > ~/.cache/'a *[b]\"'/f; touch ~/.cache/'a *[b]\"/\x1b[31m'"
    learn(box, "sh", "-c", script).ok()
    assert "\x1b" not in policy(box)
    again(box, "sh", "-c", script)


def test_what_is_not_learned(box):
    """Secrets, protected names and system directories are refused meanwhile, and listed."""
    box.write(".ssh/id", "KEY-text")
    script = ("cat ~/.ssh/id; echo evil >> ~/.bashrc; echo evil > ~/.config/autostart/x; "
              "echo x > /etc/ambit-test; mkdir -p .git/hooks; echo evil > .vscode; true")
    r = learn(box, "sh", "-c", script).ok()
    assert "KEY-text" not in r.out
    assert not (box.home / ".bashrc").exists() and not (box.ws / ".vscode").exists()
    text = policy(box)
    _, _, listed = text.partition("# Not learned")
    assert "filesystem:" not in text and "network:" not in text, text
    # who may not write there outside either is helped by no option
    etc = "--allow-write /etc" if box.who.name == "root" else "nothing allows it"
    for hint in (f"--allow-read {box.home}/.ssh/id", etc,
                 "--set filesystem.unprotect=.bashrc", "--set filesystem.unprotect=.vscode"):
        assert f"#   {hint} # " in listed, text


def test_options_are_kept(box):
    """What was given to learn is part of the result: without it the command would not run."""
    box.write(".ssh/id", "KEY-text")
    box.write("data/x/f", "old")
    learn(box, "cat", box.home / ".ssh/id",
          options=["--allow-read", "~/.ssh/id", "--env-prefix", "CI_"]).ok()
    assert '- "~/.ssh/id" # given to learn: --allow-read' in policy(box)
    assert again(box, "cat", box.home / ".ssh/id").out == "KEY-text"


def test_limits_from_the_peak(box):
    need("python3")
    code = "x = bytearray(300 << 20); import time; time.sleep(1.5)"
    learn(box, "/usr/bin/python3", "-c", code).ok()
    text = policy(box)
    memory = int(re.search(r'memory: "(\d+)m" # peak (\d+)m', text)[1])
    assert 512 <= memory <= 1024, text
    assert re.search(r"pids: 64 # \d+ in all, \d+ seen at once", text) and re.search(r'timeout: "10m" # took', text)
    again(box, "/usr/bin/python3", "-c", code)


def test_limits_of_a_short_peak(box):
    """Two hundred threads for a moment, which no sample has to see."""
    need("python3")
    box.write("ws/th.py", "import threading\nb = threading.Barrier(201)\n"
              "for i in range(200): threading.Thread(target=b.wait).start()\nb.wait()\n")
    learn(box, "/usr/bin/python3", "th.py").ok()
    found = re.search(r"pids: (\d+) # (\d+) in all", policy(box))
    assert found and int(found[1]) >= 2 * int(found[2]) >= 402, policy(box)
    for _ in range(3):
        again(box, "/usr/bin/python3", "th.py")


def test_failure_is_said(box):
    r = learn(box, "sh", "-c", "echo 1 > ~/.cache-x; exit 3")
    assert r.code == 3 and "failed with status 3" in r.err
    assert policy(box)


def test_standard_output(box):
    """Without -o the policy goes to standard output, and the command's own output does not."""
    r = box.ambit("learn", "--", "sh", "-c", "echo hello; mkdir -p ~/.tool; echo 1 > ~/.tool/x").ok()
    assert "hello" in r.err and "hello\n" not in r.out
    assert r.out.startswith("# Learned by ambit on ") and '"~/.tool"' in r.out


def test_files_are_not_overwritten(box):
    box.write("ws/learned.yaml", "mine")
    r = learn(box, "touch", "canary")
    assert r.code == 125 and "--update" in r.err and not (box.ws / "canary").exists()
    r = box.ambit("learn", "-o", "x.json", "--", "touch", "canary")
    assert r.code == 125 and ".yaml" in r.err and not (box.ws / "canary").exists()
    r = box.ambit("learn", "-o", "x.yaml", "--update", "y.yaml", "--", "touch", "canary")
    assert r.code == 125


def test_update(box):
    """A second command adds what it needs; what the file has already is not asked for again."""
    one = "mkdir -p ~/.one; echo 1 > ~/.one/f"
    two = one + "; mkdir -p ~/.cache/two; echo 2 > ~/.cache/two/f"
    learn(box, "sh", "-c", one).ok()
    (box.ws / "learned.yaml").write_text("# my own words\n" + policy(box))
    box.ambit("learn", "--update", "learned.yaml", "--", "sh", "-c", two).ok()
    text = policy(box)
    assert text.startswith("# my own words\n") and text.count('"~/.one"') == 1
    assert '- "~/.cache/two" # sh: ~/.cache/two/f' in text
    again(box, "sh", "-c", two)
    # nothing new: nothing changes
    box.ambit("learn", "--update", "learned.yaml", "--", "sh", "-c", two).ok()
    assert policy(box) == text
    # JSON can be added to as well
    box.write("ws/old.json", '{ "filesystem": { "allowWrite": ["~/a"] } } // mine\n')
    box.mkdir("a")
    box.ambit("learn", "--update", "old.json", "--", "sh", "-c", one).ok()
    text = (box.ws / "old.json").read_text()
    assert re.search(r'"allowWrite": \["~/.one", // sh: ~/.one/f\n +"~/a"\]', text), text
    again(box, "sh", "-c", one)


def test_update_of_a_missing_file(box):
    """Most likely a wrong name: nothing is run and nothing made."""
    for name in ("learned.yml", "learned.json"):
        r = box.ambit("learn", "--update", name, "--", "touch", "canary")
        assert r.code == 125 and f"{name} does not exist" in r.err and "-o FILE" in r.err, str(r)
        assert not (box.ws / "canary").exists() and not (box.ws / name).exists()


def test_ports_and_sockets_of_the_host(box):
    """Asked for in vain, and there: listed, never learned."""
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        port = tcp.getsockname()[1]
        path = box.home / "service.sock"
        unix.bind(str(path))
        path.chmod(0o777)
        unix.listen()
        code = ("import socket\n"
                "for family, address in ((socket.AF_INET, ('127.0.0.1', %d)),"
                " (socket.AF_INET, ('127.0.0.1', 1)), (socket.AF_UNIX, %r)):\n"
                "    try: socket.socket(family).connect(address)\n"
                "    except OSError as e: print(e)\n" % (port, str(path)))
        learn(box, "/usr/bin/python3", "-c", code).ok()
    rules_part, _, listed = policy(box).partition("# Not learned")
    assert f"network.allowHostPorts={port}'" in listed and "allowHostPorts=1'" not in listed
    assert f"--allow-unix {path}" in listed
    assert "allowHostPorts" not in rules_part and "allowUnix" not in rules_part


# --- what people run -------------------------------------------------------------------------

def test_git(box):
    box.host("git", "init", "-q", "--bare", str(box.home / "remote.git")).ok()
    box.write(".gitconfig", "[user]\nname = x\nemail = x@x.test\n")
    script = ("set -e; rm -rf clone; git clone -q ~/remote.git clone 2>/dev/null; cd clone; "
              "date +%N > f; git add f; git commit -qm x; git push -q origin HEAD; git gc -q")
    learn(box, "sh", "-c", script).ok()
    assert '- "~/remote.git"' in policy(box)
    again(box, "sh", "-c", script)


def test_make(box):
    need("make")
    box.write("ws/Makefile", "all: out\n\ninstall: all\n\tmkdir -p $(HOME)/.local/share/tool\n"
              "\tcp out $(HOME)/.local/share/tool/out\nout: in\n\tcp in out\n")
    box.write("ws/in", "x")
    learn(box, "make", "install").ok()
    assert '- "~/.local/share/tool"' in policy(box)
    again(box, "make", "-B", "install")


def test_python(box):
    box.write("ws/tool.py", "import json, os, pathlib\n"
              "d = pathlib.Path.home() / '.cache/tool'\nd.mkdir(parents=True, exist_ok=True)\n"
              "(d / 'new').write_text(json.dumps([1]))\nos.replace(d / 'new', d / 'state.json')\n"
              "import sqlite3\ndb = sqlite3.connect(str(d / 'db'))\n"
              "db.execute('create table if not exists t (x)')\ndb.execute('insert into t values (1)')\n"
              "db.commit()\n")
    run = ("/usr/bin/python3", "tool.py")
    env = {"PYTHONPYCACHEPREFIX": str(box.home / ".cache/pycache")}
    learn(box, *run, env=env).ok()
    assert '- "~/.cache/tool"' in policy(box)
    again(box, *run, env=env)


def test_npm(box):
    need("npm")
    box.write("dep/package.json", '{"name": "dep", "version": "1.0.0", "main": "i.js"}')
    box.write("dep/i.js", "module.exports = 42")
    box.write("ws/package.json", '{"name": "x", "version": "1.0.0", '
              '"scripts": {"test": "node -p \\"require(\'dep\')\\""}}')
    pack = box.host("npm", "pack", "--silent", str(box.home / "dep"), timeout=120).ok()
    assert pack.out.strip() == "dep-1.0.0.tgz"
    script = ("rm -rf node_modules package-lock.json; npm install --offline --no-audit --no-fund "
              "./dep-1.0.0.tgz && npm test")
    env = {"npm_config_update_notifier": "false"}
    r = learn(box, "sh", "-c", script, env=env, timeout=120).ok()
    assert "42" in r.out
    assert '- "~/.npm"' in policy(box), policy(box)
    assert "42" in again(box, "sh", "-c", script, env=env, timeout=120).out


def test_node_server(box):
    """Its port is told, not opened; it serves itself inside, learning and afterwards."""
    need("node")
    code = ("const http = require('http'), fs = require('fs'), d = process.env.HOME + '/.srv'\n"
            "fs.mkdirSync(d, {recursive: true})\n"
            "const s = http.createServer((q, a) => {fs.appendFileSync(d + '/log', q.url + '\\n');"
            " a.end('served')}).listen(3456, () => setTimeout(() =>"
            " fetch('http://127.0.0.1:3456/x').then(r => r.text()).then(t =>"
            " {console.log(t); s.close(); s.closeAllConnections()}), 1000))\n")
    box.write("ws/server.js", code)
    r = learn(box, "node", "server.js", timeout=60).ok()
    assert r.out == "served\n"
    text = policy(box)
    assert '- "~/.srv"' in text and "#   --set 'network.publish=3456'" in text, text
    assert again(box, "node", "server.js", timeout=60).out == "served\n"


def test_learning_is_recorded(box):
    learn(box, "true").ok()
    first = json.loads((box.state / "ambit/audit.jsonl").read_text().splitlines()[0])
    assert str(box.home) in first["allowWrite"] and first["network"] == "allowlist"


def test_network_as_asked(box):
    r = learn(box, "sh", "-c", "cat /proc/net/route", options=["--network=none"]).ok()
    assert "has no network" in r.err and len(r.out.splitlines()) == 1
    r = box.ambit("learn", "--network=host", "--", "touch", "canary")
    assert r.code == 125 and "no host could be learned" in r.err
    assert not (box.ws / "canary").exists()


def test_secrets_of_the_command_line(box):
    learn(box, "true", "--password", "hunter2").ok()
    assert "hunter2" not in policy(box) and "[redacted]" in policy(box)
