"""Hours in one: thousands of requests over both doors while referees, the service and its disk fail.

./dev bench soak [--requests N] [--minutes-max M] [--seed S] [--referee-seconds T]

Eight clients, four by HTTP and four by gRPC, share out programs that are right, wrong, hang, fork or fault, some asked
for again and some by callers that hang up. A referee is killed every minute, the service twice, and the disk of its
cache fills once. Says who was not answered, who was answered twice and differently, whose verdict was not what the
program demands, whether memory grew, and what was left behind. Exit status 1 where a request was lost or answered
differently, or something was left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.soak_candidates import make_requests
from tests.bench.soak_clients import Clients
from tests.bench.soak_doors import Door, GrpcDoor, HttpDoor, compile_protos
from tests.bench.soak_faults import Faults, SmallDisk
from tests.bench.soak_memory import MemoryWatch, memory_by_life
from tests.bench.soak_report import print_summary, summarise
from tests.bench.soak_service import SoakService, adopt_orphans, descendants, end_descendants, reap_adopted

_ROOT = Path(__file__).resolve().parents[2]
_CLIENTS_EACH = 4  # of either door
_THREADS_EACH = 4  # requests of a client at once
_PROGRESS_SECONDS = 30.0
_GRACE_SECONDS = 15.0


def pin_beside_lane() -> list[int]:
    """Leaves the last core, where programs are timed, to the service; returns all cores that there are."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(0, cores[:-1])
    return cores


def shared_entries() -> set[str]:
    """Names in shared memory; temporary files go where TMPDIR points."""
    return {str(entry) for entry in Path("/dev/shm").iterdir()}


def unfinished_files(cache: Path) -> list[Path]:
    """Files of the cache that are no compiled program and no prelude: written in part, then forgotten."""
    finished = re.compile(r"[0-9a-f]{64}")
    compiled = (path for path in cache.glob("compiled/*") if not finished.fullmatch(path.name))
    return [*compiled, *(path for path in cache.glob("preludes/**/*") if path.name.startswith("unfinished-"))]


def left_behind(service: SoakService, before: set[str]) -> list[str]:
    """Processes, sockets, temporary files and mounts that outlive a service which was stopped."""
    end = time.monotonic() + _GRACE_SECONDS
    while (found := _processes_left()) and time.monotonic() < end:
        time.sleep(0.2)
    found += [f"file {path}" for path in (*unfinished_files(service.cache), *(service.folder / "tmp").iterdir())]
    found += [f"socket {service.socket}"] if service.socket.exists() else []
    found += [f"shared file {path}" for path in sorted(shared_entries() - before)]
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    found += [f"mount {line}" for line in mounts if str(service.folder) in line and str(service.cache) not in line]
    return found


def _processes_left() -> list[str]:
    reap_adopted(set())
    return [f"process {p.name} ({p.pid}, {p.state})" for p in descendants(os.getpid())]


@contextmanager
def soak_folder() -> Iterator[Path]:
    """A folder of the test's own, short enough a path for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    (folder / "tmp").mkdir()
    (folder / "protos").mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
    report = summarise(clients.outcomes, clients.failures, seconds)
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
        compile_protos(folder / "protos")
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
    parser.add_argument("--out", type=Path, default=Path("runs/bench/soak.json"))
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--minutes-max", type=float, default=55.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--referee-seconds", type=float, default=60.0, help="a referee is killed this often")
    arguments = parser.parse_args()
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
