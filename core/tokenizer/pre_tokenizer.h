// Splits text into the pieces that BPE never merges across: the "pre_tokenizer" of tokenizer.json.
#ifndef WARPSMITH_CORE_TOKENIZER_PRE_TOKENIZER_H_
#define WARPSMITH_CORE_TOKENIZER_PRE_TOKENIZER_H_

#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tokenizer/regex.h"

namespace warpsmith {

// What becomes of a match, and of the text between matches, as the `tokenizers` package names it.
enum class SplitBehavior {
  kRemoved,             // the match is dropped
  kIsolated,            // a piece of its own
  kMergedWithPrevious,  // the end of the piece before
  kMergedWithNext,      // the beginning of the piece after
  kContiguous,          // neighbouring matches are one piece
};

// Which parts count as matches.
enum class SplitMatches { kPattern, kBetween };

struct SplitStep {
  Regex regex;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  SplitMatches matches = SplitMatches::kPattern;
};

// A space before each piece that has none.
struct PrefixSpaceStep {};

using PreTokenizerStep = std::variant<SplitStep, PrefixSpaceStep>;

// Immutable.
class PreTokenizer {
 public:
  explicit PreTokenizer(std::vector<PreTokenizerStep> steps) : steps_(std::move(steps)) {}

  // The pieces of one text. They point into it, or into storage of their own.
  struct Pieces {
    std::vector<std::string_view> views;
    std::deque<std::string> storage;
  };

  // Splits valid UTF-8. The errors of Regex::FindAll.
  absl::StatusOr<Pieces> Split(std::string_view text) const;

 private:
  std::vector<PreTokenizerStep> steps_;
};

// Appends the parts of `text`, split by `step`, to `pieces`; empty ones are left out.
absl::Status SplitText(const SplitStep& step, std::string_view text, std::vector<std::string_view>* pieces);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_TOKENIZER_PRE_TOKENIZER_H_
