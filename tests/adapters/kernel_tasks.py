"""A task with a right and a wrong answer, and one that no answer can be graded for; imported by every with_*.py."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from warpsmith_reward import AsyncRewardClient, Grade, Request, RewardServiceError

URL = os.environ["WARPSMITH_REWARD_URL"]

REFERENCE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(2 * x + 1) ** 2


def get_inputs():
    return [torch.randn(256, 1024)]


def get_init_inputs():
    return []
"""
# Its inputs cannot be made: the verdict is INVALID_TASK, and there is no reward.
BROKEN_REFERENCE = REFERENCE.replace("return [torch.randn(256, 1024)]", "raise OSError('no data')")

_PROGRAM = """```python
import torch
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>

torch::Tensor forward(torch::Tensor x) {
  torch::Tensor y = torch::empty_like(x);
  const float* in = x.data_ptr<float>();
  float* out = y.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const float v = 2 * in[i] + 1;
    out[i] = v > 0 ? RESULT : 0;
  }
  return y;
}
'''
extension = load_inline(name="elements", cpp_sources=source, functions=["forward"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.forward(x)
```"""
RIGHT = _PROGRAM.replace("RESULT", "v * v")
WRONG = _PROGRAM.replace("RESULT", "v")


def report(text: str) -> None:
    """A line that run_adapters.py shows; all else is shown where the script fails."""
    print(f"result: {text}", flush=True)


def answers_of(requests: Sequence[Request]) -> list[Grade | RewardServiceError]:
    """Without any adapter. The service grades the same request once, so an adapter must report the same."""

    async def run() -> list[Grade | RewardServiceError]:
        async with AsyncRewardClient(URL) as client:
            return await client.grade_all(requests)

    return asyncio.run(run())


def expected_rewards() -> tuple[float, float]:
    """Of the right and of the wrong answer; checks that the broken task has none."""
    right, wrong, invalid = answers_of(
        [
            Request(REFERENCE, answer=RIGHT),
            Request(REFERENCE, answer=WRONG),
            Request(BROKEN_REFERENCE, answer=RIGHT),
        ]
    )
    assert isinstance(right, Grade) and isinstance(wrong, Grade) and isinstance(invalid, Grade)
    assert (right.verdict, wrong.verdict, invalid.verdict) == ("CORRECT", "INCORRECT", "INVALID_TASK"), right.reason
    assert right.reward is not None and wrong.reward is not None and right.reward > wrong.reward
    assert invalid.reward is None
    return right.reward, wrong.reward
