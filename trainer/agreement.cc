#include "trainer/agreement.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr CollectiveLabel kLabel{"start", "control"};

// A status in a fixed number of bytes, as a collective needs it; a longer message is cut.
struct PackedStatus {
  int32_t code = 0;
  int32_t num_bytes = 0;
  char message[2040] = {};
};

PackedStatus Pack(const absl::Status& status) {
  PackedStatus packed{.code = static_cast<int32_t>(status.code())};
  packed.num_bytes = static_cast<int32_t>(std::min(status.message().size(), sizeof(packed.message)));
  std::memcpy(packed.message, status.message().data(), packed.num_bytes);
  return packed;
}

std::string MessageOf(const PackedStatus& packed) {
  return {packed.message, static_cast<size_t>(packed.num_bytes)};
}

absl::Status FromRank(int rank, const PackedStatus& packed) {
  return {static_cast<absl::StatusCode>(packed.code), absl::StrCat("rank ", rank, ": ", MessageOf(packed))};
}

}  // namespace

absl::StatusOr<std::string> ShareText(Communicator& communicator, absl::StatusOr<std::string> own) {
  const bool is_source = communicator.rank() == 0;
  PackedStatus status = is_source ? Pack(own.status()) : PackedStatus();
  RETURN_IF_ERROR(communicator.Broadcast(&status, sizeof(status), 0, kLabel));
  if (status.code != 0) return is_source ? own.status() : FromRank(0, status);
  std::string text = is_source ? *std::move(own) : std::string();
  int64_t size = static_cast<int64_t>(text.size());
  RETURN_IF_ERROR(communicator.Broadcast(&size, sizeof(size), 0, kLabel));
  text.resize(size);
  RETURN_IF_ERROR(communicator.Broadcast(text.data(), size, 0, kLabel));
  return text;
}

absl::Status ShareStatus(Communicator& communicator, const absl::Status& own) {
  const PackedStatus mine = Pack(own);
  std::vector<PackedStatus> all(communicator.size());
  RETURN_IF_ERROR(communicator.AllGather(&mine, all.data(), sizeof(mine), kLabel));
  if (!own.ok()) return own;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    if (all[rank].code != 0) return FromRank(rank, all[rank]);
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
