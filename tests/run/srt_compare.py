#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What srt does, and what our srt does: the same cases against both.

    srt_compare.py [--peer PROGRAM] [--ours PROGRAM] [-k WORD] [--table]

A case does something with one of the two, in a fresh home and project, and returns what it saw. It
is either the same for both, or it says why not, and then both answers are given and checked. The
published package is installed below build/ by npm (install_peer()); nothing leaves the machine
besides that: as root, the cases run in a network namespace with nothing but loopback.
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
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1

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

    def __init__(self, argv, is_peer, account, base):
        self.program, self.is_peer, self.account = argv, is_peer, account
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


def own_network():
    """A namespace with loopback up and one more address on it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise Impossible("no network namespace of our own")
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
        s_addr = struct.pack("16sH2s4s8x", b"lo:1", socket.AF_INET, b"\0\0", socket.inet_aton("10.9.8.7"))
        fcntl.ioctl(s, 0x8916, s_addr)  # SIOCSIFADDR


def account():
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    return pwd.getpwnam(os.environ.get("AMBIT_TEST_USER", "ambit-test"))


def plain(value):
    return json.loads(json.dumps(value))


def run_case(name, function, expected, tools, base, port):
    """(name, why or None, what went wrong or None)"""
    seen = []
    for is_peer, argv in ((True, tools[0]), (False, tools[1])):
        t = Trial(argv, is_peer, account(), base)
        t.port = port
        try:
            seen.append(plain(function(t)))
        except Exception as e:  # noqa: BLE001 (a case that breaks is a result too)
            seen.append(f"{type(e).__name__}: {e}")
        finally:
            kill_tree(t)
            shutil.rmtree(t.home, ignore_errors=True)
    if expected is None:
        return name, None, None if seen[0] == seen[1] else f"srt: {seen[0]!r}\nours: {seen[1]!r}"
    why, peer, ours = expected
    bad = [f"{who}: {got!r}, not {want!r}" for who, got, want in
           (("srt", seen[0], plain(peer)), ("ours", seen[1], plain(ours))) if got != want]
    return name, why, "\n".join(bad) or None


def main():
    import srt_cases  # noqa: F401 (fills CASES)
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--peer")
    p.add_argument("--ours", default=os.environ.get("AMBIT_BIN", str(TREE / "build/src/cli/ambit")))
    p.add_argument("-k", default="")
    p.add_argument("--table", action="store_true", help="only print the differences, as a table")
    p.add_argument("--json", action="store_true")
    args = p.parse_args()
    if args.table:
        for name, _, expected in CASES:
            if expected:
                print(f"| {name.replace('_', ' ')} | {expected[0]} |")
        return 0
    try:
        tools = [[args.peer] if args.peer else install_peer(), [str(Path(args.ours).with_name("srt"))]]
        if os.geteuid() == 0:
            own_network()
    except Impossible as e:
        print(json.dumps({"impossible": str(e)}) if args.json else f"skipped: {e}")
        return 0
    base = os.environ.get("AMBIT_TEST_DIR", "/srv" if os.geteuid() == 0 else os.path.expanduser("~/.cache"))
    base = tempfile.mkdtemp(prefix="ambit-srt.", dir=base)
    os.chmod(base, 0o755)
    server = HTTPServer(("", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    results = []
    try:
        for case in CASES:
            if args.k in case[0]:
                results.append(run_case(*case, tools, base, server.server_port))
                if not args.json:
                    name, why, wrong = results[-1]
                    print(f"{'WRONG' if wrong else 'differs' if why else 'same':8}{name}" + (f"\n{wrong}" if wrong else ""), flush=True)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    if args.json:
        print(json.dumps([{"name": n, "why": w, "wrong": x} for n, w, x in results]))
    else:
        print(f"{len(results)} cases, {sum(1 for r in results if r[1])} differ on purpose, {sum(1 for r in results if r[2])} wrong")
    return 1 if any(r[2] for r in results) else 0


if __name__ == "__main__":
    sys.modules["srt_compare"] = sys.modules["__main__"]  # the cases add to this CASES, not to a second one
    sys.exit(main())
