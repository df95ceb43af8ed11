"""Other work for a reward service while a benchmark measures there: what a service has to do beside whoever is timed.

Each client sends one program after another, every one for a task that the service has not seen, with code that it has
not compiled: an oracle starts, a compiler runs, a Python program is recorded first. All are wrong in one element, so
that they are compiled and verified, and never timed: whoever is timed waits for turns, not for other timings.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from warpsmith_reward import Grade, Request, RewardServiceError

from tests.bench.gpu_timing_kernels import TimedKernel, affine

_STOP_SECONDS_MAX = 60.0  # of a program that has been sent
_ROWS, _COLS = 256, 1280
_RIGHT_NATIVE = "  return static_cast<int>(cudaGetLastError());"
_WRONG_NATIVE = f"  cudaMemsetAsync(y, 0x40, sizeof(float), stream);\n{_RIGHT_NATIVE}"
_INLINE = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

_CUDA = """
#include <torch/extension.h>
__global__ void kernel_NAME(const float* x, float* y, int64_t n) {
  const int64_t i = blockIdx.x * int64_t{256} + threadIdx.x;
  if (i >= n) return;
  const float v = x[i] > -0.5f ? 2 * x[i] + 1 : 0;
  y[i] = i == 0 ? 3 : v * v;
}
torch::Tensor chain_NAME(torch::Tensor x) {
  torch::Tensor y = torch::empty_like(x);
  const int64_t n = x.numel();
  kernel_NAME<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""
_module = load_inline(
    name="module_NAME",
    cpp_sources="torch::Tensor chain_NAME(torch::Tensor x);",
    cuda_sources=_CUDA,
    functions=["chain_NAME"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return _module.chain_NAME(x)
'''


def requests(name: str) -> Iterator[Request]:
    """By turns native programs and Python ones with inline CUDA, without end; `name` is part of all of theirs."""
    kernel: TimedKernel = affine(_ROWS, _COLS)
    number = 0
    while True:
        own = f"{name}_{number}"
        task = f"# {own}\n{kernel.task}"
        if number % 2 == 0:
            source = kernel.source(own).replace(_RIGHT_NATIVE, _WRONG_NATIVE)
            yield Request(task, source=source, language="cuda")
        else:
            source = _INLINE.replace("NAME", own)
            yield Request(task, source=source, language="kernelbench_python", device="cuda")
        number += 1


@contextmanager
def other_work(grade: Callable[[Request], Grade], name: str, num_clients: int) -> Iterator[Counter[str]]:
    """Has so many clients at work for the time of the block; counts their verdicts as they come. A service that is
    full, or fails, is one of them: the measurement beside it decides what that means."""
    verdicts: Counter[str] = Counter()
    lock = threading.Lock()
    stop = threading.Event()

    def work(client: int) -> None:
        for request in requests(f"{name}_{client}"):
            if stop.is_set():
                return
            try:
                verdict = grade(request).verdict.value
            except RewardServiceError:
                verdict = "no grade"
            with lock:
                verdicts[verdict] += 1

    clients = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(num_clients)]
    for client in clients:
        client.start()
    try:
        yield verdicts
    finally:
        stop.set()
        for client in clients:
            client.join(_STOP_SECONDS_MAX)
