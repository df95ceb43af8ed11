#include "trainer/cold_start_data.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "proto/advice_words.h"
#include "trainer/json_lines.h"
#include "trainer/task_source.h"

namespace warpsmith {
namespace {

absl::Status ParseFeedback(const JsonLine& line, PromptParts* parts) {
  ASSIGN_OR_RETURN(parts->previous, line.Text("previous_source"));
  const nlohmann::json* feedback = line.Find("feedback");
  for (const auto& [key, value] :
       {std::pair("finding", &parts->finding), std::pair("evidence", &parts->evidence),
        std::pair("advice", &parts->advice)}) {
    if (feedback == nullptr || !feedback->is_object() || !feedback->contains(key) ||
        !(*feedback)[key].is_string()) {
      return line.Error(absl::StrCat("\"feedback\" must have a string \"", key, "\""));
    }
    *value = (*feedback)[key].get<std::string>();
  }
  if (AdviceOfWords(parts->advice) != v1::ADVICE_UNSPECIFIED) return absl::OkStatus();
  return line.Error(absl::StrCat("the advice \"", parts->advice, "\" is none of: ", AllAdviceWords()));
}

absl::StatusOr<ColdStartPair> ParsePair(const JsonLine& line) {
  ColdStartPair pair;
  ASSIGN_OR_RETURN(const std::string skill, line.Text("skill"));
  ASSIGN_OR_RETURN(pair.parts.reference, line.Text("reference_source"));
  ASSIGN_OR_RETURN(pair.parts.allowed_libraries, line.TextsOr("allowed_libraries", {}));
  ASSIGN_OR_RETURN(pair.answer, line.Text("answer"));
  if (skill == "generate") return pair;
  if (skill != "optimise") return line.Error("\"skill\" must be \"generate\" or \"optimise\"");
  pair.skill = Skill::kOptimise;
  RETURN_IF_ERROR(ParseFeedback(line, &pair.parts));
  return pair;
}

}  // namespace

absl::StatusOr<std::vector<ColdStartPair>> LoadColdStartPairs(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::vector<JsonLine> lines, ReadJsonLines(path));
  std::vector<ColdStartPair> pairs;
  for (const JsonLine& line : lines) {
    ASSIGN_OR_RETURN(ColdStartPair pair, ParsePair(line));
    pairs.push_back(std::move(pair));
  }
  if (pairs.empty()) return absl::InvalidArgumentError(absl::StrCat("no pair in ", path.string()));
  return pairs;
}

absl::StatusOr<TrainingSequence> TokenisePair(const ColdStartPair& pair, const Prompts& prompts) {
  TrainingSequence sequence;
  ASSIGN_OR_RETURN(sequence.tokens, pair.skill == Skill::kGenerate ? prompts.Generate(pair.parts)
                                                                   : prompts.Optimise(pair.parts));
  sequence.num_prompt_tokens = static_cast<int32_t>(sequence.tokens.size());
  ASSIGN_OR_RETURN(const std::vector<int32_t> answer, prompts.Answer(pair.answer));
  sequence.tokens.insert(sequence.tokens.end(), answer.begin(), answer.end());
  return sequence;
}

ColdStartData::ColdStartData(std::vector<ColdStartPair> pairs, const Prompts* prompts, int64_t tokens_max,
                             uint64_t seed)
    : pairs_(std::move(pairs)), prompts_(prompts), tokens_max_(tokens_max), seed_(seed) {
  WS_CHECK(!pairs_.empty());
}

absl::StatusOr<std::vector<TrainingSequence>> ColdStartData::Draw(int count) {
  std::vector<TrainingSequence> sequences;
  size_t num_passed_over = 0;
  while (static_cast<int>(sequences.size()) < count) {
    ASSIGN_OR_RETURN(TrainingSequence sequence, TokenisePair(PairAt(cursor_++), *prompts_));
    if (sequence.num_tokens() <= tokens_max_) {
      sequences.push_back(std::move(sequence));
      num_passed_over = 0;
    } else if (++num_passed_over == pairs_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no cold-start pair has at most ", tokens_max_, " tokens, the model's limit"));
    }
  }
  return sequences;
}

const ColdStartPair& ColdStartData::PairAt(uint64_t cursor) {
  const uint64_t pass = cursor / pairs_.size();
  if (order_.empty() || pass != pass_) {
    pass_ = pass;
    order_ = SeededPermutation(pairs_.size(), UniformWord(seed_, pass));
  }
  return pairs_[order_[cursor % pairs_.size()]];
}

}  // namespace warpsmith
