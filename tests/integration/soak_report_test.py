"""What the soak test finds in what was recorded: lost answers, different ones, and what was left behind."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.bench import soak_gpus
from tests.bench.slices import Row
from tests.bench.soak_candidates import LogicalRequest, Program, make_requests
from tests.bench.soak_clients import Client, Outcome
from tests.bench.soak_cuda_candidates import make_cuda_requests
from tests.bench.soak_doors import Failure, HungUp, read_field
from tests.bench.soak_gpu_report import SliceEnd, faults_of, print_gpu_summary, summarise_gpu
from tests.bench.soak_gpus import GpuUse, held_since
from tests.bench.soak_left_behind import left_behind, shared_entries
from tests.bench.soak_service import SoakService, adopt_orphans, end_descendants

_REQUEST = make_requests(40, 1)[0]
_LANES = {"num_lanes": 2, "devices": ["DEVICE_CPU", "DEVICE_CUDA"], "num_lost": 0}
_END = SliceEnd(
    start_seconds=9.5,
    kills=[100.0, 160.0, 220.0],
    last_verdict="CORRECT",
    lanes_before=_LANES,
    lanes_after=_LANES,
    exit_status=0,
    left_behind=[],
    memory_mib_before={"GPU-1": 4},
    memory_mib_after={"GPU-1": 4},
)


def _outcome(verdict: str = "CORRECT", **fields: Any) -> Outcome:
    usual: dict[str, Any] = {"grade": {"verdict": verdict}, "verdict": verdict, "life": 1, "state": "answered"}
    return Outcome(_REQUEST, "http-0", **{"attempts": 1, "seconds": 1.0, "at": 1.0, **usual, **fields})


def _faults(
    outcomes: list[Outcome], end: SliceEnd | None = _END, times: tuple[float, float] = (0.0, 50.0)
) -> list[str]:
    rows: list[Row] = [{"began": times[0], "ended": times[1]} for _ in outcomes]
    report = summarise_gpu(rows, outcomes, {outcome.life: end for outcome in outcomes})
    print_gpu_summary(report)
    return faults_of(report)


def test_a_run_in_which_all_is_well_has_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert _faults([_outcome(), _outcome()]) == []
    said = capsys.readouterr().out
    assert "2 requests" in said and "3 referees killed" in said
    assert "GPU memory 4 of 4 MiB, left behind nothing" in said


@pytest.mark.parametrize("state", ["lost", "refused"])
def test_a_request_without_an_answer_is_a_fault(state: str) -> None:
    assert _faults([_outcome(), _outcome("", state=state, grade={})]) == [f"1 requests {state}"]
    assert _faults([_outcome("", state="hung_up", grade={})]) == []


def test_an_id_with_two_verdicts_is_a_fault_in_whatever_lives() -> None:
    assert "1 ids with different verdicts" in _faults([_outcome(), _outcome("INCORRECT")])
    assert _faults([_outcome(), _outcome("INCORRECT", life=2)]) == ["1 ids with different verdicts"]


def test_an_id_with_two_grades_is_a_fault_within_a_life_alone() -> None:
    other = _outcome(grade={"verdict": "CORRECT", "timing": {"speedup": 2}})
    assert _faults([_outcome(), other]) == ["1 ids with different grades in one life of the service"]
    assert _faults([_outcome(), replace(other, life=2)]) == []


def test_unscorable_is_explained_by_as_many_kills_as_there_are_attempts() -> None:
    lost = _outcome("UNSCORABLE", reason="the referee failed 3 times, the last time with UNAVAILABLE")
    fault = "1 answers UNSCORABLE that no kills of referees explain"
    assert _faults([lost], times=(90.0, 230.0)) == []
    assert _faults([lost], times=(90.0, 180.0)) == [fault]
    assert _faults([replace(lost, reason="compiling failed")], times=(90.0, 230.0)) == [fault]


def test_who_asks_again_after_unscorable_may_have_an_answer_and_who_asks_meanwhile_has_the_same() -> None:
    lost = _outcome("UNSCORABLE", reason="the referee failed 3 times, the last time with UNAVAILABLE")
    again = _outcome("UNSCORABLE", reason="the referee failed 3 times, the last time with INTERNAL", grade={"a": 1})
    rows: list[Row] = [{"began": began, "ended": 230.0} for began in (90.0, 200.0, 225.0)]
    assert faults_of(summarise_gpu(rows, [lost, again, _outcome()], {1: _END})) == []
    other = replace(again, request=make_requests(40, 2)[0])
    faults = faults_of(summarise_gpu(rows, [lost, other, _outcome()], {1: _END}))
    assert faults == ["1 answers UNSCORABLE that no kills of referees explain"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"left_behind": ["process warpsmith-jail (7, R)"]}, "slice 1 left behind: process warpsmith-jail (7, R)"),
        ({"lanes_after": {**_LANES, "num_lost": 1}}, "slice 1 had lanes"),
        ({"lanes_after": {**_LANES, "devices": ["DEVICE_CPU"]}}, "slice 1 had lanes"),
        ({"last_verdict": "UNSCORABLE"}, "slice 1: a right program was UNSCORABLE at its end"),
        ({"exit_status": None}, "slice 1: the service ended with status None"),
    ],
)
def test_what_is_wrong_at_the_end_of_a_slice_is_a_fault(change: dict[str, Any], fault: str) -> None:
    faults = _faults([_outcome()], replace(_END, **change))
    assert len(faults) == 1 and faults[0].startswith(fault)


def test_a_slice_that_was_broken_off_is_a_fault() -> None:
    assert _faults([_outcome()], None) == ["slice 1 was broken off: nobody looked for what it left behind"]


def test_what_a_gpu_holds_more_than_before_is_told() -> None:
    before = GpuUse({"GPU-1": 4, "GPU-2": 0}, {1: "systemd"}, 0)
    assert held_since(before, before) == []
    assert held_since(before, GpuUse({"GPU-1": 2, "GPU-2": 0}, {}, 0)) == []
    after = GpuUse({"GPU-1": 530}, {1: "systemd", 9: "warpsmith-jail"}, 1)
    assert held_since(before, after) == [
        "GPU open in warpsmith-jail (9)",
        "526 MiB more of GPU-1",
        "GPU-2 is not seen any more",
        "1 processes more that compute",
    ]


def test_who_has_a_device_open_is_found_in_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak_gpus, "_DEVICES", str(tmp_path))
    with (tmp_path / "nvidia0").open("w"):
        assert os.getpid() in soak_gpus.holders()
    assert os.getpid() not in soak_gpus.holders()
    assert not soak_gpus.uses_gpu(os.getpid())


def test_a_process_and_a_file_that_outlive_a_service_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.bench.soak_left_behind._GRACE_SECONDS", 0.2)
    (tmp_path / "tmp").mkdir()
    adopt_orphans()
    service = SoakService(Path("/nowhere"), tmp_path, [0])
    before = shared_entries()
    assert left_behind(service, before) == []
    # A grandchild whose parent is gone, as a jail's is whose referee was killed.
    subprocess.run(["sh", "-c", "sleep 600 & exit 0"], check=True, timeout=30, stdout=subprocess.DEVNULL)
    (tmp_path / "tmp" / "forgotten").write_text("")
    try:
        found = left_behind(service, before)
        assert len(found) == 2 and found[0].startswith("process sleep (") and found[1].endswith("/tmp/forgotten")
    finally:
        end_descendants()


class _Door:
    """Gives or raises its answers in turn."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self._answers = list(answers)

    def grade(self, message: dict[str, Any], hang_up_after: float | None) -> dict[str, Any]:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def _ask(*answers: dict[str, Any] | Exception, seconds_max: float = 60.0) -> Outcome:
    begin = time.monotonic()
    return Client("http-0", _Door(*answers), lambda: 3, lambda: time.monotonic() - begin, seconds_max).ask(_REQUEST)


