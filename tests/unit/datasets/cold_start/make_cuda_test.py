"""The files of a small Coder that learns CUDA."""

import json
from pathlib import Path

from datasets.cold_start.make_cuda import write_cuda_files


def _lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_pairs_and_tasks_share_no_task_and_tasks_name_the_gpu(tmp_path: Path) -> None:
    write_cuda_files(tmp_path, num_programs=40, num_pairs=100, seed=1)
    pairs, validation = _lines(tmp_path / "cold_start.jsonl"), _lines(tmp_path / "cold_start_validation.jsonl")
    tasks = [*_lines(tmp_path / "train.jsonl"), *_lines(tmp_path / "held_out.jsonl")]
    assert len(pairs) == 100
    assert len({pair["task_id"] for pair in pairs}) == 40
    assert not {pair["task_id"] for pair in pairs} & {pair["task_id"] for pair in validation}
    assert all(pair["answer"].startswith("```cuda\n") for pair in pairs)
    assert {task["device"] for task in tasks} == {"cuda"}
    shown = {pair["reference_source"] for pair in [*pairs, *validation]}
    assert not shown & {task["reference_source"] for task in tasks}


def test_the_files_are_a_function_of_the_seed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_cuda_files(tmp_path / name, num_programs=10, num_pairs=20, seed=3)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
