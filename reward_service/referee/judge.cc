#include "reward_service/referee/judge.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/measure/statistics.h"

namespace warpsmith {
namespace {

constexpr size_t kTailBytesMax = 2048;
// Of a candidate while it is verified: threads that overwrite each other must meet.
constexpr int kVerifyThreadsMax = 4;
// And they do not meet in every call: draws are repeated, as long as that is quick.
constexpr int kThreadedPasses = 5;
constexpr double kPassSecondsMax = 0.15;

double Seconds(absl::Time since) { return absl::ToDoubleSeconds(absl::Now() - since); }

// What is unusual about a draw, for an explanation.
std::string Where(const Draw& draw) {
  return absl::StrCat(draw.own_distribution ? "" : absl::StrCat(" on ", draw.style, " inputs"),
                      draw.parameter_seed == 0 ? "" : ", with other parameters");
}

}  // namespace

double Judge::LaneSeconds() const { return Seconds(lane_since_); }

absl::StatusOr<Judgement> Judge::Run() {
  const absl::Status status = RunAll();
  if (absl::IsInvalidArgument(status)) {
    judgement_.outcome = Outcome::kInvalidTask;
    judgement_.reason = std::string(status.message());
    return std::move(judgement_);
  }
  if (!status.ok()) return status;
  return std::move(judgement_);
}

absl::Status Judge::RunAll() {
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(pooled_, tools_.pool->Get(request_.task, /*for_timing=*/false, request_.seed, deadline_));
  task_ = pooled_->task.get();
  judgement_.seconds.oracle = Seconds(start);
  judgement_.bytes_per_call = task_->layout().tensor_bytes();
  if (request_.kind == CandidateKind::kKernelBenchPython) {
    ASSIGN_OR_RETURN(source_fd_, SharedBuffer::SealedText(request_.source));
  }
  lane_since_ = absl::Now();
  ASSIGN_OR_RETURN(const bool verified, Verify());
  judgement_.seconds.verify = LaneSeconds();
  if (!verified) return absl::OkStatus();
  judgement_.outcome = Outcome::kCorrect;
  judgement_.reason = absl::StrCat("right on all ", judgement_.correctness.num_draws, " draws");
  if (request_.verify_only) return absl::OkStatus();
  const absl::Time waiting = absl::Now();
  RETURN_IF_ERROR(tools_.pool->Get(request_.task, /*for_timing=*/true, request_.seed, deadline_).status());
  judgement_.seconds.lane_wait = Seconds(waiting);
  const absl::Time timing = absl::Now();
  RETURN_IF_ERROR(Time().status());
  judgement_.seconds.time = Seconds(timing) - judgement_.seconds.profile;
  return absl::OkStatus();
}

// To be timed beside the baseline, or, without one, to be verified.
absl::StatusOr<std::unique_ptr<Jail>> Judge::NextJail(const Jail* baseline) {
  Zygote* parent = request_.kind == CandidateKind::kNative ? tools_.native_parent : tools_.python_parent;
  const int cpu_seconds = std::max(1, static_cast<int>(request_.limits.cpu_seconds_max));
  ASSIGN_OR_RETURN(auto process, parent->ForkWithSpare({"python", tools_.jail_memory_bytes_max, cpu_seconds,
                                                        tools_.lane->num_threads()}));
  ASSIGN_OR_RETURN(Buffers buffers, task_->BorrowBuffers(request_.kind, baseline));
  auto jail =
      std::make_unique<Jail>(std::move(process), std::move(buffers), task_->layout(), request_.limits);
  RETURN_IF_ERROR(jail->process().AwaitHello(deadline_));
  former_draw_ = nullptr;
  former_us_ = 0;
  return jail;
}

Program Judge::MakeProgram(int num_threads) const {
  Program program;
  program.kind = request_.kind;
  program.library_fd = request_.library_fd;
  program.source_fd = source_fd_.get();
  program.extension_fds = request_.extension_fds;
  program.init_inputs = task_->init_inputs();
  if (request_.kind == CandidateKind::kKernelBenchPython)
    program.construction = task_->construction_draws().front();
  program.construction_seed = task_->construction_seed();
  program.num_threads = num_threads;
  return program;
}

// Records what a candidate did wrong. Always false, so that callers may return it.
bool Judge::Convict(Fault fault, Jail* jail) {
  judgement_.outcome = fault.outcome;
  judgement_.reason = std::move(fault.reason);
  judgement_.hack_family = std::move(fault.hack_family);
  judgement_.input_mutated |= fault.input_mutated;
  judgement_.guard_touched |= fault.guard_touched;
  judgement_.out_of_bounds |= fault.out_of_bounds;
  if (jail != nullptr)
    judgement_.output_tail = Escape(jail->process().OutputTail(kTailBytesMax), kTailBytesMax);
  return false;
}

absl::StatusOr<bool> Judge::Verify() {
  takes_parameters_ = true;
  ASSIGN_OR_RETURN(const bool right, VerifyOnInputs());
  if (!right) return false;
  PreparedTask* const task = task_;
  for (const std::unique_ptr<PreparedTask>& other : task->on_other_inputs()) {
    task_ = other.get();
    const absl::StatusOr<bool> right_there = VerifyOnInputs();
    task_ = task;
    if (!right_there.ok()) return right_there;
    if (!*right_there) {
      judgement_.reason = absl::StrCat("on inputs of other shapes or strides: ", judgement_.reason);
      return false;
    }
  }
  return true;
}

absl::StatusOr<bool> Judge::VerifyOnInputs() {
  ASSIGN_OR_RETURN(std::unique_ptr<Jail> jail, NextJail(nullptr));
  const int num_threads =
      std::max(std::min(kVerifyThreadsMax, tools_.lane->num_cores_around()), tools_.lane->num_threads());
  if (auto fault = jail->Begin(MakeProgram(num_threads), tools_.lane))
    return Convict(*std::move(fault), jail.get());
  takes_parameters_ &= request_.kind == CandidateKind::kNative || jail->parameters_loaded();
  const auto& draws = takes_parameters_ ? task_->verification_draws() : task_->construction_draws();
  bool has_threads = false;
  for (int pass = 0; pass == 0 || (has_threads && pass < kThreadedPasses && LaneSeconds() < kPassSecondsMax);
       ++pass) {
    for (const Draw* draw : draws) {
      if (!VerifyOne(*jail, *draw)) return false;
      scale_independent_right_ |= draw->own_distribution;
      has_threads = jail->process().num_threads() > 1;
      if (has_threads) RETURN_IF_ERROR(tools_.lane->Spread(jail->process().pid()));
    }
  }
  judgement_.output_tail = Escape(jail->process().OutputTail(kTailBytesMax), kTailBytesMax);
  task_->ReturnBuffers(jail->TakeBuffers());
  return true;
}

// Of a Python candidate after a call: its inputs as they were, and then gone, so that its outputs are its
// own.
bool Judge::TakeInputsBack(Jail& jail, const Draw& draw) {
  if (request_.kind == CandidateKind::kNative) return true;
  if (auto fault = jail.CheckBuffers(draw)) return Convict(*std::move(fault), &jail);
  jail.WithdrawInputs();
  return true;
}

// After a wrong output: whether it is right as long as the inputs are there. Then it is a view of them.
bool Judge::ConvictView(Jail& jail, const Draw& draw, size_t index) {
  if (request_.kind == CandidateKind::kNative) return false;
  jail.RestoreInputs(draw);
  const TensorSpec& spec = task_->layout().outputs[index];
  Fault fault;
  const absl::StatusOr<const void*> actual = jail.Output(index, fault);
  if (!actual.ok() || !AllRight(spec, draw.tolerances[index], draw.expected.get() + spec.offset, *actual))
    return false;
  Fault view{Outcome::kHack,
             absl::StrCat("output ", index, " is a view of an input; the reference's is not")};
  view.hack_family = kUnmaterialisedFamily;
  Convict(std::move(view), &jail);
  return true;
}

// A tensor that a Python candidate has given away is not its own any more.
bool Judge::CheckFormerOutputs(Jail& jail, const Draw& draw) {
  const Draw* former = std::exchange(former_draw_, &draw);
  if (request_.kind == CandidateKind::kNative || former == nullptr) return true;
  const auto& specs = task_->layout().outputs;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].borrowed) continue;
    Fault fault;
    const absl::StatusOr<const void*> actual = jail.FormerOutput(i, fault);
    if (actual.ok() &&
        AllRight(specs[i], former->tolerances[i], former->expected.get() + specs[i].offset, *actual)) {
      continue;
    }
    return Convict(
        {Outcome::kIncorrect, absl::StrCat("output ", i,
                                           " of an earlier call was changed by the next call: return a "
                                           "new tensor from each")},
        &jail);
  }
  return true;
}

