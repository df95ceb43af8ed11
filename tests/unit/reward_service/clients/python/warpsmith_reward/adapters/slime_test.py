"""slime's contract for a custom reward function, for one sample and for a group."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from warpsmith_reward import RequestRefused
from warpsmith_reward.adapters.slime import group_rewards, reward

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


def test_a_removed_sample_leaves_the_mean_of_its_group_as_it_is(door: FakeRewardDoor) -> None:
    group = [_sample("1"), _sample("invalid"), _sample("2")]
    assert asyncio.run(group_rewards(None, group)) == [1.0, 1.5, 2.0]
    assert [sample.remove_sample for sample in group] == [False, True, False]
    assert len(door.posts) == 1


def test_a_group_without_any_reward_is_removed_whole(door: FakeRewardDoor) -> None:
    group = [_sample("long"), _sample("unscorable")]
    assert asyncio.run(group_rewards(None, group)) == [0.0, 0.0]
    assert all(sample.remove_sample for sample in group)


def test_what_no_retry_can_help_raises(door: FakeRewardDoor) -> None:
    with pytest.raises(RequestRefused, match="no reference"):
        asyncio.run(group_rewards(None, [_sample("1"), _sample("refused")]))
