#include "core/model/received_weights_cuda.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/call_within.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/distributed/nccl_broadcast_cuda.h"
#include "core/kernels/memory_checksum_cuda.h"
#include "core/model/buffer_checksums_cuda.h"
#include "core/model/copy_blocks.h"
#include "core/model/cuda_status.h"
#include "core/model/device_memory.h"
#include "core/model/handles_cuda.h"
#include "core/model/staging_plan.h"
#include "core/model/tensor_shard.h"

namespace warpsmith {
namespace {

constexpr int64_t kElementBytes = sizeof(uint16_t);

absl::StatusOr<DeviceMemory> Take(int device, int64_t bytes) {
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device), "choosing a GPU"));
  absl::StatusOr<DeviceMemory> memory = DeviceMemory::Zeros(bytes);
  if (!absl::IsResourceExhausted(memory.status())) return memory;
  return absl::ResourceExhaustedError(
      absl::StrCat("GPU ", device, " has no room for ", bytes,
                   " bytes of new weights beside those in use: ", std::string(memory.status().message()),
                   "; start the receiver with a smaller share of the GPU's memory, or send a file"));
}

absl::Status CopyBlockAsync(const CopyBlock& block, std::byte* from, int from_device, std::byte* to,
                            int to_device, cudaStream_t stream) {
  const auto length = static_cast<size_t>(block.length * kElementBytes),
             rows = static_cast<size_t>(block.rows);
  cudaMemcpy3DPeerParms copy = {};
  copy.srcPtr = {from + block.from * kElementBytes, static_cast<size_t>(block.from_stride * kElementBytes),
                 length, rows};
  copy.srcDevice = from_device;
  copy.dstPtr = {to + block.to * kElementBytes, static_cast<size_t>(block.to_stride * kElementBytes), length,
                 rows};
  copy.dstDevice = to_device;
  copy.extent = {length, rows, 1};
  return CudaStatus(cudaMemcpy3DPeerAsync(&copy, stream), "cutting a shard of new weights");
}

}  // namespace

struct ReceivedWeights::Shard {
  Shard(const ModelConfig& config, TensorShard which, int its_device)
      : shard(which), device(its_device), layout(ShardLayout(config, which)), offsets(BufferOffsets(layout)) {
    if (shard.is_whole()) return;
    for (const HfTensorLayout& buffer : ShardOfBuffers(ParameterLayout(config), layout, shard)) {
      blocks.push_back(BlocksOf(buffer.runs));
    }
  }

  // What lies in `memory`, checked or made after it was cut.
  absl::Status Describe(const OfferedMemory& whole, absl::Time deadline);

  const TensorShard shard;
  const int device;
  const ParameterLayout layout;
  const std::vector<int64_t> offsets;
  std::vector<std::vector<CopyBlock>> blocks;  // of each buffer of the whole model, where it is cut
  DeviceMemory memory;
  OfferedMemory described;
  bool lost = false;  // the device may still use the memory
};

absl::Status ReceivedWeights::Shard::Describe(const OfferedMemory& whole, absl::Time deadline) {
  described = whole;
  if (shard.is_whole()) return absl::OkStatus();
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device), "choosing a GPU"));
  const absl::StatusOr<std::vector<MemoryChecksum>> found =
      ChecksumBuffers(layout, memory.get(), nullptr, deadline);
  lost = MayStillRun(found.status());
  RETURN_IF_ERROR(found.status());
  described.buffers = DescribeBuffers(layout, *found);
  return absl::OkStatus();
}

namespace {

using Shards = std::vector<std::unique_ptr<ReceivedWeights::Shard>>;

// One receiver's part of a broadcast. What the device may still write to is never freed.
class Reception {
 public:
  Reception(const ModelConfig& config, const OfferedBroadcast& offered, const Shards& shards)
      : layout_(config), offsets_(BufferOffsets(layout_)), offered_(offered), shards_(shards) {}

