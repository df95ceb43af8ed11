"""How well a speed-up repeats: the same kernel graded again and again, and the reference put through as a candidate.

Each kernel of precision_kernels.py is graded with an idle core beside the lane and with one that decodes as a rollout
worker does. The reference itself, as a Python candidate, must not be distinguishable from the reference: its grade is
HACK, but its timing is reported like any other.

The peer is what a machine lets repeat at all: reference and kernel called by turns in a plain process on the lane's
core (precision_peer.py), a new one for every measurement, on data as cold as a referee's, as often as a grading calls
them and over as long a time, by turns with the gradings.

./dev bench precision [--gradings N] [--only NAME] [--set KEY=VALUE ...]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpsmith_reward import Grade, Request, RewardClient

from tests.bench.precision_kernels import CASES, KERNEL
from tests.bench.precision_peer import compile_kernel
from tests.hacks.own_service import own_service

# What is wanted: the interquartile range over the plain process's, and the share of references that are not told apart.
_SPREAD_WANTED = 1.3
_REFERENCE_WANTED = 0.95

_TUNABLES = Path(__file__).resolve().parents[2] / "reward_service/jail/malloc_tunables.h"
_PEER_SECONDS_MAX = 60


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
            f"{self.name:<26}{self.beside:<16}{self.milliseconds:7.2f} ms  speed-up {self.median:6.3f}  "
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


class PlainProcess:
    """The same kernel against the same reference without a referee, in a process of its own for every measurement: a
    grading starts its candidate's processes anew, too, and where their pages lie is part of what varies."""

    def __init__(self, name: str, folder: Path) -> None:
        self._library = folder / "kernel.so"
        compile_kernel(name, self._library)
        tunables = re.search(r'"GLIBC_TUNABLES=(.*?);', _TUNABLES.read_text(), re.DOTALL)
        assert tunables
        self._environment = {**os.environ, "GLIBC_TUNABLES": re.sub(r'"\s*"|"$', "", tunables.group(1))}
        self._command = [sys.executable, "-m", "tests.bench.precision_peer", name, str(_lane_and_others()[0][0])]

    def measure(self, grade: Grade) -> tuple[float, float]:
        """Speed-up and milliseconds of as many calls, spread over as long a time, as those of `grade`."""
        told = [str(self._library), str(_num_rounds(grade)), str(_lane_seconds(grade))]
        run = subprocess.run(
            self._command + told,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=_PEER_SECONDS_MAX + _lane_seconds(grade),
            env=self._environment,
        )
        speedup, milliseconds = run.stdout.split()
        return float(speedup), float(milliseconds)


def _num_rounds(grade: Grade) -> int:
    return int(grade.message["timing"]["reference"]["numCalls"]) // 2


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


def repeat_kernel(client: RewardClient, name: str, beside: str, gradings: int, first: int) -> list[Repeats]:
    """The same kernel under names of its own, so that no grade is remembered; and by turns the plain process, so that
    both see the same moods of the machine."""
    task, body = CASES[name]
    grades: list[Grade] = []
    plain: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        process = PlainProcess(name, Path(folder))
        for k in range(gradings):
            grades.append(
                _grade(client, Request(task, source=KERNEL.format(number=first + k, body=body), language="cpp"))
            )
            plain.append(process.measure(grades[-1]))
    timings = [grade.message["timing"] for grade in grades]
    seconds = statistics.median(map(_lane_seconds, grades))
    graded = Repeats(
        name,
        beside,
        [float(timing["speedup"]) for timing in timings],
        statistics.median(float(timing["candidate"]["medianUs"]) / 1e3 for timing in timings),
        seconds,
    )
    speedups, milliseconds = zip(*plain, strict=True)
    peer = Repeats(name, f"{beside}, plain", list(speedups), statistics.median(milliseconds), seconds)
    return [graded, peer]


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
                    pair = repeat_kernel(client, name, beside, arguments.gradings, len(rows) * arguments.gradings)
                    print(pair[0].line(), pair[1].line(), sep="\n", flush=True)
                    rows.append(pair[0])
                    plain.append(pair[1])
        for name in names:
            same[name] = repeat_reference(client, name, arguments.gradings, 0)
            print(
                f"{name:<26}reference as candidate: not distinguishable {same[name]} of {arguments.gradings}",
                flush=True,
            )
    within = all(row.spread <= _SPREAD_WANTED * peer.spread for row, peer in zip(rows, plain, strict=True)) and all(
        count >= _REFERENCE_WANTED * arguments.gradings for count in same.values()
    )
    results = {
        "wanted": {"interquartile_range_of_plain": _SPREAD_WANTED, "reference": _REFERENCE_WANTED},
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
