"""When to post again; pure, shared by both clients."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from warpsmith_reward.messages import RequestRefused, RewardServiceError, ServiceUnavailable

# Statuses after which the same request may succeed: back-pressure, and what stands before the service failing.
_AGAIN = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class RetryOptions:
    """Bounds of one request's life. The delay doubles up to `delay_max` seconds, spread by a fifth."""

    attempts_max: int = 8
    seconds_max: float = 600.0
    delay_initial: float = 0.2
    delay_max: float = 10.0
    random: random.Random = field(default_factory=random.Random, repr=False, compare=False)

    def delay(self, attempt: int, asked: float | None) -> float:
        """Seconds to wait after attempt `attempt`, from 1; at least what the service asked for."""
        grown = min(self.delay_max, self.delay_initial * 2 ** (attempt - 1))
        return max(grown, asked or 0.0) * self.random.uniform(0.8, 1.2)


@dataclass(frozen=True)
class Again:
    """A failure that may pass."""

    reason: str
    delay: float | None = None


def explain(status: int, body: Any) -> Again | RewardServiceError:
    """What an answer that is no 200 means."""
    error = body.get("error", {}) if isinstance(body, dict) else {}
    message = error.get("message") or f"HTTP status {status}"
    delay = error.get("retryDelayMs")
    if status in _AGAIN:
        return Again(message, delay / 1000 if delay is not None else None)
    return RequestRefused(message) if 400 <= status < 500 else ServiceUnavailable(message)


def explain_item(error: dict[str, Any]) -> Again | RewardServiceError:
    """The same for one request of a list, whose error has a code of google.rpc."""
    message = error.get("message", "no reason given")
    delay = error.get("retryDelayMs")
    if delay is not None or error.get("status") == "UNAVAILABLE":
        return Again(message, delay / 1000 if delay is not None else None)
    return RequestRefused(message)
