"""The benchmark of KernelBench answers, over a service and an evaluator that only pretend to judge."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench import kernelbench_bench
from tests.bench.kernelbench_bench import differences, main, most_rate, percentiles, read_answers
from tests.bench.kernelbench_peers import PeerOptions, peer_piece, peer_verdict
from tests.bench.slices import read_lines
from tests.support.fake_reward_door import FakeRewardDoor, Reply, grade_of

# What the answer's text says decides; `openai` is not installed here.
_EVALUATOR = """
import os, sys, time
from openai import OpenAI

class Result:
    def __init__(self, **fields):
        self.metadata, self.runtime, self.ref_runtime = {}, -1.0, -1.0
        self.__dict__.update(fields)

def eval_kernel_against_ref(original_model_src, custom_model_src, num_correct_trials=1, num_perf_trials=10,
                            measure_performance=False, build_dir=None):
    assert original_model_src == "task" and measure_performance and not os.path.exists(build_dir)
    print("noise")
    if "hang" in custom_model_src:
        time.sleep(600)
    if "crash" in custom_model_src:
        os._exit(7)
    if "raise" in custom_model_src:
        raise RuntimeError("CUDA error")
    if "wrong" in custom_model_src:
        return Result(compiled=True, correctness=False, metadata={"correctness_issue": "Output mismatch"})
    if "broken" in custom_model_src:
        return Result(compiled=False, correctness=False, metadata={"compilation_error": ValueError("line 3")})
    return Result(compiled=True, correctness=True, runtime=2.0, ref_runtime=float(num_perf_trials))
