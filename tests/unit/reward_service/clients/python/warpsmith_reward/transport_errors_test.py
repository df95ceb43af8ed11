"""Why a POST has no response, told of services that speak something else than what the URL says."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from warpsmith_reward import AsyncRewardClient, Request, RequestRefused, RewardClient, RewardServiceError
from warpsmith_reward.retries import Again, RetryOptions
from warpsmith_reward.transport_errors import explain_error

from tests.support.fake_reward_door import FakeRewardDoor
from tests.support.test_certificates import make_authority, make_certificate

# A second attempt of these would outlast the test.
_HOURS = RetryOptions(seconds_max=3600, delay_initial=600)
_QUICK = RetryOptions(attempts_max=2, seconds_max=5, delay_initial=0.01, delay_max=0.02)
_REQUEST = Request(reference_source="class Model: pass", answer="a")
# The frame SETTINGS of HTTP/2, with which a gRPC server greets.
_GRPC_GREETING = bytes.fromhex("000000040000000000")


@pytest.fixture
def grpc_port() -> Iterator[int]:
    """Greets every connection as gRPC does, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(_GRPC_GREETING)
                    connection.recv(1 << 16)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def door() -> Iterator[FakeRewardDoor]:
    """Plain HTTP."""
    door = FakeRewardDoor()
    yield door
    door.server.shutdown()


def _error(url: str, retries: RetryOptions = _HOURS) -> RewardServiceError:
    with RewardClient(url, retries=retries) as client, pytest.raises(RewardServiceError) as raised:
        client.grade(_REQUEST)
    return raised.value


def test_the_grpc_port_is_refused_at_once_with_its_url_and_the_way_out(grpc_port: int) -> None:
    url = f"http://127.0.0.1:{grpc_port}"
    error = _error(url)
    assert isinstance(error, RequestRefused)
    assert str(error).startswith(f"{url}: RemoteProtocolError: ")
    assert "gRPC port: use the port of reward_service.http_address" in str(error)


def test_asyncio_refuses_it_too(grpc_port: int) -> None:
    async def run() -> None:
        async with AsyncRewardClient(f"http://127.0.0.1:{grpc_port}", retries=_HOURS) as client:
            await client.grade(_REQUEST)

    with pytest.raises(RequestRefused, match="gRPC port"):
        asyncio.run(run())


def test_https_to_a_plain_door_is_refused_at_once_with_the_other_scheme(door: FakeRewardDoor) -> None:
    url = door.url.replace("http:", "https:")
    error = _error(url)
    assert isinstance(error, RequestRefused)
    assert str(error).startswith(f"{url}: ConnectError: ")
    assert "no TLS: write http://" in str(error)


def test_http_to_an_encrypted_door_names_the_other_scheme_in_the_end(tmp_path: Path) -> None:
    make_authority(tmp_path, "authority")
    make_certificate(tmp_path, "server", "authority")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    door = FakeRewardDoor(context)
    try:
        url = door.url.replace("https:", "http:")
        message = str(_error(url, _QUICK))
    finally:
        door.server.shutdown()
    assert url in message
    assert "https://" in message


def test_a_lost_connection_may_come_back() -> None:
    error = httpx.RemoteProtocolError("Server disconnected without sending a response.")
    for url, hint in (("http://h:1", "https://"), ("https://h:1", "reward_service.http_address")):
        again = explain_error(error, url)
        assert isinstance(again, Again)
        assert hint in again.reason
    truncated = httpx.RemoteProtocolError("peer closed connection without sending complete message body")
    assert isinstance(explain_error(truncated, "http://h:1"), Again)


def test_nobody_there_is_named_by_url() -> None:
    assert "failed attempts: http://127.0.0.1:9: ConnectError" in str(_error("http://127.0.0.1:9", _QUICK))
