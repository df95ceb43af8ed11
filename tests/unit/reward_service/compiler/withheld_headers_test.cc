// Programs that use cuBLAS and cuDNN, where they may and where they may not.
#include <atomic>
#include <string>
#include <utility>

#include "core/base/memory_file.h"
#include "reward_service/compiler/cuda_compiler.h"
#include "reward_service/compiler/diagnostics.h"
#include "tests/support/catch.h"
#include "tests/support/native_cuda.h"

namespace warpsmith {
namespace {

constexpr char kMultiply[] = R"(#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>
extern "C" int run(void**, void**, void**, cudaStream_t stream) {
  cublasLtHandle_t lt = nullptr;
  cublasHandle_t blas = nullptr;
  cudnnHandle_t dnn = nullptr;
  return cublasLtCreate(&lt) + cublasCreate(&blas) + cublasSetStream(blas, stream) + cudnnCreate(&dnn);
}
)";

TEST_CASE("a program that may use cuBLAS and cuDNN is linked to their names, and any other is not") {
  const CudaCompiler compiler = MakeCompiler();
  if (!compiler.toolchain().blas_include_folders) {
    WARN("skipped: the headers of cuBLAS or cuDNN are not on this machine");
    return;
  }
  const std::atomic<bool> cancelled{false};
  const auto program = compiler.Compile(kMultiply, {"sm_90a"}, cancelled, LinkedLibraries::kBlas);
  REQUIRE(program.ok());
  INFO(program->diagnostics);
  REQUIRE(program->succeeded());
  const absl::StatusOr<std::string> with = ReadMemoryFile(program->library->get(), program->library_bytes);
  const CompiledProgram plain = CompileOrFail(compiler, kRelu);
  const absl::StatusOr<std::string> without = ReadMemoryFile(plain.library->get(), plain.library_bytes);
  for (const char* name : {"libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9"}) {
    INFO(name);
    CHECK(with->find(name) != std::string::npos);
    CHECK(without->find(name) == std::string::npos);
  }
  CHECK(compiler.Key(kMultiply, {"sm_90a"}, LinkedLibraries::kBlas) != compiler.Key(kMultiply, {"sm_90a"}));
}

TEST_CASE("a program that includes what its task withholds is told that it is withheld") {
  const CudaCompiler compiler = MakeCompiler();
  for (const char* header : {"<cublas_v2.h>", "\"cublasLt.h\"", "<cublas.h>", "<cublasXt.h>", "<cudnn.h>"}) {
    const CompiledProgram program = CompileOrFail(
        compiler, "#include " + std::string(header) + "\nextern \"C\" int run() { return 0; }\n");
    INFO(header << ": " << program.diagnostics);
    CHECK_FALSE(program.succeeded());
    CHECK_THAT(FirstError(program.diagnostics),
               Catch::Contains(
                   "cuBLAS and cuDNN are withheld, for the task's allowed_libraries does not name \"blas\""));
  }
}

TEST_CASE("a machine without the headers of cuBLAS says how to have them, and blames no program") {
  CudaToolchain toolchain = MakeCompiler().toolchain();
  toolchain.blas_include_folders = std::nullopt;
  const std::atomic<bool> cancelled{false};
  const absl::Status status =
      CudaCompiler(toolchain, {}).Compile(kMultiply, {"sm_90a"}, cancelled, LinkedLibraries::kBlas).status();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("install nvidia-cublas and nvidia-cudnn-cu13"));
}

}  // namespace
}  // namespace warpsmith
