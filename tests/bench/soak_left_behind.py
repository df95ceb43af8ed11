"""The folder of a soak test's service, and what a service that was stopped leaves behind."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.soak_service import SoakService, descendants, reap_adopted

_GRACE_SECONDS = 15.0


@contextmanager
def soak_folder() -> Iterator[Path]:
    """A folder of the test's own, short enough a path for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    (folder / "tmp").mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
    # Where TMPDIR is shared memory our own folder is there, and is looked at above.
    found += [f"shared file {path}" for path in sorted(shared_entries() - before - {str(service.folder)})]
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    found += [f"mount {line}" for line in mounts if str(service.folder) in line and str(service.cache) not in line]
    return found


def _processes_left() -> list[str]:
    reap_adopted(set())
    return [f"process {p.name} ({p.pid}, {p.state})" for p in descendants(os.getpid())]
