"""verl: a reward manager, which leaves out of training what cannot be scored.

    reward.reward_manager.source=importlib
    reward.reward_manager.name=WarpsmithRewardManager
    reward.reward_manager.module.path=pkg://warpsmith_reward.adapters.verl_reward_manager
    +reward.reward_kwargs.url=http://HOST:8061

It raises for a sample that cannot be scored. verl's trainer (trainer.use_v1, the default) records that as the failure
of one session: its siblings are trained on without it.
"""

from __future__ import annotations

from typing import Any

from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

from warpsmith_reward.adapters.settings import numbers_of, reward_of, settings_among, task_of
from warpsmith_reward.client import AsyncRewardClient


class WarpsmithRewardManager(RewardManagerBase):
    """Grades samples one by one, as verl asks, many at once. Columns are those of `adapters.verl`."""

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any = None, **_: Any) -> None:
        """`config.reward.reward_kwargs` may have the fields of Settings."""
        super().__init__(config, tokenizer, compute_score)
        self._settings = settings_among(config.reward.get("reward_kwargs") or {})

    async def run_single(self, data: Any) -> dict[str, Any]:
        """The score of the last sequence of `data`; RewardServiceError where there is none."""
        item = data[-1:][0]
        columns = item.non_tensor_batch
        request = self._settings.request(
            columns["reward_model"]["ground_truth"],
            await self.loop.run_in_executor(None, self._answer, item.batch),
            **task_of(columns.get("extra_info")),
        )
        async with AsyncRewardClient(**self._settings.connection) as client:
            answer = (await client.grade_all([request]))[0]
        return {"reward_score": reward_of(answer), "reward_extra_info": numbers_of(answer)}

    def _answer(self, batch: Any) -> str:
        responses = batch["responses"]
        length = int(batch["attention_mask"][-responses.shape[-1] :].sum())
        return str(self.tokenizer.decode(responses[:length], skip_special_tokens=True))
