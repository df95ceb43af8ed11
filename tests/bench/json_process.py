"""A program that prints an object of JSON a line, run for a bounded time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_SAID_CHARACTERS_MAX = 600  # of standard error, in a failure


@dataclass(frozen=True)
class Answer:
    """What a program printed, and when."""

    rows: list[dict[str, Any]]
    row_seconds: list[float]  # from the launch to each row
    failure: str  # why it did not end well; empty where it did

    def checked(self) -> list[dict[str, Any]]:
        """The rows. Raises RuntimeError where the program failed or printed none."""
        if self.failure:
            raise RuntimeError(f"{self.failure}; it printed {self.rows[-1:]}")
        if not self.rows:
            raise RuntimeError("it printed no line of JSON that has a name")
        return self.rows


def run_json(command: Sequence[str], seconds_max: float) -> Answer:
    """Keeps the lines that are objects with a "name"; libraries print others. Kills the program after `seconds_max`,
    and keeps what it has printed. Raises FileNotFoundError, with the way out, where the program is not there."""
    if "/" in command[0] and not Path(command[0]).is_file():
        raise FileNotFoundError(f"{command[0]} is not there. ./dev build core builds it; --binaries names its folder.")
    with tempfile.TemporaryFile("w+") as said:
        begin = time.monotonic()
        process = subprocess.Popen(
            list(command),
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        assert process.stdout
        late = threading.Event()

        def stop() -> None:
            late.set()
            _kill_group(process)

        timer = threading.Timer(seconds_max, stop)
        timer.start()
        rows, seconds = [], []
        try:
            for line in process.stdout:
                row = _row_of(line)
                if row is not None:
                    rows.append(row)
                    seconds.append(time.monotonic() - begin)
            status = process.wait()
        finally:
            timer.cancel()
            _kill_group(process)
        said.seek(0)
        failure = "" if status == 0 else f"status {status}: {said.read().strip()[-_SAID_CHARACTERS_MAX:]}"
        if late.is_set():
            failure = f"not done after {seconds_max:.0f} s"
    return Answer(rows, seconds, failure)


def _kill_group(process: subprocess.Popen[str]) -> None:
    """Nothing where it has ended. A compiler's workers go too: they would hold the output open."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _row_of(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except json.JSONDecodeError:
        return None
    return row if isinstance(row, dict) and "name" in row else None
