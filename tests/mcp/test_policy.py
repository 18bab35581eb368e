# SPDX-License-Identifier: Apache-2.0
"""One policy per server, from where users expect it; calls narrow it and never widen it."""
import json
import os
import re
import shutil

import pytest
from ambit_test import AMBIT, skip_impossible, wait_until
from mcp_client import RpcError, Server, text


def sh(s, code, **kw):
    return s.tool("execute", language="shell", code=code, **kw)


def out(r):
    return r["structuredContent"]["stdout"]


def instructions(box, serve, options=(), **kw):
    s = serve(box, *options, initialize=False, **kw)
    return s.initialize()["instructions"]


# --- files ----------------------------------------------------------------------------------

def test_project_is_writable_and_nothing_else(server):
    box = server.box
    r = sh(server, "echo x > in; mkdir -p sub && echo x > sub/in; echo x > ../out; cat in")
    assert out(r) == "x\n" and (box.ws / "sub/in").exists() and not (box.home / "out").exists()
    assert text(r).startswith(f"[SANDBOX BLOCKED] denied write to {box.home}/out — this path is "
                              "outside the project directory\n")


def test_seed_words(server):
    r = sh(server, "echo '127.0.0.1 evil' >> /etc/hosts")
    assert text(r).startswith("[SANDBOX BLOCKED] denied write to /etc/hosts — this path is outside "
                              "the project directory\n")
    assert r["isError"]
    blocked, = r["structuredContent"]["blocked"]
    assert blocked["kind"] == "write" and blocked["target"] == "/etc/hosts"
    assert blocked["rule"] == "filesystem.allowWrite" and blocked["count"] == 1
    # who may not write there outside either is helped by no option
    assert blocked["hint"] == ("--allow-write /etc/hosts" if server.box.who.name == "root" else None)
    assert blocked["pid"] > 1


@pytest.mark.parametrize("name", [".env", "sub/.env", ".git/hooks/pre-commit", ".mcp.json",
                                  ".claude/settings.json", ".bashrc"])
def test_what_runs_later_is_not_writable(server, name):
    sh(server, "mkdir -p sub; git init -q . 2>/dev/null")
    r = sh(server, f"mkdir -p $(dirname {name}); echo x > {name}")
    assert r["isError"] and "[SANDBOX BLOCKED] denied write to " in text(r), text(r)
    assert not (server.box.ws / name).exists()


def test_secrets_made_after_the_start_are_hidden_too(server):
    """The policy is older than the file: what it names is looked at again for every call."""
    box = server.box
    sh(server, "true")
    for path in (".ssh/id_rsa", ".aws/credentials", ".config/gh/hosts.yml", ".netrc"):
        box.write(path, "SECRET-KEY", 0o600)
        r = sh(server, f"cat ~/{path}")
        assert r["isError"] and "SECRET-KEY" not in json.dumps(r), path
    assert box.host("cat", str(box.home / ".ssh/id_rsa")).out == "SECRET-KEY"  # control


QUIET = "import os\ntry: open(os.path.expanduser('~/.ssh/id_rsa'))\nexcept OSError: print('quiet')"


def test_denied_reads_are_told(boxes, serve):
    """By what programs say about them; with --report-reads by the calls themselves."""
    box = boxes("user")
    box.write(".ssh/id_rsa", "SECRET-KEY", 0o600)
    s = serve(box)
    blocked = f"[SANDBOX BLOCKED] denied read of {box.home}/.ssh/id_rsa — private keys"
    for code in ("cat ~/.ssh/id_rsa", "cat ~/.ssh/id_rsa; echo fine", "cp ~/.ssh/id_rsa .",
                 "ssh-keygen -y -f ~/.ssh/id_rsa", "grep -r KEY ~/.ssh/id_rsa"):
        assert text(sh(s, code)).startswith(blocked), code
    for code in ("cat ~/.ssh/*", "cat /etc/shadow"):
        assert "[SANDBOX BLOCKED] denied read of " in text(sh(s, code)), code
    for code in ("echo ~/.ssh/id_rsa", "cat ~/no-such", "echo 'about ~/.ssh/id_rsa: No such file'"):
        assert "BLOCKED" not in text(sh(s, code)), code
    r = s.tool("execute", language="python", code=QUIET)
    assert text(r) == "quiet\n"
    s = serve(box, "--report-reads")
    r = s.tool("execute", language="python", code=QUIET)
    assert text(r).startswith(blocked) and r["structuredContent"]["blocked"][0]["pid"] > 0


