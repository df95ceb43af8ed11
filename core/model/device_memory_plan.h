// What a decoder on a GPU allocates, worked out on the host: sizes, places, and whether they fit.
#ifndef WARPSMITH_CORE_MODEL_DEVICE_MEMORY_PLAN_H_
#define WARPSMITH_CORE_MODEL_DEVICE_MEMORY_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/model/device_decoder_options.h"
#include "core/model/model_config.h"
#include "core/model/parameter_layout.h"

namespace warpsmith {

// INVALID_ARGUMENT naming the option and what is allowed; UNIMPLEMENTED for a model that the kernels cannot compute:
// head_dim 64 and 128, groups of at most 16 query heads, hidden_size a multiple of 8. `config` is the whole model's,
// and of a shard the errors of CheckTensorShard come too; everything below is given the shard's, ShardConfig.
absl::Status CheckDeviceDecoderOptions(const ModelConfig& config, const DeviceDecoderOptions& options);

// Columns of a row of logits: num_token_ids (or vocab_size where that is 0), rounded up to what a product can store.
int64_t LogitsStride(const ModelConfig& config, int64_t num_token_ids);

// Elements of the weights' allocation: the buffers of the layout, and behind them what the rounded-up head reads.
int64_t WeightElements(const ParameterLayout& layout);

// Elements of a token's key, or value, in one layer; and of one plane of pages.
int64_t EntryElements(const ModelConfig& config);
int64_t PlaneElements(const ModelConfig& config, const DeviceDecoderOptions& options);

// Bytes of one page in all layers.
int64_t PageBytes(const ModelConfig& config, int64_t page_tokens, DeviceDtype dtype);

// The buckets of the head's product: those of the options, cut off at logits_rows_max.
std::vector<int64_t> LogitsRowBuckets(const DeviceDecoderOptions& options);

// Rounded up to a power of two, at most `rows_max`: few different bounds, whose workspaces are all known.
int64_t RowsOfQueryBound(int64_t rows_of_query_max, int64_t rows_max);

// Buckets of at most so many rows run by LaunchStreamedLinear, whose weights come while the kernels before run. Of more
// rows cuBLASLt's products are faster.
inline constexpr int64_t kStreamedRowsMax = 64;

// The largest of `buckets` up to it, so that all row counts of a bucket run alike; 0: there is none.
int64_t StreamedRowsMax(const std::vector<int64_t>& buckets);
// Those of more than `rows`.
std::vector<int64_t> BucketsBeyond(const std::vector<int64_t>& buckets, int64_t rows);

// Byte offsets into one allocation, each on a boundary of 256. R rows_max, L logits_rows_max, P context_tokens_max,
// N shards.
struct DeviceScratch {
  int64_t x = 0;            // [R, hidden] of options.dtype, as all but logits and tables: the residual
  int64_t normed = 0;       // [R, hidden]
  int64_t qkv = 0;          // [R, qkv_size]
  int64_t queries = 0;      // [R, query_size]
  int64_t attended = 0;     // [R, query_size]
  int64_t gate_up = 0;      // [R, 2 * intermediate]
  int64_t activated = 0;    // [R, intermediate]
  int64_t partials = 0;     // [N, R, hidden] sums of all shards; nothing of a whole model
  int64_t last = 0;         // [L, hidden] rows whose logits are wanted
  int64_t last_normed = 0;  // [L, hidden]
  int64_t logits = 0;       // [L, LogitsStride] float32
  int64_t cosines = 0;      // [P, head_dim / 2] float32
  int64_t sines = 0;        // likewise
  int64_t products = 0;     // kProductWorkspaceBytes
  int64_t attention = 0;    // of the attention's kernels
  int64_t bytes = 0;        // of all
};

inline constexpr int64_t kProductWorkspaceBytes = int64_t{32} << 20;

DeviceScratch PlaceScratch(const ModelConfig& config, const DeviceDecoderOptions& options,
                           int64_t attention_workspace_bytes);

// Room for what CUDA loads as it is first used: code of kernels, graphs.
inline constexpr int64_t kLoadedCodeBytes = int64_t{768} << 20;

// What GPU `device` has.
struct FreeMemory {
  int device = 0;
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
};

// RESOURCE_EXHAUSTED, with both in GiB, where `what`, "pages" for instance, wants more than is free.
absl::Status CheckFits(const std::string& what, int64_t wanted_bytes, const FreeMemory& memory);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_DEVICE_MEMORY_PLAN_H_
