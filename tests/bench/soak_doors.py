"""How the soak test's clients ask: over HTTP or gRPC, one attempt at a time; nothing is retried here."""

from __future__ import annotations

import http.client
import importlib
import json
import os
import select
import urllib.parse
from dataclasses import dataclass
from typing import Any, Protocol

_ATTEMPT_SECONDS_MAX = 180.0


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


class Contracts:
    """Messages of a service as it describes them itself, by gRPC's reflection: nothing is generated, so no generated
    code can be of another version than protobuf's library here."""

    _REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    _SYMBOL_ASKED = 4  # ServerReflectionRequest.file_containing_symbol
    _FILES_TOLD = 4  # ServerReflectionResponse.file_descriptor_response
    _SECONDS_MAX = 60.0

    def __init__(self, channel: Any, symbol: str) -> None:
        """All that the file of `symbol` needs. Raises grpc.RpcError."""
        name = symbol.encode()
        assert len(name) < 128  # whose length is one byte
        request = bytes((self._SYMBOL_ASKED << 3 | 2, len(name))) + name
        ask = channel.stream_stream(self._REFLECTION)
        answer = next(iter(ask(iter([request]), timeout=self._SECONDS_MAX)))
        # A FileDescriptorResponse has its files where a FileDescriptorSet has them.
        files: Any = importlib.import_module("google.protobuf.descriptor_pb2").FileDescriptorSet
        told = {file.name: file for file in files.FromString(read_field(answer, self._FILES_TOLD)).file}
        self._factory: Any = importlib.import_module("google.protobuf.message_factory")
        self._pool: Any = importlib.import_module("google.protobuf.descriptor_pool").DescriptorPool()
        for name_of_file in list(told):
            self._add(name_of_file, told)

    def message(self, name: str) -> Any:
        """The class of a message."""
        descriptor = self._pool.FindMessageTypeByName(name)
        if hasattr(self._factory, "GetMessageClass"):
            return self._factory.GetMessageClass(descriptor)
        return self._factory.MessageFactory(self._pool).GetPrototype(descriptor)  # before protobuf 4.22

    def _add(self, name: str, told: dict[str, Any]) -> None:
        file = told.pop(name, None)
        if file is None:
            return
        for dependency in file.dependency:
            self._add(dependency, told)
        self._pool.AddSerializedFile(file.SerializeToString())


def read_field(message: bytes, number: int) -> bytes:
    """Of a message in protobuf's wire format that has texts and messages alone: a field's bytes, or none."""
    at = 0
    while at < len(message):
        tag, at = _read_number(message, at)
        size, at = _read_number(message, at)
        if tag == number << 3 | 2:
            return message[at : at + size]
        at += size
    return b""


def _read_number(message: bytes, at: int) -> tuple[int, int]:
    """The number of seven bits a byte that begins there, and where it ends."""
    number = shift = 0
    while True:
        number |= (message[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not message[at - 1] & 0x80:
            return number, at


class GrpcDoor:
    """One channel to a service that is listening. Safe to share between threads."""

    _AGAIN = ("UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "UNKNOWN", "INTERNAL", "CANCELLED")
    _SERVICE = "warpsmith.v1.RewardService"

    def __init__(self, address: Address) -> None:
        os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # we start programs; gRPC need not prepare for forks
        self._grpc: Any = importlib.import_module("grpc")
        self._json: Any = importlib.import_module("google.protobuf.json_format")
        options = [("grpc.max_reconnect_backoff_ms", 1000), ("grpc.use_local_subchannel_pool", 1)]
        channel = self._grpc.insecure_channel(address.socket, options=options)
        contracts = Contracts(channel, self._SERVICE)
        self._request: Any = contracts.message("warpsmith.v1.GradeRequest")
        self._grade: Any = channel.unary_unary(
            f"/{self._SERVICE}/Grade",
            request_serializer=self._request.SerializeToString,
            response_deserializer=contracts.message("warpsmith.v1.GradeResponse").FromString,
        )

    def grade(self, message: dict[str, Any], hang_up_after: float | None) -> dict[str, Any]:
        request = self._json.ParseDict(message, self._request())
        call = self._grade.future(request, timeout=_ATTEMPT_SECONDS_MAX)
        try:
            response = call.result(timeout=hang_up_after)
        except self._grpc.FutureTimeoutError:
            call.cancel()
            raise HungUp from None
        except self._grpc.RpcError as error:
            name = error.code().name
            raise Failure(f"gRPC {name}", again=name in self._AGAIN) from None
        return self._json.MessageToDict(response.grade)
