"""Eight clients that share out the logical requests and write down what each was answered."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.bench.soak_candidates import LogicalRequest
from tests.bench.soak_doors import Door, Failure, HungUp

_ATTEMPTS_MAX = 400  # a full queue refuses whoever comes at a bad moment, however often he came
_SECONDS_MAX = 420.0
_DELAY_INITIAL = 0.1
_DELAY_MAX = 3.0


@dataclass(frozen=True)
class Outcome:
    """What became of a logical request. `state` is answered, hung_up, refused, lost or unsent."""

    request: LogicalRequest
    client: str
    state: str
    life: int  # of the service, counted from 1, that answered
    attempts: int
    seconds: float
    at: float  # seconds since the clients started
    verdict: str = ""
    reward: float | None = None
    grade: dict[str, Any] = field(default_factory=dict)  # without absent and zero fields
    reason: str = ""
    cached: bool = False
    cost: dict[str, float] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)  # attempts without an answer, by what came instead


def _without_zeros(value: Any) -> Any:
    """One door writes fields that are zero, the other leaves them out."""
    if isinstance(value, dict):
        kept = {key: _without_zeros(child) for key, child in value.items()}
        return {key: child for key, child in kept.items() if not _is_zero(child)}
    return [_without_zeros(child) for child in value] if isinstance(value, list) else value


def _is_zero(value: Any) -> bool:
    """Of a field's JSON; an enum's zero has a name."""
    return value in ({}, [], "", 0, False, "0") or (isinstance(value, str) and value.endswith("_UNSPECIFIED"))


@dataclass(frozen=True)
class Client:
    """Asks one request at a time in each thread that shares it. `life` says how often the service was started by now,
    `now` how long ago the clients were."""

    name: str
    door: Door
    life: Callable[[], int]
    now: Callable[[], float]
    seconds_max: float = _SECONDS_MAX

    def ask(self, request: LogicalRequest) -> Outcome:
        """As often as it takes, and the service says that it may be."""
        rng = random.Random(f"{self.name} {request.request_id}")
        begin = time.monotonic()
        message = request.to_json()
        failures: Counter[str] = Counter()
        state, why = "lost", ""
        for attempt in range(1, _ATTEMPTS_MAX + 1):  # noqa: B007
            try:
                grade = self.door.grade(message, request.hang_up_after)
                return self._answered(request, attempt, begin, grade, failures)
            except HungUp:
                state, why = "hung_up", ""
                break
            except Failure as failure:
                why = failure.reason
                failures[why] += 1
                if not failure.again:
                    state = "refused"
                    break
                delay = max(failure.delay, min(_DELAY_MAX, _DELAY_INITIAL * 2 ** (attempt - 1)))
            if time.monotonic() - begin + delay > self.seconds_max:
                break
            time.sleep(delay * rng.uniform(0.8, 1.2))
        seconds = time.monotonic() - begin
        return Outcome(
            request, self.name, state, self.life(), attempt, seconds, self.now(), reason=why, failures=dict(failures)
        )

    def _answered(
        self, request: LogicalRequest, attempts: int, begin: float, grade: dict[str, Any], failures: Counter[str]
    ) -> Outcome:
        return Outcome(
            request,
            self.name,
            "answered",
            self.life(),
            attempts,
            time.monotonic() - begin,
            self.now(),
            verdict=grade.get("verdict", "").removeprefix("VERDICT_"),
            reward=grade.get("reward", {}).get("value"),
            grade=_without_zeros(grade),
            reason=grade.get("verdictReason", "")[:300],
            cached=bool(grade.get("cached")),
            cost={key: float(value) for key, value in grade.get("cost", {}).items()},
            failures=dict(failures),
        )


@dataclass
class Clients:
    """Threads over one queue. `life` is as a Client's."""

    doors: dict[str, Door]
    requests: list[LogicalRequest]
    life: Callable[[], int]
    threads_each: int
    outcomes: list[Outcome] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._queue: queue.SimpleQueue[LogicalRequest] = queue.SimpleQueue()
        for request in self.requests:
            self._queue.put(request)
        self._begin = time.monotonic()
        self._threads = [
            threading.Thread(target=self._work, args=(Client(name, door, self.life, self._now),), daemon=True)
            for name, door in self.doors.items()
            for _ in range(self.threads_each)
        ]

    def start(self) -> None:
        self._begin = time.monotonic()
        for thread in self._threads:
            thread.start()

    @property
    def share_done(self) -> float:
        return len(self.outcomes) / max(len(self.requests), 1)

    @property
    def running(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def stop(self, seconds_max: float) -> None:
        """Sends nothing new; what was not sent is written down as such."""
        self._stop.set()
        end = time.monotonic() + seconds_max
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        while not self._queue.empty():
            self._write_down(Outcome(self._queue.get(), "", "unsent", 0, 0, 0.0, self._now()))

    def _now(self) -> float:
        return time.monotonic() - self._begin

    def _write_down(self, outcome: Outcome) -> None:
        with self._lock:
            self.outcomes.append(outcome)

    def _work(self, client: Client) -> None:
        while not self._stop.is_set():
            try:
                request = self._queue.get_nowait()
            except queue.Empty:
                return
            self._write_down(client.ask(request))
