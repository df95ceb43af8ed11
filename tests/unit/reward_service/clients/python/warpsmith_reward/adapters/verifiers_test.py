"""verifiers' contract for a reward: a number, or an exception, which makes the trace one with an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest
from pydantic import BaseModel
from warpsmith_reward.messages import RewardServiceError

from tests.support.fake_reward_door import FakeRewardDoor

DataT = TypeVar("DataT")
StateT = TypeVar("StateT")
ConfigT = TypeVar("ConfigT")


class _TaskData(BaseModel):
    id: str | None = None
    prompt: str | None = None


class _Task(Generic[DataT, StateT, ConfigT]):
    def __init__(self, data: DataT, config: ConfigT) -> None:
        self.data, self.config = data, config


class _Taskset(Generic[DataT, ConfigT]):
    def __init__(self, config: ConfigT) -> None:
        self.config = config


class _Trace:
    def __init__(self, last_reply: str) -> None:
        self.last_reply = last_reply
        self.metrics: dict[str, float] = {}

    def record_metrics(self, values: dict[str, float]) -> None:
        self.metrics.update(values)


def _reward(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


@pytest.fixture
def adapter(load_adapter: Callable[..., Any]) -> Any:
    """The adapter over the shape of verifiers.v1."""
    return load_adapter(
        "verifiers",
        "verifiers.v1",
        TaskData=_TaskData,
        TaskConfig=BaseModel,
        Task=_Task,
        State=object,
        Trace=_Trace,
        Taskset=_Taskset,
        TasksetConfig=BaseModel,
        reward=_reward,
    )


def test_rows_become_tasks_and_answers_rewards(adapter: Any, door: FakeRewardDoor, tmp_path: Path) -> None:
    rows = [{"id": "a", "prompt": "p", "reference_source": "r"}, {"prompt": "q", "reference_source": "s"}]
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = adapter.WarpsmithTasksetConfig(path=path, task=adapter.WarpsmithTaskConfig(formula="kevin-v1"))
    first, second = adapter.WarpsmithTaskset(config).load()
    assert (first.data.id, second.data.id, second.data.prompt) == ("a", None, "q")
    trace = _Trace("1.5")
    assert asyncio.run(first.kernel_reward(first.data, trace)) == 1.5
    assert (trace.metrics["acc"], trace.metrics["speedup"]) == (1.0, 2.0)
    (post,) = door.posts[0]
    assert (post["task"]["id"], post["task"]["referenceSource"], post["formula"]) == ("a", "r", "kevin-v1")


@pytest.mark.parametrize("answer", ["unscorable", "invalid", "refused"])
def test_what_cannot_be_scored_raises_for_tasks_of_others_too(adapter: Any, door: FakeRewardDoor, answer: str) -> None:
    trace = _Trace(answer)
    with pytest.raises(RewardServiceError):
        asyncio.run(adapter.kernel_reward(adapter.WarpsmithData(reference_source="r"), trace))
    assert trace.metrics["infra_error"] == 1.0