def test_tmp_is_private_to_the_call(server):
    sh(server, "echo x > /tmp/ambit-mcp-test-file; echo x > /var/tmp/ambit-mcp-test-file")
    assert not os.path.exists("/tmp/ambit-mcp-test-file")
    assert out(sh(server, "ls /tmp /var/tmp")) in ("", "/tmp:\n\n/var/tmp:\n")


def test_project_directory(boxes, serve):
    box = boxes("user")
    box.mkdir("other")
    s = serve(box, env={"CLAUDE_PROJECT_DIR": str(box.home / "other")})
    assert out(sh(s, "pwd; echo x > f")) == f"{box.home}/other\n"
    assert (box.home / "other/f").exists()
    assert sh(s, f"echo x > {box.ws}/f")["isError"]
    s = serve(box, "--chdir", str(box.ws), env={"CLAUDE_PROJECT_DIR": str(box.home / "other")})
    assert out(sh(s, "pwd")) == f"{box.ws}\n"


def test_no_project_directory(boxes):
    box = boxes("user")
    r = box.ambit("mcp", "serve", env={"CLAUDE_PROJECT_DIR": "/no/such"})
    assert r.code == 125 and "/no/such" in r.err


def test_cwd_of_a_call_does_not_widen(server):
    box = server.box
    box.mkdir("other")
    r = sh(server, "pwd; echo x > f", cwd=str(box.home / "other"))
    assert out(r) == f"{box.home}/other\n" and not (box.home / "other/f").exists()
    box.write(".ssh/id_rsa", "SECRET-KEY", 0o600)
    r = sh(server, "cat id_rsa; pwd", cwd=str(box.home / ".ssh"))
    assert r["isError"] and "SECRET-KEY" not in json.dumps(r)


def test_cwd_does_not_tell_what_is_hidden(server):
    """Whether something of that name is there, a directory or not: the answer is the same."""
    box = server.box
    box.write(".ssh/id_rsa", "SECRET-KEY", 0o600)
    box.mkdir(".ssh/keys")
    (box.ws / "link").symlink_to(box.home / ".ssh")
    for top in (str(box.home / ".ssh"), "link", "../.ssh"):
        said = {name: text(sh(server, "echo ran", cwd=f"{top}/{name}")).replace(name, "")
                for name in ("id_rsa", "keys", "nothing", "keys/nothing", "id_rsa/x")}
        assert len(set(said.values())) == 1 and "hidden" in said["keys"], said
    assert "No such file" in text(sh(server, "echo ran", cwd="nothing"))  # elsewhere it is told


def test_links_lead_nowhere(server):
    box = server.box
    box.write(".ssh/id_rsa", "SECRET-KEY", 0o600)
    (box.ws / "link").symlink_to(box.home / ".ssh")
    (box.ws / "up").symlink_to(box.home)
    assert "SECRET-KEY" not in json.dumps(sh(server, "cat link/id_rsa"))
    assert "SECRET-KEY" not in json.dumps(sh(server, "cat id_rsa", cwd="link"))
    sh(server, "echo x > up/planted")
    sh(server, "echo x > planted", cwd="up")
    assert not (box.home / "planted").exists()


# --- narrowing --------------------------------------------------------------------------------

def test_read_only_call(server):
    (server.box.ws / "f").write_text("old")
    r = sh(server, "cat f; echo new > f; echo new > g; echo t > /tmp/t && cat /tmp/t", readOnly=True)
    assert out(r) == "oldt\n" and (server.box.ws / "f").read_text() == "old"
    assert not (server.box.ws / "g").exists() and "[SANDBOX BLOCKED]" in text(r)
    assert sh(server, "echo new > g")["isError"] is False  # only that call
    files = [{"path": "planted", "content": "x"}]
    assert sh(server, "true", readOnly=True, files=files)["isError"]


def test_read_only_call_is_told_as_its_own_wish(plain_server):
    """No option of the server's would help; what is outside the project is so for every call."""
    box = plain_server.box
    box.mkdir("there")
    r = sh(plain_server, "echo x > f; echo x > ../there/out", readOnly=True)
    assert text(r).startswith(
        f"[SANDBOX BLOCKED] denied write to {box.ws}/f — this call asked to be read-only (readOnly: true)\n"
        f"[SANDBOX BLOCKED] denied write to {box.home}/there/out — this path is outside the project directory\n"
        "[the user can allow it by adding to the server's options: ambit mcp serve --allow-write "
        f"{box.home}/there]\n"), text(r)
    own, other = r["structuredContent"]["blocked"]
    assert own["source"] == "the call" and own["hint"] is None and other["hint"]
    assert own["reason"] in (box.state / "ambit/audit.jsonl").read_text()


