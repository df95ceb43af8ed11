// The compiler of native CUDA programs as the service has it, and a program for it.
#ifndef WARPSMITH_TESTS_SUPPORT_NATIVE_CUDA_H_
#define WARPSMITH_TESTS_SUPPORT_NATIVE_CUDA_H_

#include <atomic>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/base/build_info.h"
#include "core/base/file.h"
#include "reward_service/compiler/cuda_compiler.h"
#include "tests/support/catch.h"

namespace warpsmith {

using Architectures = std::vector<std::string>;

inline constexpr char kRelu[] = R"(#include <cuda_fp16.h>
#include <dlpack/dlpack.h>
__global__ void Relu(const float* x, float* y, long n) {
  const long i = blockIdx.x * long(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
extern "C" int run(const DLTensor* const* inputs, const DLTensor* const* parameters, DLTensor* const* outputs,
                   cudaStream_t stream) {
  const long n = inputs[0]->shape[0];
  Relu<<<(n + 255) / 256, 256, 0, stream>>>((const float*)inputs[0]->data, (float*)outputs[0]->data, n);
  return cudaGetLastError();
}
)";

inline std::filesystem::path Share() { return ExecutableDirectory().parent_path() / "share/warpsmith"; }

inline HalvesPlaces Halves() {
  return {.program = ExecutableDirectory().parent_path() / "bin/warpsmith-nvrtc",
          .header_directory = Share() / "compiler/halves"};
}

inline CudaCompiler MakeCompiler(CompileLimits limits = CudaCompilerOptions().limits) {
  const absl::StatusOr<Toolchain> host = ProbeToolchain();
  REQUIRE(host.ok());
  absl::StatusOr<CudaToolchain> toolchain = ProbeCudaToolchain(*host, GetBuildInfo().torch_dir);
  REQUIRE(toolchain.ok());
  limits.wall_seconds_max = 60;  // of a machine that others use
  return {*std::move(toolchain),
          {.stub_directory = Share() / "facade/stubs",
           .withheld_directory = Share() / "facade/withheld",
           .halves = Halves(),
           .limits = limits}};
}

inline CompiledProgram CompileOrFail(const CudaCompiler& compiler, const std::string& source,
                                     const Architectures& architectures = {"sm_90a"}) {
  const std::atomic<bool> cancelled{false};
  absl::StatusOr<CompiledProgram> program = compiler.Compile(source, architectures, cancelled);
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  return *std::move(program);
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_NATIVE_CUDA_H_
