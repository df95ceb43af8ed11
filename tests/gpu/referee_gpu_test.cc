// The referee on a real GPU: native candidates that are right, wrong, hang, fault, or leave work behind.
#include <cstdio>
#include <string>

#include "tests/gpu/gpu_referee.h"
#include "tests/support/catch.h"
#include "tests/support/skip_where.h"

namespace warpsmith {
namespace {

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

constexpr char kMisaligned[] = "  scaled<<<1024, 256, 0, stream>>>(x, weight, (float*)((char*)y + 2), n);\n";

TEST_CASE("a kernel that faults, or does not end, costs its candidate alone") {
  const v1::Grade too_many =
      Judge(Source(kKernel, "  scaled<<<dim3(1u << 31), 32, 0, stream>>>(x, weight, y, n);\n")).grade();
  CHECK(too_many.verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK_THAT(too_many.verdict_reason(), Catch::Contains("which is cudaErrorInvalid"));
  CHECK(VerdictOf(kKernel, "  scaled<<<1024, 256, 0, stream>>>(nullptr, weight, y, n);\n") ==
        v1::VERDICT_RUNTIME_ERROR);
  const v1::Grade misaligned = Judge(Source(kKernel, kMisaligned)).grade();
  CHECK(misaligned.verdict() == v1::VERDICT_RUNTIME_ERROR);
  // In its own words, where the fault comes while it runs; in the driver's, where it comes after that.
  CHECK_THAT(misaligned.verdict_reason(), Catch::Contains("misaligned", Catch::CaseSensitive::No));
  CHECK(VerdictOf(kKernel, std::string(kLaunch) + "  spin<<<1, 1, 0, stream>>>(y, -1);\n") ==
        v1::VERDICT_TIMEOUT);
  CHECK(VerdictOf(kKernel, "  scaled<<<1, 2048, 0, stream>>>(x, weight, y, n);\n") ==
        v1::VERDICT_RUNTIME_ERROR);
  CHECK(VerdictOf(kKernel, kLaunch) == v1::VERDICT_CORRECT);
}

// The driver takes 0.7 s or more to recover from so many blocks.
TEST_CASE("a fault is told from a kernel that does not end where the driver takes longer than a call may") {
  constexpr double kCallSeconds = 0.3;
  const v1::Grade grade = Judge(Source(kKernel, kMisaligned), /*verify_only=*/true, kCallSeconds).grade();
  CHECK(grade.verdict() == v1::VERDICT_RUNTIME_ERROR);
  CHECK_THAT(grade.verdict_reason(), Catch::Contains("misaligned", Catch::CaseSensitive::No));
  const std::string spins = std::string(kLaunch) + "  spin<<<1, 1, 0, stream>>>(y, -1);\n";
  CHECK(Judge(Source(kKernel, spins), /*verify_only=*/true, kCallSeconds).grade().verdict() ==
        v1::VERDICT_TIMEOUT);
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

// Chooses the GPU of all tests, too.
const SkipWhere skip([]() -> std::string {
  const auto gpus = FindGpus();
  if (!gpus.ok()) return gpus.status().ToString();
  if (gpus->empty()) return "no GPU here";
  Gpu() = gpus->front();
  return "";
});

}  // namespace
}  // namespace warpsmith
