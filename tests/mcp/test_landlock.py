# SPDX-License-Identifier: Apache-2.0
"""The server where nobody may make namespaces, as in most containers: --backend landlock."""
import pytest
from mcp_client import text

from test_execute import data, run
# collected here once more, on this backend
from test_execute import test_failures, test_plain, test_stderr_is_kept_on_success  # noqa: F401


@pytest.fixture
def server(box, serve):
    s = serve(box, "--backend", "landlock")
    s.box = box
    return s


@pytest.fixture
def plain_server(boxes, serve):
    s = serve(boxes("user"), "--backend", "landlock")
    s.box = boxes("user")
    return s


@pytest.mark.parametrize("language, code", [
    ("python", "import sys; print('hi', sys.argv[1:])"), ("javascript", "console.log('hi', process.argv.slice(2))"),
    ("shell", "echo hi $@"), ("perl", "print 'hi ', join(' ', @ARGV), qq(\\n)")])
def test_languages(server, language, code):
    r = run(server, code, language, args=["a"])
    assert data(r)["exitCode"] == 0 and text(r).startswith("hi"), r
    assert data(r)["sandboxed"] is True


def test_files_and_input(server):
    r = run(server, "cat in/put.txt; cat", files=[{"path": "in/put.txt", "content": "given\n"}], stdin="typed\n")
    assert text(r) == "given\ntyped\n", r
    server.box.write("ws/long.txt", "one\ntwo\n")
    r = server.tool("execute_file", language="python", path="long.txt", code="print(len(FILE_CONTENT.split()))")
    assert text(r) == "2\n", r


def test_confined(server):
    secret = server.box.write("secret/key", "SECRET")
    r = run(server, f"echo x > {server.box.home}/out; cat ~/.ssh/id; echo done")
    assert "denied write" in text(r) and not (server.box.home / "out").exists(), r
    assert secret.read_text() == "SECRET"


def test_nothing_is_left(box, serve):
    tmp = box.mkdir("tmp")
    s = serve(box, "--backend", "landlock", env={"TMPDIR": str(tmp)})
    assert text(run(s, "touch $TMPDIR/f; echo $TMPDIR", "shell")).startswith(str(tmp))
    assert not [*tmp.iterdir()]
