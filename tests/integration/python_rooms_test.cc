// Python programs before a real referee, by the libraries that run where they are right.
#include <string>

#include "tests/support/catch.h"
#include "tests/support/referee_fixture.h"

namespace warpsmith {
namespace {

// A layer, and what follows it.
TaskSource Layer(const std::string& result) {
  return MakeTask(
      "import torch\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
      "        self.w = torch.nn.Parameter(torch.randn(64, 16))\n"
      "    def forward(self, x):\n        y = x @ self.w\n        return " +
      result +
      "\ndef get_inputs():\n    return [torch.randn(8, 64)]\ndef get_init_inputs():\n    return []\n");
}

std::string Program(const std::string& statements) {
  return "import ctypes\nimport torch\nclass ModelNew(torch.nn.Module):\n    def __init__(self):\n"
         "        super().__init__()\n        self.w = torch.nn.Parameter(torch.randn(64, 16))\n"
         "    def forward(self, x):\n        y = x @ self.w\n" +
         statements + "        return y\n";
}

constexpr char kNothing[] = "";
constexpr char kReluOfTorch[] = "        y = torch.relu(y)\n";
// In the text itself, without a library.
constexpr char kOwnRelu[] =
    "        numbers = (ctypes.c_float * y.numel()).from_address(y.data_ptr())\n"
    "        for i in range(y.numel()):\n"
    "            if numbers[i] < 0: numbers[i] = 0.0\n";

v1::Grade Judged(const TaskSource& task, const std::string& statements, bool with_blas = false) {
  JudgeRequest request;
  request.task = task;
  request.kind = CandidateKind::kKernelBenchPython;
  request.source = Program(statements);
  request.with_blas = with_blas;
  request.verify_only = true;
  const auto measurement = TestReferee().Judge(request, absl::Now() + absl::Seconds(120));
  INFO(measurement.status().ToString());
  REQUIRE(measurement.ok());
  return measurement->grade();
}

TEST_CASE(
    "a program whose work is Torch's is a hack where its task does not allow that, and right where it does") {
  const TaskSource task = Layer("torch.relu(y)");
  const v1::Grade refused = Judged(task, kReluOfTorch);
  CHECK(refused.verdict() == v1::VERDICT_HACK);
  CHECK(refused.hack_family() == "delegated-work");
  const v1::Grade allowed = JudgePython(task, Program(kReluOfTorch)).grade();
  CHECK(allowed.verdict() == v1::VERDICT_CORRECT);
  CHECK(allowed.timing().library_share() == 1);
  CHECK(Judged(task, kReluOfTorch, /*with_blas=*/true).verdict() == v1::VERDICT_HACK);
}

TEST_CASE("a program that leaves nothing but a product to libraries is right where products run") {
  const TaskSource task = Layer("torch.relu(y)");
  for (const bool with_blas : {false, true}) {
    const v1::Grade grade = Judged(task, kOwnRelu, with_blas);
    INFO(grade.verdict_reason());
    CHECK(grade.verdict() == v1::VERDICT_CORRECT);
    CHECK(grade.timing().products_alone());
    CHECK(grade.timing().library_share() > 0);
    CHECK(grade.timing().library_share() < 1);
  }
}

TEST_CASE("a product alone is all of a task's work: it is a hack, unless its task allows products") {
  const TaskSource task = Layer("y");
  CHECK(Judged(task, kNothing).verdict() == v1::VERDICT_HACK);
  const v1::Grade grade = Judged(task, kNothing, /*with_blas=*/true);
  INFO(grade.verdict_reason());
  CHECK(grade.verdict() == v1::VERDICT_CORRECT);
  CHECK(grade.timing().products_alone());
  CHECK(grade.timing().library_share() == 1);
}

}  // namespace
}  // namespace warpsmith
