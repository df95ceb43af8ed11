#include "core/model/device_weights_cuda.h"

#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/tensor_directory.h"
#include "core/checkpoint/tensor_info.h"
#include "core/kernels/first_not_finite_cuda.h"
#include "core/kernels/random_normals_cuda.h"
#include "core/model/cuda_status.h"
#include "core/model/device_memory.h"
#include "core/model/device_memory_plan.h"
#include "core/model/event_arrival_cuda.h"
#include "core/model/hugging_face_checks.h"
#include "core/model/parameters.h"
#include "core/model/staged_upload_cuda.h"
#include "core/model/staging_plan.h"
#include "core/model/stored_type_cuda.h"

namespace warpsmith {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void LogRate(const std::filesystem::path& directory, int64_t elements, DeviceDtype dtype, double seconds) {
  const double gigabytes = static_cast<double>(elements * ElementBytes(dtype)) * 1e-9;
  LogInfo(absl::StrFormat("loaded %.2f GB of %s weights from %s in %.2f s, %.1f GB/s", gigabytes,
                          DtypeName(dtype), Escape(directory.string()), seconds, gigabytes / seconds));
}

// How a checkpoint calls it, if it may hold weights.
std::optional<TensorType> TypeOf(at::ScalarType dtype) {
  if (dtype == at::kFloat) return TensorType::kF32;
  if (dtype == at::kBFloat16) return TensorType::kBF16;
  if (dtype == at::kHalf) return TensorType::kF16;
  return std::nullopt;
}

TensorView ViewOf(const at::Tensor& buffer) {
  return {.info = {.name = "buffer", .type = *TypeOf(buffer.scalar_type()), .shape = {buffer.numel()}},
          .bytes = {static_cast<const std::byte*>(buffer.const_data_ptr()),
                    static_cast<size_t>(buffer.nbytes())}};
}

}  // namespace

absl::StatusOr<DeviceWeights> DeviceWeights::Allocate(const ModelConfig& config, int device,
                                                      TensorShard shard, DeviceDtype dtype) {
  const ParameterLayout layout(ShardConfig(config, shard.count));
  ASSIGN_OR_RETURN(std::unique_ptr<ResidentMemory> memory,
                   ResidentMemory::Reserve(device, WeightElements(layout) * ElementBytes(dtype)));
  RETURN_IF_ERROR(memory->Allocate());
  return DeviceWeights(config, shard, device, dtype, std::move(memory));
}

DeviceWeights::DeviceWeights(const ModelConfig& config, TensorShard shard, int device, DeviceDtype dtype,
                             std::unique_ptr<ResidentMemory> memory)
    : whole_(config),
      shard_(shard),
      layout_(ShardLayout(config, shard)),
      offsets_(BufferOffsets(layout_)),
      device_(device),
      dtype_(dtype),
      memory_(std::move(memory)) {}

template <typename T>
T* DeviceWeights::BaseAs() const {
  WS_CHECK(dtype_ == kDtypeOf<T>) << "the weights are " << DtypeName(dtype_) << ", not "
                                  << DtypeName(kDtypeOf<T>);
  return reinterpret_cast<T*>(memory_->get());
}
template __nv_bfloat16* DeviceWeights::BaseAs() const;
template __half* DeviceWeights::BaseAs() const;
template float* DeviceWeights::BaseAs() const;

uint16_t* DeviceWeights::bits() const {
  WS_CHECK(ElementBytes(dtype_) == sizeof(uint16_t)) << "the weights are " << DtypeName(dtype_);
  return reinterpret_cast<uint16_t*>(memory_->get());
}

template <typename T>
const T* DeviceWeights::Find(int buffer, const std::string& entry) const {
  const ParameterEntry* const found = layout_.FindEntry(buffer, entry);
  return found == nullptr ? nullptr : BaseAs<T>() + offsets_[buffer] + found->offset;
}
template const __nv_bfloat16* DeviceWeights::Find(int, const std::string&) const;
template const __half* DeviceWeights::Find(int, const std::string&) const;
template const float* DeviceWeights::Find(int, const std::string&) const;

template <typename T>
LayerAddresses<T> DeviceWeights::FindLayer(int64_t layer) const {
  const auto find = [&](const char* name) { return Find<T>(layout_.layer_buffer(layer), name); };
  return {find("input_norm"), find("qkv"),       find("qkv_bias"), find("query_norm"), find("key_norm"),
          find("output"),     find("post_norm"), find("gate_up"),  find("down")};
}
template LayerAddresses<__nv_bfloat16> DeviceWeights::FindLayer(int64_t) const;
template LayerAddresses<__half> DeviceWeights::FindLayer(int64_t) const;
template LayerAddresses<float> DeviceWeights::FindLayer(int64_t) const;

