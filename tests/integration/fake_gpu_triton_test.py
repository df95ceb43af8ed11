"""Triton kernels of KernelBench answers in a whole reward service beside a fake GPU: they are taken down, compiled by
Triton for its architecture, and found again in sealed jails. What a GPU would launch then is a function of Python, see
tests/support/fake_cuda/fake_triton_gpu.py."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from warpsmith_reward import Grade, Request

from tests.support.fake_gpu_service import FakeGpuService, running_fake_gpu_service

pytest.importorskip("triton")

_TASK = (Path(__file__).resolve().parents[1] / "data" / "tasks" / "scaled_relu_square.py").read_text()
_TASK = _TASK.replace("256, 1024", "64, 256")
_KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def square(value):
    return value * value


{decorators}@triton.jit
def {name}(x, y, count, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    value = tl.maximum(2 * tl.load(x + places, mask=inside) + 1, 0)
    tl.store(y + places, square(value), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        {name}[{grid}](x, y, x.numel(){block})
        return y
"""
_GRID = "(triton.cdiv(x.numel(), 256),)"

pytestmark = pytest.mark.skipif(
    not Path("/usr/local/cuda/bin/nvcc").exists() and shutil.which("nvcc") is None, reason="no nvcc"
)


def _program(
    name: str = "scaled_relu_square", decorators: str = "", grid: str = _GRID, block: str = ", BLOCK=256"
) -> str:
    return _KERNEL.format(name=name, decorators=decorators, grid=grid, block=block)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeGpuService]:
    """With one fake GPU."""
    with running_fake_gpu_service(tmp_path_factory.mktemp("service"), "gpus 1\n") as running:
        yield running


def _grade(service: FakeGpuService, source: str, allowed_libraries: tuple[str, ...] = ()) -> Grade:
    request = Request(_TASK, source=source, device="cuda", allowed_libraries=allowed_libraries)
    return service.client.grade(request)


def _withheld(grade: Grade) -> bool:
    return bool(grade.message["timing"].get("librariesWithheld"))


def test_a_kernel_is_compiled_off_the_lane_and_launched_where_libraries_are_withheld(service: FakeGpuService) -> None:
    grade = _grade(service, _program())
    assert grade.correct, grade.reason
    assert _withheld(grade)
    compiled = grade.message["compile"]
    assert compiled["compiler"].startswith("Triton 3.")
    (kernel,) = compiled["kernels"]
    assert (kernel["name"], kernel["architecture"]) == ("scaled_relu_square", "sm_90a")
    assert kernel["registers"] > 0
    assert grade.message["environment"]["tritonVersion"].startswith("3.")


def test_a_kernel_that_chooses_among_configurations_has_all_of_them_compiled(service: FakeGpuService) -> None:
    configurations = "[triton.Config({'BLOCK': size}, num_warps=2) for size in (128, 256, 512)]"
    decorators = f"@triton.autotune(configs={configurations}, key=['count'])\n"
    grade = _grade(
        service, _program(decorators=decorators, grid="lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)", block="")
    )
    assert grade.correct, grade.reason
    assert _withheld(grade)
    assert len(grade.message["compile"]["kernels"]) == 3


def test_a_fault_of_a_kernel_is_an_error_of_compiling_with_the_candidates_own_line(service: FakeGpuService) -> None:
    source = _program().replace("return value * value", "return value * nothing")
    grade = _grade(service, source)
    assert grade.verdict.value == "COMPILE_ERROR", grade.reason
    line = source[: source.index("nothing")].count("\n") + 1
    assert f"candidate.py:{line}: error: " in grade.message["compile"]["diagnostics"]
    assert "nothing" in grade.reason


def test_what_torch_compile_makes_is_no_kernel_of_the_programs_own(service: FakeGpuService) -> None:
    source = _program().replace(
        "class ModelNew(torch.nn.Module):",
        "class ModelNew(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.f = torch.compile(lambda x: torch.relu(2 * x + 1) ** 2)\n        self.f(torch.ones(64, 256))\n",
    )
    grade = _grade(service, source.replace("return y", "return self.f(x)"))
    assert not grade.correct or not _withheld(grade), grade.reason


def test_a_program_that_needs_a_library_beside_its_kernel_is_judged_with_libraries(service: FakeGpuService) -> None:
    # The fake driver runs a kernel that is emptied, too: where libraries are not allowed, it would be a hack.
    grade = _grade(service, _program().replace("return y", "return y.clone()"), ("torch",))
    assert grade.correct, grade.reason
    assert not _withheld(grade)


def test_a_kernel_that_the_first_run_did_not_launch_is_a_runtime_error_that_says_so(service: FakeGpuService) -> None:
    source = _program().replace("return y", "return y if x[0, 0] == 0 else other(x, y)")
    source += "\n\ndef other(x, y):\n    scaled_relu_square[(1,)](x, y, x.numel(), BLOCK=64)\n    return y\n"
    grade = _grade(service, source)
    assert grade.verdict.value == "RUNTIME_ERROR", grade.reason
    assert "was not compiled" in grade.reason
