#include "core/checkpoint/tensor_info.h"

#include <iterator>

namespace warpsmith {
namespace {

struct TensorTypeEntry {
  std::string_view name;
  int64_t bytes;
};

// In the order of the enumeration.
constexpr TensorTypeEntry kTensorTypes[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
    {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"I64", 8},     {"U64", 8}, {"F64", 8}};

const TensorTypeEntry& EntryOf(TensorType type) { return kTensorTypes[static_cast<size_t>(type)]; }

}  // namespace

std::string_view TensorTypeName(TensorType type) { return EntryOf(type).name; }

std::optional<TensorType> TensorTypeFromName(std::string_view name) {
  for (size_t i = 0; i < std::size(kTensorTypes); ++i) {
    if (kTensorTypes[i].name == name) return static_cast<TensorType>(i);
  }
  return std::nullopt;
}

int64_t TensorTypeBytes(TensorType type) { return EntryOf(type).bytes; }

std::optional<int64_t> TensorBytes(const TensorInfo& tensor) {
  int64_t bytes = TensorTypeBytes(tensor.type);
  for (const int64_t dimension : tensor.shape) {
    if (dimension < 0 || __builtin_mul_overflow(bytes, dimension, &bytes)) return std::nullopt;
  }
  return bytes;
}

}  // namespace warpsmith
