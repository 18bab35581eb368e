# SPDX-License-Identifier: Apache-2.0
"""Programs that ambit is compared with. What is not here is got, and nothing is installed: Debian
packages are downloaded and taken apart, npm packages unpacked, all into build/peers. No service
comes with them that would be started.
"""
import os
import re
import shutil
import subprocess
from pathlib import Path

from turns import TREE, say

WHERE = TREE / "build/peers"
RUNTIME = "@anthropic-ai/sandbox-runtime@0.0.83"
CODEX = "@openai/codex@0.166.0"


class Missing(Exception):
    """It cannot be had here; the reason is for the reader."""


class Program:
    """argv begins with it, env must be there for it; root: below it are its files, None = the
    machine's own."""

    def __init__(self, path, root=None):
        self.path, self.root, self.env = str(path), root, dict(os.environ)
        if root:
            libraries = [str(p) for p in root.glob("usr/lib/*-linux-gnu*")] + [str(root / "usr/lib")]
            self.env["LD_LIBRARY_PATH"] = ":".join(libraries)
            self.env["LUA_PATH"] = str(root / "usr/share/luajit-2.1.0-beta3/?.lua")


def installed(name):
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def run(*argv, **more):
    p = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, check=False, **more)
    if p.returncode:
        last = (p.stderr.strip() or p.stdout.strip()).splitlines()[-1:] or ["no reason given"]
        raise Missing(f"{Path(str(argv[0])).name}: {last[0]}")


def unpack(package):
    """A directory with the package and what it needs besides, or Missing."""
    where = WHERE / package
    root = where / "root"
    if (where / "done").exists():
        return root
    if not shutil.which("apt-get"):
        raise Missing(f"not installed, and there is no apt-get to get {package} with")
    say(f"getting {package}")
    shutil.rmtree(where, ignore_errors=True)
    (where / "partial").mkdir(parents=True)
    run("apt-get", "-qq", "-y", "--no-install-recommends", "-o", "Debug::NoLocking=1", "-o",
        f"Dir::Cache::archives={where}/", "--download-only", "install", package)
    for deb in where.glob("*.deb"):
        run("dpkg-deb", "-x", deb, root)
    (where / "done").touch()
    return root


def debian(name, package):
    """The program `name`, of the machine or out of the package."""
    have = installed(name)
    if have:
        return Program(have)
    root = unpack(package)
    for place in ("usr/sbin", "usr/bin"):
        if (root / place / name).exists():
            return Program(root / place / name, root)
    raise Missing(f"the package {package} has no {name}")


def npm(name, package, *more):
    """The directory with the package and `more` unpacked in it; no script of theirs is run."""
    where = WHERE / name
    if (where / "done").exists():
        return where
    if not shutil.which("npm"):
        raise Missing("npm is not installed, which gets it")
    say(f"getting {package}")
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    run("npm", "install", "--prefix", where, "--ignore-scripts", "--no-audit", "--no-fund",
        "--loglevel=error", "--force", package, *more)
    (where / "done").touch()
    return where


def platform():
    """As npm packages with programs call it."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine)
    if not machine:
        raise Missing(f"it is not made for {os.uname().machine}")
    return f"linux-{machine}"


def new_node():
    """Node 22.12 or later, and the npm package to get it by."""
    have = shutil.which("node")
    if have:
        text = subprocess.run([have, "--version"], capture_output=True, text=True, check=False).stdout
        found = re.match(r"v(\d+)\.(\d+)", text)
        if found and (int(found[1]), int(found[2])) >= (22, 12):
            return Path(have), []
    name = f"node-{platform()}"
    return WHERE / "srt/node_modules" / name / "bin/node", [f"{name}@22"]


def sandbox_runtime():
    """The words that run srt."""
    for tool in ("bwrap", "socat", "rg"):
        if not shutil.which(tool):
            raise Missing(f"{tool} is not installed, which it needs")
    node, packages = new_node()
    where = npm("srt", RUNTIME, *packages)
    return [str(node), str(where / "node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js")]


def codex():
    """The program. Its package for this platform has it, and all that it needs, ready to run."""
    where = npm("codex", f"codex@npm:{CODEX}-{platform()}")
    for program in where.glob("node_modules/codex/vendor/*/bin/codex"):
        return str(program)
    raise Missing(f"the package {CODEX}-{platform()} has no codex")
