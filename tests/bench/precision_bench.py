"""How well a speed-up repeats: the same kernel graded again and again, and the reference put through as a candidate.

Kernels of 1 to 20 ms, the smallest within a core's second-level cache, the largest over 64 MB, each graded with an idle
core beside the lane and with one that decodes as a rollout worker does. The reference itself, as a Python candidate,
must not be distinguishable from the reference: its grade is HACK, but its timing is reported like any other.

The peer is what a machine lets repeat at all: reference and kernel called by turns in one plain process, by itself on
the lane's core, with warm data and no sandbox, for as long as a grading times them.

./dev bench precision [--gradings N] [--only NAME] [--set KEY=VALUE ...]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpsmith_reward import Grade, Request, RewardClient

from tests.hacks.own_service import own_service

# What is wanted of the speed-up, over its median.
_SPREAD_WANTED = 0.03
_RANGE_WANTED = 0.08
_REFERENCE_WANTED = 0.95

_TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
{body}


def get_inputs():
    return [torch.randn({rows}, {cols})]


def get_init_inputs():
    return []
"""
KERNEL = """
#include <dlpack/dlpack.h>
#include <cmath>
static int number_{number} = 0;
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const*, DLTensor* const* outputs) {{
  const float* x = static_cast<const float*>(inputs[0]->data);
  float* y = static_cast<float*>(outputs[0]->data);
  const int64_t rows = inputs[0]->shape[0], cols = inputs[0]->shape[1];
  number_{number} += 1;
{body}
  return 0;
}}
"""
_SOFTMAX = """
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    float top = x[0], sum = 0;
    for (int64_t c = 1; c < cols; ++c) top = x[c] > top ? x[c] : top;
    for (int64_t c = 0; c < cols; ++c) sum += y[c] = std::exp(x[c] - top);
    for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
  }
"""
_AFFINE = """
  const int64_t n = rows * cols;
  for (int64_t i = 0; i < n; ++i) {
    const float v = 2 * x[i] + 1;
    y[i] = v > 0 ? v * v : 0;
  }
"""
_GRAM = """
  for (int64_t r = 0; r < rows; ++r) {
    float* out = y + r * rows;
    for (int64_t s = 0; s < rows; ++s) out[s] = 0;
    for (int64_t s = 0; s < rows; ++s) {
      float sum = 0;
#pragma GCC ivdep
      for (int64_t c = 0; c < cols; ++c) sum += x[r * cols + c] * x[s * cols + c];
      out[s] = sum;
    }
  }
"""
_PLAIN = """
#include <cmath>
#include <cstdint>
extern "C" void plain(const float* x, float* y, int64_t rows, int64_t cols) {{
{body}
}}
"""
_AFFINE_MODEL = "        return torch.relu(2 * x + 1) ** 2"
CASES = {
    "softmax, 1 MB in all": (_TASK.format(body="        return torch.softmax(x, 1)", rows=128, cols=1024), _SOFTMAX),
    "affine chain, 8 MB": (_TASK.format(body=_AFFINE_MODEL, rows=1024, cols=1024), _AFFINE),
    "products of rows, 2 MB": (_TASK.format(body="        return x @ x.T", rows=256, cols=512), _GRAM),
    "affine chain, 64 MB": (_TASK.format(body=_AFFINE_MODEL, rows=2048, cols=4096), _AFFINE),
}


@dataclass(frozen=True)
class Repeats:
    """Of one kernel: speed-ups of its gradings, and how they scatter over their median."""

    name: str
    beside: str
    speedups: list[float]
    milliseconds: float
    seconds_of_lane: float

    @property
    def median(self) -> float:
        return statistics.median(self.speedups)

    @property
    def spread(self) -> float:
        """Interquartile range over the median."""
        low, _, high = statistics.quantiles(self.speedups, n=4, method="inclusive")
        return (high - low) / self.median

    @property
    def range(self) -> float:
        """Full range over the median."""
        return (max(self.speedups) - min(self.speedups)) / self.median

    def line(self) -> str:
        """As it is printed."""
        return (
            f"{self.name:<26}{self.beside:<14}{self.milliseconds:7.2f} ms  speed-up {self.median:6.3f}  "
            f"IQR {self.spread:6.1%}  range {self.range:6.1%}  lane {self.seconds_of_lane:5.2f} s"
        )

    def fields(self) -> dict[str, Any]:
        """As it is written down."""
        return {
            "kernel": self.name,
            "beside": self.beside,
            "gradings": len(self.speedups),
            "milliseconds": self.milliseconds,
            "lane_seconds": self.seconds_of_lane,
            "speedup": self.median,
            "interquartile_range": self.spread,
            "full_range": self.range,
            "speedups": self.speedups,
        }


