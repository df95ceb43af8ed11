"""TRL: a GRPO run on this CPU trains a small model for a few steps on rewards of the running service.

Checked: every reward is the one that the service gives the same answer without the adapter; what cannot be graded got
None and no advantage; the weights changed.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from kernel_tasks import REFERENCE, URL, answers_of, report
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer
from warpsmith_reward import Grade, Request
from warpsmith_reward.adapters.trl import reward_function

from datasets import Dataset  # type: ignore[attr-defined]  # Hugging Face's, not the tree's folder

_MODEL = os.environ["WARPSMITH_ADAPTERS_MODEL"]
_SCRATCH = Path(os.environ["WARPSMITH_ADAPTERS_SCRATCH"])
_TASKS = os.environ.get("WARPSMITH_ADAPTERS_TASKS")
_STEPS = 3
_PROMPTS_PER_STEP = 2
_ANSWERS_PER_PROMPT = 4
_FAULT = "raise OSError('no data')"
# Stands for every answer to a broken task: one that does not compile would be graded for that.
_COMPILES = """```cpp
#include <dlpack/dlpack.h>
extern "C" int run(const DLTensor* const*, const DLTensor* const*, DLTensor* const*) { return 0; }
```"""

RewardFunction = Callable[..., Coroutine[Any, Any, list[float | None]]]


@dataclass
class _Record:
    """What TRL asked of the reward function, and what it was told."""

    references: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    rewards: list[float | None] = field(default_factory=list)


def _recorded(function: RewardFunction, record: _Record) -> RewardFunction:
    async def warpsmith_reward(**arguments: Any) -> list[float | None]:
        pairs = zip(arguments["reference_source"], arguments["completions"], strict=True)
        arguments["completions"] = [_COMPILES if _FAULT in reference else answer for reference, answer in pairs]
        rewards = await function(**arguments)
        record.references += arguments["reference_source"]
        record.answers += arguments["completions"]
        record.rewards += rewards
        return rewards

    return warpsmith_reward


def _rows() -> list[dict[str, str]]:
    """For every step a good task, and the same with inputs that cannot be made."""
    good = [json.loads(line)["reference_source"] for line in Path(_TASKS).read_text().splitlines()] if _TASKS else []
    rows = []
    for step in range(_STEPS):
        reference = good[step] if good else REFERENCE
        broken = reference.replace("def get_inputs():", f"def get_inputs():\n    {_FAULT}")
        rows += [{"prompt": _prompt(reference), "reference_source": each} for each in (reference, broken)]
    return rows


def _prompt(reference: str) -> str:
    template = Path(_MODEL, "prompt_generate.txt")
    text = template.read_text() if template.exists() else "{{reference}}\n"
    libraries = (  # as docs/prompts.md has it: the tasks here allow none
        "Libraries beyond CUDA's runtime and the C++ standard library are not available: "
        "compute in kernels of your own."
    )
    return text.replace("{{reference}}", reference).replace("{{libraries}}", libraries)


def _trainer(record: _Record) -> GRPOTrainer:
    config = GRPOConfig(
        output_dir=str(_SCRATCH),
        max_steps=_STEPS,
        per_device_train_batch_size=_PROMPTS_PER_STEP * _ANSWERS_PER_PROMPT,
        num_generations=_ANSWERS_PER_PROMPT,
        max_completion_length=128,
        temperature=1.0,
        learning_rate=1e-4,
        shuffle_dataset=False,
        use_cpu=True,
        bf16=False,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        seed=1,
    )
    return GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(_MODEL, dtype=torch.float32),
        processing_class=AutoTokenizer.from_pretrained(_MODEL),
        reward_funcs=_recorded(reward_function(url=URL, language="cpp"), record),
        train_dataset=Dataset.from_list(_rows()),
        args=config,
    )


def _check_rewards(record: _Record) -> None:
    requests = [
        Request(reference, answer=answer, language="cpp")
        for reference, answer in zip(record.references, record.answers, strict=True)
    ]
    answers = answers_of(requests)
    assert record.rewards == [answer.reward if isinstance(answer, Grade) else None for answer in answers]
    outcomes = Counter(str(answer.verdict) if isinstance(answer, Grade) else "no grade" for answer in answers)
    assert outcomes["INVALID_TASK"] == _STEPS * _ANSWERS_PER_PROMPT, outcomes
    report(f"answers: {dict(outcomes)}")


def _check_advantages(trainer: GRPOTrainer, record: _Record) -> None:
    """TRL keeps the advantages of the latest answers for its table."""
    advantages = list(trainer._logs["advantages"])
    latest = record.rewards[-len(advantages) :]
    unscored = [advantage for advantage, reward in zip(advantages, latest, strict=True) if reward is None]
    assert unscored and not any(unscored), advantages


def _has_signal(record: _Record) -> bool:
    """Whether some group's rewards differ; answers of a group follow one another."""
    starts = range(0, len(record.rewards), _ANSWERS_PER_PROMPT)
    groups = [set(record.rewards[start : start + _ANSWERS_PER_PROMPT]) - {None} for start in starts]
    return any(len(group) > 1 for group in groups)


def main() -> None:
    """Fails by assertion."""
    record = _Record()
    trainer = _trainer(record)
    before = {name: value.detach().clone() for name, value in trainer.model.named_parameters()}
    start = time.monotonic()
    trainer.train()
    seconds = time.monotonic() - start
    assert len(record.rewards) == _STEPS * _PROMPTS_PER_STEP * _ANSWERS_PER_PROMPT
    _check_rewards(record)
    _check_advantages(trainer, record)
    scored = [reward for reward in record.rewards if reward is not None]
    for row in trainer.state.log_history[:_STEPS]:
        figures = (f"{key} {row[key]:.4f}" for key in ("loss", "reward", "reward_std", "grad_norm"))
        report(f"step {row['step']}: {', '.join(figures)}")
    changed = [name for name, value in trainer.model.named_parameters() if not torch.equal(value, before[name])]
    assert bool(changed) == _has_signal(record)
    report(
        f"{_STEPS} steps in {seconds:.0f} s; "
        f"{len(scored)} answers scored, mean reward {sum(scored) / len(scored):.3f}; "
        f"{record.rewards.count(None)} unscorable; {len(changed)} of {len(before)} tensors changed"
    )


if __name__ == "__main__":
    main()
