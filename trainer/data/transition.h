// The trainer's own form of tasks and transitions; wire.h converts them from and to the contracts.
#ifndef WARPSMITH_TRAINER_DATA_TRANSITION_H_
#define WARPSMITH_TRAINER_DATA_TRANSITION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace warpsmith {

// The values are those of warpsmith.v1.Skill.
enum class Skill { kGenerate = 1, kOptimise = 2 };

// The values are those of warpsmith.v1.Verdict.
enum class Verdict {
  kUnspecified = 0,
  kNoCode = 1,
  kCompileError = 2,
  kRuntimeError = 3,
  kTimeout = 4,
  kWrongShape = 5,
  kWrongDtype = 6,
  kNonFinite = 7,
  kIncorrect = 8,
  kHack = 9,
  kCorrect = 10,
  kInvalidTask = 11,
  kUnscorable = 12,
};

// What a grade says of a program. `advice` is the value of warpsmith.v1.Advice.
struct Feedback {
  std::string finding;
  std::string evidence;
  int advice = 0;
};

// One prompt's worth of work; see warpsmith.v1.Task.
struct Task {
  std::string id;
  Skill skill = Skill::kGenerate;
  std::string family;
  std::string reference_source;
  std::string language = "cpp";  // by the name of proto/language_names.h
  std::string device;            // by that of proto/device_names.h; empty: the reward service chooses
  std::vector<std::string> allowed_libraries;
  std::string previous_source;  // skill 2 only, as are the next two
  Feedback feedback;
  double previous_reward = 0;
};

// What the trainer uses of a warpsmith.v1.Grade.
struct Grade {
  Verdict verdict = Verdict::kUnscorable;
  std::optional<double> reward;  // absent for kUnscorable and kInvalidTask
  bool compiled = false;
  double speedup = 0;         // of a correct answer
  double speedup_low = 0;     // lower end of its 95 % interval
  std::string source;         // after extraction
  std::string source_sha256;  // of the normalised source; empty without code
  Feedback feedback;

  // Neither verdict nor reward count when the service or the task was at fault.
  bool scored() const { return reward.has_value(); }
};

struct Transition {
  int sample_index = 0;
  std::vector<int32_t> prompt_token_ids;
  std::vector<int32_t> answer_token_ids;
  std::vector<float> log_probs;  // of the worker, one an answer token
  uint64_t seed = 0;
  uint64_t policy_version = 0;
  bool truncated = false;  // ended by the limit of tokens
  Grade grade;
  // Why the transition was dropped where it arrived; empty for one in order. What was dropped has no tokens
  // and no reward, as if it were UNSCORABLE.
  std::string malformed;
  std::string json;  // the message as it came, for the dump; of a dropped one without its arrays
};

// What the model can take: beyond it a transition would end the update within a kernel.
struct TransitionLimits {
  int64_t vocab_size = 0;
  int64_t positions_max = 0;  // of prompt and answer together
};

// All samples of one task, by sample index.
struct TransitionGroup {
  Task task;
  std::vector<Transition> transitions;
  double decode_seconds = 0;
  double grade_tail_seconds = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_DATA_TRANSITION_H_
