"""Honest candidates are right and wrong ones are not, on a part of the tasks that tolerance_bench.py judges."""

import pytest
import torch

from tests.tolerance.suite import TASKS, Failures, judge

# The narrowest verdicts, and one task in five.
_CLOSEST = {"mlp_bfloat16", "fake_quant_half", "int8_rows", "attention_half", "conv_tf32_reference", "cosine"}
_CHOSEN = [task for index, task in enumerate(TASKS) if index % 5 == 0 or task.name in _CLOSEST]


@pytest.mark.parametrize("task", _CHOSEN, ids=lambda task: task.name)
def test_verdicts_are_right(task) -> None:  # noqa: ANN001
    torch.set_num_threads(1)
    failures = Failures()
    judge(task, 1, failures)
    assert not failures.rejects
    assert not failures.accepts
    assert failures.num_honest > 1 and failures.num_wrong > 1


def test_tasks_have_names_of_their_own() -> None:
    assert len({task.name for task in TASKS}) == len(TASKS) > 50
