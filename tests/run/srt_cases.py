# SPDX-License-Identifier: Apache-2.0
"""The cases of srt_compare.py: each does something with one of the two, and returns what it saw."""
import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from srt_compare import PEER_VERSION, TIMEOUT, differs, kill_tree, running, same


def can(t, line):
    """Did the line work inside?"""
    return t.sh(line).code == 0


def cans(t, *lines):
    """The same for several, in one run."""
    r = t.sh("\n".join(f"( {line}\n) </dev/null >/dev/null 2>&1; echo $?" for line in lines))
    return [code == "0" for code in r.out.split()]


# --- the command line ------------------------------------------------------------------------

@same
def c_runs_a_string(t):
    r = t.sh("echo hello")
    return r.code, r.out


@same
def c_pipes_and_substitutes(t):
    r = t.sh('printf "b\\na\\n" | sort; echo $(echo sub) $((1+2)) "$HOME" | sed "s,$HOME,HOME,"')
    return r.code, r.out


@same
def c_keeps_quotes(t):
    return t.sh("""echo '{"a": [1, "x y"]}' "it's" """).out


@same
def c_is_bash(t):
    return t.sh('[[ a == a ]] && echo "${BASH_VERSION:+bash}"').out


@same
def words_simple(t):
    return t.srt("echo", "hello").out


@same
def words_keep_their_borders(t):
    return t.srt("printf", "<%s>\\n", "a b", "c  d", "").out


@same
def words_with_metacharacters(t):
    return t.srt("echo", "$HOME", "*", "a;b", "a|b", "`x`", "it's", '"q"', "!x", "=y").out


@same
def words_with_flags_behind_dashes(t):
    return t.srt("--", "printf", "%s-%s\\n", "-d", "--version").out


@same
def options_before_the_command(t):
    f = t.settings("other.json", filesystem={"allowWrite": ["."]})
    r = t.srt("-s", f, "touch", "x")
    return r.code, (t.ws / "x").exists()


@same
def long_settings_option(t):
    f = t.settings("other.json", filesystem={"allowWrite": ["."]})
    return t.srt(f"--settings={f}", "touch", "x").code, t.srt("--settings", f, "touch", "y").code


@same
def builtins_as_words(t):
    return t.srt("type", "cd").code, t.srt("exit", "3").code


@same
def no_command(t):
    r = t.srt()
    return r.code, r.out, r.err.startswith("Error: ")


@same
def only_options(t):
    return t.srt("-d").code


@same
def empty_c(t):
    return t.srt("-c", "").code


@same
def help_is_fine(t):
    r = t.srt("--help")
    return r.code, all(o in r.out for o in ("-d, --debug", "-s, --settings <path>", "-c <command>", "--control-fd <fd>",
                                            "-V, --version", "-h, --help"))


@same
def version_first(t):
    r = t.srt("--version")
    return r.code, r.out.split()[0]


@differs("options end where the command begins, as in every other program that runs one",
         peer=[PEER_VERSION, "srt's options", 127], ours=["git's version", "a", 0])
def options_of_the_command(t):
    t.write("ws/a", "foo\n")
    version = t.srt("git", "--version").out
    first = "git's version" if version.startswith("git version") else version.strip()
    ls = t.srt("ls", "-d", "a")
    return [first, "srt's options" if "[SandboxDebug]" in ls.err else ls.out.strip(),
            t.srt("grep", "-c", "foo", "a").code]


@differs("README of sandbox-runtime: srt \"curl example.com\"; one word with blanks is a command line",
         peer=[127, ""], ours=[0, "hi there\n"])
def one_word_with_blanks(t):
    r = t.srt("echo hi there")
    return [r.code, r.out]


@differs("an option that nobody knows is a mistake, not a command", peer=2, ours=1)
def unknown_option(t):
    return t.srt("--nonsense", "true").code


@differs("-c and words at once: which one is meant?", peer=[0, "one\n"], ours=[1, ""])
def c_and_words(t):
    r = t.srt("-c", "echo one", "echo", "two")
    return [r.code, r.out]


# --- exit codes, streams ------------------------------------------------------------------------

@same
def exit_codes(t):
    return [t.sh(f"exit {n}").code for n in (0, 1, 2, 42, 125, 255)]


@same
def not_found(t):
    return t.srt("no-such-program").code, t.sh("no-such-program").code


@same
def not_executable(t):
    t.write("ws/plain", "x", 0o644)
    return t.srt("./plain").code


@same
def killed_inside(t):
    return [t.sh(f"kill -{s} $$").code for s in ("KILL", "TERM", "ABRT", "USR1")]


@same
def standard_streams(t):
    r = t.sh("cat; echo out; echo err >&2", input="in\n")
    return r.out, r.err


@same
def the_working_directory(t):
    return t.sh("pwd").out.strip() == str(t.ws), t.srt("pwd").out.strip() == str(t.ws)


@same
def quiet_without_debug(t):
    return t.sh("true").err


@same
def debug_lines(t):
    flag, variable, empty = t.srt("-d", "true"), t.srt("true", env={"SRT_DEBUG": "1"}), t.srt("true", env={"SRT_DEBUG": ""})
    return ["[SandboxDebug] " in flag.err, "[SandboxDebug] " in variable.err, empty.err, flag.out]


# --- settings ---------------------------------------------------------------------------------

@same
def settings_missing(t):
    r = t.srt("-s", "absent.json", "true")
    return r.code, r.err.startswith("Error: absent.json does not exist."), "Refusing to run with the built-in defaults" in r.err