def test_call_without_network(server):
    r = sh(server, "curl -sS -m 5 https://github.com", network=False)
    assert r["isError"] and "Could not resolve" in r["structuredContent"]["stderr"]
    r = sh(server, "exec 3<> /dev/tcp/192.0.2.1/80", network=False)
    assert text(r).startswith("[SANDBOX BLOCKED] denied connect to 192.0.2.1:80 — this call asked for "
                              "no network (network: false)\n") and "the user can" not in text(r)
    assert "proxy" not in out(sh(server, "env | grep -i proxy || true", network=False))


@pytest.mark.parametrize("options", [("--network", "none"), ()])
def test_network_true_widens_nothing(boxes, serve, options):
    s = serve(boxes("user"), *options)
    r = sh(s, "curl -fsS -m 5 http://evil.example.com", network=True, readOnly=False)
    assert r["isError"]
    assert options or "[SANDBOX BLOCKED] denied connect to evil.example.com" in text(r)


def test_without_any_network_it_is_not_the_call(boxes, serve):
    r = sh(serve(boxes("user"), "--network", "none"), "exec 3<> /dev/tcp/192.0.2.1/80", network=False)
    assert text(r).startswith("[SANDBOX BLOCKED] denied connect to 192.0.2.1:80 — there is no network\n")


@pytest.mark.parametrize("env", [["AMBIT_NO_SANDBOX=1"], ["CONTEXT_MODE_NO_SANDBOX=1"],
                                 ["AMBIT=", "AMBIT_ALLOWED_DOMAINS=*"], ["HTTP_PROXY="],
                                 ["LD_PRELOAD=/x.so"], ["CLAUDE_PROJECT_DIR=/"]])
def test_variables_of_a_call_change_only_the_program(server, env):
    r = sh(server, "echo x > /etc/ambit-test; echo x > ../planted; echo done", env=env)
    assert out(r) == "done\n" and not os.path.exists("/etc/ambit-test")
    assert not (server.box.home / "planted").exists() and r["structuredContent"]["sandboxed"]


# --- environment --------------------------------------------------------------------------------

def test_environment_by_allow_list(boxes, serve):
    s = serve(boxes("user"), env={
        "ANTHROPIC_API_KEY": "sk-secret", "SECRET_TOKEN": "hush", "HARMLESS": "no", "CI": "true",
        "CLAUDE_CODE_MESSAGING_TOKEN": "hush", "LD_PRELOAD": "/x.so", "LC_ALL": "C.UTF-8",
        "NODE_OPTIONS": "--inspect"})
    env = dict(line.split("=", 1) for line in out(sh(s, "env")).splitlines())
    for name in ("ANTHROPIC_API_KEY", "SECRET_TOKEN", "HARMLESS", "CLAUDE_CODE_MESSAGING_TOKEN",
                 "LD_PRELOAD", "NODE_OPTIONS"):
        assert name not in env
    assert env["CI"] == "true" and env["LC_ALL"] == "C.UTF-8" and env["AMBIT"] == "1"
    assert env["NO_COLOR"] == "1" and env["HOME"] == str(s.process and env["HOME"])


def test_user_can_pass_more(boxes, serve):
    s = serve(boxes("user"), "--env", "HARMLESS", env={"HARMLESS": "yes"})
    assert out(sh(s, "echo $HARMLESS")) == "yes\n"


def test_caches_are_private_and_stay(boxes, serve):
    box = boxes("user")
    s = serve(box)
    r = sh(s, "echo one > $npm_config_cache.x; echo $XDG_CACHE_HOME")
    cache = out(r).strip()
    assert cache.startswith(f"{box.home}/.cache/ambit/mcp/ws-"), text(r)
    assert os.stat(cache).st_mode & 0o777 == 0o700
    s = serve(box)
    assert out(sh(s, "cat $npm_config_cache.x")) == "one\n"
    box.mkdir("other")
    s = serve(box, cwd=box.home / "other")  # another project: another cache
    assert sh(s, "cat $npm_config_cache.x")["isError"]
    assert sh(s, f"cat {cache}/npm.x; echo x > {cache}/y")["isError"]
    assert not os.path.exists(f"{cache}/y")


