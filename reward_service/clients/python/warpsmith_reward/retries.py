"""When to post again; pure, shared by both clients."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warpsmith_reward.messages import RequestRefused, RewardServiceError, ServiceUnavailable

# Statuses after which the same request may succeed: back-pressure, and what stands before the service failing.
_BUSY = 429
_AGAIN = frozenset({_BUSY, 502, 503, 504})


@dataclass(frozen=True)
class RetryOptions:
    """Bounds of one request's life.

    `attempts_max` attempts may fail, at each of several replicas; `seconds_max` is the time for all of it. Being told
    that the service is full is no failed attempt: that is waited out as asked, until `seconds_max`. After a failure the
    delay doubles from `delay_initial` up to `delay_max` seconds, spread by a fifth.
    """

    attempts_max: int = 8
    seconds_max: float = 600.0
    delay_initial: float = 0.2
    delay_max: float = 10.0
    random: random.Random = field(default_factory=random.Random, repr=False, compare=False)

    def delay(self, times: int, failure: Again) -> float:
        """Seconds to wait after `failure`, the `times`-th of its kind, from 1; never less than was asked for."""
        grown = min(self.delay_max, self.delay_initial * 2 ** min(times - 1, 32))
        if failure.delay is None:
            return grown * self.random.uniform(0.8, 1.2)
        # Told what to wait, there is nothing to guess. Spread upwards: who comes too early is refused again.
        least = self.delay_initial if failure.busy else grown
        return max(least, failure.delay) * self.random.uniform(1.0, 1.2)


@dataclass(frozen=True)
class Again:
    """A failure that may pass. `delay`: seconds that the service asks to wait; `busy`: it works, and is full."""

    reason: str
    delay: float | None = None
    busy: bool = False


def _header_delay(headers: Mapping[str, str]) -> float | None:
    """Seconds of Retry-After; its other form, a date, is left to the delay of one's own."""
    text = headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None


def explain(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Again | RewardServiceError:
    """What an answer that is no 200 means. What stands before the service may say its delay in a header alone."""
    error = body.get("error") if isinstance(body, dict) else None
    error = error if isinstance(error, dict) else {}  # what listens there may be no reward service
    message = error.get("message") or f"HTTP status {status}"
    if status in _AGAIN:
        asked = error.get("retryDelayMs")
        delay = asked / 1000 if asked is not None else _header_delay(headers or {})
        return Again(message, delay, busy=status == _BUSY)
    return RequestRefused(message) if 400 <= status < 500 else ServiceUnavailable(message)


def explain_item(error: dict[str, Any]) -> Again | RewardServiceError:
    """The same for one request of a list, whose error has a code of google.rpc."""
    message = error.get("message", "no reason given")
    delay = error.get("retryDelayMs")
    if delay is not None or error.get("status") == "UNAVAILABLE":
        busy = error.get("status") == "RESOURCE_EXHAUSTED"
        return Again(message, delay / 1000 if delay is not None else None, busy)
    return RequestRefused(message)
