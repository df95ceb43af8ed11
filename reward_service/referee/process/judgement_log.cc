#include "reward_service/referee/process/judgement_log.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "reward_service/referee/tensors/phase_clock.h"

namespace warpsmith {

std::string DescribeJudgement(const v1::Grade& grade, DeviceTurn* turn, Zygote* python, Zygote* native) {
  const v1::Cost& cost = grade.cost();
  const std::string of_native = native->contexts().TakeReport();
  return absl::StrCat(
      absl::StrFormat("judged %s: oracle %.2f, waits %.2f, verified %.2f, timed %.2f, profiled %.2f s; "
                      "processes timed: %d",
                      v1::Verdict_Name(grade.verdict()), cost.oracle_seconds(), cost.lane_wait_seconds(),
                      cost.verify_seconds(), cost.time_seconds(), cost.profile_seconds(),
                      grade.timing().candidate().num_instances()),
      "; phases: ", TakePhaseReport(), "; turns: ", turn->TakeReport(),
      "; contexts: ", python->contexts().TakeReport(),
      of_native.empty() ? "" : absl::StrCat("; native: ", of_native));
}

}  // namespace warpsmith
