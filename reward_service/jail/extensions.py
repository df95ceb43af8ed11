"""load_inline in a jail: nothing compiles here. A first run records what is asked for, a later one loads what was built."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import re
import sys
from types import ModuleType
from typing import Any

import torch.utils.cpp_extension

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class RecordingEnded(Exception):
    """A recorded extension was called: there is nothing behind it yet."""


class Placeholder(ModuleType):
    """Stands for an extension that is not built: any name can be taken from it, none can be called."""

    def __getattr__(self, name: str) -> Any:
        def ended(*_: Any, **__: Any) -> Any:
            raise RecordingEnded(name)

        return ended


def _texts(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(value)] if isinstance(value, str) else [str(part) for part in value]


def record_of(arguments: dict[str, Any]) -> dict[str, Any]:
    """The call as the compiler pool takes it. Raises ValueError for a name that is no identifier."""
    name = str(arguments["name"])
    if not _NAME.fullmatch(name):
        raise ValueError(f"extension name {name[:80]!r}: want an identifier of at most 64 characters")
    functions = arguments.get("functions")
    return {
        "name": name,
        "cpp_sources": _texts(arguments.get("cpp_sources")),
        "cuda_sources": _texts(arguments.get("cuda_sources")),
        "functions": list(functions) if isinstance(functions, dict) else _texts(functions),
        "extra_cflags": _texts(arguments.get("extra_cflags")),
        "extra_cuda_cflags": _texts(arguments.get("extra_cuda_cflags")),
        "extra_ldflags": _texts(arguments.get("extra_ldflags")),
    }


class Extensions:
    """Takes the place of load_inline."""

    def __init__(self, libraries: list[bytes] | None) -> None:
        """`libraries` are the built files in the order of the calls; None records."""
        self.records: list[dict[str, Any]] = []
        self._libraries = libraries

    def load_inline(
        self, name: str, cpp_sources: Any = None, cuda_sources: Any = None, *positional: Any, **others: Any
    ) -> ModuleType:
        """As torch.utils.cpp_extension.load_inline, as far as answers use it."""
        if positional:
            others.setdefault("functions", positional[0])
        record = record_of({"name": name, "cpp_sources": cpp_sources, "cuda_sources": cuda_sources, **others})
        self.records.append(record)
        if self._libraries is None:
            return Placeholder(record["name"])
        return self._load(record["name"], len(self.records) - 1)

    def _load(self, name: str, index: int) -> ModuleType:
        assert self._libraries is not None
        if index >= len(self._libraries):
            raise RuntimeError(f"load_inline call {index + 1} was not seen when the program was first run")
        folder = f"/tmp/extension{index}"
        os.mkdir(folder)
        path = os.path.join(folder, f"{name}.so")
        with open(path, "wb") as file:
            file.write(self._libraries[index])
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        sys.modules[name] = module
        return module

    def install(self) -> None:
        """Replaces load_inline for every later import; `load`, which reads files, is refused."""
        torch.utils.cpp_extension.load_inline = self.load_inline
        torch.utils.cpp_extension.load = _refuse


def _refuse(*_: Any, **__: Any) -> Any:
    raise RuntimeError("torch.utils.cpp_extension.load reads files, which a candidate does not have: use load_inline")
