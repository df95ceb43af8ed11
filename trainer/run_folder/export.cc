#include "trainer/run_folder/export.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/hugging_face_directory.h"
#include "nlohmann/json.hpp"

namespace warpsmith {
namespace {

using Json = nlohmann::ordered_json;

// Of a file that was checked when it was read; an empty object for one that is not there.
Json Parsed(const std::string& text) {
  return text.empty() ? Json::object() : Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// Lists what else transformers reads of a generation_config.json to decide the next token. Training samples by
// temperature, top_p and top_k alone.
constexpr const char* kOtherSamplingKeys[] = {"assistant_confidence_threshold",
                                              "bad_words_ids",
                                              "begin_suppress_tokens",
                                              "constraints",
                                              "diversity_penalty",
                                              "dola_layers",
                                              "early_stopping",
                                              "encoder_no_repeat_ngram_size",
                                              "encoder_repetition_penalty",
                                              "epsilon_cutoff",
                                              "eta_cutoff",
                                              "exponential_decay_length_penalty",
                                              "force_words_ids",
                                              "forced_bos_token_id",
                                              "forced_decoder_ids",
                                              "forced_eos_token_id",
                                              "frequency_penalty",
                                              "guidance_scale",
                                              "length_penalty",
                                              "min_length",
                                              "min_new_tokens",
                                              "min_p",
                                              "min_tokens",
                                              "no_repeat_ngram_size",
                                              "num_beam_groups",
                                              "num_beams",
                                              "penalty_alpha",
                                              "presence_penalty",
                                              "remove_invalid_values",
                                              "renormalize_logits",
                                              "repetition_penalty",
                                              "sequence_bias",
                                              "stop_strings",
                                              "suppress_tokens",
                                              "token_healing",
                                              "top_h",
                                              "typical_p",
                                              "watermarking_config"};

// `text` with the members of `changes` in place of its own and without `removed`; as it is where that changes nothing.
std::string Changed(const std::string& text, const Json& changes, std::span<const char* const> removed = {}) {
  const Json before = Parsed(text);
  Json after = before;
  for (const char* const key : removed) after.erase(key);
  for (const auto& [key, value] : changes.items()) after[key] = value;
  return after == before ? text : after.dump(2) + "\n";
}

std::string ConfigJson(const Prompts& prompts, const SourceModel& source) {
  if (source.stop_token_ids == prompts.stop_token_ids()) return source.config_json;
  return Changed(source.config_json, {{"eos_token_id", prompts.stop_token_ids()}});
}

std::string GenerationConfigJson(const Prompts& prompts, const SourceModel& source,
                                 const Sampling& sampling) {
  Json changes = {{"do_sample", true},
                  {"temperature", sampling.temperature},
                  {"top_p", sampling.top_p},
                  {"top_k", sampling.top_k}};
  const bool names_all = Parsed(source.generation_config_json).contains("eos_token_id") &&
                         source.stop_token_ids == prompts.stop_token_ids();
  if (!names_all) changes["eos_token_id"] = prompts.stop_token_ids();
  if (source.generation_config_json.empty()) changes["pad_token_id"] = prompts.stop_token_ids().back();
  return Changed(source.generation_config_json, changes, kOtherSamplingKeys);
}

absl::StatusOr<std::vector<NamedFile>> TextFiles(const Prompts& prompts, const SourceModel& source,
                                                 const std::filesystem::path& prompts_directory,
                                                 const Sampling& sampling) {
  const Json trained_with = {{"prompts_sha256", prompts.sha256()}};
  std::vector<NamedFile> files = {{"config.json", ConfigJson(prompts, source)},
                                  {"generation_config.json", GenerationConfigJson(prompts, source, sampling)},
                                  {"prompts.json", trained_with.dump(2) + "\n"}};
  for (const TokenizerFile& file : prompts.TokenizerFiles()) files.push_back({file.name, file.content});
  for (const char* name : {"generate.txt", "optimise.txt"}) {
    ASSIGN_OR_RETURN(std::string text, ReadFile(prompts_directory / name));
    files.push_back({absl::StrCat("prompt_", name), std::move(text)});
  }
  return files;
}

}  // namespace

absl::Status ExportHuggingFace(const Parameters& parameters, const Prompts& prompts,
                               const SourceModel& source, const std::filesystem::path& prompts_directory,
                               const Sampling& sampling, const std::filesystem::path& directory) {
  HuggingFaceContents contents;
  ASSIGN_OR_RETURN(contents.files, TextFiles(prompts, source, prompts_directory, sampling));
  contents.tensors = HuggingFaceTensors(parameters.layout(), source.tensor_types);
  return WriteHuggingFaceDirectory(directory, contents, HuggingFaceSource(parameters));
}

}  // namespace warpsmith
