#include "reward_service/referee/verifier.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"

namespace warpsmith {
namespace {

constexpr size_t kTailBytesMax = 2048;
// Of a candidate while it is verified: threads that overwrite each other must meet.
constexpr int kVerifyThreadsMax = 4;
// And they do not meet in every call: input sets are repeated, for as long as calls take that are just not long.
constexpr int kThreadedPasses = 5;

// Nobody who is judged may foresee it.
bool Coin() { return (std::random_device()() & 1) != 0; }

}  // namespace

double Verifier::LaneSeconds() const { return absl::ToDoubleSeconds(absl::Now() - lane_since_); }

absl::StatusOr<Verified> Verifier::Run(PreparedTask& task) {
  Verified verified;
  RETURN_IF_ERROR(RunOnInputs(task, &verified));
  for (const std::unique_ptr<PreparedTask>& other : task.on_other_inputs()) {
    if (verified.fault) break;
    RETURN_IF_ERROR(RunOnInputs(*other, &verified));
    if (verified.fault) {
      verified.fault->reason = absl::StrCat("on inputs of other shapes or strides: ", verified.fault->reason);
    }
  }
  return verified;
}

absl::Status Verifier::RunOnInputs(PreparedTask& task, Verified* verified) {
  const int num_threads =
      std::max(std::min(kVerifyThreadsMax, lane_->num_cores_around()), lane_->num_threads());
  ASSIGN_OR_RETURN(StartedJail started, jails_->Start(task, nullptr, num_threads));
  CheckedJail& jail = *started.jail;
  ChildProcess& process = jail.jail().process();
  verified->fault = std::move(started.fault);
  if (!verified->fault) {
    verified->takes_parameters &= request_.kind == CandidateKind::kNative || jail.jail().parameters_loaded();
    const auto& draws = verified->takes_parameters ? task.verification_draws() : task.construction_draws();
    const double us_max = kThreadedPasses * static_cast<double>(draws.size()) * long_call_us_;
    const absl::Time start = absl::Now();
    bool has_threads = false;
    bool is_first = true;
    for (int pass = 0; pass == 0 || (has_threads && pass < kThreadedPasses &&
                                     absl::ToDoubleMicroseconds(absl::Now() - start) < us_max);
         ++pass) {
      for (const Draw* draw : draws) {
        verified->fault = CallOn(jail, *draw, is_first);
        if (verified->fault) break;
        is_first = false;
        has_threads = process.num_threads() > 1;
        if (has_threads) RETURN_IF_ERROR(lane_->Spread(process.pid()));
      }
      if (verified->fault) break;
    }
  }
  verified->output_tail = Escape(process.OutputTail(kTailBytesMax), kTailBytesMax);
  lane_->Dismiss(process.pid()).IgnoreError();  // it may have ended
  if (!verified->fault) task.ReturnBuffers(jail.TakeBuffers());
  return absl::OkStatus();
}

std::optional<Fault> Verifier::CallOn(CheckedJail& jail, const Draw& draw, bool is_first) {
  if (LaneSeconds() > request_.limits.lane_seconds_max) {
    return Fault{v1::VERDICT_TIMEOUT, absl::StrCat("held the lane for ", LaneSeconds(), " s, ",
                                                   request_.limits.lane_seconds_max, " s are allowed")};
  }
  // Some of these calls follow a repeated one, as every timed call does.
  if (request_.kind != CandidateKind::kNative && !is_first && jail.us() < long_call_us_ && Coin()) {
    if (auto fault = jail.Repeat()) return fault;
  }
  std::optional<Fault> fault = jail.Call(draw, Comparing::kNumbers);
  if (!fault) {
    own_distribution_right_ |= draw.own_distribution;
    return std::nullopt;
  }
  const bool wrong = fault->verdict == v1::VERDICT_INCORRECT || fault->verdict == v1::VERDICT_NON_FINITE;
  // Other signs and orders are no other scale.
  const bool scaled = !draw.own_distribution && draw.style != oracle::Draw::kUnfamiliar;
  measurement_->mutable_advice_facts()->set_wrong_at_scale_only(wrong && scaled && own_distribution_right_);
  return fault;
}

}  // namespace warpsmith
