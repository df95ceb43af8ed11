"""slime and miles: a function for --custom-rm-path warpsmith_reward.adapters.slime.reward.

`sample.label` is the reference; `sample.metadata` may have previous_source and task_id. The service's place comes from
WARPSMITH_REWARD_URL.
"""

from __future__ import annotations

from typing import Any

from warpsmith_reward.adapters.settings import Settings, numbers_of
from warpsmith_reward.client import AsyncRewardClient


async def reward(args: Any, sample: Any, **_: Any) -> float:
    """The reward of one sample; one that cannot be scored is marked to be removed from the loss."""
    settings = Settings()
    metadata = sample.metadata or {}
    request = settings.request(
        sample.label, sample.response, metadata.get("previous_source") or "", str(metadata.get("task_id") or "")
    )
    async with AsyncRewardClient(**settings.connection) as client:
        numbers = numbers_of((await client.grade_all([request]))[0])
    if numbers["infra_error"]:
        sample.remove_sample = True
    return numbers["score"]
