"""The benchmark of several GPUs, over a door that only pretends to grade."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from warpsmith_reward import RewardClient, device_lease

from tests.bench import gpu_lanes_bench
from tests.bench.gpu_lanes_bench import Load, faults_of, main, print_rates
from tests.support.fake_reward_door import FakeRewardDoor, Reply, grade_of


class Door(FakeRewardDoor):
    """Judges on its GPUs by turns, and on none that somebody holds."""

    def __init__(self, gpus: Sequence[str]) -> None:
        super().__init__()
        self._turns = itertools.cycle(gpus)
        self._num_gpus = len(gpus)
        self.sources: list[str] = []
        self.rule = self.answer

    def answer(self, requests: list[dict[str, Any]]) -> Reply:
        return 200, {"responses": [self._graded(request) for request in requests]}

    def _graded(self, request: dict[str, Any]) -> dict[str, Any]:
        self.sources.append(request["candidate"]["source"])
        for gpu in itertools.islice(self._turns, 100 * self._num_gpus):
            try:
                with device_lease(gpu, 0.05):
                    gpu_of = {"gpu": {"uuid": gpu}}
                    return {"requestId": request["requestId"], "grade": grade_of(request, environment=gpu_of)}
            except TimeoutError:
                continue
        raise AssertionError("all GPUs are held")


@pytest.fixture
def gpus() -> Iterator[tuple[str, ...]]:
    names = tuple(f"GPU-{secrets.token_hex(8)}" for _ in range(2))
    yield names
    for path in Path("/run/lock").glob("warpsmith-GPU-*"):
        if any(name in path.name for name in names):
            path.unlink()


@contextmanager
def _open(gpus: Sequence[str]) -> Iterator[RewardClient]:
    door = Door(gpus)
    try:
        with RewardClient(door.url) as client:
            yield client
    finally:
        door.server.shutdown()
        door.server.server_close()


def test_all_programs_are_answered_on_all_gpus(gpus: tuple[str, ...]) -> None:
    load = Load(12, gpus)
    with _open(gpus) as client:
        result = load.run(client)
    assert result["verdicts"] == {"CORRECT": 12}
    assert set(result["by_gpu"]) == set(gpus)
    assert result["lent_at"] is None
    assert faults_of(load, result) == []


def test_a_gpu_that_is_lent_away_gets_no_more_work_and_nothing_is_lost(gpus: tuple[str, ...]) -> None:
    load = Load(80, gpus, lend=gpus[1])
    with _open(gpus) as client:
        result = load.run(client)
    assert result["verdicts"] == {"CORRECT": 80}
    assert result["lent_at"] is not None
    assert result["on_lent_gpu"] == 0
    with device_lease(gpus[1], 0):  # it was given back
        pass


def test_a_gpu_that_others_hold_gets_no_work(gpus: tuple[str, ...]) -> None:
    load = Load(12, gpus[:1], away=gpus[1:])
    with _open(gpus) as client:
        result = load.run(client)
    assert result["by_gpu"] == {gpus[0]: 12}
    assert faults_of(load, result) == []
    with_both = {**result, "by_gpu": dict.fromkeys(gpus, 6)}
    assert faults_of(load, with_both) == [f"{load.name}: 6 programs were judged on {gpus[1]}, which others held"]


def test_a_service_that_ignores_a_lease_is_told(gpus: tuple[str, ...]) -> None:
    load = Load(40, gpus, lend=gpus[1])
    result = {"verdicts": {"CORRECT": 40}, "by_gpu": dict.fromkeys(gpus, 20), "on_lent_gpu": 2}
    assert faults_of(load, result) == [f"{load.name}: 2 programs were judged on a GPU that was lent away"]


def test_wrong_verdicts_and_idle_gpus_are_faults(capsys: pytest.CaptureFixture[str]) -> None:
    one, both = Load(30, ("a",)), Load(30, ("a", "b"))
    results = [
        (one, {"seconds": 30.0, "verdicts": {"CORRECT": 30}, "by_gpu": {"a": 30}, "lent_at": None, "on_lent_gpu": 0}),
        (
            both,
            {
                "seconds": 20.0,
                "verdicts": {"CORRECT": 29, "UNSCORABLE": 1},
                "by_gpu": {"a": 30},
                "lent_at": None,
                "on_lent_gpu": 0,
            },
        ),
    ]
    assert print_rates(results) == ["2 GPUs: 1 programs were UNSCORABLE", "2 GPUs: nothing was judged on b"]
    said = capsys.readouterr().out
    assert "60.0            1.00" in said
    assert "90.0            1.50" in said


def test_with_one_gpu_there_is_nothing_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--gpu", "--out", str(tmp_path / "out.jsonl")], gpus=["GPU-1"])
    assert stop.value.code == 1
    assert "1 GPUs are here" in capsys.readouterr().err


def test_a_slice_does_three_pieces_and_resumes(
    gpus: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    doors: list[Door] = []

    @contextmanager
    def own_service(settings: dict[str, str], environment: dict[str, str]) -> Iterator[str]:
        doors.append(Door(environment["CUDA_VISIBLE_DEVICES"].split(",")))
        yield doors[-1].url
        doors[-1].server.shutdown()
        doors[-1].server.server_close()

    monkeypatch.setattr(gpu_lanes_bench, "own_service", own_service)
    words = ["--gpu", "--out", str(tmp_path / "out.jsonl"), "--programs", "24", "--resume"]
    assert main(words, gpus) == 0
    assert "lent after" in capsys.readouterr().out
    assert main(words, gpus) == 0
    assert "no piece is left" in capsys.readouterr().out
    assert len(doors) == 1
