#include "reward_service/referee/cpu_task.h"

#include <set>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/puppet_task.h"

namespace warpsmith {
namespace {

constexpr CandidateKind kNative = CandidateKind::kNative;

absl::Status Completed(const nlohmann::json& script) { return PuppetTask(script).task->Complete(); }

TEST_CASE(
    "a completed task has three processes of its reference, warm and stopped, with inputs of their own") {
  PuppetTask puppets;
  REQUIRE(puppets.task->Complete().ok());
  std::set<const TensorMemory*> inputs;
  for (const auto& baseline : CpuTask::Of(*puppets.task).baselines()) {
    CHECK(baseline->process().stopped());
    CHECK(baseline->seconds() > 0);
    inputs.insert(baseline->inputs().get());
  }
  CHECK(inputs.size() == 3);
}

TEST_CASE("a reference that fails alone is the task's fault, whether it does when it is loaded or later") {
  const nlohmann::json worn = {{"op", "failed"}, {"error", "worn"}};
  const nlohmann::json third = {nullptr, nullptr, worn};
  const absl::Status expected = absl::InvalidArgumentError("the reference fails when it is run alone: worn");
  CHECK(Completed({{"answers", {{"begin Model", worn}}}}) == expected);
  CHECK(Completed({{"answers", {{"run Model", third}}}}) == expected);
}

TEST_CASE("who is verified has the task's one buffer of inputs, and who is timed that of the baseline") {
  PuppetTask puppets;
  REQUIRE(puppets.task->Complete().ok());
  CpuTask& kept = CpuTask::Of(*puppets.task);
  const TaskLayout& layout = puppets.task->layout();
  const Buffers verified = *kept.BorrowBuffers(layout, kNative, nullptr);
  CHECK(kept.BorrowBuffers(layout, CandidateKind::kKernelBenchPython, nullptr)->inputs == verified.inputs);
  const Jail& baseline = *kept.baselines()[1];
  const Buffers timed = *kept.BorrowBuffers(layout, CandidateKind::kKernelBenchPython, &baseline);
  CHECK(timed.inputs == baseline.inputs());
  CHECK(timed.outputs.empty());
}

TEST_CASE("outputs of native candidates are used again, those of several as well") {
  const PuppetTask puppets;
  CpuTask& kept = CpuTask::Of(*puppets.task);
  std::vector<Buffers> borrowed;
  const auto borrow_four = [&] {
    std::set<const TensorMemory*> outputs;
    for (int i = 0; i < 4; ++i) {
      borrowed.push_back(*kept.BorrowBuffers(puppets.task->layout(), kNative, nullptr));
      outputs.insert(borrowed.back().outputs[0].get());
    }
    return outputs;
  };
  const std::set<const TensorMemory*> first = borrow_four();
  CHECK(first.size() == 4);
  for (Buffers& buffers : borrowed) kept.ReturnBuffers(std::move(buffers));
  CHECK(borrow_four() == first);
}

}  // namespace
}  // namespace warpsmith
