"""The Python client: what it makes of answers, when it asks again, and what it does not lose."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest
from warpsmith_reward import (
    AsyncRewardClient,
    Grade,
    Request,
    RequestRefused,
    RewardClient,
    ServiceUnavailable,
    Verdict,
)
from warpsmith_reward.retries import RetryOptions

from tests.support.fake_reward_door import FakeRewardDoor, Reply, grade_of, graded

_QUICK = RetryOptions(attempts_max=4, seconds_max=5, delay_initial=0.01, delay_max=0.02, random=random.Random(0))


@pytest.fixture
def service() -> Iterator[FakeRewardDoor]:
    """A fresh door."""
    service = FakeRewardDoor()
    yield service
    service.server.shutdown()


def _request(text: str = "a") -> Request:
    return Request(reference_source="class Model: pass", answer=text)


def test_a_grade_is_read(service: FakeRewardDoor) -> None:
    service.rule = lambda requests: (
        200,
        {
            "responses": [
                {
                    "grade": grade_of(
                        requests[0],
                        verdict="VERDICT_HACK",
                        hackFamily="input-mutation",
                        timing={"speedup": 3.5},
                        feedback={"finding": "wrong", "evidence": "3 of 4", "advice": ""},
                    )
                }
            ]
        },
    )
    with RewardClient(service.url, token="secret") as client:
        grade = client.grade(_request())
    assert grade.verdict is Verdict.HACK
    assert (grade.reward, grade.speedup, grade.hack_family) == (2.5, 3.5, "input-mutation")
    assert grade.feedback == "wrong; 3 of 4"
    assert grade.scorable
    assert not grade.correct
    assert service.headers[0]["Authorization"] == "Bearer secret"


def test_many_requests_keep_their_order(service: FakeRewardDoor) -> None:
    service.rule = lambda requests: (
        200,
        {"responses": [{"grade": grade_of(r, reward={"value": float(r["candidate"]["answer"])})} for r in requests]},
    )
    with RewardClient(service.url) as client:
        answers = client.grade_all([_request(str(i)) for i in range(100)])
    assert [answer.reward for answer in answers if isinstance(answer, Grade)] == [float(i) for i in range(100)]
    assert len(service.posts) == 4


def test_long_requests_go_in_lists_that_the_door_takes(service: FakeRewardDoor) -> None:
    requests = [_request(str(k) + "x" * 500_000) for k in range(12)]
    with RewardClient(service.url) as client:
        assert all(isinstance(answer, Grade) for answer in client.grade_all(requests))
    assert len(service.posts) == 3


@pytest.mark.parametrize("status", [429, 503])
def test_back_pressure_is_waited_out(service: FakeRewardDoor, status: int) -> None:
    full = {"error": {"status": "RESOURCE_EXHAUSTED", "message": "full", "retryDelayMs": 10}}
    service.rule = lambda requests: (status, full) if len(service.posts) < 3 else (200, graded(requests))
    with RewardClient(service.url, retries=_QUICK) as client:
        assert client.grade(_request()).reward == 2.5
    assert len(service.posts) == 3


def test_only_what_has_no_answer_is_sent_again(service: FakeRewardDoor) -> None:
    def rule(requests: list[dict[str, Any]]) -> Reply:
        body = graded(requests)
        if len(service.posts) == 1:
            body["responses"][1] = {"error": {"status": "RESOURCE_EXHAUSTED", "message": "full", "retryDelayMs": 1}}
            body["responses"][2] = {"error": {"status": "INVALID_ARGUMENT", "message": "no reference"}}
        return 200, body

    service.rule = rule
    with RewardClient(service.url, retries=_QUICK) as client:
        answers = client.grade_all([_request(text) for text in "abc"])
    assert [type(answer) for answer in answers] == [Grade, Grade, RequestRefused]
    assert str(answers[2]) == "no reference"
    assert [[r["candidate"]["answer"] for r in post] for post in service.posts] == [["a", "b", "c"], ["b"]]


def test_it_gives_up_in_the_end(service: FakeRewardDoor) -> None:
    service.rule = lambda _: (503, b"not even JSON")
    with (
        RewardClient(service.url, retries=_QUICK) as client,
        pytest.raises(ServiceUnavailable, match="4 failed attempts"),
    ):
        client.grade(_request())
    assert len(service.posts) == 4


def test_a_refusal_is_final(service: FakeRewardDoor) -> None:
    service.rule = lambda _: (400, {"error": {"status": "INVALID_ARGUMENT", "message": "formula x is unknown"}})
    with RewardClient(service.url, retries=_QUICK) as client, pytest.raises(RequestRefused, match="formula x"):
        client.grade(_request())
    assert len(service.posts) == 1


def test_nobody_there_is_unavailable() -> None:
    with RewardClient("http://127.0.0.1:9", retries=_QUICK) as client, pytest.raises(ServiceUnavailable):
        client.grade(_request())


def test_asyncio_does_the_same(service: FakeRewardDoor) -> None:
    async def run() -> list[Any]:
        async with AsyncRewardClient(service.url, retries=_QUICK) as client:
            return await client.grade_all([_request(str(i)) for i in range(40)])

    answers = asyncio.run(run())
    assert all(isinstance(answer, Grade) and answer.reward == 2.5 for answer in answers)
    assert len(answers) == 40


def _grade(client_class: type[RewardClient] | type[AsyncRewardClient], url: str, retries: RetryOptions) -> Grade:
    """One request, by either client."""
    if client_class is RewardClient:
        with RewardClient(url, retries=retries) as client:
            return client.grade(_request())

    async def run() -> Grade:
        async with AsyncRewardClient(url, retries=retries) as client:
            return await client.grade(_request())

    return asyncio.run(run())


_CLIENTS = pytest.mark.parametrize("client_class", [RewardClient, AsyncRewardClient])


@_CLIENTS
def test_being_told_that_it_is_full_costs_no_attempt(
    service: FakeRewardDoor, client_class: type[RewardClient] | type[AsyncRewardClient]
) -> None:
    full = {"status": "RESOURCE_EXHAUSTED", "message": "full", "retryDelayMs": 1}

    def rule(requests: list[dict[str, Any]]) -> Reply:
        if len(service.posts) < 8:
            return 429, {"error": full}
        return 200, {"responses": [{"error": full}]} if len(service.posts) < 16 else graded(requests)

    service.rule = rule
    assert _grade(client_class, service.url, _QUICK).reward == 2.5
    assert len(service.posts) == 16


@_CLIENTS
def test_a_service_that_stays_full_is_given_up_when_the_time_is_over(
    service: FakeRewardDoor, client_class: type[RewardClient] | type[AsyncRewardClient]
) -> None:
    service.rule = lambda _: (429, {"error": {"message": "full", "retryDelayMs": 1}})
    options = RetryOptions(attempts_max=2, seconds_max=0.5, delay_initial=0.02)
    # The last attempt may begin so late that what is left of the time is too short to connect.
    with pytest.raises(ServiceUnavailable, match=r"after 0\.\d s and [01] failed .* told \d+ times .* full.* 0\.5 s"):
        _grade(client_class, service.url, options)
    assert len(service.posts) > 2


def test_a_list_of_the_wrong_length_and_a_strange_grade_raise_nothing(service: FakeRewardDoor) -> None:
    service.rule = lambda requests: (200, {"responses": [{"grade": {"verdict": "VERDICT_FUTURE"}}]})
    with RewardClient(service.url, retries=_QUICK) as client:
        answers = client.grade_all([_request()])
        assert "this version does not know" in str(answers[0])
        answers = client.grade_all([_request("a"), _request("b")])
    assert [type(answer) for answer in answers] == [ServiceUnavailable] * 2
    assert "no list of 2 grades" in str(answers[0])
