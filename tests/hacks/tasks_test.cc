// Tasks that are at fault, by accident or on purpose: they harm their own grades and nothing else.
#include <string>

#include "tests/support/candidate_library.h"
#include "tests/support/catch.h"
#include "tests/support/referee_fixture.h"

namespace warpsmith {
namespace {

// A reference with the given body of forward() over one tensor of 64 x 64, and other text before it.
TaskSource Task(const std::string& forward, const std::string& head = "") {
  return MakeTask(
      "import os, torch\nfrom torch import nn\n" + head +
      "\nclass Model(nn.Module):\n    def forward(self, x):\n        " + forward +
      "\n\ndef get_inputs():\n    return [torch.randn(64, 64)]\n\ndef get_init_inputs():\n    return []\n");
}

v1::Measurement JudgeTask(const TaskSource& task) {
  return JudgeNative(task, CandidateBody("std::memset(y, 0, n * 4);"));
}

void CheckInvalid(const TaskSource& task, const std::string& reason) {
  const v1::Measurement j = JudgeTask(task);
  INFO(j.grade().verdict_reason());
  CHECK(j.grade().verdict() == v1::VERDICT_INVALID_TASK);
  CHECK(j.grade().verdict_reason().find(reason) != std::string::npos);
}

TEST_CASE("a reference that is malformed, raises, crashes, leaves or never ends is an invalid task") {
  CheckInvalid(MakeTask("this is no program"), "SyntaxError");
  CheckInvalid(MakeTask("x = 1"), "defines no Model");
  CheckInvalid(Task("raise ValueError('broken')"), "ValueError: broken");
  CheckInvalid(Task("os._exit(0)"), "exited with code 0");
  CheckInvalid(Task("os.abort()"), "");
  CheckInvalid(Task("while True: pass"), "does not end");
  const v1::Measurement sound = JudgeTask(Task("return torch.exp(x)"));
  INFO(sound.grade().verdict_reason());
  CHECK(sound.grade().verdict() == v1::VERDICT_INCORRECT);
}

TEST_CASE("a reference that is not deterministic is an invalid task") {
  CheckInvalid(Task("return x + torch.randn_like(x)"), "not deterministic");
}

TEST_CASE("a reference that replaces Torch's functions is an invalid task") {
  CheckInvalid(Task("return torch.exp(x)", "torch.relu = torch.exp"), "replaces Torch's relu");
}

TEST_CASE("a reference that cannot be told from answers without work is an invalid task") {
  CheckInvalid(Task("return x * 0"), "cannot be told from zeros");
  CheckInvalid(Task("return torch.ones_like(x)"), "cannot be told from");
  CheckInvalid(Task("return x.clone()"), "a copied input");
  CheckInvalid(Task("return torch.exp(torch.zeros(4, 4) + torch.arange(4.0))"),
               "the output for other inputs");
}

TEST_CASE("a reference that returns NaN, nothing or no tensor is an invalid task") {
  CheckInvalid(Task("return x / 0 * 0"), "NaN");
  CheckInvalid(Task("return ()"), "no tensor");
  CheckInvalid(Task("return 'text'"), "str");
}

TEST_CASE("a reference that reaches outside is stopped by its own jail") {
  CheckInvalid(Task("os.fork(); return x"), "PermissionError");
  CheckInvalid(Task("open('/etc/passwd'); return x"), "Error");
  CheckInvalid(Task("open('/usr/x', 'w'); return x"), "");
}

TEST_CASE("a task larger than the buffers is an invalid task") {
  const TaskSource task = MakeTask(
      "import torch\nfrom torch import nn\nclass Model(nn.Module):\n    def forward(self, x):\n        "
      "return x * x + 1\n"
      "def get_inputs():\n    return [torch.zeros(20000, 20000)]\ndef get_init_inputs():\n    return []\n");
  CHECK(JudgeTask(task).grade().verdict() == v1::VERDICT_INVALID_TASK);
}

}  // namespace
}  // namespace warpsmith
