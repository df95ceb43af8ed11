// Weights that one GPU sends to others. Also built against GPUs made of the host, with NCCL among threads.
#include "core/model/received_weights_cuda.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/distributed/nccl_broadcast_cuda.h"
#include "core/model/broadcast_weights_cuda.h"
#include "core/model/device_weights_cuda.h"
#include "core/model/parameters.h"
#include "tests/gpu/small_device_model.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr absl::Duration kShort = absl::Seconds(3);
// Beyond a deadline: for aborts to end.
constexpr absl::Duration kBeyond = absl::Seconds(10);

using Received = absl::StatusOr<std::unique_ptr<ReceivedWeights>>;

int NumDevices() {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  return count;
}

bool HasTwoDevices() {
  if (NumDevices() >= 2) return true;
  WARN("needs two devices");
  return false;
}

Parameters Random(uint64_t seed) {
  Parameters parameters{ParameterLayout(SmallDeviceModel())};
  parameters.InitRandom(seed);
  return parameters.Clone(at::kBFloat16);
}

// On GPU `device`, of `seed`.
DeviceWeights WeightsOn(int device, const Parameters& parameters, TensorShard shard = {}) {
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
  DeviceWeights weights = DeviceWeights::Allocate(SmallDeviceModel(), device, shard).value();
  REQUIRE(weights.SetParameters(parameters).ok());
  return weights;
}

std::vector<uint16_t> Read(const DeviceWeights& weights) {
  std::vector<uint16_t> bits(weights.size());
  REQUIRE(cudaMemcpy(bits.data(), weights.base(), bits.size() * sizeof(uint16_t), cudaMemcpyDeviceToHost) ==
          cudaSuccess);
  return bits;
}

// What arrived for shard `shard` of `device`, after it was copied to where weights are used.
std::vector<uint16_t> Copied(ReceivedWeights& received, int device, TensorShard shard = {}) {
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
  const DeviceWeights used = DeviceWeights::Allocate(SmallDeviceModel(), device, shard).value();
  REQUIRE(received.num_elements() == used.size());
  const absl::Status status =
      received.CopyTo(reinterpret_cast<uint16_t*>(used.base()), device, absl::Now() + kPatience);
  INFO(status);
  REQUIRE(status.ok());
  return Read(used);
}

// The sender on GPU 0, and receivers on the others.
struct Publication {
  explicit Publication(uint64_t seed) : parameters(Random(seed)), sent(WeightsOn(0, parameters)) {}

  // A receiver on `devices` that changes its offer by `change`; what it got is in `received`.
  PrepareReceiver Receiver(
      std::vector<int> devices, const std::function<void(OfferedBroadcast&)>& change = [](auto&) {}) {
    const size_t index = received.size();
    received.push_back(absl::UnknownError("not called"));
    return [this, index, devices = std::move(devices), change](OfferedBroadcast offer, absl::Time deadline) {
      change(offer);
      Received& own = Slot(index);
      own = ReceivedWeights::Receive(SmallDeviceModel(), std::move(offer), devices, deadline);
      return own.status();
    };
  }
  BroadcastOutcome Send(const std::vector<PrepareReceiver>& receivers, absl::Duration patience = kPatience) {
    return BroadcastWeights(SmallDeviceModel(), reinterpret_cast<std::byte*>(sent.base()), 0, 7, receivers,
                            absl::Now() + patience);
  }
  Received& Slot(size_t index) { return received[index]; }

  const Parameters parameters;
  const DeviceWeights sent;
  std::vector<Received> received;
};

void CheckOk(const BroadcastOutcome& outcome) {
  INFO(outcome.sent);
  REQUIRE(outcome.sent.ok());
  CHECK_FALSE(outcome.may_still_read);
  for (const absl::Status& status : outcome.receivers) {
    INFO(status);
    REQUIRE(status.ok());
  }
}

}  // namespace

TEST_CASE("weights that are broadcast arrive at every receiver, publication after publication") {
  if (!HasTwoDevices()) return;
  for (const uint64_t seed : {1, 2}) {
    Publication publication(seed);
    std::vector<PrepareReceiver> receivers;
    for (int device = 1; device < std::min(NumDevices(), 4); ++device)
      receivers.push_back(publication.Receiver({device}));
    CheckOk(publication.Send(receivers));
    const std::vector<uint16_t> sent = Read(publication.sent);
    for (int i = 0; i < std::ssize(receivers); ++i) CHECK(Copied(**publication.received[i], i + 1) == sent);
  }
}

TEST_CASE("GPUs that share a model get the shards that they would have read from a file") {
  if (!HasTwoDevices()) return;
  Publication publication(3);
  CheckOk(publication.Send({publication.Receiver({1, 0})}));
  for (int index = 0; index < 2; ++index) {
    const int device = 1 - index;
    const TensorShard shard{index, 2};
    CHECK(Copied(**publication.received[0], device, shard) ==
          Read(WeightsOn(device, publication.parameters, shard)));
  }
}

