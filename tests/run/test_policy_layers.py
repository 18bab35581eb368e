# SPDX-License-Identifier: Apache-2.0
"""Where settings come from and which of them win: CONTRACT section 5."""
import ctypes
import json
import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from ambit_test import AMBIT, Result

USER_FILE = ".config/ambit/settings.json"


def settings(**groups):
    return json.dumps(groups)


def sets(value):
    return settings(environment={"set": {"LAYER": value}})


def layer(box, **kw):
    return box.run("printenv", "LAYER", **kw).out.strip()


def can_write(box, path, **kw):
    return box.sh(f': >>"{path}"', **kw).code == 0


def can_read(box, path, **kw):
    return box.sh(f'cat "{path}" >/dev/null', **kw).code == 0


# --- files of the user ------------------------------------------------------------------

def test_user_settings(box):
    box.mkdir("out")
    assert not can_write(box, "../out/x")
    box.write(USER_FILE, settings(filesystem={"allowWrite": ["~/out"]}))
    assert can_write(box, "../out/x")
    r = box.ambit("explain", "--json", "write", "~/out/y")
    assert json.loads(r.out)["source"] == f"{box.home}/{USER_FILE}:1", str(r)


def test_user_settings_in_yaml_and_elsewhere(plain):
    plain.write(".config/ambit/settings.yaml", "environment: {set: {LAYER: yaml}}\n")
    assert layer(plain) == "yaml"
    plain.write("conf/ambit/settings.json", sets("xdg"))
    assert layer(plain, env={"XDG_CONFIG_HOME": f"{plain.home}/conf"}) == "xdg"
    assert layer(plain, env={"XDG_CONFIG_HOME": "conf"}) == "yaml", "a relative one does not count"


def test_broken_user_settings_stop_everything(plain):
    plain.write(USER_FILE, "{")
    r = plain.run("touch", "canary")
    assert r.code == 125 and USER_FILE in r.err and not (plain.ws / "canary").exists(), str(r)
    plain.write(USER_FILE, "{}", mode=0)
    r = plain.run("touch", "canary")
    assert r.code == 125 and USER_FILE in r.err and not (plain.ws / "canary").exists(), str(r)


def test_settings_directory_cannot_be_looked_at(plain):
    """Not to be seen is not the same as not there."""
    plain.write(USER_FILE, settings(filesystem={"denyRead": ["~/ws/secret"]}))
    (plain.home / ".config/ambit").chmod(0)
    r = plain.run("touch", "canary")
    (plain.home / ".config/ambit").chmod(0o755)
    assert r.code == 125 and not (plain.ws / "canary").exists(), str(r)


# --- the project's file -------------------------------------------------------------------

WIDE = settings(filesystem={"allowWrite": ["../out"], "denyRead": ["hidden"], "tmp": "shared"},
                network={"mode": "host"}, environment={"set": {"LAYER": "project"}})


def project(box, text=WIDE, where="ws/.ambit.json"):
    box.mkdir("out")
    box.write("ws/hidden/x", "x")
    return box.write(where, text)


def test_project_only_narrows(box):
    project(box)
    r = box.sh("cat hidden/x 2>/dev/null; touch ../out/x 2>/dev/null; echo \"[$LAYER]\"; "
               "cat /sys/class/net/*/address | wc -l")
    assert r.out.startswith("[]\n") and not (box.home / "out/x").exists(), str(r)
    notes = [line for line in r.err.splitlines() if "ambit trust" in line]
    assert len(notes) == 4, r.err
    for key in ("filesystem.allowWrite", "network.mode", "environment.set", "filesystem.tmp"):
        assert any(key in n and ".ambit.json:1" in n for n in notes), r.err


def test_project_names_no_protected_place(box):
    """What counts in the user's own settings does not in those of a project, until it is trusted."""
    box.write("ws/a/.vscode/x", "x")
    box.write("ws/.vscode/x", "x")
    project(box, settings(filesystem={"allowWrite": ["a/.vscode", ".vscode", ".vscode/x"]}))
    r = box.sh("echo y >a/.vscode/x; echo y >.vscode/x; cat a/.vscode/x .vscode/x")
    assert r.out == "xx" and r.err.count("ambit trust") == 3, str(r)
    assert box.ambit("explain", "write", "a/.vscode/x").code == 1
    box.ambit("trust").ok()
    assert can_write(box, "a/.vscode/x") and can_write(box, ".vscode/x")


