#include "rollout_workers/task_prompt.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

Prompts Small() { return Prompts::Load("datasets/tokenizer/small", "datasets/prompts/small", "").value(); }

v1::Task OptimiseTask() {
  v1::Task task;
  task.set_id("t");
  task.set_skill(v1::SKILL_OPTIMISE);
  task.set_reference_source("def f(x):\n    return x\n");
  task.set_previous_source("int run();\n");
  task.mutable_feedback()->set_finding("several passes");
  task.mutable_feedback()->set_evidence("speedup 0.48, 3 passes");
  task.mutable_feedback()->set_advice(v1::ADVICE_AVOID_TEMPORARY);
  return task;
}

}  // namespace

TEST_CASE("prompts of both skills read as their templates with the slots filled") {
  const Prompts prompts = Small();
  const auto text = [&](const v1::Task& task) {
    return prompts.tokenizer().Decode(TaskPrompt(prompts, task, 1000).value(), DecodeSpecial::kKeep);
  };
  v1::Task task = OptimiseTask();
  CHECK(text(task) ==
        "<|im_start|>user\ndef f(x):\n    return x\nint run();\nfinding: several passes\n"
        "evidence: speedup 0.48, 3 passes\nadvice: avoid the temporary<|im_end|>\n<|im_start|>assistant\n");
  task.set_skill(v1::SKILL_GENERATE);
  CHECK(text(task) == "<|im_start|>user\ndef f(x):\n    return x\n<|im_end|>\n<|im_start|>assistant\n");
}

TEST_CASE("a prompt of CUDA programs says which libraries its task allows, in both skills") {
  const Prompts prompts =
      Prompts::Load("datasets/tokenizer/small", "datasets/prompts/coder_cuda", "").value();
  for (const v1::Skill skill : {v1::SKILL_GENERATE, v1::SKILL_OPTIMISE}) {
    v1::Task task = OptimiseTask();
    task.set_skill(skill);
    const auto text = [&] {
      return prompts.tokenizer().Decode(TaskPrompt(prompts, task, 10000).value(), DecodeSpecial::kKeep);
    };
    CHECK_THAT(text(), Catch::Contains("\n- Libraries beyond CUDA's runtime") &&
                           Catch::Contains("kernels of your own") && !Catch::Contains("cuDNN"));
    task.add_allowed_libraries("blas");
    CHECK_THAT(text(), Catch::Contains("\n- cuBLAS, cuBLASLt and cuDNN are available") &&
                           !Catch::Contains("of your own"));
  }
}

TEST_CASE("tasks that make no prompt are refused with the reason") {
  const Prompts prompts = Small();
  const auto reason = [&](const v1::Task& task, int64_t tokens_max = 1000) {
    return std::string(TaskPrompt(prompts, task, tokens_max).status().message());
  };
  v1::Task task = OptimiseTask();
  const int64_t length = std::ssize(TaskPrompt(prompts, task, 1000).value());
  CHECK(TaskPrompt(prompts, task, length).ok());
  CHECK_THAT(reason(task, length - 1), Catch::Contains("a prompt of " + std::to_string(length) + " tokens"));
  task.mutable_feedback()->clear_advice();
  CHECK_THAT(reason(task), Catch::Contains("no advice"));
  task.set_previous_source(" \n");
  CHECK_THAT(reason(task), Catch::Contains("no previous_source"));
  task.clear_skill();
  CHECK_THAT(reason(task), Catch::Contains("no skill"));
  task.clear_reference_source();
  CHECK_THAT(reason(task), Catch::Contains("no reference_source"));
}

}  // namespace warpsmith
