"""How long a list goes on asking, and which replica it asks, by a clock of the test's own."""

from __future__ import annotations

import random

from warpsmith_reward.patience import Patience, Replicas
from warpsmith_reward.retries import Again, RetryOptions

_OPTIONS = RetryOptions(attempts_max=3, seconds_max=100, delay_initial=1, delay_max=4, random=random.Random(0))
_BUSY = Again("the queue is full", 10.0, busy=True)
_DOWN = Again("connection refused")


class _Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _patience(count: int = 1, options: RetryOptions = _OPTIONS) -> tuple[Patience, Replicas, _Clock]:
    clock = _Clock()
    replicas = Replicas([f"http://{index}/" for index in range(count)], clock)
    return Patience(options, replicas), replicas, clock


def test_a_full_service_is_waited_for_as_asked_and_costs_no_attempt() -> None:
    patience, _, clock = _patience()
    for _ in range(5):
        assert patience.after(0, _BUSY) is None
        index, seconds = patience.next()
        assert index == 0
        assert 10.0 <= seconds <= 12.0
        clock.now += seconds
    assert [patience.after(0, _DOWN) is None for _ in range(3)] == [True, True, False]


def test_a_service_that_stays_full_ends_in_words_that_say_how_long_and_how_often() -> None:
    patience, _, clock = _patience()
    times = 1
    while (error := patience.after(0, _BUSY)) is None:
        clock.now += patience.next()[1]
        times += 1
    assert 8 <= times <= 10
    assert str(error).startswith(f"after {clock.now - 1000:.1f} s and 0 failed attempts, told {times} times")
    assert "would pass the 100 s allowed: the queue is full" in str(error)
    assert clock.now <= 1100


def test_failed_attempts_are_bounded_and_counted() -> None:
    patience, _, _ = _patience()
    patience.after(0, _BUSY)
    errors = [patience.after(0, _DOWN) for _ in range(3)]
    assert errors[:2] == [None, None]
    assert str(errors[2]) == (
        "after 0.0 s and 3 failed attempts, told 1 times that the service is full: connection refused"
    )


def test_a_delay_that_ends_too_late_is_not_begun() -> None:
    patience, _, _ = _patience()
    error = patience.after(0, Again("full", 3600.0, busy=True))
    assert error is not None
    assert "would pass the 100 s allowed" in str(error)


def test_replicas_are_asked_in_turn() -> None:
    _, replicas, _ = _patience(3)
    assert [replicas.order() for _ in range(4)] == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]
    assert replicas.urls[1] == "http://1"


def test_another_replica_is_asked_at_once_where_one_fails_or_is_full() -> None:
    patience, _, _ = _patience(2)
    assert patience.after(0, _DOWN) is None
    assert patience.next() == (1, 0.0)
    assert patience.after(1, _BUSY) is None
    index, seconds = patience.next()
    assert (index, 0.8 <= seconds <= 1.2) == (0, True)


def test_what_one_list_learns_of_a_replica_others_use() -> None:
    first, replicas, clock = _patience(2)
    first.after(0, _BUSY)
    assert [Patience(_OPTIONS, replicas).next() for _ in range(4)] == [(1, 0.0)] * 4
    clock.now += 12.1
    assert {Patience(_OPTIONS, replicas).next() for _ in range(2)} == {(0, 0.0), (1, 0.0)}


def test_a_replica_that_others_found_full_is_asked_where_there_is_no_better() -> None:
    first, replicas, _ = _patience(1)
    first.after(0, _BUSY)
    assert Patience(_OPTIONS, replicas).next() == (0, 0.0)


def test_each_replica_has_its_own_attempts() -> None:
    patience, _, _ = _patience(2)
    outcomes = [patience.after(times % 2, _DOWN) is None for times in range(6)]
    assert outcomes == [True] * 5 + [False]
