// The Coder as a Hugging Face directory.
#ifndef WARPSMITH_TRAINER_RUN_FOLDER_EXPORT_H_
#define WARPSMITH_TRAINER_RUN_FOLDER_EXPORT_H_

#include <filesystem>

#include "absl/status/status.h"
#include "core/model/parameters.h"
#include "prompting/prompts.h"
#include "trainer/data/group_generator.h"
#include "trainer/run_folder/source_model.h"

namespace warpsmith {

// Writes, in the form of the checkpoint that the run started from:
//   config.json             as it came, unknown keys included
//   generation_config.json  as it came, with the sampling that the Coder was trained with and no other
//   safetensors             each tensor of the type that it had, in files of at most 5 GiB with their index
//   the tokenizer's files   as they are, with the "eos_token" that ends an answer
// and prompts.json (the SHA-256 of what the Coder was trained with) with both templates. A file of
// which nothing changes keeps its bytes. Where answers end with more tokens than the checkpoint
// names, eos_token_id of both configurations becomes the whole list.
//
// The directory is written beside its place and exchanged for an older one there, which an error leaves whole.
// transformers loads it as the architecture that config.json names.
absl::Status ExportHuggingFace(const Parameters& parameters, const Prompts& prompts,
                               const SourceModel& source, const std::filesystem::path& prompts_directory,
                               const Sampling& sampling, const std::filesystem::path& directory);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_RUN_FOLDER_EXPORT_H_
