"""When the client asks again."""

from __future__ import annotations

import random

import pytest
from warpsmith_reward import RequestRefused, ServiceUnavailable
from warpsmith_reward.retries import Again, RetryOptions, explain, explain_item


def test_delays_double_up_to_a_bound_and_are_never_shorter_than_asked() -> None:
    options = RetryOptions(delay_initial=1, delay_max=4, random=random.Random(1))
    for attempt, middle in ((1, 1), (2, 2), (3, 4), (9, 4)):
        assert 0.8 * middle <= options.delay(attempt, None) <= 1.2 * middle
    assert options.delay(1, 30) >= 24


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_may_pass_is_tried_again(status: int) -> None:
    found = explain(status, {"error": {"message": "full", "retryDelayMs": 1500}})
    assert found == Again("full", 1.5)
    assert explain(status, None) == Again(f"HTTP status {status}")


def test_refusals_and_failures_are_final() -> None:
    assert isinstance(explain(400, {"error": {"message": "no reference"}}), RequestRefused)
    assert isinstance(explain(500, "oops"), ServiceUnavailable)


def test_requests_of_a_list_have_codes() -> None:
    assert explain_item({"status": "UNAVAILABLE", "message": "stopping"}) == Again("stopping")
    assert explain_item({"status": "RESOURCE_EXHAUSTED", "message": "full", "retryDelayMs": 10}) == Again("full", 0.01)
    assert isinstance(explain_item({"status": "INVALID_ARGUMENT"}), RequestRefused)
