"""Makes the supervised pairs of the cold start, for both skills.

    python -m datasets.cold_start.make_cold_start --out DIR [--pairs 30000] [--seed 1]

Pairs are made for generated training tasks alone; a slice of those tasks is held back for the validation file.
"""

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from datasets.cold_start.cpp_programs import as_answer, write_cpp
from datasets.cold_start.flaws import Feedback, draw_flaw
from datasets.cold_start.mixture import draw_faster, draw_repaired_style, draw_style
from datasets.tasks.make_tasks import GeneratedTask, make_cold_start_tasks
from datasets.tasks.program import Statement

_OPTIMISE_SHARE = 0.4
_REPAIR_SHARE = 0.65  # of the optimise pairs: a flawed program repaired; the rest make a slow one faster
_VARIED_SHARE = 0.5
_VALIDATION_TASKS = 128


def _pair(task: GeneratedTask, skill: str, previous: str, feedback: Feedback, answer: str) -> dict[str, Any]:
    return {
        "task_id": task.task_id,
        "skill": skill,
        "reference_source": task.reference_source,
        "previous_source": previous,
        "feedback": dict(feedback.__dict__),
        "answer": as_answer(answer),
    }


def vary_constants(task: GeneratedTask, rng: random.Random) -> GeneratedTask:
    """The task with other constants, from many: of a few, the commonest is guessed, and nothing learns to copy."""

    def vary(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(
            replace(statement, constants=tuple(f"{rng.randint(1, 99) / 10:.1f}" for _ in statement.constants))
            for statement in statements
        )

    program = replace(task.program, before=vary(task.program.before), after=vary(task.program.after))
    return replace(task, program=program)


def generate_pair(task: GeneratedTask, rng: random.Random) -> dict[str, Any]:
    """Skill 1: the reference alone, and a correct program in a style drawn from the mixture."""
    answer = write_cpp(task.program, draw_style(task.program, rng))
    return _pair(task, "generate", "", Feedback("", "", ""), answer)


def optimise_pair(task: GeneratedTask, rng: random.Random) -> dict[str, Any]:
    """Skill 2: a flawed program and its repair, or a slow one and a faster one."""
    if rng.random() < _REPAIR_SHARE:
        repaired = write_cpp(task.program, draw_repaired_style(task.program, rng))
        flawed = draw_flaw(repaired, task.program, rng)
        return _pair(task, "optimise", flawed.source, flawed.feedback, repaired)
    correct, feedback, answer = draw_faster(task.program, rng)
    return _pair(task, "optimise", correct, feedback, answer)


def make_pairs(tasks: list[GeneratedTask], count: int, seed: int) -> Iterator[dict[str, Any]]:
    """`count` pairs; each task is visited equally often, every second time with other constants."""
    rng = random.Random(seed)
    for index in range(count):
        task = tasks[index % len(tasks)]
        if rng.random() < _VARIED_SHARE:
            task = vary_constants(task, rng)
        yield optimise_pair(task, rng) if rng.random() < _OPTIMISE_SHARE else generate_pair(task, rng)


def make_validation_pairs(tasks: list[GeneratedTask], seed: int) -> Iterator[dict[str, Any]]:
    """Both skills for every held-back task."""
    rng = random.Random(seed)
    for task in tasks:
        yield generate_pair(task, rng)
        yield optimise_pair(task, rng)


def write_cold_start(out: Path, tasks: list[GeneratedTask], count: int, seed: int) -> None:
    training, validation = tasks[:-_VALIDATION_TASKS], tasks[-_VALIDATION_TASKS:]
    _write(out / "cold_start.jsonl", make_pairs(training, count, seed))
    _write(out / "cold_start_validation.jsonl", make_validation_pairs(validation, seed + 1))


def _write(path: Path, records: Iterator[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=30000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_cold_start(arguments.out, make_cold_start_tasks(), arguments.pairs, arguments.seed)


if __name__ == "__main__":
    main()
