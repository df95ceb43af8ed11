"""Requests and grades in protobuf's JSON."""

from __future__ import annotations

import re

import pytest
from warpsmith_reward import Grade, Priority, Request


def _request(text: str = "a") -> Request:
    return Request(reference_source="class Model: pass", answer=text)


def test_what_cannot_be_scored_has_no_reward() -> None:
    grade = Grade.from_json({"verdict": "VERDICT_UNSCORABLE", "reward": {"formula": "warpsmith-v1"}})
    assert grade.reward is None
    assert not grade.scorable


def test_the_same_request_has_the_same_id_and_another_one_another() -> None:
    ids = [_request().to_json()["requestId"], _request().to_json()["requestId"], _request("b").to_json()["requestId"]]
    assert ids[0] == ids[1] != ids[2]


def test_a_request_may_be_repeated_with_another_priority() -> None:
    low = Request(reference_source="r", answer="a", priority=Priority.LOW).to_json()
    high = Request(reference_source="r", answer="a", priority=Priority.HIGH).to_json()
    assert low["requestId"] == high["requestId"]
    assert (low["priority"], high["priority"]) == ("PRIORITY_LOW", "PRIORITY_HIGH")


def test_a_device_is_part_of_the_task_and_of_what_the_id_stands_for() -> None:
    anywhere, there = (Request("r", answer="a", device=device).to_json() for device in ("", "cuda"))
    assert "device" not in anywhere["task"]
    assert there["task"]["device"] == "DEVICE_CUDA"
    assert anywhere["requestId"] != there["requestId"]


def test_allowed_libraries_are_part_of_the_task_and_of_what_the_id_stands_for() -> None:
    none, blas = (Request("r", answer="a", allowed_libraries=names).to_json() for names in ((), ("blas",)))
    assert "allowedLibraries" not in none["task"]
    assert blas["task"]["allowedLibraries"] == ["blas"]
    assert none["requestId"] != blas["requestId"]


def test_previous_code_makes_it_the_other_skill() -> None:
    feedback = {"advice": "ADVICE_TILE", "evidence": "speedup 1.10"}
    message = Request("r", source="s", language="cpp", previous_source="p", previous_feedback=feedback).to_json()
    assert message["task"]["feedback"] == feedback
    assert message["task"]["skill"] == "SKILL_OPTIMISE"
    assert message["task"]["previousSource"] == "p"
    assert message["candidate"] == {"language": "CANDIDATE_LANGUAGE_CPP", "source": "s"}


def test_a_program_is_a_kernelbench_one_unless_said_otherwise() -> None:
    assert _request().to_json()["candidate"]["language"] == "CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON"


def test_answer_and_source_together_are_refused() -> None:
    with pytest.raises(ValueError, match="both answer and source"):
        Request("r", answer="a", source="s")


def test_an_empty_answer_is_one() -> None:
    assert Request("r", answer="").to_json()["candidate"]["answer"] == ""


@pytest.mark.parametrize("language", ["rust", "c++", "python", ""])
def test_a_language_that_is_not_known_is_refused_and_those_known_are_named(language: str) -> None:
    with pytest.raises(ValueError, match=f"{re.escape(repr(language))} is not known.* kernelbench_python, cpp, cuda"):
        Request("r", answer="a", language=language)


def test_a_device_that_is_not_known_is_refused_and_those_known_are_named() -> None:
    with pytest.raises(ValueError, match="'gpu' is not known; there are cpu, cuda"):
        Request("r", answer="a", device="gpu")


def test_what_is_no_grade_is_an_error() -> None:
    for message in ({}, {"verdict": "VERDICT_SPLENDID"}, {"verdict": "VERDICT_CORRECT", "reward": {"value": "high"}}):
        with pytest.raises((KeyError, ValueError)):
            Grade.from_json(message)
