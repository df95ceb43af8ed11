"""A reward service that the soak test starts, kills and watches; and who it leaves behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.soak_doors import Address

_START_SECONDS_MAX = 180.0
_STOP_SECONDS_MAX = 90.0
_PR_SET_CHILD_SUBREAPER = 36
# As few rounds as the demonstration takes; calls may last 2 s; a queue shorter than what the clients send at once; what
# is remembered fills within two minutes, so that a service that keeps more than it says shows as memory that grows.
SETTINGS = {
    "http_address": "127.0.0.1:0",
    "call_seconds_max": "2",
    "lane_seconds_max": "10",
    "queue_capacity": "24",
    "cache_bytes_max": str(16 << 20),
    "timing.num_instances_min": "3",
    "timing.num_instances_max": "4",
    "timing.num_rounds_max": "1",
    "timing.relative_width_max": "0.3",
}


def adopt_orphans() -> None:
    """Whatever our descendants leave behind becomes our child, so that it can be found."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@dataclass(frozen=True)
class Process:
    """A line of /proc."""

    pid: int
    parent: int
    name: str
    state: str


def processes() -> Iterator[Process]:
    """All that can be seen now."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            text = Path(f"/proc/{entry}/stat").read_text()
        except OSError:
            continue
        name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
        yield Process(int(entry), int(rest[1]), name, rest[0])


def descendants(pid: int) -> list[Process]:
    """Of a process, without itself; zombies too."""
    children: dict[int, list[Process]] = {}
    for process in processes():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = list(children.get(pid, []))
    while waiting:
        process = waiting.pop()
        found.append(process)
        waiting += children.get(process.pid, [])
    return found


def end_descendants() -> None:
    """Kills whatever was left behind, so that a run that failed leaves nothing either."""
    for process in descendants(os.getpid()):
        if process.state != "Z":
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
    reap_adopted(set())


def reap_adopted(own: set[int]) -> None:
    """Takes leave of adopted children that have ended; `own` are left to whoever started them."""
    for process in descendants(os.getpid()):
        if process.parent == os.getpid() and process.state == "Z" and process.pid not in own:
            try:
                os.waitpid(process.pid, os.WNOHANG)
            except ChildProcessError:
                continue


@dataclass
class SoakService:
    """One service at a time in `folder`, its cache folder below it. Not thread-safe but for `address` and `life`."""

    program: Path
    folder: Path
    cores: list[int]
    settings: dict[str, str] = field(default_factory=dict)  # beside SETTINGS, or in the place of some
    address: Address = field(default_factory=Address)
    life: int = 0
    ready: bool = False  # to be asked, and to be measured
    _process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def log(self) -> Path:
        return self.folder / "service.log"

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    def start(self) -> float:
        """Seconds until it listens. Raises RuntimeError where it does not."""
        self.ready = False
        begin = time.monotonic()
        settings = {"address": f"unix:{self.socket}", "cache_directory": str(self.cache), **SETTINGS, **self.settings}
        command = ["taskset", "-c", ",".join(map(str, self.cores)), str(self.program), "--log-level", "info"]
        for key, value in settings.items():
            command += ["--set", f"reward_service.{key}={value}"]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "TMPDIR": str(self.folder / "tmp")},
            )
        self._await_doors(self._process)
        self.life += 1
        self.ready = True
        return time.monotonic() - begin

    def _await_doors(self, process: subprocess.Popen[str]) -> None:
        watch = threading.Timer(_START_SECONDS_MAX, process.kill)
        watch.start()
        assert process.stdout
        for line in process.stdout:
            if line.startswith("HTTP on "):
                self.address.url = "http://" + line.removeprefix("HTTP on ").strip()
            if line.startswith("listening on "):
                self.address.socket = line.removeprefix("listening on ").strip()
                break
        watch.cancel()
        if process.poll() is not None or not self.address.socket:
            raise RuntimeError(f"the service did not start; see {self.log}")

    def kill(self) -> None:
        """As the machine's memory killer would."""
        assert self._process is not None
        self.ready = False
        self._process.kill()
        self._process.wait()

    def stop(self) -> int | None:
        """Its exit status after SIGTERM; nothing where it had to be killed."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(timeout=_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def end(self) -> None:
        """Kills it where it still runs."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def referees(self) -> list[Process]:
        return [p for p in descendants(self.pid) if p.name.startswith("warpsmith-ref") and p.state != "Z"]
