"""An OpenAI-compatible endpoint that answers by a script: well, badly, late, or not at all."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIMENSIONS = ("anti_hacking", "engineering", "operator_coverage", "skill_compliance")
_HANG_SECONDS_MAX = 60

# Writes one answer to a request.
Answer = Callable[["_Handler"], None]


def text(content: str) -> Answer:
    """A completion with this text in its message."""
    return body(json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}))


def scores(score: int, reason: str = "seen") -> Answer:
    """A well-formed opinion with the same score for each dimension."""
    return text(json.dumps({name: {"score": score, "reason": reason} for name in DIMENSIONS}))


def body(content: str, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """Any answer of HTTP."""

    def answer(handler: _Handler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(content.encode())), **(headers or {})}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content.encode())

    return answer


def hang(handler: _Handler) -> None:
    """No answer, until the endpoint is closed."""
    handler.endpoint.closing.wait(_HANG_SECONDS_MAX)


def close_early(handler: _Handler) -> None:
    """The beginning of an answer, then the end of the connection."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True


@dataclass
class FakeChatEndpoint:
    """What the endpoint was asked, and what it will answer."""

    url: str
    # The answers to the next requests, in turn; without any left `otherwise`.
    script: deque[Answer] = field(default_factory=deque)
    otherwise: Answer = field(default_factory=lambda: scores(5))
    # Path, headers in lower case and JSON of each request.
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def prompts(self) -> list[str]:
        """Both messages of each request."""
        return ["\n".join(m["content"] for m in request["messages"]) for _, _, request in self.requests]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    endpoint: FakeChatEndpoint

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.endpoint.requests.append((self.path, headers, asked))
        answer = self.endpoint.script.popleft() if self.endpoint.script else self.endpoint.otherwise
        answer(self)

    def do_GET(self) -> None:
        self.endpoint.requests.append((self.path, {}, None))
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def fake_chat_endpoint() -> Iterator[FakeChatEndpoint]:
    """Serves on a free port of this machine."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    endpoint = FakeChatEndpoint(f"http://127.0.0.1:{server.server_address[1]}/v1")
    handler.endpoint = endpoint  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
