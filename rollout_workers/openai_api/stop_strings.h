// Texts that end an answer, found while it comes in pieces.
#ifndef WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_STOP_STRINGS_H_
#define WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_STOP_STRINGS_H_

#include <string>
#include <string_view>
#include <vector>

namespace warpsmith::openai {

// Gives out text as soon as it is certain that no stop string begins in it. Which one ends an answer depends
// on the pieces: the first that is complete, of several the one that begins first. Not thread-safe.
class StopStrings {
 public:
  // None of `stops` is empty.
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // The text that `piece` makes certain. Nothing more once stopped.
  std::string Push(std::string_view piece);

  // What is still held back, for the end of an answer that was not stopped.
  std::string Finish();

  // Whether a stop string has come; it and what follows are cut off.
  bool stopped() const { return stopped_; }

 private:
  const std::vector<std::string> stops_;
  std::string held_back_;  // shorter than the longest stop string between calls
  bool stopped_ = false;
};

}  // namespace warpsmith::openai

#endif  // WARPSMITH_ROLLOUT_WORKERS_OPENAI_API_STOP_STRINGS_H_
