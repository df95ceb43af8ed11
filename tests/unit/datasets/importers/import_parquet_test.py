"""Rows of both skills become task files; what is held out is found in spite of its label."""

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from datasets.importers import import_parquet
from datasets.importers.confined_python import Confinement
from datasets.importers.import_report import ImportReport
from datasets.importers.leaks import HeldOut
from datasets.importers.reference_program import MODULES
from datasets.importers.task_writing import TaskFiles
from tests.unit.datasets.importers.sample_prompts import CODE, optimise_prompt, repair_prompt

_REFERENCE = (
    "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.{}(x)\n\n"
    "def get_inputs():\n    return [torch.rand(4096)]\n\ndef get_init_inputs():\n    return []\n"
)


def _row(answer: Any, prompt: Any = "Write it", **extra: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    source = "CudaForgeImprovement" if "prev_correct" in extra else "CudaForge"
    return {"prompt": messages, "data_source": source, "extra_info": {"answer": answer, "split": "train", **extra}}


def _second(operator: str, prompt: str, name: str = "19_ReLU") -> dict[str, Any]:
    return _row(_REFERENCE.format(operator), prompt, prev_correct=False, task_name=name, level=1)


def _file(path: Path, rows: list[dict[str, Any]]) -> Path:
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def _import(monkeypatch: pytest.MonkeyPatch, out: Path, *options: object) -> int:
    monkeypatch.setattr("sys.argv", ["import_parquet", *map(str, options), "--out", str(out)])
    return import_parquet.main()


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _report(out: Path) -> dict[str, Any]:
    return json.loads((out / "import_report.json").read_text(encoding="utf-8"))


def test_rows_of_both_skills_become_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        _row(_REFERENCE.format("relu")),
        _second("tanh", repair_prompt("error: x")),
        _second("sin", optimise_prompt("tile")),
    ]
    assert _import(monkeypatch, tmp_path / "out", "--train", _file(tmp_path / "train.parquet", rows)) == 0
    (first,) = _lines(tmp_path / "out/train.jsonl")
    assert first["reference_source"] == _REFERENCE.format("relu")
    repair, optimise = _lines(tmp_path / "out/optimise.jsonl")
    assert repair["id"].startswith("stitchcuda_19_ReLU#")
    assert (repair["skill"], repair["previous_source"], repair["family"]) == ("optimise", CODE, "level1")
    assert repair["feedback"]["advice"] == "fix crash"
    assert optimise["language"] == "kernelbench_python"
    assert optimise["feedback"] == {"finding": "memory traffic", "evidence": "tile; do it", "advice": "tile"}


def test_rows_of_the_test_file_are_kept_out_whatever_their_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = _file(tmp_path / "test.parquet", [_row(_REFERENCE.format("relu"))])
    dressed = _REFERENCE.format("relu").replace("4096", "16").replace("(self, x)", "(self, x: torch.Tensor)")
    renamed = _REFERENCE.format("relu").replace("(x)", "(value)").replace(", x)", ", value)")
    rows = [_second("relu", repair_prompt("error")), _row(dressed), _row(renamed), _row(_REFERENCE.format("tanh"))]
    assert _import(monkeypatch, tmp_path / "out", "--train", _file(tmp_path / "t.parquet", rows), "--test", test) == 0
    report = _report(tmp_path / "out")
    assert report["refused_by_kind"] == {"leaked_program": 2, "leaked_structure": 1}
    assert report["written"] == {"held_out.jsonl": 1, "train.jsonl": 1}
    assert [entry["row"] for entry in report["refusals"]] == [0, 1, 2]


