// The referee on a real GPU: candidates, native and in Python, that are right, wrong, hang, fault, leave work
// behind, or lie about where their outputs are.
#define CATCH_CONFIG_RUNNER
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/base/unique_fd.h"
#include "reward_service/measure/referee.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(120);

constexpr char kTask[] = R"(
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

cuda::GpuFacts& Gpu() {
  static cuda::GpuFacts gpu;
  return gpu;
}

Referee& GpuReferee() {
  static const std::unique_ptr<Referee> referee = [] {
    RefereeOptions options;
    options.lane_cores = {static_cast<int>(std::max(1u, std::thread::hardware_concurrency())) - 1};
    options.gpu_uuid = Gpu().uuid;
    auto started = Referee::Start(options);
    WS_CHECK(started.ok()) << started.status().ToString();
    return *std::move(started);
  }();
  return *referee;
}

// A whole source from a kernel and the statements that launch it, on `stream`.
std::string Source(const std::string& kernel, const std::string& launch) {
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

constexpr char kKernel[] = R"(
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
constexpr char kLaunch[] = "  scaled<<<1024, 256, 0, stream>>>(x, weight, y, n);\n";

v1::Measurement Judge(JudgeRequest request, bool verify_only) {
  request.task = {Sha256Hex(kTask), kTask};
  request.verify_only = verify_only;
  request.limits.call_seconds_max = 3;
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

UniqueFd Compile(const std::string& source) {
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

v1::Measurement Judge(const std::string& source, bool verify_only = true) {
  const UniqueFd library = Compile(source);
  JudgeRequest request;
  request.library_fd = library.get();
  return Judge(request, verify_only);
}

// A function that launches a kernel of its own, as an extension of a Python program.
constexpr char kExtension[] = R"(
extern "C" int scale(const float* x, const float* weight, float* y, int n, cudaStream_t stream) {
  scaled<<<1024, 256, 0, stream>>>(x, weight, y, n);
  return static_cast<int>(cudaGetLastError());
}
)";

// Of a Python program whose forward() has this body, and __init__() that construction.
v1::Grade JudgePython(const std::string& body, bool verify_only = true,
                      const std::string& construction = "") {
  static const UniqueFd extension = Compile(absl::StrCat("#include <cuda_runtime.h>\n", kKernel, kExtension));
  JudgeRequest request;
  request.kind = CandidateKind::kKernelBenchPython;
  request.extension_fds = {extension.get()};
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

// A place that is not where the output lies.
v1::Grade JudgeLie(const std::string& place) {
  return JudgePython("        sys.modules['gpu_tensors'].Memory.locate = lambda self, pointer: " + place +
                     "\n        return self.right(x)\n");
}

v1::Verdict VerdictOf(const std::string& kernel, const std::string& launch) {
  return Judge(Source(kernel, launch)).grade().verdict();
}

TEST_CASE("a right kernel is timed beside the eager reference") {
  const v1::Grade grade = Judge(Source(kKernel, kLaunch), /*verify_only=*/false).grade();
  REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.timing().speedup() > 0);
  CHECK(grade.timing().libraries_withheld());
  CHECK(GpuReferee().facts().gpu->name == Gpu().name);
  std::printf("%s\n", grade.profile().ShortDebugString().c_str());
}

TEST_CASE("the GPU's clocks are told, or why they are not") {
  const v1::Timing timing = Judge(Source(kKernel, kLaunch), /*verify_only=*/false).grade().timing();
  CHECK(timing.has_clocks() != (timing.quality().find("clocks are not known") != std::string::npos));
  if (!timing.has_clocks()) return;
  CHECK(timing.clocks().sm_mhz_min() > 0);
  CHECK(timing.clocks().sm_mhz_max() >= timing.clocks().sm_mhz_min());
  CHECK(timing.clocks().memory_mhz_min() > 0);
}

TEST_CASE("what a call launches is told, in a sealed jail, native or not, and in an open one") {
  const auto native = Judge(Source(kKernel, kLaunch), /*verify_only=*/false).grade();
  const auto own = JudgePython("        return self.own_work(x)\n", /*verify_only=*/false);
  const auto open = JudgePython("        return self.right(x)\n", /*verify_only=*/false);
  for (const v1::Grade* grade : {&native, &own, &open}) {
    std::printf("%s\n", grade->profile().ShortDebugString().c_str());
    REQUIRE(grade->profile().kernels_size() == (grade == &open ? 4 : 1));
    CHECK(grade->profile().num_launches() == grade->profile().kernels_size());
    CHECK(grade->profile().kernels(0).us() > 0);
    if (grade != &open) CHECK(grade->profile().kernels(0).name() == "scaled");
  }
}

TEST_CASE("wrong, missing and stray outputs are told") {
  CHECK(VerdictOf(kKernel, "  scaled<<<1024, 256, 0, stream>>>(x, weight, y, n - 7);\n") ==
        v1::VERDICT_INCORRECT);
  CHECK(VerdictOf(kKernel, "") == v1::VERDICT_INCORRECT);
  CHECK(VerdictOf(kKernel, std::string(kLaunch) + "  cudaMemsetAsync(y + n, 0, 16, stream);\n") ==
        v1::VERDICT_INCORRECT);
}

TEST_CASE("an input cannot be written") {
  const v1::Verdict verdict =
      VerdictOf(kKernel, std::string(kLaunch) + "  cudaMemsetAsync(const_cast<float*>(x), 0, 16, stream);\n");
  CHECK(verdict != v1::VERDICT_CORRECT);
}

TEST_CASE("a kernel that faults, or does not end, costs its candidate alone") {
  CHECK(VerdictOf(kKernel, "  scaled<<<1024, 256, 0, stream>>>(nullptr, weight, y, n);\n") ==
        v1::VERDICT_RUNTIME_ERROR);
  CHECK(VerdictOf(kKernel, std::string(kLaunch) + "  spin<<<1, 1, 0, stream>>>(y, -1);\n") ==
        v1::VERDICT_TIMEOUT);
  CHECK(VerdictOf(kKernel, "  scaled<<<1, 2048, 0, stream>>>(x, weight, y, n);\n") ==
        v1::VERDICT_RUNTIME_ERROR);
  CHECK(VerdictOf(kKernel, kLaunch) == v1::VERDICT_CORRECT);
}

TEST_CASE("work on another stream is on the clock, and memory of its own is a program's") {
  const std::string other = R"(
  static cudaStream_t own = nullptr;
  if (own == nullptr) cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
  float* scratch = nullptr;
  if (cudaMalloc(&scratch, 64 << 20) != cudaSuccess) return 77;
  spin<<<1, 1, 0, own>>>(y, 20000000);
  scaled<<<1024, 256, 0, own>>>(x, weight, y, n);
  cudaFree(scratch);
)";
  const v1::Grade grade = Judge(Source(kKernel, other), /*verify_only=*/false).grade();
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.timing().candidate().median_us() > 5000);
}

