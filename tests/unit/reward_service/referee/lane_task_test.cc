#include "reward_service/referee/lane_task.h"

#include <set>
#include <utility>
#include <vector>

#include "reward_service/referee/tensors/gpu_store.h"
#include "tests/support/catch.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/held_turn.h"
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
  for (const auto& baseline : LaneTask::Of(*puppets.task).baselines()) {
    CHECK(baseline->process().stopped());
    CHECK(baseline->seconds() > 0);
    inputs.insert(baseline->inputs().get());
  }
  CHECK(inputs.size() == 3);
}

TEST_CASE("references that were ended on cores are started again where they are needed") {
  PuppetTask puppets;
  REQUIRE(puppets.task->Complete().ok());
  LaneTask& kept = LaneTask::Of(*puppets.task);
  const Jail* const first = kept.baselines().front().get();
  REQUIRE(kept.AwaitReference(*puppets.task).ok());
  CHECK(kept.baselines().front().get() == first);
  CHECK(kept.EndReference());
  REQUIRE(kept.AwaitReference(*puppets.task).ok());
  CHECK(kept.baselines().size() == 3);
  CHECK(kept.baselines().front()->process().stopped());
}

TEST_CASE("a reference is slow beside the least that it ever took") {
  PuppetTask puppets;
  LaneTask& kept = LaneTask::Of(*puppets.task);
  CHECK(kept.reference_pace().Slowness(10) == 1);
  CHECK(kept.reference_pace().Slowness(30) == 3);
  CHECK(kept.reference_pace().Slowness(5) == 1);
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
  LaneTask& kept = LaneTask::Of(*puppets.task);
  const TaskLayout& layout = puppets.task->layout();
  const Buffers verified = *kept.BorrowBuffers(layout, kNative, nullptr);
  CHECK(kept.BorrowBuffers(layout, CandidateKind::kKernelBenchPython, nullptr)->inputs == verified.inputs);
  const Jail& baseline = *kept.baselines()[1];
  const Buffers timed = *kept.BorrowBuffers(layout, CandidateKind::kKernelBenchPython, &baseline);
  CHECK(timed.inputs == baseline.inputs());
  CHECK(timed.outputs.empty());
}

TEST_CASE(
    "on a GPU calls come in batches, as many as draws are kept for and are needed; on a CPU one by one") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  const PuppetTask puppets;
  RefereeFacts facts;
  facts.empty_call_us = 50;
  facts.gigabytes_per_second_ceiling = 1000;
  const auto num_calls = [&](int64_t input_bytes, int num_outputs, int64_t reference_us, TensorStore& on) {
    TaskLayout layout;
    layout.input_buffer_bytes = input_bytes;
    layout.output_buffer_bytes = 1 << 20;
    layout.outputs.resize(static_cast<size_t>(num_outputs));
    layout.reference_us = reference_us;
    return LaneTask::Place(puppets.zygote.get(), PuppetTaskLimits(), 1, on, facts)()->NumBatchedCalls(layout);
  };
  CHECK(num_calls(1 << 20, 1, 0, *store) == 16);
  CHECK(num_calls(15 << 20, 1, 0, *store) == 10);  // 1 GiB: six batches, inputs and outputs
  CHECK(num_calls(1 << 30, 1, 0, *store) == 1);
  CHECK(num_calls(1 << 20, 64, 0, *store) == 4);  // so many outputs can be told
  CHECK(num_calls(1 << 20, 1, 0, HostStore()) == 1);
  // As many as last thirty times as long as an empty call, which may take twice as long as the facts say.
  CHECK(num_calls(1 << 20, 1, 1, *store) == 16);
  CHECK(num_calls(1 << 20, 1, 999, *store) == 4);
  CHECK(num_calls(1 << 20, 1, 1000, *store) == 3);
  CHECK(num_calls(1 << 20, 1, 100000, *store) == 1);
  CHECK(num_calls(1 << 30, 1, 1000, *store) == 1);

  TaskLayout layout;
  layout.input_buffer_bytes = 2'000'000;
  layout.outputs.resize(1);
  layout.parameters.resize(1);
  layout.parameters[0].offset = 1'000'000;  // read and written in 2 us
  const auto calls = [&] {
    return LaneTask::Place(puppets.zygote.get(), PuppetTaskLimits(), 1, *store, facts)()->NumBatchedCalls(
        layout);
  };
  layout.reference_us = 40;
  CHECK(calls() == 16);
  layout.reference_us = 39;
  CHECK(calls() == 1);
  layout.reference_us = 40;
  layout.outputs[0].borrowed = true;
  CHECK(calls() == 1);
}