def test_project_does_not_shorten_the_session_log(plain):
    project(plain, settings(log={"maxSize": 100, "maxFiles": 0, "format": "jsonl"}))
    log = plain.home / "session.log"
    script = "for i in 1 2 3 4 5 6 7 8 9; do echo line $i; done"
    r = plain.sh(script, options=["--log", str(log)]).ok()
    assert r.err.count("would widen the policy (accept with: ambit trust") == 3, r.err
    text = log.read_text()
    assert "line 1\n" in text and "line 9\n" in text and not text.startswith("{"), text
    plain.ambit("trust").ok()
    plain.sh(script, options=["--log", str(log)]).ok()
    assert "line 1\n" not in log.read_text(), "trusted, it is the project's to say"


def test_project_narrowing_prints_nothing(plain):
    project(plain, settings(filesystem={"denyRead": ["hidden"], "denyWrite": ["hidden"]},
                            limits={"timeout": "60s"}))
    r = plain.sh("cat hidden/x 2>/dev/null; echo $?").ok()
    assert r.out != "0\n" and r.err == "", str(r)


def test_quiet_leaves_notes_out(plain):
    project(plain)
    assert plain.run("true", options=["-q"]).ok().err == ""


def test_project_may_repeat_what_is_allowed(plain):
    project(plain, settings(filesystem={"allowWrite": [".", "sub"]}))
    plain.mkdir("ws/sub")
    assert plain.run("true").ok().err == ""


def test_trust(box):
    file = project(box)
    assert not can_write(box, "../out/a")
    shown = box.ambit("trust").ok()
    assert shown.out.splitlines()[-1] == f"{file}: this counts from now on, until the file changes"
    assert can_write(box, "../out/b") and layer(box) == "project"
    assert not can_read(box, "hidden/x"), "what narrows still holds"
    assert box.run("true").ok().err == ""
    # any change takes it away, also one that leaves size and time alone
    times = file.stat()
    file.write_text(WIDE.replace("../out", "../ou2"))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    box.mkdir("ou2")
    assert not can_write(box, "../ou2/c") and layer(box) == ""
    file.write_text(WIDE)
    assert can_write(box, "../out/d"), "the very text that was trusted"


def test_trust_shows_what_it_lets_in(plain):
    """Each value, of the profiles that are named too; what narrows is not in the list."""
    plain.write("ws/more.yaml", "network: {allowedDomains: [more.example]}")
    file = project(plain, """
        filesystem: {allowWrite: [../out, ~/other], denyRead: [hidden]}
        network:
          allowedDomains: [a.example, b.example]
        environment: {set: {WHERE: "he\\are"}}
        fallback: warn
        profiles: [more.yaml]""", "ws/.ambit.yaml")
    shown = plain.ambit("trust").ok()
    assert shown.err == "" and shown.out == "".join(line + "\n" for line in (
        f"{plain.ws}/more.yaml:1: network.allowedDomains: more.example",
        f"{file}:2: filesystem.allowWrite: ../out",
        f"{file}:2: filesystem.allowWrite: ~/other",
        f"{file}:4: network.allowedDomains: a.example",
        f"{file}:4: network.allowedDomains: b.example",
        f"{file}:5: environment.set: WHERE=he\\x07re",
        f"{file}:6: fallback: warn",
        f"{file}: this counts from now on, until the file changes"))
    again = plain.ambit("trust").ok()
    assert again.out.splitlines()[:-1] == shown.out.splitlines()[:-1]
    assert again.out.splitlines()[-1] == f"{file}: trusted already, until it changes"
    plain.write("ws/more.yaml", "network: {allowedDomains: [other.example]}")
    assert "this counts from now on" in plain.ambit("trust").ok().out
    file.write_text("{}")
    assert plain.ambit("trust").ok().out == f"{file}: trusted until it changes; now it widens nothing\n"
    assert plain.ambit("trust").ok().out == f"{file}: trusted already, until it changes; now it widens nothing\n"


def test_trust_store_is_private(box):
    project(box)
    box.ambit("trust").ok()
    store = box.state / "ambit/trust"
    assert store.stat().st_mode & 0o777 == 0o600 and store.parent.stat().st_mode & 0o777 == 0o700


def test_trust_of_a_directory(plain):
    project(plain)
    plain.ambit("trust", "../ws", cwd=plain.ws).ok()
    assert can_write(plain, "../out/x")
    r = plain.ambit("trust", "/no/such")
    assert r.code == 125 and "trust /no/such: No such file" in r.err and "--chdir" not in r.err
    assert plain.ambit("trust", "a", "b").code == 125
    assert plain.ambit("trust", cwd=plain.mkdir("empty")).code == 125


