"""A tolerance allows honest sums in another order, and never answers that lack some of the work."""

import sys
from pathlib import Path

import pytest
import torch

_SERVICE = Path(__file__).resolve().parents[4] / "reward_service"
sys.path[:0] = [str(_SERVICE / "oracle"), str(_SERVICE / "jail")]
from tolerance import Noise, Tolerance, indistinguishable, tolerance_of  # noqa: E402


def plain_sum(terms: torch.Tensor) -> torch.Tensor:
    """As a loop adds rows up in float, term after term."""
    total = torch.zeros(terms.shape[0])
    for column in terms.t().contiguous():
        total += column
    return total


def tolerance_for(terms: torch.Tensor) -> tuple[torch.Tensor, Tolerance]:
    wide = terms.double().sum(dim=1)
    return wide.float(), tolerance_of(wide, torch.float32, terms.sum(dim=1), None, terms.numel())


@pytest.mark.parametrize("columns", [1 << 8, 1 << 14, 1 << 18])
def test_a_plain_float_sum_is_right_and_one_that_lacks_a_hundredth_is_not(columns: int) -> None:
    torch.manual_seed(1)
    terms = torch.rand(8, columns)
    expected, tolerance = tolerance_for(terms)
    assert tolerance.passes(plain_sum(terms), expected)
    some = terms[:, : columns - columns // 100]
    assert not tolerance.passes(some.sum(dim=1), expected)
    assert not tolerance.passes(some.mean(dim=1) * columns, expected)


def test_constants_zeros_and_other_rows_are_wrong_however_long_the_sum() -> None:
    torch.manual_seed(2)
    for columns in (1 << 10, 1 << 18):
        terms = torch.rand(8, columns)
        expected, tolerance = tolerance_for(terms)
        for wrong in (torch.full((8,), tolerance.centre), torch.zeros(8), expected.roll(1)):
            assert not tolerance.passes(wrong, expected)


def test_the_drift_of_a_sum_is_an_eighth_of_the_spread_at_most() -> None:
    values = torch.full((8,), 1e6, dtype=torch.float64) + torch.arange(8)
    long = tolerance_of(values, torch.float32, values.float(), None, 8 << 40)
    short = tolerance_of(values, torch.float32, values.float(), None, 8)
    assert short.absolute < long.absolute
    without_drift = long.spread * (long.relative + 4 * 2**-23 * float(1 << 40) ** 0.5)
    assert long.absolute == pytest.approx(without_drift + long.spread / 8)


def test_a_single_number_is_measured_by_how_it_varies() -> None:
    value = torch.tensor(0.1666, dtype=torch.float64)
    tolerance = tolerance_of(value, torch.float32, value.float(), None, 1 << 20, variation=1e-4)
    expected = value.float()
    assert tolerance.passes(expected * (1 + 2e-5), expected)
    assert not tolerance.passes(expected + 1e-4, expected)
    assert not tolerance.passes(torch.tensor(0.0), expected)


def rounded(values: torch.Tensor, mantissa_bits: int) -> torch.Tensor:
    """To the nearest number with so many bits of mantissa."""
    unit = 1 << (23 - mantissa_bits)
    return ((values.view(torch.int32) + unit // 2) & -unit).view(torch.float32)


def cut_off(values: torch.Tensor, mantissa_bits: int) -> torch.Tensor:
    """As tensor cores read numbers that nobody has rounded."""
    return (values.view(torch.int32) & -(1 << (23 - mantissa_bits))).view(torch.float32)


_TF32_BITS, _BFLOAT16_BITS = 10, 7


@pytest.mark.parametrize("depth", [64, 1024])
def test_products_of_tf32_and_sums_in_half_are_told_from_float32(depth: int) -> None:
    torch.manual_seed(4)
    a, b = torch.randn(256, depth), torch.randn(depth, 256)
    wide = a.double() @ b.double()
    tolerance = tolerance_of(wide, torch.float32, a @ b, None, a.numel() + b.numel())
    assert tolerance.passes(sum(x @ y for x, y in zip(a.split(16, 1), b.split(16), strict=True)), wide.float())
    assert not tolerance.passes(rounded(a, _TF32_BITS) @ rounded(b, _TF32_BITS), wide.float())
    half = torch.zeros(256, 256, dtype=torch.float16)
    for column, row in zip(a.half().t(), b.half(), strict=True):
        half += torch.outer(column, row)
    assert not tolerance.passes(half.float(), wide.float())


def test_where_the_reference_itself_rounds_to_tf32_so_may_an_answer_and_no_further() -> None:
    torch.manual_seed(5)
    a, b = torch.randn(256, 576), torch.randn(576, 256)
    wide, plain = a.double() @ b.double(), a @ b
    run = rounded(a, _TF32_BITS) @ rounded(b, _TF32_BITS)
    tolerance = tolerance_of(wide, torch.float32, run, None, a.numel() + b.numel(), unrounded=plain)
    halves = [rounded(part, _TF32_BITS) for part in (a[:, :288], b[:288], a[:, 288:], b[288:])]
    assert tolerance.passes(plain, wide.float())
    assert tolerance.passes(halves[0] @ halves[1] + halves[2] @ halves[3], wide.float())
    assert tolerance.passes(cut_off(a, _TF32_BITS) @ cut_off(b, _TF32_BITS), wide.float())
    assert not tolerance.passes(rounded(a, _BFLOAT16_BITS) @ rounded(b, _BFLOAT16_BITS), wide.float())
    # All that was known before of such a reference: sixteen times its error lets bfloat16 through.
    loose = tolerance_of(wide, torch.float32, run, None, a.numel() + b.numel())
    assert loose.passes(rounded(a, _BFLOAT16_BITS) @ rounded(b, _BFLOAT16_BITS), wide.float())


def test_a_reference_that_has_no_float64_and_rounds_lets_neither_bfloat16_through_nor_float32_fail() -> None:
    torch.manual_seed(6)
    a, b = torch.randn(256, 576), torch.randn(576, 256)
    run, plain = rounded(a, _TF32_BITS) @ rounded(b, _TF32_BITS), a @ b
    tolerance = tolerance_of(run, torch.float32, run, None, a.numel() + b.numel(), unrounded=plain)
    assert tolerance.passes(plain, run)
    assert not tolerance.passes(rounded(a, _BFLOAT16_BITS) @ rounded(b, _BFLOAT16_BITS), run)


def test_integers_must_be_equal() -> None:
    expected = torch.arange(5)
    tolerance = tolerance_of(expected, torch.int64, expected, None, 5)
    assert tolerance.passes(expected.clone(), expected)
    assert not tolerance.passes(expected + 1, expected)


def test_answers_without_work_are_named() -> None:
    torch.manual_seed(3)
    x = torch.randn(64)
    wide = torch.exp(x).double()
    tolerance = tolerance_of(wide, torch.float32, torch.exp(x), None, 64)
    other = torch.exp(torch.randn(64))
    assert indistinguishable(torch.exp(x), [other], tolerance, [x]) == ""
    assert indistinguishable(torch.exp(x), [torch.exp(x)], tolerance, [x]) == "the output for other inputs"
    assert indistinguishable(torch.exp(x), [torch.exp(x), other], tolerance, [x]) == ""
    assert indistinguishable(torch.exp(x), [other], tolerance, [torch.exp(x)]) == "a copied input"
    zeros = torch.zeros(64)
    assert (
        indistinguishable(zeros, [other], tolerance_of(zeros.double(), torch.float32, zeros, None, 64), []) == "zeros"
    )
