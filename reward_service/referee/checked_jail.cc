#include "reward_service/referee/checked_jail.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// Clients read errors as JSON: infinity is no number there.
constexpr double kErrorMax = 1e300;
constexpr double kSpreadMin = 1e-300;

// What is unusual about an input set, for an explanation.
std::string Where(const Draw& draw) {
  return absl::StrCat(draw.own_distribution ? "" : absl::StrCat(" on ", draw.style, " inputs"),
                      draw.parameter_seed == 0 ? "" : ", with other parameters");
}

}  // namespace

CheckedJail::~CheckedJail() {
  lane_->Dismiss(jail_->process().pid()).IgnoreError();  // it may have ended
  return_buffers_(jail_->TakeBuffers());
}

std::optional<Fault> CheckedJail::CallAll(Batch draws, Comparing comparing) {
  if (auto fault = LoadAndRun(draws)) return fault;
  if (auto fault = TakeInputsBack(draws)) return fault;
  if (auto fault = CheckFormerOutputs()) return fault;
  former_draws_.assign(draws.begin(), draws.end());
  for (size_t call = 0; call < draws.size(); ++call) {
    if (auto fault = CheckCall(*draws[call], call, comparing)) return fault;
  }
  return jail_->CheckIdleRooms();
}

std::optional<Fault> CheckedJail::CheckCall(const Draw& draw, size_t call, Comparing comparing) {
  if (comparing == Comparing::kNumbers) {
    v1::Correctness& numbers = correctness();
    numbers.set_num_draws(numbers.num_draws() + 1);
  }
  for (size_t i = 0; i < layout_.outputs.size(); ++i) {
    if (auto fault = CheckOutput(draw, call, i, comparing)) return fault;
  }
  return is_native_ ? jail_->CheckBuffers(draw, call) : jail_->CheckApart(call);
}

std::optional<Fault> CheckedJail::Repeat() { return LoadAndRun(former_draws_); }

std::optional<Fault> CheckedJail::LoadAndRun(Batch draws) {
  jail_->PoisonFormerOutputs();
  jail_->Load(draws);
  return jail_->Run();
}

absl::StatusOr<bool> CheckedJail::SpreadThreads() {
  // With a GPU the driver's threads are always there. What races on the GPU has a hundred timed calls to show, and all
  // are compared.
  if (jail_->on_gpu() || jail_->process().num_threads() <= 1) return false;
  RETURN_IF_ERROR(lane_->Spread(jail_->process().pid()));
  return true;
}

// Of a Python candidate: its inputs as they were, and then gone, so that its outputs are its own.
std::optional<Fault> CheckedJail::TakeInputsBack(Batch draws) {
  if (is_native_) return std::nullopt;
  for (size_t call = 0; call < draws.size(); ++call) {
    if (auto fault = jail_->CheckBuffers(*draws[call], call)) return fault;
  }
  return jail_->WithdrawInputs();
}

// A tensor that a Python candidate has given away is not its own any more.
std::optional<Fault> CheckedJail::CheckFormerOutputs() {
  if (is_native_) return std::nullopt;
  for (size_t call = 0; call < former_draws_.size(); ++call) {
    if (auto fault = CheckFormerCall(call)) return fault;
  }
  return std::nullopt;
}

std::optional<Fault> CheckedJail::CheckFormerCall(size_t call) {
  const Draw& draw = *former_draws_[call];
  for (size_t i = 0; i < layout_.outputs.size(); ++i) {
    if (layout_.outputs[i].borrowed) continue;
    const absl::StatusOr<Comparison> in_place = jail_->CompareFormerInPlace(i, draw, call);
    if (in_place.ok() && in_place->right()) continue;
    Fault fault;
    const absl::StatusOr<const void*> actual = jail_->FormerOutput(i, fault, call);
    if (actual.ok() && CompareOnHost(draw, i, *actual).right()) continue;
    return Fault{v1::VERDICT_INCORRECT,
                 absl::StrCat("output ", i,
                              " of an earlier call was changed by the next call: return "
                              "a new tensor from each")};
  }
  return std::nullopt;
}

