"""How well times on a GPU repeat, and how far they are from CUDA events in a plain process.

Each kernel of gpu_timing_kernels.py is graded again and again, under another name each time. After each five, and a
rest of the service, a plain process (gpu_timing_peer.py) times the same program and its reference on data as cold, with
as many calls in a batch: while processes of the service end and start, kernels take up to 15 % longer. The reference
itself, as a Python candidate, should not be distinguishable from the reference.
With --load other clients have other programs compiled and verified meanwhile (gpu_timing_load.py); nothing is timed by
events then, for the GPU is never free. Whether an interval is honest shows beside the median of all gradings.

./dev bench gpu_timing --gpu [--resume] [--seconds N] [--gradings N] [--only NAME] [--without-peer] [--load CLIENTS]
                             [--address URL] [--set KEY=VALUE ...]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import zip_longest
from pathlib import Path

from warpsmith_reward import Grade, Request

from tests.bench.gpu_service import GpuService, add_service_arguments, open_service
from tests.bench.gpu_timing_kernels import KERNELS
from tests.bench.gpu_timing_load import other_work
from tests.bench.slices import Piece, Row, Slice, SliceOptions, add_slice_arguments, digest_of

_GRADINGS_OF_A_PIECE = 5
_BATCHES = 10  # of the plain process: a tenth of a second of the longest kernel
_REST_SECONDS = 1.0
_PEER_SECONDS_MAX = 60
_PEER_FILES = [Path(__file__).with_name(name) for name in ("gpu_timing_peer.py", "gpu_timing_kernels.py")]

# Microseconds of candidate and reference of a kernel, of a number of calls in a batch and a number of batches.
Events = Callable[[str, int, int], dict[str, float]]


@contextmanager
def plain_process(
    names: Sequence[str], command: Sequence[str] = (sys.executable, "-m", "tests.bench.gpu_timing_peer")
) -> Iterator[Events]:
    """The same programs against the same references, by CUDA events. It compiles them while the service starts."""
    process = subprocess.Popen([*command, *names], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout

    def measure(name: str, num_calls: int, num_batches: int) -> dict[str, float]:
        assert process.stdin and process.stdout
        print(json.dumps([name, num_calls, num_batches]), file=process.stdin, flush=True)
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the plain process ended when it was asked for {name!r}")
        return json.loads(line)

    try:
        yield measure
    finally:
        process.kill()
        process.wait(_PEER_SECONDS_MAX)


def grading(grade: Grade) -> Row:
    """What is kept of a grade: of one without a timing, why."""
    row: Row = {"verdict": grade.verdict.value, "reason": grade.reason}
    timing = grade.message.get("timing")
    if not timing:
        return row
    num_calls = max(1, int(timing.get("callsPerBatch", 1)))
    row |= {
        "speedup": float(timing["speedup"]),
        "speedup_low": float(timing.get("speedupLow", 0.0)),
        "speedup_high": float(timing.get("speedupHigh", 0.0)),
        "candidate_us": float(timing["candidate"]["medianUs"]),
        "reference_us": float(timing["reference"]["medianUs"]),
        "distinguishable": bool(timing.get("distinguishable", False)),
        "calls_per_batch": num_calls,
        "empty_call_us": float(timing.get("emptyCallUs", 0.0)),
        "quality": timing.get("quality", ""),
        "clocks": timing.get("clocks", {}),
        "gpu": grade.message.get("environment", {}).get("gpu", {}).get("name", ""),
        "seconds": float(grade.message.get("cost", {}).get("totalSeconds", 0.0)),
        "cost": {name: float(seconds) for name, seconds in grade.message.get("cost", {}).items()},
        "instances": int(timing["candidate"].get("numInstances", 0)),
    }
    return row


def add_events(name: str, gradings: Sequence[Row], events: Events, rest_seconds: float = _REST_SECONDS) -> None:
    """What a plain process measures now of the kernel, put beside its gradings that were timed."""
    timed = [row for row in gradings if "speedup" in row]
    if not timed:
        return
    time.sleep(rest_seconds)
    measured = events(name, timed[-1]["calls_per_batch"], _BATCHES)
    for row in timed:
        row["events"] = measured


def _groups(gradings: int) -> Iterator[range]:
    for first in range(0, gradings, _GRADINGS_OF_A_PIECE):
        yield range(first, min(gradings, first + _GRADINGS_OF_A_PIECE))


def native_pieces(service: GpuService, name: str, gradings: int, events: Events | None, load: int) -> Iterator[Piece]:
    """The kernel graded `gradings` times, in groups."""
    kernel = KERNELS[name]

    def work(group: range) -> Row:
        sources = [kernel.source(f"{service.token}_{k}") for k in group]
        requests = [Request(kernel.task, source=source, language="cuda") for source in sources]
        gradings = [grading(service.grade(request)) for request in requests]
        if events:
            add_events(name, gradings, events)
        return {"kernel": name, "gradings": gradings}

    depends_on = [service.identity, kernel.task, kernel.template, digest_of(_PEER_FILES) if events else "", load]
    for group in _groups(gradings):
        title = f"{name}, gradings {group[0] + 1} to {group[-1] + 1}"
        yield Piece(title, [*depends_on, list(group)], partial(work, group))


def reference_pieces(service: GpuService, name: str, gradings: int, load: int) -> Iterator[Piece]:
    """The kernel's reference put through as a candidate."""
    kernel = KERNELS[name]

    def work(group: range) -> Row:
        sources = [kernel.reference_as_candidate(f"{service.token}_{k}") for k in group]
        requests = [Request(kernel.task, source=s, language="kernelbench_python", device="cuda") for s in sources]
        return {"kernel": name, "gradings": [grading(service.grade(request)) for request in requests]}

    for group in _groups(gradings):
        title = f"{name}, reference {group[0] + 1} to {group[-1] + 1}"
        yield Piece(title, [service.identity, kernel.task, load, list(group)], partial(work, group))


