"""The reward service of a benchmark on a GPU: one that is running, or one of its own that starts when it is asked."""

from __future__ import annotations

import argparse
import os
import secrets
import threading
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from warpsmith_reward import Grade, Request, RetryOptions, RewardClient, RewardServiceError, Verdict

from tests.bench.slices import digest_of, gpus
from tests.hacks.own_service import own_service

# Of one grading, waiting for a lane included: whatever a slice begins must end within ten minutes of its start.
_SECONDS_MAX = 240.0


class GpuService:
    """Grades for the time of a `with` block. Safe to share between threads."""

    def __init__(self, address: str = "", settings: dict[str, str] | None = None) -> None:
        """`address` is the URL of a running service; without one, `settings` are keys of its own."""
        self._address = address
        self._settings = settings or {}
        self._stack = ExitStack()
        self._lock = threading.Lock()
        # Programs carry it in a name, so that a service that has seen them before knows no grade of them.
        self.token = secrets.token_hex(4)

    def __enter__(self) -> GpuService:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    @cached_property
    def identity(self) -> Any:
        """What grades depend on beside programs: the service's files and settings, or its address."""
        if self._address:
            return self._address
        programs = Path(os.environ["WARPSMITH_BIN_DIR"])
        return [digest_of([programs, programs.parent / "share"]), self._settings]

    def start(self) -> None:
        """Returns when requests are taken: what is timed after it has no part of a start, some 25 s."""
        self._running()

    def grade(self, request: Request) -> Grade:
        """Raises RewardServiceError where there is no grade, the service's own failures included."""
        grade = self._running().grade(request)
        if grade.verdict is Verdict.UNSCORABLE:
            raise RewardServiceError(f"UNSCORABLE: {grade.reason}")
        return grade

    def _running(self) -> RewardClient:
        with self._lock:
            return self._client

    @cached_property
    def _client(self) -> RewardClient:
        address = self._address or self._stack.enter_context(own_service(self._settings))
        return self._stack.enter_context(RewardClient(address, retries=RetryOptions(seconds_max=_SECONDS_MAX)))


def add_service_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of every benchmark that grades on a GPU; open_service reads them."""
    parser.add_argument("--address", default="", help="URL of a running service's HTTP door; default: one of its own")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of reward_service, for its own")


def open_service(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> GpuService:
    """Ends the program, with the reason, where there is nothing to measure on."""
    if not arguments.gpu:
        parser.error("this benchmark measures on a GPU alone: add --gpu")
    if not arguments.address and not gpus():
        parser.exit(1, "No GPU is here: nvidia-smi shows none. --address takes the URL of a service that has one.\n")
    if not arguments.address and "WARPSMITH_BIN_DIR" not in os.environ:
        parser.exit(1, "WARPSMITH_BIN_DIR must name the folder of warpsmith-reward; ./dev bench sets it.\n")
    return GpuService(arguments.address, dict(text.split("=", 1) for text in arguments.set))
