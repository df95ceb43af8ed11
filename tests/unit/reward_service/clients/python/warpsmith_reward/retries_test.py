"""When the client asks again."""

from __future__ import annotations

import random

import pytest
from warpsmith_reward import RequestRefused, ServiceUnavailable
from warpsmith_reward.retries import Again, RetryOptions, explain, explain_item

_OPTIONS = RetryOptions(delay_initial=1, delay_max=4, random=random.Random(1))


def test_delays_double_up_to_a_bound() -> None:
    for times, middle in ((1, 1), (2, 2), (3, 4), (9, 4), (10_000, 4)):
        assert 0.8 * middle <= _OPTIONS.delay(times, Again("")) <= 1.2 * middle


def test_no_delay_is_shorter_than_asked_nor_much_longer() -> None:
    for _ in range(100):
        assert 30 <= _OPTIONS.delay(1, Again("", 30)) <= 36
        assert 30 <= _OPTIONS.delay(9, Again("", 30, busy=True)) <= 36


def test_a_full_service_is_believed_but_not_hammered() -> None:
    assert _OPTIONS.delay(9, Again("", 1.5, busy=True)) <= 1.8
    assert _OPTIONS.delay(1, Again("", 0.0, busy=True)) >= 1
    assert _OPTIONS.delay(9, Again("", 1.5)) >= 4


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_may_pass_is_tried_again(status: int) -> None:
    busy = status == 429
    assert explain(status, {"error": {"message": "full", "retryDelayMs": 1500}}) == Again("full", 1.5, busy)
    assert explain(status, None) == Again(f"HTTP status {status}", None, busy)


def test_what_stands_before_the_service_says_its_delay_in_a_header() -> None:
    assert explain(429, None, {"Retry-After": "7"}) == Again("HTTP status 429", 7.0, busy=True)
    assert explain(503, None, {"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}) == Again("HTTP status 503")
    both = explain(429, {"error": {"message": "full", "retryDelayMs": 200}}, {"Retry-After": "1"})
    assert both == Again("full", 0.2, busy=True)


def test_refusals_and_failures_are_final() -> None:
    for status in ("INVALID_ARGUMENT", "FAILED_PRECONDITION"):
        assert isinstance(explain(400, {"error": {"status": status, "message": "no GPU"}}), RequestRefused)
    assert isinstance(explain(500, "oops"), ServiceUnavailable)


def test_an_error_of_another_kind_of_server_is_read_as_its_status() -> None:
    error = explain(404, {"error": "Not Found"})
    assert isinstance(error, RequestRefused)
    assert str(error) == "HTTP status 404"


def test_requests_of_a_list_have_codes() -> None:
    assert explain_item({"status": "UNAVAILABLE", "message": "stopping"}) == Again("stopping")
    full = {"status": "RESOURCE_EXHAUSTED", "message": "full", "retryDelayMs": 10}
    assert explain_item(full) == Again("full", 0.01, busy=True)
    assert isinstance(explain_item({"status": "RESOURCE_EXHAUSTED", "message": "too large"}), RequestRefused)
    assert isinstance(explain_item({"status": "INVALID_ARGUMENT"}), RequestRefused)
    assert isinstance(explain_item({"status": "FAILED_PRECONDITION", "message": "no GPU"}), RequestRefused)
