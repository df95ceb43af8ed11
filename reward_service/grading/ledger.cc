#include "reward_service/grading/ledger.h"

#include <string>

#include "absl/strings/str_format.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

// Keys and values; what callers and candidates wrote is escaped and quoted.
std::string LogLine(const PreparedRequest& prepared, const v1::Grade& grade) {
  const std::string reward =
      grade.reward().has_value() ? absl::StrFormat("%.4f", grade.reward().value()) : "none";
  return absl::StrFormat(
      "graded tenant=%s id=\"%s\" task=\"%s\" verdict=%s reward=%s cached=%d seconds=%.3f source=%s "
      "reason=\"%s\"",
      prepared.tenant->name, Escape(prepared.request.request_id(), 128), Escape(grade.task_id(), 128),
      v1::Verdict_Name(grade.verdict()), reward, grade.cached(), grade.cost().total_seconds(),
      grade.source_sha256().substr(0, 12), Escape(grade.verdict_reason(), 256));
}

}  // namespace

void Ledger::Record(const std::shared_ptr<const PreparedRequest>& prepared, const v1::Grade& grade) {
  metrics_.CountGrade(prepared->tenant->name, grade);
  recent_.Add(prepared, grade);
  LogInfo(LogLine(*prepared, grade));
}

}  // namespace warpsmith
