"""Tasks drawn and judged as the service does it: margins by the oracle's rule, verdicts by the referee's comparison.

What passes that is wrong, or fails that is honest, is told; so are the candidates of which both verdicts are
defensible. The same outputs are judged as on draws that are not exact, where `timed`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from tests.support.comparison_lines import compare
from tests.tolerance import (  # noqa: F401 - each adds its tasks
    attention_and_convolutions,
    exponentials,
    fresh_models,
    fresh_pieces,
    norms,
    products,
    steps,
    sums,
)
from tests.tolerance.task import TASKS, Task

_SERVICE = Path(__file__).resolve().parents[2] / "reward_service"
sys.path[:0] = [str(_SERVICE / "oracle"), str(_SERVICE / "jail")]
from distributions import restyle, takes_style  # noqa: E402
from longest_sum import LongestSum  # noqa: E402
from plain_noise import ANY, UNIT  # noqa: E402
from probes import PAIRS_MAX, PAIRS_MIN, REACH, Probes  # noqa: E402
from tolerance import Sum, Tolerance, exact_tolerance  # noqa: E402

Tensors = list[torch.Tensor]


@dataclass
class Drawn:
    """One draw of a task: inputs, and by output what is expected."""

    style: str
    inputs: Tensors
    expected: Tensors
    runs: Tensors
    tolerances: list[Tolerance]


@dataclass
class Failures:
    """Candidates whose verdict is wrong, and those in doubt that pass, by name, with what the referee said."""

    num_honest: int = 0
    num_wrong: int = 0
    rejects: dict[str, str] = field(default_factory=dict)
    accepts: list[str] = field(default_factory=list)
    either: list[str] = field(default_factory=list)


def _outputs(value: Any) -> Tensors:
    return [tensor.detach() for tensor in (value if isinstance(value, tuple) else (value,))]


def _moved(inputs: Tensors, generator: torch.Generator) -> tuple[Tensors, Tensors]:
    """Returns the inputs in float64, moved up and down as the oracle's Reference.moved() does."""
    shifts = []
    for x in inputs:
        signs = torch.randint(0, 2, x.shape, generator=generator) * 2 - 1
        stays = not x.is_floating_point() or bool((x == x.round()).all())
        shifts.append(None if stays else x.double() * signs * (REACH * torch.finfo(x.dtype).eps / 2))
    return tuple(  # type: ignore[return-value]
        [_wide(x) if step is None else x.double() + direction * step for x, step in zip(inputs, shifts, strict=True)]
        for direction in (1, -1)
    )


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x.double() if x.is_floating_point() else x


def _probed(task: Task, inputs: Tensors, exact: Tensors, runs: Tensors, generator: torch.Generator) -> list[Probes]:
    probes = [Probes(output, rounds=False) for output in exact]
    for number in range(PAIRS_MAX):
        dtypes = [run.dtype for run in runs]
        if number == PAIRS_MIN and not any(map(Probes.are_conspicuous, probes, dtypes)):
            break
        pair = [_outputs(task.ref(*values)) for values in _moved(inputs, generator)]
        for found, up, down in zip(probes, *pair, strict=True):
            found.add(up, down)
    return probes


def _variations(exacts: list[Tensors]) -> list[float | None]:
    """Returns by output how far it varies over draws; None where it is no single number."""
    return [
        float(torch.stack([value.double().reshape(()) for value in values]).std()) if values[0].numel() == 1 else None
        for values in zip(*exacts, strict=True)
    ]


def _styled(value: torch.Tensor, style: str, generator: torch.Generator) -> torch.Tensor:
    """Returns an input in a style, if the oracle would draw it so: the suite's inputs are noise."""
    noise = UNIT if bool(((value >= 0) & (value < 1)).all()) else ANY
    is_noise = value.is_floating_point() and value.dim() > 0
    return restyle(value, style, generator) if is_noise and takes_style(noise, style) else value


