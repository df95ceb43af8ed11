#include "core/distributed/nccl_broadcast_cuda.h"

#include <nccl.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/base/call_within.h"
#include "core/base/status_macros.h"
#include "core/distributed/nccl_environment.h"

namespace warpsmith {
namespace {

// At most so much is one collective: over NVLink it takes longer than the host needs to put the next one on the stream.
constexpr int64_t kChunkBytes = int64_t{256} << 20;
// Collectives on the stream: enough that the device never waits for the host, and so few that no launch waits for room.
constexpr size_t kWindow = 4;
// Neither NCCL's non-blocking mode nor a stream that may never end has something to wait for: both are asked.
constexpr absl::Duration kStateInterval = absl::Microseconds(50);
// For NCCL to give its memory back, and for the kernels of an aborted communicator, which look at once, to end.
constexpr absl::Duration kEndPatience = absl::Seconds(5);
constexpr absl::Duration kKernelsPatience = absl::Seconds(2);

absl::Status CudaStatus(const char* what, cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();
  return absl::InternalError(
      absl::StrCat(what, ": ", cudaGetErrorName(error), ", ", cudaGetErrorString(error)));
}

absl::Status NcclStatus(const char* what, ncclResult_t result, ncclComm_t comm) {
  if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
  const std::string message =
      absl::StrCat(what, ": ", ncclGetErrorString(result), ", ", ncclGetLastError(comm));
  return result == ncclRemoteError ? absl::UnavailableError(message) : absl::InternalError(message);
}

}  // namespace

struct NcclBroadcast::State {
  State(const BroadcastPlace& its_place, int its_device, absl::Time its_deadline,
        std::function<bool()> its_is_given_up)
      : place(its_place),
        device(its_device),
        began(absl::Now()),
        deadline(its_deadline),
        is_given_up(std::move(its_is_given_up)) {}
  ~State();

  absl::Status Open();
  absl::Status Connect();
  // Waits until `is_done` says so; what keeps it waiting is `what`.
  absl::Status Poll(const char* what, absl::FunctionRef<absl::StatusOr<bool>()> is_done);
  absl::Time EndOfWait() const {
    return std::min(deadline, has_met ? absl::Now() + kBroadcastStallMax : deadline);
  }
  absl::Status AwaitIssued(const char* what);
  absl::Status AwaitEvent(cudaEvent_t event);
  absl::Status BringChunk(std::byte* data, int64_t bytes);
  absl::Status Meet();
  absl::Status Late(const char* what) const;
  absl::Status Break(absl::Status status);
  void End();
  void AwaitKernels();

  const BroadcastPlace place;
  const int device;
  const absl::Time began;
  const absl::Time deadline;
  const std::function<bool()> is_given_up;
  const absl::Notification never;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  void* meeting = nullptr;                       // a number that all members add up
  std::array<cudaEvent_t, kWindow> events = {};  // of the last collectives; one that was not recorded is done
  int64_t num_chunks = 0;
  int64_t bytes_issued = 0;
  bool has_met = false;
  bool may_still_write = false;
};

NcclBroadcast::State::~State() {
  End();
  if (may_still_write) return;  // the stream and its events are in use
  cudaSetDevice(device);
  if (meeting != nullptr) cudaFree(meeting);
  for (const cudaEvent_t event : events) {
    if (event != nullptr) cudaEventDestroy(event);
  }
  if (stream != nullptr) cudaStreamDestroy(stream);
}

absl::Status NcclBroadcast::State::Open() {
  RETURN_IF_ERROR(CudaStatus("cudaSetDevice", cudaSetDevice(device)));
  RETURN_IF_ERROR(CudaStatus("cudaStreamCreate", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)));
  RETURN_IF_ERROR(CudaStatus("cudaMalloc", cudaMalloc(&meeting, sizeof(int32_t))));
  for (cudaEvent_t& event : events) {
    RETURN_IF_ERROR(CudaStatus("cudaEventCreate", cudaEventCreateWithFlags(&event, cudaEventDisableTiming)));
  }
  return absl::OkStatus();
}

absl::Status NcclBroadcast::State::Connect() {
  ncclUniqueId id{};
  place.id.copy(id.internal, sizeof(id.internal));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t result = ncclCommInitRankConfig(&comm, place.num_ranks, id, place.rank, &config);
  RETURN_IF_ERROR(NcclStatus("ncclCommInitRankConfig", result, comm));
  if (comm == nullptr) return absl::InternalError("ncclCommInitRankConfig made no communicator");
  RETURN_IF_ERROR(AwaitIssued("the meeting of all members"));
  has_met = true;
  return absl::OkStatus();
}

absl::Status NcclBroadcast::State::Late(const char* what) const {
  const std::string until = absl::Now() >= deadline ? "its deadline"
                                                    : absl::StrCat("nothing had moved for ",
                                                                   absl::FormatDuration(kBroadcastStallMax));
  return absl::DeadlineExceededError(absl::StrCat(
      "Rank ", place.rank, " of ", place.num_ranks, " waited for ", what, " until ", until, ", ",
      absl::FormatDuration(absl::Trunc(absl::Now() - began, absl::Milliseconds(1))), " after it began, with ",
      bytes_issued, " bytes under way: a member did not come, hangs or has died; publish again without it"));
}

