"""Each check of the admission refuses the task that it is there for."""

from dataclasses import replace

import pytest
import torch

from datasets.tasks.admit_tasks import admit
from datasets.tasks.make_tasks import make_splits
from datasets.tasks.program import render_reference
from datasets.tasks.written.catalogue import UNSEEN_OPERATOR_TASKS, WRITTEN_TASKS

torch.set_num_threads(1)


def _task(forward: str, arguments: str = "x", inputs: str = "torch.randn(64, 128)") -> str:
    return (
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\nclass Model(nn.Module):\n"
        f"    def forward(self, {arguments}):\n        {forward}\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\ndef get_init_inputs():\n    return []\n"
    )


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (_task("return x * 0.0"), "zeros passes"),
        (_task("return torch.relu(x) * 0.0 + 3.0"), "a constant passes"),
        (_task("return (x * x).mean()", inputs="torch.randn(2048, 1024)"), "a constant passes"),
        (_task("return x.clone()"), "a copied input passes"),
        (_task("return x * (torch.arange(64) < 50).unsqueeze(1)"), "partial output passes"),
        (_task("return F.dropout(x, 0.5, training=True)"), "two eager runs differ"),
        (_task("return torch.log(x)"), "outputs are not finite at magnitude 1.0"),
        (_task("return torch.tanh(x) + 0.0 * y", "x, y", "torch.randn(64, 128), torch.randn(64, 128)"),
         "the output does not depend on input 1"),
        (_task("return x.mul_(2.0)"), "the reference changes its inputs"),
        (_task("return torch.sin(x * 1000000.0)"), "float32 and float64 disagree at magnitude 10.0"),
    ],
)  # fmt: skip
def test_a_bad_task_is_refused_for_its_reason(source: str, reason: str) -> None:
    assert reason in admit(source).reasons


def test_a_good_task_is_admitted() -> None:
    assert admit(_task("return torch.tanh(x) * y", "x, y", "torch.randn(64, 128), torch.randn(64, 128)")).admitted


@pytest.mark.parametrize("task", (*WRITTEN_TASKS[7::16], *UNSEEN_OPERATOR_TASKS[3::2]), ids=lambda task: task.name)
def test_written_tasks_are_admitted(task: object) -> None:
    assert admit(task.render("cpu")).reasons == ()  # type: ignore[attr-defined]


def test_generated_tasks_are_admitted() -> None:
    splits = make_splits(num_cold_start=40, num_training=40)
    for task in (*splits.cold_start[::10], *splits.training[::10], *splits.held_out[::6], *splits.validation[::6]):
        small = replace(task.program, rows=min(task.program.rows, 128))
        assert admit(render_reference(small)).reasons == (), task.task_id
