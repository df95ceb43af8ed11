#include "prompting/prompts.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr char kEndOfTurn[] = "<|im_end|>";

// However a program ends, the prompt goes on in a new line.
std::string Program(const std::string& source) {
  return absl::StrCat(absl::StripTrailingAsciiWhitespace(source), "\n");
}

std::string OneLine(const std::string& text) {
  return absl::StrReplaceAll(absl::StripAsciiWhitespace(text), {{"\r", ""}, {"\n", " "}});
}

absl::StatusOr<PromptTemplate> LoadTemplate(const std::filesystem::path& path,
                                            const std::vector<std::string>& slots) {
  ASSIGN_OR_RETURN(PromptTemplate loaded, PromptTemplate::Load(path));
  if (loaded.slot_names() == slots) return loaded;
  return absl::InvalidArgumentError(absl::StrCat(path.string(), " has the slots ",
                                                 absl::StrJoin(loaded.slot_names(), ", "),
                                                 "; its skill fills ", absl::StrJoin(slots, ", ")));
}

}  // namespace

absl::StatusOr<Prompts> Prompts::Load(const std::filesystem::path& tokenizer_directory,
                                      const std::filesystem::path& prompts_directory,
                                      const std::filesystem::path& model_directory) {
  ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Load(tokenizer_directory));
  ASSIGN_OR_RETURN(PromptTemplate generate, LoadTemplate(prompts_directory / "generate.txt", {"reference"}));
  ASSIGN_OR_RETURN(PromptTemplate optimise,
                   LoadTemplate(prompts_directory / "optimise.txt",
                                {"advice", "evidence", "finding", "previous", "reference"}));
  ASSIGN_OR_RETURN(TokenIds stop, StopTokens(tokenizer, model_directory));
  return Prompts(std::move(tokenizer), std::move(generate), std::move(optimise), std::move(stop));
}

Prompts::Prompts(Tokenizer tokenizer, PromptTemplate generate, PromptTemplate optimise,
                 TokenIds stop_token_ids)
    : tokenizer_(std::move(tokenizer)),
      generate_(std::move(generate)),
      optimise_(std::move(optimise)),
      stop_token_ids_(std::move(stop_token_ids)) {
  sha256_ = Sha256Hex(absl::StrCat(generate_.sha256(), optimise_.sha256(), tokenizer_.sha256()));
}

absl::StatusOr<std::vector<int32_t>> Prompts::Generate(const PromptParts& parts) const {
  return generate_.Render(tokenizer_, {{"reference", Program(parts.reference)}});
}

absl::StatusOr<std::vector<int32_t>> Prompts::Optimise(const PromptParts& parts) const {
  return optimise_.Render(tokenizer_, {{"reference", Program(parts.reference)},
                                       {"previous", Program(parts.previous)},
                                       {"finding", OneLine(parts.finding)},
                                       {"evidence", OneLine(parts.evidence)},
                                       {"advice", parts.advice}});
}

absl::StatusOr<std::vector<int32_t>> Prompts::Answer(const std::string& text) const {
  ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer_.Encode(text, SpecialTokens::kAsText));
  ids.push_back(tokenizer_.TokenId(kEndOfTurn).value_or(stop_token_ids_[0]));
  return ids;
}

}  // namespace warpsmith
