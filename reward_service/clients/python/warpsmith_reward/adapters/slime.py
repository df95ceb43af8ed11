"""slime and miles: functions for --custom-rm-path.

    --custom-rm-path warpsmith_reward.adapters.slime.reward
    --group-rm --custom-rm-path warpsmith_reward.adapters.slime.group_rewards

`sample.label` is the reference; `sample.metadata` may have previous_source and task_id. The service's place comes from
WARPSMITH_REWARD_URL. A sample that cannot be scored is marked to be removed from the loss; what no retry can help
raises RequestRefused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warpsmith_reward.adapters.failures import failure_log, raise_refusal
from warpsmith_reward.adapters.settings import Settings, numbers_of, task_of
from warpsmith_reward.client import AsyncRewardClient


async def _numbers(samples: Sequence[Any]) -> list[dict[str, float]]:
    settings = Settings()
    requests = [settings.request(sample.label, sample.response, **task_of(sample.metadata)) for sample in samples]
    async with AsyncRewardClient(**settings.connection) as client:
        answers = await client.grade_all(requests)
    raise_refusal(answers)
    failure_log.warn(answers)
    numbers = [numbers_of(answer) for answer in answers]
    for sample, row in zip(samples, numbers, strict=True):
        if row["infra_error"]:
            sample.remove_sample = True
    return numbers


async def reward(args: Any, sample: Any, **_: Any) -> float:
    """The reward of one sample. slime still counts the 0 of a removed sample in its group's mean: see group_rewards."""
    return (await _numbers([sample]))[0]["score"]


async def group_rewards(args: Any, samples: Sequence[Any], **_: Any) -> list[float]:
    """The rewards of a group. A removed sample gets the mean of the others, which leaves the group's mean as it is."""
    numbers = await _numbers(samples)
    scores = [row["score"] for row in numbers if not row["infra_error"]]
    mean = sum(scores) / len(scores) if scores else 0.0
    return [mean if row["infra_error"] else row["score"] for row in numbers]
