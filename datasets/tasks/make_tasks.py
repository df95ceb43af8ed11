"""Makes the task files: those written by hand, and the generated splits.

    python -m datasets.tasks.make_tasks --out DIR [--seed 1] [--target cpu|gpu]

Splits never share a structural hash. Training, validation and held-out tasks moreover use sets of operators that no
other split has, each of whose members the cold start has shown.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets.tasks.degeneracy import is_degenerate
from datasets.tasks.grammar import draw_program
from datasets.tasks.program import Program, render_reference
from datasets.tasks.structural_hash import structural_hash
from datasets.tasks.written.catalogue import UNSEEN_OPERATOR_TASKS, WRITTEN_TASKS

SEED = 20261121
NUM_COLD_START = 4000
NUM_TRAINING = 800
_HELD_OUT = {"elementwise": 10, "broadcast": 4, "reduction": 3, "normalisation": 4, "column_reduction": 1, "loss": 2}
_VALIDATION = {"elementwise": 6, "broadcast": 3, "reduction": 2, "normalisation": 3, "column_reduction": 1, "loss": 1}
_SHARES = {  # what is harder to write is drawn more often than it is asked
    "elementwise": 0.33,
    "broadcast": 0.23,
    "reduction": 0.13,
    "normalisation": 0.17,
    "column_reduction": 0.06,
    "loss": 0.06,
    "product": 0.02,
}
_MAX_DRAWS = 1_000_000


@dataclass(frozen=True)
class GeneratedTask:
    """A task drawn from the grammar, with the structure that its answers are written from."""

    task_id: str
    program: Program
    split: str

    @property
    def reference_source(self) -> str:
        return render_reference(self.program)

    @property
    def operator_set(self) -> tuple[str, ...]:
        return tuple(sorted(self.program.operators))

    def record(self) -> dict[str, Any]:
        return task_record(self.task_id, self.program.family, self.program.operators, self.reference_source, self.split)


def task_record(task_id: str, family: str, operators: list[str], source: str, split: str) -> dict[str, Any]:
    """One line of a task file."""
    return {
        "id": task_id,
        "family": family,
        "operators": operators,
        "reference_source": source,
        "allowed_libraries": [],
        "split": split,
    }


class _Drawer:
    """Draws tasks whose structural hash is new, and which a caller's condition admits."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._seen = {structural_hash(task.render("cpu")) for task in (*WRITTEN_TASKS, *UNSEEN_OPERATOR_TASKS)}

    def draw(
        self, family: str, split: str, task_id: str, admits: Callable[[GeneratedTask], bool]
    ) -> GeneratedTask | None:
        """A new task, or nothing when a bounded number of draws finds none: the family is exhausted."""
        for _ in range(200):
            task = GeneratedTask(task_id, draw_program(self._rng, family), split)
            key = structural_hash(task.reference_source)
            if key not in self._seen and admits(task) and not is_degenerate(task.program):
                self._seen.add(key)
                return task
        return None


@dataclass(frozen=True)
class Splits:
    """Tasks of the cold-start pairs, and tasks of which reinforcement learning sees the reference alone.

    No two splits but `cold_start` and itself share a set of operators: what is learned on `training` is to write
    combinations that no pair has shown, as it is asked of `validation` and `held_out`.
    """

    cold_start: list[GeneratedTask]
    training: list[GeneratedTask]
    validation: list[GeneratedTask]
    held_out: list[GeneratedTask]


def make_splits(num_cold_start: int = NUM_COLD_START, num_training: int = NUM_TRAINING, seed: int = SEED) -> Splits:
    """The splits of new combinations first, so that the cold start can be kept clear of their operator sets."""
    drawer = _Drawer(seed)
    reserved: set[tuple[str, ...]] = set()

    def is_new_combination(task: GeneratedTask) -> bool:
        return len(task.program.operators) >= 2 and task.operator_set not in reserved

    evaluation = {}
    for split, counts in (("held_out", _HELD_OUT), ("validation", _VALIDATION)):
        tasks = []
        for family, count in counts.items():
            for number in range(count):
                task = drawer.draw(family, split, f"{split}_{family}_{number:02d}", is_new_combination)
                if task is not None:
                    reserved.add(task.operator_set)
                    tasks.append(task)
        evaluation[split] = tasks
    training = []
    for task in _draw_by_shares(drawer, "train", num_training, seed + 2, is_new_combination):
        reserved.add(task.operator_set)
        training.append(task)
    cold_start = _draw_by_shares(
        drawer, "cold_start", num_cold_start, seed + 1, lambda task: task.operator_set not in reserved
    )
    return Splits(list(cold_start), training, evaluation["validation"], evaluation["held_out"])


def _draw_by_shares(
    drawer: _Drawer, split: str, count: int, seed: int, admits: Callable[[GeneratedTask], bool]
) -> Iterator[GeneratedTask]:
    rng = random.Random(seed)
    found = 0
    for _ in range(4 * count):
        if found == count:
            break
        family = rng.choices(list(_SHARES), list(_SHARES.values()))[0]
        task = drawer.draw(family, split, f"{split}_{found:05d}", admits)
        if task is not None:
            found += 1
            yield task


def write_tasks(path: Path, records: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def written_records(target: str) -> list[dict[str, Any]]:
    """The tasks written by hand, with the sizes of `target`."""
    return [
        task_record(task.name, task.family, list(task.operators), task.render(target), "train")
        for task in WRITTEN_TASKS
    ]


def make_cold_start_tasks() -> list[GeneratedTask]:
    """The tasks that cold-start pairs are written for."""
    return make_splits().cold_start


def write_all_tasks(out: Path, splits: Splits, target: str = "cpu") -> None:
    """`tasks`, `train`, `validation`, `held_out` and `unseen_operator`, each a .jsonl in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    write_tasks(out / "tasks.jsonl", written_records(target))
    write_tasks(
        out / "unseen_operator.jsonl",
        (
            task_record(task.name, task.family, list(task.operators), task.render(target), "unseen_operator")
            for task in UNSEEN_OPERATOR_TASKS
        ),
    )
    for name, tasks in (("train", splits.training), ("validation", splits.validation), ("held_out", splits.held_out)):
        write_tasks(out / f"{name}.jsonl", (task.record() for task in tasks))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--training", type=int, default=NUM_TRAINING)
    parser.add_argument("--target", choices=("cpu", "gpu"), default="cpu", help="sizes of the tasks written by hand")
    arguments = parser.parse_args()
    write_all_tasks(arguments.out, make_splits(num_training=arguments.training, seed=arguments.seed), arguments.target)


if __name__ == "__main__":
    main()