def test_trust_belongs_to_the_place(plain):
    """A copy of a trusted file elsewhere is not trusted, nor is the same file through a link."""
    project(plain)
    plain.ambit("trust").ok()
    plain.mkdir("copy/sub")
    plain.write("copy/.ambit.json", WIDE)
    assert not can_write(plain, "../out/x", cwd=plain.home / "copy")
    os.symlink("ws", plain.home / "same")
    assert can_write(plain, "../out/x", cwd=plain.home / "same")


def test_trust_covers_the_files_that_are_named(box):
    """A profile file that a trusted project names could otherwise be changed from inside."""
    box.mkdir("out")
    box.write("ws/conf/p.yaml", "{}")
    project(box, json.dumps({"profiles": ["conf/p.yaml"]}))
    box.ambit("trust").ok()
    box.sh("echo 'filesystem: {allowWrite: [../out]}' >conf/p.yaml").ok()
    assert not can_write(box, "../out/x")
    assert "ambit trust" in box.run("true").ok().err
    shown = box.ambit("trust").ok()
    assert "conf/p.yaml" in shown.out and "filesystem.allowWrite" in shown.out
    assert can_write(box, "../out/x"), "the control: trusted as it is now"


def test_settings_are_read_once(plain):
    """Whoever can change the file while it is read must not have one text judged and another used."""
    file = project(plain)
    plain.ambit("trust").ok()
    libc = ctypes.CDLL(None)
    opened, in_open = libc.inotify_init1(os.O_NONBLOCK), 0x20
    assert opened >= 0 and libc.inotify_add_watch(opened, os.fsencode(file), in_open) >= 0
    try:
        assert can_write(plain, "../out/x"), "it is trusted"
        assert len(os.read(opened, 4096)) == 16, "one event"
    finally:
        os.close(opened)


def test_trust_cannot_be_given_from_inside(box):
    project(box)
    r = box.run(str(AMBIT), "trust", ".")
    assert r.code != 0 and not can_write(box, "../out/x"), str(r)


def test_project_file_cannot_be_changed_from_inside(box):
    project(box, settings(filesystem={"denyRead": ["hidden"]}))
    r = box.sh("echo '{}' >.ambit.json || rm -f .ambit.json || mv .ambit.json gone || true")
    assert "hidden" in (box.ws / ".ambit.json").read_text(), str(r)


def test_project_file_of_a_parent(plain):
    project(plain)
    deep = plain.mkdir("ws/a/b/c")
    r = plain.run("cat", "../../../hidden/x", cwd=deep)
    assert r.code != 0 and "ambit trust" in r.err, str(r)
    # past the top of a git work tree it narrows, and cannot be trusted to do more
    plain.mkdir("ws/a/.git")
    r = plain.run("cat", "../../../hidden/x", cwd=deep)
    assert r.code != 0 and "can only narrow" in r.err and "ambit trust" not in r.err, str(r)


def test_project_file_above_the_home_does_not_count(plain):
    (plain.home / ".ambit.json").write_text("broken {")
    assert plain.run("true").ok().err == ""


def test_broken_project_file_stops_everything(plain):
    project(plain, '{"filesystem": {"denyRaed": ["hidden"]}}')
    r = plain.run("touch", "canary")
    assert r.code == 125 and ".ambit.json:1" in r.err and "denyRead" in r.err, str(r)
    assert not (plain.ws / "canary").exists()


def test_project_cannot_undo_the_users_denies(plain):
    plain.write("private/x", "x")
    plain.write(USER_FILE, settings(filesystem={"denyRead": ["~/private"]}))
    project(plain, settings(filesystem={"allowRead": ["~/private", "../private/x"]}))
    assert not can_read(plain, "../private/x")


SHUT = {"deny": ["--deny-read", "~/notes"], "home": ["--deny-read", "~"], "private": ["--home", "private"]}


@pytest.mark.parametrize("kind", ["ambit", "claude"])
@pytest.mark.parametrize("how", SHUT)
def test_project_cannot_undo_options(plain, kind, how):
    """Its rule was no widening when it was read; what is shut on the command line is shut."""
    plain.write("notes/x", "x")
    rules = {"filesystem": {"denyRead": ["~/notes/y"], "allowRead": ["~/notes/x"]}}
    options = list(SHUT[how])
    if kind == "ambit":
        project(plain, json.dumps(rules))
    else:
        project(plain, json.dumps({"sandbox": rules}), "ws/.claude/settings.json")
        options += ["--set", "claudeSettings=true"]
    assert can_read(plain, "../notes/x", options=options[2:])
    assert not can_read(plain, "../notes/x", options=options)
    r = plain.ambit("explain", *options, "read", "../notes/x")
    assert r.code == 1, str(r)
    options += ["--allow-read", "~/notes/x"]
    assert can_read(plain, "../notes/x", options=options)


