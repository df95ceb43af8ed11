"""A whole reward service with two GPUs, rehearsed: see tests/support/fake_gpu_service.py. Native programs go through
nvcc; what would be a kernel is a loop of the host. Python programs, which no compiler delays, ask what GPUs do."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from warpsmith_reward import Grade, Request, RewardServiceError, device_lease

from tests.support.fake_gpu_service import PATIENCE_SECONDS, FakeGpuService, running_fake_gpu_service

_TASK = (Path(__file__).resolve().parents[1] / "data" / "tasks" / "scaled_relu_square.py").read_text()
_RIGHT = "float v = 2 * x[i] + 1; v = v > 0 ? v : 0; y[i] = v * v;"

pytestmark = pytest.mark.skipif(
    not any(p.exists() for p in (Path("/usr/local/cuda/bin/nvcc"),)) and shutil.which("nvcc") is None,
    reason="no nvcc",
)


def _program(name: str, statement: str = _RIGHT) -> str:
    return f"""
#include <cuda_runtime.h>
#include <dlpack/dlpack.h>
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const* parameters, DLTensor* const* outputs,
                   cudaStream_t stream) {{
  const float* x = (const float*)inputs[0]->data;
  float* y = (float*)outputs[0]->data;
  const long n_{name} = inputs[0]->shape[0] * inputs[0]->shape[1];
  for (long i = 0; i < n_{name}; ++i) {{ {statement} }}
  return 0;
}}
"""


def _python_program(name: str, statement: str = "return v * v") -> str:
    return f"""
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        v = v_{name} = torch.relu(2 * x + 1)
        {statement}
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeGpuService]:
    """With two fake GPUs."""
    with running_fake_gpu_service(tmp_path_factory.mktemp("service"), "gpus 2\n") as running:
        yield running


def _grade(service: FakeGpuService, source: str, allowed_libraries: tuple[str, ...] = ()) -> Grade:
    return service.client.grade(Request(_TASK, source=source, language="cuda", allowed_libraries=allowed_libraries))


def _grade_python(service: FakeGpuService, source: str, variant: int | None = None) -> Grade:
    task = _TASK if variant is None else f"{_TASK}\n# {variant}\n"  # another task
    return service.client.grade(Request(task, source=source, device="cuda", allowed_libraries=("torch",)))


def test_a_program_is_compiled_and_graded_on_a_gpu(service: FakeGpuService) -> None:
    grade = _grade(service, _program("first"))
    assert grade.correct, grade.reason
    gpu = grade.message["environment"]["gpu"]
    assert gpu["name"].startswith("Fake GPU ")
    assert gpu["architecture"] == "sm_90a"
    assert grade.message["timing"]["librariesWithheld"]
    clocks = grade.message["timing"]["clocks"]
    assert (clocks["smMhzMin"], clocks["smMhzMax"], clocks["memoryMhzMax"]) == (990, 990, 2600)
    assert grade.message["compile"]["compiler"].startswith("nvcc ")
    (graph,) = grade.message["timing"]["baselines"]
    assert (graph["name"], graph.get("unavailable", "")) == ("cuda graph", "")
    assert graph["us"] > 0
    assert _grade(service, _program("wrong", "y[i] = x[i];")).verdict.value == "INCORRECT"
    assert _grade(service, _program("broken", "y[i] = nothing;")).verdict.value == "COMPILE_ERROR"


def test_cublas_is_in_the_jail_of_a_program_whose_task_allows_it_and_of_no_other(service: FakeGpuService) -> None:
    """The libraries are real; without a GPU they can tell their versions."""
    program = "#include <cublasLt.h>\n#include <cublas_v2.h>\n#include <cudnn.h>\n" + _program(
        "blas",
        "if (cublasLtGetVersion() < 130000 || cudnnGetVersion() < 90000 || cublasGetStatusString(CUBLAS_STATUS_SUCCESS)"
        " == nullptr) return 1; " + _RIGHT,
    )
    allowed = _grade(service, program, ("blas",))
    if "install nvidia-cublas" in allowed.reason:
        pytest.skip(allowed.reason)
    assert allowed.correct, allowed.reason
    assert allowed.message["timing"]["librariesWithheld"]
    withheld = _grade(service, program)
    assert (withheld.verdict.value, withheld.reward) == ("COMPILE_ERROR", 0)
    assert "cuBLAS and cuDNN are withheld" in withheld.reason
    declared = _program("declared", "if (cublasLtGetVersion() == 0) return 1; " + _RIGHT)
    hidden = _grade(service, 'extern "C" size_t cublasLtGetVersion();\n' + declared)
    assert hidden.verdict.value == "RUNTIME_ERROR"
    assert "cublasLtGetVersion" in hidden.reason


@pytest.mark.parametrize("num_bytes", [2 << 20, 10 << 20])
def test_a_program_of_megabytes_is_refused_with_the_number_that_it_may_have(
    service: FakeGpuService, num_bytes: int
) -> None:
    with pytest.raises(RewardServiceError, match=r"candidate.source has \d+ bytes; .* at most \d+|a body may have \d+"):
        _grade(service, _program("large") + "\n// " + "x" * num_bytes)
    assert _grade_python(service, _python_program("behind_it")).correct