def draw_all(task: Task, seed: int) -> list[Drawn]:
    """Returns draws of a task in all its styles, those that are not its own only where they are finite."""
    made = []
    length = 1
    for number, style in enumerate(task.styles):
        torch.manual_seed(1000 * seed + number)
        generator = torch.Generator().manual_seed(seed + number)
        drawn = task.draw()
        inputs = [_styled(x, style, generator) if i < task.inputs else x for i, x in enumerate(drawn)]
        if not number:
            with LongestSum() as sums:
                task.ref(*inputs)
            length = sums.length
        exact = _outputs(task.ref(*map(_wide, inputs)))
        plain = _outputs(task.ref(*inputs))
        runs = plain if task.run is None else _outputs(task.run(*inputs))
        if style != "own" and not all(torch.isfinite(t.double()).all() for t in (*exact, *runs)):
            continue
        made.append((style, inputs, exact, runs, plain, _probed(task, inputs, exact, runs, generator)))
    variations = _variations([exact for _, _, exact, *_ in made])
    flips = [
        any(bool(found.jump.any()) for found in of_output) for of_output in zip(*[m[-1] for m in made], strict=True)
    ]
    draws = []
    for style, inputs, exact, runs, plain, probes in made:
        unrounded = [None] * len(runs) if task.run is None else plain
        total = Sum(length, dominated=style == "outliers")
        parts = zip(runs, unrounded, probes, variations, flips, strict=True)
        tolerances = [
            exact_tolerance(run, other, found, total, variation, flips=may_flip)
            for run, other, found, variation, may_flip in parts
        ]
        expected = [e.to(run.dtype) for e, run in zip(exact, runs, strict=True)]
        draws.append(Drawn(style, inputs, expected, runs, tolerances))
    return draws


def as_timed(draws: list[Drawn]) -> list[Drawn]:
    """Returns the draws of the task's own style as if they were not exact."""
    own = [draw for draw in draws if draw.style == "own"]
    usual = own[0].tolerances
    for draw in own:
        usual = [a.or_more(b) for a, b in zip(usual, draw.tolerances, strict=True)]
    timed = []
    for draw in own:
        variations = [t.spread if run.numel() == 1 else None for t, run in zip(draw.tolerances, draw.runs, strict=True)]
        known = zip(usual, draw.runs, variations, strict=True)
        tolerances = [u.of_draw(run, variation) for u, run, variation in known]
        timed.append(Drawn(draw.style, draw.inputs, draw.runs, draw.runs, tolerances))
    return timed


def fault(draws: list[Drawn], candidate: Callable[..., Any]) -> str:
    """Returns what the referee finds wrong; empty where it finds nothing."""
    cases = []
    for draw in draws:
        answers = _outputs(candidate(*[x.clone() for x in draw.inputs]))
        cases += list(zip(draw.tolerances, draw.expected, answers, strict=True))
    found = compare(cases)
    num_outputs = len(draws[0].expected)
    for index, answer in enumerate(found):
        number, output = divmod(index, num_outputs)
        if answer["num_wrong"]:
            return f"draw {number} ({draws[number].style}), output {output}: {answer}"
        former = found[index - num_outputs]["first_outlier"] if number else -1
        if answer["first_outlier"] >= 0 and former == answer["first_outlier"]:
            return f"output {output}: element {former} in draws {number - 1} and {number}"
    return ""


def judge(task: Task, seed: int, failures: Failures, *, timed: bool = False) -> None:
    """Adds what is judged wrongly of a task; the reference itself is an honest candidate, too."""
    draws = as_timed(draw_all(task, seed)) if timed else draw_all(task, seed)
    for name, candidate in {"the reference itself": task.run or task.ref, **task.honest}.items():
        failures.num_honest += 1
        if said := fault(draws, candidate):
            failures.rejects[f"{task.name}: {name}, seed {seed}"] = said
    for name, candidate in task.wrong.items():
        failures.num_wrong += 1
        if not fault(draws, candidate):
            failures.accepts.append(f"{task.name}: {name}, seed {seed}")
    failures.either += [f"{task.name}: {name}" for name, f in task.either.items() if not fault(draws, f)]


__all__ = ["TASKS", "Failures", "judge"]