"""


class Door(FakeRewardDoor):
    """Compiles an answer once, calls one that says `broken` COMPILE_ERROR, `lost` nothing at all, others CORRECT."""

    def __init__(self) -> None:
        super().__init__()
        self.compiled: set[str] = set()
        self.sources: list[str] = []
        self.lock = threading.Lock()
        self.rule = self.answer

    def answer(self, requests: list[dict[str, Any]]) -> Reply:
        if any("lost" in r["candidate"]["source"] for r in requests):
            return 400, {"error": {"message": "no such device"}}
        return 200, {"responses": [{"requestId": r["requestId"], "grade": self.grade(r)} for r in requests]}

    def grade(self, request: dict[str, Any]) -> dict[str, Any]:
        source = request["candidate"]["source"]
        assert request["candidate"]["language"] == "CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON"
        assert request["task"]["device"] == "DEVICE_CUDA"
        program = source.splitlines()[0]
        with self.lock:
            self.sources.append(source)
            cached = program in self.compiled
            self.compiled.add(program)
        compiled = {"attempted": True, "cached": cached, "headers": "light" if "light" in program else "facade"}
        cost = {"compileSeconds": 0.001 if cached else 4.0}
        if "broken" in program:
            verdict = {"verdict": "VERDICT_COMPILE_ERROR", "verdictReason": "line 3"}
            return grade_of(request, compile=compiled, cost=cost, **verdict)
        return grade_of(request, compile=compiled, cost=cost)


@pytest.fixture
def door() -> Iterator[Door]:
    door = Door()
    yield door
    door.server.shutdown()
    door.server.server_close()


def _answers(folder: Path, programs: dict[str, str]) -> Path:
    (folder / "task.py").write_text("task")
    lines = []
    for name, program in programs.items():
        (folder / f"{name}.py").write_text(program)
        lines.append(json.dumps({"task": "task.py", "answer": f"{name}.py", "name": name}))
    path = folder / "answers.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def _checkout(folder: Path, package: str = "src/kernelbench") -> Path:
    path = folder / "checkout" / package
    path.mkdir(parents=True)
    (path / "__init__.py").write_text("")
    (path / "eval.py").write_text(_EVALUATOR)
    return folder / "checkout"


def _words(folder: Path, door: Door, answers: Path, *more: str) -> list[str]:
    return ["--gpu", "--out", str(folder / "out.jsonl"), "--address", door.url, "--answers", str(answers), *more]


def test_answers_are_graded_in_batches_and_again_from_the_compilers_cache(
    door: Door, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = {"one": "first", "two": "second light", "three": "third broken", "four": "fourth"}
    answers = _answers(tmp_path, programs)
    assert main(_words(tmp_path, door, answers, "--batch", "3")) == 0
    said = capsys.readouterr().out
    assert [line["piece"] for line in read_lines(tmp_path / "out.jsonl")] == ["one and 2 more", "four and 0 more"]
    assert len(set(door.sources)) == 8
    assert "4 of 4 graded" in said and "CORRECT 3, COMPILE_ERROR 1" in said
    table = {" ".join(line.split()) for line in said.splitlines()}
    assert {"all 4 4.00 4.00", "facade 3 4.00 4.00", "light 1 4.00 4.00", "again, from the cache 4 0.00 0.00"} <= table
    assert main(_words(tmp_path, door, answers, "--batch", "3", "--resume")) == 0
    assert len(door.sources) == 8


def test_answers_can_be_graded_once(door: Door, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = _answers(tmp_path, {"one": "first", "two": "second broken", "three": "third"})
    assert main(_words(tmp_path, door, answers, "--once")) == 0
    said = capsys.readouterr().out
    assert len(door.sources) == 3
    assert "3 of 3 graded" in said and "before" not in said and "again" not in said


def test_the_rate_to_95_percent_leaves_out_the_last_answers() -> None:
    batch = {"answers": [{"ended": float(i)} for i in range(1, 20)] + [{"ended": 100.0}]}
    assert most_rate([batch]) == 60.0
    assert most_rate([batch, {"answers": [{"ended": 41.0}]}]) == 20.0
    assert most_rate([batch, {"answers": [{"ended": 0.1, "error": "refused"}, {"ended": 41.0}]}]) == 20.0
    assert most_rate([batch, {"answers": [{"ended": 0.1, "error": "refused"}]}]) == 60.0


def test_an_answer_without_a_grade_is_named_and_a_batch_without_any_is_left(
    door: Door, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = _answers(tmp_path, {"one": "first", "two": "lost", "three": "lost too"})
    assert main(_words(tmp_path, door, answers, "--batch", "2")) == 1
    said = capsys.readouterr().out
    assert "1 of 2 graded" in said and "no grade of two: " in said and ": no such device" in said
    assert "failed: three and 0 more" in said and "1 pieces are left" in said


@pytest.mark.parametrize("package", ["src/kernelbench", "src"])
def test_verdicts_that_differ_from_kernelbenchs_are_told_by_name(
    door: Door, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setattr(kernelbench_bench, "gpus", lambda: ["a stand-in"])
    programs = {"both": "first", "ours": "second wrong", "neither": "third broken", "odd": "fourth raise"}
    answers = _answers(tmp_path, programs)
    checkout = _checkout(tmp_path, package)
    assert main(_words(tmp_path, door, answers, "--peer", str(checkout), "--perf-trials", "7")) == 0
    said = capsys.readouterr().out
    assert "KernelBench: 4 evaluated" in said and "1 correct" in said
    assert "verdicts that differ: 2" in said
    assert "compiled, not correct: correctness_issue: Output mismatch" in said
    assert "not compiled: RuntimeError: CUDA error" in said
    lines = [line["result"] for line in read_lines(tmp_path / "out.jsonl") if line["piece"].startswith("KernelBench")]
    assert {line["name"]: line["speedup"] for line in lines}["both"] == 3.5


@pytest.mark.parametrize(("program", "note"), [("crash", "ended with status 7"), ("hang", "no result in time")])
def test_an_evaluation_that_ends_without_a_result_says_how(tmp_path: Path, program: str, note: str) -> None:
    seconds_max = 0.5 if program == "hang" else 60
    row = peer_piece(PeerOptions(_checkout(tmp_path), 5, 100, seconds_max), "one", "task", program).work()
    assert row["name"] == "one" and row["compiled"] is None and not row["correct"]
    assert note in peer_verdict(row)


def test_a_folder_that_is_no_checkout_fails_its_pieces(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    with pytest.raises(RuntimeError, match="cannot be loaded"):
        peer_piece(PeerOptions(tmp_path, 5, 100, 60), "one", "task", "first").work()


def test_an_answer_that_one_side_alone_accepts_differs_whichever_side_it_is() -> None:
    verdicts = {"a": "CORRECT", "b": "CORRECT", "c": "COMPILE_ERROR", "d": "INCORRECT"}
    ours = [{"name": name, "verdict": verdict, "reason": ""} for name, verdict in verdicts.items()]
    fields = {"compiled": True, "note": "", "speedup": None}
    peers = [{"name": name, "correct": name in ("a", "c"), **fields} for name in verdicts]
    assert [row[0] for row in differences([*ours, {"name": "e", "error": "lost"}], peers)] == ["b", "c"]


def test_a_line_that_names_no_files_is_refused_by_its_number(tmp_path: Path) -> None:
    path = _answers(tmp_path, {"one": "first"})
    path.write_text(path.read_text() + '{"task": "task.py"}\n')
    with pytest.raises(ValueError, match="answers.jsonl:2"):
        read_answers(path)
    line = json.dumps({"task": "task.py", "answer": "one.py"})
    path.write_text(f"{line}\n\n{line}\n")
    with pytest.raises(ValueError, match="another answer named 'one.py'"):
        read_answers(path)


def test_percentiles_of_none_of_one_and_of_many() -> None:
    assert percentiles([]).split() == ["0"]
    assert percentiles([2.0]).split() == ["1", "2.00", "2.00"]
    assert percentiles([float(n) for n in range(11)]).split() == ["11", "5.00", "9.00"]
