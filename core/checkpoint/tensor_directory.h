// The weights of a Hugging Face checkpoint: model.safetensors, or shards with model.safetensors.index.json.
#ifndef WARPSMITH_CORE_CHECKPOINT_TENSOR_DIRECTORY_H_
#define WARPSMITH_CORE_CHECKPOINT_TENSOR_DIRECTORY_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint/safetensors_file.h"
#include "core/checkpoint/tensor_info.h"

namespace warpsmith {

// All tensors of a checkpoint, mapped. Immutable; its views live as long as it does.
class TensorDirectory {
 public:
  // NOT_FOUND without either file. INVALID_ARGUMENT for a file that is wrong, and unless index and shards
  // agree: each tensor of the index lies in the shard it names, each tensor of a shard is in the index.
  static absl::StatusOr<TensorDirectory> Open(const std::filesystem::path& directory);

  // Null if there is none of this name.
  const TensorView* Find(std::string_view name) const;

  // Shard by shard, in the order of their bytes.
  std::vector<const TensorView*> tensors() const;

 private:
  explicit TensorDirectory(std::vector<SafetensorsFile> shards);

  std::vector<SafetensorsFile> shards_;
  absl::flat_hash_map<std::string, const TensorView*> by_name_;
};

// Writes `tensors` in their order as model.safetensors, or, if they have more than `shard_bytes_max` bytes,
// as shards of at most so many (a larger tensor gets one of its own) with the index written last. The
// directory must exist.
absl::Status WriteTensorDirectory(const std::filesystem::path& directory,
                                  const std::vector<TensorInfo>& tensors, int64_t shard_bytes_max,
                                  const TensorSource& source);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CHECKPOINT_TENSOR_DIRECTORY_H_
