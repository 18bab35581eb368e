# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from ambit_test import *  # noqa: E402,F401,F403
from ambit_test import whos  # noqa: E402


@pytest.fixture
def plain(boxes):
    """A box for one person only, the plain user: where who runs makes no difference."""
    return boxes("user")


@pytest.fixture
def rooted(boxes):
    """A box for root."""
    if "root" not in whos():
        pytest.skip("only root can do this")
    return boxes("root")
