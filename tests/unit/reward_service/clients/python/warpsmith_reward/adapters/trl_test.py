"""TRL's contract for a function of `reward_funcs`."""

from __future__ import annotations

import asyncio

from warpsmith_reward.adapters.trl import reward_function

from tests.support.fake_reward_door import FakeRewardDoor


def test_rewards_come_in_order_and_none_where_there_is_none(door: FakeRewardDoor) -> None:
    function = reward_function(formula="kevin-v1")
    rewards = asyncio.run(
        function(
            prompts=["p"] * 4,
            completions=["1.5", [{"role": "assistant", "content": "2.5"}], "unscorable", "refused"],
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
