"""OpenRLHF's contract for reward_func: query is prompt and response."""

from __future__ import annotations

import math

import pytest
from warpsmith_reward import RequestRefused
from warpsmith_reward.adapters.openrlhf import reward_func

from tests.support.fake_reward_door import FakeRewardDoor


def test_rewards_scores_and_logs_are_tensors(door: FakeRewardDoor) -> None:
    result = reward_func(["ask: 1.5", "ask: 0.5"], ["ask: ", "ask: "], ["r", "r"])
    assert result["rewards"].tolist() == [1.5, 0.5]
    assert result["scores"].tolist() == [1.0, 1.0]
    assert result["extra_logs"]["speedup"].tolist() == [2.0, 2.0]
    assert door.posts[0][0]["candidate"]["answer"] == "1.5"


@pytest.mark.parametrize("end", ["<|im_end|>", "<|eot_id|>\n", "</s>", "<|im_end|><|endoftext|>", "<end_of_turn>", ""])
def test_special_tokens_at_the_end_are_no_part_of_the_answer(door: FakeRewardDoor, end: str) -> None:
    reward_func([f"ask: 1.5{end}"], ["ask: "], ["r"])
    assert door.posts[0][0]["candidate"]["answer"] == "1.5"


def test_no_samples_are_no_rewards() -> None:
    assert reward_func([], [], [])["rewards"].tolist() == []


@pytest.mark.parametrize("answer", ["unscorable", "invalid", "long"])
def test_what_cannot_be_scored_has_no_reward_and_a_score_that_is_filtered_out(
    door: FakeRewardDoor, answer: str
) -> None:
    scored, result = reward_func(["1"], [""], ["r"]), reward_func([answer], [""], ["r"])
    assert result["rewards"] is None
    assert result["scores"].tolist() == [-math.inf]
    assert result["extra_logs"]["infra_error"].tolist() == [1.0]
    assert list(result["extra_logs"]) == list(scored["extra_logs"])


def test_what_no_retry_can_help_raises(door: FakeRewardDoor) -> None:
    with pytest.raises(RequestRefused, match="no reference"):
        reward_func(["refused"], [""], ["r"])
