// Tensors as files know them: name, element type, shape. No arithmetic, no LibTorch.
#ifndef WARPSMITH_CORE_CHECKPOINT_TENSOR_INFO_H_
#define WARPSMITH_CORE_CHECKPOINT_TENSOR_INFO_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace warpsmith {

// Element types of the safetensors format that are whole bytes.
enum class TensorType {
  kBool,
  kU8,
  kI8,
  kF8E4M3,
  kF8E5M2,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kI64,
  kU64,
  kF64
};

// "F32", "BF16", ... as the format writes it.
std::string_view TensorTypeName(TensorType type);
std::optional<TensorType> TensorTypeFromName(std::string_view name);
int64_t TensorTypeBytes(TensorType type);

struct TensorInfo {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;  // row-major; empty for a scalar
};

// Bytes of the whole tensor; nothing if a dimension is negative or the product exceeds int64.
std::optional<int64_t> TensorBytes(const TensorInfo& tensor);

// A tensor in memory of another owner.
struct TensorView {
  TensorInfo info;
  std::span<const std::byte> bytes;  // little-endian elements, not necessarily aligned
};

// Takes the bytes of a tensor, front to back, in as many parts as the caller likes.
using ByteSink = std::function<absl::Status(std::span<const std::byte>)>;

// Gives the bytes of `tensor` to `sink`.
using TensorSource = std::function<absl::Status(const TensorInfo& tensor, const ByteSink& sink)>;

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CHECKPOINT_TENSOR_INFO_H_
