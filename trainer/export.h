// The Coder as a Hugging Face directory.
#ifndef WARPSMITH_TRAINER_EXPORT_H_
#define WARPSMITH_TRAINER_EXPORT_H_

#include <filesystem>

#include "absl/status/status.h"
#include "core/model/parameters.h"
#include "trainer/group_generator.h"
#include "trainer/prompts.h"

namespace warpsmith {

// Writes config.json, generation_config.json (the sampling that the Coder was trained with), the tokenizer's
// files as they are, prompts.json (the SHA-256 of what the Coder was trained with) and the weights as
// safetensors of at most 4 GB with their index, in float32. The directory is written beside its place and
// renamed; an older one there is replaced. transformers loads it as Qwen3ForCausalLM.
absl::Status ExportHuggingFace(const Parameters& parameters, const Prompts& prompts,
                               const std::filesystem::path& prompts_directory, const Sampling& sampling,
                               const std::filesystem::path& directory);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_EXPORT_H_
