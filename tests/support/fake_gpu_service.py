"""A whole reward service beside fake GPUs: all of its processes are real but for the driver, that of fake_cuda."""

from __future__ import annotations

import os
import shutil
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from warpsmith_reward import RewardClient

from tests.support.running_reward_service import running_reward_service

_BIN = Path(os.environ["WARPSMITH_BIN_DIR"]).resolve()
_FAKE = _BIN.parent / "tests" / "fake_cuda"
_STAND_INS = Path(__file__).resolve().parent / "fake_cuda"
PATIENCE_SECONDS = 90


class FakeGpuService:
    """Its doors, and what its driver is told."""

    def __init__(self, address: str, script: Path) -> None:
        self.client = RewardClient(f"http://{address}")
        self.address = address
        self._script = script

    def say(self, script: str) -> None:
        whole = self._script.with_suffix(".new")
        whole.write_text(script)
        whole.replace(self._script)

    def lanes_lost(self) -> int:
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=10) as reply:
            lines = reply.read().decode().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("warpsmith_reward_lanes_lost "))

    def await_lanes_lost(self, number: int) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while self.lanes_lost() != number:
            assert time.monotonic() < end, f"{self.lanes_lost()} lanes are lost, not {number}"
            time.sleep(0.2)


@contextmanager
def running_fake_gpu_service(folder: Path, script_text: str) -> Iterator[FakeGpuService]:
    """With the driver that the script describes."""
    shutil.copytree(_BIN, folder / "bin")
    shutil.copytree(_BIN.parent / "share", folder / "share")
    for name in ("gpu_tensors.py", "triton_gpu.py"):
        shutil.copy(_STAND_INS / f"fake_{name}", folder / "share" / "warpsmith" / "jail" / name)
    script = folder / "script"
    script.write_text(script_text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", str(_FAKE))
        patch.setenv("FAKE_CUDA", str(script))
        patch.setenv("WARPSMITH_BIN_DIR", str(folder / "bin"))
        log_file = str(folder / "log")
        effort = dict(timing__num_instances_min="2", timing__num_instances_max="3")
        settings = dict(num_lanes="1", timing__baselines="[cuda_graph]", **effort)
        with running_reward_service(folder, log_file, **settings) as address:
            yield FakeGpuService(address, script)
