"""Compiles a sample of answers, compares them with PyTorch, and times each style against eager on one thread.

taskset -c 1 python -m datasets.cold_start.verify_answers --count 300
"""

import argparse
import math
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import torch

from datasets.cold_start.cpp_programs import write_cpp
from datasets.cold_start.flaws import draw_flaw
from datasets.cold_start.mixture import available_styles, draw_style
from datasets.cold_start.native_candidate import compile_candidate
from datasets.cold_start.styles import Style
from datasets.tasks.make_tasks import GeneratedTask, make_cold_start_tasks
from datasets.tasks.reference import Reference, load_reference, matches


def parameters_of(reference: Reference) -> list[torch.Tensor]:
    return [value.contiguous() for value in reference.model.state_dict().values()]


def check(source: str, reference: Reference, folder: Path, name: str) -> str:
    """ "" when the candidate is right; else what is wrong."""
    candidate, error = compile_candidate(source, folder, name)
    if candidate is None:
        return error
    for seed, magnitude in ((1, 1.0), (2, 1.0), (3, 10.0)):
        inputs = [value * magnitude for value in reference.inputs(seed)]
        expected = reference.run_float64(inputs)
        outputs = [torch.full(value.shape, math.nan) for value in expected]
        if candidate.bind(inputs, parameters_of(reference), outputs)() != 0:
            return "run returned non-zero"
        if not matches(outputs, expected):
            worst = max(float((o.double() - e).abs().max()) for o, e in zip(outputs, expected, strict=True))
            return f"wrong values at magnitude {magnitude}: max error {worst:.2g}"
    return ""


def seconds(call: Callable[[], object], repeats: int = 15) -> float:
    """The median of `repeats` calls after three warm ones."""
    for _ in range(3):
        call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def speedup(source: str, reference: Reference, folder: Path, name: str) -> tuple[float, float]:
    """Eager seconds over candidate seconds, and eager milliseconds."""
    candidate, error = compile_candidate(source, folder, name)
    assert candidate is not None, error
    inputs = reference.inputs(1)
    outputs = [torch.empty_like(value) for value in reference.run(inputs)]
    eager = seconds(lambda: reference.run(inputs))
    return eager / seconds(candidate.bind(inputs, parameters_of(reference), outputs)), eager * 1e3


def verify(tasks: list[GeneratedTask], rng: random.Random, folder: Path) -> int:
    """Prints wrong answers and flaws that go unnoticed; returns the number of wrong answers."""
    wrong = unnoticed = 0
    for number, task in enumerate(tasks):
        reference = load_reference(task.reference_source)
        style = rng.choice(available_styles(task.program))
        source = write_cpp(task.program, style)
        error = check(source, reference, folder, f"a{number}")
        if error:
            wrong += 1
            print(f"WRONG {task.task_id} {task.program.operators} {style.name}: {error}")
        flawed = draw_flaw(source, task.program, rng)
        if flawed.feedback.advice != "fix crash":
            found = check(flawed.source, reference, folder, f"f{number}")
            if not found:
                unnoticed += 1
            if flawed.feedback.advice == "fix compile error" and flawed.feedback.evidence != found:
                print(f"MESSAGE {flawed.feedback.evidence!r} is {found!r}")
    print(f"{len(tasks)} answers, {wrong} wrong; {unnoticed} flaws pass the check")
    return wrong


def time_styles(tasks: list[GeneratedTask], rng: random.Random, folder: Path) -> None:
    """Prints median and range of the speed-up by family and style, and by family what the mixture gives."""
    torch.set_num_threads(1)
    figures: dict[tuple[str, Style], list[float]] = defaultdict(list)
    eager: dict[str, list[float]] = defaultdict(list)
    mixture: dict[str, list[float]] = defaultdict(list)
    for number, task in enumerate(tasks):
        reference = load_reference(task.reference_source)
        mixed = draw_style(task.program, rng)
        for style in available_styles(task.program):
            source = write_cpp(task.program, style)
            ratio, milliseconds = speedup(source, reference, folder, f"t{number}_{style.name}")
            figures[task.program.family, style].append(ratio)
            eager[task.program.family].append(milliseconds)
            if style is mixed:
                mixture[task.program.family].append(ratio)
    for family in eager:
        times = sorted(eager[family])
        rates = mixture[family]
        print(
            f"{family}: eager {times[0]:.2f} to {times[-1]:.2f} ms, median {times[len(times) // 2]:.2f}; mixture: "
            f"{statistics.mean(ratio > 1.03 for ratio in rates):.2f} faster than eager, mean reward "
            f"{statistics.mean(min(ratio, 2.7) + 0.3 for ratio in rates):.2f}"
        )
        for (name, style), values in figures.items():
            if name == family:
                values.sort()
                print(f"    {style.name:12} {values[0]:6.2f} {statistics.median(values):6.2f} {values[-1]:6.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="answers to check")
    parser.add_argument("--timed", type=int, default=40, help="tasks to time in every style")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    tasks = rng.sample(make_cold_start_tasks(), arguments.count + arguments.timed)
    with tempfile.TemporaryDirectory() as folder:
        time_styles(tasks[arguments.count :], rng, Path(folder))
        return 1 if verify(tasks[: arguments.count], rng, Path(folder)) else 0


if __name__ == "__main__":
    raise SystemExit(main())