def test_npm_and_pip_find_their_caches(plain_server):
    if not shutil.which("npm"):
        skip_impossible("npm is not installed")
    r = sh(plain_server, "npm cache verify", timeout=60000)
    assert not r["isError"], text(r)


def test_go_and_pip_use_them_too(boxes, serve):
    box = boxes("user")
    s = serve(box)
    cache = out(sh(s, "echo $XDG_CACHE_HOME")).strip()
    if shutil.which("go", path=box.env["PATH"]):
        r = s.tool("execute", language="go", code='fmt.Println("hi")', timeout=120000)
        assert out(r) == "hi\n", text(r)
        assert os.listdir(f"{cache}/go-build")
    r = sh(s, "python3 -m pip cache dir 2>/dev/null || echo $XDG_CACHE_HOME/pip")
    assert out(r).strip() == f"{cache}/pip", text(r)


# --- domains -----------------------------------------------------------------------------------

DEFAULTS = "github.com, api.github.com, registry.npmjs.org, pypi.org, files.pythonhosted.org only"


def test_default_domains(boxes, serve):
    assert DEFAULTS in instructions(boxes("user"), serve)


@pytest.mark.parametrize("name", ["AMBIT_ALLOWED_DOMAINS", "CONTEXT_MODE_ALLOWED_DOMAINS"])
def test_domains_of_the_environment(boxes, serve, name):
    words = instructions(boxes("user"), serve, env={name: "a.example,b.example"})
    assert "a.example, b.example only" in words and "github" not in words


def test_domains_of_claude_settings(boxes, serve):
    box = boxes("user")
    box.write(".claude/settings.json", json.dumps(
        {"sandbox": {"network": {"allowedDomains": ["c.example"]}}}))
    words = instructions(box, serve)
    assert "c.example only" in words and "github" not in words
    box.write("ws/.claude/settings.json", json.dumps(  # a project may only narrow
        {"sandbox": {"network": {"allowedDomains": ["evil.example"]}}}))
    assert "evil" not in instructions(box, serve)


HINT = "[the user can allow it by adding to the server's options: ambit mcp serve "


def hint(words):
    line, = [line for line in words.splitlines() if line.startswith(HINT)]
    return line[len(HINT):-1]


def test_one_hint_for_a_call_and_it_only_adds(boxes, serve):
    """Followed as printed, everything of it is allowed, and what was allowed still is."""
    box = boxes("user")
    box.mkdir("a"), box.mkdir("b")
    code = (f"echo x > {box.home}/a/f; echo x > {box.home}/b/f; echo x > {box.home}/b/g; "
            "curl -sS -m 5 http://a.example; curl -sS -m 5 http://b.example:8080")
    s = serve(box)
    options = hint(text(sh(s, code)))
    assert options == (f"--allow-write {box.home}/a --allow-write {box.home}/b "
                       "--allow-domain a.example:80 --allow-domain b.example:8080")
    r = s.tool("batch_execute", commands=code.split("; "))
    assert hint(text(r)) == options and hint("\n".join(r["structuredContent"]["messages"])) == options
    assert "a.example:80, b.example:8080" in instructions(box, serve, options=options.split())
    assert DEFAULTS[:-5] in instructions(box, serve, options=options.split())
    r = sh(serve(box, *options.split()), code)
    assert "[SANDBOX BLOCKED]" not in text(r) and "the user can" not in text(r), text(r)


def test_hint_where_there_is_no_network(boxes, serve):
    s = serve(boxes("user"), "--network", "none")
    r = sh(s, "exec 3<> /dev/tcp/192.0.2.1/80; exec 3<> /dev/tcp/192.0.2.2/80")
    assert hint(text(r)) == ("--network allowlist --allow-domain 192.0.2.1:80 "
                             "--allow-domain 192.0.2.2:80")


def test_own_domains_only(boxes, serve):
    words = instructions(boxes("user"), serve,
                         options=["--network", "allowlist", "--allow-domain", "o.example"])
    assert "o.example only" in words and "github" not in words


def test_domains_of_the_settings_and_options(boxes, serve):
    box = boxes("user")
    box.write(".config/ambit/settings.json", '{"network": {"allowedDomains": ["s.example"]}}')
    assert "s.example only" in instructions(box, serve)
    words = instructions(box, serve, options=["--allow-domain", "o.example"])
    assert "s.example, o.example only" in words
    box.write(".config/ambit/settings.json", '{"network": {"mode": "none"}}')
    assert "no network" in instructions(box, serve)


