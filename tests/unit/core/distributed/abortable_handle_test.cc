#include "core/distributed/abortable_handle.h"

#include <atomic>
#include <memory>
#include <thread>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("a handle is aborted once, and not used afterwards") {
  int aborts = 0;
  {
    AbortableHandle<int> handle(7, [&](int) { ++aborts; });
    CHECK(handle.Use([](int value) { return value == 7 ? absl::OkStatus() : absl::InternalError("not 7"); })
              .ok());
    handle.Abort();
    CHECK(absl::IsAborted(handle.Use([](int) { return absl::OkStatus(); })));
  }
  CHECK(aborts == 1);
}

TEST_CASE("a handle that nobody aborted ends with its owner") {
  int aborts = 0;
  {
    AbortableHandle<int> handle(7, [&](int) { ++aborts; });
  }
  CHECK(aborts == 1);
}

// As ncclCommAbort does, the abort frees what the handle points to while another thread asks for its state.
TEST_CASE("an abort from another thread never meets a use") {
  for (int round = 0; round < 200; ++round) {
    AbortableHandle<int*> handle(new int(0), [](int* number) {
      *number = -1;
      delete number;
    });
    std::atomic<bool> started = false;
    std::thread aborting([&] {
      while (!started) std::this_thread::yield();
      handle.Abort();
    });
    absl::Status status;
    while (status.ok()) {
      status = handle.Use([](int* number) {
        return ++*number > 0 ? absl::OkStatus() : absl::InternalError("used after its end");
      });
      started = true;
    }
    aborting.join();
    CHECK(absl::IsAborted(status));
  }
}

}  // namespace warpsmith