@same
def settings_unusable(t):
    t.write("ws/empty.json")
    t.write("ws/blank.json", " \n\t\n")
    t.write("ws/half.json", '{"network": ')
    t.write("ws/list.json", "[]")
    (t.ws / "dir.json").mkdir()
    t.settings("ws/locked.json").chmod(0)
    out = []
    for name in ("empty", "blank", "half", "list", "dir", "locked"):
        r = t.srt("-s", f"{name}.json", "true")
        out.append((name, r.code, r.err.startswith("Error: "), "Refusing to run" in r.err))
    return out


@same
def settings_without_required_keys(t):
    out = []
    for group, key in (("network", "allowedDomains"), ("network", "deniedDomains"), ("filesystem", "denyRead"),
                       ("filesystem", "allowWrite"), ("filesystem", "denyWrite")):
        keys = json.loads(t.settings("s.json").read_text())
        del keys[group][key]
        t.write("s.json", json.dumps(keys))
        r = t.srt("-s", t.home / "s.json", "true")
        out.append((r.code, f"{group}.{key}" in r.err))
    return out


@same
def settings_of_the_wrong_kind(t):
    out = []
    for network, filesystem in (({"allowedDomains": "x"}, {}), ({"allowedDomains": [1]}, {}), ({}, {"allowWrite": [""]}),
                                ({"allowedDomains": ["https://a.example"]}, {}), ({"allowedDomains": ["*"]}, {}),
                                ({"httpProxyPort": "x"}, {}), ({}, {"denyRead": [{"path": "a", "nope": 1}]}),
                                ({"allowedDomains": ["a.example:0"]}, {}), ({"allowedDomains": ["a.example/x"]}, {})):
        t.settings(network=network, filesystem=filesystem)
        out.append(t.sh("true").code)
    return out


@same
def settings_at_home(t):
    before = can(t, "touch a")
    t.settings(filesystem={"allowWrite": ["."]})
    return before, can(t, "touch b")


@same
def broken_settings_at_home(t):
    t.write(".srt-settings.json", "{")
    return t.sh("true").code


@same
def keys_for_other_systems(t):
    t.settings(allowPty=True, allowAppleEvents=True, enableWeakerNetworkIsolation=True, mandatoryDenySearchDepth=4,
               ripgrep={"command": "rg"}, network={"allowMachLookup": ["x.y"]})
    return t.sh("true").code


@differs("a key that nobody knows may be a rule that was misspelt: it is named, not dropped", peer=0, ours=1)
def unknown_keys(t):
    t.settings(filesystem={"denyReed": ["~/secret"]})
    return t.sh("true").code


@differs("what cannot be followed is refused by name: TLS is not opened, secrets are not swapped, "
         "nested user namespaces would undo the rules, `disabled` is allowWrite [\"/\"]",
         peer=[0, 0, 0, 0, 0], ours=[1, 1, 1, 1, 1])
def keys_that_are_refused(t):
    out = []
    for more in ({"network": {"tlsTerminate": {}}}, {"network": {"mitmProxy": {"socketPath": "/x", "domains": ["a.example"]}}},
                 {"credentials": {"envVars": [{"name": "A", "mode": "deny"}]}},
                 {"allowNestedUserNamespaces": True}, {"filesystem": {"disabled": True}}):
        t.settings(**more)
        out.append(t.sh("true").code)
    return out


@differs("patterns that can never match are refused", peer=[0, 0, 0], ours=[1, 1, 1])
def dead_domains(t):
    out = []
    for domain in ("exa mple.com", "a..b", "*.*.com"):
        t.settings(network={"allowedDomains": [domain]})
        out.append(t.sh("true").code)
    return out


# --- files --------------------------------------------------------------------------------------

@same
def nothing_is_writable(t):
    return cans(t, *[f"echo x > {p}" for p in ("f", "~/f", "/etc/f", "/usr/f")]), can(t, "echo x > /dev/null")


@same
def allow_write(t):
    t.settings(filesystem={"allowWrite": ["."]})
    return can(t, "echo x > f; mkdir d; mv f d/g; rm -r d; echo y > h"), t.text("ws/h"), can(t, "echo x > ../f"), t.text("f")


@same
def allow_write_by_home_and_absolute(t):
    for d in ("a", "b", "c"):
        (t.home / d).mkdir()
    t.own(t.home)
    t.settings(filesystem={"allowWrite": ["~/a", str(t.home / "b"), "../c/**"]})
    return cans(t, *[f"echo x > ../{d}/f" for d in "abc"]), [t.text(f"{d}/f") for d in "abc"]


@same
def allow_write_of_one_file(t):
    t.write("ws/only", "old\n")
    t.settings(filesystem={"allowWrite": ["only"]})
    return can(t, "echo new > only"), t.text("ws/only"), can(t, "echo x > other")


@same
def deny_write_wins(t):
    t.write("ws/keep/f", "old")
    t.write("ws/fixed", "old")
    t.settings(filesystem={"allowWrite": [".", "keep"], "denyWrite": ["keep", "fixed"]})
    return cans(t, "echo x > keep/f", "echo x > fixed", "rm fixed", "mv keep gone"), t.text("ws/keep/f"), can(t, "echo x > ok")


@same
def deny_write_of_what_is_absent(t):
    t.settings(filesystem={"allowWrite": ["."], "denyWrite": ["later", "sub/later"]})
    return cans(t, "echo x > later", "mkdir -p sub; echo x > sub/later")


