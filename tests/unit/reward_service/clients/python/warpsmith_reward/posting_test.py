"""The steps of one list, answered by hand: what is posted, to whom, and what comes of it."""

from __future__ import annotations

from typing import Any

import httpx
from warpsmith_reward import Grade, RequestRefused, ServiceUnavailable
from warpsmith_reward.patience import Replicas
from warpsmith_reward.posting import Answer, Post, Reply, Wait, steps
from warpsmith_reward.retries import RetryOptions

from tests.support.fake_reward_door import graded

_MESSAGES: list[dict[str, Any]] = [{"requestId": name} for name in "abc"]
_FULL = {"error": {"status": "RESOURCE_EXHAUSTED", "message": "full", "retryDelayMs": 2000}}


def _run(replies: list[Reply], urls: tuple[str, ...] = ("http://one",)) -> tuple[list[Post | Wait], list[Answer]]:
    """Steps taken, a Wait being over at once, and the answers; posts are replied to in turn."""
    now = [0.0]
    course = steps(_MESSAGES, Replicas(urls, lambda: now[0]), RetryOptions(attempts_max=2, seconds_max=60))
    taken: list[Post | Wait] = []
    reply: Reply = None
    while True:
        try:
            step = course.send(reply)
        except StopIteration as end:
            return taken, end.value
        taken.append(step)
        reply = None
        if isinstance(step, Wait):
            now[0] += step.seconds
        else:
            reply = replies.pop(0)


def _response(body: dict[str, Any], status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=body)


def _ids(step: Post | Wait) -> list[str]:
    assert isinstance(step, Post)
    return [request["requestId"] for request in step.body["requests"]]


def test_one_post_is_enough_where_all_is_well() -> None:
    taken, answers = _run([_response(graded(_MESSAGES))])
    assert taken == [Post("http://one/v1/grades", {"requests": _MESSAGES}, 60.0)]
    assert [answer.message["requestId"] for answer in answers if isinstance(answer, Grade)] == ["a", "b", "c"]


def test_what_the_service_had_no_room_for_is_posted_again_after_the_wait_that_it_asked_for() -> None:
    mixed = graded(_MESSAGES)["responses"]
    refused = {"error": {"status": "INVALID_ARGUMENT", "message": "no"}}
    replies: list[Reply] = [_response({"responses": [_FULL, refused, mixed[2]]}), _response(graded(_MESSAGES[:1]))]
    taken, answers = _run(replies)
    assert [type(step) for step in taken] == [Post, Wait, Post]
    assert isinstance(taken[1], Wait)
    assert 2.0 <= taken[1].seconds <= 2.4
    assert _ids(taken[2]) == ["a"]
    assert [type(answer) for answer in answers] == [Grade, RequestRefused, Grade]


def test_a_lost_connection_sends_the_list_to_the_other_replica_at_once() -> None:
    replies: list[Reply] = [httpx.ReadError("reset"), _response(graded(_MESSAGES))]
    taken, answers = _run(replies, ("http://one", "http://two"))
    assert [step.url for step in taken if isinstance(step, Post)] == ["http://one/v1/grades", "http://two/v1/grades"]
    assert len(taken) == 2
    assert all(isinstance(answer, Grade) for answer in answers)


def test_the_time_for_a_post_is_what_is_left() -> None:
    taken, _ = _run([_response(_FULL, 429), _response(graded(_MESSAGES))])
    assert isinstance(taken[1], Wait)
    assert isinstance(taken[2], Post)
    assert taken[2].timeout == 60.0 - taken[1].seconds


def test_when_it_ends_all_that_is_left_has_the_same_reason() -> None:
    _, answers = _run([httpx.ConnectError("refused"), httpx.ConnectError("refused")])
    assert [type(answer) for answer in answers] == [ServiceUnavailable] * 3
    assert "2 failed attempts" in str(answers[0])
    assert "ConnectError: refused" in str(answers[0])
