#include "core/model/event_arrival_cuda.h"

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Holds a stream until the test lets go.
void CUDART_CB WaitForTest(void* notification) {
  static_cast<absl::Notification*>(notification)->WaitForNotificationWithTimeout(absl::Seconds(30));
}

}  // namespace

TEST_CASE("a step that the device has done is waited for, each after the one before it") {
  EventArrival arrival = EventArrival::Create().value();
  const CudaStream stream = CreateStream().value();
  const CudaEvent event = CreateEvent().value();
  for (int64_t count = 1; count <= 100; ++count) {
    REQUIRE(cudaEventRecord(event.get(), stream.get()) == cudaSuccess);
    REQUIRE(arrival.Follow(event.get()).ok());
    REQUIRE(arrival.Await(count, event.get(), absl::Now() + absl::Seconds(10)).ok());
  }
}

TEST_CASE("a step that does not end is given up at the deadline, and arrives later all the same") {
  EventArrival arrival = EventArrival::Create().value();
  const CudaStream stream = CreateStream().value();
  const CudaEvent event = CreateEvent().value();
  absl::Notification go;
  REQUIRE(cudaLaunchHostFunc(stream.get(), WaitForTest, &go) == cudaSuccess);
  REQUIRE(cudaEventRecord(event.get(), stream.get()) == cudaSuccess);
  REQUIRE(arrival.Follow(event.get()).ok());
  const absl::Time began = absl::Now();
  CHECK(absl::IsDeadlineExceeded(arrival.Await(1, event.get(), began + absl::Milliseconds(250))));
  CHECK(absl::Now() - began >= absl::Milliseconds(250));
  go.Notify();
  CHECK(arrival.Await(1, event.get(), absl::Now() + absl::Seconds(10)).ok());
}

}  // namespace warpsmith
