// Workers that take broadcast weights, on GPUs made of the host, with NCCL among threads: what a publication that fails
// leaves, and who joins.
#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "core/model/broadcast_weights_cuda.h"
#include "core/model/device_weights_cuda.h"
#include "core/model/parameters.h"
#include "rollout_workers/weight_transport.h"
#include "rollout_workers/weights_switch.h"
#include "tests/support/catch.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/offered_broadcast.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr absl::Duration kShort = absl::Seconds(2);
constexpr int kSenderGpu = 3;

// An engine whose steps are the fake of a device's, and whose weights come to GPU 0.
class SwitchOnGpu {
 public:
  SwitchOnGpu() {
    LoadedWeights first;
    first.random_seed = 1;
    REQUIRE(engine.SwapWeights(first, absl::Now() + kPatience).ok());
  }

  // What a worker's PrepareWeights does.
  PrepareReceiver Receiver() {
    return [this](const OfferedBroadcast& offer, absl::Time deadline) {
      ++num_offers;
      return weights.Prepare(ToOffered(offer), deadline);
    };
  }
  absl::Status Commit(uint64_t version) { return weights.Commit(version, absl::Now() + kPatience); }

  const std::shared_ptr<FakeStepDeviceState> state = std::make_shared<FakeStepDeviceState>();
  Engine engine{Tiny(),
                Options(),
                {.on_sample = [](const FinishedSample&) {}, .on_failure = [](const FailedJob&) {}},
                MakeFakeDeviceBatch(Tiny(), Options(), state)};
  WeightsSwitch weights{Tiny(), &engine};
  int num_offers = 0;

 private:
  static EngineOptions Options() {
    EngineOptions options{.num_slots = 4, .context_tokens_max = 512};
    options.cuda = CudaPlacement{};
    return options;
  }
};

BroadcastOutcome Send(uint64_t version, const std::vector<PrepareReceiver>& receivers,
                      absl::Duration patience = kPatience) {
  REQUIRE(cudaSetDevice(kSenderGpu) == cudaSuccess);
  DeviceWeights sent = DeviceWeights::Allocate(Tiny(), kSenderGpu).value();
  Parameters parameters{ParameterLayout(Tiny())};
  parameters.InitRandom(version);
  REQUIRE(sent.SetParameters(parameters).ok());
  return BroadcastWeights(Tiny(), reinterpret_cast<std::byte*>(sent.base()), kSenderGpu, version, receivers,
                          absl::Now() + patience);
}

bool AllOk(const BroadcastOutcome& outcome) {
  bool all = outcome.sent.ok();
  for (const absl::Status& status : outcome.receivers) all = all && status.ok();
  return all;
}

}  // namespace

TEST_CASE("a broadcast comes to all workers, each of which uses it once it is committed") {
  SwitchOnGpu one, other;
  const uint64_t before = one.state->weights;
  REQUIRE(AllOk(Send(1, {one.Receiver(), other.Receiver()})));
  CHECK(one.state->weights == before);
  CHECK(one.engine.status().policy_version == 0);
  REQUIRE(one.Commit(1).ok());
  REQUIRE(other.Commit(1).ok());
  CHECK(one.engine.status().policy_version == 1);
  CHECK(one.state->weights != before);
  CHECK(one.state->weights == other.state->weights);
}

TEST_CASE("a worker that is lost costs the others one publication, and they keep what they had") {
  SwitchOnGpu one, other;
  REQUIRE(AllOk(Send(1, {one.Receiver(), other.Receiver()})));
  REQUIRE(one.Commit(1).ok());
  const uint64_t before = one.state->weights;
  const PrepareReceiver lost = [](const OfferedBroadcast&, absl::Time deadline) {
    absl::SleepFor(deadline - absl::Now());
    return absl::UnavailableError("no connection");
  };
  const absl::Time began = absl::Now();
  const BroadcastOutcome outcome = Send(2, {one.Receiver(), lost}, kShort);
  CHECK(absl::Now() - began < kShort + absl::Seconds(10));
  INFO(outcome.receivers[0]);
  CHECK_FALSE(outcome.sent.ok());
  CHECK_FALSE(outcome.receivers[0].ok());
  CHECK(one.engine.status().loaded);
  CHECK(one.engine.status().policy_version == 1);
  CHECK(one.state->weights == before);
  CHECK(absl::IsFailedPrecondition(one.Commit(2)));
  REQUIRE(AllOk(Send(2, {one.Receiver()})));
  REQUIRE(one.Commit(2).ok());
  CHECK(one.state->weights != before);
}

TEST_CASE("a worker joins a broadcast of weights that it has, for the others wait for it") {
  SwitchOnGpu one, other;
  REQUIRE(AllOk(Send(1, {one.Receiver()})));
  REQUIRE(AllOk(Send(1, {one.Receiver(), other.Receiver()})));  // prepared, not committed
  REQUIRE(one.Commit(1).ok());
  const uint64_t before = one.state->weights;
  REQUIRE(AllOk(Send(1, {one.Receiver(), other.Receiver()})));  // in use
  REQUIRE(one.Commit(1).ok());
  REQUIRE(other.Commit(1).ok());
  CHECK(one.num_offers == 3);
  CHECK(one.state->weights == before);
  CHECK(other.state->weights == before);
}

TEST_CASE("a worker that sleeps refuses a broadcast, and has dropped what was prepared") {
  SwitchOnGpu one;
  REQUIRE(AllOk(Send(1, {one.Receiver()})));
  REQUIRE(one.weights.Sleep(SleepDepth::kPages, absl::Now() + kPatience).ok());
  const BroadcastOutcome outcome = Send(2, {one.Receiver()});
  CHECK(absl::IsFailedPrecondition(outcome.receivers[0]));
  CHECK_THAT(std::string(outcome.receivers[0].message()), Catch::Contains("wake it first"));
  REQUIRE(one.weights.Wake(absl::Now() + kPatience).ok());
  CHECK(absl::IsFailedPrecondition(one.Commit(1)));
  REQUIRE(AllOk(Send(2, {one.Receiver()})));
  REQUIRE(one.Commit(2).ok());
  CHECK(one.engine.status().policy_version == 2);
}

TEST_CASE("a worker whose publisher is gone waits for it no longer, and takes the next publication") {
  SwitchOnGpu one;
  OfferedWeights offered;
  const PrepareReceiver keep = [&](const OfferedBroadcast& offer, absl::Time) {
    offered = ToOffered(offer);
    return absl::UnavailableError("gone");
  };
  REQUIRE_FALSE(AllOk(Send(1, {keep})));
  const absl::Time gone = absl::Now() + absl::Milliseconds(50);
  offered.is_given_up = [gone] { return absl::Now() > gone; };
  const absl::Status status = one.weights.Prepare(offered, absl::Now() + kPatience);
  INFO(status);
  CHECK(absl::IsAborted(status));
  CHECK(absl::Now() < gone + absl::Seconds(10));
  REQUIRE(AllOk(Send(2, {one.Receiver()})));
  CHECK(one.Commit(2).ok());
}

}  // namespace warpsmith
