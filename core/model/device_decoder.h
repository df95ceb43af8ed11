// A dense decoder on one GPU: weights in bfloat16, float16 or float32, the pages of a KV cache, and steps over any mix
// of decoding sequences and chunks of prompts.
//
// Owns device memory, no stream and no thread. What a step computes is decided by its caller: see
// rollout_workers/paged.
#ifndef WARPSMITH_CORE_MODEL_DEVICE_DECODER_H_
#define WARPSMITH_CORE_MODEL_DEVICE_DECODER_H_

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/device_decoder_options.h"
#include "core/model/model_config.h"

namespace warpsmith {

class DeviceWeights;
class Parameters;

// Brings the partial sums of all shards together: `partials` is a row of `bytes` a shard, the row of the caller's
// shard is filled, and what fills the others is launched on `stream`, also inside a capture. Every shard calls it at
// the same places of a step.
using PartialsExchange = std::function<absl::Status(std::byte* partials, int64_t bytes, cudaStream_t stream)>;

// One step's inputs, in device memory; the fields of StepPlan (rollout_workers/paged/step_plan.h) of the same names.
struct DeviceStep {
  int64_t num_queries = 0;
  int64_t num_rows = 0;
  int64_t num_logits_rows = 0;
  int64_t rows_of_query_max = 1;
  const int32_t* row_indptr = nullptr;
  const int32_t* page_indptr = nullptr;
  const int32_t* page_indices = nullptr;
  const int32_t* token_ids = nullptr;
  const int32_t* token_slots = nullptr;
  const int32_t* last_tokens = nullptr;
  const int32_t* positions = nullptr;
  const int32_t* kv_entries = nullptr;
  const int32_t* logits_rows = nullptr;
  // Of a shard, which cannot do without.
  const PartialsExchange* exchange = nullptr;
};

// One thread at a time.
class DeviceDecoder {
 public:
  // Zero weights, of options.shard alone. Measures the products, for a second or two. FAILED_PRECONDITION: no such GPU,
  // or its driver is too old, saying which; RESOURCE_EXHAUSTED: the GPU's free memory is less than what is asked for,
  // saying both; otherwise the errors of CheckDeviceDecoderOptions.
  static absl::StatusOr<std::unique_ptr<DeviceDecoder>> Create(const ModelConfig& config,
                                                               const DeviceDecoderOptions& options);
  ~DeviceDecoder();
  DeviceDecoder(const DeviceDecoder&) = delete;
  DeviceDecoder& operator=(const DeviceDecoder&) = delete;

  // Replaces the weights, rounded to dtype(); waits for the device, each time with a deadline. The tensors of a Hugging
  // Face directory go straight from the mapped files to the device, in parallel; errors as LoadHuggingFaceWeights.
  absl::Status LoadHuggingFace(const std::filesystem::path& directory);
  absl::Status SetParameters(const Parameters& parameters);
  // Where they lie, to be written in another way while no step runs.
  DeviceWeights& weights();
  // Draws matrices and biases on the device, with deviation 0.02, and sets norms to 1: to time a model of this shape.
  // Not what Parameters::InitRandom draws.
  absl::Status FillRandom(uint64_t seed);

  // Gives the pages' memory back to the GPU, and takes it again: RESOURCE_EXHAUSTED when others have taken it
  // meanwhile. Their contents are gone, their address stays, and with it every captured graph. Both may be repeated.
  void FreePages();
  absl::Status AllocatePages();
  // Likewise the weights' memory. They are zeros then, to be replaced.
  void FreeWeights();
  absl::Status AllocateWeights();

  // Launches everything from the embedding to the logits of `step.logits_rows`, and does not wait. Works inside a
  // capture of `stream`. Steps follow one another on one stream, or are ordered by events: they share their memory.
  // The logits of one shard are enough: on the others num_logits_rows may be 0, which leaves the head out.
  // INTERNAL with CUDA's or cuBLASLt's message, and for more rows than the options allow; the exchange's errors.
  absl::Status Launch(const DeviceStep& step, cudaStream_t stream);

  // [logits_rows_max, logits_stride] float32 on the device, of the last Launch; columns from num_token_ids on mean
  // nothing.
  const float* logits() const;
  int64_t logits_stride() const;

  // [2 * layers][num_pages, page_tokens, kv heads of the shard, head_dim]: the keys of layer 0, its values, those of
  // layer 1, ... in dtype(). pages() is for bfloat16, and crashes for others.
  std::byte* page_memory();
  __nv_bfloat16* pages();
  DeviceDtype dtype() const;
  int64_t num_planes() const;
  int64_t plane_stride() const;  // elements
  int64_t entry_size() const;    // elements of one token in one plane

  // Bytes of weights that one step with a row reads, and of one token's entries in all layers: for rooflines. Of the
  // shard.
  int64_t weight_bytes() const;
  int64_t entry_bytes() const;

 private:
  struct State;
  explicit DeviceDecoder(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// The memory of GPU options.device: all of it, what no process holds now, and what a decoder takes of that.
struct DecoderMemory {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;
  // Weights, one step, and what CUDA loads for them.
  int64_t fixed_bytes = 0;
  int64_t page_bytes = 0;
};

// Before a decoder is there; options.num_pages is not read. The errors of Create.
absl::StatusOr<DecoderMemory> MeasureDecoderMemory(const ModelConfig& config,
                                                   const DeviceDecoderOptions& options);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_DEVICE_DECODER_H_
