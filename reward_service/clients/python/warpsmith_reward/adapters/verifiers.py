"""verifiers: a taskset, `warpsmith_verifiers`, or the one reward for tasks of your own.

    vf-eval warpsmith_verifiers --env.taskset.path tasks.jsonl
    vf-eval YOUR_TASKSET --env.taskset.task.rewards.warpsmith.fn warpsmith_reward.adapters.verifiers:kernel_reward

A row of the file, and the data of a task of your own, has `reference_source`, and may have `previous_source` and
`task_id`; a row has `prompt` too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import verifiers.v1 as vf

from warpsmith_reward.adapters.settings import Settings, numbers_of, reward_of, task_of
from warpsmith_reward.client import AsyncRewardClient


async def kernel_reward(task: Any, trace: Any) -> float:
    """The reward of the last reply of `trace`; numbers beside it go to its metrics.

    Raises RewardServiceError for what cannot be scored: the trace then has an error instead of a reward, and trainers
    leave it out.
    """
    return await _grade(Settings(), task, trace)


async def _grade(settings: Settings, task: Any, trace: Any) -> float:
    request = settings.request(task.reference_source, trace.last_reply, **task_of(dict(task)))
    async with AsyncRewardClient(**settings.connection) as client:
        answer = (await client.grade_all([request]))[0]
    numbers = numbers_of(answer)
    del numbers["score"]
    trace.record_metrics(numbers)
    return reward_of(answer)


class WarpsmithData(vf.TaskData):
    """A KernelBench task: `prompt` is what the model is asked, the rest what the service is told."""

    reference_source: str
    previous_source: str = ""
    task_id: str = ""


class WarpsmithTaskConfig(vf.TaskConfig):
    """The fields of Settings, set through --env.taskset.task.url and so on."""

    url: str = ""
    token: str = ""
    language: str = "kernelbench_python"
    formula: str = ""
    device: str = ""


class WarpsmithTask(vf.Task[WarpsmithData, vf.State, WarpsmithTaskConfig]):
    """One answer, one grade."""

    @vf.reward
    async def kernel_reward(self, task: WarpsmithData, trace: vf.Trace) -> float:
        """See the function of this name."""
        config = self.config
        settings = Settings(config.url, config.token, config.language, config.formula, device=config.device)
        return await _grade(settings, task, trace)


class WarpsmithTasksetConfig(vf.TasksetConfig):
    """Where the tasks are."""

    path: Path = Path("tasks.jsonl")
    task: WarpsmithTaskConfig = WarpsmithTaskConfig()


class WarpsmithTaskset(vf.Taskset[WarpsmithTask, WarpsmithTasksetConfig]):
    """The rows of a JSONL file, in order."""

    def load(self) -> Iterator[WarpsmithTask]:
        """Raises OSError, ValueError or KeyError for a file that is none."""
        with self.config.path.open(encoding="utf-8-sig") as file:
            for line in file:
                row = json.loads(line)
                task_id = str(row.get("task_id") or row.get("id") or "")
                data = WarpsmithData(
                    id=task_id or None,
                    prompt=row["prompt"],
                    reference_source=row["reference_source"],
                    previous_source=row.get("previous_source") or "",
                    task_id=task_id,
                )
                yield WarpsmithTask(data, self.config.task)
