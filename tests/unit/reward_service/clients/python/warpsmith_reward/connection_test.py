"""Addresses, certificates and tokens of a client: what is taken, and how what cannot serve is refused."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from warpsmith_reward import AsyncRewardClient, Grade, Request, RewardClient, ServiceUnavailable, TlsFiles
from warpsmith_reward.connection import timeout_of
from warpsmith_reward.retries import RetryOptions

from tests.support.fake_reward_door import FakeRewardDoor
from tests.support.test_certificates import make_authority, make_certificate

_QUICK = RetryOptions(attempts_max=2, seconds_max=20, delay_initial=0.01, delay_max=0.02)
_REQUESTS = [Request(reference_source="class Model: pass", answer=str(i)) for i in range(8)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_authority(folder, "authority")
    make_authority(folder, "stranger")
    for name, authority in (("server", "authority"), ("farm", "authority"), ("liar", "stranger")):
        make_certificate(folder, name, authority)
    (folder / "lab.token").write_text("0123456789abcdef\n")
    return folder


@pytest.fixture(scope="module")
def door(files: Path) -> Iterator[FakeRewardDoor]:
    """Wants a certificate of every client."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(files / "authority.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(files / "server.pem", files / "server.key")
    door = FakeRewardDoor(context)
    yield door
    door.server.shutdown()


def _tls(files: Path, name: str | None, authority: str = "authority") -> TlsFiles:
    own = {"certificate": files / f"{name}.pem", "key": files / f"{name}.key"} if name else {}
    return TlsFiles(authority=files / f"{authority}.pem", **own)


def test_a_private_authority_a_certificate_and_a_token_reach_the_service(files: Path, door: FakeRewardDoor) -> None:
    arguments: dict[str, Any] = {"tls": _tls(files, "farm"), "token_file": files / "lab.token", "retries": _QUICK}
    with RewardClient(door.url, **arguments) as client:
        assert client.grade(_REQUESTS[0]).reward == 2.5

    async def run() -> Grade:
        async with AsyncRewardClient(door.url, **arguments) as other:
            return await other.grade(_REQUESTS[0])

    assert asyncio.run(run()).reward == 2.5
    assert [headers["Authorization"] for headers in door.headers[-2:]] == ["Bearer 0123456789abcdef"] * 2


@pytest.mark.parametrize(
    ("name", "authority", "match"), [("farm", "stranger", "CERTIFICATE_VERIFY_FAILED"), ("liar", "authority", None)]
)
def test_a_certificate_that_is_not_trusted_is_said_so(
    files: Path, door: FakeRewardDoor, name: str, authority: str, match: str | None
) -> None:
    tls = _tls(files, name, authority)
    with RewardClient(door.url, tls=tls, retries=_QUICK) as client, pytest.raises(ServiceUnavailable, match=match):
        client.grade(_REQUESTS[0])


def test_a_service_that_one_does_not_trust_is_not_asked_again(files: Path, door: FakeRewardDoor) -> None:
    hours = RetryOptions(seconds_max=3600, delay_initial=60)
    tls = _tls(files, "farm", "stranger")
    with RewardClient(door.url, tls=tls, retries=hours) as client, pytest.raises(ServiceUnavailable):
        client.grade(_REQUESTS[0])


def test_files_that_cannot_serve_are_refused_by_name(files: Path, tmp_path: Path) -> None:
    url = "https://127.0.0.1:1"
    with pytest.raises(ValueError, match="both a certificate and its key"):
        RewardClient(url, tls=TlsFiles(certificate=files / "farm.pem"))
    with pytest.raises(FileNotFoundError, match="nowhere.pem"):
        RewardClient(url, tls=TlsFiles(authority=tmp_path / "nowhere.pem"))
    with pytest.raises(ValueError, match="lab.token: no certificate"):
        RewardClient(url, tls=TlsFiles(authority=files / "lab.token"))
    with pytest.raises(ValueError, match="farm.pem with .*liar.key"):
        RewardClient(url, tls=TlsFiles(certificate=files / "farm.pem", key=files / "liar.key"))
    with pytest.raises(ValueError, match="write https://"):
        RewardClient("http://127.0.0.1:1", tls=_tls(files, None))


@pytest.mark.parametrize("text", ["", "two words", "é" * 20, "x" * 5000])
def test_a_token_file_without_a_token_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)
    with pytest.raises(ValueError, match=f"{tmp_path}/token: no token"):
        RewardClient("http://127.0.0.1:1", token_file=tmp_path / "token")
    with pytest.raises(ValueError, match="give one"):
        RewardClient("http://127.0.0.1:1", token="a", token_file=tmp_path / "token")


@pytest.mark.parametrize("url", ["", "127.0.0.1:8061", "ftp://host", "http://", "http://a:b", []])
def test_what_is_no_address_is_refused_in_words(url: str | list[str]) -> None:
    with pytest.raises(ValueError, match="url of a reward service"):
        RewardClient(url)


@pytest.fixture
def doors() -> Iterator[list[FakeRewardDoor]]:
    doors = [FakeRewardDoor(), FakeRewardDoor()]
    yield doors
    for door in doors:
        door.server.shutdown()


def test_several_replicas_share_the_work(doors: list[FakeRewardDoor]) -> None:
    with RewardClient([door.url for door in doors], retries=_QUICK) as client:
        assert all(isinstance(answer, Grade) for answer in client.grade_all(_REQUESTS))
        assert [sum(map(len, door.posts)) for door in doors] == [4, 4]
        for request in _REQUESTS:
            client.grade(request)
    assert [sum(map(len, door.posts)) for door in doors] == [8, 8]


def test_what_one_replica_does_not_answer_another_does(doors: list[FakeRewardDoor]) -> None:
    doors[0].rule = lambda _: (503, {"error": {"message": "stopping"}})
    urls = [doors[0].url, "http://127.0.0.1:9", doors[1].url]

    async def run() -> list[Any]:
        async with AsyncRewardClient(urls, retries=_QUICK) as client:
            return await client.grade_all(_REQUESTS)

    assert all(isinstance(answer, Grade) for answer in asyncio.run(run()))
    assert sum(map(len, doors[1].posts)) == len(_REQUESTS)


def test_connecting_may_not_take_as_long_as_an_answer() -> None:
    assert (timeout_of(600).connect, timeout_of(600).read, timeout_of(3).connect) == (10, 600, 3)
