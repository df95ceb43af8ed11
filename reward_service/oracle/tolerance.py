"""How far an answer may lie from the reference: as far as the reference itself errs on elements of that size.

Of an exact draw the oracle has e, the reference in float64; r, as the task runs; r', the same without TF32; and pairs
p+ and p- of float64 runs whose inputs and parameters are moved by a few roundings, up and down. With u half an epsilon
of the output's dtype, the deviation that an element may have is

    s = F sqrt((u size)^2 + noise^2 + move^2),  F = 1 + (a / u) (14 + sqrt(n) / 2),  a = min(u, 2^-24)

where size is |e|, or the median where that is larger; noise the error of r' on elements of that size; move what one
rounding of the inputs changes; and n the longest sum in the reference. p+ + p- - 2 e is near zero where the reference
is smooth, and its height where it steps. An element's margin is 10 s and that height: errors beyond are outliers. As
most errors are much smaller, the mean of (error / margin)^2 is bounded, too, but for elements that step.

A draw that is not exact has r alone: its margins follow from the size of an element, as on the exact draws before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import messages
import torch
from probes import BUCKET, Deviations, Probes, Sample, difference, pieces

# Functions that err by up to 8 units in the last place, where sums are made in the output's own precision.
_INTRINSIC = 14.0
# A plain loop over n terms of one sign: a walk of u sqrt(n) / 4, and a bias of addends below half an ulp.
_LOOP = 0.5
# Once one term dominates a sum, equal small addends round alike: at worst u n.
_DOMINATED_LOOP = 0.25
# Hardware cuts operands off that Torch rounds to TF32: twice the error, and a bias. bfloat16 errs 8 times as much
# (NVIDIA, "Accelerating AI Training with NVIDIA TF32 Tensor Cores", 2021: 10 bits of mantissa).
_ROUNDED_NOISE = 5.0
# The largest of 10^6 normal errors is 4.9 deviations; saturated softmax and Winograd have longer tails.
_TAIL = 10.0
# Margins that are allowed where few numbers dominate: Winograd spreads the error of one over its tile.
_DOMINATED_REACH = 8.0
# The deviation of all errors, over the one that is allowed, and over the reference's own where that is larger.
_BULK = 1.0
_DOMINATED_BULK = 2.0
_MORE_BULK = 1.5
# Rare jumps scatter between two programs, and have the height of the reference's.
_MORE_OUTLIERS = 4.0
_FEW_OUTLIERS = 2
_MORE_HEIGHT = 1.25
_FLIP_SHARE = 0.25
_SPREAD_SHARE = 1.0 / 8.0
# Elements of a word: what the dtype rounds off e, in this share of the margin, below the margin's upper 16 bits.
_RESIDUAL = 2.0**-18
_UNBOUNDED = 1e300


@dataclass(frozen=True)
class Sum:
    """Says how far another order of sums may lie: the longest sum's terms, and whether few of them dominate."""

    length: int
    dominated: bool = False

    def factor(self, unit: float) -> float:
        """Returns F for an output of this unit of roundoff: what is narrower than float is added up in float."""
        walk = _LOOP * self.length**0.5
        worst = _DOMINATED_LOOP * self.length if self.dominated else 0.0
        return 1.0 + min(1.0, 2.0**-24 / unit) * (_INTRINSIC + max(walk, worst))


