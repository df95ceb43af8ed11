"""OpenRLHF: its single-turn executor loads the adapter's file and asks it; only the inference engine is a stand-in."""

from __future__ import annotations

import asyncio
import math
import os
from types import SimpleNamespace
from typing import Any

import warpsmith_reward.adapters.openrlhf as adapter
from kernel_tasks import BROKEN_REFERENCE, REFERENCE, RIGHT, URL, WRONG, expected_rewards, report
from openrlhf.utils.agent import SingleTurnAgentExecutor
from transformers import AutoTokenizer


class _Engine:
    """Answers what it is told to."""

    def __init__(self, tokenizer: Any, answer: str) -> None:
        self._tokens = tokenizer(answer + tokenizer.eos_token, add_special_tokens=False)["input_ids"]

    async def generate(self, prompt_token_ids: list[int], sampling_params: Any, multi_modal_data: Any) -> Any:
        return SimpleNamespace(
            outputs=[SimpleNamespace(token_ids=self._tokens, finish_reason="stop", logprobs=None, text="")]
        )


def _execute(tokenizer: Any, reference: str, answer: str) -> dict[str, Any]:
    executor = SingleTurnAgentExecutor([adapter.__file__])
    sampling = SimpleNamespace(max_tokens=1024, logprobs=None)
    engine = _Engine(tokenizer, answer)
    return asyncio.run(executor.execute("Write it.\n", reference, sampling, 4096, tokenizer, engine))


def main() -> None:
    """Fails by assertion."""
    os.environ["WARPSMITH_REWARD_URL"] = URL
    tokenizer = AutoTokenizer.from_pretrained(os.environ["WARPSMITH_ADAPTERS_MODEL"])
    for answer, reward in zip((RIGHT, WRONG), expected_rewards(), strict=True):
        output = _execute(tokenizer, REFERENCE, answer)
        assert math.isclose(output["reward"].item(), reward, rel_tol=1e-6), output
        assert output["scores"].item() == float(answer == RIGHT)
        assert output["extra_logs"]["infra_error"].item() == 0.0
    output = _execute(tokenizer, BROKEN_REFERENCE, RIGHT)
    assert output["reward"] is None
    assert output["scores"].item() == -math.inf  # below any --algo.dynamic_filtering_range
    assert output["extra_logs"]["infra_error"].item() == 1.0
    report("unscorable has no reward, and a score that dynamic filtering drops")


if __name__ == "__main__":
    main()
