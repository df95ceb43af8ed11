"""The share of a reference's time that products of matrices and convolutions take."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn import functional

_SERVICE = Path(__file__).resolve().parents[4] / "reward_service"
sys.path.insert(0, str(_SERVICE / "oracle"))
import product_share as tested  # noqa: E402
from product_share import product_share  # noqa: E402

A = torch.ones(256, 256)
X = torch.ones(4, 8, 16, 16)
WEIGHT = torch.ones(8, 8, 3, 3)


@pytest.mark.parametrize(
    "call",
    [
        lambda: A @ A,
        lambda: (A.t() @ A.t()).t(),
        lambda: torch.addmm(A, A, A),
        lambda: torch.bmm(A[None], A[None]).view(-1),
        lambda: torch.mv(A, A[0]),
        lambda: torch.matmul(A[None], A),
        lambda: torch.matmul(A[0], A),
        lambda: torch.matmul(A[None, None], A[None]),
        lambda: torch.einsum("bij,jk->bik", A[None], A),
        lambda: functional.linear(A, A, A[0]),
        lambda: functional.conv2d(X, WEIGHT),
        lambda: functional.conv_transpose2d(X, WEIGHT),
    ],
)
def test_a_product_alone_is_all_of_the_time_also_between_views(call: Callable[[], object]) -> None:
    assert product_share(call, on_gpu=False) == 1.0


@pytest.mark.parametrize(
    "call", [lambda: torch.relu(A), lambda: A.sum(), lambda: A * A, lambda: A.t(), lambda: torch.cumsum(A, 0)]
)
def test_where_no_operator_is_a_product_it_is_nothing(call: Callable[[], object]) -> None:
    assert product_share(call, on_gpu=False) == 0.0


@pytest.mark.parametrize(
    "call", [lambda: torch.relu(A @ A), lambda: torch.relu(functional.conv2d(X, WEIGHT)), lambda: (A @ A).sum()]
)
def test_a_mixture_is_between(call: Callable[[], object]) -> None:
    assert 0.0 < product_share(call, on_gpu=False) < 1.0


def test_torch_is_left_as_it_was() -> None:
    """Dynamo, once imported, replaces functions of Torch: the oracle would take that for the reference's doing."""
    program = f"""
import sys, torch
sys.path.insert(0, {str(_SERVICE / "oracle")!r})
before = dict(vars(torch))
from product_share import product_share
assert product_share(lambda: torch.ones(2, 2) @ torch.ones(2, 2), on_gpu=False) > 0
assert "torch._dynamo" not in sys.modules
assert all(vars(torch)[name] is value for name, value in before.items())
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


class _Clock:
    """Each look at the finer clock is 1 us after the one before; the other stands but for `seconds` a call."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._ns = 0

    def perf_counter_ns(self) -> int:
        self._ns += 1000
        return self._ns

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    clock = _Clock()
    monkeypatch.setattr(tested, "time", clock)
    return clock


@pytest.mark.usefixtures("clock")
def test_the_share_is_of_the_time_that_operators_took() -> None:
    assert product_share(lambda: torch.relu(A @ A), on_gpu=False) == 0.5
    assert product_share(lambda: torch.relu(torch.exp(A @ A @ A)), on_gpu=False) == 0.5
    assert product_share(lambda: torch.relu(torch.exp(torch.sin(A @ A))), on_gpu=False) == 0.25


@pytest.mark.parametrize(("seconds", "expected"), [(0.0, 5), (0.1, 3), (0.3, 1)])
def test_a_long_call_is_run_once_and_a_short_one_some_times(clock: _Clock, seconds: float, expected: int) -> None:
    num_calls = 0

    def mixture() -> torch.Tensor:
        nonlocal num_calls
        num_calls += 1
        clock.seconds += seconds
        return torch.relu(A @ A)

    product_share(mixture, on_gpu=False)
    assert num_calls == expected


@pytest.mark.usefixtures("clock")
def test_the_share_is_the_median_of_its_passes() -> None:
    num_others = iter([1, 3, 3, 3, 1])  # beside one product

    def mixture() -> None:
        product = A @ A
        for _ in range(next(num_others)):
            torch.relu(product)

    assert product_share(mixture, on_gpu=False) == 0.25
