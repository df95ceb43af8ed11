"""SkyRL: an environment of one step, to be registered in the entry point.

    entry_point = "warpsmith_reward.adapters.skyrl_gym:WarpsmithEnv"
    skyrl_gym.register("warpsmith", entry_point, kwargs={"url": "http://HOST:8061"})

`reward_spec.ground_truth` of the data set is the reference; `extra_info` may have previous_source and task_id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from warpsmith_reward.adapters.failures import failure_log, raise_refusal
from warpsmith_reward.adapters.settings import Settings, numbers_of, reward_of, task_of
from warpsmith_reward.client import RewardClient


class WarpsmithEnv(BaseTextEnv):
    """One answer, one grade. Used by one thread at a time, as SkyRL does."""

    def __init__(
        self,
        env_config: Any = None,
        extras: Mapping[str, Any] | None = None,
        unscorable: Literal["raise", "zero"] = "raise",
        **settings: str,
    ) -> None:
        """`unscorable` and the fields of Settings come from the `kwargs` of skyrl_gym.register."""
        super().__init__()
        extras = extras or {}
        self._settings = Settings(**settings)
        self._unscorable = unscorable
        self._reference = str(extras["reward_spec"]["ground_truth"])
        self._task = task_of(extras.get("extra_info"))
        self._numbers: dict[str, float] = {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Grades `action`. SkyRL cannot leave a sample out: one that cannot be scored raises RewardServiceError, which
        ends the run, or is 0 where `unscorable` says so; what no retry can help raises RequestRefused in any case."""
        request = self._settings.request(self._reference, action, **self._task)
        with RewardClient(**self._settings.connection) as client:
            answer = client.grade_all([request])[0]
        self._numbers = numbers_of(answer)
        raise_refusal([answer])
        failure_log.warn([answer])
        reward = self._numbers["score"] if self._unscorable == "zero" else reward_of(answer)
        return BaseTextEnvStepOutput(observations=[], reward=reward, done=True, metadata=dict(self._numbers))

    def get_metrics(self) -> dict[str, Any]:
        """What SkyRL averages and logs, among them infra_error."""
        return dict(self._numbers)
