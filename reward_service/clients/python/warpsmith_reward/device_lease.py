"""A GPU that a trainer and a reward service of one host use by turns."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

_PAUSE_SECONDS_MIN = 0.001
_PAUSE_SECONDS_MAX = 0.02


@contextmanager
def device_lease(device: str, timeout_seconds: float, directory: Path = Path("/run/lock")) -> Iterator[None]:
    """Holds the GPU with the UUID `device` ("GPU-...", as `nvidia-smi -L` shows it) for as long as the block lasts: no
    reward service of this host times a program there meanwhile. Who waits has his turn before one who comes again.
    Use it around a step, and hold it no longer, for requests wait. What a process holds that ends is free.

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


class _LockFile:
    """A file that any user may lock; closed, it is free."""

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._fd = os.open(path, flags)
        except FileNotFoundError:
            self._fd = os.open(path, flags | os.O_CREAT, 0o666)
            if stat.S_IMODE(os.fstat(self._fd).st_mode) != 0o666:
                os.fchmod(self._fd, 0o666)  # this process may have a narrower mask

    def lock(self, deadline: float, device: str, held: _LockFile) -> None:
        pause = _PAUSE_SECONDS_MIN
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise TimeoutError(f"{device} is in use by process {held.read()}") from None
            time.sleep(pause)
            pause = min(2 * pause, _PAUSE_SECONDS_MAX)

    def unlock(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def read(self) -> str:
        return os.pread(self._fd, 16, 0).decode(errors="replace") or "unknown"

    def write(self, text: str) -> None:
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, text.encode(), 0)

    def close(self) -> None:
        os.close(self._fd)
