// Pairs of prompt and answer to learn from before any reward.
#ifndef WARPSMITH_TRAINER_COLD_START_DATA_H_
#define WARPSMITH_TRAINER_COLD_START_DATA_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "prompting/prompts.h"
#include "trainer/training_sequence.h"
#include "trainer/transition.h"

namespace warpsmith {

// One pair, as text.
struct ColdStartPair {
  Skill skill = Skill::kGenerate;
  PromptParts parts;
  std::string answer;
};

// A JSONL file of pairs: "skill" ("generate" or "optimise"), "reference_source", "answer" and, for skill 2,
// "previous_source" and "feedback" {"finding", "evidence", "advice"}, the advice in words of the
// closed list, for GRPO's prompts have no others. INVALID_ARGUMENT with file and line.
absl::StatusOr<std::vector<ColdStartPair>> LoadColdStartPairs(const std::filesystem::path& path);

// The pair as token ids, without log-probs and advantage.
absl::StatusOr<TrainingSequence> TokenisePair(const ColdStartPair& pair, const Prompts& prompts);

// Pairs in a new seeded order each pass, tokenised when they are drawn.
class ColdStartData {
 public:
  // `prompts` outlives this. Pairs of more than `tokens_max` tokens are passed over when drawn.
  ColdStartData(std::vector<ColdStartPair> pairs, const Prompts* prompts, int64_t tokens_max, uint64_t seed);

  // The next `count` sequences. INVALID_ARGUMENT when a whole pass has none that is short enough.
  absl::StatusOr<std::vector<TrainingSequence>> Draw(int count);

  // Pairs drawn since the start, also those passed over; setting it continues from there.
  uint64_t cursor() const { return cursor_; }
  void set_cursor(uint64_t cursor) { cursor_ = cursor; }

 private:
  const ColdStartPair& PairAt(uint64_t cursor);

  const std::vector<ColdStartPair> pairs_;
  const Prompts* const prompts_;
  const int64_t tokens_max_;
  const uint64_t seed_;
  uint64_t cursor_ = 0;
  uint64_t pass_ = 0;
  std::vector<uint32_t> order_;  // of pass_; empty before the first
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_COLD_START_DATA_H_
