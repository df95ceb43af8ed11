// Tensors in a safetensors file (github.com/huggingface/safetensors, "Format").
#ifndef WARPSMITH_TRAINER_TENSOR_FILE_H_
#define WARPSMITH_TRAINER_TENSOR_FILE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpsmith {

// Bytes of one tensor, little-endian and contiguous; they belong to somebody else.
struct TensorBytes {
  std::string name;
  std::string dtype;  // "F32", "BF16", ...
  std::vector<int64_t> shape;
  std::string_view bytes;
};

// Writes the file and syncs it. Returns the SHA-256 of its bytes. RESOURCE_EXHAUSTED when the disk is full.
absl::StatusOr<std::string> WriteTensorFile(const std::filesystem::path& path,
                                            const std::vector<TensorBytes>& tensors);

// A file in memory, with views into it that live as long as this.
struct TensorFile {
  std::string content;
  std::map<std::string, TensorBytes> tensors;
};

// INVALID_ARGUMENT for a file that is no safetensors file or whose tensors do not fit into it.
absl::StatusOr<std::unique_ptr<TensorFile>> ReadTensorFile(const std::filesystem::path& path);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_TENSOR_FILE_H_
