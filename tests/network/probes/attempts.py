# SPDX-License-Identifier: Apache-2.0
"""Attempts over sockets, all at once. Standard input: a JSON list of objects, output: the list of
what came back for each, as text ("[...]" is an error).

    how    tcp, udp, socks (host and port are asked for at 127.0.0.1:1080)
    host, port, data (latin1), wait (seconds without an answer)
    tls    a server name, or "" for none; mptcp, fastopen: true; family: 6 for a name's IPv6
    then   a list of what to send after data, each a moment later
"""
import json
import socket
import ssl
import struct
import sys
import threading
import time


def family(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def connect(a, data):
    kind = socket.AF_INET6 if a.get("family") == 6 else family(a["host"])
    where = socket.getaddrinfo(a["host"], a["port"], kind, socket.SOCK_STREAM)[0][4]
    s = socket.socket(kind, socket.SOCK_STREAM, 262 if a.get("mptcp") else 0)
    s.settimeout(None if a.get("fastopen") else 5)
    if a.get("fastopen"):
        s.sendto(data, socket.MSG_FASTOPEN, where)
        return s, b""
    s.connect(where)
    return s, data


def by_socks(a, data):
    s = socket.create_connection(("127.0.0.1", 1080), timeout=5)
    name = a["host"].encode("latin1")
    s.sendall(b"\5\1\0")
    s.recv(2)
    s.sendall(b"\5\1\0\3" + bytes([len(name)]) + name + struct.pack(">H", a["port"]))
    status = s.recv(10)[1:2]
    if status != b"\0":
        raise OSError(f"socks {status!r}")
    return s, data


def stream(a, data, got):
    s, rest = by_socks(a, data) if a["how"] == "socks" else connect(a, data)
    if "tls" in a:
        s = ssl._create_unverified_context().wrap_socket(s, server_hostname=a["tls"] or None)
    s.sendall(rest)
    s.settimeout(a.get("wait", 0.4))
    for piece in a.get("then", ()):
        time.sleep(0.02)
        s.sendall(piece.encode("latin1"))
    while more := s.recv(65536):
        got.append(more)


def datagram(a, data, got):
    s = socket.socket(family(a["host"]), socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.settimeout(a.get("wait", 0.4))
    s.sendto(data, (a["host"], a["port"]))
    got.append(s.recv(4096))


def attempt(a, results, i):
    got = []
    try:
        (datagram if a["how"] == "udp" else stream)(a, a.get("data", "").encode("latin1"), got)
    except TimeoutError:
        pass
    except (OSError, ValueError) as e:
        got.append(f"[{e}]".encode())
    results[i] = b"".join(got).decode("latin1")


attempts = json.load(sys.stdin)
results = [None] * len(attempts)
threads = [threading.Thread(target=attempt, args=(a, results, i)) for i, a in enumerate(attempts)]
for t in threads:
    t.start()
for t in threads:
    t.join()
json.dump(results, sys.stdout)
