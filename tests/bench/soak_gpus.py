"""What GPUs hold for whom: their memory, by nvidia-smi, and the processes that have them open, by /proc. In a virtual
machine nvidia-smi may list no processes; open descriptors are there for anybody to see."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.soak_service import processes

_DEVICES = "/dev/nvidia"
_QUERY_SECONDS_MAX = 60
_GRACE_SECONDS = 15.0
_DRIVER = "libcuda.so"


@dataclass(frozen=True)
class GpuUse:
    """At one moment. `memory_mib` by the GPUs' UUIDs; `holders` are processes that have a GPU open, by their ids;
    `num_listed` of those that compute, as nvidia-smi lists them."""

    memory_mib: dict[str, int]
    holders: dict[int, str]
    num_listed: int

    @classmethod
    def now(cls) -> GpuUse:
        """Without nvidia-smi no memory is known."""
        rows = [line.split(",") for line in _ask("--query-gpu=uuid,memory.used")]
        memory = {uuid.strip(): int(mib) for uuid, mib in (row for row in rows if len(row) == 2)}
        return cls(memory, holders(), len(_ask("--query-compute-apps=pid")))


def _ask(query: str) -> list[str]:
    try:
        command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_QUERY_SECONDS_MAX, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line for line in done.stdout.splitlines() if line.strip()]


def _files(pid: int) -> list[str]:
    """Of a process that may end meanwhile, or be another's."""
    try:
        return [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
    except OSError:
        return []


def holders() -> dict[int, str]:
    """Processes that have a device of NVIDIA's open."""
    return {p.pid: p.name for p in processes() if any(path.startswith(_DEVICES) for path in _files(p.pid))}


def uses_gpu(pid: int) -> bool:
    """Whether the process has the driver of CUDA loaded."""
    try:
        return _DRIVER in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def held_since(before: GpuUse, now: GpuUse) -> list[str]:
    """What is held now and was not before."""
    found = [f"GPU open in {name} ({pid})" for pid, name in sorted(now.holders.items()) if pid not in before.holders]
    for uuid, mib in sorted(now.memory_mib.items()):
        if mib > before.memory_mib.get(uuid, 0):
            found.append(f"{mib - before.memory_mib.get(uuid, 0)} MiB more of {uuid}")
    found += [f"{uuid} is not seen any more" for uuid in sorted(before.memory_mib.keys() - now.memory_mib.keys())]
    if now.num_listed > before.num_listed:
        found.append(f"{now.num_listed - before.num_listed} processes more that compute")
    return found


def await_released(before: GpuUse) -> tuple[GpuUse, list[str]]:
    """What is held, and what of it was not before, once the driver has had a moment to take it back."""
    end = time.monotonic() + _GRACE_SECONDS
    while True:
        now = GpuUse.now()
        if not (found := held_since(before, now)) or time.monotonic() > end:
            return now, found
        time.sleep(0.5)