def test_project_adds_nothing_to_the_list_of_an_option(plain):
    plain.write(USER_FILE, settings(network={"mode": "host"}))
    project(plain, settings(network={"allowedDomains": ["evil.example"]}))
    options = ["--network", "allowlist", "--allow-domain", "github.com"]
    assert plain.ambit("explain", "connect", "evil.example:443").code == 0
    assert plain.ambit("explain", *options, "connect", "github.com:443").code == 0
    r = plain.ambit("explain", *options, "connect", "evil.example:443")
    assert r.code == 1, str(r)


def test_project_does_not_open_the_hidden_directory_it_lies_in(plain):
    plain.write(".ssh/work/id_test", "key")
    plain.write(".ssh/work/.ambit.json", settings(filesystem={"allowRead": ["."], "allowWrite": ["."]}))
    r = plain.run("cat", "id_test", cwd=plain.home / ".ssh/work")
    assert r.code == 125 and "is hidden by" in r.err, str(r)


def test_project_file_that_leads_out(plain):
    """Messages would show what is in another file, and standard input would be waited for."""
    plain.write(".config/gh/hosts.yml", "github.com:\n  oauth_token: gho_secret\n")
    for name, options in ((".ambit.yaml", []), (".claude/settings.json", ["--set", "claudeSettings=true"])):
        link = plain.mkdir("ws/.claude").parent / name
        for target in (plain.home / ".config/gh/hosts.yml", "/dev/stdin", "/dev/zero"):
            link.symlink_to(target)
            r = plain.run("touch", "canary", options=options)
            assert r.code == 125 and f"{link}: " in r.err and "github.com" not in r.err, str(r)
            assert "leads out of the project" in r.err or "not a regular file" in r.err, str(r)
            link.unlink()
        plain.write("ws/conf/real", "{}")
        link.symlink_to(plain.ws / "conf/real")
        plain.run("true", options=options).ok()
        link.unlink()
    assert not (plain.ws / "canary").exists()


# --- -s, variables, options -----------------------------------------------------------------

def test_settings_file_replaces_user_and_project(plain):
    project(plain)
    plain.write(USER_FILE, sets("user"))
    plain.write("mine.json", "{}")
    assert layer(plain) == "user"
    assert layer(plain, options=["-s", "../mine.json"]) == ""
    assert can_read(plain, "hidden/x", options=["-s", "../mine.json"])
    plain.write("mine.json", sets("file"))
    assert layer(plain, options=["-s", "../mine.json"]) == "file"
    assert layer(plain, env={"AMBIT_SETTINGS": f"{plain.home}/mine.json"}) == "file"


def test_option_wins_over_the_variable(plain):
    plain.write("a.json", sets("a"))
    plain.write("b.json", sets("b"))
    assert layer(plain, options=["-s", "../a.json"], env={"AMBIT_SETTINGS": "../b.json"}) == "a"


def test_precedence(plain):
    plain.write(USER_FILE, sets("user"))
    project(plain, sets("project"))
    assert layer(plain) == "user"
    plain.ambit("trust").ok()
    assert layer(plain) == "project"
    assert layer(plain, options=["--env", "LAYER=option"]) == "option"
    assert layer(plain, options=["--env", "LAYER=option", "--set", "environment.set=LAYER=last"]) == "last"


def test_variables(plain):
    origin = {"AMBIT_FALLBACK": ("fallback", "warn"), "AMBIT_BACKEND": ("backend", "native")}
    for name, (key, value) in origin.items():
        p = json.loads(plain.ambit("policy", "--json", env={name: value}).ok().out)
        assert p[key] == value and name in json.dumps(p["origins"])
    p = json.loads(plain.ambit("policy", "--json", env={"AMBIT_ALLOWED_DOMAINS": "a.org, b.org"}).ok().out)
    assert p["network"]["allowedDomains"] == ["a.org", "b.org"]
    assert p["network"]["mode"] == "allowlist"
    r = plain.ambit("policy", env={"AMBIT_FALLBACK": "maybe"})
    assert r.code == 125 and "AMBIT_FALLBACK" in r.err, str(r)


