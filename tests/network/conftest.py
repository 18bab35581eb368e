# SPDX-License-Identifier: Apache-2.0
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


@pytest.fixture(scope="package")
def built(internet):
    """The programs that come as sources, beside the certificates."""
    compile_c(HERE / "probes/lookup.c", internet.directory / "lookup-glibc", "-static")
    if shutil.which("musl-gcc"):
        subprocess.run(["musl-gcc", "-static", "-O1", "-o", internet.directory / "lookup-musl",
                        HERE / "probes/lookup.c"], check=True)
    if shutil.which("javac"):
        subprocess.run(["javac", "-d", internet.directory, HERE / "probes/Fetch.java"], check=True)
