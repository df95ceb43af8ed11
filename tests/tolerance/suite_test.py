"""Honest candidates are right and wrong ones are not, on a part of the tasks that tolerance_bench.py judges."""

import pytest
import torch

from tests.tolerance.suite import TASKS, Failures, judge
from tests.tolerance.task import Task

# The narrowest verdicts, and one of each kind.
_CHOSEN = {
    "mlp_bfloat16",
    "matmul_float64",
    "fake_quant_half",
    "expert_choice_bfloat16",
    "exp_3x",
    "std_nearly_constant",
    "logsumexp_masked",
    "attention_half",
    "conv_tf32_reference",
    "topk_scores",
    "adam_step",
    "cosine",
    "bucketize",
    "masked_mean",
}


@pytest.mark.parametrize("task", [task for task in TASKS if task.name in _CHOSEN], ids=lambda task: task.name)
def test_verdicts_are_right(task: Task) -> None:
    torch.set_num_threads(1)
    failures = Failures()
    judge(task, 1, failures)
    assert not failures.rejects
    assert not failures.accepts
    assert failures.num_honest > 1 and failures.num_wrong > 1


def test_tasks_have_names_of_their_own() -> None:
    names = [task.name for task in TASKS]
    assert len(set(names)) == len(names) > 50
    assert set(names) >= _CHOSEN
