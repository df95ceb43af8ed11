// Sizes of a decoder on a GPU.
#ifndef WARPSMITH_CORE_MODEL_DEVICE_DECODER_OPTIONS_H_
#define WARPSMITH_CORE_MODEL_DEVICE_DECODER_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "core/kernels/device_dtype.h"
#include "core/model/tensor_shard.h"

namespace warpsmith {

struct DeviceDecoderOptions {
  int device = 0;
  // Of weights, activations and pages. float32 is for judging what the others compute: nothing in it is made to be
  // fast.
  DeviceDtype dtype = DeviceDtype::kBfloat16;
  // What of the model lies on this GPU.
  TensorShard shard;
  // Entries of the KV cache are num_pages * page_tokens.
  int64_t num_pages = 0;
  int64_t page_tokens = 16;
  // Of one step.
  int64_t rows_max = 0;
  int64_t logits_rows_max = 0;
  int64_t context_tokens_max = 0;
  // As DecoderOptions::num_token_ids.
  int64_t num_token_ids = 0;
  // Row counts whose products share an algorithm, ascending to rows_max: buckets of few rows LaunchStreamedLinear,
  // others one of cuBLASLt each (LinearPlans). One bucket: all products are LaunchStreamedLinear's, and a row's bits do
  // not depend on what else is in its step. In float32 all buckets are cuBLASLt's, by its first proposal;
  // of one bucket no proposal cuts sums, and a row's bits are its own as far as cuBLASLt keeps to that.
  std::vector<int64_t> row_buckets;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_DEVICE_DECODER_OPTIONS_H_
