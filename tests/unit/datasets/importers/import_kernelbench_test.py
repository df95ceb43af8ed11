"""A small checkout becomes task files; what cannot is refused in words."""

import json
from pathlib import Path
from typing import Any

import pytest

from datasets.importers import import_kernelbench

_PROBLEM = """import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        \"\"\"Says what it does.\"\"\"
        return {forward}

batch_size = 4096
dim = 16384

def get_inputs():
    return [torch.rand(batch_size, dim)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for level in (1, 2):
        (tmp_path / "checkout/KernelBench" / f"level{level}").mkdir(parents=True)
    return tmp_path / "checkout"


def _write(checkout: Path, name: str, forward: str) -> None:
    (checkout / "KernelBench" / name).write_text(_PROBLEM.format(forward=forward), encoding="utf-8")


def _import(monkeypatch: pytest.MonkeyPatch, checkout: Path, *options: str) -> int:
    arguments = ["import_kernelbench", str(checkout), "--out", str(checkout / "out"), "--level", "1", "--level", "2"]
    monkeypatch.setattr("sys.argv", [*arguments, *options])
    return import_kernelbench.main()


def _lines(checkout: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (checkout / "out" / name).read_text(encoding="utf-8").splitlines()]


def _report(checkout: Path) -> dict[str, Any]:
    return json.loads((checkout / "out/import_report.json").read_text(encoding="utf-8"))


def test_problems_become_tasks_as_the_trainer_reads_them(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(checkout, "level1/19_ReLU.py", "torch.relu(x)")
    _write(checkout, "level2/3_Odd name!.py", "torch.tanh(x)")
    assert _import(monkeypatch, checkout) == 0
    first, second = _lines(checkout, "train.jsonl")
    assert (first["id"], first["family"], first["operators"]) == ("kernelbench_level1_019_ReLU", "level1", ["relu"])
    assert first["reference_source"] == _PROBLEM.format(forward="torch.relu(x)")
    assert (first["allowed_libraries"], first["split"]) == ([], "train")
    assert second["id"] == "kernelbench_level2_003_Odd_name_"
    assert second["allowed_libraries"] == ["blas"]


@pytest.mark.parametrize(
    ("options", "expected"), [(["none"], []), (["blas"], ["blas"]), (["blas", "torch"], ["blas", "torch"])]
)
def test_libraries_that_are_named_are_those_of_every_task(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], expected: list[str]
) -> None:
    _write(checkout, "level1/19_ReLU.py", "torch.relu(x)")
    _write(checkout, "level2/3_Odd.py", "torch.tanh(x)")
    assert _import(monkeypatch, checkout, *[f"--allowed-library={name}" for name in options]) == 0
    assert [line["allowed_libraries"] for line in _lines(checkout, "train.jsonl")] == [expected, expected]


def test_inputs_that_never_vary_are_named(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(checkout, "level1/19_ReLU.py", "torch.relu(x)")
    text = _PROBLEM.format(forward="torch.tanh(x)").replace("self, x:", "self, y, x:")
    text = text.replace("return [", "return [3, ")
    (checkout / "KernelBench/level1/2_Two.py").write_text(text, encoding="utf-8")
    assert _import(monkeypatch, checkout) == 0
    assert _report(checkout)["details"] == {"kernelbench_level1_002_Two": {"fixed_inputs": ["0 (y)"]}}
    warnings = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(warnings) == 1 and "kernelbench_level1_002_Two: warning: input 0 (y) is the same" in warnings[0]


def test_held_out_problems_and_their_likes_are_not_learned_from(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(checkout, "level1/1_A.py", "torch.relu(x) + 1")
    _write(checkout, "level1/2_B.py", "torch.relu(x) + 2")
    _write(checkout, "level1/3_C.py", "torch.tanh(x)")
    assert _import(monkeypatch, checkout, "--hold-out", "level1/2") == 0
    assert [task["id"] for task in _lines(checkout, "held_out.jsonl")] == ["kernelbench_level1_002_B"]
    assert [task["id"] for task in _lines(checkout, "train.jsonl")] == ["kernelbench_level1_003_C"]
    assert _report(checkout)["refused_by_kind"] == {"leaked_structure": 1}
    assert _import(monkeypatch, checkout, "--hold-out", "level1/2", "--leak-by", "program") == 0
    assert len(_lines(checkout, "train.jsonl")) == 2


def _import_flat(monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str) -> int:
    monkeypatch.setattr("sys.argv", ["import_kernelbench", str(folder), "--out", str(folder.parent / "out"), *options])
    return import_kernelbench.main()


def test_a_flat_folder_is_taken_and_its_names_are_the_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "own tasks"
    folder.mkdir()
    for name, forward in (("my relu.py", "torch.relu(x)"), ("tanh.py", "torch.tanh(x)"), ("19_Exp.py", "torch.exp(x)")):
        (folder / name).write_text(_PROBLEM.format(forward=forward), encoding="utf-8")
    (folder / "my_relu.py").write_text(_PROBLEM.format(forward="torch.sin(x)"), encoding="utf-8")
    (folder / "19_Exp.py").write_text(_PROBLEM.format(forward="torch.exp(x)"), encoding="utf-8-sig")
    (folder / "notes.txt").write_text("no task", encoding="utf-8")
    assert _import_flat(monkeypatch, folder, "--hold-out", "tanh") == 0
    assert not _lines(tmp_path, "train.jsonl")[0]["reference_source"].startswith("\ufeff")
    assert [(task["id"], task["family"]) for task in _lines(tmp_path, "train.jsonl")] == [
        ("19_Exp", "own_tasks"),
        ("my_relu", "own_tasks"),
    ]
    assert [task["id"] for task in _lines(tmp_path, "held_out.jsonl")] == ["tanh"]
    assert _report(tmp_path)["refused_by_kind"] == {"repeated": 1}


@pytest.mark.parametrize("options", [("--hold-out", "absent"), ("--level", "1")])
def test_what_a_flat_folder_does_not_have_ends_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "relu.py").write_text(_PROBLEM.format(forward="torch.relu(x)"), encoding="utf-8")
    assert _import_flat(monkeypatch, folder, *options) == 2
    said = capsys.readouterr().err
    assert "e.g. relu" in said or "a folder of .py files without it" in said
    assert not (tmp_path / "out").exists()


def test_every_file_is_counted_and_every_refusal_says_the_way_out(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    level = checkout / "KernelBench/level1"
    _write(checkout, "level1/1_A.py", "torch.relu(x)")
    _write(checkout, "level1/1_Again.py", "torch.tanh(x)")
    (level / "notes.py").write_text("x = 1\n", encoding="utf-8")
    (level / "2_Broken.py").write_text("def\n", encoding="utf-8")
    (level / "3_Latin.py").write_bytes(b"# \xff\n")
    (level / "4_Link.py").symlink_to("/etc/passwd")
    assert _import(monkeypatch, checkout) == 0
    report = _report(checkout)
    assert (report["read"], report["written"], report["refused"]) == (6, {"train.jsonl": 1}, 5)
    assert set(report["refused_by_kind"]) == {"repeated", "not_a_problem", "not_python", "not_text", "not_a_file"}
    assert "root:" not in json.dumps(report)
    lines = capsys.readouterr().err.splitlines()
    assert any(
        "2_Broken.py: the program cannot be parsed: SyntaxError" in line and "; correct it" in line for line in lines
    )
    assert _import(monkeypatch, checkout, "--strict") == 1


@pytest.mark.parametrize("options", [("--hold-out", "level1/9"), ("--level", "3")])
def test_what_the_user_must_correct_ends_the_import(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    assert _import(monkeypatch, checkout, *options) == 2
    assert options[1].removeprefix("level1/") in capsys.readouterr().err
    assert not (checkout / "out").exists()


def test_a_folder_of_which_everything_is_held_out_ends_the_import(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(checkout, "level1/19_ReLU.py", "torch.relu(x)")
    assert _import(monkeypatch, checkout, "--hold-out", "level1/19") == 2
    assert "every problem is held out" in capsys.readouterr().err
    assert not (checkout / "out").exists()


def test_sizes_for_a_cpu_are_set_and_the_reference_has_run(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(checkout, "level1/19_ReLU.py", "torch.relu(x)")
    _write(checkout, "level1/20_Random.py", "x + torch.rand_like(x)")
    _write(checkout, "level1/21_Harm.py", "x.item() or __import__('os')._exit(0)")
    assert _import(monkeypatch, checkout, "--cpu-sizes", "--input-bytes-max", "1000000") == 0
    (task,) = _lines(checkout, "train.jsonl")
    assert "batch_size = 8\ndim = 16384\n" in task["reference_source"]
    detail = _report(checkout)["details"][task["id"]]
    assert detail["sizes"] == ["batch_size: 4096 -> 8"]
    assert 0 < detail["reference_ms"] < 1000
    refused = {entry["file"].rsplit("/", 1)[1]: entry for entry in _report(checkout)["refusals"]}
    assert refused["20_Random.py"]["value"] == "two runs on the same inputs differ"
    assert refused["21_Harm.py"]["kind"] in ("no_cpu_sizes", "does_not_run")
