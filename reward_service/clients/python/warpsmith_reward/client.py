"""Clients of the HTTP door: one that blocks, one for asyncio. Every wait is bounded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from warpsmith_reward.messages import Grade, Request, RewardServiceError, ServiceUnavailable
from warpsmith_reward.retries import Again, RetryOptions, explain, explain_item

# Requests of one POST; a lost connection costs no more than their answers, which the service keeps.
_LIST_MAX = 32
_LISTS_AT_ONCE = 4

Answer = Grade | RewardServiceError


def _read(response: httpx.Response) -> dict[str, Any] | Again | RewardServiceError:
    try:
        body = response.json()
    except ValueError:
        body = None
    if response.status_code != 200:
        return explain(response.status_code, body)
    return body if isinstance(body, dict) else Again("an answer that is not JSON")


def _sort(
    indices: list[int], responses: list[dict[str, Any]], answers: list[Answer | None]
) -> tuple[list[int], Again | None]:
    """Files the answers of a list; the indices to send again, and why."""
    left: list[int] = []
    why: Again | None = None
    for index, response in zip(indices, responses, strict=True):
        if "grade" in response:
            answers[index] = Grade.from_json(response["grade"])
            continue
        found = explain_item(response.get("error", {}))
        if isinstance(found, Again):
            left.append(index)
            why = found
        else:
            answers[index] = found
    return left, why


def _lists(count: int) -> list[list[int]]:
    return [list(range(i, min(i + _LIST_MAX, count))) for i in range(0, count, _LIST_MAX)]


class _Attempts:
    """Counts attempts at one POST and says how long to wait; None when it is time to give up."""

    def __init__(self, options: RetryOptions) -> None:
        self._options = options
        self._end = time.monotonic() + options.seconds_max
        self._attempt = 0

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def wait_after(self, failure: Again) -> float | None:
        self._attempt += 1
        delay = self._options.delay(self._attempt, failure.delay)
        if self._attempt >= self._options.attempts_max or delay > self.seconds_left:
            return None
        return delay

    def give_up(self, failure: Again) -> ServiceUnavailable:
        return ServiceUnavailable(f"after {self._attempt} attempts: {failure.reason}")


def _connection(url: str, token: str | None) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    # Reading all certificates of the system takes a tenth of a second, and plain HTTP needs none.
    return {"base_url": url, "headers": headers, "verify": url.startswith("https:")}


class RewardClient:
    """Blocks. Safe to share between threads; close it, or use it as a context manager."""

    def __init__(self, url: str, *, token: str | None = None, retries: RetryOptions | None = None) -> None:
        """`url` is the door, e.g. "http://127.0.0.1:8061"."""
        self._retries = retries or RetryOptions()
        self._http = httpx.Client(**_connection(url, token))

    def __enter__(self) -> RewardClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connections."""
        self._http.close()

    def grade(self, request: Request) -> Grade:
        """Raises RewardServiceError where there is no grade."""
        answer = self.grade_all([request])[0]
        if isinstance(answer, RewardServiceError):
            raise answer
        return answer

    def grade_all(self, requests: Sequence[Request]) -> list[Answer]:
        """For each request its grade, or why there is none; in order, never raising."""
        messages = [request.to_json() for request in requests]
        answers: list[Answer | None] = [None] * len(messages)
        with ThreadPoolExecutor(max_workers=_LISTS_AT_ONCE) as pool:
            list(pool.map(lambda indices: self._grade_list(messages, indices, answers), _lists(len(messages))))
        return [answer if answer is not None else ServiceUnavailable("no answer") for answer in answers]

    def _grade_list(self, messages: list[dict[str, Any]], indices: list[int], answers: list[Answer | None]) -> None:
        attempts = _Attempts(self._retries)
        while indices:
            failure = self._post(messages, indices, attempts.seconds_left)
            if isinstance(failure, list):
                indices, again = _sort(indices, failure, answers)
                if again is None:
                    return
                failure = again
            if isinstance(failure, Again):
                delay = attempts.wait_after(failure)
                if delay is not None:
                    time.sleep(delay)
                    continue
                failure = attempts.give_up(failure)
            for index in indices:
                answers[index] = failure
            return

    def _post(
        self, messages: list[dict[str, Any]], indices: list[int], timeout: float
    ) -> list[dict[str, Any]] | Again | RewardServiceError:
        try:
            body = {"requests": [messages[index] for index in indices]}
            read = _read(self._http.post("/v1/grades", json=body, timeout=max(timeout, 0.1)))
        except httpx.HTTPError as error:
            return Again(f"{type(error).__name__}: {error}")
        return read["responses"] if isinstance(read, dict) else read


class AsyncRewardClient:
    """The same for asyncio. Cancelling a call hangs up, and the service drops its work."""

    def __init__(self, url: str, *, token: str | None = None, retries: RetryOptions | None = None) -> None:
        """`url` is the door, e.g. "http://127.0.0.1:8061"."""
        self._retries = retries or RetryOptions()
        self._http = httpx.AsyncClient(**_connection(url, token))

    async def __aenter__(self) -> AsyncRewardClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connections."""
        await self._http.aclose()

    async def grade(self, request: Request) -> Grade:
        """Raises RewardServiceError where there is no grade."""
        answer = (await self.grade_all([request]))[0]
        if isinstance(answer, RewardServiceError):
            raise answer
        return answer

    async def grade_all(self, requests: Sequence[Request]) -> list[Answer]:
        """For each request its grade, or why there is none; in order, never raising."""
        messages = [request.to_json() for request in requests]
        answers: list[Answer | None] = [None] * len(messages)
        slots = asyncio.Semaphore(_LISTS_AT_ONCE)

        async def one(indices: list[int]) -> None:
            async with slots:
                await self._grade_list(messages, indices, answers)

        await asyncio.gather(*(one(indices) for indices in _lists(len(messages))))
        return [answer if answer is not None else ServiceUnavailable("no answer") for answer in answers]

    async def _grade_list(
        self, messages: list[dict[str, Any]], indices: list[int], answers: list[Answer | None]
    ) -> None:
        attempts = _Attempts(self._retries)
        while indices:
            failure = await self._post(messages, indices, attempts.seconds_left)
            if isinstance(failure, list):
                indices, again = _sort(indices, failure, answers)
                if again is None:
                    return
                failure = again
            if isinstance(failure, Again):
                delay = attempts.wait_after(failure)
                if delay is not None:
                    await asyncio.sleep(delay)
                    continue
                failure = attempts.give_up(failure)
            for index in indices:
                answers[index] = failure
            return

    async def _post(
        self, messages: list[dict[str, Any]], indices: list[int], timeout: float
    ) -> list[dict[str, Any]] | Again | RewardServiceError:
        try:
            body = {"requests": [messages[index] for index in indices]}
            read = _read(await self._http.post("/v1/grades", json=body, timeout=max(timeout, 0.1)))
        except httpx.HTTPError as error:
            return Again(f"{type(error).__name__}: {error}")
        return read["responses"] if isinstance(read, dict) else read
