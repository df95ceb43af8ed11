#include "core/model/device_memory_plan.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/model/staging_plan.h"

namespace warpsmith {
namespace {

constexpr int64_t kRegionAlignment = 256;  // bytes, as cudaMalloc's
constexpr int64_t kLogitsAlignment = 16;   // columns: 64 bytes
constexpr int64_t kFloatBytes = 4;
constexpr int64_t kPageTokensUnit = 16;  // of the attention's kernels

int64_t RoundUpTo(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

absl::Status CheckPositive(const char* name, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("decoder on a GPU: ", name, " is ", value, "; 1 to ", most, " are allowed"));
}

absl::Status CheckModel(const ModelConfig& config) {
  RETURN_IF_ERROR(ValidateModelConfig(config));
  if (config.head_dim != 64 && config.head_dim != 128) {
    return absl::UnimplementedError(absl::StrCat("decoder on a GPU: head_dim is ", config.head_dim,
                                                 "; there are kernels for 64 and 128"));
  }
  if (config.group_size() > 16) {
    return absl::UnimplementedError(
        absl::StrCat("decoder on a GPU: ", config.group_size(),
                     " query heads share a key head; there are kernels for at most 16"));
  }
  if (config.hidden_size % 8 != 0) {
    return absl::UnimplementedError(
        absl::StrCat("decoder on a GPU: hidden_size is ", config.hidden_size,
                     "; its kernels load 8 values at a time, so it must be a multiple"));
  }
  return absl::OkStatus();
}

absl::Status CheckBuckets(const DeviceDecoderOptions& options) {
  const std::vector<int64_t>& buckets = options.row_buckets;
  const bool ascending =
      std::adjacent_find(buckets.begin(), buckets.end(), std::greater_equal<>()) == buckets.end();
  if (!buckets.empty() && buckets[0] >= 1 && ascending && buckets.back() == options.rows_max) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("decoder on a GPU: row_buckets are [", absl::StrJoin(buckets, ","),
                   "]; they ascend from at least 1 to rows_max, ", options.rows_max));
}

}  // namespace

absl::Status CheckDeviceDecoderOptions(const ModelConfig& config, const DeviceDecoderOptions& options) {
  constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
  RETURN_IF_ERROR(CheckModel(config));
  RETURN_IF_ERROR(CheckTensorShard(config, options.shard));
  RETURN_IF_ERROR(CheckPositive("page_tokens", options.page_tokens, 1024));
  if (options.page_tokens % kPageTokensUnit != 0) {
    return absl::InvalidArgumentError(absl::StrCat("decoder on a GPU: page_tokens is ", options.page_tokens,
                                                   "; multiples of 16 are allowed"));
  }
  RETURN_IF_ERROR(CheckPositive("num_pages", options.num_pages, kInt32Max / options.page_tokens));
  RETURN_IF_ERROR(CheckPositive("rows_max", options.rows_max, 1 << 20));
  RETURN_IF_ERROR(CheckPositive("logits_rows_max", options.logits_rows_max, options.rows_max));
  RETURN_IF_ERROR(CheckPositive("context_tokens_max", options.context_tokens_max, 1 << 22));
  if (options.num_token_ids < 0 || options.num_token_ids > config.vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat("decoder on a GPU: num_token_ids is ",
                                                   options.num_token_ids, ", and the head has ",
                                                   config.vocab_size, " rows"));
  }
  return CheckBuckets(options);
}

int64_t LogitsStride(const ModelConfig& config, int64_t num_token_ids) {
  return RoundUpTo(NumTokenIds(config, num_token_ids), kLogitsAlignment);
}

int64_t WeightElements(const ParameterLayout& layout) {
  return BufferOffsets(layout).back() +
         RoundUpTo(kLogitsAlignment * layout.config().hidden_size, kBufferAlignment);
}

int64_t EntryElements(const ModelConfig& config) { return config.key_value_size(); }

