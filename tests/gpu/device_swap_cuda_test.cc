// New weights and sleep on a GPU: what the device did before is done the same after.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/counter_random.h"
#include "core/model/broadcast_weights_cuda.h"
#include "core/model/parameters.h"
#include "core/model/shared_weights_cuda.h"
#include "rollout_workers/batch.h"
#include "rollout_workers/weight_transport.h"
#include "tests/gpu/free_memory.h"
#include "tests/gpu/small_device_model.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

using Samples = std::map<int, FinishedSample>;  // by sample

EngineOptions Options(const std::vector<int>& devices = {0}) {
  EngineOptions options{.num_slots = 8, .context_tokens_max = 256};
  options.cuda = CudaPlacement{.devices = devices, .num_pages = 8 * 16 + 1, .prefill_tokens_max = 64};
  return options;
}

// Eight answers of 60 tokens to a prompt of 50.
GenerationJob Job() {
  GenerationGroup group;
  for (int i = 0; i < 50; ++i)
    group.prompt_token_ids.push_back(static_cast<int32_t>(UniformWord(1, i) % 1024));
  for (int s = 0; s < 8; ++s) group.samples.push_back({.sample_index = s, .seed = UniformWord(2, s)});
  return {.id = 1, .groups = {group}, .sampling = {.answer_tokens_max = 60}};
}

struct Rig {
  explicit Rig(const std::vector<int>& devices = {0})
      : batch(MakeBatch(SmallDeviceModel(), Options(devices)).value()) {}

  std::unique_ptr<Batch> batch;
  Samples samples;

  void Set(const LoadedWeights& weights,
           paged::EntriesOnChange entries = paged::EntriesOnChange::kRequireNone) {
    Take(batch->Settle());
    const absl::Status status = batch->SetWeights(weights, entries);
    INFO(status.message());
    REQUIRE(status.ok());
  }
  void Take(Batch::Outcome outcome) {
    for (const FailedJob& failed : outcome.failed) FAIL(failed.status.ToString());
    for (FinishedSample& sample : outcome.finished) samples[sample.sample_index] = std::move(sample);
  }
  // All of the job's samples, of which `midway` happens after 20 steps.
  Samples Run(const std::function<void()>& midway = [] {}) {
    samples.clear();
    batch->Add(Job());
    for (int i = 0; !batch->empty(); ++i) {
      REQUIRE(i < 10'000);
      if (i == 20) midway();
      Take(batch->Step());
    }
    REQUIRE(samples.size() == 8);
    return samples;
  }
};

bool AreSame(const Samples& a, const Samples& b) {
  return std::all_of(a.begin(), a.end(), [&](const auto& entry) {
    return entry.second.answer_token_ids == b.at(entry.first).answer_token_ids &&
           entry.second.log_probs == b.at(entry.first).log_probs;
  });
}

LoadedWeights Weights(uint64_t seed, uint64_t version = 0) {
  LoadedWeights weights = RandomWeights(SmallDeviceModel(), seed);
  weights.policy_version = version;
  return weights;
}

void Write(uint64_t seed, SharedWeights& shared) {
  Parameters parameters{ParameterLayout(SmallDeviceModel())};
  parameters.InitRandom(seed);
  parameters = parameters.Clone(at::kBFloat16);
  for (int i = 0; i < parameters.num_buffers(); ++i) {
    const std::string_view bytes = parameters.BufferBytes(i);
    REQUIRE(cudaMemcpy(shared.base() + shared.buffer_offset(i), bytes.data(), bytes.size(),
                       cudaMemcpyHostToDevice) == cudaSuccess);
  }
}

// As a manifest says it.
OfferedWeights ToOffered(const OfferedMemory& memory, const std::string& transport) {
  OfferedWeights offered{.policy_version = memory.version,
                         .transport = transport,
                         .path = memory.socket_path,
                         .dtype = "bfloat16",
                         .layout_sha256 = memory.layout_sha256};
  for (const MemoryBuffer& buffer : memory.buffers) {
    offered.buffers.push_back({.name = buffer.name,
                               .offset_bytes = buffer.offset_bytes,
                               .length_bytes = buffer.length_bytes,
                               .checksum = buffer.checksum});
  }
  return offered;
}

// What a trainer on this GPU would offer: the weights of `seed`.
OfferedWeights OfferFrom(SharedWeights& shared, uint64_t seed, const std::filesystem::path& socket) {
  Write(seed, shared);
  const OfferedMemory memory = shared.Offer(7, socket, absl::Now() + absl::Seconds(30)).value();
  return ToOffered(memory, "cuda_memory");
}

}  // namespace

