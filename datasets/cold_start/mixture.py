"""How often each style is an answer, and what feedback a correct but slow program gets.

A cold-started Coder shall be mostly correct and mostly slow: reinforcement learning amplifies only what it can already
sample, so every fast style is present, as a minority.
"""

import random

from datasets.cold_start.cpp_programs import styles_for
from datasets.cold_start.flaws import Feedback
from datasets.cold_start.styles import (
    BLOCKED,
    COLUMNS,
    FAST_MATH,
    FUSED,
    PASSES,
    RELAXED,
    SIMD,
    STYLES,
    TEMPORARIES,
    THREADED,
    Structure,
    Style,
)
from datasets.tasks.program import Program

_ELEMENT_WEIGHTS = {
    TEMPORARIES: 0.45,
    PASSES: 0.03,
    COLUMNS: 0.26,
    FUSED: 0.10,
    RELAXED: 0.005,
    SIMD: 0.02,
    FAST_MATH: 0.12,
    BLOCKED: 0.005,
    THREADED: 0.01,
}
_ROW_WEIGHTS = {  # here the plain loop often beats eager PyTorch already
    TEMPORARIES: 0.45,
    PASSES: 0.03,
    COLUMNS: 0.33,
    FUSED: 0.03,
    RELAXED: 0.005,
    SIMD: 0.02,
    FAST_MATH: 0.12,
    BLOCKED: 0.005,
    THREADED: 0.01,
}
_REPAIR_WEIGHTS = {  # a repair keeps the style it finds: fast bodies are practised, not offered more often
    TEMPORARIES: 0.22,
    PASSES: 0.05,
    COLUMNS: 0.10,
    FUSED: 0.15,
    RELAXED: 0.01,
    SIMD: 0.03,
    FAST_MATH: 0.40,
    BLOCKED: 0.01,
    THREADED: 0.03,
}
_STEPS: dict[Style, tuple[Style, ...]] = {  # what may follow the advice on a style, as often as it stands here
    TEMPORARIES: (PASSES, FUSED, FUSED),
    PASSES: (FUSED, FUSED, FUSED, SIMD, FAST_MATH),
    COLUMNS: (TEMPORARIES, TEMPORARIES, TEMPORARIES, PASSES),
    FUSED: (RELAXED, SIMD, FAST_MATH),
    RELAXED: (FAST_MATH,),
    SIMD: (FAST_MATH,),
    FAST_MATH: (FAST_MATH,),
    BLOCKED: (FAST_MATH,),
    THREADED: (FAST_MATH,),
}
_SPEEDUPS = {  # measured: see the README of the folder above
    TEMPORARIES: (0.05, 2.0),
    PASSES: (0.05, 3.0),
    COLUMNS: (0.04, 0.6),
    FUSED: (0.05, 3.0),
    RELAXED: (0.1, 6.0),
    SIMD: (0.3, 8.0),
    FAST_MATH: (1.0, 9.0),
    BLOCKED: (1.0, 6.0),
    THREADED: (1.0, 9.0),
}


def available_styles(program: Program) -> list[Style]:
    structures = styles_for(program)
    found = [style for style in STYLES if style.structure in structures]
    if program.row_operator is not None and program.dim == 0:
        found.remove(THREADED)
    return found


def draw_style(program: Program, rng: random.Random) -> Style:
    """The style of an answer to the reference alone, and of one that is to become faster."""
    return _draw(_ROW_WEIGHTS if program.row_operator is not None else _ELEMENT_WEIGHTS, program, rng)


def draw_repaired_style(program: Program, rng: random.Random) -> Style:
    """The style of a flawed program and of its repair."""
    return _draw(_REPAIR_WEIGHTS, program, rng)


def _draw(weights: dict[Style, float], program: Program, rng: random.Random) -> Style:
    styles = available_styles(program)
    return rng.choices(styles, [weights[style] for style in styles])[0]


def num_passes(program: Program, style: Style) -> int:
    if style.structure in (Structure.PASSES, Structure.TEMPORARIES):
        return max(1, len(program.before)) + (1 if program.row_operator or program.total else 0)
    return 1


def performance_feedback(program: Program, style: Style, rng: random.Random) -> Feedback:
    """What a grader says about a correct program of `style`; figures within the range measured for the style."""
    low, high = _SPEEDUPS[style]
    speed = f"speedup {rng.uniform(low, high):.2f}"
    passes = num_passes(program, style)
    evidence = f"{speed}, {passes} pass" + ("es" if passes != 1 else "")
    if style is TEMPORARIES:
        return Feedback("memory bound", evidence, "avoid the temporary")
    if style is PASSES:
        return Feedback("several passes", evidence, "fuse passes")
    if style is COLUMNS:
        return Feedback("memory bound", evidence, "tile")
    if style in (FUSED, RELAXED, SIMD):
        return Feedback("scalar code", evidence, "vectorise")
    return Feedback("as fast as it gets", evidence, "keep")


def draw_next_style(program: Program, style: Style, rng: random.Random) -> Style:
    """The style of the answer to the performance feedback on `style`."""
    styles = available_styles(program)
    steps = [step for step in _STEPS[style] if step in styles] or [style]
    return rng.choice(steps)
