// The referee's end of a StartPage.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_START_LINE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_START_LINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "reward_service/jail/shared_buffer.h"
#include "reward_service/jail/start_page.h"

namespace warpsmith {

// Of one process, which may write anything there: only its two words are read, as hints.
class StartLine {
 public:
  static absl::StatusOr<std::unique_ptr<StartLine>> Create();

  int fd() const { return buffer_->fd(); }
  // The number of a further run, which the process is told before it is continued.
  uint32_t Next() { return ++number_; }
  bool is_ready() const { return page().ready.load(std::memory_order_acquire) == number_; }
  bool is_done() const { return page().done.load(std::memory_order_acquire) == number_; }
  // The process goes on, with a call in each of these rooms, StartPage's number of them at most.
  void Start(const std::vector<size_t>& rooms);

 private:
  explicit StartLine(std::unique_ptr<SharedBuffer> buffer) : buffer_(std::move(buffer)) {}
  StartPage& page() const { return *reinterpret_cast<StartPage*>(buffer_->data()); }

  const std::unique_ptr<SharedBuffer> buffer_;
  uint32_t number_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_START_LINE_H_
