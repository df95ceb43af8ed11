#include "rollout_workers/device/step_device_group_cuda.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/distributed/nccl_device_group_cuda.h"
#include "core/model/tensor_shard.h"
#include "rollout_workers/device/rank_threads.h"
#include "rollout_workers/device/step_device_group.h"

namespace warpsmith::device {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Minutes(2);
// Products are measured, and memory is cleared.
constexpr absl::Duration kCreateTimeout = absl::Minutes(10);
// For graphs to be captured.
constexpr absl::Duration kMeetTimeout = absl::Seconds(20);

CudaStepOptions OfMember(const CudaStepOptions& options, int rank) {
  CudaStepOptions own = options;
  own.devices = {options.devices.at(rank)};
  return own;
}

absl::Status Named(const RankOutcome& outcome, const std::vector<int>& devices) {
  if (outcome.status.ok()) return outcome.status;
  return absl::Status(outcome.status.code(), absl::StrCat("cuda:", devices.at(outcome.rank), ": ",
                                                          std::string(outcome.status.message())));
}

// What `make(rank)` gives, a thread a GPU.
template <typename T>
absl::StatusOr<std::vector<T>> OnEach(const std::vector<int>& devices,
                                      std::function<absl::StatusOr<T>(int rank)> make) {
  const auto made = std::make_shared<std::vector<T>>(devices.size());
  RankThreads threads(static_cast<int>(devices.size()));
  const auto work = [made, make = std::move(make)](int rank) -> absl::Status {
    ASSIGN_OR_RETURN((*made)[rank], make(rank));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(Named(threads.Run(work, kCreateTimeout), devices));
  return std::move(*made);
}

StepPeers PeersOf(const std::shared_ptr<NcclDeviceGroup>& group, const std::shared_ptr<RankMeeting>& meeting,
                  int rank, int sequences_max) {
  constexpr auto kTokenBytes = static_cast<int64_t>(sizeof(int32_t));
  return {.samples = rank == 0,
          .exchange = [group, rank](
                          std::byte* partials, int64_t bytes,
                          cudaStream_t stream) { return group->AllGather(rank, partials, bytes, stream); },
          .share_tokens =
              [group, rank, bytes = (sequences_max + 1) * kTokenBytes](int32_t* last_tokens,
                                                                       cudaStream_t stream) {
                return group->BroadcastFirst(rank, last_tokens, bytes, stream);
              },
          .meet = [meeting] { meeting->Meet(kMeetTimeout); }};
}

// A thread of its own bounds what has no deadline, as for the GPUs of a group.
absl::StatusOr<std::unique_ptr<StepDevice>> OpenOne(const ModelConfig& config,
                                                    const CudaStepOptions& options) {
  using Device = std::unique_ptr<CudaStepDevice>;
  ASSIGN_OR_RETURN(std::vector<Device> made, OnEach<Device>(options.devices, [config, options](int) {
                     return CudaStepDevice::Create(config, options);
                   }));
  std::vector<StepDeviceGroup::Member> members;
  members.push_back({CudaName(options.devices), std::move(made.front())});
  return std::make_unique<StepDeviceGroup>(std::move(members), nullptr, options.step_timeout);
}

}  // namespace

absl::StatusOr<CudaStepMembers> OpenCudaStepMembers(const ModelConfig& config,
                                                    const CudaStepOptions& options) {
  const int count = static_cast<int>(options.devices.size());
  RETURN_IF_ERROR(CheckTensorShard(config, {0, count}));
  ASSIGN_OR_RETURN(const std::shared_ptr<NcclDeviceGroup> group,
                   NcclDeviceGroup::Create(options.devices, kConnectTimeout));
  CudaStepOptions sized = options;
  if (options.num_pages == 0) {
    ASSIGN_OR_RETURN(const std::vector<int> pages,
                     OnEach<int>(options.devices, [config, options, count](int rank) {
                       return FindPages(config, OfMember(options, rank), {rank, count});
                     }));
    sized.num_pages = *std::min_element(pages.begin(), pages.end());
  }
  const auto meeting = std::make_shared<RankMeeting>(count);
  using Device = std::unique_ptr<CudaStepDevice>;
  CudaStepMembers members;
  ASSIGN_OR_RETURN(members.devices,
                   OnEach<Device>(options.devices, [config, sized, group, meeting, count](int rank) {
                     return CudaStepDevice::Create(
                         config, OfMember(sized, rank),
                         StepShard{{rank, count}, PeersOf(group, meeting, rank, sized.sequences_max)});
                   }));
  members.abort = [group] { group->Abort(); };
  return members;
}

absl::StatusOr<std::unique_ptr<StepDevice>> OpenCudaStepGroup(const ModelConfig& config,
                                                              const CudaStepOptions& options) {
  if (options.devices.size() == 1) return OpenOne(config, options);
  ASSIGN_OR_RETURN(CudaStepMembers members, OpenCudaStepMembers(config, options));
  std::vector<StepDeviceGroup::Member> devices;
  for (size_t i = 0; i < members.devices.size(); ++i) {
    devices.push_back({absl::StrCat("cuda:", options.devices[i]), std::move(members.devices[i])});
  }
  return std::make_unique<StepDeviceGroup>(std::move(devices), std::move(members.abort),
                                           options.step_timeout);
}

}  // namespace warpsmith::device
