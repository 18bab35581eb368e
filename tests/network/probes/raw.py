# SPDX-License-Identifier: Apache-2.0
"""One attempt over a socket, in words the tests choose. Prints what came back.

    raw.py tcp HOST PORT [FLAG...]   send standard input; flags: mptcp, fastopen, tls=NAME, hold
    raw.py udp HOST PORT             one datagram, one answer
    raw.py socks NAME PORT           CONNECT by SOCKS5 at 127.0.0.1:1080, then as tcp
"""
import os
import socket
import ssl
import struct
import sys

how, host, port, *flags = sys.argv[1:]
port, data = int(port), sys.stdin.buffer.read()
options = dict(f.partition("=")[::2] for f in flags)


def read_all(s):
    s.settimeout(float(options.get("wait", 3)))
    try:
        while more := s.recv(65536):
            sys.stdout.buffer.write(more)
            sys.stdout.flush()
    except OSError as e:
        print(f"[{e}]")


def connect():
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    protocol = 262 if "mptcp" in options else 0
    where = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0][4]
    s = socket.socket(family, socket.SOCK_STREAM, protocol)
    s.settimeout(5)
    if "fastopen" in options:
        s.sendto(data, socket.MSG_FASTOPEN, where)
        return s, b""
    s.connect(where)
    return s, data


def socks():
    s = socket.create_connection(("127.0.0.1", 1080), timeout=5)
    name = host.encode("latin1").decode("unicode_escape").encode("latin1")
    s.sendall(b"\5\1\0")
    s.recv(2)
    s.sendall(b"\5\1\0\3" + bytes([len(name)]) + name + struct.pack(">H", port))
    status = s.recv(10)[1:2]
    if status != b"\0":
        sys.exit(f"socks {status!r}")
    return s, data


try:
    if how == "udp":
        s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.settimeout(0.3)
        s.sendto(data, (host, port))
        sys.stdout.buffer.write(s.recv(4096))
    else:
        s, rest = socks() if how == "socks" else connect()
        if "tls" in options:
            context = ssl._create_unverified_context()
            s = context.wrap_socket(s, server_hostname=options["tls"] or None)
        s.sendall(rest)
        read_all(s)
except OSError as e:
    sys.exit(f"{os.path.basename(sys.argv[0])}: {e}")
