"""verl: `compute_score` for reward.custom_reward_function.

    reward.custom_reward_function.path=$(python -c "import warpsmith_reward.adapters.verl as a; print(a.__file__)")
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.url=http://HOST:8061

`reward_model.ground_truth` of the dataset is the reference; `extra_info` may have previous_source and task_id.
verl has no way to leave a sample out here: it gets score 0 and infra_error 1, to be masked or watched.
"""

from __future__ import annotations

from typing import Any

from warpsmith_reward.adapters.settings import Settings, numbers_of
from warpsmith_reward.client import AsyncRewardClient

_OF_SETTINGS = frozenset(Settings.__dataclass_fields__)


async def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None, **others: Any
) -> dict[str, float]:
    """The score and its components, with the same keys on every path, as verl's batches need."""
    settings = Settings(**{key: value for key, value in others.items() if key in _OF_SETTINGS})
    extra = extra_info or {}
    request = settings.request(
        ground_truth, solution_str, extra.get("previous_source") or "", str(extra.get("task_id") or "")
    )
    async with AsyncRewardClient(**settings.connection) as client:
        return numbers_of((await client.grade_all([request]))[0])
