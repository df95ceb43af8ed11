"""How long one list of requests goes on asking, and whom it asks next; pure but for the clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from warpsmith_reward.messages import ServiceUnavailable
from warpsmith_reward.retries import Again, RetryOptions

Clock = Callable[[], float]


class Replicas:
    """Equal services, asked in turn. Thread-safe: all lists of a client share what they learn of each."""

    def __init__(self, urls: Sequence[str], clock: Clock = time.monotonic) -> None:
        """`urls` are doors, e.g. "http://127.0.0.1:8061"; at least one. `clock` gives seconds."""
        self.urls = [url.rstrip("/") for url in urls]
        self.clock = clock
        self._lock = threading.Lock()
        self._first = 0
        self._avoid_until = [clock()] * len(self.urls)

    def order(self) -> list[int]:
        """Indices in the order to ask: whose turn it is first, and last those that failed or are full."""
        now = self.clock()
        count = len(self.urls)
        with self._lock:
            turn = [(self._first + i) % count for i in range(count)]
            self._first = (self._first + 1) % count
            return sorted(turn, key=lambda index: self._avoid_until[index] > now)

    def avoid(self, index: int, seconds: float) -> None:
        """For so long others are better asked."""
        with self._lock:
            self._avoid_until[index] = self.clock() + seconds


class Patience:
    """What became of one list's posts so far. For one thread."""

    def __init__(self, options: RetryOptions, replicas: Replicas) -> None:
        """Its time begins now."""
        self._options = options
        self._replicas = replicas
        self._begin = replicas.clock()
        self._not_before = [self._begin] * len(replicas.urls)
        self._failed = [0] * len(replicas.urls)
        self._busy = [0] * len(replicas.urls)

    @property
    def seconds_left(self) -> float:
        """Of the time for all posts; not negative."""
        return max(0.0, self._begin + self._options.seconds_max - self._replicas.clock())

    def next(self) -> tuple[int, float]:
        """The replica to ask, and the seconds to wait before: none while there is one that did not ask for patience."""
        order = self._replicas.order()
        now = self._replicas.clock()
        index = next((i for i in order if self._not_before[i] <= now), None)
        if index is None:
            index = min(order, key=self._not_before.__getitem__)
        return index, max(0.0, self._not_before[index] - now)

    def after(self, index: int, failure: Again) -> ServiceUnavailable | None:
        """Takes note of what a post to replica `index` ended in; the error where it was the last one."""
        counts = self._busy if failure.busy else self._failed
        counts[index] += 1
        delay = self._options.delay(counts[index], failure)
        now = self._replicas.clock()
        self._not_before[index] = now + delay
        self._replicas.avoid(index, delay)
        wait = max(0.0, min(self._not_before) - now)
        if sum(self._failed) < self._options.attempts_max * len(self._failed) and wait < self.seconds_left:
            return None
        return self._give_up(failure, wait)

    def _give_up(self, failure: Again, wait: float) -> ServiceUnavailable:
        seconds = self._replicas.clock() - self._begin
        parts = [f"after {seconds:.1f} s and {sum(self._failed)} failed attempts"]
        if sum(self._busy):
            parts.append(f"told {sum(self._busy)} times that the service is full")
        if wait >= self.seconds_left:
            parts.append(f"the next attempt, in {wait:.1f} s, would pass the {self._options.seconds_max:g} s allowed")
        return ServiceUnavailable(f"{', '.join(parts)}: {failure.reason}")
