"""Programs become pairs with the tasks that they are named after; what is no program is refused in words."""

import json
from pathlib import Path
from typing import Any

import pytest

from datasets.cold_start import pair_programs

_CPP = (
    'struct DLTensor;\nextern "C" int run(const DLTensor* const*, const DLTensor* const*, DLTensor* const*) {{ {} }}\n'
)
_PYTHON = "class ModelNew:\n    pass\n"


def _pair(monkeypatch: pytest.MonkeyPatch, folder: Path, language: str, programs: dict[str, str]) -> int:
    (folder / "programs").mkdir()
    tasks = [{"id": name, "reference_source": f"class Model: # {name}"} for name in ("relu", "tanh", "exp.2")]
    (folder / "train.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks), encoding="utf-8")
    for name, text in programs.items():
        (folder / "programs" / name).write_text(text, encoding="utf-8")
    arguments = ["--tasks", str(folder / "train.jsonl"), "--programs", str(folder / "programs")]
    monkeypatch.setattr("sys.argv", ["x", *arguments, "--out", str(folder / "out"), "--language", language])
    return pair_programs.main()


def _lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out" / name).read_text(encoding="utf-8").splitlines()]


def test_programs_are_paired_by_name_and_the_last_task_is_held_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = {name: _CPP.format("return 0;") for name in ("relu.cc", "relu.fast.cc", "exp.2.cc", "tanh.cc")}
    assert _pair(monkeypatch, tmp_path, "cpp", programs) == 0
    learned = _lines(tmp_path, "cold_start.jsonl")
    assert [pair["task_id"] for pair in learned] == ["exp.2", "relu", "relu"]
    assert [pair["task_id"] for pair in _lines(tmp_path, "cold_start_validation.jsonl")] == ["tanh"]
    assert learned[1] == {
        "task_id": "relu",
        "skill": "generate",
        "reference_source": "class Model: # relu",
        "answer": f"```cpp\n{_CPP.format('return 0;')}```",
    }


def test_what_is_no_program_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = {
        "relu.cc": _CPP.format("return 0;"),
        "tanh.cc": _CPP.format("return 0;"),
        "relu.broken.cc": _CPP.format("return nothing;"),
        "relu.fence.cc": _CPP.format("return 0; // ```"),
        "relu.empty.cc": "int f() { return 0; }\n",
        "sigmoid.cc": _CPP.format("return 0;"),
    }
    assert _pair(monkeypatch, tmp_path, "cpp", programs) == 0
    report = json.loads((tmp_path / "out/pairs_report.json").read_text())
    assert (report["read"], report["written"]) == (6, {"cold_start.jsonl": 1, "cold_start_validation.jsonl": 1})
    assert report["refused_by_kind"] == {"has_fence": 1, "no_entry_point": 1, "no_task": 1, "not_cpp": 1}
    said = capsys.readouterr().err
    assert "relu.broken.cc: g++ does not take the program" in said
    assert "was not declared" in said
    assert "sigmoid.cc: no task has this id: sigmoid; name the program after its task" in said


def test_python_answers_need_a_model_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {"relu.py": _PYTHON, "tanh.py": _PYTHON, "exp.2.py": "class Model: pass\n", "relu.x.py": "def\n"}
    assert _pair(monkeypatch, tmp_path, "kernelbench_python", programs) == 0
    assert _lines(tmp_path, "cold_start.jsonl")[0]["answer"] == f"```python\n{_PYTHON}```"
    report = json.loads((tmp_path / "out/pairs_report.json").read_text())
    assert report["refused_by_kind"] == {"no_entry_point": 1, "not_python": 1}


def test_cuda_programs_are_those_of_its_own_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {name: _CPP.format("return 0;") for name in ("relu.cu", "tanh.cu", "exp.2.cc")}
    assert _pair(monkeypatch, tmp_path, "cuda", programs) == 0
    assert [pair["task_id"] for pair in _lines(tmp_path, "cold_start.jsonl")] == ["relu"]
    assert json.loads((tmp_path / "out/pairs_report.json").read_text())["read"] == 2


def test_one_task_is_too_few_and_the_refused_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _pair(monkeypatch, tmp_path, "kernelbench_python", {"relu.py": _PYTHON, "tanh.py": "x\n"}) == 2
    said = capsys.readouterr().err
    assert "tanh.py: the program has no class ModelNew" in said
    assert "1 task has a program; SFT needs one to learn from and another" in said
    assert not (tmp_path / "out").exists()
