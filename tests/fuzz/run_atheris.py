"""Fuzzes a check of this folder with Atheris: libFuzzer over Python, guided by the branches that datasets/ takes.

    python -m tests.fuzz.run_atheris NAME [libFuzzer's options and folders]

NAME is a module of this folder with a function check(data: bytes); what it raises is a finding.
"""

import importlib
import sys
import tempfile
from pathlib import Path

import atheris

from tests.fuzz.program_mutator import mutate

_MEMORY_FOLDER = Path("/dev/shm")  # every input makes folders, which a disk makes slowly


def _change(data: bytes, bytes_max: int, seed: int) -> bytes:
    return mutate(data, bytes_max, seed) if seed % 4 else atheris.Mutate(data, bytes_max)


def main() -> None:
    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=["datasets"], enable_loader_override=False):
        module = importlib.import_module(f"tests.fuzz.{name}")
    if _MEMORY_FOLDER.is_dir():
        tempfile.tempdir = str(_MEMORY_FOLDER)
    atheris.Setup(sys.argv, module.check, custom_mutator=_change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
