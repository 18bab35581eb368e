# SPDX-License-Identifier: Apache-2.0
"""ambit-proxy by itself: several sandboxes at one proxy, and questions about hosts that no rule
covers."""
import os
import select
import socket
import threading
import time

import pytest

from ambit_test import wait_until
from proxy_program import (  # noqa: F401
    BASE, TIMEOUT, UP, all_of, ask, client, client_hello, connect_through, dns_ask, echo_server,
    get, http_server, is_reset, query, read_body, read_head, resolve, serve, start, tls_port,
)


# --- owners -------------------------------------------------------------------------

def test_records_name_their_owner(start, serve):
    up = serve(http_server)
    p = start("allow web.test\n")
    one, two = p.listen("listener http 1"), p.listen("listener http 2")
    assert ask(one, get(f"http://web.test:{up.port}/"))[0] == 200
    assert ask(two, get("http://evil.test/"))[0] == 403
    assert p.record(verdict="allow")["owner"] == 1
    assert p.record(verdict="deny")["owner"] == 2
    at = p.listen("listener dns-udp 7", kind=socket.SOCK_DGRAM)
    assert dns_ask(at, query("evil.test"))[3] & 15 == 3
    assert p.record(via="dns")["owner"] == 7
    p.listen(f"forward {UP}:{up.port} 9")
    with client(p.listeners[-1].getsockname()) as s:
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
    assert p.record(via="forward")["owner"] == 9


def test_dropping_one_leaves_the_others(start, serve):
    up = serve(echo_server)
    p = start("allow web.test\n")
    one, two = p.listen("listener http 1"), p.listen("listener http 2")
    a, b = connect_through(one, "web.test", up.port), connect_through(two, "web.test", up.port)
    for s in a, b:
        s.sendall(b"x")
        assert s.recv(1) == b"x"
    p.send("drop 1")
    p.record(kind="gone", owner=1)
    assert all_of(a) == b""
    assert p.record(owner=1, kind="connect")["sent"] == 1  # written before it was gone
    p.listeners[0].close()
    with pytest.raises(ConnectionRefusedError):
        client(one)
    b.sendall(b"y")
    assert b.recv(1) == b"y"
    connect_through(two, "web.test", up.port).close()
    # gone is gone, and can come back
    p.send("drop 1")
    p.record(kind="gone", owner=1)
    connect_through(p.listen("listener http 1"), "web.test", up.port).close()
    a.close()
    b.close()


def test_what_is_on_its_way_arrives_before_the_owner_is_gone(start, serve):
    got, go = [], threading.Event()

    def slow(_, conn):
        go.wait(TIMEOUT)
        while data := conn.recv(65536):
            got.append(data)

    up = serve(slow)
    p = start("allow web.test\n")
    s = connect_through(p.listen("listener http 1"), "web.test", up.port)
    data = os.urandom(64 << 20)
    s.setblocking(False)
    sent = 0
    while sent < len(data) and select.select([], [s], [], 0.1)[1]:
        sent += s.send(data[sent:sent + 65536])
    assert sent < len(data)  # somebody holds it back
    s.close()
    p.send("drop 1")
    time.sleep(0.1)
    go.set()
    p.record(kind="gone", owner=1)
    assert wait_until(lambda: sum(map(len, got)) == sent, 5), (sum(map(len, got)), sent)
    assert b"".join(got) == data[:sent]


def test_a_stalled_server_does_not_keep_the_owner(start, serve):
    up = serve(lambda _, conn: time.sleep(10))
    p = start("allow web.test\n")
    s = connect_through(p.listen("listener http 1"), "web.test", up.port)
    s.setblocking(False)
    while select.select([], [s], [], 0.2)[1]:
        s.send(b"x" * 65536)
    began = time.monotonic()
    p.send("drop 1")
    p.record(kind="gone", owner=1)
    assert 0.5 < time.monotonic() - began < 8
    s.close()


def test_names_of_one_are_nothing_to_the_other(start, serve):
    up = serve(echo_server)
    p = start("allow web.test\nallow other.test\n")
    one = p.listen("listener dns-udp 1", kind=socket.SOCK_DGRAM)
    two = p.listen("listener dns-udp 2", kind=socket.SOCK_DGRAM)
    address = socket.inet_ntoa(dns_ask(one, query("web.test"))[-4:])
    p.listen("listener transparent 2", address, up.port)
    assert is_reset((address, up.port))
    assert "no name" in p.record(verdict="deny", owner=2)["reason"]
    reverse = ".".join(reversed(address.split("."))) + ".in-addr.arpa"
    assert b"web" in dns_ask(one, query(reverse, 12))
    assert dns_ask(two, query(reverse, 12))[3] & 15 == 3
    # the same address is another name to the other
    assert socket.inet_ntoa(dns_ask(two, query("other.test"))[-4:]) == address
    with client((address, up.port)) as s:
        s.sendall(b"x")
        assert s.recv(1) == b"x"
    assert p.record(owner=2, verdict="allow")["host"] == "other.test"


