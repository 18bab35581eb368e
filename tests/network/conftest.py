# SPDX-License-Identifier: Apache-2.0
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "lib"))
from ambit_test import *  # noqa: E402,F401,F403
from ambit_test import compile_c, skip_impossible  # noqa: E402
from servers import Internet  # noqa: E402

PROXY_VARIABLES = [v for name in ("http", "https", "all", "ftp", "grpc", "no")
                   for v in (f"{name}_proxy", f"{name.upper()}_PROXY")]


@pytest.fixture(scope="package")
def internet(base_dir):
    if os.geteuid() != 0:
        skip_impossible("only root can make the namespaces that stand for host and internet")
    directory = base_dir / "internet"
    directory.mkdir()
    with Internet(directory) as net:
        yield net


@pytest.fixture
def net(internet, box):
    """The internet as at its beginning; `box` is allowed to talk to allowed.test."""
    internet.forget()
    box.options = ["--allow-domain", "allowed.test"]
    return internet


@pytest.fixture
def direct():
    """Prefix of a command: without any proxy variable."""
    return ["env", *(x for v in PROXY_VARIABLES for x in ("-u", v))]


def _build_go(directory):
    """With the C library, as most are built, and without."""
    env = {"PATH": os.environ["PATH"], "HOME": str(directory), "GOCACHE": str(directory / "go-cache"),
           "GO111MODULE": "off"}
    for name, cgo in (("fetch", "1"), ("dial", "0"), ("hellos", "0")):
        subprocess.run(["go", "build", "-o", directory / f"go-{name}", HERE / f"probes/{name}.go"],
                       env={**env, "CGO_ENABLED": cgo}, check=True)


@pytest.fixture(scope="package")
def built(internet):
    """The programs that come as sources, beside the certificates."""
    directory = internet.directory
    compile_c(HERE / "probes/lookup.c", directory / "lookup-glibc", "-static")
    if shutil.which("musl-gcc"):
        subprocess.run(["musl-gcc", "-static", "-O1", "-o", directory / "lookup-musl",
                        HERE / "probes/lookup.c"], check=True)
    if shutil.which("javac"):
        subprocess.run(["javac", "-d", directory, HERE / "probes/Fetch.java"], check=True)
    if shutil.which("go"):
        _build_go(directory)


@pytest.fixture(scope="package")
def servers(internet):
    """Servers that are programs: sshd on 2222 of every address out there, gRPC on 50051."""
    directory, running = internet.directory, []

    def start(*argv, **kw):
        with internet.inside():
            running.append(subprocess.Popen(argv, **kw))
        return running[-1]

    try:
        if shutil.which("dropbear"):
            for make in (["dropbearkey", "-t", "ed25519", "-f", "hostkey"],
                         ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "ssh-key"]):
                subprocess.run(make, cwd=directory, check=True, capture_output=True)
            (directory / "ssh-key").chmod(0o644)  # everybody here may be this client
            # in a mount namespace of its own, so that /root/.ssh is not the machine's
            start("unshare", "--mount", "sh", "-c", "mount -t tmpfs -o mode=700 none /root && "
                  "mkdir -m 700 /root/.ssh && cp ssh-key.pub /root/.ssh/authorized_keys && "
                  "exec dropbear -F -s -p 2222 -r hostkey", cwd=directory,
                  stderr=subprocess.DEVNULL)
        if importlib.util.find_spec("grpc"):
            server = start("/usr/bin/python3", HERE / "probes/rpc.py", "serve", "50051",
                           stdout=subprocess.PIPE)
            assert server.stdout.readline() == b"up\n"
        yield
    finally:
        for p in running:
            p.kill()
            p.wait()