absl::Status DeviceWeights::Upload(const std::vector<HfTensorLayout>& tensors,
                                   const std::vector<const TensorView*>& views) {
  const std::vector<StagingChunk> chunks = PlanStaging(layout_, tensors, kStagingElements);
  if (dtype_ == DeviceDtype::kFloat32) {
    return UploadStaged(
        chunks, device_, BaseAs<float>(),
        [&views](const StagingChunk& chunk, float* staging) { FillChunk(chunk, views, staging); });
  }
  const TensorType type = dtype_ == DeviceDtype::kFloat16 ? TensorType::kF16 : TensorType::kBF16;
  return UploadStaged(chunks, device_, bits(), [&views, type](const StagingChunk& chunk, uint16_t* staging) {
    FillChunk(chunk, views, type, staging);
  });
}

absl::Status DeviceWeights::LoadHuggingFace(const std::filesystem::path& directory) {
  const auto begin = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const TensorDirectory files, TensorDirectory::Open(directory));
  ASSIGN_OR_RETURN(const std::vector<const TensorView*> views, FindModelTensors(layout_, files));
  RETURN_IF_ERROR(Upload(layout_.hf_tensors(), views));
  RETURN_IF_ERROR(CheckFinite(absl::Now() + kShortWorkTimeout));
  LogRate(directory, size(), dtype_, SecondsSince(begin));
  return absl::OkStatus();
}

absl::Status DeviceWeights::SetParameters(const Parameters& parameters) {
  if (parameters.config() != whole_) {
    return absl::InvalidArgumentError("decoder on a GPU: the new weights have another configuration");
  }
  const at::ScalarType dtype = parameters.dtype();
  if (!TypeOf(dtype).has_value() || !parameters.device().is_cpu()) {
    return absl::InvalidArgumentError(absl::StrCat("decoder on a GPU: the new weights are ",
                                                   c10::toString(dtype), " on ", parameters.device().str(),
                                                   "; Float, BFloat16 and Half on cpu can be set"));
  }
  std::vector<TensorView> buffers;
  for (int i = 0; i < parameters.num_buffers(); ++i) buffers.push_back(ViewOf(parameters.buffer(i)));
  std::vector<const TensorView*> views;
  for (const TensorView& buffer : buffers) views.push_back(&buffer);
  RETURN_IF_ERROR(Upload(ShardOfBuffers(parameters.layout(), layout_, shard_), views));
  return CheckFinite(absl::Now() + kShortWorkTimeout);
}

absl::Status DeviceWeights::FillRandom(uint64_t seed) {
  return VisitStoredType(dtype_,
                         [&](auto type) { return FillRandomAs<typename decltype(type)::type>(seed); });
}

template <typename T>
absl::Status DeviceWeights::FillRandomAs(uint64_t seed) {
  constexpr float kDeviation = 0.02f;
  T* const base = BaseAs<T>();
  RETURN_IF_ERROR(
      CudaStatus(LaunchRandomNormals(base, size(), seed, kDeviation, nullptr), "launch of random weights"));
  RETURN_IF_ERROR(
      AwaitStream(nullptr, absl::Now() + kShortWorkTimeout));  // the copies below have no deadline
  for (int buffer = 0; buffer < layout_.num_buffers(); ++buffer) {
    for (const ParameterEntry& entry : layout_.buffers()[buffer].entries) {
      if (!absl::EndsWith(entry.name, "norm")) continue;
      const std::vector<T> ones(entry.size(), static_cast<T>(1.0f));
      RETURN_IF_ERROR(CudaStatus(cudaMemcpy(base + offsets_[buffer] + entry.offset, ones.data(),
                                            ones.size() * sizeof(T), cudaMemcpyHostToDevice),
                                 "norms of random weights"));
    }
  }
  return AwaitStream(nullptr, absl::Now() + kShortWorkTimeout);
}

// In one pass over what has arrived: at the rate of the device's memory it takes a thousandth of the loading.
absl::Status DeviceWeights::CheckFinite(absl::Time deadline) const {
  unsigned long long first = std::numeric_limits<unsigned long long>::max();
  const unsigned long long none = first;
  ASSIGN_OR_RETURN(DeviceMemory found, DeviceMemory::Zeros(sizeof(first), deadline));
  auto* const device_first = reinterpret_cast<unsigned long long*>(found.get());
  RETURN_IF_ERROR(
      CudaStatus(cudaMemcpy(device_first, &first, sizeof(first), cudaMemcpyHostToDevice), "cudaMemcpy"));
  const cudaError_t launched = VisitStoredType(dtype_, [&](auto type) {
    return LaunchFirstNotFinite(BaseAs<typename decltype(type)::type>(), size(), device_first, nullptr);
  });
  RETURN_IF_ERROR(CudaStatus(launched, "check of weights"));
  if (absl::Status checked = AwaitStream(nullptr, deadline); !checked.ok()) {
    found.Keep();
    return checked;
  }
  RETURN_IF_ERROR(CudaStatus(cudaMemcpy(&first, device_first, sizeof(first), cudaMemcpyDeviceToHost),
                             "check of weights"));
  if (first == none) return absl::OkStatus();
  const int tensor = TensorAt(layout_, static_cast<int64_t>(first));
  if (tensor < 0)
    return absl::InternalError(absl::StrCat("padding of the weights at ", first, " is not finite"));
  return NotFiniteTensor(layout_.hf_tensors()[tensor]);
}

}  // namespace warpsmith