@same
def reads_are_free(t):
    t.write("outside", "text")
    t.write(".ssh/config", "Host x")
    return cans(t, "cat ../outside", "cat ~/.ssh/config", "cat /etc/passwd > /dev/null")


@same
def deny_read_of_a_file(t):
    t.write("secret", "s3cret")
    t.settings(filesystem={"denyRead": ["~/secret"]})
    r = t.sh("cat ~/secret")
    return r.code != 0, r.out


@same
def deny_read_of_a_directory(t):
    t.write("vault/a", "s3cret")
    t.settings(filesystem={"denyRead": ["~/vault"]})
    r = t.sh("cat ~/vault/a; ls -A ~/vault")
    return r.out, can(t, "test -e ~/vault/a")


@same
def allow_read_inside(t):
    t.write("vault/a", "s3cret")
    t.write("vault/open/b", "b")
    t.settings(filesystem={"denyRead": ["~/vault"], "allowRead": ["~/vault/open"]})
    return t.sh("cat ~/vault/open/b").out, can(t, "cat ~/vault/a")


@same
def deeper_deny_stays(t):
    t.write("vault/open/b", "b")
    t.write("vault/open/no/c", "c")
    t.settings(filesystem={"denyRead": ["~/vault", "~/vault/open/no"], "allowRead": ["~/vault/open"]})
    return cans(t, "cat ~/vault/open/b", "cat ~/vault/open/no/c")


@same
def in_both_lists(t):
    t.write("vault/a", "a")
    t.write("file", "f")
    t.settings(filesystem={"denyRead": ["~/vault", "~/file"], "allowRead": ["~/vault", "~/file"]})
    return cans(t, "cat ~/vault/a", "cat ~/file")


@same
def file_deny_inside_an_allowed_directory(t):
    t.write("open/secret", "s")
    t.write("open/plain", "p")
    t.settings(filesystem={"denyRead": ["~/open/secret"], "allowRead": ["~/open"]})
    return cans(t, "cat ~/open/plain", "cat ~/open/secret")


@same
def write_root_inside_a_hidden_one(t):
    t.settings(filesystem={"denyRead": ["~"], "allowWrite": ["."]})
    t.write("private", "p")
    return cans(t, "echo x > f && cat f", "cat ../private")


@same
def deny_read_by_pattern(t):
    t.write("ws/a.env", "s")
    t.write("ws/sub/b.env", "s")
    t.write("ws/c.txt", "c")
    t.settings(filesystem={"denyRead": ["**/*.env"]})
    return cans(t, "cat a.env", "cat sub/b.env", "cat c.txt")


@same
def literal_entries(t):
    t.write("ws/a[1]", "s")
    t.write("ws/a1", "plain")
    t.settings(filesystem={"denyRead": [{"path": "a[1]", "literal": True}]})
    return cans(t, "cat 'a[1]'", "cat a1")


@same
def links_do_not_lead_out(t):
    t.write("outside", "old")
    t.settings(filesystem={"allowWrite": ["."]})
    (t.ws / "link").symlink_to(t.home / "outside")
    t.own(t.home)
    return cans(t, "echo x > link", "ln -s ../outside l2; echo x > l2", "ln ../outside hard && echo x > hard"), t.text("outside")


# Which of two rules on one place holds, whatever their order (wrap-with-sandbox, allow-read, readonly-deny-dir-stubs)

@same
def deny_write_does_not_unhide(t):
    """A rule about writing shows nothing that a rule about reading hides."""
    t.write("ws/secret", "s")
    t.write("ws/vault/a", "s")
    t.write("ws/deep/vault/a", "s")
    t.write("ws/deep/b", "b")
    t.settings(filesystem={"allowWrite": ["."], "denyRead": ["secret", "vault", "deep/vault"],
                           "denyWrite": ["secret", "vault", "deep"]})
    return cans(t, "cat secret", "cat vault/a", "cat deep/vault/a", "cat deep/b", "echo x > deep/b", "echo x > secret")


@same
def order_of_denials(t):
    """A file and the directory that it is in, whichever comes first."""
    t.write("vault/open/plain", "p")
    t.write("vault/open/secret", "s")
    out = []
    for deny in (["~/vault", "~/vault/open/secret"], ["~/vault/open/secret", "~/vault"]):
        t.settings(filesystem={"denyRead": deny, "allowRead": ["~/vault/open"]})
        out.append(cans(t, "cat ~/vault/open/plain", "cat ~/vault/open/secret"))
    return out


@same
def deny_write_inside_a_hidden_place(t):
    t.write("vault/ws/f", "f")
    t.write("vault/ws/fixed/f", "old")
    t.write("vault/other", "o")
    t.settings(filesystem={"denyRead": ["~/vault"], "allowWrite": ["~/vault/ws"], "denyWrite": ["~/vault/ws/fixed"]})
    return cans(t, "echo x > ~/vault/ws/f", "cat ~/vault/ws/fixed/f", "echo x > ~/vault/ws/fixed/f", "cat ~/vault/other",
                "rm ~/vault/ws/f")


@same
def hidden_root(t):
    """denyRead "/" with what a command needs let in again."""
    t.write("ws/f", "f")
    t.write("private", "p")
    t.settings(filesystem={"denyRead": ["/"], "allowWrite": ["."],
                           "allowRead": ["/usr", "/bin", "/lib", "/lib64", "/etc", str(t.ws), *node_of(t)]})
    return cans(t, "cat f", "echo x > f", "cat ../private", "ls /home/. | grep .")