@dataclass(frozen=True)
class Tolerance:
    """Says how far an answer may lie from one output of one draw; messages.h says what the referee makes of it."""

    absolute: float = 0.0
    relative: float = 0.0
    spread: float = 1.0
    reach: float = 1.0
    outliers_max: int = 0
    outlier_error_max: float = _UNBOUNDED
    bulk_max: float = 1.0
    words: torch.Tensor | None = None  # the margins of an exact draw, which travel in the window
    outlier_share: float = 0.0  # of elements beyond the margins by size, in r or by a step
    steps: bool = False  # such elements were seen

    def message(self) -> messages.Tolerance:
        """Returns what travels in the packet."""
        values = {name: getattr(self, name) for name in messages.Tolerance.__annotations__ if name != "margins"}
        return messages.Tolerance(**values, margins=self.words is not None)

    def is_finite(self) -> bool:
        """Returns whether every number is."""
        return all(math.isfinite(number) for number in (self.absolute, self.relative, self.spread))

    def or_more(self, other: Tolerance) -> Tolerance:
        """Returns the tolerance by size alone, of outputs whose spread is 1, that allows what either does."""
        names = ("relative", "outlier_share", "steps")
        larger = {name: max(getattr(self, name), getattr(other, name)) for name in names}
        return Tolerance(max(self.absolute / self.spread, other.absolute / other.spread), **larger)

    def of_draw(self, run: torch.Tensor, variation: float | None) -> Tolerance:
        """Returns that of a draw that is not exact, for an output; `self` is what or_more() returned."""
        outliers_max = int(_FEW_OUTLIERS + _MORE_OUTLIERS * self.outlier_share * run.numel()) if self.steps else 0
        spread = 1.0
        if run.is_floating_point() and run.numel():
            spread = float(Sample(run.reshape(-1)).spread()) if variation is None else variation
        return replace(self, absolute=self.absolute * spread, spread=spread, outliers_max=outliers_max)

    def passes(self, candidate: torch.Tensor, expected: torch.Tensor) -> bool:
        """Returns whether an answer is right, as the referee's comparison.cc does; shapes are equal."""
        answers, truths = candidate.reshape(-1), expected.reshape(-1)
        if not truths.numel():
            return True
        sums = torch.stack([self._sums(answers[piece], truths[piece], piece) for piece in pieces(truths.numel())])
        num_outliers, num_counted, squares = sums[:, :3].sum(0).tolist()
        if num_outliers > self.outliers_max or float(sums[:, 3].amax()) > self.outlier_error_max:
            return False
        return not num_counted or squares / num_counted <= self.bulk_max

    def _sums(self, answers: torch.Tensor, truths: torch.Tensor, piece: slice) -> torch.Tensor:
        """Returns of some elements how many are outliers and how many are not, the squares of the latter's shares of
        their margins, and the largest error of the former."""
        truths = truths.double()
        margins = truths.abs().mul_(self.relative).add_(self.absolute)
        counts = torch.zeros_like(truths, dtype=torch.bool)
        if self.words is not None:
            words = self.words[piece]
            halves = (words & -65536).view(torch.float32)
            margins, counts = halves.abs().double(), ~halves.signbit()
            truths = truths + ((words << 16) >> 16) * (_RESIDUAL * margins)
        answers = answers.double()
        errors = torch.where(answers == truths, 0.0, (answers - truths).abs()).nan_to_num(torch.inf)
        outliers = errors > self.reach * margins
        shares = torch.where(counts, errors / margins, 0.0).clamp_(max=1.0)
        largest = torch.where(outliers, errors, 0.0).amax()
        return torch.stack([outliers.sum().double(), counts.sum().double(), shares.square_().sum(), largest])


def exact_tolerance(
    run: torch.Tensor,
    unrounded: torch.Tensor | None,
    probes: Probes,
    total: Sum,
    variation: float | None = None,
    *,
    flips: bool = False,
) -> Tolerance:
    """Returns the tolerance of one output of an exact draw, with margins. `run` is r; `unrounded` r', None where it is
    no other; `variation` the spread of a single number, which shows over draws alone; `flips` says that integers did
    so in another draw."""
    if not probes.is_real or not run.numel():
        return _of_integers(run, probes, flips)
    unit = torch.finfo(run.dtype).eps / 2
    factor = total.factor(unit)
    found = Deviations(probes, run, unrounded, unit, factor)
    rounded = (_ROUNDED_NOISE / factor) ** 2
    reach = _DOMINATED_REACH if total.dominated else 1.0
    usual = found.law(rounded).times(2 * (_TAIL * factor) ** 2)  # of r and an answer, both of which err
    level, slope = usual.level.sqrt(), usual.slope.sqrt()
    words = torch.empty_like(probes.jump, dtype=torch.int32)
    sums, largest = [], []
    for piece in pieces(run.numel()):
        some = found.of(piece)
        deviation = found.squares(some, rounded).sqrt_().mul_(factor)
        counts = some.jump <= deviation
        margin = deviation.mul_(_TAIL).add_(some.jump)
        if variation is not None:
            margin.clamp_(max=_SPREAD_SHARE * variation / reach)
        margin.clamp_(min=torch.finfo(torch.float32).tiny)
        outliers = some.error > reach * margin
        shares = torch.where(counts, some.error / margin, 0.0).clamp_(max=1.0)
        beyond = some.jump.maximum(some.error) > level + slope * some.size
        words[piece] = _words(probes.exact[piece], run.dtype, margin, counts)
        numbers = (counts.sum(), outliers.sum(), beyond.sum(), shares.square_().sum())
        sums.append(torch.stack([number.double() for number in numbers]))
        largest.append(torch.stack([margin.amax(), torch.where(outliers, some.error, 0.0).amax()]))
    num_counted, num_outliers, num_beyond, squares, margin_max, height, spread, absolute, relative = _numbers(
        *torch.stack(sums).sum(0), *torch.stack(largest).amax(0), found.sample.spread(), level, slope
    )
    if margin_max > torch.finfo(torch.float32).max:  # what a word cannot hold is no margin
        absolute = math.inf
    spread = max(spread if variation is None else variation, torch.finfo(run.dtype).tiny)
    bulk = math.sqrt(squares / max(1.0, num_counted))
    allowed = max((_DOMINATED_BULK if total.dominated else _BULK) / _TAIL, _MORE_BULK * bulk)
    return Tolerance(
        absolute=absolute if variation is None else min(absolute, _SPREAD_SHARE * variation),
        relative=relative if variation is None else 0.0,
        spread=spread,
        reach=reach,
        outliers_max=int(_FEW_OUTLIERS + _MORE_OUTLIERS * num_outliers) if num_outliers else 0,
        outlier_error_max=_MORE_HEIGHT * height,
        bulk_max=min(1.0, allowed**2) if run.numel() >= BUCKET else 1.0,
        outlier_share=num_beyond / run.numel(),
        steps=num_beyond > 0,
        words=words,
    )


