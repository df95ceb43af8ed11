"""A GPU that a trainer and a reward service of one host use by turns."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

_PAUSE_SECONDS = 0.002  # as the service's: who asks more often would have it sooner
_OPEN_ATTEMPTS = 3


@contextmanager
def device_lease(device: str, timeout_seconds: float, directory: Path = Path("/run/lock")) -> Iterator[None]:
    """Holds the GPU with the UUID `device` ("GPU-...", as `nvidia-smi -L` shows it) for as long as the block lasts: no
    reward service of this host times a program there meanwhile. Use it around a step, and hold it no longer, for
    requests wait. The GPU must be idle when the block ends: synchronise within it. Of two processes the one that waits
    comes before the one that comes again. The kernel releases the GPU when the process ends.

    The protocol of core/base/device_lease.h. Raises TimeoutError with the process that has the GPU, ValueError for a
    name that is no UUID, OSError where `directory` cannot be used.
    """
    if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", device):
        raise ValueError(f"a device's name has 1 to 64 letters, digits and hyphens, as a GPU's UUID: {device!r}")
    deadline = time.monotonic() + timeout_seconds
    next_, held_ = (directory / f"warpsmith-{device}.{end}" for end in ("next", "held"))
    with closing(_LockFile(next_)) as place, closing(_LockFile(held_)) as held:
        place.lock(deadline, device, held)
        held.lock(deadline, device, held)
        place.unlock()
        held.write(str(os.getpid()))
        yield


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    for _ in range(_OPEN_ATTEMPTS):  # somebody may make the file, or remove it, in between
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            pass
        try:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue
        os.fchmod(descriptor, 0o666)  # this process may have a narrower mask
        return descriptor
    raise FileNotFoundError(f"{path} is made and removed again and again")


class _LockFile:
    """A file that any user may lock; closed, it is free."""

    def __init__(self, path: Path) -> None:
        self._fd = _open(path)

    def lock(self, deadline: float, device: str, held: _LockFile) -> None:
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise TimeoutError(f"{device} is in use by process {held.read()}") from None
            time.sleep(_PAUSE_SECONDS)

    def unlock(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def read(self) -> str:
        holder = os.pread(self._fd, 16, 0)  # anybody may have written there
        return holder.decode() if holder.isdigit() else "unknown"

    def write(self, text: str) -> None:
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, text.encode(), 0)

    def close(self) -> None:
        self.unlock()  # a process that was forked meanwhile has the descriptor, too
        os.close(self._fd)
