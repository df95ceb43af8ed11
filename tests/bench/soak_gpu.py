"""The soak test on a GPU, in slices: what soak_bench.py does with --gpu.

A slice starts a service, sends as many of the requests as fit, and stops it. Meanwhile the referee of a GPU is killed
every so often. At its end it looks for what is lost or left behind; that is a line of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.bench.slices import Piece, Row, Slice, SliceOptions, digest_of, gpus
from tests.bench.soak_candidates import LogicalRequest
from tests.bench.soak_clients import Client, Outcome
from tests.bench.soak_cuda_candidates import make_cuda_requests, make_program
from tests.bench.soak_doors import Door, GrpcDoor, HttpDoor
from tests.bench.soak_faults import survivors_of
from tests.bench.soak_gpu_report import SliceEnd, faults_of, print_gpu_summary, summarise_gpu
from tests.bench.soak_gpus import GpuUse, await_released, uses_gpu
from tests.bench.soak_left_behind import left_behind, shared_entries, soak_folder
from tests.bench.soak_service import SoakService, adopt_orphans, descendants, end_descendants, reap_adopted

_ROOT = Path(__file__).resolve().parents[2]
_CLIENTS_EACH = 4  # of either door
_THREADS_EACH = 2  # requests of a client at once
_ASK_SECONDS_MAX = 240.0  # so that what a slice begins ends within ten minutes of its start
_LANES_SECONDS_MAX = 90.0  # in which a lane that was lost has been tried again
_PERIOD_SECONDS = 1.0
_LAST_PROGRAMS = 1_000_000  # numbers of programs that no request has
# A GPU has a lane of its own; the others have nothing to do here. Two processes of a candidate repeat themselves well
# enough to be told right from wrong. A program that hangs has a call's time twice, beside others and alone: no right
# one here takes a tenth of a second.
SETTINGS = {
    "num_lanes": "1",
    "timing.num_instances_min": "2",
    "timing.num_instances_max": "3",
    "queue_capacity": "64",
    "call_seconds_max": "1",
}


@dataclass
class RefereeKiller:
    """Kills a GPU's referee every `seconds`, from a thread of its own, and the first one when `is_half_done` says so,
    if that is sooner: a short slice has a kill, too. `kills` says when, by time.time()."""

    service: SoakService
    seconds: float
    is_half_done: Callable[[], bool]
    kills: list[float] = field(default_factory=list)
    survivors: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        due = time.monotonic() + self.seconds
        while not self._stop.wait(min(_PERIOD_SECONDS, self.seconds)):
            reap_adopted({self.service.pid})
            is_due = time.monotonic() >= due or (not self.kills and self.is_half_done())
            if is_due and self._kill_one():
                due = time.monotonic() + self.seconds

    def _kill_one(self) -> bool:
        """Whether there was one: after its death it takes a while until there is another."""
        referees = [p for p in self.service.referees() if uses_gpu(p.pid)]
        if not referees:
            return False
        referee = referees[len(self.kills) % len(referees)]
        orphans = descendants(referee.pid)
        os.kill(referee.pid, signal.SIGKILL)
        self.kills.append(time.time())
        self.survivors += survivors_of(orphans)
        return True


@dataclass(frozen=True)
class Lanes:
    """What a service says of its lanes."""

    num_lanes: int
    devices: tuple[str, ...]
    num_lost: int

    @classmethod
    def of(cls, service: SoakService) -> Lanes:
        """Raises OSError."""
        told = json.loads(_read(f"{service.address.url}/v1/capabilities"))
        lines = _read(f"{service.address.url}/metrics").splitlines()
        lost = next(int(float(line.split()[1])) for line in lines if line.startswith("warpsmith_reward_lanes_lost "))
        return cls(int(told["numLanes"]), tuple(told["devices"]), lost)

    @classmethod
    def await_all(cls, service: SoakService) -> Lanes:
        """Once none is lost, or time is up."""
        end = time.monotonic() + _LANES_SECONDS_MAX
        while (lanes := cls.of(service)).num_lost and time.monotonic() < end:
            time.sleep(_PERIOD_SECONDS)
        return lanes


@dataclass(frozen=True)
class Begin:
    """Of a slice: how long its service took to start, with which lanes, and what there was before it."""

    start_seconds: float
    lanes: Lanes
    use: GpuUse
    shared: set[str]


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as reply:
        return reply.read().decode()


class GpuSoak:
    """One slice of a run, and the whole run as far as its lines go."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._programs = Path(os.environ.get("WARPSMITH_BIN_DIR", _ROOT / "build/release/bin"))
        self._settings = {**SETTINGS, **dict(text.split("=", 1) for text in arguments.set)}
        self._slice = Slice(SliceOptions.of(arguments))
        files = digest_of([self._programs, self._programs.parent / "share"])
        self._identity = [files, self._settings, arguments.referee_seconds]
        self._clients: list[Client] = []
        self._num_answered = 0
        requests = make_cuda_requests(arguments.requests, arguments.seed, rehearsal=arguments.rehearse)
        self._task = requests[0].program.task
        self._pieces = [self._piece(index, request) for index, request in enumerate(requests)]
        self._requests = dict(zip((piece.name for piece in self._pieces), requests, strict=True))

    def run(self) -> int:
        """The exit status: 1 where something was lost, answered differently, left behind or not looked at."""
        if all(self._slice.find(piece) for piece in self._pieces):
            rows = self._slice.do(self._pieces)
        else:
            rows = self._run_slice()
        outcomes = [Outcome(self._requests[row["piece"]], **row["result"]) for row in rows]
        report = summarise_gpu(rows, outcomes, self._ends(outcomes))
        print_gpu_summary(report)
        status = self._slice.end()
        faults = faults_of(report)
        for fault in faults:
            print(f"fault: {fault}")
        return 1 if faults else status

    def _piece(self, index: int, request: LogicalRequest) -> Piece:
        """A request to one of the clients in turn."""

        def work() -> Row:
            outcome = asdict(self._clients[index % len(self._clients)].ask(request))
            self._num_answered += 1
            del outcome["request"]
            return outcome

        depends_on = [self._identity, request.to_json(), request.hang_up_after]
        return Piece(f"{index:04} {request.kind}", depends_on, work)

    def _end_piece(self, number: int, work: Callable[[], Row]) -> Piece:
        return Piece(f"end of slice {number}", [self._identity, self._arguments.seed, number], work)

    def _ends(self, outcomes: list[Outcome]) -> dict[int, SliceEnd | None]:
        """How each slice ended that answered anything; none of one that was broken off."""
        rows = {n: self._slice.find(self._end_piece(n, dict)) for n in sorted({outcome.life for outcome in outcomes})}
        return {n: SliceEnd(**row["result"]) if row else None for n, row in rows.items()}

    def _next_number(self) -> int:
        """Of a slice; no line has it."""
        rows = [row for piece in self._pieces if (row := self._slice.find(piece))]
        number = 1 + max((row["result"]["life"] for row in rows), default=0)
        while self._slice.find(self._end_piece(number, dict)):
            number += 1
        return number

    def _run_slice(self) -> list[Row]:
        adopt_orphans()
        number, shared, use = self._next_number(), shared_entries(), GpuUse.now()
        cores = sorted(os.sched_getaffinity(0))
        with soak_folder() as folder:
            service = SoakService(self._programs / "warpsmith-reward", folder, cores, self._settings)
            try:
                begin = Begin(service.start(), Lanes.of(service), use, shared)
                self._clients = connect(service, number)
                left = sum(self._slice.find(piece) is None for piece in self._pieces)
                half = left // 2
                seconds = self._arguments.referee_seconds
                killer = RefereeKiller(service, seconds, lambda: self._num_answered > half)
                killer.start()
                rows = self._slice.do(self._pieces, at_once=_THREADS_EACH * len(self._clients))
                killer.stop()
                self._slice.do_last(self._end_piece(number, lambda: self._end(number, service, killer, begin)))
            finally:
                service.end()
                end_descendants()
                if service.log.exists():
                    shutil.copyfile(service.log, self._arguments.out.with_suffix(f".{number}.log"))
        return rows

    def _end(self, number: int, service: SoakService, killer: RefereeKiller, begin: Begin) -> Row:
        """Stops the service: what it did at last, and what is there that was not at the slice's begin."""
        last, lanes = self._last_answer(number), Lanes.await_all(service)
        status = service.stop()
        left = [*left_behind(service, begin.shared), *killer.survivors]
        use, held = await_released(begin.use)
        end = SliceEnd(
            start_seconds=round(begin.start_seconds, 1),
            kills=killer.kills,
            last_verdict=last.verdict or last.state,
            lanes_before=asdict(begin.lanes),
            lanes_after=asdict(lanes),
            exit_status=status,
            left_behind=[*left, *held],
            memory_mib_before=begin.use.memory_mib,
            memory_mib_after=use.memory_mib,
        )
        return asdict(end)

    def _last_answer(self, number: int) -> Outcome:
        """To a right program that nobody has asked about: whether the GPUs still work."""
        program = make_program(
            "good", _LAST_PROGRAMS + number, self._task, random.Random(number), rehearsal=self._arguments.rehearse
        )
        return self._clients[0].ask(LogicalRequest(f"last-{self._arguments.seed}-{number}", "last", program))


def connect(service: SoakService, number: int) -> list[Client]:
    """The clients of slice `number`, the two doors by turns."""
    begin = time.monotonic()
    doors: list[tuple[str, Door]] = []
    for i in range(_CLIENTS_EACH):
        doors += [(f"http-{i}", HttpDoor(service.address)), (f"grpc-{i}", GrpcDoor(service.address))]
    return [
        Client(name, door, lambda: number, lambda: time.monotonic() - begin, _ASK_SECONDS_MAX) for name, door in doors
    ]


def main(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """One slice, its table, the exit status."""
    if not gpus() and not arguments.rehearse:
        parser.exit(
            1, "No GPU is here: nvidia-smi shows none. --rehearse takes the driver of tests/support/fake_cuda.\n"
        )
    return GpuSoak(arguments).run()
