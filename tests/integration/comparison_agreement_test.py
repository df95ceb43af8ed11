"""The oracle's tolerances mean to the referee what they mean to the oracle: on random cases both say the same."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

_SERVICE = Path(__file__).resolve().parents[2] / "reward_service"
sys.path[:0] = [str(_SERVICE / "oracle"), str(_SERVICE / "jail")]
from messages import fields_of  # noqa: E402
from tensors import CODES  # noqa: E402
from tolerance import Tolerance, tolerance_of  # noqa: E402

Json = dict[str, Any]
Case = tuple[Tolerance, torch.Tensor, torch.Tensor]
_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_CASES = 200
# The fast comparison rounds the tolerance to the outputs' own type: this near to it, it may differ.
_NEAR = 1e-5


def hexadecimal(tensor: torch.Tensor) -> str:
    return bytes(tensor.contiguous().view(torch.uint8).tolist()).hex()


def referee(cases: list[Case]) -> list[Json]:
    """What the referee says of each; see tests/support/comparison_lines_main.cc."""
    lines = []
    for tolerance, expected, actual in cases:
        code, bits = CODES[expected.dtype]
        fields = {"code": code, "bits": bits, "tolerance": fields_of(tolerance.message())}
        lines.append(json.dumps({**fields, "expected": hexadecimal(expected), "actual": hexadecimal(actual)}) + "\n")
    binary = Path(os.environ["WARPSMITH_BIN_DIR"]).parent / "tests" / "comparison_lines"
    done = subprocess.run([binary], input="".join(lines), capture_output=True, text=True, check=True, timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()]


def margin(case: Case) -> float:
    """By how much the worst element lies within its tolerance, over that; negative outside."""
    tolerance, expected, actual = case
    wide = expected.double()
    allowed = (
        tolerance.absolute + tolerance.relative * (wide - tolerance.centre).abs() + tolerance.rounding * wide.abs()
    )
    return float(((allowed - (actual.double() - wide).abs()) / allowed).min())


def random_case(generator: torch.Generator, dtype: torch.dtype) -> Case:
    """Outputs of any size and spread; an answer that is off by about as much as is allowed, in some elements."""
    chance = torch.rand(5, generator=generator, dtype=torch.float64).tolist()
    count = 1 + int(chance[0] ** 3 * 5000)
    size = 10.0 ** (4 * chance[1] - 2)
    wide = (torch.randn(count, generator=generator, dtype=torch.float64) + 20 * chance[2] ** 4) * size
    expected = wide.to(dtype)
    variation = size * 0.01 if chance[3] < 0.5 else None
    tolerance = tolerance_of(wide, dtype, expected, None, count * int(1 + 1000 * chance[3]), variation)
    allowed = tolerance.absolute + tolerance.rounding * wide.abs()
    error = allowed * (torch.rand(count, generator=generator, dtype=torch.float64) * 2 - 1) * (0.5 + 1.5 * chance[4])
    return tolerance, expected, (expected.double() + error).to(dtype)


@pytest.mark.parametrize("dtype", _FLOATS)
def test_oracle_and_referee_agree_on_random_floats(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    cases = [random_case(generator, dtype) for _ in range(_CASES)]
    verdicts = [tolerance.passes(actual, expected) for tolerance, expected, actual in cases]
    assert 20 < sum(verdicts) < _CASES - 20
    for case, passes, answer in zip(cases, verdicts, referee(cases), strict=True):
        assert (answer["num_wrong"] == 0) == passes
        assert answer["all_right"] == passes or abs(margin(case)) < _NEAR


def test_both_refuse_what_is_not_finite_and_all_poison() -> None:
    expected = torch.randn(64, generator=torch.Generator().manual_seed(2))
    tolerance = tolerance_of(expected, expected.dtype, expected, None, 64)
    cases: list[Case] = []
    for value in (float("nan"), float("inf"), -float("inf")):
        actual = expected.clone()
        actual[63] = value
        cases.append((tolerance, expected, actual))
    for case, answer in zip(cases, referee(cases), strict=True):
        assert not tolerance.passes(case[2], case[1])
        assert answer == {"num_wrong": 1, "all_right": False}


@pytest.mark.parametrize("dtype", [dtype for dtype in CODES if not dtype.is_floating_point])
def test_both_want_integers_equal(dtype: torch.dtype) -> None:
    expected = (torch.arange(50) % 2).to(dtype)
    other = expected.clone()
    other[7] = 0
    tolerance = tolerance_of(expected, dtype, expected, None, 50)
    assert [
        answer["num_wrong"] for answer in referee([(tolerance, expected, expected), (tolerance, expected, other)])
    ] == [
        0,
        1,
    ]
    assert tolerance.passes(expected.clone(), expected) and not tolerance.passes(other, expected)
