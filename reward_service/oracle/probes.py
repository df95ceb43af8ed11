"""How far one output of a reference errs, by the size of its elements, and what moves or steps in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

# How far inputs are moved, in units of roundoff: a division, a reciprocal and a scale round three times.
REACH = 8.0
# How far inputs are moved to find out whether integers step at all, in the same units.
FAR = 2.0**14
# Pairs of moved runs: a pair misses one in seven elements that step behind a sum, four pairs one in 2,000.
PAIRS_MIN = 2
PAIRS_MAX = 4
# Times its own rounding, or the others' movement: an element beyond steps, or is ill-conditioned.
_CONSPICUOUS = 10.0
# Elements that tell a deviation, and as many as one is taken from.
BUCKET = 32
_SAMPLE = 1 << 16
# Elements that are computed with at once: intermediate numbers of all would take many times an output's memory.
_PIECE = 1 << 20


def pieces(count: int) -> Iterator[slice]:
    """Returns slices of so many elements, one after the other."""
    return (slice(start, start + _PIECE) for start in range(0, count, _PIECE))


class Probes:
    """Sums up what one output becomes where inputs are moved. `exact` is e; where it is no run of float64 it `rounds`:
    p+ + p- - 2 e is then made of three roundings, and tells no step."""

    def __init__(self, exact: torch.Tensor, *, rounds: bool) -> None:
        self.is_real = exact.is_floating_point()
        self.exact = exact.reshape(-1)
        self.rounds = rounds
        # Root mean square: of what one rounding of the inputs changes, or of its own.
        self.moves = torch.zeros_like(self.exact, dtype=torch.float32)
        self.jump = torch.zeros_like(self.moves)  # the height of a step within reach
        self._num_pairs = 0

    def add(self, up: torch.Tensor, down: torch.Tensor) -> None:
        """Adds a pair. Raises RuntimeError where it has another number of elements."""
        above, below = (moved.reshape(-1) for moved in (up, down))
        if not above.numel() == below.numel() == self.exact.numel():
            raise RuntimeError(f"{above.numel()} elements of moved inputs, {self.exact.numel()} of the others")
        self._num_pairs += 1
        for piece in pieces(self.exact.numel()):
            self._add(piece, *(difference(moved[piece], self.exact[piece]) for moved in (above, below)))

    def _add(self, piece: slice, above: torch.Tensor, below: torch.Tensor) -> None:
        jump, moves = self.jump[piece], self.moves[piece]
        if not self.is_real:
            torch.maximum(jump, above.abs_().maximum(below.abs_()).float(), out=jump)
            return
        second = above + below
        if self.rounds:
            square = second.square_().div_(6)
        else:
            square = above.sub_(below).div_(2 * REACH).square_()
            torch.maximum(jump, second.abs_().float(), out=jump)
        mean = moves.double().square_()
        moves.copy_(mean.add_(square.sub_(mean).div_(self._num_pairs)).sqrt_())

    def are_conspicuous(self, dtype: torch.dtype) -> bool:
        """Returns whether any element of an output of this dtype steps, or moves much more than the others do."""
        if not self.exact.numel():
            return False
        if not self.is_real or self.rounds:
            return bool((self.jump > 0).any())
        count = self.exact.numel()
        middle = self.exact.abs().mean()
        squares = torch.stack([self.moves[piece].double().square_().sum() for piece in pieces(count)])
        usual = (squares.sum() / count).sqrt()
        found = torch.zeros_like(usual, dtype=torch.bool)
        for piece in pieces(count):
            size = self.exact[piece].abs().clamp_(min=middle).mul_(_CONSPICUOUS * torch.finfo(dtype).eps / 2)
            found |= (self.jump[piece] > size).any() | (self.moves[piece] > size.maximum(_CONSPICUOUS * usual)).any()
        return bool(found)


def difference(output: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """Returns output - exact in float64, and 0 where that is not finite."""
    return torch.sub(output.reshape(-1).double(), exact.double()).nan_to_num_(0.0, 0.0, 0.0)


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
    """Elements of a flat tensor by which laws are found: all, or some at random of a large one."""

    def __init__(self, tensor: torch.Tensor) -> None:
        count = tensor.numel()
        self.places = torch.randint(count, (_SAMPLE,), device=tensor.device) if count > _SAMPLE else slice(None)
        self._values = finite(tensor[self.places])
        self._sizes = self._values.abs()
        self.middle = self._sizes.masked_fill(self._sizes == 0, torch.nan).nanmedian().nan_to_num()  # of those not zero

    def spread(self) -> torch.Tensor:
        """Returns the standard deviation of the values; of a single one its size."""
        return self._values.std(correction=0) if self._values.numel() > 1 else self._sizes.sum()

    def law(self, squares: torch.Tensor, smooth: torch.Tensor) -> Law:
        """Returns the law of such squares of its elements where they are `smooth` and the value is not zero: a level
        for all, or below the median, and what is more above."""
        chosen = smooth & (self._sizes > 0)
        if squares.numel() < 2 * BUCKET:
            return Law(_mean(squares, chosen), squares.new_zeros(()))
        large = chosen & (self._sizes > self.middle)
        level = _mean(squares, chosen & ~large)
        more = (_mean(squares, large) - level).clamp(min=0)
        return Law(level, (more / _mean(self._sizes.square(), large)).nan_to_num(0.0, 0.0, 0.0))


def finite(values: torch.Tensor) -> torch.Tensor:
    """Returns values in float64, and 0 for those that are not finite."""
    return values.double().nan_to_num(0.0, 0.0, 0.0)


def _mean(values: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    return torch.where(chosen, values, 0.0).sum() / chosen.sum().clamp(min=1)


@dataclass(frozen=True)
class Elements:
    """Some of an output's: e, or 0 where that is not finite; size; the errors of r and of r'; what moves and steps."""

    value: torch.Tensor
    size: torch.Tensor
    error: torch.Tensor
    plain_error: torch.Tensor
    moves: torch.Tensor
    jump: torch.Tensor


class Deviations:
    """Deviations that an output's elements may have: all but F, as tolerance.py has it. `unit` is u; jumps of no more
    than `roundings` u are none; `run` is r, `unrounded` r' or None where it is no other."""

    def __init__(
        self, probes: Probes, run: torch.Tensor, unrounded: torch.Tensor | None, unit: float, roundings: float
    ) -> None:
        self._probes = probes
        self._run = run.reshape(-1)
        self._unrounded = None if unrounded is None else unrounded.reshape(-1)
        self._unit = unit
        self._least_size = torch.finfo(run.dtype).tiny
        self.sample = Sample(probes.exact)
        some = self.of(self.sample.places)
        # At a step p+ - p- is the height, too.
        smooth = some.jump <= (some.size * (roundings * unit)).maximum(some.moves * REACH)
        as_run = self.sample.law(some.error.square(), smooth)
        plain = self.sample.law(some.plain_error.square(), smooth)
        moved = self.sample.law(some.moves.square(), smooth)
        if probes.rounds:  # r is the truth, and errs as an answer does
            self._noise, self._move = moved.times(2), moved.times(0)
        else:
            self._noise, self._move = plain, moved
        self._rounded = as_run.maximum(plain) if unrounded is not None else as_run.times(0)

    def of(self, places: slice | torch.Tensor) -> Elements:
        """Returns the elements at these places."""
        value = finite(self._probes.exact[places])
        error = difference(self._run[places], value).abs_()
        return Elements(
            value,
            value.abs().maximum(self.sample.middle).clamp_(min=self._least_size),
            error,
            error if self._unrounded is None else difference(self._unrounded[places], value).abs_(),
            self._probes.moves[places].double(),
            self._probes.jump[places].double(),
        )

    def squares(self, some: Elements, rounded: float) -> torch.Tensor:
        """Returns the square of each element's deviation, at least `rounded` squares of r where TF32 rounds it."""
        moves = torch.zeros_like(some.moves) if self._probes.rounds else some.moves.square()
        usual = self._move.at(some.value)
        more = torch.where(usual > 0, moves / usual, 1.0).clamp_(min=1.0)  # ill-conditioned
        least = self._rounded.at(some.value).mul_(more).mul_(rounded)
        noise = self._noise.at(some.value).mul_(more).add_(usual.maximum(moves))
        return noise.add_((some.size * self._unit).square_()).maximum(least)

    def law(self, rounded: float) -> Law:
        """Returns the same by size alone, and no less, for elements that are neither ill-conditioned nor step."""
        own = Law((self.sample.middle * self._unit) ** 2, self.sample.middle * 0 + self._unit**2)
        return (own + self._noise + self._move).maximum(self._rounded.times(rounded))
