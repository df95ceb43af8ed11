#include "trainer/export.h"

#include <cstddef>
#include <exception>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/hugging_face_directory.h"
#include "core/model/model_config.h"
#include "nlohmann/json.hpp"

namespace warpsmith {
namespace {

absl::StatusOr<std::vector<NamedFile>> TextFiles(const Parameters& parameters, const Prompts& prompts,
                                                 const std::filesystem::path& prompts_directory,
                                                 const Sampling& sampling) {
  const nlohmann::ordered_json generation = {{"do_sample", true},
                                             {"temperature", sampling.temperature},
                                             {"top_p", sampling.top_p},
                                             {"top_k", sampling.top_k},
                                             {"eos_token_id", prompts.stop_token_id()},
                                             {"pad_token_id", prompts.stop_token_id()}};
  const nlohmann::ordered_json trained_with = {{"prompts_sha256", prompts.sha256()}};
  std::vector<NamedFile> files = {{"config.json", WriteModelConfig(parameters.config())},
                                  {"generation_config.json", generation.dump(2) + "\n"},
                                  {"prompts.json", trained_with.dump(2) + "\n"}};
  for (const TokenizerFile& file : prompts.tokenizer().files()) files.push_back({file.name, file.content});
  for (const char* name : {"generate.txt", "optimise.txt"}) {
    ASSIGN_OR_RETURN(std::string text, ReadFile(prompts_directory / name));
    files.push_back({absl::StrCat("prompt_", name), std::move(text)});
  }
  return files;
}

}  // namespace

absl::Status ExportHuggingFace(const Parameters& parameters, const Prompts& prompts,
                               const std::filesystem::path& prompts_directory, const Sampling& sampling,
                               const std::filesystem::path& directory) {
  std::map<std::string, at::Tensor> tensors;
  try {
    tensors = parameters.ToHf(at::kFloat);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("export failed in LibTorch: ", Escape(error.what(), 2048)));
  }
  HuggingFaceContents contents;
  ASSIGN_OR_RETURN(contents.files, TextFiles(parameters, prompts, prompts_directory, sampling));
  for (const auto& [name, tensor] : tensors) {
    contents.tensors.push_back(
        {.name = name, .type = TensorType::kF32, .shape = {tensor.sizes().begin(), tensor.sizes().end()}});
  }
  std::error_code error;
  std::filesystem::remove_all(directory, error);
  if (error)
    return absl::InternalError(absl::StrCat("cannot remove ", directory.string(), ": ", error.message()));
  return WriteHuggingFaceDirectory(directory, contents, [&](const TensorInfo& info, const ByteSink& sink) {
    const at::Tensor& tensor = tensors.at(info.name);
    const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
    return sink({data, static_cast<size_t>(tensor.nbytes())});
  });
}

}  // namespace warpsmith
