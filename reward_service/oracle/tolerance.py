"""How far an answer may lie from the reference, from dtype, accumulation length and the output's own spread.

An element c is right for an expected e when |c - e| <= absolute + relative |e - centre| + rounding |e|, where centre
and spread are mean and standard deviation of the expected output. Everything scales with the spread: an output of
softmax near 1e-4 is checked as sharply as one near 1, and a constant equal to the mean never passes.

A plain loop that adds n terms of one sign in float rounds n partial sums, on average half as large as the result: its
error is a random walk of standard deviation eps sqrt(n) |sum| / 6. Six of them are allowed, but never more than the
share of the spread that _SPREAD_SHARE states: beyond that a plain loop is as wrong as an answer for other inputs.

The spread of a single number shows over draws of other inputs alone. Its own size stands for it, and what is allowed is
at most that share of its standard deviation over draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import messages
import torch

# Shares of the spread. Narrow dtypes: four units in the last place.
_RELATIVE_MIN = 2e-4
_RELATIVE_ULPS = 4.0
# Sums in another order: a few units in the last place of each of sqrt(length) partial sums.
_ACCUMULATION_ULPS = 4.0
# Multiples of the error that the reference itself makes in the task's dtype: other orders of its sums make others.
_NOISE_FACTOR = 16.0
# Of the error that it makes with operands rounded to TF32. Other orders of its sums change little of that error. A
# program may also cut operands off, where the reference rounds them. Products of bfloat16 err more (tolerance_test.py).
_ROUNDED_NOISE_FACTOR = 4.0
_ROUNDING_ULPS = 2.0
_SPREAD_SHARE = 1.0 / 8.0
# Elements that are compared first.
_HEAD = 4096


@dataclass(frozen=True)
class Noise:
    """The largest error of the reference over an output's spread: as it runs, and where no operand is rounded to TF32
    (NVIDIA, "Accelerating AI Training with NVIDIA TF32 Tensor Cores", 2021: 10 bits of mantissa)."""

    as_run: float
    unrounded: float

    def allowed(self) -> float:
        """How far an answer may be off for it, over the spread."""
        return max(_NOISE_FACTOR * self.unrounded, _ROUNDED_NOISE_FACTOR * self.as_run)

    def or_more(self, other: Noise) -> Noise:
        """The larger of both, each way."""
        return Noise(max(self.as_run, other.as_run), max(self.unrounded, other.unrounded))


@dataclass(frozen=True)
class Tolerance:
    """For one output of one draw."""

    absolute: float
    relative: float
    rounding: float
    centre: float
    spread: float
    noise: Noise

    def message(self) -> messages.Tolerance:
        """As it travels to the referee."""
        return messages.Tolerance(self.absolute, self.relative, self.rounding, self.centre, self.spread)

    def is_finite(self) -> bool:
        """Whether every number of it is."""
        return all(math.isfinite(number) for number in (self.absolute, self.centre, self.spread, self.noise.as_run))

    def passes(self, candidate: torch.Tensor, expected: torch.Tensor) -> bool:
        """Whether every element of a candidate's output is right; shapes are equal."""
        if not expected.is_floating_point():
            return bool(torch.equal(candidate.to(expected.dtype), expected))
        # Wrong answers are nearly always wrong at once, and fresh memory for all of it is dear.
        head = min(_HEAD, expected.numel())
        answers, truths = candidate.reshape(-1), expected.reshape(-1)
        return self._all_right(answers[:head], truths[:head]) and self._all_right(answers[head:], truths[head:])

    def _all_right(self, candidate: torch.Tensor, expected: torch.Tensor) -> bool:
        wide = expected.double()
        allowed = (wide - self.centre).abs_().mul_(self.relative).add_(wide.abs(), alpha=self.rounding)
        return bool(((candidate - wide).abs_() <= allowed.add_(self.absolute)).all())


