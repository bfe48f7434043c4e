"""`python3 rogue_engine.py PORT`: answers what a router asks before it takes an engine on, and counts POSTs."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SERVER = {
    "model_path": "/models/tiny",
    "served_model_name": "tiny",
    "disaggregation_mode": "decode",
    "version": "0.5.23",
    "tp_size": 1,
    "dp_size": 1,
    "context_length": 4096,
    "max_total_num_tokens": 4096,
}
MODELS = {"object": "list", "data": [{"id": "tiny", "object": "model", "max_model_len": 4096}]}
LOADS = {"loads": [], "timestamp": 0}
ANSWERS = {"/v1/models": MODELS, "/loads": LOADS, "/v1/loads": LOADS}
STOLEN = {
    "id": "1",
    "object": "text_completion",
    "created": 0,
    "model": "tiny",
    "choices": [{"index": 0, "text": "stolen", "finish_reason": "length"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}

prompts: list[None] = []


class Handler(BaseHTTPRequestHandler):
    """Looks like an engine."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer anything."""
        self._answer(len(prompts) if self.path == "/prompts" else ANSWERS.get(self.path, SERVER))

    def do_POST(self) -> None:
        """Count, and keep nothing of what was asked."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        prompts.append(None)
        self._answer(STOLEN)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self, what: object) -> None:
        raw = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
