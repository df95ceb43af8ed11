"""How far one output of a reference errs, by the size of its elements, and what moves or steps in it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

# How far inputs are moved, in units of roundoff: a division, a reciprocal and a scale round three times.
REACH = 8.0
# Likewise, to find out whether integers step at all.
FAR = 2.0**14
# Pairs of moved runs: a pair misses one in seven elements that step behind a sum, four pairs one in 2,000.
PAIRS_MIN = 2
PAIRS_MAX = 4
# Times its own rounding, or the others' movement: an element beyond steps, or is ill-conditioned.
_CONSPICUOUS = 10.0
# Elements that tell a deviation, and as many as one is taken from.
BUCKET = 32
_SAMPLE = 1 << 16


class Probes:
    """Sums up what one output becomes where inputs are moved. `exact` is e; where it is no run of float64 it `rounds`:
    p+ + p- - 2 e is then made of three roundings, and tells no step."""

    def __init__(self, exact: torch.Tensor, *, rounds: bool) -> None:
        self.is_real = exact.is_floating_point()
        self.exact = exact.double().reshape(-1)
        self.rounds = rounds
        self.moves = torch.zeros_like(
            self.exact
        )  # mean square: of what one rounding of the inputs changes, or of its own
        self.jump = torch.zeros_like(self.exact)  # the height of a step within reach
        self._num_pairs = 0

    def add(self, up: torch.Tensor, down: torch.Tensor) -> None:
        """Adds a pair. Raises RuntimeError where its shape is another."""
        above, below = (difference(moved, self.exact) for moved in (up, down))
        self._num_pairs += 1
        if not self.is_real:
            torch.maximum(self.jump, above.abs_().maximum(below.abs_()), out=self.jump)
            return
        second = above + below
        if self.rounds:
            square = second.square_().div_(6)
        else:
            square = above.sub_(below).div_(2 * REACH).square_()
            torch.maximum(self.jump, second.abs_(), out=self.jump)
        self.moves += square.sub_(self.moves).div_(self._num_pairs)

    def are_conspicuous(self, dtype: torch.dtype) -> bool:
        """Returns whether any element of an output of this dtype steps, or moves much more than the others do."""
        if not self.is_real or self.rounds:
            return bool((self.jump > 0).any())
        rounding = self.exact.abs().clamp_(min=self.exact.abs().mean()).mul_(_CONSPICUOUS * torch.finfo(dtype).eps / 2)
        usual = rounding.square().maximum(_CONSPICUOUS**2 * self.moves.mean())
        return bool(((self.jump > rounding) | (self.moves > usual)).any())


def difference(output: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """Returns output - exact, and 0 where that is not finite."""
    flat = output.reshape(-1)
    return torch.sub(flat.byte() if flat.dtype == torch.bool else flat, exact).nan_to_num_(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Law:
    """Mean squares that grow with the size of an element: level + slope size^2."""

    level: torch.Tensor
    slope: torch.Tensor

    def __add__(self, other: Law) -> Law:
        return Law(self.level + other.level, self.slope + other.slope)

    def times(self, factor: float) -> Law:
        """Returns the law of squares that are so many times as large."""
        return Law(self.level * factor, self.slope * factor)

    def maximum(self, other: Law) -> Law:
        """Returns a law that is no less than both."""
        return Law(self.level.maximum(other.level), self.slope.maximum(other.slope))

    def at(self, values: torch.Tensor) -> torch.Tensor:
        """Returns the mean square of elements of these values."""
        return values.square().mul_(self.slope).add_(self.level)


class Sample:
    """Elements of an output by which laws are found: all, or some at random of a large one."""

    def __init__(self, values: torch.Tensor) -> None:
        count = values.numel()
        self._places = torch.randint(count, (_SAMPLE,), device=values.device) if count > _SAMPLE else None
        self._values = self._of(values)
        self._sizes = self._values.abs()
        self.middle = self._sizes.masked_fill(self._sizes == 0, torch.nan).nanmedian().nan_to_num()  # of those not zero

    def _of(self, values: torch.Tensor) -> torch.Tensor:
        return values if self._places is None else values[self._places]

    def spread(self) -> torch.Tensor:
        """Returns the standard deviation of the values; of a single one its size."""
        return self._values.std(correction=0) if self._values.numel() > 1 else self._sizes.sum()

    def law(self, squares: torch.Tensor, smooth: torch.Tensor) -> Law:
        """Returns the law of such squares where they are `smooth` and the value is not zero: a level for all, or below
        the median, and what is more above."""
        squares, chosen = self._of(squares), self._of(smooth) & (self._sizes > 0)
        if squares.numel() < 2 * BUCKET:
            return Law(_mean(squares, chosen), squares.new_zeros(()))
        large = chosen & (self._sizes > self.middle)
        level = _mean(squares, chosen & ~large)
        more = (_mean(squares, large) - level).clamp(min=0)
        return Law(level, (more / _mean(self._sizes.square(), large)).nan_to_num(0.0, 0.0, 0.0))


def _mean(values: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    return torch.where(chosen, values, 0.0).sum() / chosen.sum().clamp(min=1)


class Deviations:
    """Deviations that an output's elements may have: all but F, as tolerance.py has it. `unit` is u; jumps of no more
    than `roundings` u are none; `run` is r, `unrounded` r' or None where it is no other."""

    def __init__(
        self, probes: Probes, run: torch.Tensor, unrounded: torch.Tensor | None, unit: float, roundings: float
    ) -> None:
        exact = probes.exact
        self._value = torch.where(torch.isfinite(exact), exact, 0.0)
        self.sample = Sample(self._value)
        self.size = self._value.abs().maximum(self.sample.middle).clamp_(min=torch.finfo(run.dtype).tiny)
        self._unit = unit
        # At a step p+ - p- is the height, too.
        smooth = probes.jump <= (self.size * (roundings * unit)).maximum(probes.moves.sqrt().mul_(REACH))
        self.error = difference(run, self._value).abs_()
        as_run = self.sample.law(self.error.square(), smooth)
        plain = as_run if unrounded is None else self.sample.law(difference(unrounded, self._value).square_(), smooth)
        moved = self.sample.law(probes.moves, smooth)
        if probes.rounds:  # r is the truth, and errs as an answer does
            self._noise, self._move, self._moves = moved.times(2), moved.times(0), torch.zeros_like(exact)
        else:
            self._noise, self._move, self._moves = plain, moved, probes.moves
        self._rounded = as_run.maximum(plain) if unrounded is not None else as_run.times(0)

    def squares(self, rounded: float) -> torch.Tensor:
        """Returns the square of each element's deviation, at least `rounded` squares of r where TF32 rounds it."""
        usual = self._move.at(self._value)
        more = torch.where(usual > 0, self._moves / usual, 1.0).clamp_(min=1.0)  # ill-conditioned
        least = self._rounded.at(self._value).mul_(more).mul_(rounded)
        noise = self._noise.at(self._value).mul_(more).add_(usual.maximum(self._moves))
        return noise.add_((self.size * self._unit).square_()).maximum(least)

    def law(self, rounded: float) -> Law:
        """Returns the same by size alone, and no less, for elements that are neither ill-conditioned nor step."""
        own = Law((self.sample.middle * self._unit) ** 2, self.sample.middle * 0 + self._unit**2)
        return (own + self._noise + self._move).maximum(self._rounded.times(rounded))
