"""What is learned of Triton's library: launches with arguments of all kinds, and nothing of its compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

_PROGRAM = """
import sys
sys.path[:0] = [{jail!r}]
import triton_kernels
triton_kernels.import_triton()
from triton._C.libtriton import ir
ir.context = None  # which compiling begins with
import permitted, triton_exercise
triton_exercise.launch(permitted._tensors())
print(len(triton_exercise._kernel.device_caches[0][0]), "kinds of launches")
"""


def test_launches_of_all_kinds_compile_nothing() -> None:
    """In a process of its own, for what takes the place of Triton's compiler stays."""
    jail = str(Path(__file__).parents[4] / "reward_service" / "jail")
    command = [sys.executable, "-c", _PROGRAM.format(jail=jail)]
    told = subprocess.run(command, text=True, capture_output=True, timeout=100)
    assert told.returncode == 0, told.stderr[-2000:]
    assert int(told.stdout.split()[0]) > 20
