"""How many more candidates a minute a service grades with all GPUs of a machine than with one, and whether one that is
taken away while it works costs an answer.

Native programs that are right, of three kernels; for each GPU so many, of six tasks, from eight clients. One service
does all pieces of work: where it is to have one GPU, the benchmark holds the leases of the others, as trainers do. The
last piece takes the lease of one GPU once half of the answers are in: from then on that GPU may end the judgements
that it has begun, and begins no other.

./dev bench gpu_lanes --gpu [--resume] [--seconds N] [--programs N] [--set KEY=VALUE ...]
"""

from __future__ import annotations

import argparse
import itertools
import os
import secrets
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from warpsmith_reward import Request, RetryOptions, RewardClient, RewardServiceError, device_lease

from tests.bench.gpu_timing_kernels import KERNELS, TimedKernel
from tests.bench.slices import Piece, Row, Slice, SliceOptions, add_slice_arguments, digest_of, uuids
from tests.hacks.own_service import own_service

# What is kept of six tasks fits into the memory that one GPU has for them.
_KERNELS = ("affine chain, 10 us", "running sums, 200 us", "running sums, 1 ms")
_VARIANTS_EACH = 2  # of each kernel, for each GPU
_CLIENTS_EACH = 8
_GRADE_SECONDS_MAX = 240.0
_LEASE_SECONDS_MAX = 120.0
_REPLY_SECONDS = 2.0  # in which what was judged before has been answered


def tasks_of(num_gpus: int) -> list[tuple[TimedKernel, int]]:
    """A kernel and the number of its variant."""
    return [(KERNELS[name], variant) for variant in range(_VARIANTS_EACH * num_gpus) for name in _KERNELS]


def requests_of(count: int, tasks: Sequence[tuple[TimedKernel, int]], token: str) -> list[Request]:
    """By turns of the tasks; `token` makes the programs others than those of another piece."""
    turns = itertools.islice(itertools.cycle(tasks), count)
    return [
        Request(f"{kernel.task}\n# {variant}\n", source=kernel.source(f"{token}_{i}"), language="cuda")
        for i, (kernel, variant) in enumerate(turns)
    ]