def test_lists_merge_and_deny_beats_allow(plain):
    for name in ("a", "b"):
        plain.mkdir(f"out/{name}")
    plain.write(USER_FILE, settings(filesystem={"allowWrite": ["~/out/a"]}))
    options = ["--allow-write", "../out/b"]
    assert can_write(plain, "../out/a/x", options=options)
    assert can_write(plain, "../out/b/x", options=options)
    assert can_write(plain, "x", options=options), "the default is merged too"
    assert not can_write(plain, "../out/a/x", options=["--deny-write", "~/out"])


def test_profile_file(plain):
    plain.mkdir("cache")
    plain.write("mine.json", settings(filesystem={"allowWrite": ["~/cache", "~/not-there"]}))
    assert can_write(plain, "../cache/x", options=["-p", "../mine.json"])
    assert not (plain.home / "not-there").exists(), "what a profile names may be missing"


def test_profile_of_the_user(plain):
    plain.write(".config/ambit/profiles/mine.json", sets("profile"))
    assert layer(plain, options=["-p", "mine"]) == "profile"


@pytest.mark.parametrize("name", ["root", "user"])
@pytest.mark.parametrize("made", ["git", "settings", "both"])
@pytest.mark.parametrize("how", ["rule", "profile"])
def test_settings_of_the_project_cannot_be_left_behind(boxes, name, made, how):
    """A command makes a directory that looks like a project of its own: a later run from there is
    still under what the project's settings take away."""
    box = boxes(name)
    box.write("ws/vault/x", "TOKEN-vault")
    box.mkdir("ws/.git")
    narrow = {"filesystem": {"denyRead": ["vault"]}}
    box.write("ws/.ambit.json", json.dumps({"profiles": ["./more.json"]} if how == "profile" else narrow))
    box.write("ws/more.json", settings(filesystem={"denyRead": [str(box.ws / "vault")]}))
    assert "TOKEN" not in box.run("cat", "vault/x").out
    box.sh({"git": "mkdir -p sub/.git", "settings": "mkdir sub; echo {} > sub/.ambit.json",
            "both": "mkdir -p sub/.git; echo {} > sub/.ambit.json"}[made])
    assert (box.ws / "sub").is_dir()
    r = box.run("cat", "../vault/x", cwd=box.ws / "sub")
    assert r.code == 1 and "TOKEN" not in r.out, str(r)
    # and no more than that: what another project was trusted with is not for this one
    box.write("ws/.ambit.json", settings(filesystem={"denyRead": ["vault"], "allowWrite": ["."]}))
    box.execute([AMBIT, "trust", str(box.ws)]).ok()
    assert box.run("touch", "canary", cwd=box.ws).code == 0
    r = box.run("sh", "-c", "cat ../vault/x; touch ../other", cwd=box.ws / "sub")
    assert "TOKEN" not in r.out and not (box.ws / "other").exists() and r.code, str(r)
    assert "can only narrow" in r.err, str(r)


def test_settings_in_a_place_that_is_everybodys(rooted):
    """Nobody else decides about runs in a directory of mine below one like /tmp."""
    shared = rooted.mkdir("shared")
    mine = rooted.mkdir("shared/mine")
    rooted.mkdir("shared/.git")
    rooted.write("shared/.ambit.json", "this is no JSON")
    assert rooted.run("true", cwd=mine).code == 125, "the control run failed"
    shared.chmod(0o1777)
    rooted.run("true", cwd=mine).ok()


# --- managed settings ---------------------------------------------------------------------------

@pytest.fixture
def managed(rooted):
    """managed(box, settings, *args) -> ambit ARGS where /etc/ambit/settings.json says that.
    A mount namespace of its own has it, so nobody else on this machine sees it."""
    made = not os.path.isdir("/etc/ambit")
    os.makedirs("/etc/ambit", exist_ok=True)

    def run(box, text, *args, env=None, also="true"):
        file = box.home / "managed.json"
        file.write_text(text)
        script = ('mount -t tmpfs -o mode=755 ambit-test /etc/ambit && cp "$1" /etc/ambit/settings.json'
                  f' && chmod 644 /etc/ambit/settings.json && shift && {also} && exec "$@"')
        person = ["setpriv", f"--reuid={box.who.uid}", f"--regid={box.who.gid}", "--clear-groups", "--"]
        argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", str(file),
                *person, str(AMBIT), *args]
        p = subprocess.run(argv, cwd=box.ws, env={**box.env, **(env or {})}, capture_output=True,
                           text=True, timeout=30, stdin=subprocess.DEVNULL)
        return Result(128 - p.returncode if p.returncode < 0 else p.returncode, p.stdout, p.stderr, argv)

    yield run
    if made:
        os.rmdir("/etc/ambit")


