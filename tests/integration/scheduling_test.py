"""Which request goes first, and where: priorities and lanes of a running service."""

from __future__ import annotations

import asyncio
import json
import os
import time
import urllib.request
from pathlib import Path

import pytest
from warpsmith_reward import AsyncRewardClient, Priority, Request, RewardClient, Verdict

from tests.support.running_reward_service import running_reward_service

_REFERENCE = (Path(__file__).resolve().parents[1] / "data/tasks/scaled_relu_square.py").read_text()
_SECONDS_MAX = 120
_NUM_LOW = 10
# A busy machine shall not decide what is asked here.
_PATIENT = {"compile_seconds_max": "120"}


def _request(number: int, priority: Priority = Priority.NORMAL) -> Request:
    """A right program, unlike that of any other number."""
    program = f"""
#include <dlpack/dlpack.h>
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const*, DLTensor* const* outputs) {{
  const float* x = static_cast<const float*>(inputs[0]->data);
  float* y = static_cast<float*>(outputs[0]->data);
  const int64_t n = inputs[0]->shape[0] * inputs[0]->shape[1];
  const int number = {number};
  for (int64_t i = 0; i < n; ++i) {{ float v = 2 * x[i] + 1; y[i] = v > 0 ? v * v : 0; }}
  return number < 0;
}}
"""
    return Request(_REFERENCE, source=program, language="cpp", priority=priority)


def _status(address: str) -> dict[str, int]:
    with urllib.request.urlopen(f"http://{address}/v1/status", timeout=30) as response:
        return json.load(response)


async def _until_waiting(address: str, count: int) -> None:
    end = time.monotonic() + _SECONDS_MAX
    while _status(address)["numRequests"] < count:
        assert time.monotonic() < end, f"never {count} requests at once"
        await asyncio.sleep(0.01)


async def _answered(address: str) -> tuple[list[str], int]:
    """Names of a backlog of low priority and one high request, as they were answered, and how many were before the high
    one was sent."""
    order: list[str] = []
    async with AsyncRewardClient(f"http://{address}") as client:

        async def grade(name: str, request: Request) -> None:
            assert (await client.grade(request)).verdict is Verdict.CORRECT
            order.append(name)

        low = [asyncio.create_task(grade("low", _request(i, Priority.LOW))) for i in range(_NUM_LOW)]
        await _until_waiting(address, _NUM_LOW - 2)
        num_before = len(order)
        await grade("high", _request(_NUM_LOW, Priority.HIGH))
        await asyncio.gather(*low)
    return order, num_before


def test_a_high_priority_overtakes_a_backlog_of_low_ones(tmp_path: Path) -> None:
    with running_reward_service(tmp_path, num_compile_workers="1", **_PATIENT) as address:
        order, num_before = asyncio.run(_answered(address))
    assert sorted(order) == ["high"] + ["low"] * _NUM_LOW
    # What lane and compile worker hold already they finish; one more may have ended while the high one was sent.
    assert order.index("high") - num_before <= 3, order


def _children(pid: int) -> list[int]:
    """Processes that `pid` started."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if folder.name.isdigit() and int(after_name[1]) == pid:
            found.append(int(folder.name))
    return found


def _referees() -> list[int]:
    services = _children(os.getpid())
    children = [child for service in services for child in _children(service)]
    return [pid for pid in children if "warpsmith-referee" in Path(f"/proc/{pid}/cmdline").read_text()]


def _judges(referee: int) -> dict[int, Path]:
    """Threads of a referee that are pinned to one core, by that core."""
    judges = {}
    for folder in Path(f"/proc/{referee}/task").iterdir():
        cores = os.sched_getaffinity(int(folder.name))
        if len(cores) == 1:
            judges[cores.pop()] = folder
    return judges


def _cpu_ticks(thread: Path) -> int:
    after_name = (thread / "stat").read_text().rpartition(")")[2].split()
    return int(after_name[11]) + int(after_name[12])


def test_two_lanes_judge_each_on_a_core_of_its_own(tmp_path: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))[-2:]
    if len(cores) < 2:
        pytest.skip("two lanes want two cores, and this machine has one")
    settings = {"lane_cores": f"[{cores[0]}, {cores[1]}]", "num_lanes": "2", **_PATIENT}
    with running_reward_service(tmp_path, **settings) as address:
        judges = [_judges(pid) for pid in _referees()]
        assert sorted(list(judge) for judge in judges) == [[core] for core in cores]
        threads = [thread for judge in judges for thread in judge.values()]
        before = [_cpu_ticks(thread) for thread in threads]
        with RewardClient([f"http://{address}"] * 4) as client:
            answers = client.grade_all([_request(i) for i in range(12)])
        verdicts = {getattr(answer, "verdict", answer) for answer in answers}
        assert verdicts == {Verdict.CORRECT}
        stamped = {answer.message["environment"]["laneCores"] for answer in answers}  # type: ignore[union-attr]
        assert stamped == {str(core) for core in cores}
        worked = [_cpu_ticks(thread) - ticks for thread, ticks in zip(threads, before, strict=True)]
    assert min(worked) > 0.1 * sum(worked), worked


def test_more_lanes_than_cores_for_them_are_refused_in_words(tmp_path: Path) -> None:
    core = max(os.sched_getaffinity(0))
    with (
        pytest.raises(AssertionError),
        running_reward_service(tmp_path, str(tmp_path / "log"), lane_cores=f"[{core}]", num_lanes="2"),
    ):
        pass
    assert "num_lanes is 2, more than the 1 lane cores" in (tmp_path / "log").read_text()


def test_a_service_says_at_its_start_what_it_grades(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running_reward_service(tmp_path, str(log), gpus="none", log_level="info"):
        pass
    graded = "grades cpp and kernelbench_python on cpu; no GPU: reward_service.gpus is none; lane cores"
    assert graded in log.read_text()


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
def test_a_service_that_requires_a_gpu_does_not_start_without_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(AssertionError), running_reward_service(tmp_path, str(log), gpus="required"):
        pass
    assert "reward_service.gpus requires a GPU, and nothing can be judged on a GPU: " in log.read_text()
