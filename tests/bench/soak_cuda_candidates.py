"""Programs for the soak test on a GPU, distinct by number, each with the verdicts that its kind demands: native `cuda`
programs, and KernelBench answers with CUDA of their own or without any.

For a rehearsal on the driver of tests/support/fake_cuda, which runs no kernel, what would be one is a loop of the host,
and harm is what the host can do of the same kind.
"""

from __future__ import annotations

import importlib.util
import random
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from tests.bench.soak_candidates import LogicalRequest, Program, Task, element, make_tasks, requests_of

_NUM_TASKS = 12
# Shares of the requests, at least one of each; what is left repeats earlier ones.
_SHARES = {
    "good": 0.12,
    "wrong": 0.08,
    "hanging": 0.02,
    "faulting": 0.04,
    "out_of_bounds": 0.02,
    "memory": 0.02,
    "printing": 0.02,
    "huge_grid": 0.02,
    "bad_asm": 0.02,
    "templates": 0.01,
    "other_architecture": 0.02,
    "python_plain": 0.05,
    "python_inline": 0.04,
    "python_wrong": 0.02,
    "python_broken": 0.02,
    "python_hanging": 0.01,
    "cancelled": 0.03,
}


@dataclass(frozen=True)
class Part:
    """Of a program: what stands before its entry point, what the entry point does, and the verdicts that may follow."""

    before: str
    statements: str
    verdicts: frozenset[str]


def _part(statements: str, verdict: str, before: str = "") -> Part:
    return Part(before, statements, frozenset(verdict.split()))


_NATIVE = """#include <cuda_runtime.h>
#include <dlpack/dlpack.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
static const int mark_%d = %d;
%s
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const*, DLTensor* const* outputs,
                   cudaStream_t stream) {
  const float* x = (const float*)inputs[0]->data;
  float* y = (float*)outputs[0]->data;
  const int64_t n = outputs[0]->shape[0] * outputs[0]->shape[1];
  %s
}
"""
_LOOP = "for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) "
_SIGNATURE = "__global__ void apply(const float* x, float* y, int64_t n)"
_LAUNCH = "apply<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(x, y, n);"
_END = "return (int)cudaGetLastError();"


def _plain(task: Task, shift: str = "", result: str = "v") -> str:
    return f"{_SIGNATURE} {{ {_LOOP} {{ {element(task, 'x[i]', shift)} y[i] = {result}; }} }}"


def _by_fours(task: Task) -> str:
    steps = "".join(f"{{ {element(task, f'four.{axis}')} four.{axis} = v; }} " for axis in "xyzw")
    return (
        f"{_SIGNATURE} {{ n /= 4; {_LOOP} {{ float4 four = ((const float4*)x)[i]; {steps} ((float4*)y)[i] = four; }} }}"
    )


def _in_shared_memory(task: Task) -> str:
    return (
        f"{_SIGNATURE} {{ __shared__ float tile[256]; {_LOOP} {{ tile[threadIdx.x] = x[i]; "
        f"{element(task, 'tile[threadIdx.x]')} y[i] = v; }} }}"
    )


_STYLES: tuple[Callable[[Task], str], ...] = (_plain, _by_fours, _in_shared_memory)

_SPIN = "__global__ void spin(volatile float* y) { while (y[0] != 12345.0f || y[1] != 54321.0f) { } }"
_HANGS = (
    "spin<<<1, 1, 0, stream>>>(y);",
    "spin<<<1024, 256, 0, stream>>>(y);",
    "spin<<<1, 32, 0, stream>>>(y); cudaStreamSynchronize(stream);",
    "cudaStream_t own; cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking); spin<<<1, 1, 0, own>>>(y);",
    "for (volatile int i = 0;;) i = i + 1;",
)
_FAULTS = (
    "*(volatile float*)0 = 1.0f;",
    "*(volatile float*)((char*)y + ((int64_t)1 << 46)) = 1.0f;",
    "*(float4*)((char*)y + 4) = make_float4(1, 2, 3, 4);",
    "*(volatile double*)((char*)y + 4) = 1.0;",
    "__trap();",
    'asm volatile("st.shared.f32 [%0], 0f00000000;" :: "r"(1 << 24));',
)
# Everything, in pieces of 1 GiB to 2 MiB, after a first call: what a kernel's code takes is there by then.
_TAKE_ALL = """static bool has_taken = false;
  for (size_t piece = (size_t)1 << 30; !has_taken && piece >= (size_t)2 << 20; piece /= 2) {
    void* taken = nullptr;
    while (cudaMalloc(&taken, piece) == cudaSuccess) { }
  }
  has_taken = true;
  cudaGetLastError();
  """
