#include "core/model/device_weights_cuda.h"

#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/tensor_directory.h"
#include "core/checkpoint/tensor_info.h"
#include "core/kernels/first_not_finite_cuda.h"
#include "core/kernels/random_normals_cuda.h"
#include "core/model/cuda_status.h"
#include "core/model/device_memory.h"
#include "core/model/device_memory_plan.h"
#include "core/model/hugging_face_checks.h"
#include "core/model/parameters.h"
#include "core/model/staged_upload_cuda.h"
#include "core/model/staging_plan.h"

namespace warpsmith {
namespace {

constexpr int64_t kBfloat16Bytes = sizeof(__nv_bfloat16);

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void LogRate(const std::filesystem::path& directory, int64_t elements, double seconds) {
  const double gigabytes = static_cast<double>(elements * kBfloat16Bytes) * 1e-9;
  LogInfo(absl::StrFormat("loaded %.2f GB of bfloat16 weights from %s in %.2f s, %.1f GB/s", gigabytes,
                          Escape(directory.string()), seconds, gigabytes / seconds));
}

// Of float32 or bfloat16.
TensorView ViewOf(const at::Tensor& buffer) {
  const TensorType type = buffer.scalar_type() == at::kFloat ? TensorType::kF32 : TensorType::kBF16;
  return {.info = {.name = "buffer", .type = type, .shape = {buffer.numel()}},
          .bytes = {static_cast<const std::byte*>(buffer.const_data_ptr()),
                    static_cast<size_t>(buffer.nbytes())}};
}

}  // namespace

absl::StatusOr<DeviceWeights> DeviceWeights::Allocate(const ModelConfig& config, int device,
                                                      TensorShard shard) {
  const ParameterLayout layout(ShardConfig(config, shard.count));
  ASSIGN_OR_RETURN(std::unique_ptr<ResidentMemory> memory,
                   ResidentMemory::Reserve(device, WeightElements(layout) * kBfloat16Bytes));
  RETURN_IF_ERROR(memory->Allocate());
  return DeviceWeights(config, shard, device, std::move(memory));
}

DeviceWeights::DeviceWeights(const ModelConfig& config, TensorShard shard, int device,
                             std::unique_ptr<ResidentMemory> memory)
    : whole_(config),
      shard_(shard),
      layout_(ShardLayout(config, shard)),
      offsets_(BufferOffsets(layout_)),
      device_(device),
      memory_(std::move(memory)) {}

const __nv_bfloat16* DeviceWeights::Find(int buffer, const std::string& entry) const {
  const ParameterEntry* const found = layout_.FindEntry(buffer, entry);
  return found == nullptr ? nullptr : base() + offsets_[buffer] + found->offset;
}

LayerAddresses DeviceWeights::FindLayer(int64_t layer) const {
  const auto find = [&](const char* name) { return Find(layout_.layer_buffer(layer), name); };
  return {find("input_norm"), find("qkv"),       find("qkv_bias"), find("query_norm"), find("key_norm"),
          find("output"),     find("post_norm"), find("gate_up"),  find("down")};
}

absl::Status DeviceWeights::LoadHuggingFace(const std::filesystem::path& directory) {
  const auto begin = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const TensorDirectory files, TensorDirectory::Open(directory));
  ASSIGN_OR_RETURN(const std::vector<const TensorView*> views, FindModelTensors(layout_, files));
  RETURN_IF_ERROR(UploadStaged(
      PlanStaging(layout_, layout_.hf_tensors(), kStagingElements), device_,
      reinterpret_cast<uint16_t*>(base()),
      [&views](const StagingChunk& chunk, uint16_t* staging) { FillChunk(chunk, views, staging); }));
  RETURN_IF_ERROR(CheckFinite());
  LogRate(directory, size(), SecondsSince(begin));
  return absl::OkStatus();
}

absl::Status DeviceWeights::SetParameters(const Parameters& parameters) {
  if (parameters.config() != whole_) {
    return absl::InvalidArgumentError("decoder on a GPU: the new weights have another configuration");
  }
  const at::ScalarType dtype = parameters.dtype();
  if ((dtype != at::kFloat && dtype != at::kBFloat16) || !parameters.device().is_cpu()) {
    return absl::InvalidArgumentError(absl::StrCat("decoder on a GPU: the new weights are ",
                                                   c10::toString(dtype), " on ", parameters.device().str(),
                                                   "; Float and BFloat16 on cpu can be set"));
  }
  std::vector<TensorView> buffers;
  for (int i = 0; i < parameters.num_buffers(); ++i) buffers.push_back(ViewOf(parameters.buffer(i)));
  std::vector<const TensorView*> views;
  for (const TensorView& buffer : buffers) views.push_back(&buffer);
  RETURN_IF_ERROR(UploadStaged(
      PlanStaging(layout_, ShardOfBuffers(parameters.layout(), layout_, shard_), kStagingElements), device_,
      reinterpret_cast<uint16_t*>(base()),
      [&views](const StagingChunk& chunk, uint16_t* staging) { FillChunk(chunk, views, staging); }));
  return CheckFinite();
}

absl::Status DeviceWeights::FillRandom(uint64_t seed) {
  constexpr float kDeviation = 0.02f;
  RETURN_IF_ERROR(
      CudaStatus(LaunchRandomNormals(base(), size(), seed, kDeviation, nullptr), "launch of random weights"));
  for (int buffer = 0; buffer < layout_.num_buffers(); ++buffer) {
    for (const ParameterEntry& entry : layout_.buffers()[buffer].entries) {
      if (!absl::EndsWith(entry.name, "norm")) continue;
      const std::vector<__nv_bfloat16> ones(entry.size(), __float2bfloat16(1.0f));
      RETURN_IF_ERROR(CudaStatus(cudaMemcpy(base() + offsets_[buffer] + entry.offset, ones.data(),
                                            ones.size() * kBfloat16Bytes, cudaMemcpyHostToDevice),
                                 "norms of random weights"));
    }
  }
  return CudaStatus(cudaDeviceSynchronize(), "random weights");
}

// In one pass over what has arrived: at the rate of the device's memory it takes a thousandth of the loading.
absl::Status DeviceWeights::CheckFinite() const {
  unsigned long long first = std::numeric_limits<unsigned long long>::max();
  const unsigned long long none = first;
  ASSIGN_OR_RETURN(const DeviceMemory found, DeviceMemory::Zeros(sizeof(first)));
  auto* const device_first = reinterpret_cast<unsigned long long*>(found.get());
  RETURN_IF_ERROR(
      CudaStatus(cudaMemcpy(device_first, &first, sizeof(first), cudaMemcpyHostToDevice), "cudaMemcpy"));
  RETURN_IF_ERROR(
      CudaStatus(LaunchFirstNotFinite(base(), size(), device_first, nullptr), "check of weights"));
  RETURN_IF_ERROR(CudaStatus(cudaMemcpy(&first, device_first, sizeof(first), cudaMemcpyDeviceToHost),
                             "check of weights"));
  if (first == none) return absl::OkStatus();
  const int tensor = TensorAt(layout_, static_cast<int64_t>(first));
  if (tensor < 0)
    return absl::InternalError(absl::StrCat("padding of the weights at ", first, " is not finite"));
  return NotFiniteTensor(layout_.hf_tensors()[tensor]);
}

}  // namespace warpsmith
