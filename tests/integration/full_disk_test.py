"""A reward service whose cache folder takes nothing: it starts, says why it is slower, and grades."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from warpsmith_reward import Request, RewardClient, Verdict

from tests.support.running_reward_service import running_reward_service

_REFERENCE = (Path(__file__).resolve().parents[1] / "data/tasks/scaled_relu_square.py").read_text()
_PROGRAM = """
#include <cmath>
#include <dlpack/dlpack.h>
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const*, DLTensor* const* outputs) {
  const float* x = static_cast<const float*>(inputs[0]->data);
  float* y = static_cast<float*>(outputs[0]->data);
  const int64_t n = inputs[0]->shape[0] * inputs[0]->shape[1];
  for (int64_t i = 0; i < n; ++i) { float v = std::fmax(2 * x[i] + 1, 0.0f); y[i] = v * v; }
  return 0;
}
"""
_INLINE = """
import torch
from torch.utils.cpp_extension import load_inline

source = "torch::Tensor forward(torch::Tensor x) { auto y = torch::relu(2 * x + 1); return y * y; }"
extension = load_inline(name="inline_relu", cpp_sources=source, functions=["forward"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.forward(x)
"""


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with room for 64 KiB, a tenth of a precompiled header."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if mounted.returncode != 0:
        pytest.skip(f"a disk of 64 KiB cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True, timeout=60)


def _grade_with_cache_in(folder: Path, tmp_path: Path) -> str:
    """The warnings of a service with its caches in `folder` that grades a native and an inline program."""
    with (
        running_reward_service(tmp_path, str(tmp_path / "log"), cache_directory=str(folder)) as address,
        RewardClient(f"http://{address}") as client,
    ):
        native = client.grade(Request(_REFERENCE, source=_PROGRAM, language="cpp"))
        inline = client.grade(Request(_REFERENCE, source=_INLINE))
    assert native.verdict is Verdict.CORRECT, native.reason
    assert native.reward
    assert inline.verdict not in (Verdict.COMPILE_ERROR, Verdict.UNSCORABLE), inline.reason
    return (tmp_path / "log").read_text()


def test_a_full_disk_costs_time_and_is_said_once(full_disk: Path, tmp_path: Path) -> None:
    log = _grade_with_cache_in(full_disk, tmp_path)
    assert log.count("programs compile slower") == 1, log
    assert "No space left on device" in log
    assert not list(full_disk.glob("**/unfinished-*"))


def test_a_cache_folder_that_cannot_be_made_costs_no_more(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    log = _grade_with_cache_in(tmp_path / "file" / "cache", tmp_path)
    assert log.count("programs compile slower") == 1, log
    assert "Not a directory" in log
