# SPDX-License-Identifier: Apache-2.0
"""Does what it is told on standard input, a JSON list a line, and answers a JSON value a line:

    ["open", NAME, PORT]    a connection by name; its number, or the name of the error
    ["say", NUMBER, TEXT]   send TEXT, read an answer; it, "" at the end, or the name of the error
    ["hear", NUMBER]        only read
    ["resolve", NAME]       the first address, or the name of the error
    ["proxy", NAME, PORT]   CONNECT through 127.0.0.1:3128: the status, or the name of the error
    ["fds"]                 open descriptors
"""
import errno
import json
import os
import socket
import sys

connections = []


def open_(name, port):
    connections.append(socket.create_connection((name, port), timeout=8))
    return len(connections) - 1


def hear(number):
    return connections[number].recv(4096).decode()


def say(number, text):
    connections[number].sendall(text.encode())
    return hear(number)


def resolve(name):
    return socket.getaddrinfo(name, 1, type=socket.SOCK_STREAM)[0][4][0]


def proxy(name, port):
    with socket.create_connection(("127.0.0.1", 3128), timeout=8) as s:
        s.sendall(f"CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n".encode())
        return int(s.recv(4096).split()[1])


def fds():
    return sorted(int(n) for n in os.listdir("/proc/self/fd"))


verbs = {"open": open_, "say": say, "hear": hear, "resolve": resolve, "proxy": proxy, "fds": fds}
for line in sys.stdin:
    verb, *rest = json.loads(line)
    try:
        answer = verbs[verb](*rest)
    except socket.gaierror:
        answer = "no such name"
    except TimeoutError:
        answer = "timeout"
    except OSError as e:
        answer = errno.errorcode.get(e.errno, str(e))
    print(json.dumps(answer), flush=True)