@dataclass(frozen=True)
class Load:
    """So many programs for a service that has these GPUs and `away`, which others hold all the time; with `lend` one of
    its own is taken away meanwhile."""

    programs: int
    gpus: tuple[str, ...]
    away: tuple[str, ...] = ()
    lend: str = ""

    @property
    def name(self) -> str:
        """Of the piece of work."""
        lent = ", one of them lent from half on" if self.lend else ""
        return f"{len(self.gpus)} GPU{'s' * (len(self.gpus) > 1)}{lent}"

    def run(self, client: RewardClient) -> Row:
        """Answers a minute, from the first request on; the first one for each task is not counted."""
        clients = _CLIENTS_EACH * len(self.gpus)
        with ExitStack() as stack, ThreadPoolExecutor(clients) as pool:
            for gpu in self.away:
                stack.enter_context(device_lease(gpu, _LEASE_SECONDS_MAX))
            grade = partial(_grade, client)
            tasks = tasks_of(len(self.gpus))
            list(pool.map(grade, requests_of(len(tasks), tasks, secrets.token_hex(4))))
            half = threading.Semaphore(0)

            def graded(request: Request) -> Row:
                try:
                    return {**grade(request), "ended": time.monotonic()}
                finally:
                    half.release()

            token = secrets.token_hex(4)
            begin = time.monotonic()
            asked = [pool.submit(graded, request) for request in requests_of(self.programs, tasks, token)]
            if self.lend:
                for _ in range(self.programs // 2):
                    half.acquire()
                stack.enter_context(device_lease(self.lend, _LEASE_SECONDS_MAX))
            lent_at = time.monotonic()
            rows = [request.result() for request in asked]
            seconds = time.monotonic() - begin
        late = [row for row in rows if row["ended"] > lent_at + _REPLY_SECONDS]
        return {
            "seconds": seconds,
            "verdicts": dict(Counter(row["verdict"] for row in rows)),
            "by_gpu": dict(Counter(row["gpu"] for row in rows)),
            "lent_at": lent_at - begin if self.lend else None,
            "on_lent_gpu": sum(row["gpu"] == self.lend for row in late) if self.lend else 0,
        }


def _grade(client: RewardClient, request: Request) -> Row:
    try:
        grade = client.grade(request)
    except RewardServiceError as error:
        return {"verdict": f"no answer: {error}", "gpu": ""}
    return {"verdict": grade.verdict.value, "gpu": grade.message.get("environment", {}).get("gpu", {}).get("uuid", "")}


class OwnClient:
    """A client of a service of its own with these GPUs, which starts when it is first asked for."""

    def __init__(self, settings: dict[str, str], gpus: Sequence[str]) -> None:
        self._settings = settings
        self._gpus = gpus
        self._stack = ExitStack()
        self._client: RewardClient | None = None

    def __enter__(self) -> OwnClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def get(self) -> RewardClient:
        """The same each time."""
        if self._client is None:
            service = own_service(self._settings, {"CUDA_VISIBLE_DEVICES": ",".join(self._gpus)})
            address = self._stack.enter_context(service)
            retries = RetryOptions(seconds_max=_GRADE_SECONDS_MAX)
            self._client = self._stack.enter_context(RewardClient(address, retries=retries))
        return self._client


def _run(load: Load, own: OwnClient) -> Row:
    return load.run(own.get())


def faults_of(load: Load, result: Row) -> list[str]:
    """What must not be."""
    faults = [
        f"{count} programs were {verdict}" for verdict, count in result["verdicts"].items() if verdict != "CORRECT"
    ]
    if result["on_lent_gpu"]:
        faults.append(f"{result['on_lent_gpu']} programs were judged on a GPU that was lent away")
    faults += [
        f"{result['by_gpu'][gpu]} programs were judged on {gpu}, which others held"
        for gpu in load.away
        if gpu in result["by_gpu"]
    ]
    idle = [gpu for gpu in load.gpus if gpu not in result["by_gpu"]]
    return [f"{load.name}: {fault}" for fault in (*faults, *(f"nothing was judged on {gpu}" for gpu in idle))]


def print_rates(results: Sequence[tuple[Load, Row]]) -> list[str]:
    """The table; what must not be."""
    rates = {load: 60 * load.programs / result["seconds"] for load, result in results}
    print(f"\n{'':44}{'a minute':>10}{'times one GPU':>16}")
    one = next((rate for load, rate in rates.items() if len(load.gpus) == 1), None)
    faults = []
    for load, result in results:
        times = f"{rates[load] / one:16.2f}" if one else f"{'':16}"
        print(f"{load.name:44}{rates[load]:10.1f}{times}")
        if load.lend:
            print(f"  lent after {result['lent_at']:.1f} s; {result['on_lent_gpu']} programs were judged there since")
        faults += faults_of(load, result)
    for fault in faults:
        print(f"fault: {fault}")
    return faults


def main(words: Sequence[str] | None = None, gpus: Sequence[str] | None = None) -> int:
    """One slice; 1 where an answer is missing or wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_slice_arguments(parser)
    parser.add_argument("--programs", type=int, default=24, help="for each GPU")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of reward_service")
    arguments = parser.parse_args(words)
    found = tuple(uuids() if gpus is None else gpus)
    if len(found) < 2:
        parser.exit(1, f"{len(found)} GPUs are here, and this benchmark compares one with several.\n")
    settings = {"num_lanes": "1", **dict(text.split("=", 1) for text in arguments.set)}
    loads = [
        Load(arguments.programs, found[:1], away=found[1:]),
        Load(arguments.programs * len(found), found),
        Load(arguments.programs * len(found), found, lend=found[-1]),
    ]
    programs = Path(os.environ["WARPSMITH_BIN_DIR"])
    files = digest_of([programs, programs.parent / "share"])
    slice_ = Slice(SliceOptions.of(arguments))
    results = []
    with OwnClient(settings, found) as own:
        for load in loads:
            work = partial(_run, load, own)
            rows = slice_.do([Piece(load.name, [files, settings, load.programs, load.gpus], work)])
            results += [(load, row["result"]) for row in rows]
    faults = print_rates(results)
    return slice_.end() or (1 if faults else 0)


if __name__ == "__main__":
    sys.exit(main())