def test_a_client_asks_until_there_is_an_answer_or_no_use() -> None:
    busy, dead = Failure("HTTP 429", again=True, delay=0.01), Failure("HTTP 400", again=False)
    answered = _ask(busy, busy, {"verdict": "VERDICT_CORRECT", "reward": {"value": 1.5}})
    assert (answered.state, answered.verdict, answered.reward, answered.attempts) == ("answered", "CORRECT", 1.5, 3)
    assert answered.failures == {"HTTP 429": 2} and answered.life == 3
    assert _ask(busy, dead).state == "refused"
    assert _ask(busy, busy, seconds_max=0.05).state == "lost"
    assert _ask(HungUp()).state == "hung_up"


def test_a_field_is_found_in_the_wire_format_whatever_is_before_it() -> None:
    long = b"x" * 300
    message = b"\x0a\x02ab" + b"\x12\xac\x02" + long + b"\x22\x03def"
    assert (read_field(message, 1), read_field(message, 2), read_field(message, 4)) == (b"ab", long, b"def")
    assert read_field(message, 3) == b""


@pytest.mark.parametrize("rehearsal", [True, False])
def test_programs_are_of_all_kinds_distinct_and_the_same_for_the_same_seed(rehearsal: bool) -> None:
    requests = make_cuda_requests(200, 5, rehearsal=rehearsal)
    assert len(requests) == 200
    fresh = {r.request_id: r for r in requests if r.kind not in ("repeated", "copied")}
    assert len({request.program.source for request in fresh.values()}) == len(fresh)
    assert {"good", "hanging", "memory", "huge_grid", "python_inline", "cancelled"} <= {r.kind for r in fresh.values()}
    assert [r.to_json() for r in make_cuda_requests(200, 5, rehearsal=rehearsal)] == [r.to_json() for r in requests]
    # What repeats asks for what was asked before.
    asked: set[str] = set()
    for request in requests:
        if request.kind == "repeated":
            assert request.request_id in asked
        asked.add(request.request_id)


def test_a_request_says_language_and_device() -> None:
    program = Program("good", _REQUEST.program.task, "source", frozenset({"CORRECT"}), "CUDA", "CUDA")
    message = LogicalRequest("id", "good", program).to_json()
    assert message["task"]["device"] == "DEVICE_CUDA"
    assert message["candidate"] == {"language": "CANDIDATE_LANGUAGE_CUDA", "source": "source"}
