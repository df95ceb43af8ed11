"""The soak test on a GPU, rehearsed: service, referees, jails, compilers and clients are real, the driver is that of
tests/support/fake_cuda, and what would be a kernel is a loop of the host."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.slices import read_lines

_ROOT = Path(__file__).resolve().parents[2]
_BIN = Path(os.environ["WARPSMITH_BIN_DIR"]).resolve()
_FAKE = _BIN.parent / "tests" / "fake_cuda"
_STAND_IN = _ROOT / "tests/support/fake_cuda/fake_gpu_tensors.py"
_REQUESTS = 40

pytestmark = pytest.mark.skipif(
    not Path("/usr/local/cuda/bin/nvcc").exists() and shutil.which("nvcc") is None, reason="no nvcc"
)


def _slice(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(_FAKE),
        "FAKE_CUDA": str(folder / "script"),
        "WARPSMITH_BIN_DIR": str(folder / "bin"),
        "PYTHONPATH": f"{_ROOT}:{_ROOT}/reward_service/clients/python",
    }
    # With this seed no program keeps a compiler at work until its time is up.
    words = ["--gpu", "--rehearse", "--requests", str(_REQUESTS), "--referee-seconds", "15", "--out", "out.jsonl"]
    settings = ["--seed", "2", "--set", "call_seconds_max=1"]
    return subprocess.run(
        [sys.executable, "-B", str(_ROOT / "tests/bench/soak_bench.py"), *words, *settings, *more],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_all_is_answered_in_slices_while_referees_die_and_nothing_is_left(tmp_path: Path) -> None:
    shutil.copytree(_BIN, tmp_path / "bin")
    shutil.copytree(_BIN.parent / "share", tmp_path / "share")
    shutil.copy(_STAND_IN, tmp_path / "share" / "warpsmith" / "jail" / "gpu_tensors.py")
    (tmp_path / "script").write_text("gpus 1\n")

    first = _slice(tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    lines = read_lines(tmp_path / "out.jsonl")
    assert (len(lines), lines[-1]["piece"]) == (_REQUESTS + 1, "end of slice 1")
    assert len(lines[-1]["result"]["kills"]) > 0
    assert {line["result"]["client"].split("-")[0] for line in lines[:-1]} == {"http", "grpc"}
    assert "unexpected verdicts 0" in first.stdout and "UNSCORABLE 0" in first.stdout, first.stdout

    # As if time had been up before the last ones.
    left = [line["piece"] for line in lines[-6:-1]]
    kept = [json.dumps(line) + "\n" for line in lines if line["piece"] not in left]
    (tmp_path / "out.jsonl").write_text("".join(kept))
    second = _slice(tmp_path, "--resume")
    assert second.returncode == 0, second.stdout + second.stderr
    lines = read_lines(tmp_path / "out.jsonl")
    assert {line["piece"]: line["result"].get("life") for line in lines[_REQUESTS - 4 : -1]} == dict.fromkeys(left, 2)
    assert lines[-1]["piece"] == "end of slice 2"
    assert "no piece is left" in second.stdout

    third = _slice(tmp_path, "--resume")  # which only tells
    assert third.returncode == 0, third.stdout + third.stderr
    assert read_lines(tmp_path / "out.jsonl") == lines
