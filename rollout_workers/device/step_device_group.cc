#include "rollout_workers/device/step_device_group.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace warpsmith::device {
namespace {

// Of what reads files, which may come over a network; a member's waits for its device in between have their own ends.
constexpr absl::Duration kReadTimeout = absl::Hours(2);

}  // namespace

StepDeviceGroup::StepDeviceGroup(std::vector<Member> members, std::function<void()> abort,
                                 absl::Duration step_timeout, absl::Duration beyond)
    : devices_(std::make_shared<std::vector<std::unique_ptr<StepDevice>>>()),
      abort_(std::move(abort)),
      step_timeout_(step_timeout),
      beyond_(beyond),
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
  if (outcome.status.ok() || names_.size() == 1) return outcome.status;
  return absl::Status(outcome.status.code(),
                      absl::StrCat(names_.at(outcome.rank), ": ", std::string(outcome.status.message())));
}

// Beyond so many waits of a member for its device.
absl::Duration StepDeviceGroup::BeyondSteps(int num_steps) const {
  return num_steps * step_timeout_ + beyond_;
}

absl::Status StepDeviceGroup::Together(Work work, absl::Duration timeout) {
  RETURN_IF_ERROR(lost_);
  const absl::Status status = Named(threads_.Run(
      [devices = devices_, work = std::move(work)](int rank) { return work(*devices->at(rank)); }, timeout));
  if (status.ok()) return status;
  const bool member_is_lost =
      !threads_.is_stuck() && std::any_of(devices_->begin(), devices_->end(),
                                          [](const auto& device) { return !device->lost().ok(); });
  return threads_.is_stuck() || member_is_lost ? Lose(status) : status;
}

absl::Status StepDeviceGroup::Lose(const absl::Status& status) {
  const bool is_one = names_.size() == 1;
  if (is_one && !threads_.is_stuck()) return lost_ = devices_->front()->lost();
  const std::string what = is_one ? names_.front() : "The group of GPUs";
  lost_ = absl::Status(
      status.code(),
      absl::StrCat(what, " is lost to this process, start it again: ", std::string(status.message())));
  return lost_;
}

// Of a step: what fails on one member is over for all.
absl::Status StepDeviceGroup::Step(Work work) {
  RETURN_IF_ERROR(lost_);
  if (abort_ == nullptr) return Together(std::move(work), BeyondSteps(1));
  const RankOutcome outcome = threads_.Run(
      [devices = devices_, work = std::move(work)](int rank) { return work(*devices->at(rank)); },
      BeyondSteps(1), abort_);
  return outcome.status.ok() ? outcome.status : Lose(Named(outcome));
}

absl::Status StepDeviceGroup::LoadHuggingFace(const std::filesystem::path& directory) {
  return Together([directory](StepDevice& device) { return device.LoadHuggingFace(directory); },
                  kReadTimeout);
}

absl::Status StepDeviceGroup::SetParameters(const Parameters& parameters) {
  return Together([&parameters](StepDevice& device) { return device.SetParameters(parameters); },
                  kReadTimeout);
}

absl::Status StepDeviceGroup::FillRandom(uint64_t seed) {
  return Together([seed](StepDevice& device) { return device.FillRandom(seed); }, BeyondSteps(2));
}

// The copy, then the check.
absl::Status StepDeviceGroup::TakeWeights(WeightSource& source) {
  return Together([&source](StepDevice& device) { return device.TakeWeights(source); }, BeyondSteps(2));
}

absl::Status StepDeviceGroup::Launch(const paged::StepPlan& plan) {
  // A copy, for a thread that is not back in time.
  return Step([plan = std::make_shared<const paged::StepPlan>(plan)](StepDevice& device) {
    return device.Launch(*plan);
  });
}

absl::StatusOr<std::vector<paged::TokenResult>> StepDeviceGroup::AwaitOldest() {
  const auto results = std::make_shared<std::vector<paged::TokenResult>>();
  StepDevice* const first = devices_->front().get();
  RETURN_IF_ERROR(Step([results, first](StepDevice& device) -> absl::Status {
    ASSIGN_OR_RETURN(std::vector<paged::TokenResult> own, device.AwaitOldest());
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
  (void)Together(
      [](StepDevice& device) {
        device.FreePages();
        return absl::OkStatus();
      },
      BeyondSteps(1));
}

void StepDeviceGroup::FreeWeights() {
  (void)Together(
      [](StepDevice& device) {
        device.FreeWeights();
        return absl::OkStatus();
      },
      BeyondSteps(1));
}

absl::Status StepDeviceGroup::AllocateWeights() {
  return Together([](StepDevice& device) { return device.AllocateWeights(); }, BeyondSteps(1));
}

absl::Status StepDeviceGroup::AllocatePages() {
  return Together([](StepDevice& device) { return device.AllocatePages(); }, BeyondSteps(1));
}

}  // namespace warpsmith::device