def test_one_cannot_take_all_connections(start, serve):
    up = serve(echo_server)
    p = start("allow web.test\n", files=512)
    one, two = p.listen("listener http 1"), p.listen("listener http 2")
    greedy = [client(one) for _ in range(300)]
    for s in greedy:
        s.sendall(f"CONNECT web.test:{up.port} HTTP/1.1\r\nHost: web.test:{up.port}\r\n\r\n".encode())
    time.sleep(0.5)
    connect_through(two, "web.test", up.port).close()
    for s in greedy:
        s.close()
    connect_through(one, "web.test", up.port).close()


# --- questions ------------------------------------------------------------------------

def started(at, request):
    s = client(at)
    s.sendall(request)
    return s


def connect_request(name, port):
    return f"CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n".encode()


def is_silent(s, seconds=0.15):
    return not select.select([s], [], [], seconds)[0]


def answer_to(s):
    f = s.makefile("rb")
    head = read_head(f)
    return int(head.split()[1]), read_body(f, head) if b" 200 Conn" not in head else b""


@pytest.mark.parametrize("word,status,again", [
    ("allow-once", 200, "asked"), ("allow-run", 200, 200), ("deny", 403, "asked"),
    ("deny-run", 403, 403)])
def test_answers(start, serve, word, status, again):
    up = serve(echo_server)
    p = start("ask 60000\nallow other.test\n")
    at = p.listen("listener http 3")
    with started(at, connect_request("Web.Test", up.port)) as s:
        q = p.record(kind="ask")
        assert (q["owner"], q["host"], q["port"], q["via"]) == (3, "web.test", up.port, "connect")
        assert is_silent(s) and up.accepted == 0
        p.send(f"answer {q['id']} {word}")
        got, body = answer_to(s)
        assert got == status
        if status == 403:
            assert b"refused when asked" in body
        else:
            s.sendall(b"through")
            assert s.recv(10) == b"through"
    r = p.record(kind="connect")
    assert r["verdict"] == ("allow" if status == 200 else "deny")
    assert "asked" in r["rule" if status == 200 else "reason"]
    with started(at, connect_request("web.test", up.port)) as s:
        if again == "asked":
            assert p.record(kind="ask")["id"] != q["id"]
        else:
            assert answer_to(s)[0] == again
    # neither another port, nor another sandbox
    for where, port in (at, up.port + 1), (p.listen("listener http 4"), up.port):
        with started(where, connect_request("web.test", port)):
            p.record(kind="ask", port=port)


def test_one_question_for_many_connections(start, serve):
    up = serve(http_server)
    p = start("ask 60000\n")
    at = p.listen("listener http")
    many = [started(at, get(f"http://web.test:{up.port}/{i}")) for i in range(20)]
    q = p.record(kind="ask")
    assert all(map(is_silent, many[:2]))
    p.send(f"answer {q['id']} allow-once")
    for i, s in enumerate(many):
        status, body = answer_to(s)
        assert status == 200 and b"GET /%d " % i in body
        # the next request on the same connection belongs to it
        s.sendall(get(f"http://web.test:{up.port}/more"))
        assert answer_to(s)[0] == 200
        s.close()
    assert not [r for r in p.drain() if r["kind"] == "ask"]


