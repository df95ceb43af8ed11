"""load_inline in a jail: nothing compiles here. A first run records what is asked for, a later one loads what was built."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import re
import sys
from functools import partial
from types import ModuleType
from typing import Any

import torch.utils.cpp_extension
from messages import Extension, KnownGpu

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# Read-only by this name; the only files that count as the candidate's own code.
_FOLDER = "/candidate"


class RecordingEnded(Exception):
    """A recorded extension was called: there is nothing behind it yet."""


class _Properties:
    """Of a GPU, as far as they are known; `asked` is told of others."""

    def __init__(self, gpu: KnownGpu, asked: list[str]) -> None:
        self.name, self.major, self.minor = gpu.name, gpu.capability_major, gpu.capability_minor
        self.total_memory, self.multi_processor_count = gpu.memory_bytes, gpu.num_multiprocessors
        self.L2_cache_size = gpu.l2_cache_bytes
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        self._asked.append(name)
        raise AttributeError(name)


def tell_about_gpu(gpu: KnownGpu) -> list[str]:
    """Has torch.cuda answer as it will where the program runs, on this GPU, which the present process does not have:
    many programs ask whether there is one, and which, before they ask for an extension. The list that is returned gets
    the names of what is asked from now on and cannot be answered without one."""
    asked: list[str] = []

    def noting(name: str, function: Any) -> Any:
        def note(*arguments: Any, **named: Any) -> Any:
            asked.append(name)
            return function(*arguments, **named)

        return note

    capability = gpu.capability_major, gpu.capability_minor
    answers = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": gpu.name,
        "get_device_capability": capability,
        "get_device_properties": _Properties(gpu, asked),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, partial(_answer, answer))
    torch.cuda.is_bf16_supported = lambda including_emulation=True: including_emulation or capability >= (8, 0)
    torch.cuda.mem_get_info = noting("mem_get_info", torch.cuda.mem_get_info)
    for module in (torch.cuda, torch.cuda.random, torch.cuda.memory):  # which have a name for it each
        module._lazy_init = noting("_lazy_init", module._lazy_init)  # type: ignore[attr-defined]
    for kind in (torch.cuda.Stream, torch.cuda.CUDAGraph):
        setattr(
            torch.cuda, kind.__name__, type(kind.__name__, (kind,), {"__new__": noting(kind.__name__, kind.__new__)})
        )
    return asked


def _answer(answer: Any, *_: Any, **__: Any) -> Any:
    return answer


class Placeholder(ModuleType):
    """Stands for an extension that is not built: any name can be taken from it, none can be called."""

    def __getattr__(self, name: str) -> Any:
        def ended(*_: Any, **__: Any) -> Any:
            raise RecordingEnded(name)

        return ended


def _file_name(index: int) -> str:
    return f"extension{index}.so"


def write_libraries(libraries: list[bytes], folder: int) -> None:
    """Writes built extensions, in the order of their calls, by the descriptor of their folder, and closes it: from then
    on nobody in this process can change them."""
    for index, library in enumerate(libraries):
        file = os.open(_file_name(index), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o500, dir_fd=folder)
        with open(file, "wb") as stream:
            stream.write(library)
    os.close(folder)


def _texts(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(value)] if isinstance(value, str) else [str(part) for part in value]


def record_of(
    name: Any,
    cpp_sources: Any = None,
    cuda_sources: Any = None,
    functions: Any = None,
    extra_cflags: Any = None,
    extra_cuda_cflags: Any = None,
    extra_ldflags: Any = None,
    with_cuda: Any = None,
    **_: Any,
) -> Extension:
    """The call as the compiler pool takes it. Raises ValueError for a name that is no identifier."""
    if not _NAME.fullmatch(str(name)):
        raise ValueError(f"extension name {str(name)[:80]!r}: want an identifier of at most 64 characters")
    return Extension(
        name=str(name),
        cpp_sources=_texts(cpp_sources),
        cuda_sources=_texts(cuda_sources),
        functions=list(functions) if isinstance(functions, dict) else _texts(functions),
        extra_cflags=_texts(extra_cflags),
        extra_cuda_cflags=_texts(extra_cuda_cflags),
        extra_ldflags=_texts(extra_ldflags),
        with_cuda=bool(with_cuda or cuda_sources),
    )


class Extensions:
    """Takes the place of load_inline."""

    def __init__(self, num_libraries: int | None) -> None:
        """`num_libraries` of them were built and written; None records."""
        self.records: list[Extension] = []  # of calls that differ: a model with many layers repeats one for each
        self._modules: dict[int, ModuleType] = {}
        self._num_libraries = num_libraries

    def load_inline(
        self, name: str, cpp_sources: Any = None, cuda_sources: Any = None, *positional: Any, **others: Any
    ) -> ModuleType:
        """As torch.utils.cpp_extension.load_inline, as far as answers use it."""
        if positional:
            others.setdefault("functions", positional[0])
        record = record_of(name, cpp_sources, cuda_sources, **others)
        if record not in self.records:
            self.records.append(record)
        if self._num_libraries is None:
            return Placeholder(record.name)
        index = self.records.index(record)
        if index not in self._modules:
            self._modules[index] = self._load(record.name, index)
        return self._modules[index]

    def _load(self, name: str, index: int) -> ModuleType:
        assert self._num_libraries is not None
        if index >= self._num_libraries:
            raise RuntimeError(f"load_inline call {index + 1} was not seen when the program was first run")
        path = f"{_FOLDER}/{_file_name(index)}"
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        assert spec is not None
        module = _load_with_own_symbols(spec)
        sys.modules[name] = module
        return module

    def install(self) -> None:
        """Replaces load_inline for every later import; `load`, which reads files, is refused."""
        torch.utils.cpp_extension.load_inline = self.load_inline
        torch.utils.cpp_extension.load = _refuse


def _load_with_own_symbols(spec: importlib.machinery.ModuleSpec) -> ModuleType:
    """Instances of C++ templates and inline functions are those of the extension. Without this the loader takes the
    first of their name in the process: a library's, which would do the program's work, and which may be withheld."""
    assert spec.loader is not None
    flags = sys.getdlopenflags()
    sys.setdlopenflags(flags | os.RTLD_DEEPBIND)
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.setdlopenflags(flags)


def _refuse(*_: Any, **__: Any) -> Any:
    raise RuntimeError("torch.utils.cpp_extension.load reads files, which a candidate does not have: use load_inline")
