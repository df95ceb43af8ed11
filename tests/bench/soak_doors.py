"""How the soak test's clients ask: over HTTP or gRPC, one attempt at a time; nothing is retried here."""

from __future__ import annotations

import http.client
import importlib
import json
import os
import select
import subprocess
import sys
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

_ROOT = Path(__file__).resolve().parents[2]
_ATTEMPT_SECONDS_MAX = 180.0
_FILES = ("task", "grade", "reward_service")


@dataclass(eq=False)
class Failure(Exception):
    """No grade. `again` says whether the same request may be sent again, `delay` how long the service asks to wait."""

    reason: str
    again: bool
    delay: float = 0.0


class HungUp(Exception):
    """The caller hung up before there was an answer, as it meant to."""


class Door(Protocol):
    """Answers one attempt with a Grade in protobuf's JSON; raises Failure or HungUp."""

    def grade(self, message: dict[str, Any], hang_up_after: float | None) -> dict[str, Any]:
        """One attempt."""


@dataclass
class Address:
    """Where the service is at present; it moves when the service is restarted."""

    url: str = ""
    socket: str = ""


class HttpDoor:
    """One connection an attempt. Safe to share between threads."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def grade(self, message: dict[str, Any], hang_up_after: float | None) -> dict[str, Any]:
        place = urllib.parse.urlsplit(self._address.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port or 0, timeout=_ATTEMPT_SECONDS_MAX)
        try:
            connection.request("POST", "/v1/grade", json.dumps(message), {"Content-Type": "application/json"})
            if hang_up_after is not None and not select.select([connection.sock], [], [], hang_up_after)[0]:
                raise HungUp
            response = connection.getresponse()
            return _read(response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            raise Failure(f"HTTP: {type(error).__name__}", again=True) from None
        finally:
            connection.close()


def _read(status: int, body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        raise Failure(f"HTTP {status} without JSON", again=True) from None
    if status == 200:
        return answer
    error = answer.get("error", {})
    reason = f"HTTP {status} {error.get('status', '')}"
    raise Failure(reason, again=status in (429, 503), delay=error.get("retryDelayMs", 0) / 1000)


def compile_protos(folder: Path) -> None:
    """Writes Python modules for the contracts into `folder` and makes them importable."""
    files = [f"warpsmith/v1/{name}.proto" for name in _FILES]
    outputs = [f"--python_out={folder}", f"--grpc_python_out={folder}"]
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", f"-I{_ROOT / 'proto'}", *outputs, *files], check=True, timeout=120
    )
    sys.path.insert(0, str(folder))
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # we start programs; gRPC need not prepare for forks


class GrpcDoor:
    """One channel. Safe to share between threads; compile_protos() comes first."""

    _AGAIN = ("UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "UNKNOWN", "INTERNAL", "CANCELLED")

    def __init__(self, address: Address) -> None:
        self._grpc: Any = importlib.import_module("grpc")
        self._json: Any = importlib.import_module("google.protobuf.json_format")
        self._messages: Any = importlib.import_module("warpsmith.v1.reward_service_pb2")
        stubs: Any = importlib.import_module("warpsmith.v1.reward_service_pb2_grpc")
        options = [("grpc.max_reconnect_backoff_ms", 1000), ("grpc.use_local_subchannel_pool", 1)]
        self._stub: Any = stubs.RewardServiceStub(self._grpc.insecure_channel(address.socket, options=options))

    def grade(self, message: dict[str, Any], hang_up_after: float | None) -> dict[str, Any]:
        request = self._json.ParseDict(message, self._messages.GradeRequest())
        call = self._stub.Grade.future(request, timeout=_ATTEMPT_SECONDS_MAX)
        try:
            response = call.result(timeout=hang_up_after)
        except self._grpc.FutureTimeoutError:
            call.cancel()
            raise HungUp from None
        except self._grpc.RpcError as error:
            name = error.code().name
            raise Failure(f"gRPC {name}", again=name in self._AGAIN) from None
        return self._json.MessageToDict(response.grade)
