"""What a new user may get wrong on a command line: each refusal names the fault and the way out."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

_BIN = Path(os.environ["WARPSMITH_BIN_DIR"])


def _run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(_BIN / program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("upp", '"upp" is not a command; did you mean "up"?'),
        ("sevre", '"sevre" is not a command; did you mean "serve"?'),
        ("xyzzyplugh", '"xyzzyplugh" is not a command; known are up, config, grade, eval, export, serve, doctor'),
    ],
)
def test_a_misspelt_command_is_answered_with_the_nearest(written: str, answer: str) -> None:
    refused = _run("warpsmith", written, "configs/demo.yaml")
    assert refused.returncode == 109
    assert refused.stderr.splitlines()[0] == answer


def test_flags_before_a_command_are_left_to_the_parser() -> None:
    assert _run("warpsmith", "--help").returncode == 0
    assert "A subcommand is required" in _run("warpsmith").stderr


def test_a_folder_that_is_no_export_is_told_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    refused = _run("warpsmith", "serve", "--model", str(tmp_path))
    assert refused.returncode == 1
    assert "it lacks tokenizer.json, model.safetensors (or shards with model.safetensors.index.json)" in refused.stderr
    assert "`warpsmith export CONFIG` writes one" in refused.stderr
    absent = _run("warpsmith", "serve", "--model", str(tmp_path / "absent"))
    assert "absent: No such file or directory" in absent.stderr


def test_an_address_that_nobody_can_dial_is_refused_at_once(tmp_path: Path) -> None:
    config = ("--config", "configs/smoke.yaml", "--set", f"run.directory={tmp_path}")
    worker = _run("warpsmith-rollout", *config, "--reward-address", "0.0.0.0:50061")
    assert worker.returncode == 1
    assert '--reward-address: address "0.0.0.0:50061": 0.0.0.0 is where a server listens' in worker.stderr
    trainer = _run("warpsmith-train", *config, "--rollout-address", "node7:0")
    assert trainer.returncode == 1
    assert '--rollout-address: address "node7:0": nobody listens at port 0' in trainer.stderr


def test_a_port_in_use_is_named_with_the_flag_that_chooses_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = _run("warpsmith-rollout", "--config", "configs/smoke.yaml", "--address", address)
    assert refused.returncode == 1
    assert f"cannot listen at {address}: " in refused.stderr
    assert "; choose another by --address" in refused.stderr


@pytest.mark.parametrize(
    ("program", "arguments", "status"),
    [
        ("warpsmith", ["up", "absent.yaml"], 105),
        ("warpsmith", ["grade"], 106),
        ("warpsmith", ["doctor", "--nonsense"], 109),
        ("warpsmith-train", [], 106),
        ("warpsmith-train", ["--config", "absent.yaml"], 105),
        ("warpsmith-rollout", [], 106),
        ("warpsmith-rollout", ["--config", "absent.yaml"], 1),
        ("warpsmith-reward", ["--nonsense"], 109),
        ("warpsmith-reward", ["--set", "reward_service.num_lanes=x"], 1),
    ],
)
def test_a_wrong_command_line_ends_with_the_documented_status(program: str, arguments: list[str], status: int) -> None:
    assert _run(program, *arguments).returncode == status
