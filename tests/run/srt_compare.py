#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What srt does, and what our srt does: the same cases against both.

    srt_compare.py [--peer PROGRAM] [--ours PROGRAM] [-k WORD] [--every N] [--table | --record]

A case does something with one of the two, in a fresh home and project, and returns what it saw. It
is either the same for both, or it says why not, and then both answers are given and checked. The
published package is installed below build/ by npm (install_peer()); nothing leaves the machine
besides that: as root, the cases run with a network of their own, which is loopback, and an own /tmp.
"""
import argparse
import contextlib
import ctypes
import fcntl
import json
import os
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
PEER_VERSION = "0.0.83"
NODE_VERSION = "22"
CACHE = TREE / "build/srt-peer"
TIMEOUT = 40
CLONE_NEWNET, CLONE_NEWNS = 0x40000000, 0x20000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1

ANSWERS = Path(__file__).with_name("srt_answers.json")

CASES = []


class Impossible(Exception):
    """The published package cannot be had here; the reason is for the reader."""


# --- the published package ----------------------------------------------------------------

def _node():
    """A Node that is new enough, and the npm package that has one where there is none."""
    have = shutil.which("node")
    if have:
        version = subprocess.run([have, "--version"], capture_output=True, text=True).stdout.strip()
        m = re.match(r"v(\d+)\.(\d+)", version)
        if m and (int(m[1]), int(m[2])) >= (22, 12):
            return Path(have), None
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine)
    if not machine:
        raise Impossible(f"no Node >= 22.12, and none to be had for {os.uname().machine}")
    name = f"node-linux-{machine}"
    return CACHE / "node_modules" / name / "bin/node", f"{name}@{NODE_VERSION}"


def install_peer():
    """The argv that runs the published srt."""
    for tool in ("npm", "bwrap", "socat", "rg"):
        if not shutil.which(tool):
            raise Impossible(f"{tool} is not installed, which sandbox-runtime or its installation needs")
    node, package = _node()
    cli = CACHE / "node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js"
    done = CACHE / f"installed-{PEER_VERSION}"
    if not done.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / "package.json").write_text('{"private": true}\n')
        wanted = [f"@anthropic-ai/sandbox-runtime@{PEER_VERSION}"] + ([package] if package else [])
        r = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--force", *wanted],
                           cwd=CACHE, capture_output=True, text=True)
        if r.returncode != 0 or not cli.exists():
            last = r.stderr.strip().splitlines()[-1:] or ["no reason given"]
            raise Impossible(f"npm cannot install sandbox-runtime {PEER_VERSION}: {last[0]}")
        done.touch()
    return [str(node), str(cli)]


# --- a case -------------------------------------------------------------------------------

def same(function):
    """Both must see the same."""
    CASES.append((function.__name__, function, None))
    return function


def differs(why, peer, ours):
    """They differ, for this reason; each must see what is given."""
    def add(function):
        CASES.append((function.__name__, function, (why, peer, ours)))
        return function
    return add


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


class Trial:
    """One case with one of the two: a home, a project and a way to call it."""

    def __init__(self, argv, account, base):
        self.program, self.account = argv, account
        self.home = Path(tempfile.mkdtemp(prefix="srt-", dir=base))
        self.ws = self.home / "ws"
        self.ws.mkdir()
        self.env = {"HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
                    "USER": account.pw_name}
        self.own(self.home)

    def own(self, path):
        if os.geteuid() == 0:
            subprocess.run(["chown", "-Rh", f"{self.account.pw_uid}:{self.account.pw_gid}", path], check=True)

    def write(self, path, text="", mode=0o644):
        p = self.home / path
        p.parent.mkdir(parents=True, exist_ok=True)
        p.write_text(text)
        p.chmod(mode)
        self.own(self.home)
        return p

    def text(self, path):
        p = self.home / path
        return p.read_text() if p.exists() else None

    def settings(self, path=".srt-settings.json", *, network=None, filesystem=None, **more):
        """A settings file with the five required keys, and these besides."""
        keys = {"network": {"allowedDomains": [], "deniedDomains": [], **(network or {})},
                "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": [], **(filesystem or {})}, **more}
        return self.write(path, json.dumps(keys))

    def popen(self, *args, env=None, cwd=None, **kw):
        if os.geteuid() == 0:
            kw.update(user=self.account.pw_uid, group=self.account.pw_gid, extra_groups=[])
        kw.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen([*self.program, *map(str, args)], cwd=cwd or self.ws, env={**self.env, **(env or {})},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **kw)

    def srt(self, *args, input=None, **kw):
        if input is not None:
            kw["stdin"] = subprocess.PIPE
        p = self.popen(*args, **kw)
        try:
            out, err = p.communicate(input.encode() if input is not None else None, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, err = p.communicate()
            return Result("timeout", out.decode(errors="replace"), err.decode(errors="replace"))
        code = p.returncode
        return Result(128 - code if code < 0 else code, out.decode(errors="replace"), err.decode(errors="replace"))

    def sh(self, line, **kw):
        return self.srt("-c", line, **kw)

    def host(self, *argv):
        kw = {}
        if os.geteuid() == 0:
            kw.update(user=self.account.pw_uid, group=self.account.pw_gid, extra_groups=[])
        return subprocess.run(argv, cwd=self.ws, env=self.env, capture_output=True, text=True, **kw)

    def git(self):
        for args in (["init", "-q", "."], ["config", "user.name", "u"], ["config", "user.email", "u@x"]):
            self.host("git", *args)


def kill_tree(t):
    """What still runs in the trial's home, by pid."""
    for pid in running(t):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def running(t):
    found, mark = [], f"HOME={t.home}\0".encode()
    for p in Path("/proc").iterdir():
        if p.name.isdigit() and int(p.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (p / "environ").read_bytes() and (p / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                    found.append(int(p.name))
    return found


# --- running them ------------------------------------------------------------------------------------

class Quiet(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *args):
        pass


def own_world():
    """As root: a network with loopback up and one more address on it, and an empty /tmp."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0:
        return
    if libc.unshare(CLONE_NEWNET | CLONE_NEWNS) != 0:
        raise Impossible("no network and mount namespace of our own")
    for argv in (["mount", "--make-rprivate", "/"], ["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/tmp"]):
        subprocess.run(argv, check=True)
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
        s_addr = struct.pack("16sH2s4s8x", b"lo:1", socket.AF_INET, b"\0\0", socket.inet_aton("10.9.8.7"))
        fcntl.ioctl(s, 0x8916, s_addr)  # SIOCSIFADDR


def base_dir():
    """Not below /tmp, which is special."""
    return os.environ.get("AMBIT_TEST_DIR", "/srv" if os.geteuid() == 0 else os.path.expanduser("~/.cache"))


@contextlib.contextmanager
def serving():
    """The port of a server that says 200 to everything."""
    server = HTTPServer(("", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def account():
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    return pwd.getpwnam(os.environ.get("AMBIT_TEST_USER", "ambit-test"))


def plain(value):
    return json.loads(json.dumps(value))


def answer(function, argv, person, base, port):
    """What one of the two does in this case."""
    t = Trial(argv, person, base)
    t.port = port
    try:
        return plain(function(t))
    except Exception as e:  # noqa: BLE001 (a case that breaks is an answer too)
        return f"{type(e).__name__}: {e}"
    finally:
        kill_tree(t)
        shutil.rmtree(t.home, ignore_errors=True)


def judge(expected, peer, ours):
    """What is wrong with the answers; None = nothing."""
    if expected is None:
        return None if peer == ours else f"srt: {peer!r}\nours: {ours!r}"
    bad = [f"{who}: {got!r}, not {want!r}" for who, got, want in
           (("srt", peer, plain(expected[1])), ("ours", ours, plain(expected[2]))) if got != want]
    return "\n".join(bad) or None


def main():
    import srt_cases  # noqa: F401 (fills CASES)
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--peer")
    p.add_argument("--ours", default=os.environ.get("AMBIT_BIN", str(TREE / "build/src/cli/ambit")))
    p.add_argument("-k", default="")
    p.add_argument("--every", type=int, default=1, help="only each Nth case")
    p.add_argument("--table", action="store_true", help="only print the differences, as a table")
    p.add_argument("--json", action="store_true")
    p.add_argument("--record", action="store_true", help="write down what srt answers, for test_srt.py")
    args = p.parse_args()
    if args.table:
        for name, _, expected in CASES:
            if expected:
                print(f"| {name.replace('_', ' ')} | {expected[0]} |")
        return 0
    try:
        tools = [[args.peer] if args.peer else install_peer(), [str(Path(args.ours).with_name("srt"))]]
        own_world()
    except Impossible as e:
        print(json.dumps({"impossible": str(e)}) if args.json else f"skipped: {e}")
        return 0
    base = tempfile.mkdtemp(prefix="ambit-srt.", dir=base_dir())
    os.chmod(base, 0o755)
    results, answers = [], {}
    try:
        with serving() as port:
            for name, function, expected in CASES[::args.every]:
                if args.k not in name:
                    continue
                peer, ours = (answer(function, argv, account(), base, port) for argv in tools)
                answers[name] = peer
                wrong = judge(expected, peer, ours)
                results.append((name, expected and expected[0], wrong))
                if not args.json:
                    print(f"{'WRONG' if wrong else 'differs' if expected else 'same':8}{name}" + (f"\n{wrong}" if wrong else ""), flush=True)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    if args.record:
        ANSWERS.write_text(json.dumps({"version": PEER_VERSION, "answers": answers}, indent=1, sort_keys=True) + "\n")
    if args.json:
        print(json.dumps([{"name": n, "why": w, "wrong": x} for n, w, x in results]))
    else:
        print(f"{len(results)} cases, {sum(1 for r in results if r[1])} differ on purpose, {sum(1 for r in results if r[2])} wrong")
    return 1 if any(r[2] for r in results) else 0


if __name__ == "__main__":
    sys.modules["srt_compare"] = sys.modules["__main__"]  # the cases add to this CASES, not to a second one
    sys.exit(main())
