"""SkyRL-gym: registered, made and stepped as SkyRL's generator does."""

from __future__ import annotations

from typing import Any

import skyrl_gym
from kernel_tasks import BROKEN_REFERENCE, REFERENCE, RIGHT, URL, WRONG, expected_rewards, report
from warpsmith_reward import RewardServiceError
from warpsmith_reward.adapters.skyrl_gym import WarpsmithEnv


def _env(name: str, reference: str) -> Any:
    extras = {"reward_spec": {"ground_truth": reference}, "extra_info": {"task_id": ""}, "max_turns": 1}
    env = skyrl_gym.make(name, env_config={}, extras=extras)
    prompt = [{"role": "user", "content": "p"}]
    assert env.init(prompt) == (prompt, {})
    return env


def main() -> None:
    """Fails by assertion."""
    entry_point = "warpsmith_reward.adapters.skyrl_gym:WarpsmithEnv"
    skyrl_gym.register("warpsmith", entry_point, kwargs={"url": URL})
    skyrl_gym.register("warpsmith_zero", entry_point, kwargs={"url": URL, "unscorable": "zero"})
    for answer, reward in zip((RIGHT, WRONG), expected_rewards(), strict=True):
        env = _env("warpsmith", REFERENCE)
        output = env.step(answer)
        assert (output["reward"], output["done"], output["observations"]) == (reward, True, [])
        assert env.get_metrics()["infra_error"] == 0.0
        env.close()
    broken = _env("warpsmith", BROKEN_REFERENCE)
    try:
        broken.step(RIGHT)
    except RewardServiceError as error:
        report(f"unscorable raises: {error}")
    else:
        raise AssertionError("a sample without a reward did not raise")
    zero = _env("warpsmith_zero", BROKEN_REFERENCE)
    assert zero.step(RIGHT)["reward"] == 0.0
    metrics = WarpsmithEnv.aggregate_metrics([zero.get_metrics(), env.get_metrics()])
    assert metrics["infra_error"] == 0.5, metrics


if __name__ == "__main__":
    main()
