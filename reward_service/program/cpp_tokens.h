// C++ text as tokens, just well enough to see loops and calls.
#ifndef WARPSMITH_REWARD_SERVICE_PROGRAM_CPP_TOKENS_H_
#define WARPSMITH_REWARD_SERVICE_PROGRAM_CPP_TOKENS_H_

#include <string_view>
#include <vector>

namespace warpsmith {

enum class CppKind {
  kWord,       // an identifier, a keyword, or a number up to its first sign: "1e" of "1e-5", "2" of "2.5f"
  kSign,       // one character
  kString,     // with its quotes, raw ones with their delimiters
  kCharacter,  // with its quotes
  kDirectiveBegin,  // "#" of a preprocessor line, whose own lexemes follow
  kDirectiveEnd,    // empty
};

struct CppLexeme {
  CppKind kind;
  std::string_view text;
};

// Everything that means something, as views into `source` in its order. Comments, and what `#if 0` and
// `#if false` disable, are left out. Text that does not lex gives lexemes all the same.
std::vector<CppLexeme> CppLexemes(std::string_view source);

// Words and signs of it that stand on no preprocessor line.
std::vector<std::string_view> CppTokens(std::string_view source);

// Whether a token is an identifier, a keyword or a number.
bool IsWord(std::string_view token);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_PROGRAM_CPP_TOKENS_H_
