"""The CUDA half of inline programs behaves on the facade as on Torch's own headers.

Where there is a GPU both are compiled, which takes nvcc a minute for Torch's headers, and compared. Elsewhere it is the
facade alone, and its faults are compared with what Torch raises, as written below."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

_DATA = Path(__file__).resolve().parents[1] / "data" / "facade"
_TORCH = Path(torch.__file__).parent
_PACKAGES = _TORCH.parent / "nvidia" / "cu13"
_FACADE = Path(os.environ["WARPSMITH_BIN_DIR"]).resolve().parent / "share" / "warpsmith" / "facade"
_NVCC = next((p for p in (Path("/usr/local/cuda/bin/nvcc"), _PACKAGES / "bin" / "nvcc") if p.exists()), None)

pytestmark = pytest.mark.skipif(_NVCC is None, reason="no nvcc in /usr/local/cuda or beside torch")

_TORCH_INCLUDES = ["-isystem", f"{_TORCH}/include", "-isystem", f"{_TORCH}/include/torch/csrc/api/include"]
_TORCH_LIBRARIES = [f"-L{_TORCH}/lib", "-lc10", "-lc10_cuda", "-ltorch_cpu", "-ltorch_cuda", "-ltorch"]
_OWN_INCLUDES = ["-isystem", f"{_FACADE}/include"]
_OWN_LIBRARY = [f"-L{_FACADE}", "-lwarpsmith_facade"]
_TIERS = {
    "facade": (["-isystem", f"{_FACADE}/shims", *_OWN_INCLUDES], _OWN_LIBRARY),
    "torch": (
        [*_TORCH_INCLUDES, "-isystem", sysconfig.get_paths()["include"], "-DTORCH_API_INCLUDE_EXTENSION_H"],
        [*_TORCH_LIBRARIES, "-ltorch_python"],
    ),
}


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[:4000]


def _compile_on(tier: str, folder: Path) -> ModuleType:
    """Both halves, compiled with the headers of a tier, as a module."""
    includes, libraries = _TIERS[tier]
    name = f"everything_cuda_{tier}"
    main, cuda, path = (str(folder / f"{name}.{suffix}") for suffix in ("main.o", "cuda.o", "so"))
    flags = ["-std=c++17", "-O1", "-w", "-D_GLIBCXX_USE_CXX11_ABI=1", f"-DTORCH_EXTENSION_NAME={name}", *includes]
    _run(["g++", "-fPIC", *flags, "-c", str(_DATA / "everything_cuda.cc"), "-o", main])
    nvcc = [str(_NVCC), "-gencode", "arch=compute_90a,code=sm_90a", "-cudart", "none", "-Xcompiler", "-fPIC"]
    _run([*nvcc, "--expt-relaxed-constexpr", *flags, "-c", str(_DATA / "everything.cu"), "-o", cuda])
    stub = [f"-L{_FACADE}/stubs", "-Wl,--no-as-needed", "-lcudart"]
    _run(["g++", "-shared", main, cuda, *libraries, *stub, "-o", path])
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


_COMPARED = ("facade", "torch") if torch.cuda.is_available() else ("facade",)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModuleType]:
    """The program by tier."""
    ctypes.CDLL(str(_FACADE / "libwarpsmith_facade.so"), mode=ctypes.RTLD_GLOBAL)
    folder = tmp_path_factory.mktemp("facade")
    return {tier: _compile_on(tier, folder) for tier in _COMPARED}


def test_what_needs_no_gpu_is_computed(modules: dict[str, ModuleType]) -> None:
    for module in modules.values():
        assert module.grid_of(torch.zeros(5, 8), 4) == [2, 2]


# By fault: its type, and words of its message.
_FAULTS: dict[str, tuple[type[Exception], str, Callable[[ModuleType], Any]]] = {
    "a tensor of the CPU": (RuntimeError, "x must be a CUDA tensor", lambda m: m.leaky(torch.zeros(3), 0.5)),
    "its device": (RuntimeError, "x is on cpu", lambda m: m.row_sums(torch.zeros(3, 3))),
    "its dimensions": (RuntimeError, "x has 1 dimensions, want 2", lambda m: m.row_sums(torch.zeros(3))),
    "its type": (
        RuntimeError,
        "two tensors of half, of one shape",
        lambda m: m.half_add(torch.zeros(3), torch.zeros(3)),
    ),
    "a half": (
        RuntimeError,
        "a must be on a GPU",
        lambda m: m.half_add(torch.zeros(4).half(), torch.zeros(4).half()),
    ),
    "no tensor": (TypeError, "incompatible function arguments", lambda m: m.leaky(3, 0.5)),
}


@pytest.mark.parametrize("fault", _FAULTS)
def test_faults_are_those_of_torch(modules: dict[str, ModuleType], fault: str) -> None:
    kind, words, call = _FAULTS[fault]
    for tier, module in modules.items():
        with pytest.raises(kind) as caught:
            call(module)
        assert type(caught.value) is kind, tier
        assert words in str(caught.value), tier


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_results_are_those_of_torch(modules: dict[str, ModuleType]) -> None:
    x = torch.linspace(-2, 2, 4096, device="cuda").reshape(64, 64)
    for module in modules.values():
        torch.testing.assert_close(module.leaky(x, 0.1), torch.nn.functional.leaky_relu(x, 0.1))
        torch.testing.assert_close(module.leaky(x.bfloat16(), 0.0), x.bfloat16().relu())
        torch.testing.assert_close(module.row_sums(x), x.sum(1))
        torch.testing.assert_close(module.half_add(x.half(), x.half()), (x + x).half())
