// A CUDA program as lexemes and declarations, for who takes it apart.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_CUDA_TEXT_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_CUDA_TEXT_H_

#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reward_service/compiler/halves/cuda_lexer.h"

namespace warpsmith {

inline constexpr size_t kNoLexeme = static_cast<size_t>(-1);

// Of kernels, before or behind their type. All but the first take arguments.
bool IsKernelAttribute(std::string_view word);

// "define" of "#  define X".
std::string_view DirectiveWord(std::string_view line);

// A declaration outside of functions, from its first lexeme to behind its last, and what decides where it belongs.
struct CudaItem {
  size_t begin = 0;
  size_t end = 0;
  size_t body = kNoLexeme;                // of the brace that opens a function's body
  size_t parameters = kNoLexeme;          // of the first parenthesis of a declarator
  std::set<std::string_view> words = {};  // outside of parentheses, braces and template parameters
  bool is_type = false;
  bool has_value = false;

  bool Has(std::string_view word) const { return words.count(word) > 0; }
};

// Places are numbers of lexemes; kNoLexeme where there is no such place.
class CudaText {
 public:
  explicit CudaText(std::vector<CudaLexeme> lexemes);

  size_t size() const { return all_.size(); }
  const CudaLexeme& operator[](size_t i) const { return all_[i]; }
  // As it stands in the program, comments included.
  std::string_view Text(size_t begin, size_t end) const;
  size_t Count(std::string_view word) const;
  // Whether more was looked at than is worth while: a program can be such that its angles are looked for again and
  // again to the same end. From then on there are none.
  bool IsTooLong() const { return num_steps_ > kStepsPerLexeme * all_.size(); }

  // Behind the bracket that closes the one at `open`.
  size_t BehindBrackets(size_t open) const;
  // Behind the ">" that closes the "<" at `open`, as of a list of template parameters or arguments.
  size_t BehindAngles(size_t open) const;
  // Whether "<<<" or ">>>" begins at `i`, by its sign.
  bool IsTriple(size_t i, std::string_view sign) const;
  // The word before the first parenthesis behind `i` that is no attribute's.
  size_t NameBehind(size_t i) const;
  // The brace of `namespace a {` or `extern "C" {` that begins at `i`.
  size_t OpensScope(size_t i) const;
  // The declaration that begins at `begin`; none where it does not end before `end`, or a directive is in it that is no
  // pragma.
  std::optional<CudaItem> ReadItem(size_t begin, size_t end) const;
  bool HasSign(const CudaItem& item, std::string_view signs) const;
  // Of a function.
  std::string_view NameOf(const CudaItem& item) const { return all_[item.parameters - 1].text; }

 private:
  bool IsAttribute(size_t parenthesis) const;
  bool HasOnlyPragmas(const CudaItem& item) const;

  // In BehindAngles(). A program of many kernels and templates takes one or two for each of its lexemes.
  static constexpr size_t kStepsPerLexeme = 64;

  const std::vector<CudaLexeme> all_;
  std::vector<size_t> behind_;                           // BehindBrackets() of each place
  std::unordered_map<std::string_view, size_t> counts_;  // of words and signs
  mutable size_t num_steps_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_HALVES_CUDA_TEXT_H_
