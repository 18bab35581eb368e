# SPDX-License-Identifier: Apache-2.0
"""Servers inside the sandbox. serve.py HOW ADDRESS PORT [ADDRESS PORT ...]; says "up" on standard
output when it listens everywhere.

    echo   sends back all it gets, until its client is done; then ends the connection
    once   sends 3,000,000 bytes to the first client and ends, with everything
    hold   accepts and never reads
"""
import os
import selectors
import socket
import sys
import threading

how, where = sys.argv[1], list(zip(sys.argv[2::2], map(int, sys.argv[3::2])))


def echo(conn):
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    while data := conn.recv(65536):
        conn.sendall(data)
    conn.close()


def once(conn):
    conn.sendall(b"x" * 3_000_000)
    os._exit(0)


held = []
serve = {"echo": echo, "once": once, "hold": held.append}[how]
poll = selectors.DefaultSelector()
for address, port in where:
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    s.listen(1024)
    poll.register(s, selectors.EVENT_READ)
print("up", flush=True)
while True:
    for key, _ in poll.select():
        conn, _ = key.fileobj.accept()
        threading.Thread(target=serve, args=(conn,), daemon=True).start()
