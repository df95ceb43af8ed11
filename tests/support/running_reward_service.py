"""A real reward service with its HTTP door, for as long as a test needs it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

_END_SECONDS_MAX = 60


@contextmanager
def running_reward_service(
    folder: Path, log_file: str = "", log_level: str = "warning", **settings: str
) -> Iterator[str]:
    """Its "host:port" of HTTP. `settings` are keys of the section `reward_service`, dots as double underscores; caches
    and socket lie in `folder`; its log goes to `log_file`, where one is named. Ended by SIGTERM, which must leave it
    with status 0."""
    all_settings = {
        "address": f"unix:{folder}/socket",
        "http_address": "127.0.0.1:0",
        "cache_directory": str(folder / "cache"),
        **{key.replace("__", "."): value for key, value in settings.items()},
    }
    command = [str(Path(os.environ["WARPSMITH_BIN_DIR"]) / "warpsmith-reward"), "--log-level", log_level]
    for key, value in all_settings.items():
        command += ["--set", f"reward_service.{key}={value}"]
    with open(log_file, "w") if log_file else nullcontext() as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout
    line = process.stdout.readline()
    assert line.startswith("HTTP on "), line
    try:
        yield line.removeprefix("HTTP on ").strip()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=_END_SECONDS_MAX) == 0
