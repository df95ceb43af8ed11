// Four GPUs made of the host, beside host_gpu.cc: what steps take of CUDA's runtime beyond a decoder, and NCCL among
// threads. A collective has happened when its call returns, so each rank needs a thread, as on GPUs its own launches.
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "core/kernels/page_copy_cuda.h"
#include "core/kernels/token_sampling_cuda.h"
#include "core/kernels/top_tokens_cuda.h"
#include "tests/support/host_gpu_faults.h"
#include "tests/support/host_graph.h"

namespace warpsmith {

int HostGpuCount() { return 4; }

cudaError_t LaunchTokenSamples(const TokenSamples& samples, cudaStream_t, KernelStart) {
  if (IsRecorded([=] { return LaunchTokenSamples(samples, nullptr); })) return cudaSuccess;
  TokenSamplesReference(samples);
  return cudaSuccess;
}

cudaError_t LaunchTopTokens(const TopTokens& top, cudaStream_t) {
  TopTokensReference(top);
  return cudaSuccess;
}

cudaError_t LaunchPageCopies(const PageCopies<__nv_bfloat16>& copies, cudaStream_t) {
  for (int64_t plane = 0; plane < copies.num_planes; ++plane) {
    for (int64_t i = 0; i < copies.num_copies; ++i) {
      const PageToCopy& copy = copies.copies[i];
      std::copy_n(copies.pages + PageOffset(copies, plane, copy.source), copy.num_tokens * copies.entry_size,
                  copies.pages + PageOffset(copies, plane, copy.destination));
    }
  }
  return cudaSuccess;
}

namespace {

thread_local int g_group_depth = 0;

// Where the ranks of a communicator meet: twice a collective, before what they read and behind it.
struct Clique {
  explicit Clique(int size) : buffers(size) {}

  // False once it is aborted.
  bool Meet(int rank, std::byte* buffer) {
    absl::MutexLock lock(&mutex);
    if (buffer != nullptr) buffers[rank] = buffer;
    const int64_t before = meetings;
    if (++num_waiting == static_cast<int>(buffers.size())) {
      num_waiting = 0;
      ++meetings;
    }
    const auto is_over = [&] { return meetings > before || is_aborted; };
    mutex.Await(absl::Condition(&is_over));
    return meetings > before;
  }

  absl::Mutex mutex;
  std::vector<std::byte*> buffers;
  int num_waiting = 0;
  int64_t meetings = 0;
  bool is_aborted = false;
};

}  // namespace
}  // namespace warpsmith

struct ncclComm {
  std::shared_ptr<warpsmith::Clique> clique;
  int rank = 0;
  int64_t num_gathers = 0;
};

using warpsmith::Clique, warpsmith::HostGraph, warpsmith::IsRecorded;

extern "C" {

cudaError_t cudaDeviceCanAccessPeer(int* can_reach, int, int) {
  *can_reach = warpsmith::HostFaults().are_apart ? 0 : 1;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  warpsmith::CapturedGraph() = new HostGraph;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  *graph = reinterpret_cast<cudaGraph_t>(std::exchange(warpsmith::CapturedGraph(), nullptr));
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = reinterpret_cast<cudaGraphExec_t>(new HostGraph(*reinterpret_cast<HostGraph*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t) {
  for (const auto& launch : *reinterpret_cast<HostGraph*>(executable)) {
    if (!launch()) return cudaErrorUnknown;
  }
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<HostGraph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return cudaGraphDestroy(reinterpret_cast<cudaGraph_t>(executable));
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int size, const int*) {
  const auto clique = std::make_shared<Clique>(size);
  for (int rank = 0; rank < size; ++rank) comms[rank] = new ncclComm{clique, rank};
  return ncclSuccess;
}
// Collectives within a group are of one thread: they have nothing to bring here.
ncclResult_t ncclGroupStart() {
  ++warpsmith::g_group_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  --warpsmith::g_group_depth;
  return ncclSuccess;
}
ncclResult_t ncclAllGather(const void*, void* all, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t) {
  if (warpsmith::g_group_depth > 0) return ncclSuccess;
  if (IsRecorded([=] { return ncclAllGather(nullptr, all, count, type, comm, nullptr); })) return ncclSuccess;
  if (comm->num_gathers++ == warpsmith::HostFaults().gather_that_fails && comm->rank == 1) {
    return ncclUnhandledCudaError;
  }
  auto* const own = static_cast<std::byte*>(all);
  Clique& clique = *comm->clique;
  if (!clique.Meet(comm->rank, own))
    return ncclSuccess;  // as an aborted kernel ends: with anything in memory
  for (size_t rank = 0; rank < clique.buffers.size(); ++rank) {
    if (static_cast<int>(rank) == comm->rank) continue;
    std::copy_n(clique.buffers[rank] + rank * count, count, own + rank * count);
  }
  clique.Meet(comm->rank, nullptr);
  return ncclSuccess;
}
ncclResult_t ncclBroadcast(const void*, void* data, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t) {
  if (warpsmith::g_group_depth > 0) return ncclSuccess;
  if (IsRecorded([=] { return ncclBroadcast(nullptr, data, count, type, root, comm, nullptr); }))
    return ncclSuccess;
  auto* const own = static_cast<std::byte*>(data);
  Clique& clique = *comm->clique;
  if (!clique.Meet(comm->rank, own)) return ncclSuccess;
  if (comm->rank != root) std::copy_n(clique.buffers[root], count, own);
  clique.Meet(comm->rank, nullptr);
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
// Frees nothing: what is called a kernel here may still be in it.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  absl::MutexLock lock(&comm->clique->mutex);
  comm->clique->is_aborted = true;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "a fault of the test"; }
const char* ncclGetLastError(ncclComm_t) { return "none"; }

}  // extern "C"
