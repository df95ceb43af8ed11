// What candidates on the fake GPU launch, by their own word.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/fake_gpu_lane.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Where the jails can tell what is launched.
bool HasCupti() {
  if (std::filesystem::exists(FakeCudaFolder() / "libcupti.so.13")) return true;
  WARN("built without CUPTI's header: nothing is tested");
  return false;
}

// Returns the grade of a Python program that was timed, and whose task allows all libraries.
v1::Grade PythonGradeOf(const std::string& source) {
  JudgeRequest request;
  request.task = TestTask("scaled_relu_square");
  request.kind = CandidateKind::kKernelBenchPython;
  request.source = source;
  request.with_torch = true;
  request.timing.num_instances_min = 2;
  request.timing.num_instances_max = 2;
  const auto measurement = GpuReferee().Judge(request, absl::Now() + kPatience);
  INFO(measurement.status().ToString());
  REQUIRE(measurement.ok());
  return measurement->grade();
}

TEST_CASE("a grade tells what a call launched, by the program's own word") {
  if (!HasCupti()) return;
  const std::string launches = R"(
  Launch("_Z4fillPf", 3);
  Launch("_Z12softmax_rowsPfPKfi", 40);
  Launch("_Z4fillPf", 3);
)";
  const v1::Grade grade = GradeOf(launches + kRight, /*verify_only=*/false);
  INFO(grade.ShortDebugString());
  REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.profile().num_launches() == 3);
  REQUIRE(grade.profile().kernels_size() == 2);
  const v1::KernelRun& longest = grade.profile().kernels(0);
  CHECK(longest.name() == "softmax_rows");
  CHECK(longest.us() == 40);
  CHECK(longest.registers() == 40);
  CHECK(longest.shared_bytes() == 528);
  CHECK(std::vector<int>(longest.grid().begin(), longest.grid().end()) == std::vector<int>{40, 1, 1});
  CHECK(std::vector<int>(longest.block().begin(), longest.block().end()) == std::vector<int>{256, 1, 1});
  CHECK(grade.profile().kernels(1).num_launches() == 2);
}

TEST_CASE("a program that forges the list harms its own evidence alone") {
  if (!HasCupti()) return;
  const v1::Grade forged = GradeOf(std::string(kRight) + R"(
  if (IsWatched()) Say(R"x({"op":"profiled","num_launches":-1,"kernels":[{"name":"a\nb","us":1e300},7]})x");
)",
                                   /*verify_only=*/false);
  INFO(forged.ShortDebugString());
  REQUIRE(forged.verdict() == v1::VERDICT_CORRECT);
  REQUIRE(forged.profile().kernels_size() == 1);
  CHECK(forged.profile().kernels(0).name() == "a\\nb");
  CHECK(forged.profile().kernels(0).us() == 0);
  const v1::Grade nonsense =
      GradeOf(std::string(kRight) + R"(if (IsWatched()) Say("{\"op\":\"done\"}");)", false);
  CHECK(nonsense.verdict() == v1::VERDICT_CORRECT);
  CHECK(nonsense.profile().kernels_size() == 0);
}

TEST_CASE("a program that dies, fails or hangs when it is watched keeps its verdict and its times") {
  if (!HasCupti()) return;
  for (const char* const end :
       {"_exit(0);", "abort();", "return 7;", "for (volatile int i = 0;; i = 0) {}"}) {
    INFO(end);
    const v1::Grade grade = GradeOf(absl::StrCat(kRight, "if (IsWatched()) {", end, "}"), false);
    INFO(grade.ShortDebugString());
    REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
    CHECK(grade.timing().speedup() > 0);
    CHECK(grade.profile().kernels_size() == 0);
    CHECK(grade.profile().num_launches() == 0);
  }
  CHECK(GradeOf(kRight).verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("of a Python program it is told likewise") {
  if (!HasCupti()) return;
  const v1::Grade grade = PythonGradeOf(R"(
import ctypes
import torch

driver = ctypes.CDLL("libcuda.so.1")

class ModelNew(torch.nn.Module):
    def forward(self, x):
        kernel = ctypes.c_void_p()
        driver.cuModuleGetFunction(ctypes.byref(kernel), None, b"_Z6squarePf")
        driver.cuLaunchKernel(kernel, 9, 1, 1, 64, 1, 1, 0, None, None, None)
        return torch.relu(2 * x + 1) ** 2
)");
  INFO(grade.ShortDebugString());
  REQUIRE(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK_FALSE(grade.timing().libraries_withheld());
  CHECK(grade.profile().num_launches() == 1);
  REQUIRE(grade.profile().kernels_size() == 1);
  CHECK(grade.profile().kernels(0).name() == "square");
  CHECK(grade.profile().kernels(0).us() == 9);
}

}  // namespace
}  // namespace warpsmith
