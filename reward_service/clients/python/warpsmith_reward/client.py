"""Clients of the HTTP door: one that blocks, one for asyncio. Every wait is bounded."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from warpsmith_reward.connection import Connection, FilePath, TlsFiles, timeout_of
from warpsmith_reward.messages import Grade, Request, RewardServiceError
from warpsmith_reward.patience import Replicas
from warpsmith_reward.posting import Answer, Post, Reply, Wait, steps
from warpsmith_reward.retries import RetryOptions

__all__ = ["Answer", "AsyncRewardClient", "RewardClient"]

# Requests of one POST; a lost connection costs no more than their answers, which the service keeps.
_LIST_MAX = 32
_LIST_BYTES_MAX = 2 << 20  # half of what the service takes beside one longest answer
_LISTS_AT_ONCE = 4  # for each replica


def _lists(messages: list[dict[str, Any]], num_replicas: int) -> list[list[dict[str, Any]]]:
    """Few enough in each that every replica gets some, and no body longer than the service takes."""
    size = min(_LIST_MAX, max(1, -(-len(messages) // num_replicas)))
    lists: list[list[dict[str, Any]]] = []
    room = 0
    for message in messages:
        num_bytes = len(json.dumps(message))
        if not lists or len(lists[-1]) == size or num_bytes > room:
            lists.append([])
            room = _LIST_BYTES_MAX
        lists[-1].append(message)
        room -= num_bytes
    return lists


class RewardClient:
    """Blocks. Safe to share between threads; close it, or use it as a context manager."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: str | None = None,
        token_file: FilePath | None = None,
        tls: TlsFiles | None = None,
        retries: RetryOptions | None = None,
    ) -> None:
        """`url` is the door, e.g. "http://127.0.0.1:8061", or those of several equal services, which are asked in turn.

        `token` says who calls; of `token_file` blanks around it do not count. `tls` is for https with a private
        authority or a certificate of one's own; files are read once, here. Raises ValueError, naming the file, for
        what cannot serve, and OSError for what cannot be read.
        """
        connection = Connection.make(url, token, token_file, tls)
        self._retries = retries or RetryOptions()
        self._replicas = Replicas(connection.urls)
        transport = httpx.HTTPTransport(**connection.transport)
        self._http = httpx.Client(transport=transport, headers=connection.headers)

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
        lists = _lists([request.to_json() for request in requests], len(self._replicas.urls))
        with ThreadPoolExecutor(max_workers=_LISTS_AT_ONCE * len(self._replicas.urls)) as pool:
            return [answer for answers in pool.map(self._grade_list, lists) for answer in answers]

    def _grade_list(self, messages: list[dict[str, Any]]) -> list[Answer]:
        course = steps(messages, self._replicas, self._retries)
        reply: Reply = None
        while True:
            try:
                step = course.send(reply)
            except StopIteration as end:
                return end.value
            reply = self._do(step)

    def _do(self, step: Post | Wait) -> Reply:
        if isinstance(step, Wait):
            time.sleep(step.seconds)
            return None
        try:
            return self._http.post(step.url, json=step.body, timeout=timeout_of(step.timeout))
        except httpx.HTTPError as error:
            return error


class AsyncRewardClient:
    """The same for asyncio. Cancelling a call hangs up, and the service drops its work."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: str | None = None,
        token_file: FilePath | None = None,
        tls: TlsFiles | None = None,
        retries: RetryOptions | None = None,
    ) -> None:
        """As RewardClient."""
        connection = Connection.make(url, token, token_file, tls)
        self._retries = retries or RetryOptions()
        self._replicas = Replicas(connection.urls)
        transport = httpx.AsyncHTTPTransport(**connection.transport)
        self._http = httpx.AsyncClient(transport=transport, headers=connection.headers)

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
        slots = asyncio.Semaphore(_LISTS_AT_ONCE * len(self._replicas.urls))

        async def one(messages: list[dict[str, Any]]) -> list[Answer]:
            async with slots:
                return await self._grade_list(messages)

        lists = _lists([request.to_json() for request in requests], len(self._replicas.urls))
        return [answer for answers in await asyncio.gather(*map(one, lists)) for answer in answers]

    async def _grade_list(self, messages: list[dict[str, Any]]) -> list[Answer]:
        course = steps(messages, self._replicas, self._retries)
        reply: Reply = None
        while True:
            try:
                step = course.send(reply)
            except StopIteration as end:
                return end.value
            reply = await self._do(step)

    async def _do(self, step: Post | Wait) -> Reply:
        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await self._http.post(step.url, json=step.body, timeout=timeout_of(step.timeout))
        except httpx.HTTPError as error:
            return error
