// Pairs of prompt and answer to learn from before any reward.
#ifndef WARPSMITH_TRAINER_DATA_COLD_START_DATA_H_
#define WARPSMITH_TRAINER_DATA_COLD_START_DATA_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "prompting/prompts.h"
#include "trainer/data/training_sequence.h"
#include "trainer/data/transition.h"

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

// Returns those of `pairs` that have at most `tokens_max` tokens, in their order. INVALID_ARGUMENT where none has,
// naming their configuration key `key`.
absl::StatusOr<std::vector<TrainingSequence>> TokenisePairsThatFit(const std::vector<ColdStartPair>& pairs,
                                                                   const Prompts& prompts, int64_t tokens_max,
                                                                   std::string_view key);

// "13 of 16 pairs of data.cold_start are left out: they have more than 512 tokens, ..."; empty for none.
std::string LeftOutText(size_t num_left_out, size_t num_pairs, int64_t tokens_max, std::string_view key);

// Pairs in a new seeded order each pass, tokenised when they are drawn.
class ColdStartData {
 public:
  // Tokenises all pairs once: those of more than `tokens_max` tokens are left out. `prompts` outlives this.
  // INVALID_ARGUMENT where none is short enough, or `pairs` is empty.
  static absl::StatusOr<ColdStartData> Create(std::vector<ColdStartPair> pairs, const Prompts* prompts,
                                              int64_t tokens_max, uint64_t seed);

  // Returns the next `count` sequences.
  absl::StatusOr<std::vector<TrainingSequence>> Draw(int count);

  // How many pairs are left out, of how many.
  size_t num_left_out() const;
  size_t num_pairs() const { return pairs_.size(); }
  // Tokens of the longest pair that is not left out.
  int64_t longest() const { return longest_; }

  // Pairs drawn since the start, also those passed over; setting it continues from there.
  uint64_t cursor() const { return cursor_; }
  void set_cursor(uint64_t cursor) { cursor_ = cursor; }

 private:
  ColdStartData(std::vector<ColdStartPair> pairs, std::vector<bool> fits, int64_t longest,
                const Prompts* prompts, uint64_t seed);
  size_t IndexAt(uint64_t cursor);

  std::vector<ColdStartPair> pairs_;
  std::vector<bool> fits_;  // by pair
  int64_t longest_;
  const Prompts* prompts_;
  uint64_t seed_;
  uint64_t cursor_ = 0;
  uint64_t pass_ = 0;
  std::vector<uint32_t> order_;  // of pass_; empty before the first
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_DATA_COLD_START_DATA_H_
