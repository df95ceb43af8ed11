"""What a jail takes down of a program's Triton kernels, and what it makes of compiled ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

_JAIL = Path(__file__).parents[4] / "reward_service" / "jail"
sys.path.insert(0, str(_JAIL))
triton = pytest.importorskip("triton")
import python_jail  # noqa: E402
import triton_kernels  # noqa: E402
from messages import KnownGpu  # noqa: E402

_GPU = KnownGpu("H100", 9, 0, 80 << 30, 50 << 20, 132)
_PROGRAM = """
import torch
import triton
import triton.language as tl

SCALE = 3.0


@triton.jit
def scaled(value):
    return value * 2


@triton.jit
def kernel(x, y, count, factor, BLOCK: tl.constexpr, FLAG: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + places, mask=places < count)
    if FLAG:
        value = scaled(value) * factor
    tl.store(y + places, value, mask=places < count)


def launch(x, y, block=64, flag=True):
    kernel[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), 0.5, BLOCK=block, FLAG=flag)
    return y
"""


@pytest.fixture(autouse=True)
def _usual_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed in place of Triton's own goes with the test."""
    for module in (triton, triton.compiler, triton.compiler.compiler):
        monkeypatch.setattr(module, "compile", module.compile)
    monkeypatch.setattr(triton.testing, "do_bench", triton.testing.do_bench)
    monkeypatch.setattr(triton.testing, "do_bench_cudagraph", triton.testing.do_bench_cudagraph)
    monkeypatch.setattr(triton.runtime.driver, "_active", None)
    monkeypatch.setattr(torch.Tensor, "is_cuda", torch.Tensor.is_cuda)


def _record(program: str = _PROGRAM) -> tuple[triton_kernels.Recording, Any]:
    assert triton_kernels.import_triton() == triton.__version__
    return triton_kernels.Recording(program, _GPU), python_jail.execute(program, "candidate")


def _compiled(recording: triton_kernels.Recording, folder: Path) -> subprocess.CompletedProcess[str]:
    script = _JAIL.parent / "compiler" / "triton" / "compile_triton.py"
    command = [sys.executable, "-I", "-B", str(script), str(folder / "kernels"), str(folder / "cubins")]
    return subprocess.run(command, input=recording.record_text(), text=True, capture_output=True, timeout=100)


def test_a_kernel_is_taken_down_once_for_each_kind_of_arguments() -> None:
    recording, program = _record()
    x = torch.zeros(64, 4)
    for _ in range(3):
        program.launch(x, torch.empty_like(x))
    assert len(recording.records) == 1
    program.launch(x, torch.empty_like(x), block=128)
    program.launch(x, torch.empty_like(x), flag=False)
    program.launch(x.half(), torch.empty_like(x))
    program.launch(x.view(-1)[1:], torch.empty_like(x))  # a pointer that is divisible by 16 no more
    records = json.loads(recording.record_text())
    assert len(records) == 5
    assert {record["kernel"] for record in records} == {"kernel"}
    assert all(record["capability"] == 90 and "tt.func" in record["text"] for record in records)


def test_nothing_is_launched_where_kernels_are_taken_down() -> None:
    _, program = _record()
    x, y = torch.ones(64), torch.full((64,), 7.0)
    assert program.launch(x, y).eq(7).all()


def test_what_is_taken_down_is_compiled_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording, program = _record()
    x = torch.zeros(64)
    program.launch(x, x)
    assert _compiled(recording, tmp_path).returncode == 0
    content = (tmp_path / "kernels").read_bytes()
    assert content.startswith(triton_kernels.MAGIC)
    launched: list[tuple[Any, ...]] = []

    class Driver:
        """Takes the place of one that has a GPU."""

        utils: Any = None

        def get_benchmarker(self) -> None:
            return None

    class Launcher:
        def __init__(self, source: Any, metadata: Any) -> None:
            assert metadata.name == "kernel" and metadata.num_warps == 4

        def __call__(self, *arguments: Any) -> None:
            launched.append(arguments)

    class Utils:
        def get_device_properties(self, _device: int) -> dict[str, int]:
            return {"max_shared_mem": 1 << 20}

        def load_binary(self, name: str, binary: bytes, *_: Any) -> tuple[int, int, int, int, int]:
            assert name == "kernel" and binary.startswith(b"\x7fELF")
            return 1, 2, 3, 0, 1024

    driver = triton_kernels._told_driver(_GPU, None)
    driver.utils, driver.launcher_cls = Utils(), Launcher
    monkeypatch.setattr(triton_kernels, "_real_driver", lambda _benchmark: driver)
    triton_kernels.Compiled(content)
    again = python_jail.execute(_PROGRAM, "candidate")
    again.launch(x, x)
    assert launched[0][:5] == (1, 1, 1, 0, 2)
    assert launched[0][9:13] == (x, x, 64, 0.5)
    with pytest.raises(RuntimeError, match=r"kernel\(x: \*fp32, .* was not compiled: the first run"):
        again.launch(x, x, block=32)


