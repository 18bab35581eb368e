# SPDX-License-Identifier: Apache-2.0
"""connect(2) in its corners, one line each: the same inside and outside a sandbox."""
import ctypes
import errno
import os
import select
import signal
import socket
import struct
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)


def raw(fd, address, length):
    r = libc.connect(fd, address, length)
    return "0" if r == 0 else errno.errorcode[ctypes.get_errno()]


def code(what):
    try:
        what()
        return "0"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e.errno))


def inet(port, host="127.0.0.1", family=socket.AF_INET):
    return struct.pack("=H", family) + struct.pack(">H", port) + socket.inet_aton(host) + bytes(8)


server = socket.create_server(("127.0.0.1", 0), backlog=64)
port = server.getsockname()[1]
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    closed = s.getsockname()[1]

s = socket.socket()
print("first", code(lambda: s.connect(("127.0.0.1", port))))
print("peer", s.getpeername() == ("127.0.0.1", port), s.getsockname()[0])
print("again", code(lambda: s.connect(("127.0.0.1", port))))
print("unspec", raw(s.fileno(), struct.pack("=H", 0) + bytes(14), 16))
print("reconnect", code(lambda: s.connect(("127.0.0.1", port))))
s.close()

s = socket.socket()
s.setblocking(False)
print("nonblocking", s.connect_ex(("127.0.0.1", port)) in (0, errno.EINPROGRESS))
print("writable", bool(select.select([], [s], [], 5)[1]), s.getsockopt(1, socket.SO_ERROR))
print("nonblocking again", code(lambda: s.connect(("127.0.0.1", port))))
s.close()

s = socket.socket()
print("refused", code(lambda: s.connect(("127.0.0.1", closed))))
print("after refused", code(lambda: s.connect(("127.0.0.1", port))))
s.close()

s = socket.socket()
s.setblocking(False)
e = select.epoll()
e.register(s, select.EPOLLOUT | select.EPOLLIN | select.EPOLLET)
e.poll(0)
s.connect_ex(("127.0.0.1", closed))
found = e.poll(5)
print("edge", bool(found and found[0][1] & select.EPOLLERR),
      errno.errorcode.get(s.getsockopt(1, socket.SO_ERROR)))
s.close()

s = socket.socket()
s.setsockopt(1, socket.SO_SNDTIMEO, struct.pack("ll", 7, 250000))
s.connect(("127.0.0.1", port))
print("time limit", struct.unpack("ll", s.getsockopt(1, socket.SO_SNDTIMEO, 16))[0])
print("flags", s.getblocking(), os.get_blocking(s.fileno()))
s.close()

full = socket.create_server(("127.0.0.1", 0), backlog=0)
where = full.getsockname()
filling = []
for _ in range(8):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(where)
    filling.append(s)
time.sleep(0.05)
s = socket.socket()
s.setsockopt(1, socket.SO_SNDTIMEO, struct.pack("ll", 0, 300000))
start = time.monotonic()
print("full queue", code(lambda: s.connect(where)), 0.2 < time.monotonic() - start < 2)
s.close()

s = socket.socket()
print("short", raw(s.fileno(), inet(port), 8))
print("none", raw(s.fileno(), None, 0), raw(s.fileno(), None, 16))
print("bad pointer", raw(s.fileno(), ctypes.c_void_p(16), 16))
print("negative", raw(s.fileno(), inet(port), -1))
print("huge", raw(s.fileno(), inet(port), 1 << 20))
print("wrong family", raw(s.fileno(), struct.pack("=H", socket.AF_UNIX) + b"x" * 20, 22))
print("longer", raw(s.fileno(), inet(port) + bytes(100), 116))
s.close()
print("bad number", raw(9999, inet(port), 16), raw(-1, inet(port), 16))
r, w = os.pipe()
print("no socket", raw(r, inet(port), 16))

listening = socket.create_server(("127.0.0.1", 0))
print("listening", code(lambda: listening.connect(("127.0.0.1", port))))

six = socket.socket(socket.AF_INET6)
print("mapped", code(lambda: six.connect(("::ffff:127.0.0.1", port))), six.getpeername()[0])
six.close()
six = socket.socket(socket.AF_INET6)
print("six refused", code(lambda: six.connect(("::1", closed))))
six.close()

udp = socket.socket(type=socket.SOCK_DGRAM)
print("udp", code(lambda: udp.connect(("127.0.0.1", closed))), udp.getpeername()[1] == closed)
print("udp unspec", raw(udp.fileno(), struct.pack("=H", 0) + bytes(14), 16))
print("udp again", code(lambda: udp.connect(("127.0.0.1", port))))

a, b = socket.socketpair()
print("pair", raw(a.fileno(), struct.pack("=H", socket.AF_UNIX) + b"\0pair", 7))
u = socket.socket(socket.AF_UNIX)
print("unix missing", code(lambda: u.connect("missing.sock")))
print("unix unspec", raw(u.fileno(), struct.pack("=H", 0), 2))
listener = socket.socket(socket.AF_UNIX)
listener.bind("own.sock")
listener.listen()
print("unix", code(lambda: u.connect("own.sock")), u.getpeername())
print("unix again", code(lambda: u.connect("own.sock")))
os.unlink("own.sock")

results = []


def many():
    for _ in range(20):
        with socket.socket() as s:
            results.append(code(lambda: s.connect(("127.0.0.1", port))))


def drain():
    while True:
        server.accept()[0].close()


threading.Thread(target=drain, daemon=True).start()
threads = [threading.Thread(target=many) for _ in range(10)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("threads", len(results), set(results))

signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
with socket.socket() as s:
    print("signals", code(lambda: s.connect(("127.0.0.1", port))))
signal.setitimer(signal.ITIMER_REAL, 0)
