"""The longest sum of a reference is that of the operator with the most terms to a number."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

_SERVICE = Path(__file__).resolve().parents[4] / "reward_service"
sys.path[:0] = [str(_SERVICE / "oracle"), str(_SERVICE / "jail")]
from longest_sum import LongestSum  # noqa: E402

_X = torch.randn(4, 6, 8, 8)


@pytest.mark.parametrize(
    ("forward", "length"),
    [
        (lambda: _X * 2, 1),
        (lambda: _X.sum(), 4 * 6 * 8 * 8),
        (lambda: _X.mean((2, 3)), 64),
        (lambda: _X.amax(1) + _X.argmax(1), 1),
        (lambda: torch.softmax(_X, 1), 6),
        (lambda: torch.cumsum(_X, 0), 4),
        (lambda: _X[0, 0] @ _X[0, 1], 8),
        (lambda: F.linear(_X, torch.randn(3, 8), torch.randn(3)), 8),
        (lambda: F.conv2d(_X, torch.randn(5, 6, 3, 3)), 6 * 9),
        (lambda: F.layer_norm(_X, (8, 8)), 64),
        (lambda: F.group_norm(_X, 3), 2 * 64),
        (lambda: F.batch_norm(_X, None, None, training=True), 4 * 64),
        (lambda: F.max_pool2d(_X, 4), 1),
        (lambda: F.scaled_dot_product_attention(_X, _X, _X), 8),
        (lambda: F.cross_entropy(_X[0, 0], torch.arange(8)), 8),
        (lambda: (_X * _X).sum(1).sqrt() + _X[:, 0], 6),
    ],
)
def test_the_longest_sum_is_found(forward: Callable[[], torch.Tensor], length: int) -> None:
    with torch.no_grad(), LongestSum() as sums:
        forward()
    assert sums.length == length


def test_watching_changes_no_result_and_no_function_of_torch() -> None:
    functions = dict(vars(torch))
    expected = torch.softmax(_X @ _X, -1)
    with LongestSum():
        assert torch.equal(torch.softmax(_X @ _X, -1), expected)
    assert all(vars(torch)[name] is value for name, value in functions.items())
