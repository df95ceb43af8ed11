"""How far an answer may lie from the reference, from dtype, accumulation length and the output's own spread.

An element c is right for an expected e when |c - e| <= absolute + relative |e - centre| + rounding |e|, where centre and
spread are mean and standard deviation of the expected output. Everything scales with the spread: an output of softmax near
1e-4 is checked as sharply as one near 1, and a constant equal to the mean never passes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

# Shares of the spread. Narrow dtypes: four units in the last place.
_RELATIVE_MIN = 2e-4
_RELATIVE_ULPS = 4.0
# Sums in another order: a few units in the last place of each of sqrt(length) partial sums.
_ACCUMULATION_ULPS = 4.0
# Multiples of the error that the reference itself makes in the task's dtype.
_NOISE_FACTOR = 16.0
_ROUNDING_ULPS = 2.0
# Elements that are compared first.
_HEAD = 4096


@dataclass(frozen=True)
class Tolerance:
    """For one output of one draw."""

    absolute: float
    relative: float
    rounding: float
    centre: float
    spread: float
    noise: float  # error of the task's own dtype over the spread

    def fields(self) -> dict[str, float]:
        """As it travels to the referee."""
        return {
            "absolute": self.absolute,
            "relative": self.relative,
            "rounding": self.rounding,
            "centre": self.centre,
            "spread": self.spread,
        }

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
    wide: torch.Tensor, dtype: torch.dtype, narrow: torch.Tensor | None, noise: float | None, work: int
) -> Tolerance:
    """For an expected output. `narrow` is the same in the task's dtype, for its error; else `noise` is that error over
    the spread, known from before. `work` is the number of input elements: over those of the output, it estimates how
    many are added up for one."""
    if not dtype.is_floating_point:
        return Tolerance(0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    values = wide.double()
    centre = float(values.mean()) if values.numel() else 0.0
    spread = float(values.std(correction=0)) if values.numel() > 1 else abs(centre)
    spread = max(spread, float(torch.finfo(dtype).tiny))
    if narrow is not None:
        noise = float((narrow - values).abs_().max()) / spread if values.numel() else 0.0
    assert noise is not None
    epsilon = float(torch.finfo(dtype).eps)
    length = max(1.0, work / max(1, values.numel()))
    relative = max(_RELATIVE_MIN, _RELATIVE_ULPS * epsilon)
    absolute = spread * (relative + _ACCUMULATION_ULPS * epsilon * length**0.5 + _NOISE_FACTOR * noise)
    return Tolerance(absolute, relative, _ROUNDING_ULPS * epsilon, centre, spread, noise)


def indistinguishable(
    expected: torch.Tensor, other: torch.Tensor, tolerance: Tolerance, inputs: list[torch.Tensor]
) -> str:
    """Which answer without work would pass for `expected`; empty when none does. `other` is another draw's output."""
    probes = [("zeros", torch.zeros_like(expected)), ("the output for other inputs", other)]
    if expected.is_floating_point():
        probes.append(("a constant", torch.full_like(expected, tolerance.centre)))
    probes += [
        ("a copied input", value.reshape(expected.shape))
        for value in inputs
        if value.numel() == expected.numel() and value.dtype == expected.dtype
    ]
    if expected.numel() == 1:  # its mean is itself: the other draw speaks for constants
        probes = [probe for probe in probes if probe[0] != "a constant"]
    for name, probe in probes:
        if probe.shape == expected.shape and tolerance.passes(probe, expected):
            return name
    return ""
