#include "trainer/run_folder/source_model.h"

#include <cstdint>
#include <utility>

#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr int64_t kFileBytesMax = int64_t{1} << 20;

}  // namespace

absl::StatusOr<SourceModel> ReadSourceModel(const std::filesystem::path& model_directory,
                                            const ModelConfig& config) {
  SourceModel source;
  if (model_directory.empty()) {
    source.config_json = WriteModelConfig(config);
    return source;
  }
  ASSIGN_OR_RETURN(source.config_json, ReadFile(model_directory / "config.json", kFileBytesMax));
  absl::StatusOr<std::string> generation =
      ReadFile(model_directory / "generation_config.json", kFileBytesMax);
  if (!absl::IsNotFound(generation.status())) {
    ASSIGN_OR_RETURN(source.generation_config_json, std::move(generation));
  }
  ASSIGN_OR_RETURN(source.stop_token_ids, CheckpointStopTokens(model_directory));
  ASSIGN_OR_RETURN(source.tensor_types, ReadTensorTypes(model_directory));
  return source;
}

}  // namespace warpsmith