@pytest.mark.parametrize("name", ["root", "user"])
def test_managed_deny_holds(managed, boxes, name):
    box = boxes(name)
    box.write("vault/x", "x")
    box.write(USER_FILE, settings(filesystem={"allowRead": ["~/vault"]}))
    text = settings(filesystem={"denyRead": [f"{box.home}/vault"]})
    r = managed(box, text, "run", "--", "cat", "../vault/x")
    assert r.code == 1 and "ambit: " in r.err and "managed" in r.err, str(r)
    # an option is somebody's word of just now: it is refused, not ignored
    r = managed(box, text, "run", "--allow-read", "../vault/x", "--", "touch", "canary")
    assert r.code == 125 and "managed" in r.err and not (box.ws / "canary").exists(), str(r)
    r = managed(box, text, "explain", "--json", "read", "../vault/x")
    assert r.code == 1 and json.loads(r.out)["source"] == "/etc/ambit/settings.json:1", str(r)


@pytest.mark.parametrize("kept", [{"filesystem": {"protectNames": [".vscode"]}},
                                  {"locked": ["filesystem.unprotect"]}], ids=["names", "locked"])
@pytest.mark.parametrize("name", ["root", "user"])
def test_managed_names_hold_where_a_rule_names_them(managed, boxes, name, kept):
    box = boxes(name)
    box.write("ws/a/.vscode/x", "x")
    box.write("ws/.vscode/x", "x")
    box.write(USER_FILE, settings(filesystem={"allowWrite": ["~/ws/a/.vscode", "~/ws/.vscode/x"]}))
    for place in ("a/.vscode/x", ".vscode/x"):
        write = ["run", "--", "sh", "-c", f"echo y > {place}"]
        managed(box, settings(), *write).ok()
        assert managed(box, json.dumps(kept), *write).code, place
        r = managed(box, json.dumps(kept), "explain", "write", place)
        assert r.code == 1 and "denied" in r.out, str(r)
    # nor in directories that the command makes
    assert managed(box, settings(), "explain", "write", "new/.vscode/x").code == 0
    r = managed(box, json.dumps(kept), "explain", "write", "new/.vscode/x")
    assert r.code == 1 and "denied" in r.out, str(r)


OPENINGS = {"bulk": {"bulk": ["out"]}, "anchors": {"protect": "anchors"}}


@pytest.mark.parametrize("kept", [{"filesystem": {"protectNames": [".house"]}},
                                  {"locked": ["filesystem.unprotect"]}], ids=["names", "locked"])
@pytest.mark.parametrize("how", OPENINGS)
@pytest.mark.parametrize("name", ["root", "user"])
def test_managed_names_hold_where_others_are_not_guarded(managed, boxes, name, how, kept):
    """Nobody else can name places in which what the managed settings protect is not guarded."""
    box = boxes(name)
    box.mkdir("ws/out/sub")
    canary = ".envrc" if "locked" in kept else ".house"
    write = ["run", "--", "sh", "-c", f"echo x > out/sub/{canary}"]
    box.write(USER_FILE, settings(filesystem=OPENINGS[how]))
    assert managed(box, settings(), *write).ok() and (box.ws / "out/sub" / canary).exists(), "control"
    (box.ws / "out/sub" / canary).unlink()
    r = managed(box, json.dumps(kept), *write)
    assert not (box.ws / "out/sub" / canary).exists(), str(r)
    assert "managed" in r.err and f"filesystem.{'protect' if how == 'anchors' else how} is" in r.err, str(r)
    box.write(USER_FILE, settings())
    key, value = next(iter(OPENINGS[how].items()))
    option = f"filesystem.{key}={value if isinstance(value, str) else value[0]}"
    r = managed(box, json.dumps(kept), "run", "--set", option, *write[1:])
    assert r.code == 125 and "managed" in r.err, str(r)
    # its own word counts
    mine = {"filesystem": {**kept.get("filesystem", {}), **OPENINGS[how]},
            **({"locked": kept["locked"]} if "locked" in kept else {})}
    managed(box, json.dumps(mine), *write).ok()
    assert (box.ws / "out/sub" / canary).exists()


