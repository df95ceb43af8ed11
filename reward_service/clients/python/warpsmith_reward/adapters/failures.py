"""What adapters do with answers without a grade: raise refusals, or a run would train on nothing, and log the rest."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from warpsmith_reward.messages import Grade, RequestRefused, RewardServiceError

_SECONDS_BETWEEN_WARNINGS = 60.0
# How the service refuses what only one sample is to blame for.
_TOO_LONG = "candidate.answer has "


def raise_refusal(answers: Sequence[Grade | RewardServiceError]) -> None:
    """Raises the first RequestRefused among `answers`, as the service words it; an answer that is too long is none."""
    for answer in answers:
        if isinstance(answer, RequestRefused) and not str(answer).startswith(_TOO_LONG):
            raise answer


class FailureLog:
    """Warnings of answers without a grade, with URL and reason, at most one a minute. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._not_before = clock()
        self._count = 0

    def warn(self, answers: Sequence[Grade | RewardServiceError]) -> None:
        """Names the last error among `answers`, and counts those since the warning before."""
        errors = [answer for answer in answers if isinstance(answer, RewardServiceError)]
        if not errors:
            return
        with self._lock:
            self._count += len(errors)
            if self._clock() < self._not_before:
                return
            count, self._count = self._count, 0
            self._not_before = self._clock() + _SECONDS_BETWEEN_WARNINGS
        logging.getLogger("warpsmith_reward").warning("%d samples have no reward: %s", count, errors[-1])


# One for all adapters of a process: they report the same service.
failure_log = FailureLog()
