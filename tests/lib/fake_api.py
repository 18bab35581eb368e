# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the Anthropic Messages API on loopback: answers turn by turn from a script.

    python3 fake_api.py PORT SCRIPT LOG

SCRIPT is a JSON list of content blocks ({"type": "text", "text": ...} or {"type": "tool_use",
"name": ..., "input": ...}), one per turn; LOG gets the last message of every request, a line each.
"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    turn = 0

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD

    def event(self, kind, **fields):
        data = json.dumps({"type": kind, **fields})
        self.wfile.write(f"event: {kind}\ndata: {data}\n\n".encode())

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open(sys.argv[3], "a", encoding="utf-8") as log:
            log.write(json.dumps({"path": self.path, "last": (body.get("messages") or [None])[-1]}) + "\n")
        script = json.load(open(sys.argv[2], encoding="utf-8"))
        block = script[min(Handler.turn, len(script) - 1)]
        Handler.turn += 1
        tool = block["type"] == "tool_use"
        start = {"type": "tool_use", "id": f"toolu_{Handler.turn}", "name": block.get("name"),
                 "input": {}} if tool else {"type": "text", "text": ""}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block.get("input"))} \
            if tool else {"type": "text_delta", "text": block.get("text")}
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.event("message_start", message={
            "id": f"msg_{Handler.turn}", "type": "message", "role": "assistant",
            "model": body.get("model"), "content": [], "stop_reason": None, "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1}})
        self.event("content_block_start", index=0, content_block=start)
        self.event("content_block_delta", index=0, delta=delta)
        self.event("content_block_stop", index=0)
        self.event("message_delta", delta={"stop_reason": "tool_use" if tool else "end_turn",
                                           "stop_sequence": None}, usage={"output_tokens": 5})
        self.event("message_stop")


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
