// Finds what a misspelt name was meant to be.
#ifndef WARPSMITH_CORE_CONFIG_NEAREST_NAME_H_
#define WARPSMITH_CORE_CONFIG_NEAREST_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace warpsmith {

// Number of insertions, deletions, replacements and swaps of neighbours between two texts (Damerau's
// restricted distance).
int EditDistance(std::string_view a, std::string_view b);

// The candidate nearest to `name`, the first of equals; empty when none is near enough to be meant.
std::string NearestName(std::string_view name, const std::vector<std::string>& candidates);

// "; did you mean "x"?", or the list of the names there are, or nothing.
std::string SuggestName(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CONFIG_NEAREST_NAME_H_
