#include "core/distributed/nccl_communicator.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/distributed/rendezvous_store.h"

namespace warpsmith {
namespace {

constexpr char kUniqueIdKey[] = "nccl/unique_id";

// NCCL's non-blocking mode has no event to wait for: its state is asked for at this interval.
constexpr absl::Duration kStateInterval = absl::Microseconds(50);

absl::Status CudaStatus(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(what, ": ", cudaGetErrorName(error), ", ", cudaGetErrorString(error)));
}

absl::Status NcclStatus(const char* what, ncclResult_t result, ncclComm_t comm) {
  if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
  const std::string message =
      absl::StrCat(what, ": ", ncclGetErrorString(result), ", ", ncclGetLastError(comm));
  return result == ncclRemoteError ? absl::UnavailableError(message) : absl::InternalError(message);
}

ncclDataType_t NcclType(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return ncclFloat32;
    case ElementType::kFloat64:
      return ncclFloat64;
    case ElementType::kInt64:
      return ncclInt64;
  }
  return ncclInt64;
}

// Rank 0 draws the id under which all ranks meet.
absl::StatusOr<ncclUniqueId> AgreeOnUniqueId(int rank, RendezvousStore& store, absl::Duration timeout) {
  ncclUniqueId id;
  if (rank == 0) {
    RETURN_IF_ERROR(NcclStatus("ncclGetUniqueId", ncclGetUniqueId(&id), nullptr));
    RETURN_IF_ERROR(store.Set(kUniqueIdKey, std::string_view(id.internal, sizeof(id.internal))));
    return id;
  }
  ASSIGN_OR_RETURN(const std::string bytes, store.Get(kUniqueIdKey, timeout));
  if (bytes.size() != sizeof(id.internal)) return absl::InternalError("the store holds a malformed NCCL id");
  bytes.copy(id.internal, sizeof(id.internal));
  return id;
}

}  // namespace

struct NcclCommunicator::State {
  ~State() {
    if (comm != nullptr && !aborted.exchange(true)) ncclCommAbort(comm);
    if (barrier_byte != nullptr) cudaFree(barrier_byte);
    if (stream != nullptr) cudaStreamDestroy(stream);
  }

  // Waits until the last call to NCCL has been taken up, at most until `deadline`.
  absl::Status AwaitIssued(const char* what, ncclResult_t result, absl::Time deadline) {
    RETURN_IF_ERROR(NcclStatus(what, result, comm));
    ncclResult_t state = result;
    while (state == ncclInProgress) {
      if (interrupted.WaitForNotificationWithTimeout(kStateInterval))
        return absl::AbortedError("interrupted");
      if (absl::Now() > deadline)
        return absl::DeadlineExceededError(absl::StrCat(what, " is still in progress"));
      RETURN_IF_ERROR(NcclStatus(what, ncclCommGetAsyncError(comm, &state), comm));
      RETURN_IF_ERROR(NcclStatus(what, state, comm));
    }
    return absl::OkStatus();
  }

  // Waits until the collective just issued is done on the device. The watchdog bounds it: aborting ends its
  // kernels.
  absl::Status Finish(const char* what, ncclResult_t result) {
    RETURN_IF_ERROR(AwaitIssued(what, result, absl::InfiniteFuture()));
    RETURN_IF_ERROR(CudaStatus(what, cudaStreamSynchronize(stream)));
    if (aborted.load()) return absl::AbortedError("interrupted");
    ncclResult_t state = ncclSuccess;
    RETURN_IF_ERROR(NcclStatus(what, ncclCommGetAsyncError(comm, &state), comm));
    return NcclStatus(what, state, comm);
  }

  std::unique_ptr<RendezvousStore> store;  // served by rank 0 where no agent does
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  void* barrier_byte = nullptr;  // of the device
  std::atomic<bool> aborted = false;
  absl::Notification interrupted;
};

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::Create(
    const ProcessGroupEnvironment& environment, const CommunicatorOptions& options) {
  const absl::Time deadline = absl::Now() + options.deadline;
  auto state = std::make_unique<State>();
  RETURN_IF_ERROR(CudaStatus("cudaSetDevice", cudaSetDevice(environment.local_rank)));
  RETURN_IF_ERROR(
      CudaStatus("cudaStreamCreate", cudaStreamCreateWithFlags(&state->stream, cudaStreamNonBlocking)));
  RETURN_IF_ERROR(CudaStatus("cudaMalloc", cudaMalloc(&state->barrier_byte, sizeof(int64_t))));
  ncclUniqueId id;
  if (environment.world_size > 1) {
    ASSIGN_OR_RETURN(state->store, RendezvousStore::Connect(environment, options.deadline));
    ASSIGN_OR_RETURN(id, AgreeOnUniqueId(environment.rank, *state->store, options.deadline));
  } else {
    RETURN_IF_ERROR(NcclStatus("ncclGetUniqueId", ncclGetUniqueId(&id), nullptr));
  }
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t result =
      ncclCommInitRankConfig(&state->comm, environment.world_size, id, environment.rank, &config);
  RETURN_IF_ERROR(state->AwaitIssued("ncclCommInitRankConfig", result, deadline));
  return std::unique_ptr<NcclCommunicator>(new NcclCommunicator(environment, options, std::move(state)));
}

NcclCommunicator::NcclCommunicator(const ProcessGroupEnvironment& environment,
                                   const CommunicatorOptions& options, std::unique_ptr<State> state)
    : Communicator(environment.rank, environment.world_size, options), state_(std::move(state)) {}

NcclCommunicator::~NcclCommunicator() { StopWatchdog(); }

absl::Status NcclCommunicator::DoAllReduceSum(void* data, int64_t count, ElementType type) {
  return state_->Finish("ncclAllReduce", ncclAllReduce(data, data, count, NcclType(type), ncclSum,
                                                       state_->comm, state_->stream));
}

absl::Status NcclCommunicator::DoBroadcast(void* data, int64_t num_bytes, int root) {
  return state_->Finish("ncclBroadcast",
                        ncclBroadcast(data, data, num_bytes, ncclUint8, root, state_->comm, state_->stream));
}

absl::Status NcclCommunicator::DoAllGather(const void* send, void* receive, int64_t num_bytes) {
  return state_->Finish("ncclAllGather",
                        ncclAllGather(send, receive, num_bytes, ncclUint8, state_->comm, state_->stream));
}

absl::Status NcclCommunicator::DoBarrier() {
  return state_->Finish("barrier", ncclAllReduce(state_->barrier_byte, state_->barrier_byte, 1, ncclInt64,
                                                 ncclSum, state_->comm, state_->stream));
}

void NcclCommunicator::Interrupt() {
  state_->interrupted.Notify();
  if (!state_->aborted.exchange(true)) ncclCommAbort(state_->comm);
}

}  // namespace warpsmith
