#include "trainer/export.h"

#include <exception>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/model/model_config.h"
#include "nlohmann/json.hpp"
#include "trainer/tensor_file.h"

namespace warpsmith {
namespace {

constexpr size_t kShardBytesMax = size_t{4} << 30;

using HfTensors = std::map<std::string, at::Tensor>;

TensorBytes BytesOf(const std::string& name, const at::Tensor& tensor) {
  const auto* data = static_cast<const char*>(tensor.const_data_ptr());
  return {.name = name,
          .dtype = "F32",
          .shape = {tensor.sizes().begin(), tensor.sizes().end()},
          .bytes = {data, static_cast<size_t>(tensor.nbytes())}};
}

// Fills shards in order of names, none above the limit but for a single tensor that is.
std::vector<std::vector<TensorBytes>> Shards(const HfTensors& tensors) {
  std::vector<std::vector<TensorBytes>> shards;
  size_t size = 0;
  for (const auto& [name, tensor] : tensors) {
    const TensorBytes bytes = BytesOf(name, tensor);
    if (shards.empty() || size + bytes.bytes.size() > kShardBytesMax) {
      shards.emplace_back();
      size = 0;
    }
    size += bytes.bytes.size();
    shards.back().push_back(bytes);
  }
  return shards;
}

absl::Status WriteWeights(const Parameters& parameters, const std::filesystem::path& directory) {
  HfTensors tensors;
  try {
    tensors = parameters.ToHf(at::kFloat);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("export failed in LibTorch: ", Escape(error.what(), 2048)));
  }
  const auto shards = Shards(tensors);
  nlohmann::ordered_json index = {{"metadata", {{"total_size", 0}}},
                                  {"weight_map", nlohmann::ordered_json::object()}};
  size_t total_size = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = absl::StrFormat("model-%05d-of-%05d.safetensors", i + 1, shards.size());
    RETURN_IF_ERROR(WriteTensorFile(directory / name, shards[i]).status());
    for (const TensorBytes& tensor : shards[i]) {
      index["weight_map"][tensor.name] = name;
      total_size += tensor.bytes.size();
    }
  }
  index["metadata"]["total_size"] = total_size;
  return WriteFileAtomically(directory / "model.safetensors.index.json", index.dump(2) + "\n");
}

absl::Status WriteTexts(const Parameters& parameters, const Prompts& prompts,
                        const std::filesystem::path& prompts_directory,
                        const std::filesystem::path& directory) {
  RETURN_IF_ERROR(WriteFileAtomically(directory / "config.json", WriteModelConfig(parameters.config())));
  const nlohmann::ordered_json generation = {{"do_sample", true},
                                             {"temperature", 1.0},
                                             {"eos_token_id", prompts.stop_token_id()},
                                             {"pad_token_id", prompts.stop_token_id()}};
  RETURN_IF_ERROR(WriteFileAtomically(directory / "generation_config.json", generation.dump(2) + "\n"));
  for (const TokenizerFile& file : prompts.tokenizer().files()) {
    RETURN_IF_ERROR(WriteFileAtomically(directory / file.name, file.content));
  }
  for (const char* name : {"generate.txt", "optimise.txt"}) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(prompts_directory / name));
    RETURN_IF_ERROR(WriteFileAtomically(directory / absl::StrCat("prompt_", name), text));
  }
  const nlohmann::ordered_json trained_with = {{"prompts_sha256", prompts.sha256()}};
  return WriteFileAtomically(directory / "prompts.json", trained_with.dump(2) + "\n");
}

}  // namespace

absl::Status ExportHuggingFace(const Parameters& parameters, const Prompts& prompts,
                               const std::filesystem::path& prompts_directory,
                               const std::filesystem::path& directory) {
  const std::filesystem::path unfinished = directory.string() + ".unfinished";
  std::error_code error;
  std::filesystem::remove_all(unfinished, error);
  std::filesystem::create_directories(unfinished, error);
  if (error)
    return absl::InternalError(absl::StrCat("cannot make ", unfinished.string(), ": ", error.message()));
  absl::Status written = WriteTexts(parameters, prompts, prompts_directory, unfinished);
  if (written.ok()) written = WriteWeights(parameters, unfinished);
  if (written.ok()) {
    std::filesystem::remove_all(directory, error);
    std::filesystem::rename(unfinished, directory, error);
    if (error)
      written = absl::InternalError(absl::StrCat("cannot make ", directory.string(), ": ", error.message()));
  }
  if (!written.ok()) std::filesystem::remove_all(unfinished, error);
  return written;
}

}  // namespace warpsmith