int64_t PlaneElements(const ModelConfig& config, const DeviceDecoderOptions& options) {
  return options.num_pages * options.page_tokens * EntryElements(config);
}

int64_t PageBytes(const ModelConfig& config, int64_t page_tokens, DeviceDtype dtype) {
  return 2 * config.num_hidden_layers * page_tokens * EntryElements(config) * ElementBytes(dtype);
}

int64_t RowsOfQueryBound(int64_t rows_of_query_max, int64_t rows_max) {
  int64_t bound = 1;
  while (bound < rows_of_query_max) bound *= 2;
  return std::min(bound, rows_max);
}

int64_t StreamedRowsMax(const std::vector<int64_t>& buckets) {
  int64_t most = 0;
  for (const int64_t bucket : buckets) most = bucket <= kStreamedRowsMax ? std::max(most, bucket) : most;
  return most;
}

std::vector<int64_t> BucketsBeyond(const std::vector<int64_t>& buckets, int64_t rows) {
  std::vector<int64_t> beyond;
  std::copy_if(buckets.begin(), buckets.end(), std::back_inserter(beyond),
               [rows](int64_t bucket) { return bucket > rows; });
  return beyond;
}

std::vector<int64_t> LogitsRowBuckets(const DeviceDecoderOptions& options) {
  std::vector<int64_t> buckets;
  for (const int64_t bucket : options.row_buckets) {
    if (bucket < options.logits_rows_max) buckets.push_back(bucket);
  }
  buckets.push_back(options.logits_rows_max);
  return buckets;
}

DeviceScratch PlaceScratch(const ModelConfig& config, const DeviceDecoderOptions& options,
                           int64_t attention_workspace_bytes) {
  DeviceScratch scratch;
  const auto place = [&scratch](int64_t bytes) {
    const int64_t offset = scratch.bytes;
    scratch.bytes = RoundUpTo(offset + bytes, kRegionAlignment);
    return offset;
  };
  const int64_t element = ElementBytes(options.dtype);
  const int64_t rows = options.rows_max * element, last_rows = options.logits_rows_max;
  scratch.x = place(rows * config.hidden_size);
  scratch.normed = place(rows * config.hidden_size);
  scratch.qkv = place(rows * config.qkv_size());
  scratch.queries = place(rows * config.query_size());
  scratch.attended = place(rows * config.query_size());
  scratch.gate_up = place(rows * 2 * config.intermediate_size);
  scratch.activated = place(rows * config.intermediate_size);
  scratch.partials = place(options.shard.is_whole() ? 0 : options.shard.count * rows * config.hidden_size);
  scratch.last = place(last_rows * config.hidden_size * element);
  scratch.last_normed = place(last_rows * config.hidden_size * element);
  scratch.logits = place(last_rows * LogitsStride(config, options.num_token_ids) * kFloatBytes);
  scratch.cosines = place(options.context_tokens_max * config.head_dim / 2 * kFloatBytes);
  scratch.sines = place(options.context_tokens_max * config.head_dim / 2 * kFloatBytes);
  scratch.products = place(kProductWorkspaceBytes);
  scratch.attention = place(attention_workspace_bytes);
  return scratch;
}

absl::Status CheckFits(const std::string& what, int64_t wanted_bytes, const FreeMemory& memory) {
  if (wanted_bytes <= memory.free_bytes) return absl::OkStatus();
  const auto gib = [](int64_t bytes) { return static_cast<double>(bytes) * 0x1p-30; };
  return absl::ResourceExhaustedError(absl::StrFormat(
      "decoder on a GPU: %s want %.2f GiB, and GPU %d has %.2f of its %.2f GiB free: ask for fewer pages or "
      "rows, or "
      "end what else is on it",
      what, gib(wanted_bytes), memory.device, gib(memory.free_bytes), gib(memory.total_bytes)));
}

}  // namespace warpsmith
