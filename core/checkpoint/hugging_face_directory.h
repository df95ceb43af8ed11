// Writes a checkpoint that Hugging Face's libraries load: weights, configurations, tokenizer.
#ifndef WARPSMITH_CORE_CHECKPOINT_HUGGING_FACE_DIRECTORY_H_
#define WARPSMITH_CORE_CHECKPOINT_HUGGING_FACE_DIRECTORY_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/checkpoint/tensor_info.h"

namespace warpsmith {

// A small file: config.json, generation_config.json, those of the tokenizer, a model card.
struct NamedFile {
  std::string name;  // without folder
  std::string content;
};

struct HuggingFaceContents {
  std::vector<NamedFile> files;
  std::vector<TensorInfo> tensors;
  int64_t shard_bytes_max = int64_t{5} << 30;
};

// Writes all of it into `directory`.PID.tmp, synced, and exchanges that for `directory`, which is there whole
// or not at all: after an error, or a crash, with what was in it before. Several processes may write the same
// one: the last to finish wins. INVALID_ARGUMENT for a file name with a folder in it, or given twice;
// RESOURCE_EXHAUSTED when the disk is full, with nothing left behind.
absl::Status WriteHuggingFaceDirectory(const std::filesystem::path& directory,
                                       const HuggingFaceContents& contents, const TensorSource& source);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CHECKPOINT_HUGGING_FACE_DIRECTORY_H_