def in_turn(lists: Sequence[Sequence[Piece]]) -> list[Piece]:
    """The first piece of each, then the second ones: a slice that ends early has something of all."""
    return [piece for row in zip_longest(*lists) for piece in row if piece is not None]


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Interquartile range and full range over the median; at least two values."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / middle, (max(values) - min(values)) / middle


def by_kernel(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Gradings of finished pieces."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["result"]["kernel"], []).extend(row["result"]["gradings"])
    return found


def covered(gradings: Sequence[Row]) -> int:
    """Intervals of the speed-up that hold the median of all gradings."""
    middle = statistics.median(row["speedup"] for row in gradings)
    return sum(row["speedup_low"] <= middle <= row["speedup_high"] for row in gradings)


def native_line(name: str, gradings: Sequence[Row]) -> str:
    """A kernel's line of the table: medians, spreads as IQR and range, and what CUDA events say beside."""
    timed = [row for row in gradings if "speedup" in row]
    line = f"{name:<22}{len(timed):3} of {len(gradings):3} timed"
    if len(timed) < 2:
        return line
    for key, unit in (("candidate_us", "us"), ("speedup", "x")):
        values = [row[key] for row in timed]
        quartiles, full = spread(values)
        line += f"{statistics.median(values):9.2f} {unit:<2}{quartiles:7.1%}{full:7.1%}"
    wide = statistics.median((row["speedup_high"] - row["speedup_low"]) / row["speedup"] for row in timed)
    line += f"{covered(timed):5} in{wide:6.1%}"
    line += f"{statistics.mean(row['instances'] for row in timed):5.1f}"
    beside = [row for row in timed if "events" in row]
    for key in ("candidate_us", "reference_us"):
        if beside:
            ratio = statistics.median(row[key] / row["events"][key] for row in beside)
            line += f"{statistics.median(row['events'][key] for row in beside):10.2f} us x{ratio:5.2f}"
    return line


def reference_line(name: str, gradings: Sequence[Row]) -> str:
    """A reference's line of the table."""
    timed = [row for row in gradings if "speedup" in row]
    same = sum(not row["distinguishable"] for row in timed)
    line = f"{name:<22}not distinguishable {same:3} of {len(timed):3} timed, of {len(gradings)} graded"
    if timed:
        line += f"; speed-up {statistics.median(row['speedup'] for row in timed):.2f}"
        line += f", from {min(row['speedup'] for row in timed):.2f} to {max(row['speedup'] for row in timed):.2f}"
    return line


def print_tables(rows: Sequence[Row]) -> None:
    """Both halves, as far as they are done."""
    native = [row for row in rows if ", gradings " in row["piece"]]
    references = [row for row in rows if ", reference " in row["piece"]]
    print(f"\n{'':22}{'':16}{'candidate':>12}{'IQR':>7}{'range':>7}{'speed-up':>11}{'IQR':>7}{'range':>7}", end="")
    print(f"{'median in':>9}{'width':>6}{'proc':>5}{'events':>11}{'x':>7}{'of reference':>13}{'x':>7}")
    for name, gradings in by_kernel(native).items():
        print(native_line(name, gradings))
    print("\nthe reference as a candidate")
    for name, gradings in by_kernel(references).items():
        print(reference_line(name, gradings))


def main(words: Sequence[str] | None = None) -> int:
    """One slice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_slice_arguments(parser)
    add_service_arguments(parser)
    parser.add_argument("--gradings", type=int, default=20, help="of each kernel and each reference")
    parser.add_argument("--only", default="", help="part of a kernel's name")
    parser.add_argument("--without-peer", action="store_true", help="no CUDA events beside")
    parser.add_argument("--load", type=int, default=0, help="clients that have other programs judged meanwhile")
    arguments = parser.parse_args(words)
    names = [name for name in KERNELS if arguments.only in name]
    peer = not arguments.without_peer and not arguments.load
    with (
        open_service(parser, arguments) as service,
        plain_process(names) if peer else nullcontext() as events,
    ):
        slice_ = Slice(SliceOptions.of(arguments))
        native = [list(native_pieces(service, name, arguments.gradings, events, arguments.load)) for name in names]
        references = [list(reference_pieces(service, name, arguments.gradings, arguments.load)) for name in names]
        with other_work(service.grade, f"load_{service.token}", arguments.load) as verdicts:
            rows = slice_.do(in_turn([*native, *references]))
    print_tables(rows)
    if verdicts:
        print("\nbeside them: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    return slice_.end()


if __name__ == "__main__":
    sys.exit(main())