_FLOOD = (
    '__global__ void flood() { for (int i = 0; i < 8; ++i) printf("%d %d: all is well, and this is said often\\n", '
    "(int)blockIdx.x, i); }"
)
_PTX = (
    'static const char text[] = ".version 8.0\\n.target sm_30\\n.address_size 64\\n'
    '.visible .entry other() { ret; }\\n";\n'
)
# Where code is loaded when it is needed, no more than the launch fails.
_LOAD = """cudaLibrary_t library;
  cudaKernel_t other;
  cudaError_t error = cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (error == cudaSuccess) error = cudaLibraryGetKernel(&other, library, "other");
  if (error == cudaSuccess) error = cudaLaunchKernel((const void*)other, dim3(1), dim3(1), nullptr, 0, stream);
  if (error != cudaSuccess) return (int)error;
  """


@cache
def cubin_of_another_architecture() -> bytes:
    """Machine code of an empty kernel for Turing, which no GPU of another family runs. Empty where there is no nvcc."""
    torch = importlib.util.find_spec("torch")
    packages = [Path(place).parent for place in (torch.submodule_search_locations if torch else None) or ()]
    places = ["/usr/local/cuda/bin/nvcc", *(f"{folder}/nvidia/cu13/bin/nvcc" for folder in packages), "nvcc"]
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "other.cu", Path(folder) / "other.cubin"
        source.write_text('extern "C" __global__ void other() {}\n')
        for nvcc in places:
            try:
                command = [nvcc, "-cubin", "-arch=sm_75", "-o", str(cubin), str(source)]
                subprocess.run(command, check=True, capture_output=True, timeout=120)
            except (OSError, subprocess.SubprocessError):
                continue
            return cubin.read_bytes()
    return b""


def _other_image(rng: random.Random) -> str:
    cubin = cubin_of_another_architecture()
    if not cubin or rng.random() < 0.5:
        return _PTX
    return f"static const unsigned char text[] = {{{','.join(map(str, cubin))}}};\n"


def _wrong(task: Task, rng: random.Random) -> str:
    choice = rng.randrange(4)
    if choice == 0:
        return _plain(task, shift=f"{float(task.shift) + rng.uniform(0.5, 0.9):.3f}")
    if choice == 1:
        return _plain(task, result=f"v * {rng.uniform(1.3, 1.9):.4f}f")
    if choice == 2:
        return _plain(task, result=f"v + {rng.uniform(0.5, 1.5):.4f}f")
    return _plain(task, result=f"i < n - {rng.randrange(20, 200)} ? v : 7.5f")


def refused_by_compilers(kind: str, number: int, rng: random.Random) -> Part:
    """What no rehearsal has to replace."""
    if kind == "bad_asm":
        text = rng.choice((f'"nonsense_{number};"', f'"mov.u32 %0, {number};" : "=z"(i)', '"add.s32 %9, 1, 2;"'))
        return _part(_END, "COMPILE_ERROR", f"__global__ void apply() {{ int i = 0; asm volatile({text}); }}")
    if rng.random() < 0.5:  # ends at the depth that nvcc allows
        deep = "template <int N> struct A { static const int v = A<N + 1>::v + 1; };"
        return _part(_END, "COMPILE_ERROR", f"{deep} __device__ int x = A<{number}>::v;")
    endless = (
        "template <int N, int M> struct F { static constexpr long v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v; };"
        f"template <int M> struct F<0, M> {{ static constexpr long v = M + {number}; }};"
        "__global__ void apply(long* x) { *x = F<40, 1>::v; }"
    )
    return _part(_END, "COMPILE_ERROR", endless)


