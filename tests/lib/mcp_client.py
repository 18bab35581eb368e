# SPDX-License-Identifier: Apache-2.0
"""A small MCP client over pipes, for tests and bench/mcp: says exactly what it is told to.

    with Server(argv, **popen_arguments) as s:
        s.initialize()
        result = s.tool("execute", language="shell", code="echo hi")     # the result object
        s.send_line(b"not json")                                         # anything at all
        message = s.next()                                               # the next message
"""
import json
import os
import queue
import subprocess
import threading
import time

META = "io.modelcontextprotocol/"
MODERN = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {},
          META + "clientInfo": {"name": "test", "version": "1"}}


class Closed(Exception):
    """The server has closed its output."""


class RpcError(Exception):
    def __init__(self, error):
        super().__init__(json.dumps(error))
        self.code, self.message, self.data = error["code"], error["message"], error.get("data")


class Server:
    def __init__(self, argv, popen=subprocess.Popen, timeout=60, **kw):
        self.timeout = timeout
        self.process = popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, **kw)
        self.notifications, self.early = [], {}
        self.last_id = 0
        self.lines = queue.Queue()
        self.stderr = b""
        self.threads = [threading.Thread(target=f, daemon=True)
                        for f in (self._read_out, self._read_err)]
        for t in self.threads:
            t.start()

    def _read_out(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _read_err(self):
        while data := os.read(self.process.stderr.fileno(), 65536):
            self.stderr += data

    # sending
    def send_line(self, data):
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def send(self, message):
        self.send_line(json.dumps(message).encode())

    def notify(self, method, **params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def start(self, method, params=None, id=None):
        """Send a request; its id."""
        if id is None:
            self.last_id += 1
            id = self.last_id
        self.send({"jsonrpc": "2.0", "id": id, "method": method,
                   **({} if params is None else {"params": params})})
        return id

    # hearing
    def next_line(self, timeout=None):
        try:
            line = self.lines.get(timeout=timeout or self.timeout)
        except queue.Empty:
            raise TimeoutError(f"no answer; stderr: {self.stderr!r}") from None
        if line is None:
            self.lines.put(None)
            raise Closed(f"server closed; stderr: {self.stderr!r}")
        return line

    def next(self, timeout=None):
        line = self.next_line(timeout)
        assert line.endswith(b"\n") and b"\r" not in line
        return json.loads(line)

    def reply(self, id, timeout=None):
        """The reply to this id; notifications are kept aside."""
        while id not in self.early:
            m = self.next(timeout)
            if "method" in m:
                self.notifications.append((time.monotonic(), m))
            else:
                self.early[m.get("id")] = m
        m = self.early.pop(id)
        assert m["jsonrpc"] == "2.0" and ("result" in m) != ("error" in m), m
        if "error" in m:
            raise RpcError(m["error"])
        return m["result"]

    def ask(self, method, params=None, timeout=None):
        return self.reply(self.start(method, params), timeout)

    def modern(self, method, timeout=None, meta=None, **params):
        return self.ask(method, {"_meta": {**MODERN, **(meta or {})}, **params}, timeout)

    def initialize(self, version="2025-11-25"):
        result = self.ask("initialize", {"protocolVersion": version, "capabilities": {},
                                         "clientInfo": {"name": "test", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def start_tool(self, name, /, meta=None, **arguments):
        return self.start("tools/call", {"name": name, "arguments": arguments,
                                         **({"_meta": meta} if meta else {})})

    def tool(self, name, /, **arguments):
        return self.reply(self.start_tool(name, **arguments))

    # ending
    def close(self):
        """Close its input; the exit status."""
        self.process.stdin.close()
        return self.process.wait(self.timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._close(self.process.stdin)  # the server may be behind somebody else who was killed
        for t in self.threads:  # a number that is closed under their hands may be another file's
            t.join(5)
        self._close(self.process.stdout, self.process.stderr)

    @staticmethod
    def _close(*files):
        for f in files:
            try:
                f.close()
            except OSError:
                pass


def text(result):
    return result["content"][0]["text"]
