"""The benchmark of hacks over a service that only pretends to grade: which cases it takes, and what a slice leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.hacks_bench import main, slow_by_turns
from tests.bench.slices import read_lines
from tests.hacks.case_file import read_corpus
from tests.support.fake_reward_door import FakeRewardDoor, Reply, grade_of

_ONLY = "replay/(graph|input)_of_"
_CREDIT = {"value": 2.0, "terms": [{"name": "credited_speedup", "value": 2.0}]}


class Door(FakeRewardDoor):
    """Twins and controls are right; of all else is said what `verdict` holds."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[dict[str, Any]] = []
        self.verdict = "INCORRECT"
        self.rule = self.answer
        names = ("twin", "honest")
        self._right = {case.programs[name] for case in read_corpus() for name in names if name in case.programs}

    def answer(self, requests: list[dict[str, Any]]) -> Reply:
        self.requests += requests
        return 200, {"responses": [{"requestId": r["requestId"], "grade": self.grade(r)} for r in requests]}

    def grade(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["candidate"].get("source") in self._right:
            return grade_of(request, reward=_CREDIT)
        return grade_of(request, verdict=f"VERDICT_{self.verdict}", reward={"value": 0.0})


@pytest.fixture
def door() -> Iterator[Door]:
    door = Door()
    yield door
    door.server.shutdown()
    door.server.server_close()


def _words(door: Door, out: Path, *more: str, only: str = _ONLY) -> list[str]:
    return ["--out", str(out), "--address", door.url, "--only", only, *more]


def _devices(door: Door) -> set[str]:
    return {request["task"]["device"] for request in door.requests}


def test_without_a_gpu_cases_of_a_cpu_are_graded_alone(door: Door, tmp_path: Path) -> None:
    out = tmp_path / "hacks.json"
    main(_words(door, out, only="replay/"))
    assert _devices(door) == {"DEVICE_CPU"}
    rows = json.loads(out.read_text())["rows"]
    assert {row["id"] for row in rows} == {case.identity for case in read_corpus("cpu") if case.family == "replay"}


def test_with_a_gpu_its_cases_are_pieces_whose_rows_name_their_programs(door: Door, tmp_path: Path) -> None:
    out = tmp_path / "hacks_gpu.jsonl"
    assert main(_words(door, out, "--gpu", only="replay/")) == 0
    assert _devices(door) == {"DEVICE_CUDA"}
    lines = read_lines(out)
    wanted = [c.identity for c in read_corpus("cuda") if c.family == "replay"]
    assert sorted(line["piece"] for line in lines) == wanted, "several at once, which end in any order"
    for line in lines:
        rows = line["result"]["rows"]
        assert [row["variant"] for row in rows] == ["twin", "hack", "mutant1", "mutant2"]
        assert len({row["program_sha256"] for row in rows}) == len(rows)
        assert {row["label"] for row in rows[1:]} == {"caught"}


def test_cases_that_take_long_begin_first_and_not_all_at_once() -> None:
    cases = read_corpus("cuda")
    ordered = slow_by_turns(cases)
    assert sorted(case.identity for case in ordered) == sorted(case.identity for case in cases)
    slow = [i for i, case in enumerate(ordered) if case.family in ("delegated", "resources", "rubric")]
    assert slow == list(range(0, 2 * len(slow), 2))
    assert slow_by_turns(ordered[:1]) == ordered[:1]


def test_a_slice_without_time_leaves_all_and_says_so(
    door: Door, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "hacks_gpu.jsonl"
    assert main(_words(door, out, "--gpu", "--seconds", "0")) == 0
    assert not door.requests
    assert "2 pieces are left" in capsys.readouterr().out


def test_a_resumed_slice_grades_what_is_missing_and_reports_on_all(
    door: Door, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "hacks_gpu.jsonl"
    assert main(_words(door, out, "--gpu", only="replay/graph_of_")) == 0
    num_graded = len(door.requests)
    assert main(_words(door, out, "--gpu", "--resume")) == 0
    assert len(door.requests) == 2 * num_graded
    capsys.readouterr()
    assert main(_words(door, out, "--gpu", "--resume")) == 0
    assert len(door.requests) == 2 * num_graded
    said = capsys.readouterr().out
    assert "all                        6           0           0           2           0" in said
    assert "no piece is left" in said


def test_other_programs_of_a_case_are_graded_anew(door: Door, tmp_path: Path) -> None:
    out = tmp_path / "hacks_gpu.jsonl"
    assert main(_words(door, out, "--gpu")) == 0
    num_graded = len(door.requests)
    assert main(_words(door, out, "--gpu", "--resume", "--seed", "7")) == 0
    assert len(door.requests) == 2 * num_graded


def test_a_sample_that_is_lost_is_a_miss_and_is_kept(
    door: Door, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "hacks_gpu.jsonl"
    door.verdict = "UNSCORABLE"
    assert main(_words(door, out, "--gpu")) == 1
    assert "missed: replay/graph_of_first_pointers:hack: UNSCORABLE" in capsys.readouterr().out
    assert len(read_lines(out)) == 2


def test_a_case_that_cannot_be_graded_fails_alone(
    door: Door, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "hacks_gpu.jsonl"
    graph = next(case for case in read_corpus("cuda") if case.identity == "replay/graph_of_first_pointers")

    def refuse_graphs(requests: list[dict[str, Any]]) -> Reply:
        if any(request["candidate"]["source"] == graph.programs["hack"] for request in requests):
            return 400, {"code": 9, "message": "no device cuda here"}
        return door.answer(requests)

    door.rule = refuse_graphs
    assert main(_words(door, out, "--gpu")) == 1
    assert "failed: replay/graph_of_first_pointers" in capsys.readouterr().out
    assert [line["piece"] for line in read_lines(out)] == ["replay/input_of_former_call"]


def test_a_run_on_a_cpu_cannot_be_resumed(door: Door, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(_words(door, tmp_path / "hacks.json", "--resume"))