std::optional<Fault> CheckedJail::CheckOutput(const Draw& draw, size_t call, size_t index,
                                              Comparing comparing) {
  const absl::StatusOr<Comparison> in_place = jail_->CompareInPlace(index, draw, call);
  const bool is_told = in_place.ok() && (in_place->right() || !in_place->first_difference.empty());
  Comparison result;
  if (is_told) {
    result = *in_place;
  } else {
    Fault fault;
    const absl::StatusOr<const void*> actual = jail_->Output(index, fault, call);
    if (!actual.ok()) return fault;
    result = CompareOnHost(draw, index, *actual);
  }
  if (comparing == Comparing::kNumbers) Count(draw.tolerances[index], result);
  if (!result.right()) return Wrong(draw, call, index, result, comparing);
  return comparing == Comparing::kNumbers ? CheckOutlier(index, result) : std::nullopt;
}

// Rare jumps of two programs lie anywhere: an element that is off in one draw after another is wrong.
std::optional<Fault> CheckedJail::CheckOutlier(size_t index, const Comparison& result) {
  former_outliers_.resize(layout_.outputs.size(), -1);
  if (result.first_outlier < 0) return std::nullopt;
  if (std::exchange(former_outliers_[index], result.first_outlier) != result.first_outlier)
    return std::nullopt;
  correctness().set_num_wrong(correctness().num_wrong() + 1);
  correctness().set_first_difference(
      absl::StrCat("output ", index, " ", IndexName(layout_.outputs[index].shape, result.first_outlier)));
  return Fault{v1::VERDICT_INCORRECT,
               absl::StrCat("one element wrong in two draws; ", correctness().first_difference())};
}

Comparison CheckedJail::CompareOnHost(const Draw& draw, size_t index, const void* actual) const {
  return Compare(layout_.outputs[index], draw.tolerances[index], draw.Expected(layout_, index), actual);
}

void CheckedJail::Count(const Tolerance& tolerance, const Comparison& result) {
  v1::Correctness& numbers = correctness();
  numbers.set_num_elements(numbers.num_elements() + result.num_elements);
  numbers.set_num_wrong(numbers.num_wrong() + result.num_wrong);
  numbers.set_max_absolute_error(std::max(numbers.max_absolute_error(), result.max_absolute_error));
  const double relative =
      std::min(result.max_absolute_error / std::max(tolerance.spread, kSpreadMin), kErrorMax);
  numbers.set_max_relative_error(std::max(numbers.max_relative_error(), relative));
  numbers.set_absolute_tolerance(tolerance.absolute);
  numbers.set_relative_tolerance(tolerance.relative);
}

std::optional<Fault> CheckedJail::Wrong(const Draw& draw, size_t call, size_t index, const Comparison& result,
                                        Comparing comparing) {
  if (auto view = FindView(draw, call, index)) return view;
  v1::Correctness& numbers = correctness();
  if (comparing == Comparing::kFast) numbers.set_num_wrong(numbers.num_wrong() + result.num_wrong);
  numbers.set_first_difference(absl::StrCat("output ", index, " ", result.first_difference));
  const bool non_finite = result.num_non_finite > 0 && result.num_unwritten == 0;
  return Fault{non_finite ? v1::VERDICT_NON_FINITE : v1::VERDICT_INCORRECT,
               absl::StrCat(result.num_wrong, " of ", result.num_elements, " elements wrong",
                            comparing == Comparing::kFast ? " in a later call" : "", Where(draw), "; ",
                            numbers.first_difference())};
}

// After a wrong output: whether it is right as long as the inputs are there. Then it is a view of them.
std::optional<Fault> CheckedJail::FindView(const Draw& draw, size_t call, size_t index) {
  if (is_native_) return std::nullopt;
  jail_->RestoreInputs(draw, call);
  const absl::StatusOr<Comparison> in_place = jail_->CompareInPlace(index, draw, call);
  if (in_place.ok() && !in_place->right()) return std::nullopt;
  Fault fault;
  const absl::StatusOr<const void*> actual = jail_->Output(index, fault, call);
  if (!actual.ok() || !CompareOnHost(draw, index, *actual).right()) return std::nullopt;
  Fault view{v1::VERDICT_HACK,
             absl::StrCat("output ", index, " is a view of an input; the reference's is not")};
  view.hack_family = kUnmaterialisedFamily;
  return view;
}

}  // namespace warpsmith
