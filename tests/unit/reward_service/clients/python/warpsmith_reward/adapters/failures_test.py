"""What becomes of answers without a grade."""

from __future__ import annotations

import asyncio
import logging

import pytest
from warpsmith_reward import Grade, RequestRefused, ServiceUnavailable
from warpsmith_reward.adapters.failures import FailureLog, raise_refusal
from warpsmith_reward.adapters.trl import reward_function
from warpsmith_reward.retries import RetryOptions

_GRADE = Grade.from_json({"verdict": "VERDICT_CORRECT", "reward": {"value": 2}})
_AWAY = ServiceUnavailable("after 9.0 s and 8 failed attempts: http://a:1: ConnectError: refused")


def test_the_first_refusal_is_raised() -> None:
    refusal = RequestRefused("formula x is unknown")
    with pytest.raises(RequestRefused) as raised:
        raise_refusal([_GRADE, _AWAY, refusal, RequestRefused("another")])
    assert raised.value is refusal


def test_neither_an_absent_service_nor_an_answer_too_long_ends_a_run() -> None:
    raise_refusal([_GRADE, _AWAY, RequestRefused("candidate.answer has 9 bytes; this service takes at most 4")])


def test_a_warning_names_url_and_reason_once_a_minute_and_counts_what_was_not_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [1000.0]
    log = FailureLog(lambda: now[0])
    for second in (0, 1, 59, 61, 62):
        now[0] = 1000.0 + second
        log.warn([_GRADE, _AWAY, _AWAY])
    log.warn([_GRADE])
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert [record.getMessage() for record in caplog.records] == [
        f"2 samples have no reward: {_AWAY}",
        f"6 samples have no reward: {_AWAY}",
    ]


def test_an_absent_service_is_none_and_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("warpsmith_reward.adapters.trl.failure_log", FailureLog())
    monkeypatch.setattr("warpsmith_reward.client.RetryOptions", lambda: RetryOptions(attempts_max=1))
    function = reward_function(url="http://127.0.0.1:9")
    assert asyncio.run(function(completions=["a", "b"], reference_source=["r", "r"])) == [None, None]
    (record,) = caplog.records
    assert record.getMessage().startswith("2 samples have no reward: ")
    assert "http://127.0.0.1:9: ConnectError" in record.getMessage()
