"""Memory, descriptors and threads of a service over time."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.soak_service import SoakService, descendants

_PERIOD_SECONDS = 5.0
_WARM_UP_SECONDS = 120.0
_MEGABYTE = 1 << 20
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Sample:
    """At one moment. `available_mb` is what the whole machine has left, whoever took the rest."""

    seconds: float
    life: int
    age: float  # of this life, in seconds
    service_mb: float
    available_mb: float
    num_processes: int
    num_descriptors: int
    num_threads: int


def _resident_mb(pid: int) -> float:
    """0 for a process that has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / _MEGABYTE
    except (OSError, IndexError):
        return 0.0


def _available_mb() -> float:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _entries(folder: str) -> int:
    try:
        return len(os.listdir(folder))
    except OSError:
        return 0


@dataclass
class MemoryWatch:
    """A thread that samples until stopped."""

    service: SoakService
    samples: list[Sample] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._begin = time.monotonic()
        self._born = {self.service.life: self._begin}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD_SECONDS):
            pid, life, now = self.service.pid, self.service.life, time.monotonic()
            born = self._born.setdefault(life, now)
            resident = _resident_mb(pid)
            if resident and self.service.ready:
                counts = len(descendants(pid)), _entries(f"/proc/{pid}/fd"), _entries(f"/proc/{pid}/task")
                self.samples.append(Sample(now - self._begin, life, now - born, resident, _available_mb(), *counts))


def slope_per_hour(samples: list[Sample], values: list[float]) -> float:
    """Least squares; 0 for fewer than two moments."""
    times = [sample.seconds / 3600 for sample in samples]
    mean_time, mean = sum(times) / len(times), sum(values) / len(values)
    spread = sum((t - mean_time) ** 2 for t in times)
    both = sum((t - mean_time) * (v - mean) for t, v in zip(times, values, strict=True))
    return both / spread if spread else 0.0


def memory_by_life(samples: list[Sample]) -> list[dict[str, Any]]:
    """For each life of the service, after a warm-up: least, most, slope; all in MiB."""
    lives = []
    for life in sorted({sample.life for sample in samples}):
        warm = [s for s in samples if s.life == life and s.age >= _WARM_UP_SECONDS]
        if len(warm) < 2:
            lives.append({"life": life, "num_samples": len(warm)})
            continue
        entry: dict[str, Any] = {"life": life, "num_samples": len(warm), "seconds": round(warm[-1].age)}
        for name in ("service_mb", "available_mb", "num_processes", "num_descriptors", "num_threads"):
            values = [float(getattr(sample, name)) for sample in warm]
            entry[name] = {
                "min": round(min(values), 1),
                "max": round(max(values), 1),
                "slope_per_hour": round(slope_per_hour(warm, values), 2),
            }
        lives.append(entry)
    return lives
