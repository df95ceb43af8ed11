"""OpenRLHF's contract for reward_func: query is prompt and response."""

from __future__ import annotations

import pytest
from warpsmith_reward.adapters.openrlhf import reward_func
from warpsmith_reward.messages import RewardServiceError

from tests.support.fake_reward_door import FakeRewardDoor


def test_rewards_scores_and_logs_are_tensors(door: FakeRewardDoor) -> None:
    result = reward_func(["ask: 1.5", "ask: 0.5"], ["ask: ", "ask: "], ["r", "r"])
    assert result["rewards"].tolist() == [1.5, 0.5]
    assert result["scores"].tolist() == [1.0, 1.0]
    assert result["extra_logs"]["speedup"].tolist() == [2.0, 2.0]
    assert door.posts[0][0]["candidate"]["answer"] == "1.5"


def test_no_samples_are_no_rewards() -> None:
    assert reward_func([], [], [])["rewards"].tolist() == []


def test_what_cannot_be_scored_raises(door: FakeRewardDoor) -> None:
    with pytest.raises(RewardServiceError, match="a full disk"):
        reward_func(["unscorable"], [""], ["r"])
