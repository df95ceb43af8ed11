"""A tolerance allows honest sums in another order, and never answers that lack some of the work."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

_SERVICE = Path(__file__).resolve().parents[4] / "reward_service"
sys.path[:0] = [str(_SERVICE / "oracle"), str(_SERVICE / "jail")]
from probes import REACH, Probes  # noqa: E402
from tolerance import Sum, Tolerance, exact_tolerance, indistinguishable  # noqa: E402

Forward = Callable[..., torch.Tensor]


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(1)


def tolerance_of(
    forward: Forward, *inputs: torch.Tensor, length: int = 1, run: torch.Tensor | None = None
) -> tuple[torch.Tensor, Tolerance]:
    """Returns what is expected, and its tolerance, as the oracle finds both; `run` stands for one with TF32."""
    wide = [x.double() for x in inputs]
    plain, exact = forward(*inputs), forward(*wide)
    probes = Probes(exact, rounds=False)
    for _ in range(4):
        unit = torch.finfo(inputs[0].dtype).eps / 2
        steps = [x * (torch.randint(0, 2, x.shape) * 2 - 1) * (REACH * unit) for x in wide]
        probes.add(*(forward(*(x + d * s for x, s in zip(wide, steps, strict=True))) for d in (1, -1)))
    runs = (plain, None) if run is None else (run, plain)
    return exact.to(plain.dtype), exact_tolerance(*runs, probes, Sum(length))


def plain_sum(terms: torch.Tensor) -> torch.Tensor:
    """As a loop adds rows up in float, term after term."""
    total = torch.zeros(terms.shape[0])
    for column in terms.t().contiguous():
        total += column
    return total


@pytest.mark.parametrize("columns", [1 << 8, 1 << 14, 1 << 18])
def test_a_plain_float_sum_is_right_and_one_that_lacks_a_hundredth_is_not(columns: int) -> None:
    terms = torch.rand(8, columns)
    expected, tolerance = tolerance_of(lambda t: t.sum(dim=1), terms, length=columns)
    assert tolerance.passes(plain_sum(terms), expected)
    some = terms[:, : columns - columns // 100]
    for wrong in (some.sum(1), some.mean(1) * columns, torch.full((8,), float(expected.mean())), expected.roll(1)):
        assert not tolerance.passes(wrong, expected)


def test_errors_everywhere_are_wrong_though_each_is_no_larger_than_the_references_worst() -> None:
    x, w = torch.randn(128, 256).bfloat16(), torch.randn(256, 128).bfloat16()
    expected, tolerance = tolerance_of(torch.matmul, x, w, length=256)
    right = x.float() @ w.float()
    assert tolerance.passes(right.bfloat16(), expected)
    for factor in (1.02, 1.1):
        assert not tolerance.passes((right * factor).bfloat16(), expected)


def test_one_wrong_element_is_wrong() -> None:
    x = torch.randn(4096)
    expected, tolerance = tolerance_of(torch.exp, x)
    answer = torch.exp(x)
    assert tolerance.passes(answer, expected)
    answer[77] *= 1.001
    assert not tolerance.passes(answer, expected)


def test_small_elements_beside_large_ones_are_looked_at() -> None:
    x = torch.randn(256, 256)
    expected, tolerance = tolerance_of(lambda t: torch.exp(3 * t), x)
    assert not tolerance.passes(torch.where(x < -1, 0.0, torch.exp(3 * x)), expected)


def test_float64_is_told_from_float() -> None:
    a, b = torch.randn(64, 96, dtype=torch.float64), torch.randn(96, 64, dtype=torch.float64)
    expected, tolerance = tolerance_of(torch.matmul, a, b, length=96)
    assert tolerance.passes(sum(a[:, i : i + 8] @ b[i : i + 8] for i in range(0, 96, 8)), expected)
    assert not tolerance.passes((a.float() @ b.float()).double(), expected)


def test_an_element_may_lie_on_either_side_of_a_step_that_is_near_alone() -> None:
    x = torch.randn(256, 256).half()
    expected, tolerance = tolerance_of(lambda t: torch.round(t / 0.05) * 0.1, x)
    in_half = torch.round(x / 0.05) * 0.1
    assert float((in_half - expected).abs().max()) > 0.05 and tolerance.passes(in_half, expected)
    for wrong in (torch.floor(x.float() / 0.05) * 0.1, x.float() * 2, torch.round(x.float() / 0.051) * 0.102):
        assert not tolerance.passes(wrong.half(), expected)


def test_integers_are_equal_but_where_a_probe_flips() -> None:
    expected, tolerance = tolerance_of(lambda t: torch.floor(t).long(), torch.tensor([0.5, 3.0, 7.2]))
    for answer, passes in (([0, 3, 7], True), ([0, 2, 7], True), ([0, 4, 7], True), ([0, 3, 6], True)):
        assert tolerance.passes(torch.tensor(answer), expected) == passes
    expected, tolerance = tolerance_of(lambda t: torch.floor(t).long(), torch.tensor([0.5, 3.5, 7.2]))
    assert tolerance.passes(expected.clone(), expected)
    assert not tolerance.passes(expected + torch.tensor([0, 1, 0]), expected)
    probes = Probes(expected, rounds=False)
    assert exact_tolerance(expected, None, probes, Sum(1)).outliers_max == 0
    assert exact_tolerance(expected, None, probes, Sum(1), flips=True).outliers_max == 2


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
    a, b = torch.randn(256, depth), torch.randn(depth, 256)
    expected, tolerance = tolerance_of(torch.matmul, a, b, length=depth)
    assert tolerance.passes(sum(x @ y for x, y in zip(a.split(16, 1), b.split(16), strict=True)), expected)
    assert not tolerance.passes(rounded(a, _TF32_BITS) @ rounded(b, _TF32_BITS), expected)
    half = torch.zeros(256, 256, dtype=torch.float16)
    for column, row in zip(a.half().t(), b.half(), strict=True):
        half += torch.outer(column, row)
    assert not tolerance.passes(half.float(), expected)


def test_where_the_reference_itself_rounds_to_tf32_so_may_an_answer_and_no_further() -> None:
    a, b = torch.randn(256, 576), torch.randn(576, 256)
    run = rounded(a, _TF32_BITS) @ rounded(b, _TF32_BITS)
    expected, tolerance = tolerance_of(torch.matmul, a, b, length=576, run=run)
    halves = [rounded(part, _TF32_BITS) for part in (a[:, :288], b[:288], a[:, 288:], b[288:])]
    for right in (a @ b, halves[0] @ halves[1] + halves[2] @ halves[3], cut_off(a, 10) @ cut_off(b, 10)):
        assert tolerance.passes(right, expected)
    assert not tolerance.passes(rounded(a, _BFLOAT16_BITS) @ rounded(b, _BFLOAT16_BITS), expected)


def test_a_reference_that_has_no_float64_and_rounds_lets_neither_bfloat16_through_nor_float32_fail() -> None:
    a, b = torch.randn(256, 576), torch.randn(576, 256)
    run, plain = rounded(a, _TF32_BITS) @ rounded(b, _TF32_BITS), a @ b
    tolerance = exact_tolerance(run, plain, Probes(run, rounds=True), Sum(576))
    assert tolerance.passes(plain, run)
    assert not tolerance.passes(rounded(a, _BFLOAT16_BITS) @ rounded(b, _BFLOAT16_BITS), run)


def test_a_single_number_is_measured_by_how_it_varies() -> None:
    value = torch.tensor(0.1666, dtype=torch.float64)
    expected = value.float()
    tolerance = exact_tolerance(expected, None, Probes(value, rounds=False), Sum(1 << 20), variation=1e-4)
    assert tolerance.passes(expected * (1 + 2e-5), expected)
    assert not tolerance.passes(expected + 2e-5, expected)
    assert not tolerance.passes(torch.tensor(0.0), expected)


def test_a_draw_that_is_not_exact_has_margins_by_size_that_grow_with_its_spread() -> None:
    x = torch.randn(4096)
    _, exact = tolerance_of(torch.exp, x)
    usual = exact.or_more(exact)
    for scale in (1.0, 1e3):
        run = torch.exp(x) * scale
        tolerance = usual.of_draw(run, None)
        assert tolerance.words is None and tolerance.outliers_max == 0
        assert tolerance.passes(run * (1 + 2e-7), run)
        assert not tolerance.passes(run * 1.001, run)


def test_a_draw_that_is_not_exact_may_step_as_often_as_the_exact_ones() -> None:
    x = torch.randn(256, 256).half()
    _, exact = tolerance_of(lambda t: torch.round(t / 0.05) * 0.1, x)
    run = torch.round(x / 0.05) * 0.1
    tolerance = exact.or_more(exact).of_draw(run, None)
    assert tolerance.passes((torch.round(x.float() * 20.0) * 0.1).half(), run)
    assert not tolerance.passes((torch.floor(x.float() / 0.05) * 0.1).half(), run)


def test_what_travels_has_the_numbers_and_says_whether_there_are_margins() -> None:
    message = Tolerance(absolute=0.5, outliers_max=3).message()
    assert (message.absolute, message.outliers_max, message.margins) == (0.5, 3, False)
    assert replace(Tolerance(), words=torch.zeros(1, dtype=torch.int32)).message().margins


def test_an_empty_output_is_right() -> None:
    expected, tolerance = tolerance_of(lambda t: t * 2, torch.zeros(0, 3))
    assert tolerance.passes(torch.zeros(0, 3), expected)


def test_answers_without_work_are_named() -> None:
    x = torch.randn(64)
    expected, tolerance = tolerance_of(torch.exp, x)
    other = torch.exp(torch.randn(64))
    assert indistinguishable(expected, [other], tolerance, [x]) == ""
    assert indistinguishable(expected, [expected], tolerance, [x]) == "the output for other inputs"
    assert indistinguishable(expected, [expected, other], tolerance, [x]) == ""
    assert indistinguishable(expected, [other], tolerance, [torch.exp(x)]) == "a copied input"
    zeros, tolerance = tolerance_of(lambda t: t * 0, x)
    assert indistinguishable(zeros, [other], tolerance, []) == "zeros"
