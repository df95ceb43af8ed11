// Inline programs with CUDA sources, on the tiers of headers.
#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/base/build_info.h"
#include "core/base/file.h"
#include "reward_service/compiler/cuda_toolchain.h"
#include "reward_service/compiler/diagnostics.h"
#include "reward_service/compiler/extension_compiler.h"
#include "reward_service/compiler/standard_names.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr char kDeclared[] = "torch::Tensor relu(torch::Tensor x);";

// With accessors, a dispatch over types, a stream, a guard and checks, as published answers have them.
constexpr char kRelu[] = R"(#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_fp16.h>
template <typename scalar_t>
__global__ void Relu(const scalar_t* __restrict__ x, scalar_t* y, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i] > scalar_t(0) ? x[i] : scalar_t(0);
}
__global__ void AddRows(torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> a) {
  a[0][threadIdx.x] += a[1][threadIdx.x];
}
torch::Tensor relu(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "x must be on a GPU, is on ", x.device());
  const at::cuda::CUDAGuard guard(x.device());
  auto y = torch::empty_like(x);
  const int64_t n = x.numel();
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "relu", [&] {
    Relu<scalar_t><<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  if (x.dim() == 2) AddRows<<<1, 32>>>(x.packed_accessor32<float, 2, torch::RestrictPtrTraits>());
  return y;
}
)";

struct Bench {
  TemporaryDirectory work;
  ExtensionCompiler compiler;

  Bench() : compiler(*ProbeToolchain(), Options(work.path())) {}

