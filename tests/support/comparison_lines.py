"""The referee's comparison, for tests in Python: see comparison_lines_main.cc."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

_SERVICE = Path(__file__).resolve().parents[2] / "reward_service"
sys.path[:0] = [str(_SERVICE / "oracle"), str(_SERVICE / "jail")]
from messages import fields_of  # noqa: E402
from tensors import CODES  # noqa: E402
from tolerance import Tolerance  # noqa: E402

# A tolerance, what is expected, and an answer.
Case = tuple[Tolerance, torch.Tensor, torch.Tensor]


def _hexadecimal(tensor: torch.Tensor | None) -> str:
    return "" if tensor is None else tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes().hex()


def _line(case: Case) -> str:
    tolerance, expected, actual = case
    code, bits = CODES[expected.dtype]
    numbers = {"code": code, "bits": bits, "tolerance": fields_of(tolerance.message())}
    tensors = {"expected": expected, "margins": tolerance.words, "actual": actual}
    return json.dumps({**numbers, **{name: _hexadecimal(tensor) for name, tensor in tensors.items()}}) + "\n"


def compare(cases: list[Case]) -> list[dict[str, Any]]:
    """Returns what the referee says of each."""
    binary = Path(os.environ["WARPSMITH_BIN_DIR"]).parent / "tests" / "comparison_lines"
    lines = "".join(map(_line, cases))
    done = subprocess.run([binary], input=lines, capture_output=True, text=True, check=True, timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()]
