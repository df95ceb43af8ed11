"""The HTTP door of a reward service that answers by rule, for tests of what stands before it."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, Any]


class FakeRewardDoor:
    """A door that answers by rule: a function of the requests of a POST; encrypted where `context` says how."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.posts: list[list[dict[str, Any]]] = []
        self.rule: Callable[[list[dict[str, Any]]], Reply] = lambda requests: (200, graded(requests))
        self.headers: list[dict[str, str]] = []
        door = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                requests = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["requests"]
                door.posts.append(requests)
                door.headers.append(dict(self.headers))
                status, body = door.rule(requests)
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            # Without a handshake in accept(): one caller's would hold up all others.
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.server.server_port}"


def grade_of(request: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"requestId": request["requestId"], "verdict": "VERDICT_CORRECT", "reward": {"value": 2.5}, **changes}


def graded(requests: list[dict[str, Any]]) -> dict[str, Any]:
    return {"responses": [{"requestId": r["requestId"], "grade": grade_of(r)} for r in requests]}
