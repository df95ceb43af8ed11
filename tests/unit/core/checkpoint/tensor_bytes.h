// Tensors with recognisable bytes for the tests of this folder.
#ifndef WARPSMITH_TESTS_UNIT_CORE_CHECKPOINT_TENSOR_BYTES_H_
#define WARPSMITH_TESTS_UNIT_CORE_CHECKPOINT_TENSOR_BYTES_H_

#include <algorithm>
#include <string>
#include <vector>

#include "core/checkpoint/tensor_info.h"

namespace warpsmith {

// As many bytes as the tensor has, different for each name.
inline std::vector<std::byte> MakeBytes(const TensorInfo& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(*TensorBytes(tensor)));
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(tensor.name.back() * 7 + i % 251);
  return bytes;
}

// Gives MakeBytes in parts of at most 1,000 bytes.
inline absl::Status MakeBytesInParts(const TensorInfo& tensor, const ByteSink& sink) {
  const std::vector<std::byte> bytes = MakeBytes(tensor);
  for (size_t at = 0; at < bytes.size(); at += 1000) {
    const size_t size = std::min<size_t>(1000, bytes.size() - at);
    if (absl::Status status = sink({bytes.data() + at, size}); !status.ok()) return status;
  }
  return absl::OkStatus();
}

inline bool HasBytes(const TensorView& view, const std::vector<std::byte>& bytes) {
  return std::equal(view.bytes.begin(), view.bytes.end(), bytes.begin(), bytes.end());
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_CORE_CHECKPOINT_TENSOR_BYTES_H_
