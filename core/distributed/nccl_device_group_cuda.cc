#include "core/distributed/nccl_device_group_cuda.h"

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "core/base/status_macros.h"
#include "core/distributed/abortable_handle.h"
#include "core/distributed/nccl_environment.h"

namespace warpsmith {
namespace {

absl::Status CudaStatus(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  return absl::InternalError(
      absl::StrCat(what, ": ", cudaGetErrorName(error), ", ", cudaGetErrorString(error)));
}

absl::Status NcclStatus(const char* what, ncclResult_t result) {
  if (result == ncclSuccess) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(what, ": ", ncclGetErrorString(result), ", ", ncclGetLastError(nullptr)));
}

absl::Status CheckPair(int a, int b) {
  if (a == b) {
    return absl::InvalidArgumentError(
        absl::StrCat("GPU ", a, " is named twice: name each GPU of a group once"));
  }
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    int can_reach = 0;
    RETURN_IF_ERROR(CudaStatus("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&can_reach, from, to)));
    if (can_reach != 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("GPU ", from, " cannot reach the memory of GPU ", to,
                     ": name GPUs that NVLink or one PCIe root joins (nvidia-smi topo -m), or allow peer "
                     "access to the process"));
  }
  return absl::OkStatus();
}

absl::Status CheckDevices(const std::vector<int>& devices) {
  if (devices.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat("a group of ", devices.size(), " GPU: name at least two"));
  }
  int count = 0;
  RETURN_IF_ERROR(CudaStatus("cudaGetDeviceCount", cudaGetDeviceCount(&count)));
  for (const int device : devices) {
    if (device >= 0 && device < count) continue;
    return absl::FailedPreconditionError(absl::StrCat("there is no GPU ", device, ", for there are ", count,
                                                      ": name them from 0 to ", count - 1));
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    for (size_t j = 0; j < i; ++j) RETURN_IF_ERROR(CheckPair(devices[j], devices[i]));
  }
  return absl::OkStatus();
}

// Frees what it has when it goes.
struct RankMemory {
  int device = 0;
  void* memory = nullptr;
  cudaStream_t stream = nullptr;

  ~RankMemory() {
    cudaSetDevice(device);
    if (stream != nullptr) cudaStreamDestroy(stream);
    if (memory != nullptr) cudaFree(memory);
  }
};

constexpr int64_t kFirstBytes = 1024;  // of a rank
// For aborts to free what they can, before the process ends.
constexpr absl::Duration kAbortPatience = absl::Seconds(5);

// So that no later collective is the first to connect, which a capture may not do.
absl::Status RunOnce(const std::vector<int>& devices, const std::vector<ncclComm_t>& comms) {
  std::vector<RankMemory> ranks(devices.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].device = devices[i];
    RETURN_IF_ERROR(CudaStatus("cudaSetDevice", cudaSetDevice(devices[i])));
    RETURN_IF_ERROR(
        CudaStatus("cudaStreamCreate", cudaStreamCreateWithFlags(&ranks[i].stream, cudaStreamNonBlocking)));
    RETURN_IF_ERROR(
        CudaStatus("cudaMalloc", cudaMalloc(&ranks[i].memory, kFirstBytes * std::ssize(devices))));
  }
  RETURN_IF_ERROR(NcclStatus("ncclGroupStart", ncclGroupStart()));
  ncclResult_t first = ncclSuccess;
  const auto keep = [&first](ncclResult_t result) {
    if (first == ncclSuccess) first = result;
  };
  for (size_t i = 0; i < ranks.size(); ++i) {
    auto* const all = static_cast<std::byte*>(ranks[i].memory);
    keep(ncclAllGather(all + i * kFirstBytes, all, kFirstBytes, ncclUint8, comms[i], ranks[i].stream));
    keep(ncclBroadcast(all, all, kFirstBytes, ncclUint8, 0, comms[i], ranks[i].stream));
  }
  const ncclResult_t ended = ncclGroupEnd();
  RETURN_IF_ERROR(NcclStatus("the first collectives", first == ncclSuccess ? ended : first));
  for (const RankMemory& rank : ranks) {
    RETURN_IF_ERROR(CudaStatus("the first collectives", cudaStreamSynchronize(rank.stream)));
  }
  return absl::OkStatus();
}

// What a thread of its own connects, for NCCL's own waits have no end.
struct Connecting {
  std::vector<ncclComm_t> comms;
  absl::Status status;
  absl::Notification done;
};

