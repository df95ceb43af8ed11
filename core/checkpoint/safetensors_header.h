// The header of a safetensors file: 8 bytes of length (little-endian), then JSON, then the tensors' bytes.
// Format: https://github.com/huggingface/safetensors, section "Format".
#ifndef WARPSMITH_CORE_CHECKPOINT_SAFETENSORS_HEADER_H_
#define WARPSMITH_CORE_CHECKPOINT_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/checkpoint/tensor_info.h"

namespace warpsmith {

inline constexpr int64_t kSafetensorsLengthBytes = 8;
inline constexpr int64_t kSafetensorsHeaderBytesMax = 100'000'000;  // the reference implementation's limit

using TensorMetadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  struct Entry {
    TensorInfo info;
    int64_t begin = 0;  // bytes from the end of the header
    int64_t end = 0;
  };
  std::vector<Entry> entries;  // in the order of their bytes
  TensorMetadata metadata;
};

// Reads the JSON of a header in front of `data_bytes` bytes. INVALID_ARGUMENT, with the tensor and its
// values, unless: names are unique, types known, each tensor's size is that of its type and shape, and the
// tensors cover the data without gap or overlap.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json, int64_t data_bytes);

// The beginning of a file that holds `tensors` in this order: length and JSON, padded to a multiple of 8
// bytes. INVALID_ARGUMENT for a name that is empty, given twice or reserved, and for a shape that cannot be.
absl::StatusOr<std::string> FormatSafetensorsHeader(const std::vector<TensorInfo>& tensors,
                                                    const TensorMetadata& metadata);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CHECKPOINT_SAFETENSORS_HEADER_H_