absl::Status NcclBroadcast::State::Poll(const char* what, absl::FunctionRef<absl::StatusOr<bool>()> is_done) {
  const absl::Time end = EndOfWait();
  while (true) {
    ncclResult_t state = ncclSuccess;
    RETURN_IF_ERROR(NcclStatus(what, ncclCommGetAsyncError(comm, &state), comm));
    RETURN_IF_ERROR(NcclStatus(what, state, comm));
    if (state == ncclSuccess) {
      ASSIGN_OR_RETURN(const bool done, is_done());
      if (done) return absl::OkStatus();
    }
    if (is_given_up && is_given_up()) return absl::AbortedError(absl::StrCat(what, " was given up"));
    if (absl::Now() >= end) return Late(what);
    never.WaitForNotificationWithTimeout(kStateInterval);
  }
}

absl::Status NcclBroadcast::State::AwaitIssued(const char* what) {
  return Poll(what, [] { return true; });
}

absl::Status NcclBroadcast::State::AwaitEvent(cudaEvent_t event) {
  return Poll("the transfer", [event]() -> absl::StatusOr<bool> {
    const cudaError_t error = cudaEventQuery(event);
    if (error == cudaErrorNotReady) return false;
    RETURN_IF_ERROR(CudaStatus("a broadcast", error));
    return true;
  });
}

absl::Status NcclBroadcast::State::BringChunk(std::byte* data, int64_t bytes) {
  cudaEvent_t const event = events[num_chunks % kWindow];
  RETURN_IF_ERROR(AwaitEvent(event));
  RETURN_IF_ERROR(
      NcclStatus("ncclBroadcast", ncclBroadcast(data, data, bytes, ncclUint8, 0, comm, stream), comm));
  bytes_issued += bytes;
  RETURN_IF_ERROR(AwaitIssued("a collective to begin"));
  ++num_chunks;
  return CudaStatus("cudaEventRecord", cudaEventRecord(event, stream));
}

// A collective that no member ends before all have come to it, and with it to the end of what was brought.
absl::Status NcclBroadcast::State::Meet() {
  cudaEvent_t const last = events[num_chunks % kWindow];  // its former collective comes before this one
  RETURN_IF_ERROR(NcclStatus("ncclAllReduce",
                             ncclAllReduce(meeting, meeting, 1, ncclInt32, ncclMax, comm, stream), comm));
  RETURN_IF_ERROR(AwaitIssued("a collective to begin"));
  RETURN_IF_ERROR(CudaStatus("cudaEventRecord", cudaEventRecord(last, stream)));
  return AwaitEvent(last);
}

// The first error ends all that is under way.
absl::Status NcclBroadcast::State::Break(absl::Status status) {
  if (status.ok() || comm == nullptr) return status;
  End();
  if (num_chunks > 0 || bytes_issued > 0) AwaitKernels();
  return status;
}

// By an abort in any case, for ncclCommDestroy waits for the other processes; on a thread of its own, for it has no
// deadline.
void NcclBroadcast::State::End() {
  if (comm == nullptr) return;
  (void)CallWithin(kEndPatience, [ending = std::exchange(comm, nullptr), on = device] {
    cudaSetDevice(on);
    (void)ncclCommAbort(ending);
  });
}

// After an abort they end soon, with unspecified results.
void NcclBroadcast::State::AwaitKernels() {
  const absl::Time patience = absl::Now() + kKernelsPatience;
  cudaError_t error = cudaStreamQuery(stream);
  while (error == cudaErrorNotReady && absl::Now() < patience) {
    never.WaitForNotificationWithTimeout(kStateInterval);
    error = cudaStreamQuery(stream);
  }
  may_still_write = error != cudaSuccess;
}

absl::StatusOr<std::string> DrawBroadcastId() {
  ncclUniqueId id{};
  static_assert(sizeof(id.internal) == kBroadcastIdBytes);
  RETURN_IF_ERROR(CheckMulticastIsDecided());
  RETURN_IF_ERROR(NcclStatus("ncclGetUniqueId", ncclGetUniqueId(&id), nullptr));
  return std::string(id.internal, sizeof(id.internal));
}

absl::StatusOr<std::unique_ptr<NcclBroadcast>> NcclBroadcast::Join(const BroadcastPlace& place, int device,
                                                                   absl::Time deadline,
                                                                   std::function<bool()> is_given_up) {
  RETURN_IF_ERROR(CheckMulticastIsDecided());
  auto state = std::make_unique<State>(place, device, deadline, std::move(is_given_up));
  RETURN_IF_ERROR(state->Open());
  RETURN_IF_ERROR(state->Break(state->Connect()));
  return std::unique_ptr<NcclBroadcast>(new NcclBroadcast(std::move(state)));
}

NcclBroadcast::NcclBroadcast(std::unique_ptr<State> state) : state_(std::move(state)) {}
NcclBroadcast::~NcclBroadcast() = default;

cudaStream_t NcclBroadcast::stream() const { return state_->stream; }
bool NcclBroadcast::may_still_write() const { return state_->may_still_write; }

absl::Status NcclBroadcast::Bring(void* data, int64_t bytes) {
  auto* const first = static_cast<std::byte*>(data);
  for (int64_t done = 0; done < bytes; done += kChunkBytes) {
    RETURN_IF_ERROR(state_->Break(state_->BringChunk(first + done, std::min(kChunkBytes, bytes - done))));
  }
  return absl::OkStatus();
}

absl::Status NcclBroadcast::EndIfFailed(absl::Status status) { return state_->Break(std::move(status)); }

absl::Status NcclBroadcast::Await() { return state_->Break(state_->Meet()); }

}  // namespace warpsmith
