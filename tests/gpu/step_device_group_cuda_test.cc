// Two GPUs that share a model: what they compute together against one, and against each other.
#include "rollout_workers/device/step_device_group_cuda.h"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/distributed/nccl_device_group_cuda.h"
#include "rollout_workers/device/step_device_group.h"
#include "rollout_workers/paged/paged_batch.h"
#include "tests/gpu/small_device_model.h"
#include "tests/support/catch.h"
#include "tests/support/device_group_fixture.h"
#include "tests/support/device_shards_fixture.h"

namespace warpsmith {
namespace {

constexpr int kVocabulary = 1024;

bool HasTwoGpus() {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  if (count < 2) WARN("needs two devices");
  return count >= 2;
}

GroupSamples Run(const EngineOptions& options, const GenerationJob& job) {
  return RunGroupJob(SmallDeviceModel(), options, job);
}

EngineOptions OptionsIn(DeviceDtype dtype, const std::vector<int>& devices) {
  EngineOptions options = GroupOptions(devices);
  options.cuda->dtype = dtype;
  return options;
}

device::CudaStepOptions StepOptions() {
  return {.devices = {0, 1},
          .num_pages = 4 * 32 + 1,
          .sequences_max = 4,
          .prefill_tokens_max = 64,
          .context_tokens_max = 512,
          .decode_buckets = {1, 2, 4},
          .num_token_ids = kVocabulary};
}

paged::PagedBatchOptions PagedOptions() {
  return {.num_pages = 4 * 32 + 1,
          .sequences_max = 4,
          .context_tokens_max = 512,
          .prefill_tokens_max = 64,
          .decode_buckets = {1, 2, 4},
          .num_token_ids = kVocabulary};
}

// The group, with its members still to be seen.
struct Group {
  std::vector<device::CudaStepDevice*> members;
  std::unique_ptr<device::StepDeviceGroup> device;
};

Group MakeGroup(const device::CudaStepOptions& options) {
  absl::StatusOr<device::CudaStepMembers> made = device::OpenCudaStepMembers(SmallDeviceModel(), options);
  INFO(made.status().message());
  REQUIRE(made.ok());
  Group group;
  std::vector<device::StepDeviceGroup::Member> members;
  for (size_t i = 0; i < made->devices.size(); ++i) {
    group.members.push_back(made->devices[i].get());
    members.push_back({device::CudaName({options.devices[i]}), std::move(made->devices[i])});
  }
  group.device =
      std::make_unique<device::StepDeviceGroup>(std::move(members), made->abort, options.step_timeout);
  return group;
}

std::vector<int32_t> LastTokens(const device::CudaStepDevice& member, int device) {
  std::vector<int32_t> tokens(StepOptions().sequences_max);
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
  REQUIRE(cudaMemcpy(tokens.data(), member.last_tokens(), tokens.size() * sizeof(int32_t),
                     cudaMemcpyDeviceToHost) == cudaSuccess);
  return tokens;
}

void CUDART_CB WaitForTest(void* notification) {
  static_cast<absl::Notification*>(notification)->WaitForNotificationWithTimeout(absl::Seconds(30));
}

}  // namespace

// As on one GPU: no further from float64 than its logits, but for the rounding of parts. 1.25 allows for chance.
TEST_CASE(
    "logits of two shards over NCCL are as near to float64 as one GPU's, and have the same bits on both") {
  if (!HasTwoGpus()) return;
  const std::shared_ptr<NcclDeviceGroup> group = NcclDeviceGroup::Create({0, 1}, absl::Seconds(60)).value();
  const auto exchange_of = [group](int rank) -> PartialsExchange {
    return [group, rank](std::byte* partials, int64_t bytes, cudaStream_t stream) {
      return group->AllGather(rank, partials, bytes, stream);
    };
  };
  for (const auto& [name, config, count] : ShardedDevices()) {
    if (count != 2) continue;
    const Parameters parameters = DeviceParameters(config, 5);
    const std::vector<int32_t> tokens = DeviceTokens(config, 40, 3);
    DeviceShards shards(config, SmallOptions({64}), {0, 1}, exchange_of),
        whole(config, SmallOptions({64}), {0}, exchange_of);
    shards.SetParameters(parameters);
    whole.SetParameters(parameters);
    const auto sharded = shards.Run(ShardSteps(tokens)), expected = whole.Run(ShardSteps(tokens));
    CHECK(sharded[1] == sharded[0]);
    CHECK(shards.Run(ShardSteps(tokens)) == sharded);
    const ShardErrors errors = MeasureShardErrors(parameters, tokens, sharded[0], expected[0]);
    std::printf("%s: error of shards %.2e, of the whole model %.2e, between them %.2e\n", name.c_str(),
                errors.shards.value(), errors.whole.value(), errors.difference.value());
    INFO(name);
    CHECK(errors.shards.value() <= 1.25 * errors.whole.value());
    CHECK(errors.difference.value() > 0);
  }
}

TEST_CASE("greedy tokens of two GPUs are one GPU's until two logits are nearly equal") {
  if (!HasTwoGpus()) return;
  const GenerationJob job = GroupJob(SmallDeviceModel(), 8, 1, 0, 64);
  // Float16 rounds to an eighth of the steps of bfloat16.
  for (const auto& [dtype, difference_max] :
       {std::pair{DeviceDtype::kBfloat16, 0.02}, {DeviceDtype::kFloat16, 0.005}}) {
    const GreedyComparison found =
        CompareGreedy(Run(OptionsIn(dtype, {0}), job), Run(OptionsIn(dtype, {0, 1}), job));
    std::printf(
        "%s: %d of %d greedy tokens before the answers part, %d of 8 answers part, log-probs within %.4f\n",
        DtypeName(dtype), found.num_equal, found.num_tokens, found.num_parted, found.log_prob_difference_max);
    CHECK(found.num_tokens == 8 * 64);
    CHECK(found.num_equal > found.num_tokens / 4);
    CHECK(found.log_prob_difference_max <= difference_max);
  }
}

TEST_CASE("200 greedy tokens of two GPUs in float32 are one GPU's") {
  if (!HasTwoGpus()) return;
  const GenerationJob job = GroupJob(SmallDeviceModel(), 8, 1, 0, 200);
  const GreedyComparison found = CompareGreedy(Run(OptionsIn(DeviceDtype::kFloat32, {0}), job),
                                               Run(OptionsIn(DeviceDtype::kFloat32, {0, 1}), job));
  std::printf("%d of %d greedy tokens in float32 are equal, log-probs within %.1e\n", found.num_equal,
              found.num_tokens, found.log_prob_difference_max);
  CHECK(found.num_tokens == 8 * 200);
  CHECK(found.num_equal == found.num_tokens);
  CHECK(found.log_prob_difference_max <= 1e-4);
}

TEST_CASE("a sample of two GPUs has its bits alone, among others, in chunks and from graphs or launches") {
  if (!HasTwoGpus()) return;
  const DeviceDtype dtype = GENERATE(DeviceDtype::kBfloat16, DeviceDtype::kFloat16);
  INFO(DtypeName(dtype));
  const GenerationJob job = GroupJob(SmallDeviceModel(), 4, 4, 1, 64);
  const GroupSamples together = Run(OptionsIn(dtype, {0, 1}), job);
  REQUIRE(together.size() == 16);
  CHECK(SameBits(together, Run(OptionsIn(dtype, {0, 1}), job)));
  CHECK(SameBits(together, Run(OptionsIn(dtype, {1, 0}), job)));
  EngineOptions few = OptionsIn(dtype, {0, 1});
  few.num_slots = 3;
  CHECK(SameBits(together, Run(few, job)));
  EngineOptions chunks = OptionsIn(dtype, {0, 1});
  chunks.cuda->prefill_tokens_max = 17;
  CHECK(SameBits(together, Run(chunks, job)));
  EngineOptions direct = OptionsIn(dtype, {0, 1});
  direct.cuda->decode_buckets = {1};  // larger steps have no graph
  CHECK(SameBits(together, Run(direct, job)));
}

TEST_CASE("after hundreds of steps from graphs both GPUs have the same tokens, also with pages taken anew") {
  if (!HasTwoGpus()) return;
  const Group group = MakeGroup(StepOptions());
  REQUIRE(group.device->FillRandom(3).ok());
  std::vector<std::vector<int32_t>> runs;
  for (int run = 0; run < 2; ++run) {
    const std::unique_ptr<paged::PagedBatch> batch = paged::PagedBatch::Create(PagedOptions(), 0).value();
    paged::PagedRequest request{.id = 1, .seeds = {1, 2, 3, 4}, .answer_tokens_max = 300};
    for (int i = 0; i < 50; ++i) request.prompt_token_ids.push_back(i);
    REQUIRE(batch->Submit(request).ok());
    int num_steps = 0;
    for (; !batch->empty(); ++num_steps) {
      REQUIRE(group.device->Launch(batch->Plan()).ok());
      absl::StatusOr<std::vector<paged::TokenResult>> results = group.device->AwaitOldest();
      INFO(results.status().message());
      REQUIRE(results.ok());
      batch->Complete(*std::move(results));
      if (num_steps % 100 == 7) {
        CHECK(LastTokens(*group.members[0], 0) == LastTokens(*group.members[1], 1));
      }
    }
    CHECK(num_steps >= 200);
    runs.push_back(LastTokens(*group.members[0], 0));
    CHECK(LastTokens(*group.members[1], 1) == runs.back());
    for (const device::CudaStepDevice* const member : group.members) CHECK(member->num_graphs() >= 1);
    group.device->FreePages();
    REQUIRE(group.device->AllocatePages().ok());
  }
  CHECK(runs[0] == runs[1]);
}

// In a process of its own, by its tag: GPUs that were lost stay so for the rest of it, and a call that frees memory of
// one waits.
TEST_CASE("a step that one GPU does not end in time is an error of the group that names it", "[.][lost]") {
  if (!HasTwoGpus()) return;
  device::CudaStepOptions options = StepOptions();
  options.step_timeout = absl::Seconds(2);
  Group group = MakeGroup(options);
  REQUIRE(group.device->FillRandom(3).ok());
  const std::unique_ptr<paged::PagedBatch> batch = paged::PagedBatch::Create(PagedOptions(), 0).value();
  REQUIRE(batch->Submit({.id = 1, .prompt_token_ids = {1, 2}, .seeds = {1}, .answer_tokens_max = 20}).ok());
  // The first step loads the kernels that sample, which waits for the GPU: behind a GPU that stands still only the
  // group's own limit would end its launch.
  REQUIRE(group.device->Launch(batch->Plan()).ok());
  batch->Complete(group.device->AwaitOldest().value());
  absl::Notification go;
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  REQUIRE(cudaLaunchHostFunc(group.members[1]->stream(), WaitForTest, &go) == cudaSuccess);
  const paged::StepPlan plan = batch->Plan();
  const absl::Time begin = absl::Now();
  REQUIRE(group.device->Launch(plan).ok());
  const absl::Status late = group.device->AwaitOldest().status();
  INFO(late.message());
  CHECK(absl::IsDeadlineExceeded(late));
  CHECK_THAT(std::string(late.message()), Catch::Contains("Step 1 of cuda:"));
  CHECK(absl::Now() - begin < absl::Seconds(20));
  CHECK(absl::IsDeadlineExceeded(group.device->Launch(plan)));
  group.device.reset();
  go.Notify();
}

TEST_CASE("groups that cannot be are refused before they take memory") {
  const auto status_of = [](std::vector<int> devices) {
    device::CudaStepOptions options = StepOptions();
    options.devices = std::move(devices);
    return device::OpenCudaStepDevice(SmallDeviceModel(), options).status();
  };
  CHECK(absl::IsInvalidArgument(status_of({0, 1, 2})));  // 2 key-value heads
  CHECK(absl::IsInvalidArgument(status_of({0, 0})));
  CHECK(absl::IsFailedPrecondition(status_of({0, 63})));
}

}  // namespace warpsmith
