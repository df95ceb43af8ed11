"""verl: `compute_score` for reward.custom_reward_function.

    reward.custom_reward_function.path=pkg://warpsmith_reward.adapters.verl
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.url=http://HOST:8061

`reward_model.ground_truth` of the data set is the reference; `extra_info` may have previous_source and task_id.
A function cannot leave a sample out in verl: it gets score 0 and infra_error 1, to be watched. The reward manager of
`verl_reward_manager` can.
"""

from __future__ import annotations

from typing import Any

from warpsmith_reward.adapters.failures import failure_log, raise_refusal
from warpsmith_reward.adapters.settings import numbers_of, settings_among, task_of
from warpsmith_reward.client import AsyncRewardClient


async def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None, **others: Any
) -> dict[str, float]:
    """The score and its components, with the same keys on every path, as verl's batches need.

    Raises RequestRefused where no retry can help, ValueError for settings that are not known.
    """
    settings = settings_among(others)
    request = settings.request(ground_truth, solution_str, **task_of(extra_info))
    async with AsyncRewardClient(**settings.connection) as client:
        answers = await client.grade_all([request])
    raise_refusal(answers)
    failure_log.warn(answers)
    return numbers_of(answers[0])
