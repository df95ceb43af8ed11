"""What people do without a reward service: load_inline, allclose and time.perf_counter, in one process.

Reads answers as JSON lines on standard input and prints a line for each: name, seconds to compile, seconds in all.
"""

import json
import sys
import tempfile
import time
from typing import Any

import torch
import torch.utils.cpp_extension

_WARM_UP, _CALLS = 3, 20


def time_calls(model: torch.nn.Module, inputs: list[Any]) -> float:
    """Mean seconds of a call."""
    for _ in range(_WARM_UP):
        model(*inputs)
    begin = time.perf_counter()
    for _ in range(_CALLS):
        model(*inputs)
    return (time.perf_counter() - begin) / _CALLS


def evaluate(answer: dict[str, str]) -> dict[str, Any]:
    """Compiles, compares on one draw, times both sides."""
    begin = time.perf_counter()
    reference: dict[str, Any] = {}
    candidate: dict[str, Any] = {}
    exec(answer["reference"], reference)  # noqa: S102 - as the scripts do
    exec(answer["answer"], candidate)  # noqa: S102
    compiled = time.perf_counter()
    model, new_model = reference["Model"](), candidate["ModelNew"]()
    inputs = reference["get_inputs"]()
    with torch.no_grad():
        right = torch.allclose(model(*inputs), new_model(*inputs), rtol=1e-4, atol=1e-4)
        speedup = time_calls(model, inputs) / time_calls(new_model, inputs)
    return {
        "name": answer["name"],
        "right": right,
        "speedup": speedup,
        "compile_seconds": compiled - begin,
        "seconds": time.perf_counter() - begin,
    }


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        torch.utils.cpp_extension.get_default_build_root = lambda: folder  # nothing that was built before is found
        for line in sys.stdin:
            print(json.dumps(evaluate(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
