// One sequence as the update sees it, and the bytes in which it travels between ranks.
#ifndef WARPSMITH_TRAINER_DATA_TRAINING_SEQUENCE_H_
#define WARPSMITH_TRAINER_DATA_TRAINING_SEQUENCE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace warpsmith {

// A prompt with its answer. Cold start uses the tokens alone.
struct TrainingSequence {
  std::vector<int32_t> tokens;
  int32_t num_prompt_tokens = 0;        // at least 1, so that every answer token has a predecessor
  std::vector<float> worker_log_probs;  // one an answer token, or empty
  double advantage = 0;

  int64_t num_tokens() const { return static_cast<int64_t>(tokens.size()); }
  int64_t num_answer_tokens() const { return num_tokens() - num_prompt_tokens; }
  bool operator==(const TrainingSequence&) const = default;
};

// Answer tokens of all sequences together: the N of the loss.
int64_t CountAnswerTokens(const std::vector<TrainingSequence>& sequences);

// Both ends of a private format for one run of one build (host byte order). INVALID_ARGUMENT for malformed
// bytes.
std::string EncodeSequences(const std::vector<TrainingSequence>& sequences);
absl::StatusOr<std::vector<TrainingSequence>> DecodeSequences(std::string_view bytes);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_DATA_TRAINING_SEQUENCE_H_