  absl::Status TakeMemory() {
    for (const auto& shard : shards_) {
      ASSIGN_OR_RETURN(shard->memory, Take(shard->device, shard->offsets.back() * kElementBytes));
    }
    if (is_cut()) {
      for (int i = 0; i < layout_.num_buffers(); ++i)
        largest_ = std::max(largest_, layout_.buffers()[i].size);
      ASSIGN_OR_RETURN(arriving_, Take(device(), largest_ * kElementBytes));
    }
    ASSIGN_OR_RETURN(sums_, Take(device(), sums_bytes()));
    RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device()), "choosing a GPU"));
    ASSIGN_OR_RETURN(found_, AllocatePinned(static_cast<size_t>(sums_bytes())));
    return absl::OkStatus();
  }

  absl::Status Run(absl::Time deadline) {
    const absl::Time began = absl::Now();
    ASSIGN_OR_RETURN(broadcast_,
                     NcclBroadcast::Join(offered_.place, device(), deadline, offered_.is_given_up));
    const absl::Time joined = absl::Now();
    absl::Status status = broadcast_->EndIfFailed(Receive());
    if (status.ok()) status = broadcast_->Await();
    if (!status.ok() && broadcast_->may_still_write()) Lose();
    RETURN_IF_ERROR(status);
    Log(joined - began, absl::Now() - joined);
    std::vector<MemoryChecksum> found(layout_.num_buffers());
    std::memcpy(static_cast<void*>(found.data()), found_.get(), static_cast<size_t>(sums_bytes()));
    return CheckArrived(offered_.memory, found, "after the broadcast");
  }

 private:
  bool is_cut() const { return shards_.size() > 1; }
  int device() const { return shards_.front()->device; }
  int64_t sums_bytes() const { return layout_.num_buffers() * static_cast<int64_t>(sizeof(MemoryChecksum)); }

  absl::Status Receive() {
    cudaStream_t const stream = broadcast_->stream();
    auto* const sums = reinterpret_cast<MemoryChecksum*>(sums_.get());
    for (int i = 0; i < layout_.num_buffers(); ++i) {
      const int64_t bytes = (offsets_[i + 1] - offsets_[i]) * kElementBytes;
      std::byte* const to =
          is_cut() ? arriving_.get() : shards_[0]->memory.get() + offsets_[i] * kElementBytes;
      RETURN_IF_ERROR(broadcast_->Bring(to, bytes));
      RETURN_IF_ERROR(
          CudaStatus(LaunchMemoryChecksum(to, bytes, sums + i, stream), "checksums of new weights"));
      if (is_cut()) RETURN_IF_ERROR(Cut(i, stream));
    }
    return CudaStatus(cudaMemcpyAsync(found_.get(), sums, static_cast<size_t>(sums_bytes()),
                                      cudaMemcpyDeviceToHost, stream),
                      "reading checksums");
  }

  absl::Status Cut(int buffer, cudaStream_t stream) {
    for (const auto& shard : shards_) {
      std::byte* const to = shard->memory.get() + shard->offsets[buffer] * kElementBytes;
      for (const CopyBlock& block : shard->blocks[buffer]) {
        RETURN_IF_ERROR(CopyBlockAsync(block, arriving_.get(), device(), to, shard->device, stream));
      }
    }
    return absl::OkStatus();
  }

  void Lose() {
    for (const auto& shard : shards_) shard->lost = true;
    arriving_.Keep();
    sums_.Keep();
    (void)found_.release();
  }

  void Log(absl::Duration meeting, absl::Duration transfer) const {
    const double gigabytes = static_cast<double>(offsets_.back() * kElementBytes) * 1e-9;
    const double seconds = absl::ToDoubleSeconds(transfer);
    LogInfo(absl::StrFormat(
        "received and checked %.2f GB of weights of version %d on cuda:%d, rank %d of %d, in %.3f s, "
        "%.0f GB/s, after %.3f s of meeting",
        gigabytes, offered_.memory.version, device(), offered_.place.rank, offered_.place.num_ranks, seconds,
        gigabytes / seconds, absl::ToDoubleSeconds(meeting)));
  }

  const ParameterLayout layout_;  // of the whole model
  const std::vector<int64_t> offsets_;
  const OfferedBroadcast& offered_;
  const Shards& shards_;
  int64_t largest_ = 0;
  DeviceMemory arriving_;  // one buffer, where it is cut
  DeviceMemory sums_;      // [num_buffers] MemoryChecksum
  PinnedBlock found_;      // likewise
  std::unique_ptr<NcclBroadcast> broadcast_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ReceivedWeights>> ReceivedWeights::Receive(const ModelConfig& config,
                                                                          OfferedBroadcast offered,
                                                                          const std::vector<int>& devices,
                                                                          absl::Time deadline) {
  RETURN_IF_ERROR(CheckOfferedMemory(offered.memory, ParameterLayout(config)));
  RETURN_IF_ERROR(CheckReceiverPlace(offered.place));
  const int count = static_cast<int>(devices.size());
  RETURN_IF_ERROR(CheckTensorShard(config, {0, count}));
  Shards shards;
  for (int i = 0; i < count; ++i) {
    shards.push_back(std::make_unique<Shard>(config, TensorShard{i, count}, devices[i]));
  }
  std::unique_ptr<ReceivedWeights> weights(new ReceivedWeights(std::move(shards)));
  {
    Reception reception(config, offered, weights->shards_);
    RETURN_IF_ERROR(reception.TakeMemory());
    RETURN_IF_ERROR(reception.Run(deadline));
  }
  for (const auto& shard : weights->shards_) RETURN_IF_ERROR(shard->Describe(offered.memory, deadline));
  return weights;
}

ReceivedWeights::ReceivedWeights(std::vector<std::unique_ptr<Shard>> shards) : shards_(std::move(shards)) {}

// To free memory waits for what its GPU does, which may never end.
ReceivedWeights::~ReceivedWeights() {
  constexpr absl::Duration kPatience = absl::Seconds(3);
  const auto memories = std::make_shared<std::vector<DeviceMemory>>();
  for (const auto& shard : shards_) {
    if (shard->lost) shard->memory.Keep();
    memories->push_back(std::move(shard->memory));
  }
  if (CallWithin(kPatience, [memories] { memories->clear(); })) return;
  LogWarning("received weights are not freed yet: their GPU is not done with what it does");
}

int64_t ReceivedWeights::num_elements() const { return shards_.front()->offsets.back(); }

absl::Status ReceivedWeights::CopyTo(uint16_t* elements, int device, absl::Time deadline) {
  const auto found = std::find_if(shards_.begin(), shards_.end(),
                                  [device](const auto& shard) { return shard->device == device; });
  if (found == shards_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no weights were received for GPU ", device));
  }
  Shard& shard = **found;
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device), "choosing a GPU"));
  const absl::StatusOr<std::vector<MemoryChecksum>> copied =
      ChecksumBuffers(shard.layout, reinterpret_cast<std::byte*>(elements), shard.memory.get(), deadline);
  shard.lost = MayStillRun(copied.status());
  RETURN_IF_ERROR(copied.status());
  return CheckArrived(shard.described, *copied, "after the copy");
}

}  // namespace warpsmith
