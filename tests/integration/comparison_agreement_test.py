"""The oracle's tolerances mean to the referee what they mean to the oracle: on random cases both say the same."""

import sys
from pathlib import Path

import pytest
import torch

from tests.support.comparison_lines import Case, compare

_SERVICE = Path(__file__).resolve().parents[2] / "reward_service"
sys.path[:0] = [str(_SERVICE / "oracle"), str(_SERVICE / "jail")]
from probes import Probes  # noqa: E402
from tensors import CODES  # noqa: E402
from tolerance import Sum, Tolerance, exact_tolerance  # noqa: E402

_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_CASES = 200


def random_case(generator: torch.Generator, dtype: torch.dtype) -> Case:
    """Outputs of any size and spread, exact or not, some of which step; an answer that is off by about as much as is
    allowed."""
    chance = torch.rand(6, generator=generator, dtype=torch.float64).tolist()
    count = 1 + int(chance[0] ** 3 * 5000)
    wide = (torch.randn(count, generator=generator, dtype=torch.float64) + 20 * chance[2] ** 4) * 10 ** (
        4 * chance[1] - 2
    )
    expected = wide.to(dtype)
    probes = Probes(wide, rounds=False)
    probes.jump[: count // 50] = wide.abs().max()
    total = Sum(1 + int(1000 * chance[3]), dominated=chance[3] < 0.25)
    tolerance = exact_tolerance(expected, None, probes, total, 0.01 if count == 1 else None)
    margins = (tolerance.words & -65536).view(torch.float32).abs().double()
    if chance[5] < 0.3:
        tolerance = tolerance.or_more(tolerance).of_draw(expected, None)
        margins = tolerance.absolute + tolerance.relative * wide.abs()
    errors = margins * torch.randn(count, generator=generator, dtype=torch.float64)
    return tolerance, expected, (wide + errors * 0.2 * chance[4] ** 2).to(dtype)


@pytest.mark.parametrize("dtype", _FLOATS)
def test_oracle_and_referee_agree_on_random_floats(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    cases = [random_case(generator, dtype) for _ in range(_CASES)]
    verdicts = [tolerance.passes(actual, expected) for tolerance, expected, actual in cases]
    assert 20 < sum(verdicts) < _CASES - 20
    assert [answer["num_wrong"] == 0 for answer in compare(cases)] == verdicts


def test_both_refuse_what_is_not_finite() -> None:
    expected = torch.randn(64, generator=torch.Generator().manual_seed(2))
    tolerance = exact_tolerance(expected, None, Probes(expected, rounds=False), Sum(64))
    cases: list[Case] = []
    for value in (float("nan"), float("inf"), -float("inf")):
        actual = expected.clone()
        actual[63] = value
        cases.append((tolerance, expected, actual))
    assert not any(tolerance.passes(actual, expected) for _, _, actual in cases)
    assert [answer["num_wrong"] for answer in compare(cases)] == [1, 1, 1]


@pytest.mark.parametrize("dtype", [dtype for dtype in CODES if not dtype.is_floating_point])
@pytest.mark.parametrize("flips", [False, True])
def test_both_want_integers_equal_where_none_flips(dtype: torch.dtype, flips: bool) -> None:
    expected = (torch.arange(50) % 2).to(dtype)
    other = expected.clone()
    other[7] = 0
    probes = Probes(expected, rounds=False)
    if flips:
        probes.add(other, expected)
    tolerance: Tolerance = exact_tolerance(expected, None, probes, Sum(1))
    cases = [(tolerance, expected, expected), (tolerance, expected, other)]
    assert [tolerance.passes(actual, expected) for _, expected, actual in cases] == [True, flips]
    assert [answer["num_wrong"] for answer in compare(cases)] == [0, 0 if flips else 1]
