"""How well times on a GPU repeat, and how far they are from CUDA events in a plain process.

Each kernel of gpu_timing_kernels.py is graded again and again, under another name each time. By turns with the
gradings a plain process (gpu_timing_peer.py) times the same program and its reference on data as cold, with as many
calls in a batch. The reference itself, as a Python candidate, should not be distinguishable from the reference.

./dev bench gpu_timing --gpu [--resume] [--seconds N] [--gradings N] [--only NAME] [--without-peer]
                             [--address URL] [--set KEY=VALUE ...]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

from warpsmith_reward import Grade, Request

from tests.bench.gpu_service import GpuService, add_service_arguments, open_service
from tests.bench.gpu_timing_kernels import KERNELS
from tests.bench.slices import Piece, Row, Slice, SliceOptions, add_slice_arguments, digest_of

_GRADINGS_OF_A_PIECE = 5
_BATCHES_MAX = 30  # of the plain process: a fifth of a second of the longest kernel
_PEER_SECONDS_MAX = 60
_PEER_FILES = [Path(__file__).with_name(name) for name in ("gpu_timing_peer.py", "gpu_timing_kernels.py")]

# Microseconds of candidate and reference, of a number of calls in a batch and a number of batches.
Events = Callable[[int, int], dict[str, float]]


@contextmanager
def plain_process(
    name: str, command: Sequence[str] = (sys.executable, "-m", "tests.bench.gpu_timing_peer")
) -> Iterator[Events]:
    """The same program against the same reference, by CUDA events."""
    process = subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout

    def measure(num_calls: int, num_batches: int) -> dict[str, float]:
        assert process.stdin and process.stdout
        print(num_calls, num_batches, file=process.stdin, flush=True)
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the plain process of {name!r} ended")
        return json.loads(line)

    try:
        yield measure
    finally:
        process.kill()
        process.wait(_PEER_SECONDS_MAX)


def grading(grade: Grade, events: Events | None) -> Row:
    """What is kept of a grade: of one without a timing, why."""
    row: Row = {"verdict": grade.verdict.value, "reason": grade.reason}
    timing = grade.message.get("timing")
    if not timing:
        return row
    num_calls = max(1, int(timing.get("callsPerBatch", 1)))
    row |= {
        "speedup": float(timing["speedup"]),
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
    if events:
        num_batches = int(timing["candidate"].get("numCalls", 0)) // num_calls
        row["events"] = events(num_calls, min(_BATCHES_MAX, max(3, num_batches)))
    return row


def _groups(gradings: int) -> Iterator[range]:
    for first in range(0, gradings, _GRADINGS_OF_A_PIECE):
        yield range(first, min(gradings, first + _GRADINGS_OF_A_PIECE))


def native_pieces(service: GpuService, names: Sequence[str], gradings: int, peer: bool) -> Iterator[Piece]:
    """Each kernel graded `gradings` times, in groups."""

    def work(name: str, group: range) -> Row:
        kernel = KERNELS[name]
        with plain_process(name) if peer else nullcontext() as events:
            sources = [kernel.source(f"{service.token}_{k}") for k in group]
            requests = [Request(kernel.task, source=source, language="cuda") for source in sources]
            return {"kernel": name, "gradings": [grading(service.grade(request), events) for request in requests]}

    peer_files = digest_of(_PEER_FILES) if peer else ""
    for name in names:
        depends_on = [service.identity, KERNELS[name].task, KERNELS[name].template, peer_files]
        for group in _groups(gradings):
            title = f"{name}, gradings {group[0] + 1} to {group[-1] + 1}"
            yield Piece(title, [*depends_on, list(group)], partial(work, name, group))


def reference_pieces(service: GpuService, names: Sequence[str], gradings: int) -> Iterator[Piece]:
    """Each reference put through as a candidate."""

    def work(name: str, group: range) -> Row:
        kernel = KERNELS[name]
        sources = [kernel.reference_as_candidate(f"{service.token}_{k}") for k in group]
        requests = [Request(kernel.task, source=s, language="kernelbench_python", device="cuda") for s in sources]
        return {"kernel": name, "gradings": [grading(service.grade(request), None) for request in requests]}

    for name in names:
        for group in _groups(gradings):
            title = f"{name}, reference {group[0] + 1} to {group[-1] + 1}"
            depends_on = [service.identity, KERNELS[name].task, list(group)]
            yield Piece(title, depends_on, partial(work, name, group))


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
    return line


def print_tables(native: Sequence[Row], references: Sequence[Row]) -> None:
    """Both halves, as far as they are done."""
    print(f"\n{'':22}{'':16}{'candidate':>12}{'IQR':>7}{'range':>7}{'speed-up':>12}{'IQR':>6}{'range':>7}", end="")
    print(f"{'events':>13}{'x':>7}{'of reference':>13}{'x':>7}")
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
    arguments = parser.parse_args(words)
    names = [name for name in KERNELS if arguments.only in name]
    with open_service(parser, arguments) as service:
        slice_ = Slice(SliceOptions.of(arguments))
        native = slice_.do(list(native_pieces(service, names, arguments.gradings, not arguments.without_peer)))
        references = slice_.do(list(reference_pieces(service, names, arguments.gradings)))
    print_tables(native, references)
    return slice_.end()


if __name__ == "__main__":
    sys.exit(main())
