// C++ text as tokens, just well enough to see loops and calls.
#ifndef WARPSMITH_REWARD_SERVICE_RUBRIC_CPP_TOKENS_H_
#define WARPSMITH_REWARD_SERVICE_RUBRIC_CPP_TOKENS_H_

#include <string_view>
#include <vector>

namespace warpsmith {

// Words, numbers and single signs, as views into `source`. Comments, literals of characters and strings,
// preprocessor lines and everything under `#if 0` are left out.
std::vector<std::string_view> CppTokens(std::string_view source);

// Whether a token is an identifier, a keyword or a number.
bool IsWord(std::string_view token);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_RUBRIC_CPP_TOKENS_H_
