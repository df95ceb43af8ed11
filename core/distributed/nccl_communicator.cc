#include "core/distributed/nccl_communicator.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/distributed/abortable_handle.h"

namespace warpsmith {
namespace {

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
absl::StatusOr<ncclUniqueId> AgreeOnUniqueId(ControlPlane& control) {
  ncclUniqueId id{};
  if (control.rank() == 0) {
    RETURN_IF_ERROR(NcclStatus("ncclGetUniqueId", ncclGetUniqueId(&id), nullptr));
  }
  ASSIGN_OR_RETURN(const std::string bytes,
                   control.Broadcast(std::string(id.internal, sizeof(id.internal)), "NCCL id"));
  if (bytes.size() != sizeof(id.internal)) return absl::InternalError("rank 0 sent a malformed NCCL id");
  bytes.copy(id.internal, sizeof(id.internal));
  return id;
}

struct StreamDeleter {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, StreamDeleter>;

struct DeviceMemoryDeleter {
  void operator()(void* memory) const { cudaFree(memory); }
};
using DeviceMemory = std::unique_ptr<void, DeviceMemoryDeleter>;

absl::StatusOr<Stream> MakeStream() {
  cudaStream_t stream = nullptr;
  RETURN_IF_ERROR(CudaStatus("cudaStreamCreate", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)));
  return Stream(stream);
}

absl::StatusOr<DeviceMemory> Allocate(size_t num_bytes) {
  void* memory = nullptr;
  RETURN_IF_ERROR(CudaStatus("cudaMalloc", cudaMalloc(&memory, num_bytes)));
  return DeviceMemory(memory);
}

class NcclBackend : public CollectiveBackend {
 public:
  NcclBackend(Stream stream, DeviceMemory barrier_number, ncclComm_t comm)
      : stream_(std::move(stream)), barrier_number_(std::move(barrier_number)), comm_(comm, ncclCommAbort) {}

  absl::Status AllReduceSum(void* data, int64_t count, ElementType type, int64_t /*sequence*/) override {
    return Run("ncclAllReduce", [&](ncclComm_t comm) {
      return ncclAllReduce(data, data, count, NcclType(type), ncclSum, comm, stream_.get());
    });
  }

  absl::Status Broadcast(void* data, int64_t num_bytes, int root, int64_t /*sequence*/) override {
    return Run("ncclBroadcast", [&](ncclComm_t comm) {
      return ncclBroadcast(data, data, num_bytes, ncclUint8, root, comm, stream_.get());
    });
  }

  absl::Status AllGather(const void* send, void* receive, int64_t num_bytes, int64_t /*sequence*/) override {
    return Run("ncclAllGather", [&](ncclComm_t comm) {
      return ncclAllGather(send, receive, num_bytes, ncclUint8, comm, stream_.get());
    });
  }

  absl::Status Barrier(int64_t /*sequence*/) override {
    return Run("barrier", [&](ncclComm_t comm) {
      void* number = barrier_number_.get();
      return ncclAllReduce(number, number, 1, ncclInt64, ncclSum, comm, stream_.get());
    });
  }

  void Interrupt() override {
    interrupted_.Notify();
    comm_.Abort();
  }

  // Waits until the last call to NCCL has been taken up, at most until `deadline`.
  absl::Status AwaitIssued(const char* what, absl::Time deadline) {
    while (true) {
      ncclResult_t state = ncclSuccess;
      RETURN_IF_ERROR(AsyncState(what, state));
      if (state == ncclSuccess) return absl::OkStatus();
      if (interrupted_.WaitForNotificationWithTimeout(kStateInterval)) {
        return absl::AbortedError("interrupted");
      }
      if (absl::Now() > deadline) {
        return absl::DeadlineExceededError(absl::StrCat(what, " is still in progress"));
      }
    }
  }

 private:
  // ncclSuccess or ncclInProgress, else an error.
  absl::Status AsyncState(const char* what, ncclResult_t& state) {
    return comm_.Use([&](ncclComm_t comm) -> absl::Status {
      RETURN_IF_ERROR(NcclStatus(what, ncclCommGetAsyncError(comm, &state), comm));
      return NcclStatus(what, state, comm);
    });
  }

  // Issues a collective and waits until it is done on the device. The watchdog bounds it: aborting ends its
  // kernels.
  absl::Status Run(const char* what, absl::FunctionRef<ncclResult_t(ncclComm_t)> issue) {
    RETURN_IF_ERROR(comm_.Use([&](ncclComm_t comm) { return NcclStatus(what, issue(comm), comm); }));
    RETURN_IF_ERROR(AwaitIssued(what, absl::InfiniteFuture()));
    RETURN_IF_ERROR(CudaStatus(what, cudaStreamSynchronize(stream_.get())));
    ncclResult_t state = ncclSuccess;
    return AsyncState(what, state);
  }

  const Stream stream_;
  const DeviceMemory barrier_number_;
  absl::Notification interrupted_;
  AbortableHandle<ncclComm_t> comm_;  // the last: aborting it ends the kernels on the stream
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateNcclCommunicator(
    const ProcessGroupEnvironment& environment, ControlPlane* control, const CommunicatorOptions& options) {
  const absl::Time deadline = absl::Now() + options.meeting_timeout;
  RETURN_IF_ERROR(CudaStatus("cudaSetDevice", cudaSetDevice(environment.local_rank)));
  ASSIGN_OR_RETURN(Stream stream, MakeStream());
  ASSIGN_OR_RETURN(DeviceMemory barrier_number, Allocate(sizeof(int64_t)));
  ASSIGN_OR_RETURN(const ncclUniqueId id, AgreeOnUniqueId(*control));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  const ncclResult_t result = ncclCommInitRankConfig(&comm, control->size(), id, control->rank(), &config);
  if (comm == nullptr) {
    RETURN_IF_ERROR(NcclStatus("ncclCommInitRankConfig", result, nullptr));
    return absl::InternalError("ncclCommInitRankConfig made no communicator");
  }
  auto backend = std::make_unique<NcclBackend>(std::move(stream), std::move(barrier_number), comm);
  RETURN_IF_ERROR(NcclStatus("ncclCommInitRankConfig", result, comm));
  RETURN_IF_ERROR(backend->AwaitIssued("ncclCommInitRankConfig", deadline));
  return std::make_unique<Communicator>(control, options, std::move(backend));
}

}  // namespace warpsmith
