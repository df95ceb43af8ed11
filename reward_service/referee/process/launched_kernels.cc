#include "reward_service/referee/process/launched_kernels.h"

#include <algorithm>
#include <cstdint>

#include "core/base/kernel_name.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/launch_messages.h"
#include "reward_service/referee/process/jail.h"

namespace warpsmith {
namespace {

// Nothing is added where the list is not one of three extents.
void ReadExtents(const nlohmann::json& kernel, const ListField& field,
                 google::protobuf::RepeatedField<int32_t>* extents) {
  const nlohmann::json* const list = Find(kernel, field);
  if (list == nullptr || list->size() != field.num_max) return;
  for (const nlohmann::json& extent : *list) {
    const int64_t value = extent.is_number_integer() ? extent.get<int64_t>() : 0;
    extents->Add(value >= 0 && value <= INT32_MAX ? static_cast<int32_t>(value) : 0);
  }
}

v1::KernelRun ReadKernel(const nlohmann::json& kernel) {
  using jail::LaunchedKernel;
  v1::KernelRun run;
  run.set_name(Escape(Read(kernel, LaunchedKernel::name), kKernelNameBytesMax));
  ReadExtents(kernel, LaunchedKernel::grid, run.mutable_grid());
  ReadExtents(kernel, LaunchedKernel::block, run.mutable_block());
  run.set_registers(static_cast<int32_t>(Read(kernel, LaunchedKernel::registers)));
  run.set_shared_bytes(static_cast<int32_t>(Read(kernel, LaunchedKernel::shared_bytes)));
  run.set_num_launches(static_cast<int32_t>(Read(kernel, LaunchedKernel::num_launches)));
  run.set_us(Read(kernel, LaunchedKernel::us));
  return run;
}

}  // namespace

v1::Profile ReadLaunches(const nlohmann::json& profiled) {
  v1::Profile profile;
  int64_t num_launches = 0;
  if (const nlohmann::json* const kernels = Find(profiled, jail::Profiled::kernels); kernels != nullptr) {
    for (const nlohmann::json& kernel : *kernels) {
      if (!kernel.is_object()) continue;
      *profile.add_kernels() = ReadKernel(kernel);
      num_launches += profile.kernels().rbegin()->num_launches();
    }
  }
  std::stable_sort(
      profile.mutable_kernels()->begin(), profile.mutable_kernels()->end(),
      [](const v1::KernelRun& left, const v1::KernelRun& right) { return left.us() > right.us(); });
  num_launches = std::max(num_launches, Read(profiled, jail::Profiled::num_launches));
  profile.set_num_launches(static_cast<int32_t>(std::min<int64_t>(num_launches, INT32_MAX)));
  return profile;
}

absl::StatusOr<v1::Profile> Jail::Profile(const Draw& draw) {
  Load(draw);
  RETURN_IF_ERROR(buffers_.store->GiveLateWords().status());
  CloseForeign();
  buffers_.store->Settle();
  const auto request =
      Make<jail::Profile>({{jail::Profile::slot, slot_}, {jail::Profile::room, rooms_.front()}});
  ASSIGN_OR_RETURN(const TimedAnswer timed,
                   process_->AskOnTheClock(request, absl::Seconds(limits_.call_seconds_max)));
  RETURN_IF_ERROR(buffers_.store->AwaitDone(limits_.call_seconds_max).status());
  if (!Is<jail::Profiled>(timed.answer.fields))
    return absl::FailedPreconditionError(FaultOfAnswer(timed.answer).reason);
  return ReadLaunches(timed.answer.fields);
}

}  // namespace warpsmith
