// Reads one safetensors file.
#ifndef WARPSMITH_CORE_CHECKPOINT_SAFETENSORS_FILE_H_
#define WARPSMITH_CORE_CHECKPOINT_SAFETENSORS_FILE_H_

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/checkpoint/mapped_file.h"
#include "core/checkpoint/safetensors_header.h"
#include "core/checkpoint/tensor_info.h"

namespace warpsmith {

// Immutable; the views it gives live as long as it does.
class SafetensorsFile {
 public:
  // Maps the file and checks all of its header, see ParseSafetensorsHeader; errors begin with the path.
  static absl::StatusOr<SafetensorsFile> Open(const std::filesystem::path& path);

  // In the order of their bytes.
  const std::vector<TensorView>& tensors() const { return tensors_; }

  // Null if there is none of this name.
  const TensorView* Find(std::string_view name) const;

  const TensorMetadata& metadata() const { return metadata_; }

 private:
  SafetensorsFile(MappedFile file, SafetensorsHeader header, std::span<const std::byte> data);

  MappedFile file_;
  std::vector<TensorView> tensors_;
  TensorMetadata metadata_;
  absl::flat_hash_map<std::string, size_t> index_by_name_;
};

// As SafetensorsFile::Open, on bytes in memory: the tensors of a whole file.
absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(std::span<const std::byte> file,
                                                        std::span<const std::byte>* data);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CHECKPOINT_SAFETENSORS_FILE_H_
