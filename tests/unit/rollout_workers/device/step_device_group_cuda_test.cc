// Engines on GPUs made of the host that share a model: everything but kernels, streams and NCCL itself.
#include "rollout_workers/device/step_device_group_cuda.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/staging_plan.h"
#include "core/model/weight_source.h"
#include "rollout_workers/device/step_device_group.h"
#include "rollout_workers/paged/paged_batch.h"
#include "tests/gpu/small_device_model.h"
#include "tests/support/catch.h"
#include "tests/support/device_decoder_fixture.h"
#include "tests/support/device_group_fixture.h"
#include "tests/support/host_gpu_faults.h"

namespace warpsmith::device {
namespace {

ModelConfig FourHeads() {
  ModelConfig config = SmallDeviceModel();
  config.num_attention_heads = 8;
  config.num_key_value_heads = 4;
  config.head_dim = 64;
  config.num_hidden_layers = 2;
  return config;
}

absl::Status StatusOf(std::vector<int> devices) {
  const CudaStepOptions options{.devices = std::move(devices),
                                .sequences_max = 2,
                                .prefill_tokens_max = 64,
                                .context_tokens_max = 256,
                                .decode_buckets = {1, 2}};
  return OpenCudaStepDevice(FourHeads(), options).status();
}

// Ones, with one value that is none where `bad` is not -1.
class Ones final : public WeightSource {
 public:
  Ones(int64_t size, int64_t bad) : elements_(size, 0x3F80) {
    if (bad >= 0) elements_[bad] = 0x7FC0;
  }

  int64_t num_elements() const override { return std::ssize(elements_); }
  absl::Status CopyTo(uint16_t* elements, int, absl::Time) override {
    std::copy(elements_.begin(), elements_.end(), elements);
    HostFaults().hangs = hangs_after;
    return absl::OkStatus();
  }

  bool hangs_after = false;  // the GPU, from the end of the copy on