def _lane_and_others() -> tuple[list[int], list[int]]:
    """Cores of the service's lanes, the last of four or fewer, else the last half, and those beside them."""
    cores = sorted(os.sched_getaffinity(0))
    lane = cores[-1:] if len(cores) <= 4 else cores[-(len(cores) // 2) :]
    return lane, [core for core in cores if core not in lane] or cores


def _time_plainly(name: str, gradings: int, seconds: float, pause: float, results: multiprocessing.Queue[Any]) -> None:
    """Speed-ups, each with the kernel's milliseconds, as a script would measure them: nothing else is called."""
    os.sched_setaffinity(0, _lane_and_others()[0])
    import torch

    torch.set_num_threads(1)
    task, body = CASES[name]
    module: dict[str, Any] = {}
    exec(task, module)  # noqa: S102 - our own
    (x,), model = module["get_inputs"](), module["Model"]()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "plain.cc"
        source.write_text(_PLAIN.format(body=body))
        command = ["g++", "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(source.with_suffix(".so"))]
        subprocess.run(command, check=True, timeout=120)
        plain = ctypes.CDLL(str(source.with_suffix(".so"))).plain
    y = torch.empty_like(model(x))
    arguments = [ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), *map(ctypes.c_int64, x.shape)]

    def timed(call: Callable[[], object]) -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    for _ in range(gradings):
        time.sleep(pause)
        ratios: list[float] = []
        milliseconds: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or not ratios:
            before = timed(lambda: model(x))
            kernel = timed(lambda: plain(*arguments)) + timed(lambda: plain(*arguments))
            milliseconds.append(kernel / 2 * 1e3)
            ratios.append((before + timed(lambda: model(x))) / kernel)
        results.put((statistics.median(ratios), statistics.median(milliseconds)))


def repeat_plainly(name: str, gradings: int, seconds: float, pause: float) -> Repeats:
    """The same kernel against the same reference, without a referee, over as long a time as the gradings took."""
    results: multiprocessing.Queue[Any] = multiprocessing.Queue()
    process = multiprocessing.Process(target=_time_plainly, args=(name, gradings, seconds, pause, results))
    process.start()
    speedups, milliseconds = zip(*(results.get(timeout=180) for _ in range(gradings)), strict=True)
    process.join(10)
    return Repeats(name, "plain process", list(speedups), statistics.median(milliseconds), seconds)


def _decode(cores: Sequence[int]) -> None:
    """Products of a small matrix with few columns, for ever: what decoding is made of."""
    os.sched_setaffinity(0, cores)
    import torch

    torch.set_num_threads(1)
    weight, rows = torch.randn(2048, 512), torch.randn(512, 16)
    while True:
        weight @ rows


@contextmanager
def _load(busy: bool) -> Iterator[None]:
    """A decoding process on every core but the lane's."""
    if not busy:
        yield
        return
    workers = [multiprocessing.Process(target=_decode, args=([core],), daemon=True) for core in _lane_and_others()[1]]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.kill()
            worker.join(10)


def _grade(client: RewardClient, request: Request) -> Grade:
    grade = client.grade(request)
    if "timing" not in grade.message:
        raise RuntimeError(f"no timing: {grade.verdict} {grade.reason}")
    return grade


def _lane_seconds(grade: Grade) -> float:
    cost = grade.message.get("cost", {})
    return sum(float(cost.get(name, 0.0)) for name in ("verifySeconds", "timeSeconds", "profileSeconds"))


def repeat_kernel(client: RewardClient, name: str, beside: str, gradings: int, first: int) -> Repeats:
    """The same kernel under names of its own, so that no grade is remembered."""
    task, body = CASES[name]
    grades = [
        _grade(client, Request(task, source=KERNEL.format(number=first + k, body=body), language="cpp"))
        for k in range(gradings)
    ]
    timings = [grade.message["timing"] for grade in grades]
    return Repeats(
        name,
        beside,
        [float(timing["speedup"]) for timing in timings],
        statistics.median(float(timing["candidate"]["medianUs"]) / 1e3 for timing in timings),
        statistics.median(map(_lane_seconds, grades)),
    )


def repeat_reference(client: RewardClient, name: str, gradings: int, first: int) -> int:
    """How often the reference, as a candidate, is called not distinguishable from itself."""
    task, _ = CASES[name]
    told_apart = 0
    for k in range(gradings):
        source = task.replace("class Model(", f"number_{first + k} = 0\n\n\nclass ModelNew(")
        grade = _grade(client, Request(task, source=source, language="kernelbench_python"))
        told_apart += bool(grade.message["timing"].get("distinguishable", False))
    return gradings - told_apart


def main() -> int:
    """Writes what was measured; 1 where it scatters more than is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gradings", type=int, default=20)
    parser.add_argument("--only", default="", help="part of a kernel's name")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of reward_service")
    arguments = parser.parse_args()
    settings = dict(text.split("=", 1) for text in arguments.set)
    rows: list[Repeats] = []
    plain: list[Repeats] = []
    same: dict[str, int] = {}
    names = [name for name in CASES if arguments.only in name]
    with own_service(settings) as address:
        client = RewardClient(address)
        for beside in ("idle", "decoding"):
            with _load(beside == "decoding"):
                for name in names:
                    first = len(rows) * arguments.gradings
                    start = time.monotonic()
                    last = repeat_kernel(client, name, beside, arguments.gradings, first)
                    rows.append(last)
                    print(last.line(), flush=True)
                    if beside == "idle":
                        pause = (time.monotonic() - start) / arguments.gradings - last.seconds_of_lane
                        plain.append(repeat_plainly(name, arguments.gradings, last.seconds_of_lane, max(0.0, pause)))
                        print(plain[-1].line(), flush=True)
        for name in names:
            same[name] = repeat_reference(client, name, arguments.gradings, 0)
            print(
                f"{name:<26}reference as candidate: not distinguishable {same[name]} of {arguments.gradings}",
                flush=True,
            )
    within = all(row.spread <= _SPREAD_WANTED and row.range <= _RANGE_WANTED for row in rows) and all(
        count >= _REFERENCE_WANTED * arguments.gradings for count in same.values()
    )
    results = {
        "wanted": {"interquartile_range": _SPREAD_WANTED, "full_range": _RANGE_WANTED, "reference": _REFERENCE_WANTED},
        "within": within,
        "kernels": [row.fields() for row in rows],
        "plain_process": [row.fields() for row in plain],
        "reference_not_distinguishable": same,
        "gradings": arguments.gradings,
        "settings": settings,
        "hardware": os.uname().machine + f", {os.cpu_count()} cores",
        "revision": os.environ.get("WARPSMITH_REVISION", "unknown"),
    }
    arguments.out.write_text(json.dumps(results, indent=1))
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