TEST_CASE("weights that come as memory of a GPU decode as those that come from the host") {
  const TemporaryDirectory directory;
  Rig rig;
  rig.Set(Weights(1));
  const Samples wanted = rig.Run();
  rig.Set(Weights(2));
  CHECK_FALSE(AreSame(wanted, rig.Run()));
  const auto shared = SharedWeights::Create(SmallDeviceModel(), 0).value();
  const OfferedWeights offered = OfferFrom(*shared, 1, directory.path() / "weights");
  const auto transport = MakeTransport("cuda_memory", SmallDeviceModel(), Options().cuda).value();
  const auto loaded = transport->Prepare(offered, absl::Now() + absl::Seconds(30));
  INFO(loaded.status().message());
  REQUIRE(loaded.ok());
  rig.Set(*loaded);
  CHECK(AreSame(wanted, rig.Run()));
}

TEST_CASE("weights that are broadcast decode as those that come from the host, on one GPU and on two") {
  int num_devices = 0;
  REQUIRE(cudaGetDeviceCount(&num_devices) == cudaSuccess);
  if (num_devices < 2) {
    WARN("needs two devices");
    return;
  }
  const std::vector<int> devices = GENERATE(std::vector<int>{0}, std::vector<int>{0, 1});
  Rig rig(devices);
  rig.Set(Weights(1));
  const Samples wanted = rig.Run();
  rig.Set(Weights(2));
  const auto shared = SharedWeights::Create(SmallDeviceModel(), 1).value();
  Write(1, *shared);
  const auto transport = MakeTransport("nccl", SmallDeviceModel(), Options(devices).cuda).value();
  absl::StatusOr<LoadedWeights> loaded;
  const PrepareReceiver receiver = [&](const OfferedBroadcast& offer, absl::Time deadline) {
    OfferedWeights offered = ToOffered(offer.memory, "nccl");
    offered.place = offer.place;
    loaded = transport->Prepare(offered, deadline);
    return loaded.status();
  };
  const BroadcastOutcome outcome =
      BroadcastWeights(SmallDeviceModel(), reinterpret_cast<std::byte*>(shared->base()), 1, 7, {receiver},
                       absl::Now() + absl::Seconds(60));
  INFO(outcome.sent << "\n" << outcome.receivers[0]);
  REQUIRE(outcome.sent.ok());
  REQUIRE(outcome.receivers[0].ok());
  rig.Set(*loaded);
  CHECK(AreSame(wanted, rig.Run()));
}

TEST_CASE("samples under way go on as if nothing had been when equal weights are swapped in") {
  const paged::EntriesOnChange entries =
      GENERATE(paged::EntriesOnChange::kKeep, paged::EntriesOnChange::kRecompute);
  Rig rig;
  rig.Set(Weights(1));
  const Samples wanted = rig.Run();
  const Samples swapped = rig.Run([&] { rig.Set(Weights(1, 1), entries); });
  CHECK(AreSame(wanted, swapped));
  for (const auto& [index, sample] : swapped) {
    REQUIRE_FALSE(sample.token_policy_versions.empty());
    CHECK(sample.token_policy_versions.front() == 0);
    CHECK(sample.token_policy_versions.back() == 1);
  }
}

TEST_CASE("samples under way change from the token on that other weights draw") {
  Rig rig;
  rig.Set(Weights(1));
  const Samples alone = rig.Run();
  rig.Set(Weights(1));
  const Samples mixed = rig.Run([&] { rig.Set(Weights(2, 1), paged::EntriesOnChange::kKeep); });
  for (const auto& [index, sample] : mixed) {
    const std::vector<uint64_t>& versions = sample.token_policy_versions;
    const auto first_new = std::find(versions.begin(), versions.end(), 1) - versions.begin();
    const std::vector<float>& before = alone.at(index).log_probs;
    REQUIRE(first_new < std::ssize(sample.log_probs));
    CHECK(std::equal(sample.log_probs.begin(), sample.log_probs.begin() + first_new, before.begin()));
    CHECK(sample.log_probs[first_new] != before[first_new]);
  }
}

TEST_CASE("a batch that sleeps gives memory back and loses no sample") {
  const SleepDepth depth = GENERATE(SleepDepth::kPages, SleepDepth::kPagesAndWeights);
  Rig rig;
  rig.Set(Weights(1));
  const Samples wanted = rig.Run();
  const auto sleep = [&] {
    REQUIRE(rig.batch->Sleep(depth).ok());
    REQUIRE(rig.batch->Sleep(depth).ok());
    CHECK_FALSE(rig.batch->can_step());
  };
  const Samples interrupted = rig.Run([&] {
    rig.Take(rig.batch->Settle());
    const std::optional<int64_t> freed = BytesFreedBy(sleep, [&] { REQUIRE(rig.batch->Wake().ok()); });
    CHECK(freed.value_or(0) > 0);
    if (depth == SleepDepth::kPagesAndWeights) {
      CHECK_FALSE(rig.batch->can_step());
      rig.Set(Weights(1, 1), paged::EntriesOnChange::kRecompute);
    }
    CHECK(rig.batch->can_step());
  });
  CHECK(AreSame(wanted, interrupted));
}

}  // namespace warpsmith
