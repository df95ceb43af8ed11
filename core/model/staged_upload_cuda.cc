#include "core/model/staged_upload_cuda.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/model/cuda_status.h"
#include "core/model/event_arrival_cuda.h"

namespace warpsmith {
namespace {

constexpr int kThreadsMax = 8;  // of 5 GB/s each: more than PCIe carries
constexpr int kSlots = 2;       // pinned buffers a thread

// Longest wait for the device to copy what a slot holds, which takes a millisecond.
constexpr absl::Duration kCopyTimeout = absl::Seconds(60);

// What one thread copies with; freed with it, once the device is done with it.
template <typename Element>
class Lane {
 public:
  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() {
    if (!Finish().ok()) return;  // the device may still read the buffers
    for (const cudaEvent_t event : copied_) {
      if (event != nullptr) cudaEventDestroy(event);
    }
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
    if (pinned_ != nullptr) cudaFreeHost(pinned_);
  }

  absl::Status Open(int device) {
    RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device), "cudaSetDevice"));
    RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"));
    for (cudaEvent_t& event : copied_) {
      RETURN_IF_ERROR(
          CudaStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
                     "cudaEventCreate"));
    }
    ASSIGN_OR_RETURN(arrival_, EventArrival::Create());
    return CudaStatus(cudaHostAlloc(reinterpret_cast<void**>(&pinned_),
                                    kSlots * kStagingElements * sizeof(Element), cudaHostAllocDefault),
                      "cudaHostAlloc of staging buffers");
  }

  // The next buffer, when the device has read what it held before.
  absl::StatusOr<Element*> NextSlot() {
    slot_ = (slot_ + 1) % kSlots;
    RETURN_IF_ERROR(Await(slot_));
    return pinned_ + slot_ * kStagingElements;
  }

  absl::Status Copy(Element* to, int64_t elements) {
    RETURN_IF_ERROR(CudaStatus(cudaMemcpyAsync(to, pinned_ + slot_ * kStagingElements,
                                               elements * sizeof(Element), cudaMemcpyHostToDevice, stream_),
                               "cudaMemcpyAsync of weights"));
    RETURN_IF_ERROR(CudaStatus(cudaEventRecord(copied_[slot_], stream_), "cudaEventRecord"));
    RETURN_IF_ERROR(arrival_->Follow(copied_[slot_]));
    arrivals_[slot_] = ++num_followed_;
    return absl::OkStatus();
  }

  absl::Status Finish() {
    for (int slot = 0; slot < kSlots; ++slot) RETURN_IF_ERROR(Await(slot));
    return absl::OkStatus();
  }

 private:
  absl::Status Await(int slot) {
    if (!lost_.ok() || arrivals_[slot] == 0) return lost_;
    lost_ = arrival_->Await(arrivals_[slot], copied_[slot], absl::Now() + kCopyTimeout);
    if (absl::IsDeadlineExceeded(lost_)) {
      lost_ = absl::DeadlineExceededError(absl::StrCat("The GPU has not copied a chunk of weights within ",
                                                       absl::FormatDuration(kCopyTimeout)));
    }
    return lost_;
  }

  cudaStream_t stream_ = nullptr;
  std::array<cudaEvent_t, kSlots> copied_ = {};
  std::optional<EventArrival> arrival_;
  std::array<int64_t, kSlots> arrivals_ = {};  // what arrival_ counts to with the event; 0: not recorded
  int64_t num_followed_ = 0;
  absl::Status lost_;  // why the device may not be done
  Element* pinned_ = nullptr;
  int slot_ = 0;
};

template <typename Element>
class Upload {
 public:
  Upload(const std::vector<StagingChunk>& chunks, int device, Element* to,
         absl::FunctionRef<void(const StagingChunk&, Element*)> fill)
      : chunks_(chunks), device_(device), to_(to), fill_(fill) {}

  absl::Status Run() {
    const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
    const int64_t wanted = std::min({int64_t{kThreadsMax}, cores, std::ssize(chunks_)});
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < wanted; ++i) threads.emplace_back([this] { Work(); });
    for (std::thread& thread : threads) thread.join();
    const absl::MutexLock lock(&mutex_);
    return error_;
  }

 private:
  void Work() {
    pthread_setname_np(pthread_self(), "ws-upload");
    const absl::Status status = CopyChunks();
    if (status.ok()) return;
    failed_ = true;
    const absl::MutexLock lock(&mutex_);
    if (error_.ok()) error_ = status;
  }

  absl::Status CopyChunks() {
    Lane<Element> lane;
    RETURN_IF_ERROR(lane.Open(device_));
    for (size_t i = next_++; i < chunks_.size() && !failed_; i = next_++) {
      const StagingChunk& chunk = chunks_[i];
      WS_CHECK(chunk.length <= kStagingElements) << chunk.length << " elements in a chunk";
      ASSIGN_OR_RETURN(Element* const staging, lane.NextSlot());
      fill_(chunk, staging);
      RETURN_IF_ERROR(lane.Copy(to_ + chunk.offset, chunk.length));
    }
    return lane.Finish();
  }

  const std::vector<StagingChunk>& chunks_;
  const int device_;
  Element* const to_;
  const absl::FunctionRef<void(const StagingChunk&, Element*)> fill_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  absl::Mutex mutex_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status UploadStaged(const std::vector<StagingChunk>& chunks, int device, uint16_t* device_elements,
                          absl::FunctionRef<void(const StagingChunk& chunk, uint16_t* staging)> fill) {
  return Upload<uint16_t>(chunks, device, device_elements, fill).Run();
}

absl::Status UploadStaged(const std::vector<StagingChunk>& chunks, int device, float* device_elements,
                          absl::FunctionRef<void(const StagingChunk& chunk, float* staging)> fill) {
  return Upload<float>(chunks, device, device_elements, fill).Run();
}

}  // namespace warpsmith