@pytest.mark.parametrize("denied", ["~/vault", "~/vault/*"])
def test_managed_home_is_the_account(managed, boxes, denied):
    """Another HOME moves nothing that the managed settings hide, and is hidden itself."""
    box = boxes("user")
    account = Path(pwd.getpwuid(box.who.uid).pw_dir)
    names = [box.home / "vault/x", account / "vault/x"]
    for path in names:
        path.parent.mkdir(exist_ok=True)
        path.write_text("TOKEN-home")
        path.chmod(0o644)
    try:
        cat = ["run", "--", "cat", *map(str, names)]
        assert managed(box, settings(), *cat).out.count("TOKEN") == 2, "the control run failed"
        text = settings(filesystem={"denyRead": [denied]})
        for home in (box.home, "/", account):
            r = managed(box, text, "run", "--", "cat", str(names[1]), env={"HOME": str(home)})
            assert "TOKEN" not in r.out, str(r)
        assert "TOKEN" not in managed(box, text, *cat).out
    finally:
        shutil.rmtree(account / "vault")


@pytest.mark.parametrize("allowed", ["alias/vault", "alias/vault/x"])
@pytest.mark.parametrize("name", ["root", "user"])
def test_managed_deny_holds_at_a_second_mount(managed, boxes, name, allowed):
    """What it hides cannot be opened by the path that another mount gives it."""
    box = boxes(name)
    box.write("home/vault/x", "TOKEN")
    box.write("alias/empty", "")
    mount = f"mount --bind {box.home}/home {box.home}/alias"
    argv = ["run", "--allow-read", f"../{allowed}", "--", "cat", "../alias/vault/x"]
    r = managed(box, settings(), *argv, also=mount)
    assert r.out == "TOKEN", f"the control run failed: {r}"
    text = settings(filesystem={"denyRead": [f"{box.home}/home/vault"]})
    r = managed(box, text, *argv, also=mount)
    assert r.code and "TOKEN" not in r.out, str(r)


@pytest.mark.parametrize("name", ["root", "user"])
def test_explain_knows_second_mounts(managed, boxes, name):
    """What is hidden at the place that another mount gives it, and how to open it, as told."""
    box = boxes(name)
    box.write("home/vault/x", "TOKEN")
    box.write("alias/empty", "")
    mount = f"mount --bind {box.home}/home {box.home}/alias"
    deny, there = ["--deny-read", "../home/vault"], f"{box.home}/alias/vault/x"
    r = managed(box, settings(), "explain", "--json", *deny, "read", there, also=mount)
    answer = json.loads(r.out)
    assert r.code == 1 and answer["reason"] == "what this hides is mounted here, too", str(r)
    assert answer["rule"] == "filesystem.denyRead" and answer["entry"] == "../home/vault", str(r)
    assert answer["hint"] == f"--allow-read {there}", str(r)
    for words in (["explain", *deny, "--allow-read", there, "read", there],
                  ["explain", *deny, "read", f"{box.home}/alias"]):
        r = managed(box, settings(), *words, also=mount)
        assert r.code == 0 and r.out.startswith("allowed"), str(r)
    r = managed(box, settings(), "run", *deny, "--allow-read", there, "--", "cat", there, also=mount)
    assert r.out == "TOKEN", str(r)
    # nobody opens what the managed file hides
    text = settings(filesystem={"denyRead": [f"{box.home}/home/vault"]})
    r = managed(box, text, "explain", "--json", "read", there, also=mount)
    answer = json.loads(r.out)
    assert r.code == 1 and answer["source"] == "/etc/ambit/settings.json:1", str(r)
    assert answer["hint"] is None, str(r)


def test_managed_lock(managed, plain):
    plain.mkdir("out")
    text = settings(locked=["filesystem.allowWrite", "environment.inherit"])
    r = managed(plain, text, "run", "--allow-write", "../out", "--", "touch", "../out/canary")
    assert r.code == 125 and "managed" in r.err, str(r)
    plain.write(USER_FILE, settings(filesystem={"allowWrite": ["~/out"]}, environment={"inherit": "all"}))
    r = managed(plain, text, "run", "--", "sh", "-c", "touch ../out/canary; echo \"[$GH_TOKEN]\"",
                env={"GH_TOKEN": "x"})
    assert "[]" in r.out and not (plain.home / "out/canary").exists(), str(r)
    assert r.err.count("managed") == 2, str(r)


def test_managed_limit_cannot_be_raised(managed, plain):
    text = settings(limits={"timeout": "2s"})
    r = managed(plain, text, "run", "--timeout", "1h", "--", "touch", "canary")
    assert r.code == 125 and not (plain.ws / "canary").exists(), str(r)
    assert managed(plain, text, "run", "--timeout", "100ms", "--", "sleep", "5").code == 124