def test_a_request_after_another_can_be_asked_about(start, serve):
    up = serve(http_server)
    p = start("ask 60000\nallow web.test\n")
    with client(p.listen("listener http")) as s:
        body = b"x" * 100000
        post = (f"POST http://other.test:{up.port}/ HTTP/1.1\r\nHost: other.test:{up.port}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body
        s.sendall(get(f"http://web.test:{up.port}/1") + post)
        f = s.makefile("rb")
        head = read_head(f)
        assert b" 200 " in head and read_body(f, head)
        q = p.record(kind="ask", host="other.test")
        assert is_silent(s)
        p.send(f"answer {q['id']} allow-once")
        head = read_head(f)
        assert b" 200 " in head and read_body(f, head).endswith(body)


def test_socks_is_held(start, serve):
    up = serve(echo_server)
    p = start("ask 60000\n")
    with client(p.listen("listener socks")) as s:
        s.sendall(b"\x05\x01\x00")
        assert s.recv(2) == b"\x05\x00"
        s.sendall(b"\x05\x01\x00\x03\x08web.test" + up.port.to_bytes(2, "big") + b"early")
        q = p.record(kind="ask", via="socks")
        assert is_silent(s)
        p.send(f"answer {q['id']} allow-once")
        assert s.recv(10)[:2] == b"\x05\x00"
        assert s.recv(10) == b"early"
    with client(p.listen("listener socks")) as s:
        s.sendall(b"\x05\x01\x00")
        assert s.recv(2) == b"\x05\x00"
        s.sendall(b"\x05\x01\x00\x03\x08web.test" + up.port.to_bytes(2, "big"))
        p.send(f"answer {p.record(kind='ask', via='socks')['id']} deny")
        assert s.recv(10)[:2] == b"\x05\x02"


def test_captured_connections_get_to_the_question(start, serve):
    """The resolver has an address for names that can be asked about, and asks nobody itself."""
    up, tls = serve(echo_server), tls_port(serve)
    p = start("ask 60000\ndeny evil.test\n")
    at = p.listen("listener dns-udp", kind=socket.SOCK_DGRAM)
    assert dns_ask(at, query("evil.test"))[3] & 15 == 3
    assert not [r for r in p.drain() if r["kind"] == "ask"]
    for server, say in (up, b"opaque"), (tls, client_hello("web.test")):
        address = resolve(p, "web.test")
        p.listen("listener transparent", address, server.port)
        with client((address, server.port)) as s:
            s.sendall(say)
            q = p.record(kind="ask", via="transparent")
            assert (q["host"], q["port"]) == ("web.test", server.port)
            assert is_silent(s) and server.accepted == 0
            p.send(f"answer {q['id']} allow-once")
            assert s.recv(len(say)) == say
    s = client((address, tls.port))
    q = p.record(kind="ask", via="transparent")
    p.send(f"answer {q['id']} deny")
    assert all_of(s) == b"<RST>"
    s.close()
    # another name in the hello is not what was allowed
    s = started((address, tls.port), client_hello("other.test"))
    p.send(f"answer {p.record(kind='ask')['id']} allow-once")
    assert all_of(s) == b"<RST>"
    s.close()


def test_captured_port_80_is_held_by_request(start, serve):
    up = serve(http_server, 80)
    p = start("ask 60000\n")
    address = resolve(p, "web.test")
    p.listen("listener transparent", address, 80)
    with client((address, 80)) as s:
        s.sendall(b"GET /1 HTTP/1.1\r\nHost: web.test\r\n\r\n")
        q = p.record(kind="ask", port=80)
        assert is_silent(s) and up.accepted == 0
        p.send(f"answer {q['id']} allow-once")
        assert answer_to(s)[0] == 200


@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1", "10.1.2.3", "169.254.169.254",
                                  "localhost", "[::1]", "[fd00::1]", "x.localhost"])
def test_what_is_never_asked_about(start, host):
    p = start("ask 60000\ndeny evil.test\n")
    at = p.listen("listener http")
    with started(at, connect_request(host, 443)) as s:
        assert answer_to(s)[0] == 403
    assert not [r for r in p.drain() if r["kind"] == "ask"]


def test_an_answer_does_not_open_special_addresses(start):
    """web.test leads to loopback here, which needs a rule or the switch."""
    p = start("ask 60000\nprivate 0\n")
    at = p.listen("listener http")
    with started(at, connect_request("web.test", 4)) as s:
        p.send(f"answer {p.record(kind='ask')['id']} allow-run")
        status, body = answer_to(s)
        assert status == 403 and b"loopback address" in body


def test_questions_are_bounded(start):
    p = start("ask 60000\n")
    at = p.listen("listener http")
    waiting = [started(at, connect_request(f"n{i}.test", 1)) for i in range(16)]
    assert {p.record(kind="ask")["host"] for _ in waiting} == {f"n{i}.test" for i in range(16)}
    with started(at, connect_request("more.test", 1)) as s:
        status, body = answer_to(s)
        assert status == 403 and b"too many questions" in body
    for s in waiting:
        s.close()


def test_who_hangs_up_is_not_asked_about_any_more(start):
    p = start("ask 60000\n")
    at = p.listen("listener http")
    s = started(at, connect_request("web.test", 1))
    q = p.record(kind="ask")
    s.close()
    assert p.record(kind="unask")["id"] == q["id"]
    p.send(f"answer {q['id']} allow-once")  # too late: nothing happens
    p.send(f"answer {q['id']} perhaps")
    assert "answer" in p.record(kind="error")["reason"]
    with started(at, connect_request("web.test", 1)):
        p.record(kind="ask")
        p.send("drop 0")
        p.record(kind="unask")
        p.record(kind="gone")


