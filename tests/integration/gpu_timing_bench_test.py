"""The benchmark of times on a GPU, over a service and a plain process that only pretend to measure."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from warpsmith_reward import Grade, Request, RewardServiceError

from tests.bench import gpu_service
from tests.bench.gpu_timing_bench import add_events, covered, grading, main, native_line, plain_process, spread
from tests.bench.gpu_timing_kernels import KERNELS
from tests.bench.gpu_timing_load import other_work, requests
from tests.bench.gpu_timing_peer import dl_tensor, nvcc_command
from tests.bench.slices import read_lines
from tests.support.fake_reward_door import FakeRewardDoor, Reply, grade_of

_PLAIN = """
import json, sys
for line in sys.stdin:
    name, calls, batches = json.loads(line)
    print(json.dumps({"candidate_us": 5.0, "reference_us": float(calls), "batches": batches}), flush=True)
"""


def _timing(candidate_us: float, **more: Any) -> dict[str, Any]:
    sides = {"candidate": {"medianUs": candidate_us, "numCalls": 64}, "reference": {"medianUs": 40.0}}
    speedup = 40 / candidate_us
    interval = {"speedup": speedup, "speedupLow": 0.8 * speedup, "speedupHigh": 1.2 * speedup}
    return {**sides, **interval, "callsPerBatch": 16, "emptyCallUs": 300.0, **more}


class Door(FakeRewardDoor):
    """Native programs take 10, 11, 12, ... microseconds; every third reference is told apart, every tenth not timed."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.rule = self.answer

    def answer(self, requests: list[dict[str, Any]]) -> Reply:
        return 200, {"responses": [{"requestId": r["requestId"], "grade": self.grade(r)} for r in requests]}

    def grade(self, request: dict[str, Any]) -> dict[str, Any]:
        number = len(self.sources)
        self.sources.append(request["candidate"]["source"])
        if "chain_load" in self.sources[-1] or "kernel_load" in self.sources[-1]:
            return grade_of(request, verdict="VERDICT_INCORRECT")
        if request["candidate"]["language"] == "CANDIDATE_LANGUAGE_CUDA":
            return grade_of(request, timing=_timing(10.0 + number))
        assert request["task"]["device"] == "DEVICE_CUDA"
        if number % 10 == 9:
            return grade_of(request, verdict="VERDICT_TIMEOUT", verdictReason="took too long")
        return grade_of(request, verdict="VERDICT_HACK", timing=_timing(39.0, distinguishable=number % 3 == 0))


@pytest.fixture
def door() -> Iterator[Door]:
    door = Door()
    yield door
    door.server.shutdown()
    door.server.server_close()


def _words(door: Door, out: Path, *more: str) -> list[str]:
    fixed = ["--gpu", "--out", str(out), "--address", door.url, "--only", "affine chain, 10 us", "--without-peer"]
    return [*fixed, *more]


