#include "prompting/prompts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr char kEndOfTurn[] = "<|im_end|>";
constexpr char kLibraries[] = "libraries";

// What a native CUDA program may use: reward_service/compiler/cuda_compiler.h has the same two cases.
constexpr char kNoLibraries[] =
    "Libraries beyond CUDA's runtime and the C++ standard library are not available: compute in kernels of "
    "your own.";
constexpr char kBlas[] =
    "cuBLAS, cuBLASLt and cuDNN are available: include their headers and call them, and their work counts as "
    "the program's own. Other libraries beyond CUDA's runtime and the C++ standard library are not "
    "available.";

std::string Libraries(const std::vector<std::string>& allowed) {
  return absl::c_linear_search(allowed, "blas") ? kBlas : kNoLibraries;
}

bool TellsLibraries(const PromptTemplate& text) {
  return absl::c_linear_search(text.slot_names(), kLibraries);
}

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
  std::vector<std::string> own = loaded.slot_names();
  own.erase(std::remove(own.begin(), own.end(), kLibraries), own.end());
  if (own == slots) return loaded;
  return absl::InvalidArgumentError(absl::StrCat(path.string(), " has the slots ",
                                                 absl::StrJoin(loaded.slot_names(), ", "),
                                                 "; its skill fills ", absl::StrJoin(slots, ", ")));
}

absl::Status CheckMarks(const PromptTemplate& text, const Tokenizer& tokenizer,
                        const std::filesystem::path& path, const std::filesystem::path& tokenizer_directory) {
  const absl::Status marks = text.CheckMarks(tokenizer);
  if (marks.ok()) return marks;
  return {marks.code(),
          absl::StrCat(path.string(), ": ", marks.message(), ": write the marks of ",
                       (tokenizer_directory / "tokenizer.json").string(), ", or name other data.prompts")};
}

int32_t AnswerEnd(const PromptTemplate& text, const Tokenizer& tokenizer, const TokenIds& stop_token_ids) {
  const std::vector<std::string> marks = text.Marks();
  for (auto mark = marks.rbegin(); mark != marks.rend(); ++mark) {
    const std::optional<int32_t> id = tokenizer.TokenId(*mark);
    if (id.has_value() && absl::c_linear_search(stop_token_ids, *id)) return *id;
  }
  return tokenizer.TokenId(kEndOfTurn).value_or(stop_token_ids[0]);
}

}  // namespace

absl::StatusOr<Prompts> Prompts::Load(const std::filesystem::path& tokenizer_directory,
                                      const std::filesystem::path& prompts_directory,
                                      const std::filesystem::path& model_directory) {
  ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Load(tokenizer_directory));
  const std::filesystem::path generate_path = prompts_directory / "generate.txt";
  const std::filesystem::path optimise_path = prompts_directory / "optimise.txt";
  ASSIGN_OR_RETURN(PromptTemplate generate, LoadTemplate(generate_path, {"reference"}));
  ASSIGN_OR_RETURN(PromptTemplate optimise,
                   LoadTemplate(optimise_path, {"advice", "evidence", "finding", "previous", "reference"}));
  RETURN_IF_ERROR(CheckMarks(generate, tokenizer, generate_path, tokenizer_directory));
  RETURN_IF_ERROR(CheckMarks(optimise, tokenizer, optimise_path, tokenizer_directory));
  ASSIGN_OR_RETURN(TokenIds stop, StopTokens(tokenizer, model_directory));
  return Prompts(std::move(tokenizer), std::move(generate), std::move(optimise), std::move(stop));
}

Prompts::Prompts(Tokenizer tokenizer, PromptTemplate generate, PromptTemplate optimise,
                 TokenIds stop_token_ids)
    : tokenizer_(std::move(tokenizer)),
      generate_(std::move(generate)),
      optimise_(std::move(optimise)),
      stop_token_ids_(std::move(stop_token_ids)),
      answer_end_id_(AnswerEnd(generate_, tokenizer_, stop_token_ids_)) {
  const bool tells = TellsLibraries(generate_) || TellsLibraries(optimise_);
  sha256_ = Sha256Hex(absl::StrCat(generate_.sha256(), optimise_.sha256(), tokenizer_.sha256(),
                                   tells ? Sha256Hex(kNoLibraries) + Sha256Hex(kBlas) : ""));
}

absl::StatusOr<std::vector<int32_t>> Prompts::Render(const PromptTemplate& text, const PromptParts& parts,
                                                     PromptSlots slots) const {
  if (TellsLibraries(text)) slots[kLibraries] = Libraries(parts.allowed_libraries);
  return text.Render(tokenizer_, slots);
}

absl::StatusOr<std::vector<int32_t>> Prompts::Generate(const PromptParts& parts) const {
  return Render(generate_, parts, {{"reference", Program(parts.reference)}});
}

absl::StatusOr<std::vector<int32_t>> Prompts::Optimise(const PromptParts& parts) const {
  return Render(optimise_, parts,
                {{"reference", Program(parts.reference)},
                 {"previous", Program(parts.previous)},
                 {"finding", OneLine(parts.finding)},
                 {"evidence", OneLine(parts.evidence)},
                 {"advice", parts.advice}});
}

absl::StatusOr<std::vector<int32_t>> Prompts::Answer(const std::string& text) const {
  ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer_.Encode(text, SpecialTokens::kAsText));
  ids.push_back(answer_end_id_);
  return ids;
}

std::vector<TokenizerFile> Prompts::TokenizerFiles() const {
  std::vector<TokenizerFile> files = tokenizer_.files();
  const std::string end = tokenizer_.DecodeBytes({&answer_end_id_, 1}, DecodeSpecial::kKeep);
  for (TokenizerFile& file : files) {
    const bool names_end = file.name == "tokenizer_config.json" || file.name == "special_tokens_map.json";
    if (names_end) file.content = WithEosToken(file.content, end);
  }
  return files;
}

}  // namespace warpsmith
