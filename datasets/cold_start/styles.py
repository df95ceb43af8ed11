"""The ways in which one task is written. What they cost was measured: see the README of this folder."""

from dataclasses import dataclass
from enum import Enum


class Structure(Enum):
    """How the loops are laid out."""

    FUSED = "fused"  # one visit of each element, in registers
    PASSES = "passes"  # one loop over the whole array an operator, through the output
    TEMPORARIES = "temporaries"  # one loop and one new array an operator
    BLOCKED = "blocked"  # one loop an operator over a block that stays in the first cache
    COLUMNS = "columns"  # columns outside, rows inside: strided


@dataclass(frozen=True)
class Style:
    """A structure; simd: loops vectorised by pragma, libm functions declared for vector lanes; threads: OpenMP threads;
    fast_math: float rules relaxed for the whole program, so that sums, `fmaxf` and `sqrtf` vectorise too.
    """

    name: str
    structure: Structure
    simd: bool = False
    threads: bool = False
    fast_math: bool = False


TEMPORARIES = Style("temporaries", Structure.TEMPORARIES)
PASSES = Style("passes", Structure.PASSES)
COLUMNS = Style("columns", Structure.COLUMNS)
FUSED = Style("fused", Structure.FUSED)
SIMD = Style("simd", Structure.FUSED, simd=True)
BLOCKED = Style("blocked", Structure.BLOCKED, simd=True, fast_math=True)
FAST_MATH = Style("fast_math", Structure.FUSED, simd=True, fast_math=True)
RELAXED = Style("relaxed", Structure.FUSED, fast_math=True)
THREADED = Style("threaded", Structure.FUSED, simd=True, threads=True, fast_math=True)

STYLES = (TEMPORARIES, PASSES, COLUMNS, FUSED, RELAXED, SIMD, FAST_MATH, BLOCKED, THREADED)
