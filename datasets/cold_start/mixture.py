"""How often each style is an answer, and what a correct but slow program is told and becomes.

A cold-started Coder shall be mostly correct and mostly slow: reinforcement learning amplifies only what it can already
sample, so every fast style is present, as a minority.
"""

import random

from datasets.cold_start.cpp_programs import styles_for, write_cpp
from datasets.cold_start.flaws import Feedback
from datasets.cold_start.performance_feedback import Measurements, Structure, performance_feedback, read_structure
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
_STEPS: dict[str, tuple[Style, ...]] = {  # what may follow an advice, as often as it stands here
    "tile": (TEMPORARIES, TEMPORARIES, TEMPORARIES, PASSES, FAST_MATH),
    "avoid the temporary": (PASSES, PASSES, FUSED, FUSED, FUSED, FUSED, FAST_MATH),
    "fuse passes": (FUSED, FUSED, FUSED, SIMD, FAST_MATH),
    "vectorise": (RELAXED, SIMD, FAST_MATH),
    "approximate": (FAST_MATH,),
}
# Speed-up over eager, and bandwidth as a share of the ceiling: ranges of what the service measured. The first are of
# the table in the README of the folder above, the second of 97 programs of 12 tasks on a 2-core machine with 27 GB/s:
# ./dev bench advice --tasks 12.
_MEASURED: dict[Style, tuple[tuple[float, float], tuple[float, float]]] = {
    TEMPORARIES: ((0.05, 2.0), (0.01, 0.25)),
    PASSES: ((0.05, 3.0), (0.01, 0.25)),
    COLUMNS: ((0.04, 0.6), (0.005, 0.07)),
    FUSED: ((0.05, 3.0), (0.01, 0.25)),
    RELAXED: ((0.1, 6.0), (0.05, 1.0)),
    SIMD: ((0.3, 8.0), (0.1, 0.9)),
    FAST_MATH: ((1.0, 9.0), (0.1, 1.05)),
    BLOCKED: ((1.0, 6.0), (0.4, 0.9)),
    THREADED: ((1.0, 9.0), (0.1, 1.05)),
}
_CEILINGS = (8.0, 30.0)  # of memory, in GB/s, from machine to machine
_LIBM_SHARES = (0.2, 0.8)  # of the samples of a program that calls libm
_INDISTINGUISHABLE = (0.97, 1.03)


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


def _vector_bits(style: Style, structure: Structure, rng: random.Random) -> int:
    """libm's functions, sums and maxima stay scalar until a pragma or relaxed float rules let them be vectors."""
    if style is SIMD:
        return rng.choice((0, 512))
    if style is RELAXED:
        return 0 if structure.calls_libm else 512
    return 512 if style.simd else 0


def draw_measurements(style: Style, structure: Structure, rng: random.Random) -> Measurements:
    """What a grade may say of a correct program of `style`, within the ranges measured for it."""
    speeds, shares = _MEASURED[style]
    speedup, ceiling = rng.uniform(*speeds), rng.uniform(*_CEILINGS)
    low, high = _INDISTINGUISHABLE
    return Measurements(
        speedup=speedup,
        distinguishable=not low <= speedup <= high,
        gigabytes_per_second=ceiling * rng.uniform(*shares),
        ceiling=ceiling,
        vector_bits=_vector_bits(style, structure, rng),
        libc_share=rng.uniform(*_LIBM_SHARES) if structure.calls_libm else 0.0,
    )


def _follows(advice: str, style: Style, before: Structure, step: Style, after: Structure) -> bool:
    """Whether a program of `step` shows that the advice was followed, as the rubric's tables judge it."""
    if advice == "tile":
        return before.strided and not after.strided
    if advice == "avoid the temporary":
        return after.num_allocations < before.num_allocations
    if advice == "fuse passes":
        return after.num_passes < before.num_passes
    return STYLES.index(step) > STYLES.index(style)  # from the plain to the fast


def draw_faster(program: Program, rng: random.Random) -> tuple[str, Feedback, str]:
    """A correct program, the feedback on it, and the answer: one that follows the advice, or the program itself where
    the advice is to keep it."""
    while True:
        style = draw_style(program, rng)
        source = write_cpp(program, style)
        if source == write_cpp(program, FUSED):
            style = FUSED  # one operator leaves no passes and no temporaries
        before = read_structure(source)
        feedback = performance_feedback(draw_measurements(style, before, rng), before)
        if feedback.advice == "keep":
            return source, feedback, source
        styles = available_styles(program)
        wanted = [step for step in _STEPS.get(feedback.advice, ()) if step in styles]
        answers = [(step, write_cpp(program, step)) for step in (wanted or [FUSED])]
        answers = [a for a in answers if _follows(feedback.advice, style, before, a[0], read_structure(a[1]))]
        if feedback.advice and answers:
            return source, feedback, rng.choice(answers)[1]