def test_managed_profile_is_the_managed_files_own(managed, plain):
    """The shipped profile `strict`: what it takes away, nobody gives back."""
    text = settings(profiles=["strict"])
    plain.write("other/x", "x")
    plain.write(USER_FILE, settings(filesystem={"home": "real", "allowRead": ["~/other"]},
                                    network={"mode": "host"}, limits={"timeout": 0}))
    r = managed(plain, text, "run", "--", "sh", "-c", "cat ../other/x; touch mine; tail -n +3 /proc/net/dev")
    assert r.out.split()[0] == "lo:" and r.out.count("\n") == 1 and (plain.ws / "mine").exists(), str(r)
    for key in ("filesystem.home", "filesystem.allowRead", "network.mode", "limits.timeout"):
        assert any(f"{key} is fixed by the managed settings, profile strict:" in line
                   and "(managed)" in line for line in r.err.splitlines()), r.err
    for option in (["--network", "host"], ["--home", "real"], ["--allow-read", "../other"],
                   ["--timeout", "2h"], ["--fallback", "warn"]):
        r = managed(plain, text, "run", *option, "--", "touch", "canary")
        assert r.code == 125 and "profile strict:" in r.err and "(managed)" in r.err, str(r)
    assert not (plain.ws / "canary").exists()
    r = managed(plain, text, "policy", "--json")
    assert json.loads(r.out)["origins"]["network"]["mode"].startswith("profile strict:"), str(r)
    assert json.loads(r.out)["origins"]["network"]["mode"].endswith(" (managed)"), str(r)


def test_managed_profile_opens_no_secret(managed, plain):
    """That `strict` leaves the working directory open is no reason to show a secret that is one."""
    plain.write(".ssh/id", "secret")
    for args in (["--chdir", f"{plain.home}/.ssh"], ["-p", "strict", "--chdir", f"{plain.home}/.ssh"]):
        for text in (settings(profiles=["strict"]), "{}"):
            r = managed(plain, text, "run", *args, "--", "cat", "id")
            assert r.code == 125 and "secret" not in r.out and ".ssh is hidden by" in r.err, str(r)
    vault = plain.write("vault/x", "secret").parent
    text = settings(profiles=["strict"], filesystem={"denyRead": [str(vault)]})
    r = managed(plain, text, "run", "--chdir", str(vault), "--", "cat", "x")
    assert r.code == 125 and "hidden by" in r.err, str(r)


def test_managed_exception_for_the_working_directory(managed, plain):
    text = settings(filesystem={"denyRead": [str(plain.home)], "allowRead": [str(plain.ws)]})
    assert managed(plain, text, "run", "--", "touch", "mine").code == 0
    assert (plain.ws / "mine").exists()


def test_managed_cannot_be_switched_off(managed, plain):
    text = settings(enabled=True)
    for args, env in (([], {"AMBIT_NO_SANDBOX": "1"}), (["--backend", "none"], {}),
                      (["--set", "enabled=false"], {}), (["--backend=none", "-s", "/dev/null"], {})):
        r = managed(plain, text, "run", *args, "--", "touch", "../canary", env=env)
        assert r.code == 125 and not (plain.home / "canary").exists(), str(r)


def test_managed_is_not_replaced(managed, plain):
    plain.write("mine.json", "{}")
    text = sets("managed")
    assert managed(plain, text, "run", "-s", "../mine.json", "printenv", "LAYER").out == "managed\n"
    env = {"AMBIT_SETTINGS": f"{plain.home}/mine.json", "XDG_CONFIG_HOME": "/tmp", "XDG_CONFIG_DIRS": "/tmp"}
    assert managed(plain, text, "run", "printenv", "LAYER", env=env).out == "managed\n"


def test_broken_managed_settings_stop_everything(managed, plain):
    for text in ("{", '{"filesystem": {"denyRaed": []}}', '{"locked": ["nonsense"]}'):
        r = managed(plain, text, "run", "--", "touch", "canary")
        assert r.code == 125 and "/etc/ambit/settings.json" in r.err, str(r)
    assert not (plain.ws / "canary").exists()


def test_locked_belongs_to_the_managed_file(plain):
    plain.write(USER_FILE, settings(locked=["network.mode"]))
    r = plain.run("touch", "canary")
    assert r.code == 125 and "locked" in r.err and not (plain.ws / "canary").exists(), str(r)
