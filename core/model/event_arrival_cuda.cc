#include "core/model/event_arrival_cuda.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/base/call_within.h"
#include "core/base/status_macros.h"
#include "core/model/cuda_status.h"

namespace warpsmith {
namespace {

// A lost device never calls back, so it is polled at this period.
constexpr absl::Duration kLookPeriod = absl::Milliseconds(100);

}  // namespace

struct EventArrival::Counter {
  absl::Mutex mutex;
  int64_t num_arrived ABSL_GUARDED_BY(mutex) = 0;
};

absl::StatusOr<EventArrival> EventArrival::Create() {
  EventArrival arrival;
  ASSIGN_OR_RETURN(arrival.stream_, CreateStream());
  arrival.counter_ = std::make_shared<Counter>();
  return arrival;
}

absl::Status EventArrival::Follow(cudaEvent_t event) {
  RETURN_IF_ERROR(CudaStatus(cudaStreamWaitEvent(stream_.get(), event, 0), "Following an event"));
  auto held = std::make_unique<std::shared_ptr<Counter>>(counter_);
  const auto count = [](void* counter) {
    const std::unique_ptr<std::shared_ptr<Counter>> owned(static_cast<std::shared_ptr<Counter>*>(counter));
    absl::MutexLock lock(&(*owned)->mutex);
    ++(*owned)->num_arrived;
  };
  RETURN_IF_ERROR(CudaStatus(cudaLaunchHostFunc(stream_.get(), count, held.get()), "Following an event"));
  (void)held.release();  // the call frees it; one that is never made leaks it
  return absl::OkStatus();
}

absl::Status EventArrival::Await(int64_t count, cudaEvent_t event, absl::Time deadline) {
  absl::MutexLock lock(&counter_->mutex);
  const auto arrived = [&]() ABSL_SHARED_LOCKS_REQUIRED(counter_->mutex) {
    return counter_->num_arrived >= count;
  };
  while (!arrived()) {
    const absl::Time look = std::min(deadline, absl::Now() + kLookPeriod);
    if (counter_->mutex.AwaitWithDeadline(absl::Condition(&arrived), look)) break;
    const cudaError_t error = cudaEventQuery(event);
    if (error == cudaSuccess) break;  // its call is on the way
    if (error != cudaErrorNotReady) return CudaStatus(error, "Waiting for the GPU");
    if (absl::Now() >= deadline) return absl::DeadlineExceededError("The GPU is not done in time");
  }
  return absl::OkStatus();
}

absl::Status AwaitStream(cudaStream_t stream, absl::Time deadline) {
  ASSIGN_OR_RETURN(EventArrival arrival, EventArrival::Create());
  ASSIGN_OR_RETURN(const CudaEvent done, CreateEvent());
  RETURN_IF_ERROR(CudaStatus(cudaEventRecord(done.get(), stream), "Recording an event"));
  RETURN_IF_ERROR(arrival.Follow(done.get()));
  return arrival.Await(1, done.get(), deadline);
}

absl::Status AwaitDevice(int device, const char* what, absl::Time deadline) {
  const auto status = std::make_shared<absl::Status>();
  const auto synchronize = [status, device, what = std::string(what)] {
    cudaError_t error = cudaSetDevice(device);
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    *status = CudaStatus(error, what);
  };
  if (CallWithin(deadline - absl::Now(), synchronize)) return *status;
  return absl::DeadlineExceededError(absl::StrCat("GPU ", device, " is not done in time with ", what));
}

}  // namespace warpsmith
