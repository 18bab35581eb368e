# SPDX-License-Identifier: Apache-2.0
"""I1: unix sockets of the host, reached by deceiving whoever judges connect(2)."""
import contextlib
import socket
import threading
import time

import pytest

from ambit_test import SLOW


@contextlib.contextmanager
def listener(path):
    """A socket of the host; yields the list of what was said to it."""
    heard, stop = [], threading.Event()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
        path.chmod(0o777)
        s.listen(4096)
        s.settimeout(0.05)

        def serve():
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    conn, _ = s.accept()
                    conn.settimeout(1)
                    heard.append(conn.recv(16))
                    conn.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield heard
        finally:
            stop.set()
            thread.join()
            path.unlink()


@pytest.mark.parametrize("what", ["address", "descriptor"])
def test_dial_race(box, probe, what):
    """The address (or the descriptor) is that of an internet socket when it is looked at, and
    that of a socket of the host when it is used."""
    path = box.home / "agent.sock"
    with listener(path) as heard:
        r = box.run(probe, "dial", path, what, "700").ok()
        tries, _, refused, _ = r.out.replace(",", "").split()
        assert int(tries) > 100 / SLOW and int(refused) > 0, r
        assert heard == [], f"{len(heard)} of {tries} got through"
        for _ in range(10):  # a race: on a busy machine one go may lose every time
            box.host(probe, "dial", path, what, "300").ok()
            if b"EVIL" in heard:
                return
    pytest.fail("the control run failed")


TALK = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.send(b'EVIL')"


def test_planted_link_to_a_socket(box):
    """A rule names a socket in the project; an earlier run put a link to another one in its place."""
    path = box.home / "agent.sock"
    talk = ["/usr/bin/python3", "-c", TALK]
    with listener(path) as heard:
        box.run("ln", "-s", "../agent.sock", "app.sock").ok()
        for to in (path, "app.sock"):
            box.run(*talk, to, options=["--allow-unix", "app.sock"])
        time.sleep(0.2)
        assert heard == []
        box.run(*talk, path, options=["--allow-unix", path]).ok()
        deadline = time.monotonic() + 10
        while not heard and time.monotonic() < deadline:
            time.sleep(0.05)
        assert heard == [b"EVIL"], "the control run failed"
