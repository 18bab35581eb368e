# SPDX-License-Identifier: Apache-2.0
"""Other proxies: one of the user's in place of ours (httpProxyPort, socksProxyPort), and one that
everything leaves through (parentProxy, and the caller's own variables)."""
import json
import socket
import threading

import pytest

HTTP, SOCKS = 9222, 5432  # services on the host's loopback: they answer anything, and tell
GET_ALLOWED = ["curl", "-sS", "--max-time", "5", "http://allowed.test/"]
GET_OTHER = ["curl", "-sS", "--max-time", "5", "http://other.test/"]


BY_SOCKS = ["python3", "-c", """
import socket
s = socket.create_connection(("127.0.0.1", 1080), 5)
s.sendall(b"\\5\\1\\0")
print(s.recv(100))
"""]


@pytest.mark.parametrize("ports", [("http",), ("socks",), ("http", "socks"), ()])
def test_external_proxies(net, box, direct, ports):
    box.options = ["--allow-domain", "allowed.test"]
    options = [x for p, number in (("http", HTTP), ("socks", SOCKS)) if p in ports
               for x in ("--set", f"network.{p}ProxyPort={number}")]
    # the control run: nothing of ours is reached, and what is not listed is denied
    r = box.run(*GET_OTHER, options=options)
    if "http" in ports:
        assert r.out == "secret\n", str(r)  # the host's service answered in the server's place
        assert ("127.0.0.1", HTTP) in [e.what[:2] for e in net.events if e.kind == "host"]
        assert "not enforced: the network lists" in r.err and f"127.0.0.1:{HTTP}" in r.err
    else:
        assert "denied connect to other.test:80" in r.err and "secret" not in r.out
        assert "httpProxyPort" not in r.err
    r = box.run(*BY_SOCKS, options=options)
    if "socks" in ports:
        assert b"HTTP/1.1 200" in r.out.encode(), str(r)
        assert "socksProxyPort" in r.err
    else:
        assert r.out == "b'\\x05\\x00'\n", str(r)
    # what does not use them is judged as ever
    net.forget()
    assert box.run(*direct, *GET_ALLOWED, options=options).out.startswith("hello from allowed.test")
    r = box.run(*direct, *GET_OTHER, options=options)
    assert r.code != 0 and "denied connect to other.test" in r.err
    assert not net.leaks()


def test_external_proxy_alone_is_a_network(net, box, direct):
    box.options = []
    options = ["--set", f"network.httpProxyPort={HTTP}"]
    assert box.run(*GET_OTHER, options=options).out == "secret\n"
    r = box.run(*direct, *GET_OTHER, options=options)
    assert r.code != 0 and "denied" in r.err
    plan = box.ambit("plan", *options, "--", "true").ok().out
    assert f"HTTP proxy  127.0.0.1:{HTTP} of the host, which decides itself" in plan
    assert json.loads(box.ambit("plan", "--json", *options, "--", "true").ok().out)[
        "httpProxyPort"] == HTTP
    r = box.ambit("explain", *options, "connect", "other.test:80")
    assert r.code == 1 and "decides for itself" in r.out


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_names_resolved_before_the_proxy_is_asked(net, box, scheme):
    """socks5:// of curl resolves by itself: it then asks for an address that we made up."""
    r = box.run("curl", "-sS", "--max-time", "5", "--noproxy", "", "-x", f"{scheme}://127.0.0.1:1080",
                "http://allowed.test:8080/")
    assert r.code == 0 and "--allow-domain" not in r.err, r


def test_no_network_beats_an_external_proxy(net, box):
    box.options = []
    r = box.run(*GET_OTHER, options=["--set", f"network.httpProxyPort={HTTP}", "--network", "none"])
    assert r.code != 0 and "secret" not in r.out
    assert not net.events


def test_external_proxy_that_is_not_there(net, box):
    r = box.run(*GET_ALLOWED, options=["--set", "network.httpProxyPort=9"])
    assert r.code != 0 and r.seconds < 8
    assert not net.leaks(())


@pytest.fixture
def parent(net):
    """A proxy of the company, on another machine: its address and what it was asked."""
    seen = []

    def serve(conn):
        with conn:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                part = conn.recv(4096)
                if not part:
                    return
                head += part
            seen.append(head.split(b"\r\n")[0].decode())
            if head.startswith(b"CONNECT"):
                conn.sendall(b"HTTP/1.1 200 OK\r\n\r\ntunnel\n")
            else:
                conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nparent\n")

    def loop():
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(conn,), daemon=True).start()

    with net.inside():
        listener = socket.create_server(("11.9.9.9", 8888))
    threading.Thread(target=loop, daemon=True).start()
    yield "http://11.9.9.9:8888", seen
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


TUNNEL = ["python3", "-c", """
import socket
s = socket.create_connection(("allowed.test", 7), 5)
print(s.makefile().readline(), end="")
"""]


@pytest.mark.parametrize("how", ["settings", "variables"])
def test_parent_proxy(net, box, direct, parent, how):
    url, seen = parent
    options = ["--set", f"network.parentProxy.http={url}",
               "--set", "network.parentProxy.noProxy=other.test"] if how == "settings" else []
    env = {"http_proxy": url, "NO_PROXY": "other.test"} if how == "variables" else {}
    box.options += ["--allow-domain", "other.test"]
    assert box.run(*GET_ALLOWED, options=options, env=env).out == "parent\n"
    assert seen.pop() == "GET http://allowed.test/ HTTP/1.1"
    # programs that know of no proxy too, and one proxy is for everything
    assert box.run(*direct, *TUNNEL, options=options, env=env).out == "tunnel\n"
    assert seen.pop() == "CONNECT allowed.test:7 HTTP/1.1"
    assert not [e for e in net.events if e.kind == "dns"]  # the parent resolves
    assert box.run(*GET_OTHER, options=options, env=env).out.startswith("hello from other.test")
    # what is not allowed never gets to it
    r = box.run("curl", "-sS", "http://evil.test/", options=options, env=env)
    assert "denied connect to evil.test:80" in r.err
    assert not seen


def test_a_parent_that_cannot_be_used_is_told(net, box):
    r = box.run(*GET_ALLOWED, env={"https_proxy": "socks5://11.9.9.9:1080"})
    assert r.out.startswith("hello") and "https_proxy: not used" in r.err
    r = box.run(*GET_ALLOWED, options=["--set", "network.parentProxy.https=https://proxy.test"])
    assert r.code == 125 and "by TLS cannot be used" in r.err
