// NCCL's broadcasts among GPUs that host_gpu.cc makes of the host, for ranks that are threads of a test: non-blocking
// communicators, as far as core/distributed/nccl_broadcast_cuda.cc uses them. A collective has happened once the state
// of its communicator is ncclSuccess again; a rank that does not come keeps the others' in progress, until they abort.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace warpsmith {

int HostGpuCount() { return 4; }

namespace {

// One broadcast of a group, from when its first rank comes until its last has gone.
struct Transfer {
  bool is_meeting = false;  // of all ranks; num_brought are those that have come
  const void* source = nullptr;
  size_t count = 0;
  std::vector<std::pair<int, void*>> waiting;  // receivers by rank
  int num_brought = 0;
};

struct Group {
  explicit Group(int its_size) : size(its_size) {}

  // Brings what can be brought.
  void Advance(Transfer& transfer) {
    if (transfer.source == nullptr) return;
    for (const auto& [rank, to] : transfer.waiting) std::memcpy(to, transfer.source, transfer.count);
    transfer.num_brought += static_cast<int>(transfer.waiting.size());
    transfer.waiting.clear();
  }
  bool IsDone(int64_t index, int rank) {
    const Transfer& transfer = transfers[index];
    if (transfer.is_meeting) return transfer.num_brought == size;
    if (rank == 0) return transfer.num_brought == size - 1;
    return transfer.source != nullptr;
  }
  // A rank that is aborted brings and takes nothing any more: its memory may go.
  void Leave(int rank) {
    for (auto& [index, transfer] : transfers) {
      if (rank == 0) transfer.source = nullptr;
      std::erase_if(transfer.waiting, [rank](const auto& waiting) { return waiting.first == rank; });
    }
  }

  const int size;
  int num_joined = 0;
  std::map<int64_t, Transfer> transfers;
};

absl::Mutex g_mutex;
std::map<std::string, std::shared_ptr<Group>> g_groups;
std::atomic<int> g_num_ids = 0;

}  // namespace
}  // namespace warpsmith

struct ncclComm {
  std::shared_ptr<warpsmith::Group> group;
  int rank = 0;
  int64_t num_issued = 0;
};

using warpsmith::g_groups, warpsmith::g_mutex, warpsmith::Group, warpsmith::Transfer;

extern "C" {

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* copy, cudaStream_t) {
  for (size_t row = 0; row < copy->extent.height; ++row) {
    std::memcpy(static_cast<std::byte*>(copy->dstPtr.ptr) + row * copy->dstPtr.pitch,
                static_cast<const std::byte*>(copy->srcPtr.ptr) + row * copy->srcPtr.pitch,
                copy->extent.width);
  }
  return cudaSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id->internal, 0, sizeof(id->internal));
  const int number = ++warpsmith::g_num_ids;
  std::memcpy(id->internal, &number, sizeof(number));
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t*) {
  absl::MutexLock lock(&g_mutex);
  std::shared_ptr<Group>& group = g_groups[std::string(id.internal, sizeof(id.internal))];
  if (group == nullptr) group = std::make_shared<Group>(size);
  ++group->num_joined;
  *comm = new ncclComm{group, rank};
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  absl::MutexLock lock(&g_mutex);
  Group& group = *comm->group;
  const bool is_done =
      comm->num_issued == 0 ? group.num_joined == group.size : group.IsDone(comm->num_issued - 1, comm->rank);
  *state = is_done ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}
ncclResult_t ncclBroadcast(const void*, void* data, size_t count, ncclDataType_t, int, ncclComm_t comm,
                           cudaStream_t) {
  absl::MutexLock lock(&g_mutex);
  Transfer& transfer = comm->group->transfers[comm->num_issued++];
  if (transfer.count != 0 && transfer.count != count) return ncclInvalidArgument;
  transfer.count = count;
  if (comm->rank == 0) {
    transfer.source = data;
  } else {
    transfer.waiting.emplace_back(comm->rank, data);
  }
  comm->group->Advance(transfer);
  return ncclInProgress;
}
ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t comm,
                           cudaStream_t) {
  absl::MutexLock lock(&g_mutex);
  Transfer& transfer = comm->group->transfers[comm->num_issued++];
  transfer.is_meeting = true;
  ++transfer.num_brought;
  return ncclInProgress;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  absl::MutexLock lock(&g_mutex);
  comm->group->Leave(comm->rank);
  delete comm;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "a fault of the test"; }
const char* ncclGetLastError(ncclComm_t) { return "none"; }

}  // extern "C"
