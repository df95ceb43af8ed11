"""slime's contract for a custom reward function."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from warpsmith_reward.adapters.slime import reward

from tests.support.fake_reward_door import FakeRewardDoor


def _sample(response: str) -> SimpleNamespace:
    return SimpleNamespace(label="r", response=response, metadata={"task_id": "t"}, remove_sample=False)


def test_a_sample_gets_its_reward_and_is_removed_where_there_is_none(door: FakeRewardDoor) -> None:
    graded, failed = _sample("1.5"), _sample("unscorable")
    assert asyncio.run(reward(None, graded, evaluation=False)) == 1.5
    assert graded.remove_sample is False
    assert asyncio.run(reward(None, failed)) == 0.0
    assert failed.remove_sample is True
    assert door.posts[0][0]["task"]["id"] == "t"