bool Judge::VerifyOne(Jail& jail, const Draw& draw) {
  // Some of these calls follow a repeated one, too, as every timed call does.
  if (Coin() && !Rewarm(jail)) return false;
  jail.Load(draw);
  if (auto fault = jail.Run()) return Convict(*std::move(fault), &jail);
  former_us_ = jail.seconds() * 1e6;
  if (!TakeInputsBack(jail, draw) || !CheckFormerOutputs(jail, draw)) return false;
  CorrectnessNumbers& numbers = judgement_.correctness;
  ++numbers.num_draws;
  const auto& specs = task_->layout().outputs;
  for (size_t i = 0; i < specs.size(); ++i) {
    Fault fault;
    const absl::StatusOr<const void*> actual = jail.Output(i, fault);
    if (!actual.ok()) return Convict(std::move(fault), &jail);
    const Tolerance& tolerance = draw.tolerances[i];
    const Comparison result = Compare(specs[i], tolerance, draw.expected.get() + specs[i].offset, *actual);
    numbers.num_elements += result.num_elements;
    numbers.num_wrong += result.num_wrong;
    numbers.max_absolute_error = std::max(numbers.max_absolute_error, result.max_absolute_error);
    // Bounded, for infinity does not travel.
    const double relative_error =
        std::min(result.max_absolute_error / std::max(tolerance.spread, 1e-300), 1e300);
    numbers.max_relative_error = std::max(numbers.max_relative_error, relative_error);
    numbers.absolute_tolerance = tolerance.absolute;
    numbers.relative_tolerance = tolerance.relative;
    if (result.right()) continue;
    if (ConvictView(jail, draw, i)) return false;
    numbers.first_difference = absl::StrCat("output ", i, " ", result.first_difference);
    judgement_.output_unwritten = result.num_unwritten > 0;
    judgement_.wrong_at_scale_only = !draw.own_distribution && scale_independent_right_;
    const bool non_finite = result.num_non_finite > 0 && result.num_unwritten == 0;
    return Convict({non_finite ? Outcome::kNonFinite : Outcome::kIncorrect,
                    absl::StrCat(result.num_wrong, " of ", result.num_elements, " elements wrong",
                                 Where(draw), "; ", numbers.first_difference)},
                   &jail);
  }
  return CheckGuards(jail, draw);
}