def on_gpu(kind: str, task: Task, rng: random.Random) -> Part:
    """A native program that harms, where it does, by what runs on the GPU."""
    right = rng.choice(_STYLES)(task)
    both = f"{_LAUNCH} {_END}"
    if kind == "wrong":
        return _part(both, "INCORRECT", _wrong(task, rng))
    if kind == "hanging":
        return _part(f"{rng.choice(_HANGS)} {both}", "TIMEOUT", f"{_SPIN}\n{right}")
    if kind == "faulting":
        harm = f"__global__ void harm(float* y) {{ {rng.choice(_FAULTS)} }}"
        return _part(f"harm<<<1, 1, 0, stream>>>(y); {both}", "RUNTIME_ERROR", f"{harm}\n{right}")
    if kind == "out_of_bounds":
        stray = f"__global__ void stray(float* y, int64_t n) {{ y[n + {rng.randrange(4)}] = 1.0f; }}"
        return _part(f"stray<<<1, 1, 0, stream>>>(y, n); {both}", "INCORRECT", f"{stray}\n{right}")
    if kind == "memory" and rng.random() < 0.5:
        refused = "void* all = nullptr; if (cudaMalloc(&all, (size_t)1 << 44) != cudaSuccess) return 77; "
        return _part(refused + both, "RUNTIME_ERROR", right)
    if kind == "memory":
        return _part(f"{_LAUNCH} cudaStreamSynchronize(stream); {_TAKE_ALL}{both}", "CORRECT", right)
    if kind == "printing":
        return _part(f"flood<<<64, 64, 0, stream>>>(); {both}", "CORRECT", f"{_FLOOD}\n{right}")
    if kind == "huge_grid":
        empty = "__global__ void empty() { }"
        if rng.random() < 0.5:
            return _part(f"empty<<<dim3(2147483648u), 1, 0, stream>>>(); {both}", "RUNTIME_ERROR", f"{empty}\n{right}")
        return _part(f"empty<<<dim3(2147483647u, 65535u), 1, 0, stream>>>(); {both}", "TIMEOUT", f"{empty}\n{right}")
    if kind == "other_architecture":
        return _part(_LOAD + both, "RUNTIME_ERROR", _other_image(rng) + right)
    return _part(both, "CORRECT", right)  # good, cancelled


# After which the fake driver in the program's own jail does what a line of its script says.
_DRIVER_SAYS = (
    'FILE* script = fopen("/tmp/script", "w"); fputs("%s\\n", script); fclose(script); '
    'setenv("FAKE_CUDA", "/tmp/script", 1); '
)


def on_host(kind: str, task: Task, rng: random.Random) -> Part:
    """The same of kind in a rehearsal, by what the host can do; harm that only a GPU knows is its error number."""
    right = f"for (int64_t i = 0; i < n; ++i) {{ {element(task, 'x[i]')} y[i] = v; }} "
    if kind == "wrong":
        return _part(f"{right} y[{rng.randrange(1000)}] += 5.0f; return 0;", "INCORRECT")
    if kind == "hanging":
        endless = rng.choice(("for (volatile int i = 0;;) i = i + 1; ", _DRIVER_SAYS % "late cuCtxSynchronize 3600000"))
        return _part(f"{endless}{right} return 0;", "TIMEOUT")
    if kind == "faulting":
        errors = tuple(_DRIVER_SAYS % f"fail cuCtxSynchronize {error}" for error in (700, 716))  # of cudaError_t
        harm = rng.choice(("*(volatile int*)0 = 1;", "raise(SIGBUS);", *errors))
        return _part(f"{harm} {right} return 0;", "RUNTIME_ERROR")
    if kind == "out_of_bounds":
        return _part(f"{right} y[n + {rng.randrange(4)}] = 1.0f; return 0;", "INCORRECT")
    if kind in ("memory", "huge_grid", "other_architecture"):
        error = {"memory": 2, "huge_grid": 9, "other_architecture": 209}[kind]  # of cudaError_t
        return _part(f"{right} return {error};", "RUNTIME_ERROR")
    if kind == "printing":
        flood = 'for (int i = 0; i < 32768; ++i) printf("%d: all is well, and this is said often\\n", i); '
        return _part(f"{flood}{right} return 0;", "CORRECT")
    return _part(f"{right} return 0;", "CORRECT")