TEST_CASE(
    "draws of a task lie on the GPU if there is room, else on the host, and what is larger is refused") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  store->set_host_draw_bytes_max(8 << 20);
  const auto zygote = StartPuppets();
  const RefereeFacts facts;
  int64_t device_bytes = 0, host_bytes = 0;
  const auto examine = [&](int64_t device_bytes_max, int64_t host_draw_bytes_max) {
    TaskLimits limits = PuppetTaskLimits();
    limits.device_bytes_max = device_bytes_max;
    limits.host_draw_bytes_max = host_draw_bytes_max;
    PreparedTask task(PuppetTaskSource(), 7, limits, zygote.get(), 1,
                      LaneTask::Place(zygote.get(), limits, 1, *store, facts));
    const absl::Status status = task.Examine();
    device_bytes = task.BytesIn(KeptIn::kDevice, TaskUse::kTiming);
    host_bytes = task.BytesIn(KeptIn::kHost, TaskUse::kTiming);
    return status;
  };
  CHECK(examine(int64_t{2} << 30, 0).ok());  // two contexts, and small tensors
  CHECK(host_bytes == 0);
  const int64_t just_too_little = device_bytes - 1;
  CHECK(examine(just_too_little, 8 << 20).ok());
  CHECK(host_bytes > 0);
  CHECK(device_bytes < just_too_little);
  const absl::Status refused = examine(just_too_little, host_bytes - 1);
  CHECK(absl::IsInvalidArgument(refused));
  INFO(refused.message());
  CHECK(refused.message().find("for which the GPU has no room") != std::string::npos);
  CHECK(examine(int64_t{1} << 30, 8 << 20).message().find("and 1.1 GB are there for one task") !=
        std::string::npos);
}

TEST_CASE("a GPU of 80 GB has room for all draws of a call of 2 GB") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  const PuppetTask puppets;
  const RefereeFacts facts;
  TaskLayout inception;  // level 3, task 6: 10 x 480 x 224 x 224 to 10 x 512 x 224 x 224, float32
  inception.outputs.resize(1);
  inception.input_buffer_bytes = 963'379'200 + (2 << 20);
  inception.output_buffer_bytes = 1'027'604'480;
  constexpr int64_t kVerification = 7;
  const int64_t bytes =
      LaneTask::Place(puppets.zygote.get(), PuppetTaskLimits(), 1, *store, facts)()->BytesOf(
          inception, kVerification + TimingDraws(1) + FreshDrawsWanted(1), TaskUse::kTiming);
  CHECK(bytes < LargestTaskBytes(int64_t{78} << 30));
  CHECK(bytes > LargestTaskBytes(int64_t{40} << 30));
}

// Complete.
struct TaskOnGpu {
  TaskOnGpu() {
    REQUIRE(task.Examine().ok());
    REQUIRE(task.Complete().ok());
  }
  FakeGpu gpu;
  const std::unique_ptr<GpuStore> store = *GpuStore::Open(0);
  const std::unique_ptr<Zygote> zygote = StartPuppets();
  const RefereeFacts facts;
  PreparedTask task{
      PuppetTaskSource(), 7, PuppetTaskLimits(),
      zygote.get(),       1, LaneTask::Place(zygote.get(), PuppetTaskLimits(), 1, *store, facts)};
};

TEST_CASE("a reference that was ended on a GPU is started again where it is needed") {
  TaskOnGpu on_gpu;
  PreparedTask& task = on_gpu.task;
  LaneTask& kept = LaneTask::Of(task);
  REQUIRE(kept.AwaitReference(task).ok());
  const pid_t first = kept.baselines().front()->process().pid();
  REQUIRE(kept.AwaitReference(task).ok());
  CHECK(kept.baselines().front()->process().pid() == first);
  CHECK(kept.EndReference());
  REQUIRE(kept.AwaitReference(task).ok());
  CHECK(kept.baselines().front()->process().pid() != first);
}

