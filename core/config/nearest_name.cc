#include "core/config/nearest_name.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace warpsmith {

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> before_last(b.size() + 1), last(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before_last[j - 2] + 1);
      }
    }
    before_last.swap(last);
    last.swap(current);
  }
  return last[b.size()];
}

std::string NearestName(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kNameBytesMax = 200;  // bounds the quadratic work on a hostile key
  if (name.size() > kNameBytesMax) return "";
  int best_distance = std::max(2, static_cast<int>(name.size()) / 3) + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    const int distance = EditDistance(name, candidate);
    if (distance < best_distance && distance < static_cast<int>(candidate.size())) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string SuggestName(std::string_view name, const std::vector<std::string>& candidates) {
  if (candidates.empty()) return "";
  const std::string nearest = NearestName(name, candidates);
  if (!nearest.empty()) return absl::StrCat("; did you mean \"", nearest, "\"?");
  return absl::StrCat("; known are ", absl::StrJoin(candidates, ", "));
}

}  // namespace warpsmith
