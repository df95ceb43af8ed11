#include "core/model/broadcast_weights_cuda.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/distributed/nccl_broadcast_cuda.h"
#include "core/model/buffer_checksums_cuda.h"
#include "core/model/cuda_status.h"
#include "core/model/staging_plan.h"

namespace warpsmith {
namespace {

constexpr int64_t kElementBytes = sizeof(uint16_t);

class Sending {
 public:
  Sending(const ModelConfig& config, std::byte* memory, int device, uint64_t version, absl::Time deadline)
      : layout_(config), memory_(memory), device_(device), version_(version), deadline_(deadline) {}

  BroadcastOutcome Run(const std::vector<PrepareReceiver>& receivers) {
    outcome_.receivers.assign(receivers.size(), absl::CancelledError("the offer was not made"));
    if (receivers.empty() || std::ssize(receivers) >= kBroadcastRanksMax) {
      outcome_.sent = absl::InvalidArgumentError(absl::StrCat(
          "a broadcast to ", receivers.size(), " receivers; give 1 to ", kBroadcastRanksMax - 1));
      return outcome_;
    }
    absl::StatusOr<OfferedBroadcast> offer = Offer();
    if (!offer.ok()) {
      outcome_.sent = offer.status();
      return outcome_;
    }
    offer->place.num_ranks = static_cast<int>(receivers.size()) + 1;
    std::vector<std::thread> threads;
    for (size_t i = 0; i < receivers.size(); ++i) {
      threads.emplace_back([&, i] { Tell(receivers[i], *offer, static_cast<int>(i)); });
    }
    outcome_.sent = Send(offer->place);
    for (std::thread& thread : threads) thread.join();
    return outcome_;
  }

 private:
  absl::StatusOr<OfferedBroadcast> Offer() {
    RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device_), "choosing a GPU"));
    const absl::StatusOr<std::vector<MemoryChecksum>> checksums =
        ChecksumBuffers(layout_, memory_, nullptr, deadline_);
    outcome_.may_still_read = MayStillRun(checksums.status());
    RETURN_IF_ERROR(checksums.status());
    OfferedBroadcast offer{.memory = {.socket_path = {},
                                      .version = version_,
                                      .layout_sha256 = layout_.Sha256(),
                                      .buffers = DescribeBuffers(layout_, *checksums)},
                           .place = {}};
    ASSIGN_OR_RETURN(offer.place.id, DrawBroadcastId());
    return offer;
  }

  void Tell(const PrepareReceiver& receiver, OfferedBroadcast offer, int index) {
    pthread_setname_np(pthread_self(), "ws-broadcast");
    offer.place.rank = index + 1;
    absl::Status& answer = outcome_.receivers[index];
    answer = receiver(offer, deadline_);
    if (!answer.ok()) is_refused_ = true;
  }

  absl::Status Send(const BroadcastPlace& place) {
    const absl::Time began = absl::Now();
    ASSIGN_OR_RETURN(broadcast_,
                     NcclBroadcast::Join(place, device_, deadline_, [this] { return is_refused_.load(); }));
    const absl::Time joined = absl::Now();
    const absl::Status status = SendBuffers();
    outcome_.may_still_read = !status.ok() && broadcast_->may_still_write();
    RETURN_IF_ERROR(status);
    const double gigabytes = static_cast<double>(BufferOffsets(layout_).back() * kElementBytes) * 1e-9;
    const double seconds = absl::ToDoubleSeconds(absl::Now() - joined);
    LogInfo(absl::StrFormat(
        "sent %.2f GB of weights of version %d from cuda:%d to %d receivers in %.3f s, %.0f GB/s, "
        "after %.3f s of meeting",
        gigabytes, version_, device_, place.num_ranks - 1, seconds, gigabytes / seconds,
        absl::ToDoubleSeconds(joined - began)));
    return absl::OkStatus();
  }

  // Buffer by buffer, as receivers take them.
  absl::Status SendBuffers() {
    const std::vector<int64_t> offsets = BufferOffsets(layout_);
    for (int i = 0; i < layout_.num_buffers(); ++i) {
      RETURN_IF_ERROR(broadcast_->Bring(memory_ + offsets[i] * kElementBytes,
                                        (offsets[i + 1] - offsets[i]) * kElementBytes));
    }
    return broadcast_->Await();
  }

  const ParameterLayout layout_;
  std::byte* const memory_;
  const int device_;
  const uint64_t version_;
  const absl::Time deadline_;
  std::atomic<bool> is_refused_ = false;
  std::unique_ptr<NcclBroadcast> broadcast_;
  BroadcastOutcome outcome_;  // receivers: each its own
};

}  // namespace

BroadcastOutcome BroadcastWeights(const ModelConfig& config, std::byte* memory, int device, uint64_t version,
                                  const std::vector<PrepareReceiver>& receivers, absl::Time deadline) {
  return Sending(config, memory, device, version, deadline).Run(receivers);
}

}  // namespace warpsmith
