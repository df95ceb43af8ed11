// Weights that are received by GPUs made of the host, which fail or hang.
#include "core/model/received_weights_cuda.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/model/broadcast_weights_cuda.h"
#include "core/model/device_weights_cuda.h"
#include "tests/gpu/small_device_model.h"
#include "tests/support/catch.h"
#include "tests/support/host_gpu_faults.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

struct Reception {
  DeviceWeights sent;
  BroadcastOutcome outcome;
  std::unique_ptr<ReceivedWeights> weights;
};

// GPU 0 sends to GPU 1; `before` is called once the receiver is asked.
Reception Receive(const std::function<void()>& before) {
  Reception reception{.sent = DeviceWeights::Allocate(SmallDeviceModel(), 0).value()};
  const PrepareReceiver receiver = [&](OfferedBroadcast offer, absl::Time deadline) -> absl::Status {
    before();
    auto received = ReceivedWeights::Receive(SmallDeviceModel(), std::move(offer), {1}, deadline);
    if (received.ok()) reception.weights = *std::move(received);
    return received.status();
  };
  reception.outcome =
      BroadcastWeights(SmallDeviceModel(), reinterpret_cast<std::byte*>(reception.sent.base()), 0, 7,
                       {receiver}, absl::Now() + kPatience);
  return reception;
}

}  // namespace

TEST_CASE("a fault between two collectives ends the broadcast, and memory that may be written to is kept") {
  const Reception whole = Receive([] {
    HostFaults().checksum_that_fails = 1;  // of the receiver's second buffer: the sender has made its own
  });
  const absl::Status& status = whole.outcome.receivers[0];
  INFO(status);
  CHECK(absl::IsInternal(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("checksums of new weights"));

  std::atomic<int64_t> num_freed = 0;
  const Reception hung = Receive([&] {
    HostFaults().checksum_that_fails = 1;
    HostFaults().hangs_after_checksum = true;
    num_freed = HostFaults().num_freed.load();
  });
  CHECK(HostFaults().hangs);
  CHECK(HostFaults().num_freed == num_freed);
  HostFaults().hangs = HostFaults().hangs_after_checksum = false;
  CHECK_FALSE(hung.outcome.receivers[0].ok());
}

TEST_CASE("received weights go while their GPU hangs, without a wait for it") {
  Reception reception = Receive([] {});
  REQUIRE(reception.weights != nullptr);
  const absl::Time began = absl::Now();
  HostFaults().hangs = true;
  reception.weights.reset();
  HostFaults().hangs = false;
  CHECK(absl::Now() - began < absl::Seconds(30));
}

}  // namespace warpsmith
