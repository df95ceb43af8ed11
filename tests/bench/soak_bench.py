"""Hours in one: thousands of requests over both doors while referees, the service and its disk fail.

./dev bench soak [--requests N] [--minutes-max M] [--seed S] [--referee-seconds T]
./dev bench soak --gpu [--resume] [--seconds N] [--requests N] [--seed S] [--referee-seconds T] [--set KEY=VALUE ...]

Eight clients, four by HTTP and four by gRPC, share out programs that are right, wrong, hang, fork or fault, some asked
for again and some by callers that hang up. A referee is killed every minute, the service twice, and the disk of its
cache fills once. Says who was not answered, who was answered twice and differently, whose verdict was not what the
program demands, whether memory grew, and what was left behind. Exit status 1 where a request was lost or answered
differently, or something was left behind. With --gpu the programs are CUDA's, and the run is in slices: soak_gpu.py.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from tests.bench import soak_gpu
from tests.bench.slices import add_slice_arguments
from tests.bench.soak_candidates import make_requests
from tests.bench.soak_clients import Clients
from tests.bench.soak_doors import Door, GrpcDoor, HttpDoor
from tests.bench.soak_faults import Faults, SmallDisk
from tests.bench.soak_left_behind import left_behind, shared_entries, soak_folder
from tests.bench.soak_memory import MemoryWatch, memory_by_life
from tests.bench.soak_report import print_summary, summarise
from tests.bench.soak_service import SoakService, adopt_orphans, end_descendants

_ROOT = Path(__file__).resolve().parents[2]
_CLIENTS_EACH = 4  # of either door
_THREADS_EACH = 4  # requests of a client at once
_PROGRESS_SECONDS = 30.0
_GRACE_SECONDS = 15.0  # for the last requests


def pin_beside_lane() -> list[int]:
    """Leaves the last core, where programs are timed, to the service; returns all cores that there are."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(0, cores[:-1])
    return cores


def make_doors(service: SoakService) -> dict[str, Door]:
    """Clients by name."""
    doors: dict[str, Door] = {f"http-{i}": HttpDoor(service.address) for i in range(_CLIENTS_EACH)}
    return doors | {f"grpc-{i}": GrpcDoor(service.address) for i in range(_CLIENTS_EACH)}


def await_clients(clients: Clients, seconds_max: float) -> None:
    """Until all is answered or time is up."""
    begin = told = time.monotonic()
    while clients.running and time.monotonic() - begin < seconds_max:
        time.sleep(0.5)
        if time.monotonic() - told > _PROGRESS_SECONDS:
            told = time.monotonic()
            print(f"  {told - begin:5.0f} s: {len(clients.outcomes)} of {len(clients.requests)}", flush=True)


def soak(arguments: argparse.Namespace, service: SoakService, disk: SmallDisk) -> dict[str, Any]:
    """One whole run, the service already listening; stops it."""
    requests = make_requests(arguments.requests, arguments.seed)
    clients = Clients(make_doors(service), requests, lambda: service.life, _THREADS_EACH)
    memory = MemoryWatch(service)
    faults = Faults(service, disk, lambda: clients.share_done, arguments.referee_seconds)
    begin = time.monotonic()
    memory.start()
    clients.start()
    faults.start()
    await_clients(clients, 60 * arguments.minutes_max)
    seconds = time.monotonic() - begin
    faults.stop()
    clients.stop(_GRACE_SECONDS)
    memory.stop()
    report = summarise(clients.outcomes, seconds)
    report["faults"] = faults.events
    report["disk"] = disk.why_not or "filled once"
    report["memory"] = {
        "by_life": memory_by_life(memory.samples),
        "samples": [
            [round(s.seconds), s.life, round(s.service_mb, 1), round(s.available_mb)] for s in memory.samples[::6]
        ],
    }
    return report


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Raises RuntimeError where the service does not start."""
    adopt_orphans()
    cores = pin_beside_lane()
    before = shared_entries()
    program = Path(os.environ.get("WARPSMITH_BIN_DIR", _ROOT / "build/release/bin")) / "warpsmith-reward"
    with soak_folder() as folder:
        service = SoakService(program, folder, cores)
        disk = SmallDisk(service.cache)
        disk.mount()
        try:
            start_seconds = service.start()
            report = soak(arguments, service, disk)
            report["start_seconds"] = round(start_seconds, 1)
            report["exit_status"] = service.stop()
            report["left_behind"] = left_behind(service, before)
        finally:
            service.end()
            end_descendants()
            disk.unmount()
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            if service.log.exists():
                shutil.copyfile(service.log, arguments.out.with_suffix(".log"))
        return report


def main() -> int:
    """Runs, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_slice_arguments(parser)
    parser.add_argument("--requests", type=int, help="default 10,000; on a GPU 1,000")
    parser.add_argument("--minutes-max", type=float, default=55.0, help="without --gpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--referee-seconds", type=float, default=60.0, help="a referee is killed this often")
    parser.add_argument("--set", action="append", default=[], help="with --gpu: KEY=VALUE of reward_service")
    parser.add_argument("--rehearse", action="store_true", help="with --gpu: programs for a driver that runs no kernel")
    arguments = parser.parse_args()
    arguments.requests = arguments.requests or (1_000 if arguments.gpu else 10_000)
    if arguments.gpu:
        return soak_gpu.main(arguments, parser)
    report = run(arguments)
    report["seed"] = arguments.seed
    report["revision"] = os.environ.get("WARPSMITH_REVISION", "unknown")
    arguments.out.write_text(json.dumps(report, indent=2) + "\n")
    print_summary(report)
    twice = report["answered_twice"]
    faults = (report["lost"], report["refused"], len(report["left_behind"]), twice["different_verdict"])
    return 1 if any(faults) or twice["different_within_a_life"] or report["states"].get("unsent") else 0


if __name__ == "__main__":
    sys.exit(main())
