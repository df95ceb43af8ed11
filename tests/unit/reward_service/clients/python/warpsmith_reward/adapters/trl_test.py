"""TRL's contract for a function of `reward_funcs`."""

from __future__ import annotations

import asyncio

import pytest
from warpsmith_reward import RequestRefused
from warpsmith_reward.adapters.trl import reward_function

from tests.support.fake_reward_door import FakeRewardDoor


def test_rewards_come_in_order_and_none_where_there_is_none(door: FakeRewardDoor) -> None:
    function = reward_function(formula="kevin-v1")
    rewards = asyncio.run(
        function(
            prompts=["p"] * 4,
            completions=["1.5", [{"role": "assistant", "content": "2.5"}], "unscorable", "long"],
            completion_ids=[[1]] * 4,
            reference_source=["r"] * 4,
            previous_source=[None, "before", None, None],
            trainer_state=None,
        )
    )
    assert rewards == [1.5, 2.5, None, None]
    first, second = door.posts[0][:2]
    assert (first["formula"], first["task"]["referenceSource"]) == ("kevin-v1", "r")
    assert (first["task"]["skill"], second["task"]["skill"]) == ("SKILL_GENERATE", "SKILL_OPTIMISE")
    assert function.__name__ == "warpsmith_reward"


def test_what_no_retry_can_help_raises_in_the_words_of_the_service(door: FakeRewardDoor) -> None:
    with pytest.raises(RequestRefused, match="^no reference$"):
        asyncio.run(reward_function()(completions=["1.5", "refused"], reference_source=["r"] * 2))


def test_a_setting_that_no_service_knows_is_refused_before_training() -> None:
    with pytest.raises(ValueError, match=r"'c\+\+' is not known"):
        reward_function(language="c++")
