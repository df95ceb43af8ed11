// Writes one safetensors file, tensor by tensor.
#ifndef WARPSMITH_CORE_CHECKPOINT_SAFETENSORS_WRITER_H_
#define WARPSMITH_CORE_CHECKPOINT_SAFETENSORS_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint/atomic_file.h"
#include "core/checkpoint/safetensors_header.h"
#include "core/checkpoint/tensor_info.h"

namespace warpsmith {

// The tensors are announced first, since the header comes first, and then written in that order. The file is
// there, whole and on disk, once Finish() has returned OK; otherwise nothing is left behind. Not thread-safe.
class SafetensorsWriter {
 public:
  // Errors of FormatSafetensorsHeader and of the file system.
  static absl::StatusOr<SafetensorsWriter> Create(const std::filesystem::path& path,
                                                  std::vector<TensorInfo> tensors,
                                                  const TensorMetadata& metadata = {});

  // The next bytes of tensor `name`, which is the first that is not complete. INVALID_ARGUMENT for another
  // tensor, or for more bytes than it has.
  absl::Status Write(std::string_view name, std::span<const std::byte> bytes);

  // FAILED_PRECONDITION while a tensor is not complete.
  absl::Status Finish();

 private:
  SafetensorsWriter(AtomicFile file, std::vector<TensorInfo> tensors);
  void SkipComplete();

  AtomicFile file_;
  std::vector<TensorInfo> tensors_;
  size_t current_ = 0;      // the first tensor that is not complete
  int64_t bytes_left_ = 0;  // of it
};

// Writes `tensors` to one file, their bytes taken from `source`.
absl::Status WriteSafetensors(const std::filesystem::path& path, const std::vector<TensorInfo>& tensors,
                              const TensorMetadata& metadata, const TensorSource& source);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CHECKPOINT_SAFETENSORS_WRITER_H_