def test_a_request_whose_client_has_shut_its_side_is_answered(start, serve):
    """Unlike who wanted a tunnel, it may still read."""
    up = serve(http_server)
    p = start("ask 60000\n")
    with client(p.listen("listener http")) as s:
        s.sendall(b"GET http://web.test")  # so that it is waited for before it is asked about
        time.sleep(0.05)
        s.sendall(f":{up.port}/ HTTP/1.1\r\nHost: web.test:{up.port}\r\n\r\n".encode())
        q = p.record(kind="ask")
        s.shutdown(socket.SHUT_WR)
        time.sleep(0.1)
        assert not [r for r in p.drain() if r["kind"] == "unask"]
        p.send(f"answer {q['id']} allow-once")
        assert b" 200 " in all_of(s)


def test_no_answer_is_a_no(start):
    p = start("ask 4000\n")
    at = p.listen("listener http")
    slow = started(at, connect_request("web.test", 1))
    q = p.record(kind="ask")
    p.config(BASE + "ask 300\n")
    p.sync()
    with started(at, connect_request("other.test", 1)) as s:
        began = time.monotonic()
        status, body = answer_to(s)
        assert status == 403 and b"nobody answered in time" in body
        assert 0.2 < time.monotonic() - began < 3
    assert p.record(kind="unask")["id"] != q["id"]
    assert answer_to(slow)[0] == 403
    assert p.record(kind="unask")["id"] == q["id"]
    slow.close()


def test_waiting_costs_nothing(start, serve):
    """Whatever a client does that is held, or that waits for its server: nothing spins."""
    quiet = serve(lambda _, conn: time.sleep(3))
    p = start(f"ask 60000\nallow other.test:{quiet.port}\n")
    at = p.listen("listener http")
    p.listen("listener transparent", resolve(p, "web.test"), 4321)
    captured = p.listeners[-1].getsockname()
    held = []
    for request, where in ((get("http://web.test:1/"), at), (connect_request("web.test", 2), at),
                           (b"", captured), (get(f"http://other.test:{quiet.port}/"), at),
                           (connect_request("other.test", quiet.port), at)):
        for more in b"", b"x" * 100, b"x" * 100000:
            for half in False, True:
                held.append((client(where), request, more, half))
    time.sleep(0.1)  # they are all waited for
    for s, request, _, _ in held:
        s.sendall(request)
    time.sleep(0.1)
    for s, _, more, half in held:
        s.sendall(more)
        if half:
            s.shutdown(socket.SHUT_WR)

    def ticks():
        return sum(map(int, open(f"/proc/{p.process.pid}/stat").read().split()[13:15]))

    time.sleep(0.5)
    before = ticks()
    time.sleep(1)
    assert ticks() - before < 10  # of 10 ms
    for s, *_ in held:
        s.close()


def test_new_lists_answer_open_questions(start, serve):
    up = serve(echo_server)
    p = start("ask 60000\n")
    at = p.listen("listener http")
    names = "web.test", "evil.test", "other.test"
    held = {n: started(at, connect_request(n, up.port)) for n in names}
    asked = {q["host"]: q["id"] for q in (p.record(kind="ask") for _ in held)}
    p.config(BASE + "ask 60000\nallow web.test\ndeny evil.test no way\n")
    status, _ = answer_to(held["web.test"])
    assert status == 200
    status, body = answer_to(held["evil.test"])
    assert status == 403 and b"no way" in body
    assert is_silent(held["other.test"])
    assert {p.record(kind="unask")["id"] for _ in range(2)} == {asked["web.test"],
                                                               asked["evil.test"]}
    p.config(BASE)  # nobody is asked any more
    assert answer_to(held["other.test"])[0] == 403
    for s in held.values():
        s.close()


def test_answers_hold_against_new_lists_but_not_against_a_deny(start, serve):
    up = serve(echo_server)
    p = start("ask 60000\n")
    at = p.listen("listener http")
    s = started(at, connect_request("web.test", up.port))
    p.send(f"answer {p.record(kind='ask')['id']} allow-once")
    assert answer_to(s)[0] == 200
    p.config(BASE + "ask 60000\nallow other.test\n")
    p.sync()
    s.sendall(b"x")
    assert s.recv(1) == b"x"
    p.config(BASE + "ask 60000\ndeny web.test\n")
    assert all_of(s) == b"<RST>"
    s.close()


def test_a_full_control_socket_means_no(start):
    """A question that cannot be put is a no, not a wait."""
    p = start("ask 60000\n")
    at = p.listen("listener http")
    for i in range(3000):
        with started(at, connect_request("10.0.0.1", 1)) as s:
            assert answer_to(s)[0] == 403
    with started(at, connect_request("web.test", 1)) as s:
        status, body = answer_to(s)
        assert status == 403, body
    p.drain()
    with started(at, connect_request("web.test", 1)):
        p.record(kind="ask")