def test_denials_of_claude_settings_hold(boxes, serve):
    box = boxes("user")
    box.write("ws/private/notes.txt", "HIDDEN")
    box.write(".claude/settings.json", json.dumps(
        {"permissions": {"deny": [f"Read(/{box.ws}/private/**)"]}}))
    s = serve(box)
    assert "HIDDEN" not in json.dumps(sh(s, "cat private/notes.txt"))


# --- no sandbox -----------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["AMBIT_NO_SANDBOX", "CONTEXT_MODE_NO_SANDBOX"])
def test_no_sandbox_is_said_everywhere(boxes, serve, name):
    box = boxes("user")
    s = serve(box, initialize=False, env={name: "1"})
    assert "WITHOUT a sandbox" in s.initialize()["instructions"]
    job = sh(s, "sleep 30", background=True)["structuredContent"]["jobId"]
    for r in (sh(s, "echo hi"), sh(s, "exit 3"), s.tool("execute"),
              s.tool("batch_execute", commands=["true"]), s.tool("job_output", jobId=job),
              s.tool("job_output"), s.tool("job_kill", jobId=job)):
        assert text(r).startswith(f"[NO SANDBOX] {name}"), text(r)
    r = sh(s, "echo hi; echo x > ../outside; echo $AMBIT.")
    assert out(r) == "hi\n.\n" and (box.home / "outside").exists()
    assert r["structuredContent"]["sandboxed"] is False
    assert s.ask("tools/list")["tools"][0]["annotations"]["openWorldHint"] is True
    s.close()
    assert b"NO SANDBOX" in s.stderr


def test_without_sandbox_still_hygiene(boxes, serve):
    box = boxes("user")
    tmp = box.mkdir("tmp")
    s = serve(box, env={"AMBIT_NO_SANDBOX": "1", "SECRET_TOKEN": "hush", "TMPDIR": str(tmp)})
    assert "hush" not in out(sh(s, "env"))
    r = sh(s, "echo begun; sleep 30 & sleep 30", timeout=2000)
    assert r["structuredContent"]["timedOut"] and out(r) == "begun\n"
    r = sh(s, "cd $(mktemp -d) && mkdir -p a/b && touch a/b/c && ln -s ~ home && chmod 0 a && pwd; ls ~/tmp | wc -l")
    assert out(r).startswith(f"{tmp}/ambit-mcp.") and out(r).endswith("\n1\n"), r  # its own, of this call
    s.tool("execute", language="python", code="import os, sys; sys.exit(not os.path.exists(__file__))")
    assert wait_until(lambda: not [*tmp.iterdir()], 5) and box.ws.exists()


def test_no_switch_from_inside_or_against_the_administrator(boxes):
    box = boxes("user")
    r = box.run(AMBIT, "mcp", "serve", options=["--env", "AMBIT_NO_SANDBOX=1"])
    assert r.code == 125 and "inside a sandbox" in r.err


def without_user_namespaces(box, *options, program=AMBIT, env=None):
    if not shutil.which("bwrap"):
        skip_impossible("bwrap is not installed")
    argv = ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--disable-userns"]
    if box.who.popen([*argv, "true"]).wait():
        skip_impossible("bwrap cannot make a namespace here")
    return Server([*argv, program, "mcp", "serve", *options], popen=box.who.popen, cwd=box.ws,
                  env=box._env(env))


def test_no_sandbox_possible_refuses(boxes):
    box = boxes("user")
    with without_user_namespaces(box) as s:
        s.initialize()
        r = sh(s, "echo ran; touch ran")
        assert r["isError"] and text(r).startswith("[not run: ") and "ran\n" not in out(r)
        assert not (box.ws / "ran").exists() and r["structuredContent"]["exitCode"] == 125


def test_fallback_warn_says_what_is_lost(boxes):
    """Landlock is left: a sandbox, and every answer says what it does not hold."""
    box = boxes("user")
    with without_user_namespaces(box, "--fallback", "warn") as s:
        s.initialize()
        r = sh(s, "echo ran; echo x > ../planted")
        assert "[SANDBOX] not enforced: processes" in text(r) and out(r) == "ran\n"
        assert r["structuredContent"]["sandboxed"] is True and not (box.home / "planted").exists()