TEST_CASE("a reference that was made ready while others left little memory is made ready again alone") {
  TaskOnGpu on_gpu;
  PreparedTask& task = on_gpu.task;
  LaneTask& kept = LaneTask::Of(task);
  on_gpu.gpu.Say("free 20\n");
  {
    const auto turn = HoldTurn(on_gpu.store->turn(), DeviceTurn::Kind::kShared);
    REQUIRE(kept.AwaitReference(task).ok());
  }
  CHECK(kept.baselines().empty());
  const auto turn = HoldTurn(on_gpu.store->turn(), DeviceTurn::Kind::kAlone);
  REQUIRE(kept.AwaitReference(task).ok());
  CHECK(kept.baselines().size() == 1);
}

TEST_CASE("a process of the reference that cannot open the GPU is no fault of the task") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  nlohmann::json script;
  script["answers"]["hello python"] = {{"op", "failed"}, {"error", "cuDevicePrimaryCtxRetain"}};
  const auto zygote = StartPuppets(script);
  const RefereeFacts facts;
  PreparedTask task(PuppetTaskSource(), 7, PuppetTaskLimits(), zygote.get(), 1,
                    LaneTask::Place(zygote.get(), PuppetTaskLimits(), 1, *store, facts));
  REQUIRE(task.Examine().ok());
  REQUIRE(LaneTask::Of(task).StartReference(task).ok());
  CHECK(absl::IsInternal(LaneTask::Of(task).AwaitReference(task)));
}

TEST_CASE("a task holds memory of a GPU for its processes, its draws and its rooms, and none of a host") {
  const FakeGpu gpu;
  const auto store = *GpuStore::Open(0);
  const PuppetTask puppets;
  const RefereeFacts facts;
  TaskUse use = TaskUse::kTiming;
  const auto bytes = [&](const TaskLayout& layout, TensorStore& on) {
    return LaneTask::Place(puppets.zygote.get(), PuppetTaskLimits(), 1, on, facts)()->BytesOf(layout, 10,
                                                                                              use);
  };
  const int64_t empty = bytes({}, *store);
  CHECK(empty >= int64_t{1} << 30);
  use = TaskUse::kVerifying;
  const int64_t empty_verifying = bytes({}, *store);
  CHECK(2 * empty_verifying == empty);
  TaskLayout layout;
  layout.input_buffer_bytes = 3 << 20;
  layout.output_buffer_bytes = 2 << 20;
  CHECK(bytes(layout, *store) - empty_verifying == (10 + 16) * (int64_t{5} << 20));  // in batches of sixteen
  use = TaskUse::kTiming;
  CHECK(bytes(layout, *store) - empty == (10 + 2 * 17 + 16) * (int64_t{5} << 20));
  CHECK(bytes(layout, HostStore()) == 0);
}

TEST_CASE("a task that is examined holds the next judgement's draws, and what candidates left for others") {
  TaskOnGpu on_gpu;
  PreparedTask& task = on_gpu.task;
  LaneTask& kept = LaneTask::Of(task);
  const auto num_draws = static_cast<int64_t>(task.verification_draws().size() + task.num_draws_of_turn());
  const auto num_exact = static_cast<int64_t>(task.verification_draws().size());
  const int64_t examined =
      kept.BytesOf(task.layout(), num_draws, TaskUse::kVerifying) +
      (num_exact + static_cast<int64_t>(task.num_draws_of_turn())) * task.layout().margin_bytes;
  CHECK(task.layout().margin_bytes > 0);
  CHECK(task.BytesIn(KeptIn::kDevice, TaskUse::kVerifying) == examined);
  Buffers used = *kept.OwnBuffers(task.layout(), kNative);
  int64_t left = 0;
  for (const auto& output : used.outputs) left += output->num_bytes();
  CHECK(left > 0);
  kept.ReturnBuffers(std::move(used));
  CHECK(task.BytesIn(KeptIn::kDevice, TaskUse::kVerifying) == examined + left);
}

TEST_CASE("outputs of native candidates are used again, those of several as well") {
  const PuppetTask puppets;
  LaneTask& kept = LaneTask::Of(*puppets.task);
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
