"""A kernel and its reference timed by turns in one plain process, on data as cold as a referee's: no sandbox, no stops.

Before each call inputs and outputs are written past the caches, and a kernel's outputs are compared after it, as a
referee does. Prints the speed-up and the kernel's milliseconds.

python -m tests.bench.precision_peer KERNEL CORE LIBRARY ROUNDS SECONDS: LIBRARY by compile_kernel, the rounds spread
over the seconds, with the malloc settings of the jails in its environment
"""

from __future__ import annotations

import ctypes
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tests.bench.precision_kernels import CASES

# Calls that are longer are not made warm by another one before (reward_service/referee/timing_plan.h).
_LONG_CALL_SECONDS = 0.005
_NUM_INPUT_SETS = 8

_SOURCE = """
#include <cmath>
#include <cstdint>
#include <cstring>
#include <emmintrin.h>

static void stream(float* to, const float* from, int64_t n) {{
  for (int64_t i = 0; i < n; i += 4) _mm_stream_ps(to + i, from != nullptr ? _mm_loadu_ps(from + i) : _mm_set1_ps(-1));
}}

extern "C" void load(float* x, const float* from, int64_t num_inputs, float* y, int64_t num_outputs) {{
  stream(x, from, num_inputs);
  stream(y, nullptr, num_outputs);
  _mm_sfence();
}}

extern "C" int64_t num_wrong(const float* y, const float* expected, int64_t n) {{
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; ++i) wrong += !(std::abs(y[i] - expected[i]) <= 1e-3f + 1e-3f * std::abs(expected[i]));
  return wrong;
}}

extern "C" void kernel(const float* x, float* y, int64_t rows, int64_t cols) {{
{body}
}}
"""


def compile_kernel(name: str, library: Path) -> None:
    """The kernel and what surrounds its calls, as a library for many processes."""
    source = library.with_suffix(".cc")
    source.write_text(_SOURCE.format(body=CASES[name][1]))
    command = ["g++", "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(command, check=True, timeout=120)


def _address(tensor: torch.Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


class Peer:
    """One kernel beside its reference."""

    def __init__(self, name: str, library: str) -> None:
        task, _ = CASES[name]
        module: dict[str, Any] = {}
        exec(task, module)  # noqa: S102 - our own
        self._model = module["Model"]()
        self._sets = [module["get_inputs"]()[0] for _ in range(_NUM_INPUT_SETS)]
        self._expected = [self._model(x) for x in self._sets]
        self._x, self._y = torch.empty_like(self._sets[0]), torch.empty_like(self._expected[0])
        self._library = ctypes.CDLL(library)
        self._library.num_wrong.restype = ctypes.c_int64
        self._next = 0
        self._warms_reference = self.time_reference() < _LONG_CALL_SECONDS
        self._calls_twice = self.time_kernel() < _LONG_CALL_SECONDS

    def _load(self) -> int:
        index = self._next = (self._next + 1) % _NUM_INPUT_SETS
        sizes = ctypes.c_int64(self._x.numel()), ctypes.c_int64(self._y.numel())
        self._library.load(_address(self._x), _address(self._sets[index]), sizes[0], _address(self._y), sizes[1])
        return index

    def time_reference(self) -> float:
        """Seconds of one call."""
        self._load()
        return _seconds(lambda: self._model(self._x))

    def time_kernel(self) -> float:
        """Seconds of one call, whose outputs are then compared."""
        index = self._load()
        shape = map(ctypes.c_int64, self._x.shape)
        arguments = [_address(self._x), _address(self._y), *shape]
        seconds = _seconds(lambda: self._library.kernel(*arguments))
        size = ctypes.c_int64(self._y.numel())
        if self._library.num_wrong(_address(self._y), _address(self._expected[index]), size):
            raise RuntimeError("the kernel is wrong")
        return seconds

    def time_round(self) -> tuple[float, float]:
        """Reference, kernel, kernel, reference; a long kernel once. Mean seconds of either."""
        reference = 0.0
        kernel: list[float] = []
        for _ in range(2):
            if self._warms_reference:
                self.time_reference()
            reference += self.time_reference() / 2
            while len(kernel) < (2 if self._calls_twice else 1):
                kernel.append(self.time_kernel())
        return reference, statistics.mean(kernel)

    def measure(self, num_rounds: int, seconds: float) -> tuple[float, float]:
        """Speed-up and the kernel's milliseconds, by the medians over the rounds."""
        rounds = []
        start = time.perf_counter()
        for index in range(num_rounds):
            time.sleep(max(0.0, start + seconds * index / num_rounds - time.perf_counter()))
            rounds.append(self.time_round())
        speedup = statistics.median(reference / kernel for reference, kernel in rounds)
        return speedup, statistics.median(kernel for _, kernel in rounds) * 1e3


def main() -> None:
    """Measures once."""
    name, core, library, num_rounds, seconds = sys.argv[1:]
    os.sched_setaffinity(0, [int(core)])
    torch.set_num_threads(1)
    with torch.no_grad():
        print(*Peer(name, library).measure(int(num_rounds), float(seconds)))


if __name__ == "__main__":
    main()
