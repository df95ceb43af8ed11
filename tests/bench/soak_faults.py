"""What goes wrong during the soak test: dead referees, a dead service, a full disk. One thread does it all."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.soak_service import Process, SoakService, descendants, processes, reap_adopted

_PERIOD_SECONDS = 1.0
_GRACE_SECONDS = 10.0
_RESTART_SHARES = (1 / 3, 2 / 3)
_FILL_SHARE = 1 / 2
_FILL_SECONDS = 30.0
_DISK_MEGABYTES = 192
_BLOCK = b"\0" * (1 << 16)


class SmallDisk:
    """A tmpfs in the place of the cache folder; `why_not` says why there is none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.why_not = ""
        self.mounted = False

    def mount(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() != 0:
            self.why_not = "mounting a small disk takes root"
            return
        command = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MEGABYTES}m", "soak", str(self._folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.mounted = done.returncode == 0
        self.why_not = "" if self.mounted else f"mount failed: {done.stderr.strip()}"

    def fill(self) -> int:
        """Bytes written until there was no more room."""
        written = 0
        with (self._folder / "filler").open("wb", buffering=0) as file:
            try:
                while written < _DISK_MEGABYTES << 20:
                    written += file.write(_BLOCK)
            except OSError:
                pass
        return written

    def clear(self) -> None:
        (self._folder / "filler").unlink(missing_ok=True)

    def unmount(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "-l", str(self._folder)], check=False)
            self.mounted = False


@dataclass
class Faults:
    """Runs until stopped. `share_done` is of the requests; `events` says what was done, when, and what it left."""

    service: SoakService
    disk: SmallDisk
    share_done: Callable[[], float]
    referee_seconds: float
    events: list[dict[str, Any]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._begin = time.monotonic()
        self._next_referee = self._begin + self.referee_seconds
        self._restarts = list(_RESTART_SHARES)
        self._full_since: float | None = None
        self._is_filled = not self.disk.mounted
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends after what is being done now; the disk has room again."""
        self._stop.set()
        self._thread.join()
        if self._full_since is not None:
            self._clear_disk()

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD_SECONDS):
            reap_adopted({self.service.pid})
            if self._restarts and self.share_done() >= self._restarts[0]:
                self._restarts.pop(0)
                self._restart()
            elif time.monotonic() >= self._next_referee:
                self._kill_referee()
                self._next_referee = time.monotonic() + self.referee_seconds
            self._advance_disk()

    def _note(self, what: str, **facts: Any) -> None:
        self.events.append({"at_seconds": round(time.monotonic() - self._begin, 1), "what": what, **facts})

    def _kill_referee(self) -> None:
        for referee in self.service.referees()[:1]:
            orphans = descendants(referee.pid)
            os.kill(referee.pid, signal.SIGKILL)
            self._note("referee killed", survivors=survivors_of(orphans))

    def _restart(self) -> None:
        orphans = descendants(self.service.pid)
        self.service.kill()
        survivors = survivors_of(orphans)
        seconds = self.service.start()
        self._note("service killed and restarted", survivors=survivors, start_seconds=round(seconds, 1))

    def _advance_disk(self) -> None:
        if not self._is_filled and self.share_done() >= _FILL_SHARE:
            self._is_filled = True
            self._full_since = time.monotonic()
            self._note("disk filled", filler_bytes=self.disk.fill())
        elif self._full_since is not None and time.monotonic() - self._full_since > _FILL_SECONDS:
            self._clear_disk()

    def _clear_disk(self) -> None:
        self.disk.clear()
        self._full_since = None
        self._note("disk has room again")


def survivors_of(orphans: list[Process]) -> list[str]:
    """Which of the processes still run after a grace."""
    wanted = {(process.pid, process.name) for process in orphans}
    end = time.monotonic() + _GRACE_SECONDS
    while True:
        alive = [p for p in processes() if (p.pid, p.name) in wanted and p.state != "Z"]
        if not alive or time.monotonic() > end:
            return [f"{p.name} ({p.pid}, {p.state})" for p in alive]
        time.sleep(0.1)
