#include "rollout_workers/device/step_arrival_cuda.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// A device that is lost calls nobody: how often it is asked.
constexpr absl::Duration kLookPeriod = absl::Milliseconds(100);

}  // namespace

struct StepArrival::Counter {
  absl::Mutex mutex;
  int64_t num_arrived ABSL_GUARDED_BY(mutex) = 0;
};

absl::StatusOr<StepArrival> StepArrival::Create() {
  StepArrival arrival;
  ASSIGN_OR_RETURN(arrival.stream_, CreateStream());
  arrival.counter_ = std::make_shared<Counter>();
  return arrival;
}

absl::Status StepArrival::Follow(cudaEvent_t event) {
  RETURN_IF_ERROR(StepCudaStatus(cudaStreamWaitEvent(stream_.get(), event, 0), "Following a step"));
  auto held = std::make_unique<std::shared_ptr<Counter>>(counter_);
  const auto count = [](void* counter) {
    const std::unique_ptr<std::shared_ptr<Counter>> owned(static_cast<std::shared_ptr<Counter>*>(counter));
    absl::MutexLock lock(&(*owned)->mutex);
    ++(*owned)->num_arrived;
  };
  RETURN_IF_ERROR(StepCudaStatus(cudaLaunchHostFunc(stream_.get(), count, held.get()), "Following a step"));
  (void)held.release();  // the call frees it; one that is never made leaks it
  return absl::OkStatus();
}

absl::Status StepArrival::Await(int64_t count, cudaEvent_t event, absl::Time deadline) {
  absl::MutexLock lock(&counter_->mutex);
  const auto arrived = [&]() ABSL_SHARED_LOCKS_REQUIRED(counter_->mutex) {
    return counter_->num_arrived >= count;
  };
  while (!arrived()) {
    const absl::Time look = std::min(deadline, absl::Now() + kLookPeriod);
    if (counter_->mutex.AwaitWithDeadline(absl::Condition(&arrived), look)) break;
    const cudaError_t error = cudaEventQuery(event);
    if (error == cudaSuccess) break;  // its call is on the way
    if (error != cudaErrorNotReady) return StepCudaStatus(error, "Waiting for the GPU");
    if (absl::Now() >= deadline) return absl::DeadlineExceededError("The GPU is not done in time");
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
