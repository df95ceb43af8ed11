"""Native CUDA programs and their tasks' references, timed by CUDA events in a plain process: no service, no sandbox.

Data are as cold as a referee's: each call of a batch has inputs and outputs of its own, and before a batch the GPU's
cache is filled with something else. The GPU is kept busy while a batch is queued, so that the events see what the
kernels take and not how fast the host launches them.

Reads lines [kernel, calls in a batch, batches of either side]; prints for each {"candidate_us": ..., "reference_us":
...}, medians over the batches of the microseconds of one call.

python -m tests.bench.gpu_timing_peer KERNEL...
"""

from __future__ import annotations

import ctypes
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tests.bench.gpu_timing_kernels import KERNELS

_FLUSH_BYTES = 256 << 20  # several times the last-level cache of any GPU
_QUEUE_CLOCKS = 6_000_000  # 3 ms at 2 GHz: longer than a batch takes to be queued
_FLOAT_CODE, _CUDA_DEVICE = 2, 2  # kDLFloat, kDLCUDA


class DLTensor(ctypes.Structure):
    """As dlpack.h has it, with device and dtype written out."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def dl_tensor(tensor: torch.Tensor) -> DLTensor:
    """A view of a contiguous tensor of floats, which must outlive it."""
    shape = (ctypes.c_int64 * tensor.dim())(*tensor.shape)
    device = tensor.device.index or 0
    return DLTensor(
        tensor.data_ptr(), _CUDA_DEVICE, device, tensor.dim(), _FLOAT_CODE, 32, 1, shape, None, 0
    )  # ctypes keeps `shape` alive


def nvcc_command(source: Path, library: Path, architecture: str) -> list[str]:
    """How the program is compiled: as the service does, but for what confines it."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    target = ["-gencode", f"arch=compute_{architecture},code=sm_{architecture}"]
    return [nvcc, "-O3", "-std=c++17", "-shared", *target, "-Xcompiler", "-fPIC", "-o", str(library), str(source)]


def _compiled(source: str) -> ctypes.CDLL:
    major, minor = torch.cuda.get_device_capability()
    with tempfile.TemporaryDirectory() as folder:
        path, library = Path(folder) / "peer.cu", Path(folder) / "peer.so"
        path.write_text(source)
        subprocess.run(nvcc_command(path, library, f"{major}{minor}"), check=True, timeout=120)
        return ctypes.CDLL(str(library))


class Peer:
    """One program beside its reference."""

    def __init__(self, name: str) -> None:
        kernel = KERNELS[name]
        self._task: dict[str, Any] = {}
        exec(kernel.task, self._task)  # noqa: S102 - our own
        self._model = self._task["Model"]().cuda()
        self._run = _compiled(kernel.source("peer")).run
        self._flush = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device="cuda")
        self._inputs: list[torch.Tensor] = []
        self._outputs: list[torch.Tensor] = []
        self._make_sets(1)
        self._call(0)
        torch.testing.assert_close(self._outputs[0], self._model(self._inputs[0]), rtol=1e-3, atol=1e-2)

    def measure(self, num_calls: int, num_batches: int) -> dict[str, float]:
        """Microseconds of a call, medians over batches that take turns; the first batch of either side is left out."""
        self._make_sets(num_calls)
        candidate, reference = [], []
        for _ in range(num_batches + 1):
            reference.append(self._batch_us(self._call_model, num_calls))
            candidate.append(self._batch_us(self._call, num_calls))
        return {"candidate_us": statistics.median(candidate[1:]), "reference_us": statistics.median(reference[1:])}

    def _make_sets(self, num: int) -> None:
        while len(self._inputs) < num:
            self._inputs.append(self._task["get_inputs"]()[0].cuda())
            self._outputs.append(torch.empty_like(self._model(self._inputs[-1])))

    def _call(self, index: int) -> None:
        x, y = dl_tensor(self._inputs[index]), dl_tensor(self._outputs[index])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        status = self._run(ctypes.byref(ctypes.pointer(x)), None, ctypes.byref(ctypes.pointer(y)), stream)
        if status:
            raise RuntimeError(f"the program returned {status}")

    def _call_model(self, index: int) -> torch.Tensor:
        return self._model(self._inputs[index])

    def _batch_us(self, call: Callable[[int], object], num_calls: int) -> float:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self._flush.add_(1)
        torch.cuda._sleep(_QUEUE_CLOCKS)
        begin.record()
        kept = [call(index) for index in range(num_calls)]  # so that no output is written where the last one was
        end.record()
        torch.cuda.synchronize()
        del kept
        return begin.elapsed_time(end) * 1e3 / num_calls


def main() -> None:
    """Measures whenever a line asks for it."""
    with torch.no_grad():
        peers = {name: Peer(name) for name in sys.argv[1:]}
        for line in sys.stdin:
            name, num_calls, num_batches = json.loads(line)
            print(json.dumps(peers[name].measure(num_calls, num_batches)), flush=True)


if __name__ == "__main__":
    main()
