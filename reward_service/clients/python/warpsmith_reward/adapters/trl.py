"""TRL: a function for `reward_funcs` of GRPOTrainer.

    trainer = GRPOTrainer(model, reward_funcs=reward_function(), train_dataset=dataset, ...)

The dataset has a column `reference_source` beside `prompt`, and may have `previous_source` and `task_id`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from warpsmith_reward.adapters.failures import failure_log, raise_refusal
from warpsmith_reward.adapters.settings import Settings, text_of
from warpsmith_reward.client import AsyncRewardClient
from warpsmith_reward.messages import Grade

RewardFunction = Callable[..., Coroutine[Any, Any, list[float | None]]]


def reward_function(**settings: Any) -> RewardFunction:
    """`settings` are those of Settings. What cannot be scored is None, which TRL leaves out of group and loss.

    The function raises RequestRefused where no retry can help, as with a formula that the service does not have.
    """
    asked = Settings(**settings)

    async def warpsmith_reward(
        completions: list[Any], reference_source: list[str], **columns: Any
    ) -> list[float | None]:
        nothing = [""] * len(completions)
        previous, task_ids = columns.get("previous_source", nothing), columns.get("task_id", nothing)
        requests = [
            asked.request(reference, text_of(completion), before or "", str(task_id))
            for completion, reference, before, task_id in zip(
                completions, reference_source, previous, task_ids, strict=True
            )
        ]
        async with AsyncRewardClient(**asked.connection) as client:
            answers = await client.grade_all(requests)
        raise_refusal(answers)
        failure_log.warn(answers)
        return [answer.reward if isinstance(answer, Grade) else None for answer in answers]

    return warpsmith_reward
