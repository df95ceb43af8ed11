#include "trainer/update/agreement.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// A status as bytes: its code, then what it says, or the text that came with OK.
std::string Pack(absl::StatusCode code, std::string_view text) {
  return absl::StrCat(std::string(1, static_cast<char>(code)), absl::string_view(text.data(), text.size()));
}

absl::StatusCode CodeOf(const std::string& packed) {
  WS_CHECK(!packed.empty());
  return static_cast<absl::StatusCode>(packed[0]);
}

absl::Status FromRank(int rank, const std::string& packed) {
  return {CodeOf(packed), absl::StrCat("rank ", rank, ": ", packed.substr(1))};
}

std::string Pack(const absl::Status& status) {
  return Pack(status.code(), {status.message().data(), status.message().size()});
}

}  // namespace

absl::StatusOr<std::string> ShareText(ControlPlane& control, absl::StatusOr<std::string> own) {
  const bool is_source = control.rank() == 0;
  std::string mine;
  if (is_source) mine = own.ok() ? Pack(absl::StatusCode::kOk, *own) : Pack(own.status());
  ASSIGN_OR_RETURN(const std::string shared, control.Broadcast(std::move(mine), "start"));
  if (is_source) return own;
  if (CodeOf(shared) != absl::StatusCode::kOk) return FromRank(0, shared);
  return shared.substr(1);
}

absl::StatusOr<int> LargestOverRanks(ControlPlane& control, int own) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all, control.AllGather(absl::StrCat(own), "start"));
  int largest = own;
  for (const std::string& text : all) {
    int number = 0;
    WS_CHECK(absl::SimpleAtoi(text, &number)) << text;
    largest = std::max(largest, number);
  }
  return largest;
}

absl::Status ShareStatus(ControlPlane& control, const absl::Status& own) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all, control.AllGather(Pack(own), "start"));
  if (!own.ok()) return own;
  for (int rank = 0; rank < control.size(); ++rank) {
    if (CodeOf(all[rank]) != absl::StatusCode::kOk) return FromRank(rank, all[rank]);
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