def node_of(t):
    """The published one needs its own files inside."""
    return [str(Path(t.program[-1]).parents[3])] if len(t.program) > 1 else []


@same
def slashes_at_the_end(t):
    t.write("ws/keep/f", "old")
    t.write("vault/a", "s")
    t.settings(filesystem={"allowWrite": ["./"], "denyWrite": ["keep/", ".//later//"], "denyRead": ["~/vault//"]})
    return cans(t, "echo x > f", "echo x > keep/f", "mkdir later", "cat ~/vault/a")


# Links (symlink-boundary, symlink-write-path, symlinked-deny-paths)

@same
def denials_through_links(t):
    """A denial is about what the link leads to."""
    t.write("ws/real/f", "old")
    t.write("vault/a", "s")
    (t.ws / "alias").symlink_to("real")
    (t.home / "door").symlink_to("vault")
    t.settings(filesystem={"allowWrite": ["."], "denyWrite": ["alias"], "denyRead": ["~/door"]})
    t.own(t.home)
    return cans(t, "echo x > alias/f", "echo x > real/f", "cat ~/door/a", "cat ~/vault/a"), t.text("ws/real/f")


@same
def dangling_denial(t):
    """What a link leads to is not there yet."""
    (t.ws / "alias").symlink_to("later")
    t.settings(filesystem={"allowWrite": ["."], "denyWrite": ["alias"]})
    t.own(t.home)
    can(t, "echo x > alias")
    return t.text("ws/later")


@same
def project_through_a_link(t):
    """The working directory is reached by a link."""
    (t.home / "to-ws").symlink_to("ws")
    t.settings(filesystem={"allowWrite": ["."]})
    r = t.srt("-c", "echo x > made && cat made", cwd=t.home / "to-ws")
    return r.code, r.out, t.text("ws/made")


# git (mandatory-deny-paths)

@same
def worktree(t):
    """.git is a file there, and cannot be changed."""
    t.host("git", "init", "-q", "../main")
    for args in (["config", "user.name", "u"], ["config", "user.email", "u@x"],
                 ["commit", "-q", "--allow-empty", "-m", "one"], ["worktree", "add", "-q", "../tree"]):
        t.host("git", "-C", "../main", *args)
    t.settings(filesystem={"allowWrite": [".", "../main/.git"]})
    tree = t.home / "tree"
    out = [t.srt("-c", c, cwd=tree).code == 0 for c in
           ("echo x > f && git add f && git commit -qm two && git log --oneline | grep -c .", "echo x > .git")]
    return out, (tree / ".git").is_file(), t.text("tree/.git").startswith("gitdir:")


@differs("git add -A works: no placeholder is in its way", peer=[False, True, None], ours=[True, True, None])
def no_hooks_yet(t):
    """A repository without hooks stays one, and gets none."""
    t.git()
    shutil.rmtree(t.ws / ".git/hooks")
    t.settings(filesystem={"allowWrite": ["."]})
    works = can(t, "git status && git add -A")
    can(t, "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit")
    return works, (t.ws / ".git").is_dir(), t.text("ws/.git/hooks/pre-commit")


@same
def no_special_files(t):
    t.settings(filesystem={"allowWrite": ["."]})
    can(t, "mknod n c 1 3; mknod b b 7 0")
    return [(t.ws / n).exists() and not (t.ws / n).is_file() for n in ("n", "b")], cans(t, "echo x > f; chmod 755 f")


@same
def devices(t):
    t.settings(filesystem={"allowWrite": ["."]})
    return cans(t, "mknod x c 1 3", "head -c 3 /dev/urandom | wc -c", "test -e /dev/kmsg", "echo x > /dev/full")


NAMES = [".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".ripgreprc",
         ".mcp.json", ".vscode/x", ".idea/x", ".claude/commands/x", ".claude/agents/x", ".git/hooks/x", ".git/config"]


@same
def names_that_run_later(t):
    t.git()
    t.settings(filesystem={"allowWrite": ["."]})
    r = t.sh(" ; ".join(f"mkdir -p $(dirname {n}) 2>/dev/null; (echo x >> {n}) 2>/dev/null && echo {n}" for n in NAMES))
    return r.out


@same
def names_that_do_not(t):
    t.git()
    t.write("ws/.claude/mine")
    t.settings(filesystem={"allowWrite": ["."]})
    return cans(t, *[f"mkdir -p $(dirname {n}); echo x > {n}" for n in (".eslintrc", ".claude/notes", ".gitignore", ".env", "src/.keep")])


@same
def git_works(t):
    t.git()
    t.settings(filesystem={"allowWrite": ["."]})
    r = t.sh("echo x > f; git add f; git commit -qm m && git checkout -qb b && git log --oneline | wc -l")
    return r.code, r.out


@same
def allow_git_config(t):
    t.git()
    t.settings(filesystem={"allowWrite": ["."], "allowGitConfig": True})
    return cans(t, "git config x.y z", "echo x > .git/hooks/pre-commit")


@same
def protected_directories_stay_in_place(t):
    t.git()
    t.write("ws/.vscode/settings.json", "{}")
    t.settings(filesystem={"allowWrite": ["."]})
    return cans(t, "mv .vscode gone", "mv .git/hooks gone", "rm -r .vscode"), t.text("ws/.vscode/settings.json")