def test_fallback_warn_without_any_sandbox(boxes):
    """Neither namespaces nor Landlock."""
    box, old_kernel = boxes("user"), AMBIT.parents[2] / "tests/broker/old-kernel"
    assert old_kernel.exists(), f"{old_kernel} is not there: tools/build --tests"
    with without_user_namespaces(box, "--fallback", "warn", program=old_kernel,
                                 env={"AMBIT_TEST_ABI": "0"}) as s:
        s.initialize()
        r = sh(s, "echo ran")
        assert text(r).startswith("[NO SANDBOX] no sandbox is possible here") and out(r) == "ran\n"
        assert r["structuredContent"]["sandboxed"] is False
        assert b"NO SANDBOX" in s.stderr


def test_fallback_warn_is_not_for_what_a_command_left(boxes, serve):
    """A link that it planted makes the sandbox impossible: that is refused, not run without one."""
    box = boxes("user")
    box.mkdir("ws/dist")
    box.sh("rmdir dist").ok()
    box.sh("ln -s /etc dist").ok()
    s = serve(box, "--fallback", "warn", "--allow-write", "./dist")
    r = sh(s, f"touch {box.home}/escaped")
    assert r["isError"] and "NO SANDBOX" not in text(r), text(r)
    assert not (box.home / "escaped").exists()
    box.host("touch", box.home / "escaped").ok()
    assert (box.home / "escaped").exists()  # control


def test_fallback_warn_with_a_sandbox_is_one(boxes, serve):
    box = boxes("user")
    s = serve(box, "--fallback", "warn")
    r = sh(s, "echo x > ../planted")
    assert r["isError"] and r["structuredContent"]["sandboxed"] and not (box.home / "planted").exists()


# --- the log ----------------------------------------------------------------------------------------

def log_lines(box):
    path = box.state / "ambit/audit.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_call_is_in_the_log(server):
    sh(server, "echo hi; export API_KEY=sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
    sh(server, "echo x > /etc/hosts")
    server.tool("execute", language="cobol", code="x")
    server.tool("job_output")
    lines = log_lines(server.box)
    calls = [x for x in lines if x["event"] == "mcp-call"]
    assert [c["toolName"] for c in calls] == ["execute", "execute", "execute", "job_output"]
    first = calls[0]
    assert first["serverName"] == "ambit" and first["sandboxed"] is True
    assert first["requestId"] and first["durationMs"] >= 0 and first["timestamp"]
    assert first["arguments"]["language"] == "shell" and "sk-ant-api03" not in json.dumps(first)
    assert first["result"]["status"] == "success"
    assert calls[1]["policyDecision"]["status"] == "deny"
    assert len([x for x in lines if x["event"] == "mcp-start"]) == 2


def test_no_log_no_run(boxes, serve):
    box = boxes("user")
    s = serve(box)
    sh(s, "echo hi")
    log = box.state / "ambit"
    shutil.rmtree(log)
    log.write_text("")  # no directory any more
    os.chown(log, box.who.uid, box.who.gid)
    r = sh(s, "touch ran")
    assert r["isError"] and "audit log" in text(r) and not (box.ws / "ran").exists()


def test_server_without_a_log_does_not_start(boxes):
    box = boxes("user")
    (box.state / "ambit").write_text("a file")
    r = box.ambit("mcp", "serve")
    assert r.code == 125 and str(box.state) in r.err


@pytest.mark.parametrize("args, said", [
    ((), "which one?"), (("gateway",), "unknown: mcp gateway;"), (("a\nb",), "unknown: mcp a\\x0ab;"),
    (("serve", "extra"), "unexpected 'extra' after")])
def test_usage(boxes, args, said):
    r = boxes("user").ambit("mcp", *args)
    assert r.code == 125 and said in r.err and "ambit mcp serve" in r.err


@pytest.mark.parametrize("option", ["--report=f", "--log=f", "--events-fd=3", "--env-fd=3", "--ask",
                                    "--control-fd=3"])
def test_options_of_one_run_are_refused(boxes, option):
    """A server would not know what to do with them; --ask even took the default domains away."""
    box = boxes("user")
    name = option.split("=")[0]
    r = box.ambit("mcp", "serve", option)
    assert r.code == 125 and f"ambit mcp takes no {name} " in r.err
    assert not re.search(rf"^ +{name}\b(?!-)", box.ambit("help", "mcp").out, re.M)
    assert name in box.ambit("help", "run").out


def test_unknown_tool_is_a_protocol_error(plain_server):
    with pytest.raises(RpcError) as e:
        plain_server.tool("rm_rf")
    assert e.value.code == -32602
