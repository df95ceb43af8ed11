"""The steps by which a list of requests gets its answers: what both clients do, each by its own means."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import httpx

from warpsmith_reward.messages import Grade, RewardServiceError, ServiceUnavailable
from warpsmith_reward.patience import Patience, Replicas
from warpsmith_reward.retries import Again, RetryOptions, explain, explain_item
from warpsmith_reward.transport_errors import explain_error

Answer = Grade | RewardServiceError


@dataclass(frozen=True)
class Post:
    """Send `body` as JSON to `url`; the reply, within `timeout` seconds, is the response or why there is none."""

    url: str
    body: dict[str, Any]
    timeout: float


@dataclass(frozen=True)
class Wait:
    """Let so many seconds pass; there is no reply."""

    seconds: float


Reply = httpx.Response | httpx.HTTPError | None
Steps = Generator[Post | Wait, Reply, list[Answer]]


def steps(messages: list[dict[str, Any]], replicas: Replicas, options: RetryOptions) -> Steps:
    """Yields what to do next, takes the reply to it, and returns an answer for each of `messages`, in order."""
    answers: dict[int, Answer] = {}
    patience = Patience(options, replicas)
    left = list(range(len(messages)))
    while left:
        index, seconds = patience.next()
        if seconds > 0:
            yield Wait(seconds)
        url = replicas.urls[index]
        body = {"requests": [messages[i] for i in left]}
        reply = yield Post(f"{url}/v1/grades", body, max(patience.seconds_left, 0.1))
        failure: Again | RewardServiceError | None
        outcome = _read(reply, len(left), url)
        if isinstance(outcome, list):
            left, failure = _sort(left, outcome, answers)
        else:
            failure = outcome
        if failure is not None:
            failure = _at(url, failure)
        if isinstance(failure, Again):
            failure = patience.after(index, failure)
        if failure is not None:
            answers.update(dict.fromkeys(left, failure))
            break
    return [answers[i] for i in range(len(messages))]


def _at(url: str, failure: Again | RewardServiceError) -> Again | RewardServiceError:
    """The same, saying of which service."""
    if isinstance(failure, Again):
        return replace(failure, reason=f"{url}: {failure.reason}")
    return type(failure)(f"{url}: {failure}")


def _read(reply: Reply, count: int, url: str) -> list[dict[str, Any]] | Again | RewardServiceError:
    """The `count` responses of a list, or why there are none."""
    if isinstance(reply, httpx.HTTPError):
        return explain_error(reply, url)
    assert reply is not None, "a Post has a reply"
    try:
        body = reply.json()
    except ValueError:
        body = None
    if reply.status_code != 200:
        return explain(reply.status_code, body, reply.headers)
    responses = body.get("responses") if isinstance(body, dict) else None
    if isinstance(responses, list) and len(responses) == count:
        return responses
    return Again(f"an answer that is no list of {count} grades in JSON")


def _sort(
    indices: list[int], responses: list[dict[str, Any]], answers: dict[int, Answer]
) -> tuple[list[int], Again | None]:
    """Files the answers of a list; the indices to send again, and why."""
    left: list[int] = []
    why: Again | None = None
    for index, response in zip(indices, responses, strict=True):
        found = _answer(response)
        if isinstance(found, Again):
            left.append(index)
            # Of several reasons the longest wait: who asks for all of them again waits for all of them.
            why = found if why is None else max(why, found, key=lambda again: again.delay or 0.0)
        else:
            answers[index] = found
    return left, why


def _answer(response: dict[str, Any]) -> Answer | Again:
    if "grade" not in response:
        return explain_item(response.get("error", {}))
    try:
        return Grade.from_json(response["grade"])
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        return ServiceUnavailable(f"a grade that this version does not know: {type(error).__name__}: {error}")
