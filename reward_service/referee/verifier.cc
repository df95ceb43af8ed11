#include "reward_service/referee/verifier.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// Threads that overwrite each other do not meet in every call: input sets are repeated, for as long as calls
// take that are just not long.
constexpr int kThreadedPasses = 5;

// Nobody who is judged may foresee it.
bool Coin() { return (std::random_device()() & 1) != 0; }

}  // namespace

double Verifier::LaneSeconds() const {
  return absl::ToDoubleSeconds(absl::Now() - options_.lane_since - off_clock_);
}

absl::StatusOr<Verified> Verifier::Run(PreparedTask& task) {
  Verified verified;
  RETURN_IF_ERROR(RunOnInputs(task, &verified));
  for (const std::unique_ptr<PreparedTask>& other : task.on_other_inputs()) {
    if (verified.fault) break;
    RETURN_IF_ERROR(RunOnInputs(*other, &verified));
    if (verified.fault) {
      verified.fault->reason = absl::StrCat("on inputs of other shapes or strides: ", verified.fault->reason);
      verified.program.reset();
    }
  }
  return verified;
}

absl::Status Verifier::RunOnInputs(PreparedTask& task, Verified* verified) {
  ASSIGN_OR_RETURN(StartedProgram started, device_->StartCandidate(task, options_.room));
  verified->waited += started.waited;
  verified->constructing += started.constructing;
  off_clock_ += started.waited + started.constructing;
  CheckedProgram& program = *started.program;
  verified->fault = std::move(started.fault);
  if (!verified->fault) {
    verified->takes_parameters &= program.takes_parameters();
    const auto& draws = verified->takes_parameters ? task.verification_draws() : task.construction_draws();
    ASSIGN_OR_RETURN(verified->fault, CallOnAll(draws, &program));
  }
  if (!verified->fault && verified->program == nullptr) verified->program = std::move(started.program);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Fault>> Verifier::CallOnAll(const std::vector<const Draw*>& draws,
                                                         CheckedProgram* program) {
  const double us_max = kThreadedPasses * static_cast<double>(draws.size()) * options_.long_call_us;
  const absl::Time start = absl::Now();
  bool has_threads = false;
  bool is_first = true;
  for (int pass = 0; pass == 0 || (has_threads && pass < kThreadedPasses &&
                                   absl::ToDoubleMicroseconds(absl::Now() - start) < us_max);
       ++pass) {
    for (const Draw* draw : draws) {
      if (auto fault = CallOn(*draw, is_first, program)) return fault;
      is_first = false;
      ASSIGN_OR_RETURN(has_threads, program->SpreadThreads());
    }
  }
  return std::nullopt;
}

std::optional<Fault> Verifier::CallOn(const Draw& draw, bool is_first, CheckedProgram* program) {
  if (LaneSeconds() > options_.lane_seconds_max) {
    return Fault{v1::VERDICT_TIMEOUT, absl::StrCat("held the lane for ", LaneSeconds(), " s, ",
                                                   options_.lane_seconds_max, " s are allowed")};
  }
  // Some of these calls follow a repeated one, as every timed call does.
  if (options_.repeats && !is_first && program->us() < options_.long_call_us && Coin()) {
    if (auto fault = program->Repeat()) return fault;
  }
  std::optional<Fault> fault = program->Call(draw, Comparing::kNumbers);
  if (!fault) {
    own_distribution_right_ |= draw.own_distribution;
    return std::nullopt;
  }
  const bool wrong = fault->verdict == v1::VERDICT_INCORRECT || fault->verdict == v1::VERDICT_NON_FINITE;
  measurement_->mutable_advice_facts()->set_wrong_at_scale_only(wrong && !draw.own_distribution &&
                                                                own_distribution_right_);
  return fault;
}

}  // namespace warpsmith
