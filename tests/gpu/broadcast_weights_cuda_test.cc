// What receivers are told of a broadcast, and what ends it. Also built against GPUs made of the host.
#include "core/model/broadcast_weights_cuda.h"

#include <cuda_runtime_api.h>

#include <set>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/model/device_weights_cuda.h"
#include "tests/gpu/small_device_model.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

BroadcastOutcome Send(const std::vector<PrepareReceiver>& receivers) {
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  const DeviceWeights weights = DeviceWeights::Allocate(SmallDeviceModel(), 0).value();
  return BroadcastWeights(SmallDeviceModel(), reinterpret_cast<std::byte*>(weights.base()), 0, 7, receivers,
                          absl::Now() + absl::Seconds(60));
}

}  // namespace

TEST_CASE("receivers are told their ranks, and the first that refuses ends the broadcast") {
  absl::Mutex mutex;
  std::vector<OfferedBroadcast> offers;
  const PrepareReceiver refuse = [&](const OfferedBroadcast& offer, absl::Time) {
    absl::MutexLock lock(&mutex);
    offers.push_back(offer);
    return absl::InvalidArgumentError("not for me");
  };
  std::string former;
  for (int round = 0; round < 2; ++round) {
    offers.clear();
    const absl::Time began = absl::Now();
    const BroadcastOutcome outcome = Send({refuse, refuse, refuse});
    CHECK(absl::Now() - began < absl::Seconds(20));
    CHECK(absl::IsAborted(outcome.sent));
    CHECK_FALSE(outcome.may_still_read);
    for (const absl::Status& status : outcome.receivers) CHECK(absl::IsInvalidArgument(status));
    std::set<int> ranks;
    for (const OfferedBroadcast& offer : offers) {
      CHECK(CheckReceiverPlace(offer.place).ok());
      CHECK(CheckOfferedMemory(offer.memory, ParameterLayout(SmallDeviceModel())).ok());
      CHECK(offer.memory.version == 7);
      CHECK(offer.place.num_ranks == 4);
      CHECK(offer.place.id == offers[0].place.id);
      ranks.insert(offer.place.rank);
    }
    CHECK(ranks == std::set<int>{1, 2, 3});
    CHECK(offers[0].place.id != former);
    former = offers[0].place.id;
  }
}

TEST_CASE("a broadcast to nobody is refused, and tells how many there may be") {
  const BroadcastOutcome outcome = Send({});
  INFO(outcome.sent);
  CHECK(absl::IsInvalidArgument(outcome.sent));
  CHECK(outcome.receivers.empty());
}

}  // namespace warpsmith