def test_task_files_can_be_held_out_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = tmp_path / "held_out.jsonl"
    held.write_text(json.dumps({"id": "kernelbench_1", "reference_source": _REFERENCE.format("relu")}) + "\n")
    train = _file(tmp_path / "t.parquet", [_row(_REFERENCE.format("relu")), _row(_REFERENCE.format("sin"))])
    assert _import(monkeypatch, tmp_path / "out", "--train", train, "--held-out", held) == 0
    assert _report(tmp_path / "out")["refusals"][0]["value"] == "kernelbench_1"


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (_row(None), "no_reference"),
        (_row("x = 1\n"), "not_a_task"),
        (_row("import os; os.abort(\n"), "not_python"),
        (_second("relu", "Write it"), "unknown_prompt"),
        (_row(_REFERENCE.format("relu"), [], prev_correct=True), "no_prompt"),
    ],
)
def test_a_bad_row_is_refused_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: dict[str, Any], kind: str
) -> None:
    good = _row(_REFERENCE.format("sin"))
    train = tmp_path / "t.parquet"
    schema = pyarrow.Table.from_pylist([_second("cos", repair_prompt("error"))]).schema
    parquet.write_table(pyarrow.Table.from_pylist([good, row], schema=schema), train)
    assert _import(monkeypatch, tmp_path / "out", "--train", train) == 0
    (refusal,) = _report(tmp_path / "out")["refusals"]
    assert (refusal["kind"], refusal["row"], refusal["file"]) == (kind, 1, str(train))


def test_the_same_row_twice_is_one_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [_row(_REFERENCE.format("relu"))] * 2 + [_second("relu", repair_prompt("error"))] * 2
    assert _import(monkeypatch, tmp_path / "out", "--train", _file(tmp_path / "t.parquet", rows)) == 0
    assert _report(tmp_path / "out")["refused_by_kind"] == {"repeated": 2}


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\xff" * 4000 + b"PAR1", None])
def test_what_is_no_such_file_ends_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    path = tmp_path / "t.parquet"
    if content is None:
        parquet.write_table(pyarrow.table({"text": ["a"]}), path)
    else:
        path.write_bytes(content)
    assert _import(monkeypatch, tmp_path / "out", "--train", path) == 2
    assert str(path) in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_row_with_half_a_character_is_refused_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prompt = optimise_prompt("tile").replace("memory traffic", "memory \\ud800")
    rows = [_second("relu", prompt), _second("tanh", repair_prompt("error"))]
    assert _import(monkeypatch, tmp_path / "out", "--train", _file(tmp_path / "t.parquet", rows)) == 0
    assert _report(tmp_path / "out")["refused_by_kind"] == {"not_text": 1}
    assert len(_lines(tmp_path / "out/optimise.jsonl")) == 1


@pytest.mark.parametrize(
    "line",
    [
        json.dumps({"id": "a", "reference_source": "x = 1"}).encode(),
        json.dumps({"id": "a", "reference_source": "x = ("}).encode(),
        json.dumps({"id": "a", "reference_source": 3}).encode(),
        b'{"id": "\xff"}',
        b"[" * 100_000,
    ],
)
def test_a_held_out_task_that_cannot_be_compared_ends_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: bytes
) -> None:
    held = tmp_path / "held_out.jsonl"
    held.write_bytes(line)
    train = _file(tmp_path / "t.parquet", [_row(_REFERENCE.format("relu"))])
    assert _import(monkeypatch, tmp_path / "out", "--train", train, "--held-out", held) == 2
    assert str(held) in capsys.readouterr().err


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "[]",
        '{"rows": "1"}\n{}\n{}',
        '{"missing": 3}',
        '{"rows": 1}\n[]\n{}',
        '{"rows": 1}\n' + "[" * 100_000 + "\n{}",
    ],
)
def test_a_reader_that_prints_anything_else_is_not_believed(monkeypatch: pytest.MonkeyPatch, printed: str) -> None:
    monkeypatch.setattr(Confinement, "run", lambda *_: printed)
    with pytest.raises(ValueError, match="rows.parquet: "):
        list(import_parquet.read_rows(Path("rows.parquet"), Confinement()))


@pytest.mark.parametrize("field", ["prompt", "answer", "task_name"])
def test_a_value_nested_deeply_is_refused_like_any_other(field: str) -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    values = _second("relu", repair_prompt("error"))
    (values if field == "prompt" else values["extra_info"])[field] = deep
    files = TaskFiles(ImportReport())
    work = import_parquet.ParquetImport(files, HeldOut(), MODULES)
    work.learn(iter([import_parquet.Row(Path("t.parquet"), 0, values)]))
    json.dumps(files.report.to_json())
    assert (
        files.report.refused_by_kind
        == {
            "prompt": {"no_prompt": 1},
            "answer": {"no_reference": 1},
            "task_name": {},
        }[field]
    )
