# SPDX-License-Identifier: Apache-2.0
"""An HTTP front for a stdio MCP server, so that the official conformance suite can be pointed at it.

    python3 http_stdio.py PORT COMMAND...

Legacy clients get a session, and with it a process of their own; a modern request gets one that
lives as long as the request. Messages pass as they are. What belongs to HTTP only (header checks,
origins) is not done here.
"""
import json
import subprocess
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
STATUS = {-32601: 404, -32022: 400, -32700: 400, -32600: 400}
command = []
sessions = {}


class Child:
    def __init__(self):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lock = threading.Lock()

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def modern_child():
    """A server that has seen a modern request: without _meta it then refuses."""
    child = Child()
    child.send({"jsonrpc": "2.0", "id": "era", "method": "server/discover", "params": {"_meta": {
        META + "protocolVersion": MODERN, META + "clientCapabilities": {}}}})
    child.receive()
    return child


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def plain(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.plain(405)

    def do_DELETE(self):
        child = sessions.pop(self.headers.get("Mcp-Session-Id"), None)
        if child:
            child.close()
        self.plain(200 if child else 404)

    def stream(self, child, first, id, session):
        """Everything up to the reply, as events."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        message = first
        while message is not None:
            self.wfile.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
            self.wfile.flush()
            if "method" not in message and message.get("id") == id:
                break
            message = child.receive()
        self.close_connection = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        message = json.loads(body)
        session = self.headers.get("Mcp-Session-Id")
        own = False
        if message.get("method") == "initialize" and self.headers.get(
                "MCP-Protocol-Version") != MODERN:
            session = str(uuid.uuid4())
            child = sessions[session] = Child()
        elif session:
            child = sessions.get(session)
        else:
            child, own = modern_child(), True
        if child is None:
            self.plain(404)
            return
        with child.lock:
            child.send(message)
            if "id" not in message or "method" not in message:
                self.plain(202)
            else:
                first = child.receive()
                error = first.get("error") if first else None
                if own and error and (error["code"] in STATUS or "_meta" in error["message"]):
                    self.plain(STATUS.get(error["code"], 400), json.dumps(first).encode())
                else:
                    self.stream(child, first, message["id"], session)
        if own:
            child.close()


if __name__ == "__main__":
    command = sys.argv[2:]
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.daemon_threads = True
    server.serve_forever()
