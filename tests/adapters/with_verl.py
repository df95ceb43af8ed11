"""verl: its reward worker, configured by the lines of docs/adapters/verl.md, scores batches with both adapters."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
import verl
from hydra import compose, initialize_config_dir
from kernel_tasks import BROKEN_REFERENCE, REFERENCE, RIGHT, URL, WRONG, expected_rewards, report
from transformers import AutoTokenizer
from verl import DataProto
from verl.experimental.reward_loop.reward_loop import RewardLoopWorker, migrate_legacy_reward_impl
from warpsmith_reward import RewardServiceError

_MODEL = os.environ["WARPSMITH_ADAPTERS_MODEL"]
_FUNCTION = [
    "reward.custom_reward_function.path=pkg://warpsmith_reward.adapters.verl",
    "reward.custom_reward_function.name=compute_score",
    f"+reward.custom_reward_function.reward_kwargs.url={URL}",
]
_MANAGER = [
    "reward.reward_manager.source=importlib",
    "reward.reward_manager.name=WarpsmithRewardManager",
    "reward.reward_manager.module.path=pkg://warpsmith_reward.adapters.verl_reward_manager",
    f"+reward.reward_kwargs.url={URL}",
]


def _worker(overrides: list[str]) -> RewardLoopWorker:
    folder = Path(verl.__file__).parent / "trainer" / "config"
    with initialize_config_dir(str(folder), version_base=None):
        config = compose("ppo_trainer", overrides=[f"actor_rollout_ref.model.path={_MODEL}", *overrides])
    return RewardLoopWorker(migrate_legacy_reward_impl(config))


def _batch(samples: list[tuple[str, str]]) -> DataProto:
    """Samples are references and answers; prompts are padded on the left and responses on the right."""
    tokenizer = AutoTokenizer.from_pretrained(_MODEL)
    responses = [
        tokenizer(answer + tokenizer.eos_token, add_special_tokens=False)["input_ids"] for _, answer in samples
    ]
    length = 8 + max(len(response) for response in responses)
    ids = torch.zeros(len(samples), length, dtype=torch.long)
    mask = torch.zeros(len(samples), 4 + length, dtype=torch.long)
    mask[:, 2:4] = 1
    for row, response in enumerate(responses):
        ids[row, : len(response)] = torch.tensor(response)
        mask[row, 4 : 4 + len(response)] = 1
    columns = {
        "data_source": ["warpsmith"] * len(samples),
        "reward_model": [{"style": "rule", "ground_truth": reference} for reference, _ in samples],
        "extra_info": [{"task_id": "", "index": row} for row in range(len(samples))],
    }
    return DataProto.from_dict(
        tensors={"prompts": torch.zeros(len(samples), 4, dtype=torch.long), "responses": ids, "attention_mask": mask},
        non_tensors={key: np.array(values, dtype=object) for key, values in columns.items()},
    )


async def _score(overrides: list[str], samples: list[tuple[str, str]]) -> list[dict[str, Any]]:
    return await _worker(overrides).compute_score_batch(_batch(samples))


def main() -> None:
    """Fails by assertion."""
    good, broken = [(REFERENCE, RIGHT), (REFERENCE, WRONG)], [(BROKEN_REFERENCE, RIGHT)]
    expected = list(expected_rewards())
    for overrides in (_FUNCTION, _MANAGER):
        results = asyncio.run(_score(overrides, good))
        assert [result["reward_score"] for result in results] == expected, results
        assert all(result["reward_extra_info"]["infra_error"] == 0.0 for result in results)
    (result,) = asyncio.run(_score(_FUNCTION, broken))
    assert (result["reward_score"], result["reward_extra_info"]["infra_error"]) == (0.0, 1.0)
    try:
        asyncio.run(_score(_MANAGER, broken))
    except RewardServiceError as error:
        report(f"unscorable raises in the reward manager: {error}")
    else:
        raise AssertionError("a sample without a reward did not raise")


if __name__ == "__main__":
    main()
