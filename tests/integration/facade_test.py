"""The facade of Torch's C++ API behaves as Torch: one program on every tier of headers, called from Python."""

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

_SOURCE = Path(__file__).resolve().parents[1] / "data" / "facade" / "everything.cc"
_TORCH = Path(torch.__file__).parent
_FACADE = Path(os.environ["WARPSMITH_BIN_DIR"]).resolve().parent / "share" / "warpsmith" / "facade"

_TORCH_INCLUDES = ["-isystem", f"{_TORCH}/include", "-isystem", f"{_TORCH}/include/torch/csrc/api/include"]
_TORCH_LIBRARIES = [f"-L{_TORCH}/lib", "-lc10", "-ltorch_cpu", "-ltorch"]
_OWN_INCLUDES = ["-isystem", f"{_FACADE}/include"]
_OWN_LIBRARY = [f"-L{_FACADE}", "-lwarpsmith_facade"]
_TIERS = {
    "facade": (["-isystem", f"{_FACADE}/shims", *_OWN_INCLUDES], _OWN_LIBRARY),
    "light": (["-isystem", f"{_FACADE}/light", *_OWN_INCLUDES, *_TORCH_INCLUDES], _OWN_LIBRARY + _TORCH_LIBRARIES),
    "torch": (
        [*_TORCH_INCLUDES, "-isystem", sysconfig.get_paths()["include"], "-DTORCH_API_INCLUDE_EXTENSION_H"],
        [*_TORCH_LIBRARIES, "-ltorch_python"],
    ),
}


def compile_on(tier: str, folder: Path) -> ModuleType:
    """The program, compiled with the headers of a tier, as a module."""
    includes, libraries = _TIERS[tier]
    name = f"everything_{tier}"
    path = folder / f"{name}.so"
    flags = ["-shared", "-fPIC", "-std=c++17", "-O0", "-w", "-D_GLIBCXX_USE_CXX11_ABI=1"]
    command = ["g++", *flags, f"-DTORCH_EXTENSION_NAME={name}", *includes, str(_SOURCE), *libraries, "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[:4000]
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModuleType]:
    """The program by tier."""
    ctypes.CDLL(str(_FACADE / "libwarpsmith_facade.so"), mode=ctypes.RTLD_GLOBAL)
    folder = tmp_path_factory.mktemp("facade")
    return {tier: compile_on(tier, folder) for tier in _TIERS}


def _changed(function: Callable[[torch.Tensor], Any], x: torch.Tensor) -> torch.Tensor:
    assert function(x) is None
    return x


_X = torch.linspace(-2, 2, 48).reshape(6, 8)
_IMAGE = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)
_KERNEL = torch.linspace(-1, 1, 4 * 3 * 9).reshape(4, 3, 3, 3)

_CALLS: dict[str, Callable[[ModuleType], Any]] = {
    "float": lambda m: m.dispatched(_X),
    "double": lambda m: m.dispatched(_X.double()),
    "half": lambda m: m.dispatched(_X.half()),
    "integers": lambda m: m.by_type(torch.arange(10)),
    "accessors": lambda m: m.accessors(_X),
    "parallel_for": lambda m: m.in_parallel(_X),
    "operators": lambda m: m.operators(_X, _X[:3] * 0.3, torch.tensor([0.1, 0.2, 0.3])),
    "layers": lambda m: m.layers(_IMAGE, _KERNEL, torch.ones(4)),
    "no bias": lambda m: m.layers(_IMAGE, weight=_KERNEL),
    "a list": lambda m: m.several(_X, 1),
    "a tuple": lambda m: m.pair(_X),
    "defaults": lambda m: m.keywords(_X),
    "keywords": lambda m: m.keywords(_X, negate=True, scale=3, mode="half", times=2),
    "in place": lambda m: _changed(m.in_place, _X.clone()),
    "a string": lambda m: m.describe(_X),
    "numbers": lambda m: m.numbers([1, 2], [0.5, 2]),
    "none": lambda m: m.numbers((1, 2), (0.5,), None),
    "an overload": lambda m: (m.overloaded(1), m.overloaded("x")),
    "a docstring": lambda m: (m.__doc__, "Squares and adds one" in m.dispatched.__doc__),
}


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_equal, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("tier", ["facade", "light"])
@pytest.mark.parametrize("call", _CALLS)
def test_results_are_those_of_torch(modules: dict[str, ModuleType], tier: str, call: str) -> None:
    expected = _CALLS[call](modules["torch"])
    actual = _CALLS[call](modules[tier])
    assert _equal(actual, expected), (actual, expected)


# By fault: words of its message.
_FAULTS: dict[str, tuple[str, Callable[[ModuleType], Any]]] = {
    "a check": ("x must be contiguous, its strides are [1, 8]", lambda m: m.dispatched(_X.t())),
    "a type": ("not implemented for 'Long'", lambda m: m.dispatched(torch.arange(3))),
    "another type": ("expected scalar type Float but found Double", lambda m: m.in_parallel(_X.double())),
    "an accessor": ("expected 2 dims but tensor has 3", lambda m: m.accessors(_X[None])),
    "a size": ("Dimension out of range", lambda m: m.accessors(_X[0])),
    "an operator": ("", lambda m: m.operators(_X, _X[:, :3], _X)),
    "no tensor": ("incompatible function arguments", lambda m: m.dispatched(3)),
    "too many": ("incompatible function arguments", lambda m: m.dispatched(_X, _X)),
    "an unknown keyword": ("incompatible function arguments", lambda m: m.keywords(_X, scaling=2)),
    "a fraction": ("incompatible function arguments", lambda m: m.keywords(_X, times=1.5)),
    "an overflow": ("incompatible function arguments", lambda m: m.keywords(_X, times=1 << 40)),
}


def _raised(call: Callable[[ModuleType], Any], module: ModuleType) -> Exception:
    with pytest.raises(Exception) as raised:  # noqa: B017, PT011 - its type is what is tested
        call(module)
    return raised.value


@pytest.mark.parametrize("tier", ["facade", "light"])
@pytest.mark.parametrize("fault", _FAULTS)
def test_faults_are_those_of_torch(modules: dict[str, ModuleType], tier: str, fault: str) -> None:
    words, call = _FAULTS[fault]
    expected, actual = _raised(call, modules["torch"]), _raised(call, modules[tier])
    assert type(actual) is type(expected)
    assert words in str(expected)
    assert words in str(actual)