def test_both_gpus_are_used(service: FakeGpuService) -> None:
    """In four rounds at most: tasks that become ready one after another all find the first GPU free."""
    used: Counter[str] = Counter()
    with ThreadPoolExecutor(4) as pool:
        for first in range(0, 16, 4):
            if len(used) == 2:
                break
            grades = list(
                pool.map(lambda i: _grade_python(service, _python_program(f"both_{i}"), i), range(first, first + 4))
            )
            assert all(grade.correct for grade in grades)
            used.update(grade.message["environment"]["gpu"]["name"] for grade in grades)
    assert set(used) == {"Fake GPU 0", "Fake GPU 1"}


def test_programs_of_several_tasks_are_judged_beside_each_other(service: FakeGpuService) -> None:
    """Their outputs may lie apart: right, permuted, wrong, and faulty ones of three tasks."""
    kinds = {
        "return v * v": "CORRECT",
        "return (v * v).t().contiguous().t()": "CORRECT",
        "v = v * v; v[3, 5] += 1; return v": "INCORRECT",
        "return (v * v).t().contiguous().t() * 1.5": "INCORRECT",
        "raise ValueError(v)": "RUNTIME_ERROR",
    }

    def judge(number: int) -> tuple[str, str]:
        task = _TASK.replace("256, 1024", f"{256 + number % 3}, 64")
        statement, expected = list(kinds.items())[number % len(kinds)]
        source = _python_program(str(number), statement)
        grade = service.client.grade(Request(task, source=source, device="cuda", allowed_libraries=("torch",)))
        return f"{grade.verdict.value} {grade.reason}", expected

    with ThreadPoolExecutor(10) as pool:
        for told, expected in pool.map(judge, range(10)):
            assert told.startswith(expected), told


def test_a_gpu_that_a_trainer_holds_is_left_alone_until_it_is_given_up(service: FakeGpuService) -> None:
    names = [_grade_python(service, _python_program(f"name_{i}")).message["environment"]["gpu"] for i in range(2)]
    assert all(name["uuid"].startswith("GPU-") for name in names)
    uuids = [names[0]["uuid"][:-1] + digit for digit in "01"]  # the fake driver's differ in the last one
    with ThreadPoolExecutor(4) as pool:
        with device_lease(uuids[0], PATIENCE_SECONDS):
            grades = list(pool.map(lambda i: _grade_python(service, _python_program(f"lent_{i}")), range(4)))
            assert all(grade.correct for grade in grades)
            assert {grade.message["environment"]["gpu"]["uuid"] for grade in grades} == {uuids[1]}
            with device_lease(uuids[1], PATIENCE_SECONDS):
                waiting = pool.submit(_grade_python, service, _python_program("waits"))
                time.sleep(3)  # a judgement takes less
                assert not waiting.done()
        assert waiting.result(timeout=PATIENCE_SECONDS).correct


def test_a_gpu_that_disappears_costs_no_answer_and_comes_back(service: FakeGpuService) -> None:
    programs = [_python_program(f"gone_{i}", "return v * v" if i % 3 else "return v") for i in range(6)]
    with ThreadPoolExecutor(6) as pool:
        answers = [pool.submit(_grade_python, service, program) for program in programs]
        answers[0].result(timeout=PATIENCE_SECONDS)
        service.say("gpus 2\ngone 1\n")
        grades = [answer.result(timeout=PATIENCE_SECONDS) for answer in answers]
    assert [grade.verdict.value for grade in grades] == [
        "CORRECT" if i % 3 else "INCORRECT" for i in range(len(programs))
    ], [grade.reason for grade in grades]
    # Whether its lane had work just then or not, the next one on it finds it gone.
    for i in range(20):
        if service.lanes_lost() == 1:
            break
        assert _grade_python(service, _python_program(f"next_{i}"), variant=i).correct
    service.await_lanes_lost(1)
    service.say("gpus 2\n")
    service.await_lanes_lost(0)
    assert _grade_python(service, _python_program("last")).correct


def test_without_any_gpu_programs_are_unscorable_with_the_reason(service: FakeGpuService) -> None:
    service.say("gpus 2\ngone 0\ngone 1\n")
    grade = _grade_python(service, _python_program("nowhere"))
    assert grade.verdict.value == "UNSCORABLE"
    assert "the referee failed" in grade.reason
    assert service.lanes_lost() == 1  # the last one stays, and serves as soon as its GPU is there
    service.say("gpus 2\n")
    assert _grade_python(service, _python_program("somewhere")).correct


def test_with_a_driver_that_is_too_old_programs_for_a_gpu_are_refused_and_the_log_says_why(tmp_path: Path) -> None:
    with running_fake_gpu_service(tmp_path, "version 11080\n") as running:
        with pytest.raises(RewardServiceError, match="this service has none .*CUDA 11.8, 13.0 is wanted"):
            _grade(running, _program("refused"))
        assert "the driver knows CUDA 11.8, 13.0 is wanted: install a newer one" in (tmp_path / "log").read_text()
