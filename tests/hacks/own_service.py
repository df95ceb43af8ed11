"""A reward service for the life of a `with` block: its own sockets, its own empty cache."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STOP_SECONDS_MAX = 60


@contextmanager
def own_service(settings: dict[str, str] | None = None, environment: dict[str, str] | None = None) -> Iterator[str]:
    """The URL of its HTTP door. `settings` are keys of reward_service, `environment` variables that it has besides
    ours. Raises RuntimeError where it does not start."""
    program = Path(os.environ["WARPSMITH_BIN_DIR"]) / "warpsmith-reward"
    with tempfile.TemporaryDirectory() as folder:
        chosen = {
            "address": f"unix:{folder}/socket",
            "http_address": "127.0.0.1:0",
            "cache_directory": f"{folder}/cache",
            **(settings or {}),
        }
        command = [str(program), "--log-level", "error"]
        for key, value in chosen.items():
            command += ["--set", f"reward_service.{key}={value}"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
        )
        try:
            assert process.stdout
            line = process.stdout.readline()
            if not line.startswith("HTTP on "):
                raise RuntimeError(f"the reward service did not start: {line!r}")
            yield "http://" + line.removeprefix("HTTP on ").strip()
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=_STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
