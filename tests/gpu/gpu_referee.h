// A referee on a real GPU, one task, and programs for it, native and in Python.
#ifndef WARPSMITH_TESTS_GPU_GPU_REFEREE_H_
#define WARPSMITH_TESTS_GPU_GPU_REFEREE_H_

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/base/unique_fd.h"
#include "reward_service/measure/referee.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {

inline constexpr absl::Duration kPatience = absl::Seconds(120);

inline constexpr char kTask[] = R"(
import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1024))
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x * self.weight + self.scale) ** 2


def get_inputs() -> list[Tensor]:
    return [torch.randn(4096, 1024)]


def get_init_inputs() -> list[float]:
    return [0.5]
)";

inline cuda::GpuFacts& Gpu() {
  static cuda::GpuFacts gpu;
  return gpu;
}

inline Referee& GpuReferee() {
  static const std::unique_ptr<Referee> referee = [] {
    RefereeOptions options;
    // As a service's: one for the referee, one for programs.
    const int num_cores = static_cast<int>(std::max(2u, std::thread::hardware_concurrency()));
    options.lane_cores = {num_cores - 2, num_cores - 1};
    options.gpu_uuid = Gpu().uuid;
    auto started = Referee::Start(options);
    WS_CHECK(started.ok()) << started.status().ToString();
    return *std::move(started);
  }();
  return *referee;
}

// A whole source from a kernel and the statements that launch it, on `stream`.
inline std::string Source(const std::string& kernel, const std::string& launch) {
  return R"(#include <cuda_runtime.h>
#include <dlpack/dlpack.h>
#include <cstdint>
)" + kernel +
         R"(
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const* parameters, DLTensor* const* outputs,
                   cudaStream_t stream) {
  const float* x = static_cast<const float*>(inputs[0]->data);
  const float* weight = static_cast<const float*>(parameters[0]->data);
  float* y = static_cast<float*>(outputs[0]->data);
  const int n = static_cast<int>(inputs[0]->shape[0] * inputs[0]->shape[1]);
  (void)x; (void)weight; (void)y; (void)n;
)" + launch +
         R"(
  return static_cast<int>(cudaGetLastError());
}
)";
}

inline constexpr char kKernel[] = R"(
__global__ void scaled(const float* x, const float* weight, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float v = x[i] * weight[i % 1024] + 0.5f;
    y[i] = v > 0 ? v * v : 0;
  }
}
__global__ void spin(float* y, long long clocks) {
  const long long begin = clock64();
  while (clocks < 0 || clock64() - begin < clocks) {
    if (y[0] == 12345.0f) break;
  }
}
)";
inline constexpr char kLaunch[] = "  scaled<<<1024, 256, 0, stream>>>(x, weight, y, n);\n";

inline v1::Measurement Judge(JudgeRequest request, bool verify_only, double call_seconds_max = 3) {
  request.task = {Sha256Hex(kTask), kTask};
  request.verify_only = verify_only;
  request.limits.call_seconds_max = call_seconds_max;
  const absl::Time begin = absl::Now();
  const auto measurement = GpuReferee().Judge(request, absl::Now() + kPatience);
  WS_CHECK(measurement.ok()) << measurement.status().ToString();
  const v1::Grade& grade = measurement->grade();
  std::printf("%-14s %5.2f s  %s  %s\n", v1::Verdict_Name(grade.verdict()).c_str(),
              absl::ToDoubleSeconds(absl::Now() - begin), grade.verdict_reason().c_str(),
              grade.has_timing() ? grade.timing().ShortDebugString().c_str() : "");
  std::fflush(stdout);
  return *measurement;
}

inline UniqueFd Compile(const std::string& source) {
  const TemporaryDirectory directory;
  const std::string from = directory.path() / "candidate.cu", to = directory.path() / "candidate.so";
  WS_CHECK(WriteFileAtomically(from, source).ok()) << from;
  std::string architecture = Gpu().architecture();
  const std::string virtual_one = "compute_" + architecture.substr(3);
  const std::string command = "nvcc -gencode arch=" + virtual_one + ",code=" + architecture +
                              " -O3 -std=c++17 -shared -Xcompiler -fPIC -o " + to + " " + from;
  WS_CHECK(std::system(command.c_str()) == 0) << source;
  return UniqueFd(open(to.c_str(), O_RDONLY | O_CLOEXEC));
}

inline v1::Measurement Judge(const std::string& source, bool verify_only = true,
                             double call_seconds_max = 3) {
  const UniqueFd library = Compile(source);
  JudgeRequest request;
  request.library_fd = library.get();
  return Judge(request, verify_only, call_seconds_max);
}

// A function that launches a kernel of its own, as an extension of a Python program.
inline constexpr char kExtension[] = R"(
extern "C" int scale(const float* x, const float* weight, float* y, int n, cudaStream_t stream) {
  scaled<<<1024, 256, 0, stream>>>(x, weight, y, n);
  return static_cast<int>(cudaGetLastError());
}
)";

// Judges a Python program whose forward() has this body, and __init__() that construction. Where it calls
// right(), which is Torch's work, its task allows all libraries.
inline v1::Grade JudgePython(const std::string& body, bool verify_only = true,
                             const std::string& construction = "") {
  static const UniqueFd extension = Compile(absl::StrCat("#include <cuda_runtime.h>\n", kKernel, kExtension));
  JudgeRequest request;
  request.kind = CandidateKind::kKernelBenchPython;
  request.extension_fds = {extension.get()};
  request.with_torch = absl::StrContains(body, "self.right(");
  request.source = R"(
import ctypes
import os
import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1024))
        self.scale = scale
        self.kept = None
        self.own = ctypes.CDLL(os.path.join("/candidate", os.listdir("/candidate")[0])).scale
)" + construction + R"(
    def right(self, x):
        return torch.relu(x * self.weight + self.scale) ** 2

    def own_work(self, x):
        y = torch.empty_like(x)
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (x, self.weight, y)]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        assert self.own(*pointers, ctypes.c_int(x.numel()), stream) == 0
        return y

    def forward(self, x):
)" + body;
  return Judge(request, verify_only).grade();
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_GPU_GPU_REFEREE_H_
