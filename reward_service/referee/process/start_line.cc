#include "reward_service/referee/process/start_line.h"

#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace warpsmith {

absl::StatusOr<std::unique_ptr<StartLine>> StartLine::Create() {
  ASSIGN_OR_RETURN(auto buffer, SharedBuffer::Create(kStartPageBytes));
  return std::unique_ptr<StartLine>(new StartLine(std::move(buffer)));
}

void StartLine::Start(const std::vector<size_t>& rooms) {
  WS_CHECK(rooms.size() <= jail::Run::rooms.num_max) << rooms.size();
  page().num_calls = static_cast<uint32_t>(rooms.size());
  for (size_t call = 0; call < rooms.size(); ++call) page().rooms[call] = static_cast<uint32_t>(rooms[call]);
  page().go.store(number_, std::memory_order_release);
}

}  // namespace warpsmith