@differs("protected names hold at any depth and whether they exist or not", peer=[True, True, True, True], ours=[False, False, False, False])
def names_deeper_and_absent(t):
    t.settings(filesystem={"allowWrite": ["."]})
    t.write("ws/a/b/c/d/.git/HEAD", "x")
    return cans(t, *[f"mkdir -p $(dirname {n}); echo x > {n}" for n in ("a/.bashrc", "a/b/.vscode/tasks.json", ".zshenv", "a/.envrc")])


@differs("git may not be told to run programs: neither in a new repository nor through commondir", peer=[True, True], ours=[False, False])
def git_is_not_turned(t):
    t.settings(filesystem={"allowWrite": ["."]})
    t.sh("git init -q . && git config core.fsmonitor 'touch PWNED; false'")
    t.host("git", "status")
    first = (t.ws / "PWNED").exists()
    shutil.rmtree(t.ws / ".git", ignore_errors=True)
    (t.ws / "PWNED").unlink(missing_ok=True)
    t.git()
    t.sh('mkdir x; cp -r .git/HEAD .git/objects .git/refs .git/config x/; '
         'printf "[core]\\n\\tfsmonitor=\\"touch PWNED; false\\"\\n" >> x/config; echo ../x > .git/commondir')
    t.host("git", "status")
    return [first, (t.ws / "PWNED").exists()]


@differs("protected names hold in every writable directory, not below the working directory alone", peer=[True, True], ours=[False, False])
def start_up_files_of_the_home(t):
    t.settings(filesystem={"allowWrite": ["~"]})
    t.write(".bashrc", "# mine\n")
    return [*cans(t, "echo x >> ~/.bashrc", "mkdir -p ~/.ssh && echo k >> ~/.ssh/authorized_keys")]


@differs("nothing is left in the project, and programs inside see no placeholders", peer=[True, True], ours=[False, False])
def placeholders(t):
    t.git()
    t.settings(filesystem={"allowWrite": ["."]})
    inside = t.sh("git status --porcelain").out != ""
    p = t.popen("-c", "echo up; sleep 30")
    p.stdout.readline()
    os.kill(p.pid, signal.SIGKILL)
    p.wait()
    kill_tree(t)
    time.sleep(0.3)
    left = sorted(x.name for x in t.ws.iterdir() if x.name != ".git")
    return [inside, left != []]


@differs("a rule that would be dropped is told", peer=["", False], ours=["told", False])
def missing_write_path(t):
    t.settings(filesystem={"allowWrite": ["new/dir"]})
    r = t.sh("true")
    return ["told" if "new/dir" in r.err else r.err, can(t, "mkdir -p new/dir")]


@differs("patterns in denyWrite and allowWrite are enforced", peer=[True, False], ours=[False, True])
def write_patterns(t):
    t.write("ws/a.lock", "x")
    t.write("src/a.ts", "x")
    t.settings(filesystem={"allowWrite": [".", "~/src/*.ts"], "denyWrite": ["*.lock"]})
    return [*cans(t, "echo x > a.lock", "echo x > ~/src/a.ts")]


@differs("what is written into a hidden directory is refused, not lost", peer=[True, None], ours=[False, None])
def writes_into_hidden_directories(t):
    t.write("ws/vault/a", "s")
    t.settings(filesystem={"allowWrite": ["."], "denyRead": ["vault"]})
    return [can(t, "echo keep > vault/out"), t.text("ws/vault/out")]


@differs("a file that denyRead names is hidden when it is made during the run, too", peer="s3cret",
         ours="")
def denied_file_that_comes_later(t):
    t.settings(filesystem={"denyRead": ["~/later"]})
    p = t.popen("-c", "echo up; sleep 1; cat ~/later")
    p.stdout.readline()
    t.write("later", "s3cret")
    return p.communicate(timeout=TIMEOUT)[0].decode()


@differs("a symbolic link in allowWrite means what it leads to", peer=False, ours=True)
def write_path_through_a_link(t):
    (t.home / "real").mkdir()
    (t.home / "alias").symlink_to("real")
    t.own(t.home)
    t.settings(filesystem={"allowWrite": ["~/alias"]})
    return can(t, "echo x > ~/alias/f")


@differs("/run, with the sockets of the host's services, is the sandbox's own", peer=True, ours=False)
def run_directory(t):
    return can(t, "test -n \"$(ls -A /run)\" && ls /run | grep -qv '^user$'")


# --- environment -------------------------------------------------------------------------------

@same
def marks_of_the_sandbox(t):
    return t.sh("echo $SANDBOX_RUNTIME").out


@same
def variables_are_inherited(t):
    return t.sh('echo "$MINE $MY_TOKEN $EDITOR"', env={"MINE": "a b", "MY_TOKEN": "t", "EDITOR": "vi"}).out


@same
def tmpdir_of_the_caller(t):
    a, b = str(t.home / "a"), str(t.home / "b")
    for d in (a, b):
        os.mkdir(d)
    t.own(t.home)
    return [t.sh("echo $TMPDIR", env=e).out.strip().removeprefix(str(t.home)) for e in
            ({"CLAUDE_CODE_TMPDIR": a, "CLAUDE_TMPDIR": b}, {"CLAUDE_TMPDIR": b})]


@differs("TMPDIR exists and can be written to; it is /tmp/claude, unless that is somebody else's",
         peer=["/tmp/claude", False], ours=["/tmp/claude", True])
def tmpdir(t):
    if os.geteuid() == 0:  # then /tmp is the test's
        shutil.rmtree("/tmp/claude", ignore_errors=True)
    r = t.sh('echo "${TMPDIR%-*}"; mktemp >/dev/null && echo made')
    return [r.out.split()[0], "made" in r.out]