bool Judge::CheckGuards(Jail& jail, const Draw& draw) {
  if (request_.kind != CandidateKind::kNative) return true;
  if (auto fault = jail.CheckBuffers(draw)) return Convict(*std::move(fault), &jail);
  return true;
}

// What is in the outputs at the stop counts, on every call after verification, too.
bool Judge::CheckTimed(Jail& jail, const Draw& draw) {
  if (!TakeInputsBack(jail, draw) || !CheckFormerOutputs(jail, draw)) return false;
  const auto& specs = task_->layout().outputs;
  for (size_t i = 0; i < specs.size(); ++i) {
    Fault fault;
    const absl::StatusOr<const void*> actual = jail.Output(i, fault);
    if (!actual.ok()) return Convict(std::move(fault), &jail);
    const char* expected = draw.expected.get() + specs[i].offset;
    if (AllRight(specs[i], draw.tolerances[i], expected, *actual)) continue;
    const Comparison result = Compare(specs[i], draw.tolerances[i], expected, *actual);
    if (result.right()) continue;  // the fast way rounds the tolerance to the outputs' own type
    if (ConvictView(jail, draw, i)) return false;
    judgement_.output_unwritten = result.num_unwritten > 0;
    judgement_.correctness.num_wrong += result.num_wrong;
    judgement_.correctness.first_difference = absl::StrCat("output ", i, " ", result.first_difference);
    return Convict({Outcome::kIncorrect, absl::StrCat(result.num_wrong, " of ", result.num_elements,
                                                      " elements wrong in a later call", Where(draw), "; ",
                                                      judgement_.correctness.first_difference)},
                   &jail);
  }
  return CheckGuards(jail, draw);
}

}  // namespace warpsmith
