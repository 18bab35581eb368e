# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from ambit_test import *  # noqa: E402,F401,F403
from ambit_test import AMBIT  # noqa: E402
from mcp_client import Server  # noqa: E402


@pytest.fixture
def serve():
    """serve(box, ...) -> a running `ambit mcp serve`; ended with the test."""
    running = []

    def start(box, *options, env=None, cwd=None, initialize=True, **kw):
        s = Server([AMBIT, "mcp", "serve", *options], popen=box.who.popen, cwd=cwd or box.ws,
                   env=box._env(env), start_new_session=True, **kw)
        running.append(s)
        if initialize:
            s.initialize()
        return s

    yield start
    for s in running:
        s.__exit__()


@pytest.fixture
def server(box, serve):
    """An initialized server in the box's project; once per whos()."""
    s = serve(box)
    s.box = box
    return s


@pytest.fixture
def plain_server(boxes, serve):
    """The same for the plain user only: where who runs makes no difference."""
    box = boxes("user")
    s = serve(box)
    s.box = box
    return s
