#include "trainer/data/cold_start_data.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/counter_random.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "proto/advice_words.h"
#include "trainer/data/json_lines.h"
#include "trainer/data/task_source.h"

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

constexpr char kTheLimit[] = "the positions of the model (max_position_embeddings)";

absl::Status NoneFits(size_t num_pairs, int64_t tokens_max, std::string_view key) {
  return absl::InvalidArgumentError(absl::StrCat("none of the ", num_pairs, " pairs of ", AbslView(key),
                                                 " has at most ", tokens_max, " tokens, ", kTheLimit,
                                                 "; shorten them, or train a model with more"));
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

absl::StatusOr<std::vector<TrainingSequence>> TokenisePairsThatFit(const std::vector<ColdStartPair>& pairs,
                                                                   const Prompts& prompts, int64_t tokens_max,
                                                                   std::string_view key) {
  std::vector<TrainingSequence> sequences;
  for (const ColdStartPair& pair : pairs) {
    ASSIGN_OR_RETURN(TrainingSequence sequence, TokenisePair(pair, prompts));
    if (sequence.num_tokens() <= tokens_max) sequences.push_back(std::move(sequence));
  }
  if (sequences.empty()) return NoneFits(pairs.size(), tokens_max, key);
  return sequences;
}

std::string LeftOutText(size_t num_left_out, size_t num_pairs, int64_t tokens_max, std::string_view key) {
  if (num_left_out == 0) return "";
  return absl::StrCat(num_left_out, " of ", num_pairs, " pairs of ", AbslView(key),
                      " are left out: they have more than ", tokens_max, " tokens, ", kTheLimit);
}

absl::StatusOr<ColdStartData> ColdStartData::Create(std::vector<ColdStartPair> pairs, const Prompts* prompts,
                                                    int64_t tokens_max, uint64_t seed) {
  std::vector<bool> fits;
  int64_t longest = 0;
  for (const ColdStartPair& pair : pairs) {
    ASSIGN_OR_RETURN(const TrainingSequence sequence, TokenisePair(pair, *prompts));
    fits.push_back(sequence.num_tokens() <= tokens_max);
    if (fits.back()) longest = std::max<int64_t>(longest, sequence.num_tokens());
  }
  if (std::find(fits.begin(), fits.end(), true) == fits.end()) {
    return NoneFits(pairs.size(), tokens_max, "data.cold_start");
  }
  return ColdStartData(std::move(pairs), std::move(fits), longest, prompts, seed);
}

ColdStartData::ColdStartData(std::vector<ColdStartPair> pairs, std::vector<bool> fits, int64_t longest,
                             const Prompts* prompts, uint64_t seed)
    : pairs_(std::move(pairs)), fits_(std::move(fits)), longest_(longest), prompts_(prompts), seed_(seed) {}

absl::StatusOr<std::vector<TrainingSequence>> ColdStartData::Draw(int count) {
  std::vector<TrainingSequence> sequences;
  while (static_cast<int>(sequences.size()) < count) {  // ends, for a pass has a pair that fits
    const size_t index = IndexAt(cursor_++);
    if (!fits_[index]) continue;
    ASSIGN_OR_RETURN(sequences.emplace_back(), TokenisePair(pairs_[index], *prompts_));
  }
  return sequences;
}

size_t ColdStartData::num_left_out() const {
  return static_cast<size_t>(std::count(fits_.begin(), fits_.end(), false));
}

size_t ColdStartData::IndexAt(uint64_t cursor) {
  const uint64_t pass = cursor / pairs_.size();
  if (order_.empty() || pass != pass_) {
    pass_ = pass;
    order_ = SeededPermutation(pairs_.size(), UniformWord(seed_, pass));
  }
  return order_[cursor % pairs_.size()];
}

}  // namespace warpsmith