def test_a_fault_has_the_line_of_the_program_also_in_a_function_that_a_kernel_calls() -> None:
    program = _PROGRAM.replace("return value * 2", "return value * missing")
    recording, module = _record(program)
    x = torch.zeros(64)
    with pytest.raises(triton.compiler.errors.CompilationError):
        module.launch(x, x)
    (record,) = recording.records.values()
    line = program[: program.index("missing")].count("\n") + 1
    assert record["failure"].startswith(f"candidate.py:{line}: error: ")
    assert "missing" in record["failure"]


def test_of_configurations_all_are_taken_down_as_trials() -> None:
    sizes = "[triton.Config({'BLOCK': size}) for size in (32, 64, 128)]"
    program = _PROGRAM.replace(
        "@triton.jit\ndef kernel", f"@triton.autotune(configs={sizes}, key=['count'])\n@triton.jit\ndef kernel"
    )
    program = program.replace("0.5, BLOCK=block, FLAG", "0.5, FLAG")
    recording, module = _record(program)
    x = torch.zeros(64)
    module.launch(x, x)
    assert [record["trial"] for record in recording.records.values()] == [True] * 3


def test_a_program_with_too_many_kernels_is_told_the_limit() -> None:
    _, program = _record(_PROGRAM.replace("BLOCK: tl.constexpr,", "BLOCK: tl.constexpr, UNUSED: tl.constexpr,"))
    x = torch.zeros(64)
    with pytest.raises(RuntimeError, match="more than 64 kernels"):
        for number in range(70):
            program.kernel[(1,)](x, x, 64, 0.5, BLOCK=16, UNUSED=number, FLAG=False)


def test_what_is_no_function_of_triton_is_refused() -> None:
    _record()
    with pytest.raises(RuntimeError, match="no files"):
        triton.compile("/tmp/kernel.ptx")


@pytest.mark.parametrize("content", [b"", b"WSTRITON" + (2).to_bytes(8, "little") + b"[]"])
def test_without_compiled_kernels_a_launch_says_that_there_are_none(content: bytes) -> None:
    triton_kernels.Compiled(content)
    triton.runtime.driver.set_active(triton_kernels._told_driver(_GPU, None))
    x = torch.zeros(64)
    with pytest.raises(RuntimeError, match="was not compiled"):
        python_jail.execute(_PROGRAM, "candidate").launch(x, x)


def test_another_file_is_refused() -> None:
    with pytest.raises(ValueError, match="begins with something else"):
        triton_kernels.Compiled(b"\x7fELF")


def test_a_program_without_a_kernel_records_as_before() -> None:
    assert triton_kernels.defines_kernels("import triton\n@triton.jit\ndef f(): pass")
    assert not triton_kernels.defines_kernels("import torch\n@torch.jit.script\ndef f(): pass")


def test_a_call_without_a_gpu_ends_in_time_and_has_tensors_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with triton_kernels.without_gpu():
        assert torch.zeros(2).is_cuda
    monkeypatch.setattr(triton_kernels, "_HOST_SECONDS_MAX", 0.05)
    with pytest.raises(TimeoutError), triton_kernels.without_gpu():
        while True:
            pass


def test_nothing_can_be_imported_for_a_recording_that_has_kernels_or_makes_them() -> None:
    import zygote

    recorded = set(zygote.importable_paths(records=True))
    usual = set(zygote.importable_paths(records=False))
    folder = torch.__path__[0]
    assert f"{folder}/_inductor" in usual - recorded
    assert f"{folder}/nn" in recorded
    assert f"{folder}/sparse/__init__.py" in recorded
    for path in (f"{folder}/sparse/_triton_ops.py", f"{folder}/lib", f"{triton.__path__[0]}/_C"):
        assert path not in recorded and Path(path).parent.as_posix() not in recorded
    # Every file of Torch's that defines Triton kernels is left out.
    allowed = [Path(path) for path in recorded if path.startswith(folder)]
    files = [file for path in allowed for file in ([path] if path.is_file() else path.rglob("*.py"))]
    with_kernels = [str(file) for file in files if file.suffix == ".py" and "\n@triton.jit" in file.read_text()]
    assert with_kernels == []