TEST_CASE("weights that are not what the manifest says are refused where they arrived") {
  if (!HasTwoDevices()) return;
  Publication publication(4);
  const BroadcastOutcome outcome = publication.Send({publication.Receiver(
      {1}, [](OfferedBroadcast& offer) { offer.memory.buffers[1].checksum = std::string(32, '0'); })});
  const absl::Status& status = outcome.receivers[0];
  INFO(status);
  CHECK(absl::IsDataLoss(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("after the broadcast") && Catch::Contains("publish it again"));
}

TEST_CASE("a receiver that never comes costs the others the publication, at its deadline") {
  if (!HasTwoDevices()) return;
  Publication publication(5);
  const PrepareReceiver dead = [](const OfferedBroadcast&, absl::Time deadline) {
    absl::SleepFor(deadline - absl::Now());
    return absl::DeadlineExceededError("no answer");
  };
  const absl::Time began = absl::Now();
  const BroadcastOutcome outcome = publication.Send({publication.Receiver({1}), dead}, kShort);
  CHECK(absl::Now() - began < kShort + kBeyond);
  INFO(outcome.sent << "\n" << outcome.receivers[0]);
  CHECK_FALSE(outcome.sent.ok());
  CHECK_FALSE(outcome.receivers[0].ok());
  CHECK_FALSE(outcome.may_still_read);
}

TEST_CASE("a sender that dies midway is waited for until the deadline, and the next one is heard") {
  if (!HasTwoDevices()) return;
  Publication publication(8);
  const ParameterLayout layout(SmallDeviceModel());
  OfferedBroadcast offer{
      .memory = {.socket_path = {},
                 .version = 7,
                 .layout_sha256 = layout.Sha256(),
                 .buffers = DescribeBuffers(layout, std::vector<MemoryChecksum>(layout.num_buffers()))},
      .place = {.id = DrawBroadcastId().value(), .num_ranks = 2, .rank = 1}};
  const absl::Time deadline = absl::Now() + kShort;
  std::thread sender([&] {
    auto broadcast = NcclBroadcast::Join({offer.place.id, 2, 0}, 0, deadline);
    if (broadcast.ok())
      (void)(*broadcast)->Bring(publication.sent.base(), offer.memory.buffers[0].length_bytes);
    absl::SleepFor(kShort + kShort);
  });
  const absl::Status status = ReceivedWeights::Receive(SmallDeviceModel(), offer, {1}, deadline).status();
  INFO(status);
  CHECK(absl::IsDeadlineExceeded(status));
  CHECK(absl::Now() < deadline + kBeyond);
  sender.join();
  CheckOk(publication.Send({publication.Receiver({1})}));
}

TEST_CASE("a sender that never comes is waited for until the deadline") {
  if (!HasTwoDevices()) return;
  Publication publication(6);
  OfferedBroadcast offer;
  const PrepareReceiver keep = [&](OfferedBroadcast told, absl::Time) {
    offer = std::move(told);
    return absl::UnavailableError("gone");
  };
  const BroadcastOutcome outcome = publication.Send({keep}, kShort);
  INFO(outcome.sent);
  CHECK(absl::IsAborted(outcome.sent));
  const absl::Time began = absl::Now();
  const absl::Status status =
      ReceivedWeights::Receive(SmallDeviceModel(), offer, {1}, began + kShort).status();
  INFO(status);
  CHECK_FALSE(status.ok());
  CHECK(absl::Now() - began < kShort + kBeyond);
}

TEST_CASE("an offer that does not fit the model, or names no place, is refused before anybody is met") {
  Publication publication(7);
  const std::vector<std::pair<std::function<void(OfferedBroadcast&)>, absl::StatusCode>> faults = {
      {[](auto& offer) { offer.memory.layout_sha256 = "abc"; }, absl::StatusCode::kFailedPrecondition},
      {[](auto& offer) { offer.memory.buffers.pop_back(); }, absl::StatusCode::kInvalidArgument},
      {[](auto& offer) { offer.memory.buffers[0].length_bytes *= 2; }, absl::StatusCode::kInvalidArgument},
      {[](auto& offer) { offer.place.rank = 0; }, absl::StatusCode::kInvalidArgument},
      {[](auto& offer) { offer.place.rank = offer.place.num_ranks; }, absl::StatusCode::kInvalidArgument},
      {[](auto& offer) { offer.place.id.pop_back(); }, absl::StatusCode::kInvalidArgument}};
  for (const auto& [fault, code] : faults) {
    const absl::Time began = absl::Now();
    const BroadcastOutcome outcome = publication.Send({publication.Receiver({0}, fault)});
    INFO(outcome.receivers[0]);
    CHECK(outcome.receivers[0].code() == code);
    CHECK(absl::IsAborted(outcome.sent));
    CHECK(absl::Now() - began < kBeyond);
  }
  CHECK(absl::IsInvalidArgument(publication.Send({publication.Receiver({0, 1, 2})}).receivers[0]));
}

}  // namespace warpsmith