TEST_CASE("a Python program that is right is timed, and no more than that is said of whose work it was") {
  const v1::Grade grade = JudgePython(R"(
        y = torch.empty_like(x)
        torch.mul(x, self.weight, out=y)
        return y.add_(self.scale).relu_().square_()
)",
                                      /*verify_only=*/false);
  REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.timing().speedup() > 0);
  CHECK_FALSE(grade.timing().libraries_withheld());
  CHECK_FALSE(grade.timing().parameters_fixed());
  CHECK(grade.profile().num_samples() == 0);
}

TEST_CASE("a Python program whose kernels are its own is timed where libraries have none") {
  const v1::Grade grade = JudgePython("        return self.own_work(x)\n", /*verify_only=*/false);
  REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.timing().libraries_withheld());
  CHECK_FALSE(grade.timing().parameters_fixed());
  for (const char* const permitted :
       {"torch.zeros_like(x), torch.full((3, 5), 2.0, device=x.device), torch.empty(7, 9, device='cuda').t()",
        "torch.zeros(8, 16, dtype=torch.float16, device=x.device)[:, ::2].fill_(1), torch.empty(6, 6, "
        "device='cuda')[1].zero_()",
        "x.view(-1)[:5].unsqueeze(0).expand(3, 5), x.contiguous(), x.t().is_contiguous(), "
        "torch.ones_like(x[0, 0]).item()",
        "torch.cuda.get_device_properties(x.device).multi_processor_count, torch.cuda.synchronize()"}) {
    INFO(permitted);
    const v1::Grade timed =
        JudgePython(absl::StrCat("        ", permitted, "\n        return self.own_work(x)\n"), false);
    REQUIRE(timed.verdict() == v1::VERDICT_CORRECT);
    CHECK(timed.timing().libraries_withheld());
  }
}