 private:
  std::vector<uint16_t> elements_;
};

}  // namespace

TEST_CASE("weights that are taken from another process are refused where one is not finite") {
  const CudaStepOptions options{.devices = {0},
                                .num_pages = 40,
                                .sequences_max = 2,
                                .prefill_tokens_max = 64,
                                .context_tokens_max = 256,
                                .decode_buckets = {1, 2},
                                .num_token_ids = 1024};
  const std::unique_ptr<StepDevice> device = OpenCudaStepDevice(FourHeads(), options).value();
  const int64_t size = BufferOffsets(ParameterLayout(FourHeads())).back();
  Ones good(size, -1), bad(size, 5);
  CHECK(device->TakeWeights(good).ok());
  const absl::Status status = device->TakeWeights(bad);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(std::string(status.message()) == "tensor model.embed_tokens.weight has values that are not finite");
}

TEST_CASE("a GPU that does not end the check of new weights in time is lost") {
  const CudaStepOptions options{.devices = {0},
                                .num_pages = 40,
                                .sequences_max = 2,
                                .prefill_tokens_max = 64,
                                .context_tokens_max = 256,
                                .decode_buckets = {1, 2},
                                .num_token_ids = 1024,
                                .step_timeout = absl::Milliseconds(100)};
  const std::unique_ptr<StepDevice> device = OpenCudaStepDevice(FourHeads(), options).value();
  Ones good(BufferOffsets(ParameterLayout(FourHeads())).back(), -1);
  REQUIRE(device->TakeWeights(good).ok());
  good.hangs_after = true;
  const absl::Status status = device->TakeWeights(good);
  HostFaults().hangs = false;
  CHECK(absl::IsDeadlineExceeded(status));
  CHECK(device->lost() == status);
}

TEST_CASE("greedy tokens of two and four GPUs are one GPU's until two logits are nearly equal") {
  const GenerationJob job = GroupJob(FourHeads(), 3, 1, 0, 24);
  const GroupSamples one = RunGroupJob(FourHeads(), GroupOptions({0}), job);
  for (const std::vector<int>& devices : std::vector<std::vector<int>>{{0, 1}, {3, 1}, {0, 1, 2, 3}}) {
    const GreedyComparison found = CompareGreedy(one, RunGroupJob(FourHeads(), GroupOptions(devices), job));
    std::printf(
        "%zu GPUs: %d of %d greedy tokens before answers part, %d answers part, log-probs within %.4f\n",
        devices.size(), found.num_equal, found.num_tokens, found.num_parted, found.log_prob_difference_max);
    CHECK(found.num_tokens == 3 * 24);
    CHECK(found.num_equal > found.num_tokens / 2);
    CHECK(found.log_prob_difference_max <= 0.01);
  }
}

TEST_CASE(
    "greedy tokens in float32 are the CPU's, of one, two and four GPUs, also where prompts share pages") {
  const GenerationJob job = GroupJob(FourHeads(), 3, 2, 0, 24);
  EngineOptions cpu = GroupOptions({0});
  cpu.cuda.reset();
  const GroupSamples expected = RunGroupJob(FourHeads(), cpu, job);
  for (const std::vector<int>& devices : std::vector<std::vector<int>>{{0}, {0, 1}, {0, 1, 2, 3}}) {
    INFO(devices.size() << " GPUs");
    EngineOptions options = GroupOptions(devices);
    options.cuda->dtype = DeviceDtype::kFloat32;
    const GreedyComparison found = CompareGreedy(expected, RunGroupJob(FourHeads(), options, job));
    CHECK(found.num_tokens == 6 * 24);
    CHECK(found.num_equal == found.num_tokens);
    CHECK(found.log_prob_difference_max <= 1e-4);
  }
}

TEST_CASE(
    "top tokens in float32 are the CPU's, of one GPU and of two, and samples beside them do not change") {
  GenerationJob job = GroupJob(FourHeads(), 2, 2, 0, 12);
  EngineOptions cpu = GroupOptions({0});
  cpu.cuda.reset();
  job.num_top_tokens = 7;
  const GroupSamples expected = RunGroupJob(FourHeads(), cpu, job);
  for (const std::vector<int>& devices : std::vector<std::vector<int>>{{0}, {0, 1}}) {
    INFO(devices.size() << " GPUs");
    EngineOptions options = GroupOptions(devices);
    options.cuda->dtype = DeviceDtype::kFloat32;
    const GroupSamples found = RunGroupJob(FourHeads(), options, job);
    for (const auto& [place, sample] : found) {
      REQUIRE(sample.top_tokens.size() == sample.answer_token_ids.size());
      for (size_t i = 0; i < sample.top_tokens.size(); ++i) {
        const std::vector<TokenLogProb>&top = sample.top_tokens[i], &other = expected.at(place).top_tokens[i];
        REQUIRE(top.size() == 7);
        for (size_t rank = 0; rank < 7; ++rank) {
          CHECK(top[rank].token_id == other[rank].token_id);
          CHECK(top[rank].log_prob == Approx(other[rank].log_prob).margin(1e-4));
        }
      }
    }
    job.num_top_tokens = 0;
    CHECK(SameBits(found, RunGroupJob(FourHeads(), options, job)));
    job.num_top_tokens = 7;
  }
}

TEST_CASE("a sample of a group has its bits alone, among others and in chunks") {
  const GenerationJob job = GroupJob(FourHeads(), 3, 2, 1, 12);
  const GroupSamples together = RunGroupJob(FourHeads(), GroupOptions({0, 1}), job);
  REQUIRE(together.size() == 6);
  EngineOptions alone = GroupOptions({0, 1});
  alone.num_slots = 1;
  CHECK(SameBits(together, RunGroupJob(FourHeads(), alone, job)));
  EngineOptions chunks = GroupOptions({2, 3});
  chunks.cuda->prefill_tokens_max = 17;
  CHECK(SameBits(together, RunGroupJob(FourHeads(), chunks, job)));
}

TEST_CASE(
    "graphs, direct launches and another run of a group give the same tokens and log-probs to the bit") {
  const GenerationJob job = GroupJob(FourHeads(), 2, 2, 1, 12);
  const GroupSamples graphs = RunGroupJob(FourHeads(), GroupOptions({0, 1}), job);
  EngineOptions direct = GroupOptions({0, 1});
  direct.cuda->decode_buckets = {1};  // larger steps have none
  CHECK(SameBits(graphs, RunGroupJob(FourHeads(), direct, job)));
  CHECK(SameBits(graphs, RunGroupJob(FourHeads(), GroupOptions({0, 1}), job)));
}

TEST_CASE("a GPU in float32 refuses weights in a GPU's memory, which are bfloat16") {
  struct Halves final : WeightSource {
    int64_t num_elements() const override { return 0; }
    absl::Status CopyTo(uint16_t*, int, absl::Time) override { return absl::OkStatus(); }
  } source;
  const CudaStepOptions options{.dtype = DeviceDtype::kFloat32,
                                .num_pages = 40,
                                .sequences_max = 2,
                                .prefill_tokens_max = 64,
                                .context_tokens_max = 256,
                                .decode_buckets = {1, 2}};
  const std::unique_ptr<StepDevice> device = OpenCudaStepDevice(FourHeads(), options).value();
  const absl::Status status = device->TakeWeights(source);
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("float32: publish a file"));
}

