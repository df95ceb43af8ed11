"""The benchmark of contexts, with the driver of tests/support/fake_cuda."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.bench import gpu_contexts_bench
from tests.bench.gpu_contexts_bench import main
from tests.bench.slices import read_lines

_FAKE = Path(os.environ["WARPSMITH_BIN_DIR"]).resolve().parent / "tests" / "fake_cuda"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_contexts_bench, "_SECONDS", 0.3)
    monkeypatch.setattr(gpu_contexts_bench, "_AT_ONCE", (1, 2))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(_FAKE))


def _main(folder: Path, gpus: list[str]) -> int:
    return main(["--gpu", "--out", str(folder / "out.jsonl")], gpus)


def test_processes_are_counted_on_one_gpu_and_on_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script").write_text("gpus 2\n")
    monkeypatch.setenv("FAKE_CUDA", str(tmp_path / "script"))
    assert _main(tmp_path, ["0", "1"]) == 0
    lines = read_lines(tmp_path / "out.jsonl")
    assert [line["piece"] for line in lines] == [
        "1 GPU, 1 at once on each",
        "1 GPU, 2 at once on each",
        "2 GPUs, 1 at once on each",
        "2 GPUs, 2 at once on each",
    ]
    assert all(line["result"]["contexts"] > 0 for line in lines)
    assert "no piece is left" in capsys.readouterr().out


def test_a_gpu_that_the_driver_does_not_show_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script").write_text("gpus 0\n")
    monkeypatch.setenv("FAKE_CUDA", str(tmp_path / "script"))
    assert _main(tmp_path, ["GPU-gone"]) == 1
    assert "made no context on GPU-gone" in capsys.readouterr().out


def test_without_a_gpu_there_is_nothing_to_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _main(tmp_path, [])
    assert "no GPU is here" in capsys.readouterr().err