TEST_CASE(
    "a Python program that uses a library's kernel, or has launched one before, is judged in the open") {
  const std::string own = "        return self.own_work(x)\n";
  for (const char* const used : {"torch.relu(x)", "x.clone()", "x[:, 1:].contiguous()", "x @ x.t()",
                                 "torch.softmax(x, 1)", "x.to(torch.float16)"}) {
    INFO(used);
    const v1::Grade grade = JudgePython(absl::StrCat("        ", used, "\n", own), false);
    REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
    CHECK_FALSE(grade.timing().libraries_withheld());
  }
  for (const char* const constructed : {"self.noise = torch.randn(5, device='cuda')",
                                        "self.ones = torch.ones(8, 8, device='cuda'); self.ones @ self.ones",
                                        "torch.fft.fft(torch.zeros(64, device='cuda'))"}) {
    INFO(constructed);
    const v1::Grade grade = JudgePython(own, false, absl::StrCat("        ", constructed, "\n"));
    REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
    CHECK_FALSE(grade.timing().libraries_withheld());
  }
  // Which cannot be read where libraries are withheld.
  CHECK(JudgePython("        import mpmath\n" + own).verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("where libraries' kernels are withheld no file has them either") {
  // Right where it cannot be read, wrong elsewhere.
  const v1::Grade file = JudgePython(R"(
        folder = os.path.dirname(torch.__file__)
        for name in ('lib/libtorch_cuda.so', 'lib/libc10_cuda.so'):
            try:
                open(os.path.join(folder, name), 'rb').read(16)
            except PermissionError:
                continue
            return torch.zeros_like(x)
        import json, statistics
        from torch.nn.utils import prune
        return self.own_work(x)
)");
  CHECK(file.verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("a Python output with gaps, or behind others of its allocation, is read in its order") {
  CHECK(JudgePython("        return self.right(x).t().contiguous().t()\n").verdict() == v1::VERDICT_CORRECT);
  CHECK(JudgePython("        return torch.stack([x, self.right(x), x], -1)[..., 1]\n").verdict() ==
        v1::VERDICT_CORRECT);
}

TEST_CASE("a Python program that is wrong, or whose output is none of its own, is told") {
  CHECK(JudgePython("        return torch.relu(x * self.weight + self.scale)\n").verdict() ==
        v1::VERDICT_INCORRECT);
  CHECK(JudgePython("        return x\n").verdict() == v1::VERDICT_INCORRECT);
  CHECK(JudgePython("        return x.copy_(self.right(x))\n").verdict() == v1::VERDICT_INCORRECT);
  CHECK(JudgePython("        return self.right(x).cpu()\n").verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK(JudgePython("        return self.right(x)[0]\n").verdict() == v1::VERDICT_WRONG_SHAPE);
}

TEST_CASE("a Python program that returns the same tensor from each call is told") {
  const v1::Grade grade = JudgePython(R"(
        self.kept = self.right(x) if self.kept is None else self.kept.copy_(self.right(x))
        return self.kept
)");
  CHECK(grade.verdict() == v1::VERDICT_INCORRECT);
  CHECK_THAT(grade.verdict_reason(), Catch::Contains("of an earlier call was changed"));
}

TEST_CASE("a Python program that lies about its output's place harms itself alone") {
  const std::string reason = "output 0 lies in no readable memory";
  for (const char* const place :
       {"('', 1 << 40)", "('', -1)", "('ff' * 64, 0)", "('00' * 64, 0)", "('zz' * 64, 0)", "('12', 0)"}) {
    const v1::Grade grade = JudgeLie(place);
    CHECK(grade.verdict() == v1::VERDICT_RUNTIME_ERROR);
    CHECK(grade.verdict_reason() == reason);
  }
  CHECK(JudgeLie("('', 0)").verdict() == v1::VERDICT_INCORRECT);
  // A size in it that is none.
  CHECK(JudgePython(R"(
        memory = sys.modules['gpu_tensors'].Memory
        honest = memory.locate
        def lie(self, pointer):
            handle, offset = honest(self, pointer)
            return handle[:48] + '01' + handle[50:], offset
        memory.locate = lie
        return self.right(x)
)")
            .verdict_reason() == reason);
  CHECK(JudgePython("        return self.right(x)\n").verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("a Python program that faults on the GPU, or does not end, costs itself alone") {
  CHECK(
      JudgePython("        return self.right(x)[torch.full((4096,), 1 << 20, device='cuda')]\n").verdict() ==
      v1::VERDICT_RUNTIME_ERROR);
  CHECK(JudgePython("        torch.cuda._sleep(1 << 40)\n        return self.right(x)\n").verdict() ==
        v1::VERDICT_TIMEOUT);
  CHECK(JudgePython("        return self.right(x)\n").verdict() == v1::VERDICT_CORRECT);
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;  // CTest's SKIP_RETURN_CODE
  const auto gpus = warpsmith::FindGpus();
  if (!gpus.ok() || gpus->empty()) {
    std::printf("skipped: %s\n", gpus.ok() ? "no GPU here" : gpus.status().ToString().c_str());
    return kSkipped;
  }
  warpsmith::Gpu() = gpus->front();
  return Catch::Session().run(argc, argv);
}