TEST_CASE("all members capture the same graphs and have the same tokens") {
  const CudaStepOptions options{.devices = {2, 0},
                                .num_pages = 40,
                                .sequences_max = 2,
                                .prefill_tokens_max = 64,
                                .context_tokens_max = 256,
                                .decode_buckets = {1, 2},
                                .num_token_ids = 1024};
  CudaStepMembers members = OpenCudaStepMembers(FourHeads(), options).value();
  const std::vector<CudaStepDevice*> seen = {members.devices[0].get(), members.devices[1].get()};
  std::vector<StepDeviceGroup::Member> named;
  for (auto& device : members.devices) named.push_back({"cuda", std::move(device)});
  StepDeviceGroup group(std::move(named), members.abort, options.step_timeout);
  const Parameters parameters = DeviceParameters(FourHeads(), 3);
  REQUIRE(group.SetParameters(parameters).ok());
  const std::unique_ptr<paged::PagedBatch> batch = paged::PagedBatch::Create({.num_pages = 40,
                                                                              .sequences_max = 2,
                                                                              .context_tokens_max = 256,
                                                                              .prefill_tokens_max = 64,
                                                                              .decode_buckets = {1, 2},
                                                                              .num_token_ids = 1024},
                                                                             0)
                                                       .value();
  REQUIRE(
      batch->Submit({.id = 1, .prompt_token_ids = {5, 6, 7}, .seeds = {1, 2}, .answer_tokens_max = 12}).ok());
  while (!batch->empty()) {
    REQUIRE(group.Launch(batch->Plan()).ok());
    batch->Complete(group.AwaitOldest().value());
    CHECK(std::equal(seen[0]->last_tokens(), seen[0]->last_tokens() + 2, seen[1]->last_tokens()));
  }
  for (const CudaStepDevice* const member : seen) CHECK(member->num_graphs() == 1);
}

TEST_CASE("a GPU that fails in the middle of a step fails the job with its name, and nobody waits for it") {
  // In a prompt, which is launched, and in a graph.
  for (const auto& [gather, said] :
       {std::pair{1, "cuda:1: ncclAllGather"}, {21, "cuda:1: Launching the graph"}}) {
    absl::StatusOr<std::unique_ptr<Batch>> batch = MakeBatch(FourHeads(), GroupOptions({0, 1}));
    REQUIRE(batch.ok());
    REQUIRE((*batch)->SetWeights(RandomWeights(FourHeads(), 1), paged::EntriesOnChange::kRequireNone).ok());
    HostFaults().gather_that_fails = gather;
    (*batch)->Add(GroupJob(FourHeads(), 1, 1, 0, 24));
    std::vector<FailedJob> failed;
    for (int step = 0; failed.empty(); ++step) {
      REQUIRE(step < 100);
      failed = (*batch)->Step().failed;
    }
    HostFaults().gather_that_fails = -1;
    INFO(failed[0].status.message());
    CHECK(absl::IsUnavailable(failed[0].status));
    CHECK_THAT(std::string(failed[0].status.message()),
               Catch::Contains(said) && Catch::Contains("start it again"));
  }
}

TEST_CASE("groups that cannot be are refused with the way out") {
  CHECK(StatusOf({0, 1}).ok());
  const absl::Status three = StatusOf({0, 1, 2}), twice = StatusOf({1, 1}), absent = StatusOf({0, 7});
  CHECK(absl::IsInvalidArgument(three));
  CHECK_THAT(std::string(three.message()), Catch::Contains("give 1, 2, 4 GPUs"));
  CHECK(absl::IsInvalidArgument(twice));
  CHECK_THAT(std::string(twice.message()), Catch::Contains("GPU 1 is named twice"));
  CHECK(absl::IsFailedPrecondition(absent));
  CHECK_THAT(std::string(absent.message()), Catch::Contains("there is no GPU 7, for there are 4"));
  HostFaults().are_apart = true;
  const absl::Status apart = StatusOf({0, 1});
  HostFaults().are_apart = false;
  CHECK(absl::IsFailedPrecondition(apart));
  CHECK_THAT(std::string(apart.message()), Catch::Contains("GPU 0 cannot reach the memory of GPU 1"));
}

}  // namespace warpsmith::device
