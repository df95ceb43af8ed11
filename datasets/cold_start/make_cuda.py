"""Makes the files of a small Coder that learns CUDA: tasks on a GPU, and supervised pairs of skill 1 for others.

    python -m datasets.cold_start.make_cuda --out DIR [--programs 400] [--pairs 8000] [--seed 1]

Writes cold_start, cold_start_validation, train and held_out, each a .jsonl. Every pair's program is one of
`--programs` programs, with constants of its own.
"""

import argparse
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from datasets.cold_start.cuda_programs import FAMILIES, CudaStyle, as_cuda_answer, styles_for, write_cuda
from datasets.cold_start.make_cold_start import vary_constants
from datasets.tasks.make_tasks import GeneratedTask, make_splits, write_tasks

_ROWS, _COLS = (2048, 4096, 8192), (1024, 2048)
_FAST_SHARE = 0.3  # of the pairs in the fastest style: reinforcement learning amplifies what is sampled already
_NUM_TRAINING, _NUM_VALIDATION = 64, 64


def _on_gpu(tasks: list[GeneratedTask], rng: random.Random) -> list[GeneratedTask]:
    """The tasks of FAMILIES, with sizes that keep a GPU busy for longer than a launch takes."""
    return [
        replace(task, program=replace(task.program, rows=rng.choice(_ROWS), cols=rng.choice(_COLS)))
        for task in tasks
        if task.program.family in FAMILIES
    ]


def _style(task: GeneratedTask, rng: random.Random) -> CudaStyle:
    *slow, fastest = styles_for(task.program)
    return fastest if rng.random() < _FAST_SHARE else rng.choice(slow)


def _pair(task: GeneratedTask, rng: random.Random) -> dict[str, Any]:
    answer = as_cuda_answer(write_cuda(task.program, _style(task, rng)))
    return {
        "task_id": task.task_id,
        "skill": "generate",
        "reference_source": task.reference_source,
        "answer": answer,
    }


def _pairs(tasks: list[GeneratedTask], count: int, seed: int) -> Iterator[dict[str, Any]]:
    rng = random.Random(seed)
    for index in range(count):
        yield _pair(vary_constants(tasks[index % len(tasks)], rng), rng)


def _records(tasks: list[GeneratedTask]) -> Iterator[dict[str, Any]]:
    for task in tasks:
        yield {**task.record(), "device": "cuda"}


def write_cuda_files(out: Path, num_programs: int, num_pairs: int, seed: int) -> None:
    """Writes the four files into `out`."""
    splits = make_splits(num_cold_start=2 * (num_programs + _NUM_VALIDATION), num_training=2 * _NUM_TRAINING)
    rng = random.Random(seed)
    shown = _on_gpu(splits.cold_start, rng)
    learned, validation = shown[_NUM_VALIDATION:][:num_programs], shown[:_NUM_VALIDATION]
    out.mkdir(parents=True, exist_ok=True)
    write_tasks(out / "cold_start.jsonl", _pairs(learned, num_pairs, seed))
    write_tasks(out / "cold_start_validation.jsonl", _pairs(validation, len(validation), seed + 1))
    write_tasks(out / "train.jsonl", _records(_on_gpu(splits.training, rng)[:_NUM_TRAINING]))
    write_tasks(out / "held_out.jsonl", _records(_on_gpu(splits.held_out, rng)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--programs", type=int, default=400)
    parser.add_argument("--pairs", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    write_cuda_files(arguments.out, arguments.programs, arguments.pairs, arguments.seed)


if __name__ == "__main__":
    main()
