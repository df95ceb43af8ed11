// The lexemes of a CUDA program with their places, for who takes it apart.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_CUDA_LEXER_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_CUDA_LEXER_H_

#include <optional>
#include <string_view>
#include <vector>

namespace warpsmith {

enum class CudaLexemeKind {
  kWord,       // identifier, keyword or number
  kSign,       // one character
  kLiteral,    // string or character, with its quotes
  kDirective,  // a whole line of the preprocessor, with those that continue it
};

struct CudaLexeme {
  CudaLexemeKind kind;
  std::string_view text;  // a view into the source

  bool Is(std::string_view other) const { return text == other && kind != CudaLexemeKind::kLiteral; }
};

// Without comments. None for text that lexes in another way than it looks: with raw strings, trigraphs, digraphs, lines
// that continue outside of directives, or literals that do not end.
std::optional<std::vector<CudaLexeme>> LexCuda(std::string_view source);

bool IsWordPart(char c);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_CUDA_LEXER_H_
