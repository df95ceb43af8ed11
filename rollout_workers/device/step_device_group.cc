#include "rollout_workers/device/step_device_group.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// Beyond a member's own deadline, which says more. Also how long a launch may take that loads kernels, for that waits
// for its GPU, and so for the others.
constexpr absl::Duration kBeyondStep = absl::Seconds(30);
// Of what reads weights, or takes and gives memory: a checkpoint may come over a network.
constexpr absl::Duration kMemoryTimeout = absl::Hours(2);

}  // namespace

StepDeviceGroup::StepDeviceGroup(std::vector<Member> members, std::function<void()> abort,
                                 absl::Duration step_timeout)
    : devices_(std::make_shared<std::vector<std::unique_ptr<StepDevice>>>()),
      abort_(std::move(abort)),
      step_timeout_(step_timeout),
      num_pages_(members.at(0).device->num_pages()),
      threads_(static_cast<int>(members.size())) {
  for (Member& member : members) {
    WS_CHECK(member.device->num_pages() == num_pages_)
        << member.name << " has " << member.device->num_pages() << " pages, and others " << num_pages_;
    names_.push_back(std::move(member.name));
    devices_->push_back(std::move(member.device));
  }
}

// To free what a thread still uses, or what waits for a device that may never be done, would wait with it.
StepDeviceGroup::~StepDeviceGroup() {
  DropSteps();
  if (threads_.is_stuck()) new std::shared_ptr(devices_);
}

absl::Status StepDeviceGroup::Named(const RankOutcome& outcome) const {
  if (outcome.status.ok()) return outcome.status;
  return absl::Status(outcome.status.code(),
                      absl::StrCat(names_.at(outcome.rank), ": ", std::string(outcome.status.message())));
}

absl::Status StepDeviceGroup::Together(Work work) {
  RETURN_IF_ERROR(lost_);
  const absl::Status status = Named(threads_.Run(
      [devices = devices_, work = std::move(work)](int rank) { return work(*devices->at(rank)); },
      kMemoryTimeout));
  if (status.ok()) return status;
  const bool member_is_lost =
      !threads_.is_stuck() && std::any_of(devices_->begin(), devices_->end(),
                                          [](const auto& device) { return !device->lost().ok(); });
  return threads_.is_stuck() || member_is_lost ? Lose(status) : status;
}

absl::Status StepDeviceGroup::Lose(const absl::Status& status) {
  lost_ =
      absl::Status(status.code(), absl::StrCat("The group of GPUs is lost to this process, start it again: ",
                                               std::string(status.message())));
  return lost_;
}

// Of a step: what fails on one member is over for all.
absl::Status StepDeviceGroup::Step(Work work) {
  RETURN_IF_ERROR(lost_);
  const RankOutcome outcome = threads_.Run(
      [devices = devices_, work = std::move(work)](int rank) { return work(*devices->at(rank)); },
      step_timeout_ + kBeyondStep, abort_);
  return outcome.status.ok() ? outcome.status : Lose(Named(outcome));
}

absl::Status StepDeviceGroup::LoadHuggingFace(const std::filesystem::path& directory) {
  return Together([directory](StepDevice& device) { return device.LoadHuggingFace(directory); });
}

absl::Status StepDeviceGroup::SetParameters(const Parameters& parameters) {
  // A thread that is not back after hours has lost the group, and with it the process.
  return Together([&parameters](StepDevice& device) { return device.SetParameters(parameters); });
}

absl::Status StepDeviceGroup::FillRandom(uint64_t seed) {
  return Together([seed](StepDevice& device) { return device.FillRandom(seed); });
}

// Bounded by the members' own deadlines.
absl::Status StepDeviceGroup::TakeWeights(WeightSource& source) {
  return Together([&source](StepDevice& device) { return device.TakeWeights(source); });
}

absl::Status StepDeviceGroup::Launch(const StepPlan& plan) {
  // A copy, for a thread that is not back in time.
  return Step(
      [plan = std::make_shared<const StepPlan>(plan)](StepDevice& device) { return device.Launch(*plan); });
}

absl::StatusOr<std::vector<TokenResult>> StepDeviceGroup::AwaitOldest() {
  const auto results = std::make_shared<std::vector<TokenResult>>();
  StepDevice* const first = devices_->front().get();
  RETURN_IF_ERROR(Step([results, first](StepDevice& device) -> absl::Status {
    ASSIGN_OR_RETURN(std::vector<TokenResult> own, device.AwaitOldest());
    if (&device == first) *results = std::move(own);
    return absl::OkStatus();
  }));
  return std::move(*results);
}

// A group that is lost has nothing to wait for: its members are lost, or done with what was aborted.
void StepDeviceGroup::DropSteps() {
  if (!lost_.ok()) return;
  const absl::Status status = Step([](StepDevice& device) {
    device.DropSteps();
    return absl::OkStatus();
  });
  (void)status;  // kept in lost_
}

void StepDeviceGroup::FreePages() {
  (void)Together([](StepDevice& device) {
    device.FreePages();
    return absl::OkStatus();
  });
}

void StepDeviceGroup::FreeWeights() {
  (void)Together([](StepDevice& device) {
    device.FreeWeights();
    return absl::OkStatus();
  });
}

absl::Status StepDeviceGroup::AllocateWeights() {
  return Together([](StepDevice& device) { return device.AllocateWeights(); });
}

absl::Status StepDeviceGroup::AllocatePages() {
  return Together([](StepDevice& device) { return device.AllocatePages(); });
}

}  // namespace warpsmith