def _of_integers(run: torch.Tensor, probes: Probes, may_flip: bool) -> Tolerance:
    """Returns that of integers and booleans: a margin reaches as far as e, r and all probes differ."""
    flat = run.reshape(-1)
    words = torch.empty_like(probes.jump, dtype=torch.int32)
    sums = [torch.zeros(2, device=run.device)]
    for piece in pieces(flat.numel()):
        flips = difference(flat[piece], probes.exact[piece]).abs_()
        margin = probes.jump[piece].maximum(flips)
        exact = probes.exact[piece]
        words[piece] = _words(exact, run.dtype, margin, torch.zeros_like(margin, dtype=torch.bool))
        sums.append(torch.stack([(flips > 0).sum(), (margin > 0).sum()]).float())
    num_flips, num_steps = _numbers(*torch.stack(sums).sum(0))
    return Tolerance(
        outliers_max=int(_FEW_OUTLIERS + _FLIP_SHARE * num_flips) if num_steps or may_flip else 0,
        outlier_share=num_flips / max(1, flat.numel()),
        steps=num_steps > 0,
        words=words,
    )


def _numbers(*values: torch.Tensor) -> list[float]:
    """Returns 0-d tensors as numbers, fetched at once: each wait costs a turn on a GPU that is shared."""
    numbers: list[float] = torch.stack([value.double() for value in values]).tolist()
    return numbers


def _words(exact: torch.Tensor, dtype: torch.dtype, margin: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Returns a margin an element: as bfloat16, rounded up, in the upper half, negative where an error counts as an
    outlier alone; in the lower half what the output's dtype rounds off e."""
    bits = ((margin.float().view(torch.int32) + 0xFFFF) >> 16) << 16
    residual = (exact.double() - exact.to(dtype).double()) / (bits.view(torch.float32).double() * _RESIDUAL)
    residual = residual.nan_to_num(0.0, 0.0, 0.0).round_().clamp_(-32767, 32767).int()
    return torch.where(counts, bits, bits | -(1 << 31)) | (residual & 0xFFFF)


def indistinguishable(
    expected: torch.Tensor, others: list[torch.Tensor], tolerance: Tolerance, inputs: list[torch.Tensor]
) -> str:
    """Returns which answer without work would pass for `expected`, empty when none does. `others` are the same output
    for other inputs: of a single number some may come near by chance."""
    probes = [("zeros", torch.zeros_like(expected))]
    if expected.is_floating_point() and expected.numel() != 1:  # whose mean is itself: the other draws speak for it
        probes.append(("a constant", torch.full_like(expected, float(expected.mean(dtype=torch.float64)))))
    probes += [
        ("a copied input", value.reshape(expected.shape))
        for value in inputs
        if value.numel() == expected.numel() and value.dtype == expected.dtype
    ]
    for name, probe in probes:
        if tolerance.passes(probe, expected):
            return name
    fitting = [other for other in others if other.shape == expected.shape]
    if fitting and all(tolerance.passes(other, expected) for other in fitting):
        return "the output for other inputs"
    return ""