  static ExtensionCompilerOptions Options(const std::filesystem::path& work_directory) {
    const std::string include = *OutputOf(
        {GetBuildInfo().python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'], end='')"});
    return {.places = {.torch_dir = GetBuildInfo().torch_dir,
                       .python_include = include,
                       .facade_directory = ExecutableDirectory().parent_path() / "share/warpsmith/facade"},
            .work_directory = work_directory / "headers",
            .cuda = CudaTarget{*ProbeCudaToolchain(*ProbeToolchain(), GetBuildInfo().torch_dir), {"sm_90a"}}};
  }

  CompiledProgram Compile(const ExtensionArguments& arguments) {
    const std::atomic<bool> cancelled{false};
    absl::StatusOr<CompiledProgram> program = compiler.Compile(arguments, cancelled);
    INFO(program.status().ToString());
    REQUIRE(program.ok());
    return *std::move(program);
  }
};

TEST_CASE("both halves of an inline program are compiled on the facade, and machine code comes beside them") {
  const CompiledProgram program = Bench().Compile({.name = "e",
                                                   .cpp_sources = {kDeclared},
                                                   .cuda_sources = {kRelu},
                                                   .functions = {"relu"},
                                                   .extra_cflags = {"-O3"},
                                                   .extra_cuda_cflags = {"-O3", "--use_fast_math"}});
  INFO(program.diagnostics);
  REQUIRE(program.succeeded());
  CHECK(program.headers == "facade");
  CHECK(program.compiler.find("g++ ") == 0);
  CHECK(program.compiler.find(", nvcc 13.") != std::string::npos);
  REQUIRE(program.cubins.size() == 1);
  CHECK(program.cubins[0].architecture == "sm_90a");
  CHECK(program.cubins[0].bytes.find("AddRows") != std::string::npos);
}

TEST_CASE("the C++ half of an inline program with CUDA may use CUDA's headers and runtime") {
  const CompiledProgram program = Bench().Compile(
      {.name = "e",
       .cpp_sources = {"#include <torch/extension.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n"
                       "#include <cuda_fp16.h>\n#include <c10/cuda/CUDAGuard.h>\n"
                       "#include <ATen/cuda/CUDAContext.h>\n"
                       "void launch(float* y, cudaStream_t stream);\n"
                       "torch::Tensor f(torch::Tensor x) {\n"
                       "  const at::cuda::CUDAGuard guard(x.device());\n"
                       "  launch(x.data_ptr<float>(), at::cuda::getCurrentCUDAStream());\n"
                       "  TORCH_CHECK(cudaGetLastError() == cudaSuccess);\n  return x;\n}\n"},
       .cuda_sources = {"__global__ void k(float* y) { *y = 1; }\n"
                        "void launch(float* y, cudaStream_t stream) { k<<<1, 1, 0, stream>>>(y); }\n"},
       .functions = {"f"}});
  INFO(program.diagnostics);
  CHECK(program.succeeded());
  CHECK(program.headers == "facade");
}

TEST_CASE("C++ alone may call CUDA and its libraries, which are linked by their names") {
  const CompiledProgram program = Bench().Compile(
      {.name = "e",
       .cpp_sources =
           {"#include <ATen/cuda/CUDAContext.h>\n#include <cublas_v2.h>\n"
            "torch::Tensor product(torch::Tensor a, torch::Tensor b) {\n"
            "  auto c = torch::empty({a.size(0), b.size(1)}, a.options());\n"
            "  cublasHandle_t handle;\n  cublasCreate(&handle);\n"
            "  cublasSetStream(handle, at::cuda::getCurrentCUDAStream());\n"
            "  const float one = 1, zero = 0;\n"
            "  const int m = a.size(0), k = a.size(1), n = b.size(1);\n"
            "  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b.data_ptr<float>(), n,\n"
            "              a.data_ptr<float>(), k, &zero, c.data_ptr<float>(), n);\n"
            "  cublasDestroy(handle);\n  return c;\n}\n"},
       .functions = {"product"},
       .extra_ldflags = {"-lcublas"},
       .with_cuda = true});
  INFO(program.diagnostics);
  REQUIRE(program.succeeded());
  CHECK(program.headers == "facade");
  const absl::StatusOr<std::string> needed =
      OutputOf({"/usr/bin/readelf", "-d", absl::StrCat("/proc/", getpid(), "/fd/", program.library->get())});
  REQUIRE(needed.ok());
  CHECK(needed->find("libcublas.so.13") != std::string::npos);
  CHECK(needed->find("libcudart.so.13") != std::string::npos);
}

TEST_CASE("an inline program may be of CUDA alone, with a module of its own") {
  const CompiledProgram program = Bench().Compile(
      {.name = "e",
       .cpp_sources = {""},
       .cuda_sources = {"#include <torch/extension.h>\n__global__ void k() {}\n"
                        "void f(torch::Tensor x) { k<<<1, 1>>>(); }\n"
                        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"f\", &f, \"F\"); }\n"}});
  INFO(program.diagnostics);
  CHECK(program.succeeded());
  CHECK(program.headers == "facade");
}

TEST_CASE(
    "an error is told with the half that it is in, and ends the search for headers where it is the "
    "program's own") {
  Bench bench;
  const CompiledProgram cuda = bench.Compile({.name = "e",
                                              .cpp_sources = {"void f();"},
                                              .cuda_sources = {"void f() {\n  int a = 1\n  a = 2;\n}\n"},
                                              .functions = {"f"}});
  CHECK_FALSE(cuda.succeeded());
  CHECK(cuda.headers == "facade");
  CHECK(cuda.diagnostics == "cuda.cu:3: error: expected a \";\"\n");
  const CompiledProgram both = bench.Compile({.name = "e",
                                              .cpp_sources = {"int nowhere_declared = also_nowhere;"},
                                              .cuda_sources = {"void f() { nobody_knows_this(1); }\n"}});
  CHECK_FALSE(both.succeeded());
  CHECK(both.headers == "facade");
  CHECK(both.diagnostics ==
        "1:24: error: 'also_nowhere' was not declared in this scope\n"
        "cuda.cu:1: error: identifier \"nobody_knows_this\" is undefined\n");
  // Headers of Torch's know the word, but declare no such function.
  const CompiledProgram nowhere = bench.Compile(
      {.name = "e", .cpp_sources = {""}, .cuda_sources = {"void forward() {}\n"}, .functions = {"forward"}});
  CHECK_FALSE(nowhere.succeeded());
  CHECK(nowhere.headers == "facade");
}

TEST_CASE(
    "the facade has what CUDA halves may name of the standard library, and more for those that name more") {
  Bench bench;
  const auto compile = [&](const std::string& source) {
    const CompiledProgram program = bench.Compile(
        {.name = "e", .cpp_sources = {"void f();"}, .cuda_sources = {source}, .functions = {"f"}});
    INFO(program.diagnostics);
    CHECK(program.succeeded());
    CHECK(program.headers == "facade");
  };
  std::string lean;
  for (const std::string_view name : kLeanNames) {
    lean += absl::StrCat("namespace with_", std::string(name), " { using std::", std::string(name), "; }\n");
  }
  REQUIRE(NamesOnly(lean, kLeanNames));
  compile(lean + "void f() {}\n");
  compile(
      "void f() { std::vector<int> v{2, 1}; std::sort(v.begin(), v.end()); "
      "std::make_shared<int>(std::accumulate(v.begin(), v.end(), 0)); }\n");
  compile("void f() { (void)std::max({1, 2, 3}); }\n");
}

TEST_CASE("an option of nvcc that is not allowed is a refused program") {
  const CompiledProgram program =
      Bench().Compile({.name = "e", .cuda_sources = {"int a;"}, .extra_cuda_cflags = {"-ccbin=/tmp/x"}});
  CHECK_FALSE(program.succeeded());
  CHECK(FirstError(program.diagnostics).find("error: nvcc option \"-ccbin=/tmp/x\" is not allowed") == 0);
}

// Takes a minute or more: some of Torch's headers, through g++ and nvcc. With all of them it would be three: see
// cuda_facade_test, on a GPU.
TEST_CASE("what the facade lacks is compiled on the next tier that has it", "[slow]") {
  Bench bench;
  const std::string light = std::string("#include <c10/cuda/CUDACachingAllocator.h>\n") + kRelu;
  const CompiledProgram on_light = bench.Compile(
      {.name = "e", .cpp_sources = {kDeclared}, .cuda_sources = {light}, .functions = {"relu"}});
  INFO(on_light.diagnostics);
  CHECK(on_light.succeeded());
  CHECK(on_light.headers == "light");
}

}  // namespace
}  // namespace warpsmith
