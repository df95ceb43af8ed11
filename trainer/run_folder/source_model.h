// The form of the checkpoint that a run starts from, so that its export has it as well.
#ifndef WARPSMITH_TRAINER_RUN_FOLDER_SOURCE_MODEL_H_
#define WARPSMITH_TRAINER_RUN_FOLDER_SOURCE_MODEL_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "core/model/hugging_face_weights.h"
#include "core/model/model_config.h"
#include "prompting/stop_tokens.h"

namespace warpsmith {

// Of random weights, the form is ours: float32 and the keys of `ModelConfig`.
struct SourceModel {
  std::string config_json;             // text of the file
  std::string generation_config_json;  // text of the file; empty: there is none
  TokenIds stop_token_ids;             // of these files: see CheckpointStopTokens
  TensorTypes tensor_types;            // F32 for what is not in it
};

// Of the checkpoint in `model_directory`, the headers of its weights alone; of random weights of
// the shape `config` for an empty path. Read at the start, for a run must not find out at its end
// that the folder is gone. The errors of the files' readers; INVALID_ARGUMENT for a file that is no
// JSON object.
absl::StatusOr<SourceModel> ReadSourceModel(const std::filesystem::path& model_directory,
                                            const ModelConfig& config);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_RUN_FOLDER_SOURCE_MODEL_H_
