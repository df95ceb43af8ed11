// Tasks that ask for verification on inputs of other shapes and strides, before a real referee.
#include <string>

#include "tests/support/candidate_library.h"
#include "tests/support/catch.h"
#include "tests/support/referee_fixture.h"

namespace warpsmith {
namespace {

const char* const kTask = R"(
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(2 * x + 1)

def get_inputs():
    return [torch.randn(64, 128)]

def get_init_inputs():
    return []
)";

TaskSource TaskWith(const std::string& other_inputs) {
  return MakeTask(kTask + ("\ndef get_other_inputs():\n    return " + other_inputs + "\n"));
}

// A native candidate over rows and columns, with `in` where the input's element is.
std::string Rows(const std::string& in) {
  return CandidateBody(
      "for (int64_t r = 0; r < inputs[0]->shape[0]; ++r)\n"
      "  for (int64_t c = 0; c < inputs[0]->shape[1]; ++c) {\n"
      "    const float v = 2 * x[" +
      in + "] + 1;\n    y[r * inputs[0]->shape[1] + c] = v > 0 ? v : 0;\n  }\n");
}

const char* const kByStrides =
    "inputs[0]->strides ? r * inputs[0]->strides[0] + c * inputs[0]->strides[1] : r * inputs[0]->shape[1] + "
    "c";

std::string Python(const std::string& body) {
  return "import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        " + body +
         "\n";
}

TEST_CASE("a candidate that holds for one shape only is wrong where the task names another") {
  const std::string for_one_shape = CandidateBody(
      "for (int64_t i = 0; i < 64 * 128; ++i) { const float v = 2 * x[i] + 1; y[i] = v > 0 ? v : 0; }");
  CHECK(JudgeNative(MakeTask(kTask), for_one_shape).grade().verdict() == v1::VERDICT_CORRECT);
  const v1::Measurement j = JudgeNative(TaskWith("[[torch.randn(96, 200)]]"), for_one_shape);
  INFO(j.grade().verdict_reason());
  CHECK(j.grade().verdict() == v1::VERDICT_INCORRECT);
  CHECK_THAT(j.grade().verdict_reason(), Catch::StartsWith("on inputs of other shapes or strides: "));
  CHECK(JudgeNative(TaskWith("[[torch.randn(96, 200)]]"), Rows("r * inputs[0]->shape[1] + c"))
            .grade()
            .verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("inputs of get_other_inputs() have the strides that the task gives them") {
  const TaskSource task = TaskWith("[[torch.randn(128, 64).t()], [torch.randn(64, 256)[:, 3:200:2]]]");
  const v1::Measurement strided = JudgeNative(task, Rows(kByStrides), /*verify_only=*/false);
  INFO(strided.grade().verdict_reason());
  CHECK(strided.grade().verdict() == v1::VERDICT_CORRECT);
  CHECK(strided.grade().has_timing());
  CHECK(JudgeNative(task, Rows("r * inputs[0]->shape[1] + c")).grade().verdict() == v1::VERDICT_INCORRECT);

  const v1::Measurement python = JudgePython(task, Python("return torch.clamp(2 * x + 1, min=0)"));
  INFO(python.grade().verdict_reason());
  CHECK(python.grade().verdict() == v1::VERDICT_CORRECT);
  const v1::Measurement dense =
      JudgePython(task, Python("return torch.relu(2 * x.as_strided(x.shape, (x.shape[1], 1)) + 1)"));
  CHECK(dense.grade().verdict() == v1::VERDICT_INCORRECT);
}

TEST_CASE("a task whose other inputs are not usable is at fault, in words") {
  const std::string candidate = Rows("r * inputs[0]->shape[1] + c");
  for (const auto& [others, complaint] : {
           std::pair<const char*, const char*>{"7", "returns no list of lists"},
           {"[[torch.randn(4, 4)] for _ in range(5)]", "returns 5 lists, at most 4"},
           {"[[torch.randn(4, 4), 1]]", "get_other_inputs()[0]"},
       }) {
    const v1::Measurement j = JudgeNative(TaskWith(others), candidate);
    INFO(others << ": " << j.grade().verdict_reason());
    CHECK(j.grade().verdict() == v1::VERDICT_INVALID_TASK);
    CHECK_THAT(j.grade().verdict_reason(), Catch::Contains(complaint));
  }
}

}  // namespace
}  // namespace warpsmith
