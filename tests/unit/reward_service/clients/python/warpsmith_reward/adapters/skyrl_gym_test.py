"""SkyRL-gym's contract for a text environment: made with extras, stepped once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from warpsmith_reward.messages import RequestRefused, RewardServiceError

from tests.support.fake_reward_door import FakeRewardDoor


class _BaseTextEnv:
    pass


_EXTRAS = {
    "reward_spec": {"method": "rule", "ground_truth": "r"},
    "extra_info": {"task_id": "t", "previous_source": None},
    "max_turns": 1,
}


def _env(load_adapter: Callable[..., Any], **settings: str) -> Any:
    module = load_adapter(
        "skyrl_gym", "skyrl_gym.envs.base_text_env", BaseTextEnv=_BaseTextEnv, BaseTextEnvStepOutput=dict
    )
    return module.WarpsmithEnv(env_config={}, extras=_EXTRAS, **settings)


def test_one_step_is_graded_and_ends_the_episode(load_adapter: Callable[..., Any], door: FakeRewardDoor) -> None:
    env = _env(load_adapter, formula="kevin-v1")
    output = env.step("1.5")
    assert (output["reward"], output["done"], output["observations"]) == (1.5, True, [])
    assert output["metadata"]["speedup"] == env.get_metrics()["speedup"] == 2.0
    (post,) = door.posts[0]
    assert (post["task"]["referenceSource"], post["task"]["id"], post["formula"]) == ("r", "t", "kevin-v1")


@pytest.mark.parametrize("answer", ["unscorable", "invalid", "refused"])
def test_what_cannot_be_scored_raises(load_adapter: Callable[..., Any], door: FakeRewardDoor, answer: str) -> None:
    env = _env(load_adapter)
    with pytest.raises(RewardServiceError):
        env.step(answer)
    assert env.get_metrics()["infra_error"] == 1.0


def test_zero_is_for_those_who_ask_for_it(load_adapter: Callable[..., Any], door: FakeRewardDoor) -> None:
    env = _env(load_adapter, unscorable="zero")
    assert env.step("unscorable")["reward"] == 0.0
    assert env.get_metrics()["infra_error"] == 1.0
    with pytest.raises(RequestRefused, match="no reference"):
        env.step("refused")