_PYTHON = """import torch
from torch import nn
%s

class ModelNew(nn.Module):
    def forward(self, x):
%s
        return x
"""
_INLINE = '''from torch.utils.cpp_extension import load_inline

_SOURCE = """
#include <torch/extension.h>
#include <cuda_runtime.h>
%s
torch::Tensor forward_%d(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int64_t n = x.numel();
  apply<<<(unsigned)((n + 255) / 256), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""
_OWN = load_inline(
    name="own_%d", cpp_sources=["torch::Tensor forward_%d(torch::Tensor x);"], cuda_sources=[_SOURCE],
    functions=["forward_%d"])
'''


# The fake driver runs no kernel: an output keeps what its memory had, and Torch for the host has none to wait for.
_WITHOUT_KERNELS = {"python_inline": "INCORRECT NON_FINITE", "python_hanging": "RUNTIME_ERROR"}


def _python(kind: str, number: int, task: Task, rng: random.Random, rehearsal: bool) -> Program:
    body = "".join(f"        {line}\n" for line in task.steps)
    before, verdict = f"_MARK = {number}", "HACK"  # it only calls what its reference calls
    if kind == "python_wrong":
        body += f"        x = x + {rng.uniform(0.5, 1.5):.4f}\n"
        verdict = "INCORRECT"
    elif kind == "python_hanging":
        body = f"        torch.cuda._sleep(1 << 40)\n{body}"
        verdict = "TIMEOUT"
    elif kind in ("python_inline", "python_broken"):
        kernel = _plain(task, result="v" if kind == "python_inline" else "no_such_name")
        before = _INLINE % (kernel, *(number,) * 4)
        body = f"        x = _OWN.forward_{number}(x)\n"
        verdict = "CORRECT" if kind == "python_inline" else "COMPILE_ERROR"
    if rehearsal and kind in _WITHOUT_KERNELS:
        verdict = _WITHOUT_KERNELS[kind]
    source = _PYTHON % (before, body.rstrip("\n"))
    return Program(kind, task, source, frozenset(verdict.split()), "KERNELBENCH_PYTHON", "CUDA")


def make_program(kind: str, number: int, task: Task, rng: random.Random, *, rehearsal: bool) -> Program:
    """Distinct for distinct numbers: a constant says which one it is."""
    if kind.startswith("python_"):
        return _python(kind, number, task, rng, rehearsal)
    if kind in ("bad_asm", "templates"):
        part = refused_by_compilers(kind, number, rng)
    else:
        part = (on_host if rehearsal else on_gpu)(kind, task, rng)
    source = _NATIVE % (number, number, part.before, part.statements)
    return Program(kind, task, source, part.verdicts, "CUDA", "CUDA")


def make_cuda_requests(count: int, seed: int, *, rehearsal: bool) -> list[LogicalRequest]:
    """As make_requests of soak_candidates: at least one program of each kind, whatever `count` is."""
    rng = random.Random(seed)
    kinds = [kind for kind, share in _SHARES.items() for _ in range(max(1, round(share * count)))]
    make = partial(make_program, rehearsal=rehearsal)
    return requests_of(kinds, count, seed, make_tasks(rng, _NUM_TASKS), make, rng)