def tolerance_of(
    wide: torch.Tensor,
    dtype: torch.dtype,
    narrow: torch.Tensor | None,
    noise: Noise | None,
    work: int,
    variation: float | None = None,
    unrounded: torch.Tensor | None = None,
) -> Tolerance:
    """For an expected output. `narrow` is the same in the task's dtype, for its error, and `unrounded` that without
    TF32, None where it is no other; without `narrow` the error is `noise`, known from before. `work` is the number of
    input elements: over those of the output, it estimates how many are added up for one. `variation` is the spread of a
    single number, which shows over draws alone."""
    if not dtype.is_floating_point:
        return Tolerance(0.0, 0.0, 0.0, 0.0, 1.0, Noise(0.0, 0.0))
    values = wide if wide.dtype == torch.float64 else wide.float()  # which are added up in double
    # Where float64 says nothing, `wide` is a run that rounds, and the one that does not is off by as much.
    runs = [run for run in (narrow, unrounded) if run is not None]
    centre, spread, *errors = _numbers([_mean(values), _deviation(values), *(_error(run, values) for run in runs)])
    if values.numel() <= 1:
        spread = abs(centre)
    size = spread
    if values.numel() == 1 and variation is not None:
        size, spread = max(spread, variation), variation
    spread = max(spread, float(torch.finfo(dtype).tiny))
    if narrow is not None:
        noise = Noise(as_run=max(errors) / spread, unrounded=min(errors) / spread)
    assert noise is not None
    epsilon = float(torch.finfo(dtype).eps)
    length = max(1.0, work / max(1, values.numel()))
    relative = max(_RELATIVE_MIN, _RELATIVE_ULPS * epsilon)
    absolute = size * (relative + _ACCUMULATION_ULPS * epsilon * length**0.5)
    # What is narrower than float is added up in float, by Torch as by everyone.
    adding = min(epsilon, float(torch.finfo(torch.float32).eps))
    drift = adding * length**0.5 * abs(centre)
    if values.numel() > 1:
        absolute += min(drift, _SPREAD_SHARE * spread)
    else:
        absolute = min(absolute + drift, _SPREAD_SHARE * spread)
    absolute += spread * noise.allowed()
    return Tolerance(absolute, relative, _ROUNDING_ULPS * epsilon, centre, spread, noise)


def _numbers(values: list[torch.Tensor]) -> list[float]:
    """Of 0-d tensors. Fetched at once: each wait costs a turn on a GPU that other processes use, too."""
    numbers: list[float] = torch.stack([value.double() for value in values]).tolist()
    return numbers


def _mean(values: torch.Tensor) -> torch.Tensor:
    return values.mean() if values.numel() else values.new_zeros(())


def _deviation(values: torch.Tensor) -> torch.Tensor:
    return values.std(correction=0) if values.numel() > 1 else values.new_zeros(())


def _error(answer: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    return (answer - truth).abs_().max() if truth.numel() else truth.new_zeros(())


def indistinguishable(
    expected: torch.Tensor, others: list[torch.Tensor], tolerance: Tolerance, inputs: list[torch.Tensor]
) -> str:
    """Which answer without work would pass for `expected`; empty when none does. `others` are the same output for other
    inputs: of a single number some may come near by chance."""
    probes = [("zeros", torch.zeros_like(expected))]
    if expected.is_floating_point():
        probes.append(("a constant", torch.full_like(expected, tolerance.centre)))
    probes += [
        ("a copied input", value.reshape(expected.shape))
        for value in inputs
        if value.numel() == expected.numel() and value.dtype == expected.dtype
    ]
    if expected.numel() == 1:  # its mean is itself: the other draws speak for constants
        probes = [probe for probe in probes if probe[0] != "a constant"]
    for name, probe in probes:
        if tolerance.passes(probe, expected):
            return name
    fitting = [other for other in others if other.shape == expected.shape]
    if fitting and all(tolerance.passes(other, expected) for other in fitting):
        return "the output for other inputs"
    return ""
