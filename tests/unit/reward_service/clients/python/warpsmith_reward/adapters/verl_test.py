"""verl's contract for compute_score: called by keywords, the same keys always."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from warpsmith_reward import RequestRefused
from warpsmith_reward.adapters.verl import compute_score

from tests.support.fake_reward_door import FakeRewardDoor


def _score(door: FakeRewardDoor, answer: str, **others: Any) -> dict[str, float]:
    arguments = {"data_source": "kernelbench", "solution_str": answer, "ground_truth": "r", "extra_info": None}
    return asyncio.run(compute_score(**{**arguments, "url": door.url, "reward_router_address": "x", **others}))


def test_a_score_and_its_components(door: FakeRewardDoor) -> None:
    assert _score(door, "1.5") == {
        "score": 1.5,
        "acc": 1.0,
        "speedup": 2.0,
        "credited_speedup": 0.0,
        "library_share": 0.0,
        "compiled": 1.0,
        "hack": 0.0,
        "infra_error": 0.0,
    }
    assert list(_score(door, "unscorable")) == list(_score(door, "1.5"))
    assert _score(door, "unscorable")["infra_error"] == 1.0


def test_extra_info_names_task_and_previous_code(door: FakeRewardDoor) -> None:
    _score(door, "1", extra_info={"previous_source": "before", "task_id": 7, "num_turns": 1})
    task = door.posts[0][0]["task"]
    assert (task["id"], task["previousSource"]) == ("7", "before")


def test_a_misspelt_setting_is_refused_before_anything_is_sent(door: FakeRewardDoor) -> None:
    with pytest.raises(ValueError, match="'langage' is no setting; did you mean 'language'"):
        _score(door, "1", langage="cpp")
    assert door.posts == []


def test_what_no_retry_can_help_raises_in_the_words_of_the_service(door: FakeRewardDoor) -> None:
    with pytest.raises(RequestRefused, match="^no reference$"):
        _score(door, "refused")
    assert _score(door, "long")["infra_error"] == 1.0
