#include "core/tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// A stretch of the text that is a match or lies between two.
struct Part {
  TextRange range;
  bool is_match = false;
};

std::vector<Part> PartsOf(const std::vector<TextRange>& matches, size_t text_size, SplitMatches which) {
  const bool counts = which == SplitMatches::kPattern;
  std::vector<Part> parts;
  size_t at = 0;
  for (const TextRange& match : matches) {
    if (match.begin > at) parts.push_back({{at, match.begin}, !counts});
    parts.push_back({match, counts});
    at = match.end;
  }
  if (at < text_size) parts.push_back({{at, text_size}, !counts});
  return parts;
}

// A match joins the part before it, unless that part is a match too and did not.
std::vector<TextRange> MergeWithPrevious(const std::vector<Part>& parts) {
  std::vector<TextRange> merged;
  bool previous_is_match = false;
  for (const Part& part : parts) {
    if (part.is_match && !previous_is_match && !merged.empty()) {
      merged.back().end = part.range.end;
    } else {
      merged.push_back(part.range);
    }
    previous_is_match = part.is_match;
  }
  return merged;
}

// The same from the end to the beginning.
std::vector<TextRange> MergeWithNext(const std::vector<Part>& parts) {
  std::vector<TextRange> merged;
  bool next_is_match = false;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->is_match && !next_is_match && !merged.empty()) {
      merged.back().begin = part->range.begin;
    } else {
      merged.push_back(part->range);
    }
    next_is_match = part->is_match;
  }
  std::reverse(merged.begin(), merged.end());
  return merged;
}

std::vector<TextRange> MergeContiguous(const std::vector<Part>& parts) {
  std::vector<TextRange> merged;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && parts[i].is_match == parts[i - 1].is_match) {
      merged.back().end = parts[i].range.end;
    } else {
      merged.push_back(parts[i].range);
    }
  }
  return merged;
}

std::vector<TextRange> Keep(const std::vector<Part>& parts, SplitBehavior behavior) {
  std::vector<TextRange> kept;
  for (const Part& part : parts) {
    if (behavior == SplitBehavior::kIsolated || !part.is_match) kept.push_back(part.range);
  }
  return kept;
}

std::vector<TextRange> Apply(const std::vector<Part>& parts, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::kRemoved:
    case SplitBehavior::kIsolated:
      return Keep(parts, behavior);
    case SplitBehavior::kMergedWithPrevious:
      return MergeWithPrevious(parts);
    case SplitBehavior::kMergedWithNext:
      return MergeWithNext(parts);
    case SplitBehavior::kContiguous:
      return MergeContiguous(parts);
  }
  return {};
}

void AddPrefixSpaces(PreTokenizer::Pieces* pieces) {
  for (std::string_view& piece : pieces->views) {
    if (piece.front() == ' ') continue;
    pieces->storage.push_back(absl::StrCat(" ", AbslView(piece)));
    piece = pieces->storage.back();
  }
}

}  // namespace

absl::Status SplitText(const SplitStep& step, std::string_view text, std::vector<std::string_view>* pieces) {
  std::vector<TextRange> matches;
  RETURN_IF_ERROR(step.regex.FindAll(text, &matches));
  for (const TextRange& range : Apply(PartsOf(matches, text.size(), step.matches), step.behavior)) {
    pieces->push_back(text.substr(range.begin, range.end - range.begin));
  }
  return absl::OkStatus();
}

absl::StatusOr<PreTokenizer::Pieces> PreTokenizer::Split(std::string_view text) const {
  Pieces pieces;
  if (!text.empty()) pieces.views.push_back(text);
  for (const PreTokenizerStep& step : steps_) {
    if (std::holds_alternative<PrefixSpaceStep>(step)) {
      AddPrefixSpaces(&pieces);
      continue;
    }
    std::vector<std::string_view> finer;
    for (const std::string_view piece : pieces.views) {
      RETURN_IF_ERROR(SplitText(std::get<SplitStep>(step), piece, &finer));
    }
    pieces.views = std::move(finer);
  }
  return pieces;
}

}  // namespace warpsmith