def test_gradings_are_repeated_in_pieces_of_five_and_told_with_their_spread(
    door: Door, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "gpu_timing_gpu.jsonl"
    assert main(_words(door, out, "--gradings", "10")) == 0
    said = capsys.readouterr().out
    assert [line["piece"] for line in read_lines(out)] == [
        f"affine chain, 10 us, {what}"
        for what in ("gradings 1 to 5", "reference 1 to 5", "gradings 6 to 10", "reference 6 to 10")
    ]
    assert len(set(door.sources)) == 20
    assert "10 of  10 timed    17.00 us  55.9%  82.4%" in said
    assert "not distinguishable   5 of   8 timed, of 10 graded" in said
    assert "no piece is left" in said


def test_a_second_slice_asks_the_service_for_nothing_that_is_there(door: Door, tmp_path: Path) -> None:
    out = tmp_path / "gpu_timing_gpu.jsonl"
    assert main(_words(door, out, "--gradings", "5")) == 0
    assert main(_words(door, out, "--gradings", "10", "--resume")) == 0
    assert len(door.sources) == 20
    assert main(_words(door, out, "--gradings", "10", "--resume")) == 0
    assert len(door.sources) == 20


def test_events_are_asked_for_as_many_calls_as_the_grade_had() -> None:
    message = {"verdict": "VERDICT_CORRECT", "timing": _timing(10.0)}
    with plain_process(["a kernel"], [sys.executable, "-c", _PLAIN]) as events:
        row = grading(Grade.from_json(message))
        add_events("a kernel", [row, {"verdict": "HACK"}], events, rest_seconds=0)
        assert row["events"] == {"candidate_us": 5.0, "reference_us": 16.0, "batches": 10}
        line = native_line("a kernel", [row, row])
    assert "5.00 us x 2.00" in line and "16.00 us x 2.50" in line


def test_a_plain_process_that_ends_is_an_error_and_no_figure() -> None:
    with (
        plain_process(["a kernel"], [sys.executable, "-c", ""]) as events,
        pytest.raises((RuntimeError, BrokenPipeError)),
    ):
        events("a kernel", 1, 3)


def test_a_grade_without_a_timing_keeps_its_reason() -> None:
    row = grading(Grade.from_json({"verdict": "VERDICT_COMPILE_ERROR", "verdictReason": "line 3"}))
    assert row == {"verdict": "COMPILE_ERROR", "reason": "line 3"}
    assert "0 of   1 timed" in native_line("a kernel", [row])


def test_an_interval_is_honest_where_it_holds_the_median_of_all() -> None:
    rows = [{"speedup": x, "speedup_low": x - 0.15, "speedup_high": x + 0.15} for x in (1.0, 1.1, 1.2, 1.3, 2.0)]
    assert covered(rows) == 3


def test_other_work_goes_on_beside_the_gradings_and_ends_with_them(
    door: Door, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "gpu_timing_gpu.jsonl"
    assert main(_words(door, out, "--gradings", "5", "--load", "2")) == 0
    said = capsys.readouterr().out
    assert "5 of   5 timed" in said
    assert "beside them: " in said and " INCORRECT" in said
    assert main(_words(door, out, "--gradings", "5", "--resume")) == 0  # what was measured alone is another thing
    assert "5 of   5 timed" in capsys.readouterr().out
    assert len(read_lines(out)) == 4


def test_other_work_is_new_to_the_service_and_wrong_in_one_element() -> None:
    programs = list(islice(requests("load_1"), 4))
    assert len({program.reference_source for program in programs}) == 4
    assert len({program.source for program in programs}) == 4
    assert [program.language for program in programs] == ["cuda", "kernelbench_python"] * 2
    assert "cudaMemsetAsync" in str(programs[0].source)


def test_a_service_that_fails_does_not_end_other_work() -> None:
    def fail(request: Request) -> Grade:
        time.sleep(0.001)
        raise RewardServiceError("full")

    with other_work(fail, "load", 2) as verdicts:
        time.sleep(0.1)
    assert verdicts["no grade"] > 1


def test_spread_is_relative_to_the_median() -> None:
    assert spread([9.0, 10.0, 11.0]) == (pytest.approx(0.1), pytest.approx(0.2))


def test_without_a_gpu_the_end_is_a_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_service, "gpus", lambda: [])
    with pytest.raises(SystemExit) as ended:
        main(["--gpu", "--out", str(tmp_path / "out.jsonl")])
    assert ended.value.code == 1
    assert "No GPU is here" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path / "out.jsonl")])
    assert "add --gpu" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernels_task_runs_and_its_programs_differ_by_name(name: str) -> None:
    kernel = KERNELS[name]
    module: dict[str, Any] = {}
    exec(kernel.reference_as_candidate("1"), module)  # noqa: S102 - our own
    assert module["ModelNew"]()(torch.randn(16, 32)).shape == (16, 32)
    assert "NAME" not in kernel.source("1") and kernel.source("1") != kernel.source("2")


@pytest.mark.parametrize("name", ["affine chain, 10 us", "running sums, 1 ms"])
def test_programs_compile(name: str, tmp_path: Path) -> None:
    source, library = tmp_path / "kernel.cu", tmp_path / "kernel.so"
    source.write_text(KERNELS[name].source("1"))
    command = nvcc_command(source, library, "90")
    if not Path(command[0]).exists():
        pytest.skip("no nvcc here")
    subprocess.run(command, check=True, timeout=100)
    assert library.exists()


def test_a_view_of_a_tensor_is_laid_out_as_dlpack_has_it() -> None:
    tensor = torch.zeros(3, 5)
    view = dl_tensor(tensor)
    assert view.data == tensor.data_ptr()
    assert (view.ndim, view.code, view.bits, view.lanes) == (2, 2, 32, 1)
    assert (view.shape[0], view.shape[1]) == (3, 5)
    assert not view.strides
