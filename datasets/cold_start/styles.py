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
    """A structure, whether loops are vectorised by pragma, and whether rows are spread over threads."""

    name: str
    structure: Structure
    simd: bool = False
    threads: bool = False


TEMPORARIES = Style("temporaries", Structure.TEMPORARIES)
PASSES = Style("passes", Structure.PASSES)
COLUMNS = Style("columns", Structure.COLUMNS)
FUSED = Style("fused", Structure.FUSED)
SIMD = Style("simd", Structure.FUSED, simd=True)
BLOCKED = Style("blocked", Structure.BLOCKED, simd=True)
THREADED = Style("threaded", Structure.FUSED, simd=True, threads=True)

STYLES = (TEMPORARIES, PASSES, COLUMNS, FUSED, SIMD, BLOCKED, THREADED)
