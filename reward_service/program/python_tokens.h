// Python text as tokens, just well enough to show it again.
#ifndef WARPSMITH_REWARD_SERVICE_PROGRAM_PYTHON_TOKENS_H_
#define WARPSMITH_REWARD_SERVICE_PROGRAM_PYTHON_TOKENS_H_

#include <string>
#include <string_view>
#include <vector>

namespace warpsmith {

enum class PythonKind {
  kLine,    // a logical line begins; `depth` is its indentation in levels
  kWord,    // an identifier, a keyword or a number
  kSign,    // an operator or one sign
  kString,  // what the literal means: escapes resolved, literals that stand side by side joined
};

struct PythonLexeme {
  PythonKind kind;
  std::string text = {};
  int depth = 0;
};

// Comments and blank lines are left out; lines inside brackets are one. The fields of f-strings stay in their
// text. Characters that escapes name beyond ASCII become a byte 0xFF. Linear in the text; what does not lex
// gives lexemes all the same.
std::vector<PythonLexeme> PythonLexemes(std::string_view source);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_PROGRAM_PYTHON_TOKENS_H_
