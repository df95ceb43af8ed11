#include "rollout_workers/serving/generation_defaults.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/json_depth.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith::serving {
namespace {

using Json = nlohmann::json;

constexpr int64_t kFileBytesMax = int64_t{1} << 20;
constexpr size_t kShownBytesMax = 100;

// Lists keys of transformers' GenerationConfig: what is applied here or by the engine, and what changes no text.
constexpr const char* kHarmless[] = {
    "temperature", "top_p", "top_k", "min_p", "eos_token_id",
    // ids that only pad or begin a prompt, which is taken as it comes
    "pad_token_id", "bos_token_id", "decoder_start_token_id",
    // how fast, in what memory, and what comes beside the text
    "use_cache", "cache_implementation", "cache_config", "max_cache_len", "low_memory", "compile_config",
    "disable_compile", "prefill_chunk_size", "continuous_batching_config", "use_mtp", "output_attentions",
    "output_hidden_states", "output_scores", "output_logits", "return_dict_in_generate",
    // speculation, which keeps the distribution
    "is_assistant", "num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold",
    "prompt_lookup_num_tokens", "max_matching_ngram_size", "assistant_early_exit", "assistant_lookbehind",
    "target_lookbehind", "assistant_ensemble_weight", "speculation_type",
    // of the file itself
    "transformers_version", "_from_model_config"};

// Lists keys that 1 switches off; everything else is off by null, false, 0 or emptiness, but token ids by null alone.
constexpr const char* kOffByOne[] = {"repetition_penalty", "encoder_repetition_penalty",
                                     "length_penalty",     "typical_p",
                                     "guidance_scale",     "num_beams",
                                     "num_beam_groups",    "num_return_sequences"};

bool IsOff(const std::string& key, const Json& value) {
  if (value.is_null()) return true;
  if (key == "do_sample") return value == true;  // which a temperature of 0 switches off here
  if (absl::EndsWith(key, "_token_id")) return false;
  if (absl::c_linear_search(kOffByOne, key)) return value == 1;
  return value == false || value == 0 || (!value.is_primitive() && value.empty()) || value == "";
}

std::vector<std::string> NotApplied(const Json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) {
    if (absl::c_linear_search(kHarmless, key) || IsOff(key, value)) continue;
    const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    keys.push_back(absl::StrCat(Escape(key, kShownBytesMax), " ", Escape(text, kShownBytesMax)));
  }
  return keys;
}

}  // namespace

absl::StatusOr<GenerationDefaults> ReadGenerationDefaults(const std::filesystem::path& directory) {
  GenerationDefaults defaults;
  const std::filesystem::path path = directory / "generation_config.json";
  const absl::StatusOr<std::string> text = ReadFile(path, kFileBytesMax);
  if (absl::IsNotFound(text.status())) return defaults;
  RETURN_IF_ERROR(text.status());
  const Json json = NestsDeeperThan(*text) ? Json() : Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError(path.string() + " is not a JSON object");
  absl::Status fault;
  const auto number = [&](const char* name, double otherwise) {
    const Json value = json.value(name, Json());
    if (value.is_number()) return value.get<double>();
    if (!value.is_null()) {
      fault.Update(absl::InvalidArgumentError(
          absl::StrCat(name, " is ", Escape(value.dump(), kShownBytesMax), ", but must be a number")));
    }
    return otherwise;
  };
  SamplingParameters& sampling = defaults.sampling;
  sampling.temperature = number("temperature", sampling.temperature);
  sampling.top_p = number("top_p", sampling.top_p);
  sampling.min_p = number("min_p", sampling.min_p);
  sampling.top_k = static_cast<int>(std::clamp(number("top_k", 0), 0.0, 1e9));
  fault.Update(Validate(sampling));
  if (!fault.ok()) return absl::InvalidArgumentError(absl::StrCat(path.string(), ": ", fault.message()));
  defaults.not_applied = NotApplied(json);
  return defaults;
}

}  // namespace warpsmith::serving