@same
def git_safe_directories(t):
    t.settings(git={"safeDirectories": ["/a", "/b"]})
    r = t.sh('env | grep ^GIT_CONFIG_ | sort', env={"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "x.y", "GIT_CONFIG_VALUE_0": "z"})
    lines = [line for line in r.out.splitlines() if not line.startswith("GIT_CONFIG_PARAMETERS")]
    return sorted(line.split("=", 1)[1] for line in lines)


PROXY_NAMES = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy", "GRPC_PROXY",
               "grpc_proxy", "DOCKER_HTTP_PROXY", "DOCKER_HTTPS_PROXY"]


@same
def proxy_variables(t):
    lines = dict(line.split("=", 1) for line in t.sh("env").out.splitlines() if "=" in line)
    return [(n, re.sub(r"//.*@|//127.0.0.1", "//localhost", lines.get(n, "")).replace("//localhostlocalhost", "//localhost"))
            for n in PROXY_NAMES], lines.get("CLOUDSDK_PROXY_TYPE"), lines.get("CLOUDSDK_PROXY_PORT"), \
        lines.get("FTP_PROXY", "").rsplit(":", 1)[-1], "RSYNC_PROXY" in lines


@differs("NO_PROXY is loopback alone: allowed private hosts are reached through the proxy like all others",
         peer="localhost,127.0.0.1,::1,169.254.0.0/16,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16", ours="localhost,127.0.0.1,::1")
def no_proxy(t):
    return t.sh("echo $NO_PROXY").out.strip()


@differs("the caller's git and Java settings are left alone: nothing needs them changed", peer=[False, False], ours=[True, True])
def caller_settings_survive(t):
    r = t.sh('echo "$GIT_SSH_COMMAND|$JAVA_TOOL_OPTIONS"', env={"GIT_SSH_COMMAND": "ssh -x", "JAVA_TOOL_OPTIONS": "-Dx=1"})
    ssh, java = r.out.strip().split("|")
    return [ssh == "ssh -x", java == "-Dx=1"]


@differs("no token in the environment or on a command line: nothing listens on the host", peer=True, ours=False)
def proxy_token(t):
    return "@" in t.sh("echo $HTTP_PROXY").out


# --- network -----------------------------------------------------------------------------------

CURL = "curl -sS --max-time 10 --noproxy ''"


def statuses(t, *urls, more=""):
    """What the proxy says to plain requests."""
    return t.sh("\n".join(f"{CURL} {more} -o /dev/null -w '%{{http_code}}\\n' {url}" for url in urls)).out.split()


@same
def nothing_is_reachable(t):
    r = t.sh(f"{CURL} -i http://denied.example/")
    head, _, body = r.out.partition("\r\n\r\n")
    return head.split()[1], "X-Proxy-Error: blocked-by-allowlist" in head, body.splitlines()[0]


@same
def connect_is_denied(t):
    """What ambit tells of it may stand in the middle of a line of curl's."""
    r = t.sh(f"{CURL} -v https://denied.example/")
    return r.code != 0, re.findall(r"HTTP/1.1 (\d+)", r.err), "X-Proxy-Error: blocked-by-allowlist" in r.err


@same
def allowed_address(t):
    t.settings(network={"allowedDomains": [f"127.0.0.1:{t.port}"]})
    return statuses(t, f"http://127.0.0.1:{t.port}/", "http://127.0.0.1:1/", f"http://localhost:{t.port}/")


@same
def allowed_name(t):
    t.settings(network={"allowedDomains": ["localhost"]})
    return statuses(t, f"http://localhost:{t.port}/", f"http://LOCALHOST:{t.port}/", f"http://127.0.0.1:{t.port}/")


@same
def spellings_of_an_address(t):
    t.settings(network={"allowedDomains": [f"127.0.0.1:{t.port}"]})
    return statuses(t, *[f"http://{a}:{t.port}/" for a in ("127.1", "0x7f000001", "2130706433")])


@same
def deny_beats_allow(t):
    t.settings(network={"allowedDomains": ["localhost", "127.0.0.1"], "deniedDomains": [f"localhost:{t.port}"]})
    return statuses(t, f"http://localhost:{t.port}/", f"http://127.0.0.1:{t.port}/")


@same
def deny_everything(t):
    t.settings(network={"allowedDomains": ["localhost"], "deniedDomains": ["*"]})
    return statuses(t, f"http://localhost:{t.port}/")


@same
def wildcards(t):
    """An allowed name that does not exist gives 502, a denied one 403."""
    t.settings(network={"allowedDomains": ["*.zone.invalid"]})
    return statuses(t, *[f"http://{h}/" for h in ("a.zone.invalid", "a.b.zone.invalid", "zone.invalid", "azone.invalid", "a.zone.invalid.x")])


@same
def socks(t):
    t.settings(network={"allowedDomains": [f"127.0.0.1:{t.port}"]})
    proxy = "--socks5-hostname ${FTP_PROXY#socks5h://}"
    return [statuses(t, f"http://127.0.0.1:{t.port}/", more=proxy), t.sh(f"{CURL} {proxy} http://denied.example/").code]


@same
def tunnels(t):
    t.settings(network={"allowedDomains": [f"127.0.0.1:{t.port}"]})
    return statuses(t, f"http://127.0.0.1:{t.port}/", more="-p")


@same
def reasons(t):
    t.settings(network={"deniedDomains": ["no.example"], "deniedDomainReasons": {"no.example": "ask the boss"}})
    r = t.sh(f"{CURL} -v https://no.example/")
    return "ask the boss" in r.err


@same
def host_loopback_is_apart(t):
    line = f"exec 3<>/dev/tcp/127.0.0.1/{t.port}"
    return can(t, line), t.host("bash", "-c", line).returncode


@same
def own_loopback_works(t):
    return t.sh("python3 -c 'import socket,threading\ns=socket.create_server((\"127.0.0.1\",0))\n"
                "c=socket.create_connection(s.getsockname())\nprint(bool(s.accept()))'").out


@same
def unix_sockets_are_denied(t):
    path = t.home / "s.sock"
    server = socket.socket(socket.AF_UNIX)
    with contextlib.closing(server):
        server.bind(str(path))
        server.listen()
        t.own(t.home)
        line = f"python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{path}\")'"
        return can(t, line), t.host("sh", "-c", line).returncode


@differs("unix sockets by path work here", peer=False, ours=True)
def unix_sockets_by_path(t):
    path = t.home / "s.sock"
    t.settings(network={"allowUnixSockets": ["~/s.sock"]})
    server = socket.socket(socket.AF_UNIX)
    with contextlib.closing(server):
        server.bind(str(path))
        server.listen()
        t.own(t.home)
        return can(t, f"python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{path}\")'")


@differs("programs that know nothing of proxies reach what is allowed", peer=[False, False], ours=[True, True])
def without_the_proxy(t):
    t.settings(network={"allowedDomains": [f"127.0.0.1:{t.port}", f"localhost:{t.port}", f"10.9.8.7:{t.port}"]})
    return [can(t, f"python3 -c 'import socket; s=socket.create_connection((\"10.9.8.7\", {t.port})); s.send(b\"GET / HTTP/1.0\\r\\n\\r\\n\"); assert s.recv(9)'"),
            can(t, f"env -u HTTP_PROXY -u http_proxy -u ALL_PROXY -u all_proxy curl -sSf --max-time 10 http://10.9.8.7:{t.port}/")]


FRONT = """
import base64, os, socket, ssl, sys, urllib.parse
user, _, where = os.environ["HTTP_PROXY"][7:].rpartition("@")
host, port = where.split(":")
s = socket.create_connection((host, int(port)))
token = base64.b64encode(urllib.parse.unquote(user).encode()).decode()
s.sendall(f"CONNECT {sys.argv[1]} HTTP/1.1\\r\\nHost: {sys.argv[1]}\\r\\nProxy-Authorization: Basic {token}\\r\\n\\r\\n".encode())
assert b" 200 " in s.recv(4096)
context = ssl.create_default_context()
try:
    context.wrap_socket(s, server_hostname="evil.example")
except ssl.SSLError as e:
    print("passed on" if e.reason == "WRONG_VERSION_NUMBER" else "stopped")
except OSError:
    print("stopped")
"""


@differs("a connection to one allowed host cannot ask for another (domain fronting)", peer="passed on", ours="stopped")
def fronting(t):
    """The server speaks plain HTTP: that it answers the TLS greeting shows that it got it."""
    t.write("ws/front.py", FRONT)
    t.settings(network={"allowedDomains": [f"localhost:{t.port}"], "deniedDomains": ["evil.example"]})
    return t.sh(f"python3 front.py localhost:{t.port}").out.strip()


@same
def external_proxy(t):
    """The server takes every request, so it will do for a proxy."""
    t.settings(network={"httpProxyPort": t.port})
    return statuses(t, "http://any.example/")


@same
def external_proxies(t):
    """HTTP, SOCKS, both: what is allowed does not matter to them."""
    out = []
    for ports in ({"socksProxyPort": t.port}, {"httpProxyPort": t.port, "socksProxyPort": t.port}):
        t.settings(network=ports)
        out.append(statuses(t, "http://any.example/"))
    return out


@same
def parent_proxy(t):
    t.settings(network={"allowedDomains": ["inner.example"], "parentProxy": {"http": f"http://127.0.0.1:{t.port}"}})
    return statuses(t, "http://inner.example/", "http://denied.example/")


@same
def parent_proxy_of_the_environment(t):
    t.settings(network={"allowedDomains": ["inner.example"]})
    url = "http://inner.example/"
    return t.sh(f"{CURL} -o /dev/null -w '%{{http_code}}' {url}", env={"HTTP_PROXY": f"http://127.0.0.1:{t.port}"}).out


@differs("allowLocalBinding: false is followed; nothing said means yes, as there", peer=[True, True], ours=[True, False])
def local_binding(t):
    listen = "python3 -c 'import socket; socket.create_server((\"127.0.0.1\", 0))'"
    first = can(t, listen)
    t.settings(network={"allowLocalBinding": False})
    return [first, can(t, listen)]


@same
def live_update(t):
    t.settings()
    keys = json.dumps({"network": {"allowedDomains": [f"127.0.0.1:{t.port}"], "deniedDomains": []},
                       "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}})
    r, w = os.pipe()
    try:
        p = t.popen("--control-fd", str(r), "-c",
                    f"g() {{ {CURL} -o /dev/null -w '%{{http_code}}\\n' http://127.0.0.1:{t.port}/; }}; g; read x; g; read x; g",
                    stdin=subprocess.PIPE, pass_fds=[r])
        os.close(r)
        r = -1
        out = [p.stdout.readline().decode().strip()]
        for line in ("\n{nonsense\n" + keys + "\n", "{}\n"):
            os.write(w, line.encode())
            time.sleep(0.7)
            p.stdin.write(b"\n")
            p.stdin.flush()
            out.append(p.stdout.readline().decode().strip())
        err = p.communicate(timeout=TIMEOUT)[1].decode()
        return out, "control fd" in err and "ignored" in err, p.returncode
    finally:
        os.close(w)
        if r >= 0:
            os.close(r)


@same
def control_descriptor_must_be_there(t):
    return [t.srt("--control-fd", n, "true").code for n in ("77", "1", "x", "-3")]


# --- processes ------------------------------------------------------------------------------------

@same
def background_processes_end(t):
    t.sh("sleep 77 & disown")
    time.sleep(0.3)
    return [p for p in running(t) if "sleep" in Path(f"/proc/{p}/comm").read_text()]


@same
def other_processes_are_unseen(t):
    return t.sh(f"kill -0 {os.getpid()} 2>/dev/null && echo seen; ls /proc | grep -c '^[0-9]' | awk '{{print $1 < 10}}'").out


@same
def exits_with_the_command(t):
    """Not with what it has left running; and orphans are waited for."""
    start = time.monotonic()
    r = t.sh("sleep 30 & (sh -c 'exit 3' &); exit 4")
    return r.code, time.monotonic() - start < 20


@same
def the_first_process_is_out_of_reach(t):
    return cans(t, "kill -0 1 && cat /proc/1/environ | grep -q .", "head -c1 /proc/1/mem", "ls -l /proc/1/fd/0",
                "echo > /proc/1/oom_score_adj")[1:3]


@same
def io_uring_is_off(t):
    call = "import ctypes, sys; r = ctypes.CDLL(None, use_errno=True).syscall({}, 4, None, 0, 0, None, 0); sys.exit(r >= 0)"
    return cans(t, *[f"python3 -c '{call.format(n)}'" for n in (425, 426, 427)])


@same
def control_descriptor_is_not_seen(t):
    """The command has neither the descriptor nor its text; a file will do; standard input is the command's."""
    t.settings()
    file = t.write("control", json.dumps({"nonsense-of-mine": 1}) + "\n")
    with open(file) as f:
        r = t.srt("--control-fd", f.fileno(), "-c", f"cat; cat <&{f.fileno()} | grep -c nonsense", input="in\n",
                  pass_fds=[f.fileno()])
    return r.code, r.out.split()[:1], "nonsense-of-mine" in r.out, "nonsense-of-mine" in r.err


@same
def control_descriptor_does_not_hold_up(t):
    """The caller keeps a FIFO open: the end of the command is the end."""
    t.settings()
    r, w = os.pipe()
    try:
        start = time.monotonic()
        return t.srt("--control-fd", r, "-c", "exit 5", pass_fds=[r]).code, time.monotonic() - start < 20
    finally:
        os.close(r)
        os.close(w)


@same
def control_descriptor_for_writing(t):
    r, w = os.pipe()
    try:
        return t.srt("--control-fd", w, "-c", "echo ran", pass_fds=[w]).out
    finally:
        os.close(r)
        os.close(w)


@same
def no_privileges(t):
    return t.sh("grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status").out, \
        cans(t, *[c for c in ("mount -t tmpfs x /mnt", "unshare -Ur true", "unshare -m true", "umount /proc")])


@differs("signals reach the command, and the exit code says so", peer=["", 0], ours=["trapped\n", 7])
def terminate(t):
    p = t.popen("-c", "trap 'echo trapped; exit 7' TERM; echo up; while :; do sleep 0.1; done")
    p.stdout.readline()
    os.kill(p.pid, signal.SIGTERM)
    out, _ = p.communicate(timeout=TIMEOUT)
    kill_tree(t)
    return [out.decode(), p.returncode]


@differs("when srt is killed, everything inside dies with it", peer=True, ours=False)
def killed(t):
    p = t.popen("-c", "echo up; exec sleep 55")
    p.stdout.readline()
    os.kill(p.pid, signal.SIGKILL)
    p.wait()
    time.sleep(0.5)
    left = any("sleep" in Path(f"/proc/{x}/comm").read_text() for x in running(t))
    kill_tree(t)
    return left


@differs("descriptors of the caller do not come along", peer=True, ours=False)
def descriptors(t):
    (t.home / "outside").mkdir()
    t.own(t.home)
    fd = os.open(t.home / "outside", os.O_RDONLY)
    high = fcntl.fcntl(fd, fcntl.F_DUPFD, 20)
    os.close(fd)
    try:
        p = t.popen("-c", f"echo x > /proc/self/fd/{high}/f", pass_fds=[high])
        p.communicate(timeout=TIMEOUT)
    finally:
        os.close(high)
    return (t.home / "outside/f").exists()


@differs("System V memory and message queues are the sandbox's own", peer=True, ours=False)
def shared_memory(t):
    out = t.host("ipcmk", "-Q").stdout
    queue = out.split()[-1]
    try:
        return can(t, f"ipcs -q -i {queue} | grep -q '^Message'")
    finally:
        t.host("ipcrm", "-q", queue)


@differs("what was denied is told", peer=[False, False], ours=[True, True])
def denials_are_told(t):
    r = t.sh(f"echo x > /etc/nope; {CURL} -o /dev/null http://denied.example/")
    return ["denied write to /etc/nope" in r.err, "denied connect to denied.example:80" in r.err]
