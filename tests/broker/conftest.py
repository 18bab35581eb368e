# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from ambit_test import *  # noqa: E402,F401,F403
from ambit_test import compile_c  # noqa: E402

HERE = os.path.dirname(__file__)


@pytest.fixture(scope="session")
def programs(base_dir):
    """programs(name, sources...) -> a static program, built once, that everybody can run."""
    built = {}

    def build(name, *sources):
        if name not in built:
            first, *rest = [os.path.join(HERE, s) for s in sources]
            built[name] = compile_c(first, base_dir / name, *rest, "-static", "-pthread",
                                    "-Wno-unused-result")
        return built[name]

    return build
