// The weights of a decoder on a GPU: one allocation in bfloat16, float16 or float32, the buffers of the layout one
// behind the other.
//
// Any stream of the same device may write them, a buffer or a part of one at a time: from files, a trainer's memory, a
// collective.
#ifndef WARPSMITH_CORE_MODEL_DEVICE_WEIGHTS_CUDA_H_
#define WARPSMITH_CORE_MODEL_DEVICE_WEIGHTS_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/checkpoint/tensor_info.h"
#include "core/kernels/device_dtype.h"
#include "core/model/parameter_layout.h"
#include "core/model/resident_memory_cuda.h"
#include "core/model/tensor_shard.h"

namespace warpsmith {

class Parameters;

// Where the weights of one layer lie; null what the model has not.
template <typename T>
struct LayerAddresses {
  const T *input_norm, *qkv, *qkv_bias, *query_norm, *key_norm, *output, *post_norm, *gate_up, *down;
};

// Movable. One thread at a time.
class DeviceWeights {
 public:
  // Zeros on `device`, which is the current one: of a model of `config`, or of one shard of it. RESOURCE_EXHAUSTED; the
  // errors of ResidentMemory::Reserve.
  static absl::StatusOr<DeviceWeights> Allocate(const ModelConfig& config, int device, TensorShard shard = {},
                                                DeviceDtype dtype = DeviceDtype::kBfloat16);

  // Gives the memory back, after all work on the device, and takes it again, zeros at the same address:
  // RESOURCE_EXHAUSTED when others have taken it meanwhile. Both may be repeated.
  void Free() { memory_->Free(); }
  absl::Status AllocateAgain() { return memory_->Allocate(); }
  bool resident() const { return memory_->resident(); }

  // Of what is here: a shard's where it is one.
  const ParameterLayout& layout() const { return layout_; }

  DeviceDtype dtype() const { return dtype_; }
  // Element 0 of buffer 0, in bfloat16: crashes for others. Behind the last buffer lie rows of zeros that the product
  // of a head may read.
  __nv_bfloat16* base() const { return BaseAs<__nv_bfloat16>(); }
  // The same as bits: crashes for weights in float32.
  uint16_t* bits() const;
  // Elements of all buffers, and where buffer `index` begins among them.
  int64_t size() const { return offsets_.back(); }
  int64_t buffer_offset(int index) const { return offsets_.at(index); }

  // Element 0 of buffer 0, in T, and the entry's first element, null where the model has none of this name. T is
  // __nv_bfloat16, __half or float, as dtype() says: another crashes.
  template <typename T>
  T* BaseAs() const;
  template <typename T = __nv_bfloat16>
  const T* Find(int buffer, const std::string& entry) const;
  template <typename T = __nv_bfloat16>
  LayerAddresses<T> FindLayer(int64_t layer) const;

  // Replaces all weights by those of the safetensors of `directory`, rounded to dtype(), and waits for the device, with
  // a deadline for each copy. A shard reads its own part of a whole checkpoint.
  // Errors as LoadHuggingFaceWeights; also INVALID_ARGUMENT for a value that dtype() rounds to infinity. After an
  // error the values are unspecified.
  absl::Status LoadHuggingFace(const std::filesystem::path& directory);

  // Likewise from the CPU, float32, bfloat16 or float16, of the whole model: INVALID_ARGUMENT for others, another
  // configuration, or a value that is not finite.
  absl::Status SetParameters(const Parameters& parameters);

  // INVALID_ARGUMENT with the name of the first tensor that has a value that is not finite. Call it after writing the
  // weights; waits for the default stream. DEADLINE_EXCEEDED: the device may still read them.
  absl::Status CheckFinite(absl::Time deadline) const;

  // See DeviceDecoder::FillRandom. Shards of one seed have one embedding, as they must, and one another's layers.
  absl::Status FillRandom(uint64_t seed);

 private:
  DeviceWeights(const ModelConfig& config, TensorShard shard, int device, DeviceDtype dtype,
                std::unique_ptr<ResidentMemory> memory);

  // Fills every buffer with `tensors` of `views`: see PlanStaging.
  absl::Status Upload(const std::vector<HfTensorLayout>& tensors,
                      const std::vector<const TensorView*>& views);
  template <typename T>
  absl::Status FillRandomAs(uint64_t seed);

  ModelConfig whole_;
  TensorShard shard_;
  ParameterLayout layout_;
  std::vector<int64_t> offsets_;
  int device_;
  DeviceDtype dtype_;
  std::unique_ptr<ResidentMemory> memory_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_DEVICE_WEIGHTS_CUDA_H_