void Connect(const std::vector<int>& devices, Connecting& connecting) {
  std::vector<ncclComm_t> comms(devices.size());
  connecting.status = NcclStatus(
      "ncclCommInitAll", ncclCommInitAll(comms.data(), static_cast<int>(comms.size()), devices.data()));
  if (connecting.status.ok()) {
    connecting.comms = comms;
    connecting.status = RunOnce(devices, comms);
  }
  connecting.done.Notify();
}

}  // namespace

struct NcclDeviceGroup::State {
  explicit State(const std::vector<ncclComm_t>& comms) {
    for (ncclComm_t comm : comms) {
      ranks.push_back(std::make_unique<AbortableHandle<ncclComm_t>>(comm, [this](ncclComm_t handle) {
        (void)(is_broken ? ncclCommAbort(handle) : ncclCommDestroy(handle));
      }));
    }
  }

  absl::Status CheckWhole() const {
    return is_broken ? absl::AbortedError("the group of GPUs was aborted") : absl::OkStatus();
  }

  std::atomic<bool> is_broken = false;
  absl::Mutex mutex;
  int num_aborting ABSL_GUARDED_BY(mutex) = 0;
  std::vector<std::unique_ptr<AbortableHandle<ncclComm_t>>> ranks;
};

absl::StatusOr<std::shared_ptr<NcclDeviceGroup>> NcclDeviceGroup::Create(const std::vector<int>& devices,
                                                                         absl::Duration timeout) {
  RETURN_IF_ERROR(CheckDevices(devices));
  RETURN_IF_ERROR(CheckMulticastIsDecided());
  const auto connecting = std::make_shared<Connecting>();
  std::thread([devices, connecting] { Connect(devices, *connecting); }).detach();
  if (!connecting->done.WaitForNotificationWithTimeout(timeout)) {
    return absl::DeadlineExceededError(absl::StrCat("GPUs ", absl::StrJoin(devices, ","),
                                                    " did not connect within ", absl::FormatDuration(timeout),
                                                    ": NCCL_DEBUG=INFO says where NCCL waits"));
  }
  auto state = std::make_shared<State>(connecting->comms);  // also to end what was connected before an error
  if (!connecting->status.ok()) {
    state->is_broken = true;
    return connecting->status;
  }
  return std::shared_ptr<NcclDeviceGroup>(new NcclDeviceGroup(std::move(state)));
}

NcclDeviceGroup::NcclDeviceGroup(std::shared_ptr<State> state) : state_(std::move(state)) {}
NcclDeviceGroup::~NcclDeviceGroup() {
  absl::MutexLock lock(&state_->mutex);
  const auto are_done = [this]()
                            ABSL_SHARED_LOCKS_REQUIRED(state_->mutex) { return state_->num_aborting == 0; };
  state_->mutex.AwaitWithTimeout(absl::Condition(&are_done), kAbortPatience);
}

int NcclDeviceGroup::size() const { return static_cast<int>(state_->ranks.size()); }

absl::Status NcclDeviceGroup::AllGather(int rank, void* all, int64_t bytes, cudaStream_t stream) {
  RETURN_IF_ERROR(state_->CheckWhole());
  return state_->ranks.at(rank)->Use([&](ncclComm_t comm) {
    const auto* const own = static_cast<const std::byte*>(all) + rank * bytes;
    return NcclStatus("ncclAllGather", ncclAllGather(own, all, bytes, ncclUint8, comm, stream));
  });
}

absl::Status NcclDeviceGroup::BroadcastFirst(int rank, void* data, int64_t bytes, cudaStream_t stream) {
  RETURN_IF_ERROR(state_->CheckWhole());
  return state_->ranks.at(rank)->Use([&](ncclComm_t comm) {
    return NcclStatus("ncclBroadcast", ncclBroadcast(data, data, bytes, ncclUint8, 0, comm, stream));
  });
}

// A thread a rank: one whose handle is in use, by a launch that waits for a full queue say, must not keep the others,
// and NCCL waits for graphs.
void NcclDeviceGroup::Abort() {
  if (state_->is_broken.exchange(true)) return;
  absl::MutexLock lock(&state_->mutex);
  state_->num_aborting = size();
  for (int rank = 0; rank < size(); ++rank) {
    std::thread([state = state_, rank] {
      state->ranks[rank]->Abort();
      absl::MutexLock lock(&state->mutex);
      --state->num_aborting;
    }).detach();
  }
}

}  // namespace warpsmith
