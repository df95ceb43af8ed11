#include "reward_service/compiler/halves/cuda_lexer.h"

#include <algorithm>
#include <cctype>

namespace warpsmith {
namespace {

constexpr std::string_view kOtherwise[] = {"?\?", "<:", ":>", "<%", "%>", "%:"};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::optional<std::vector<CudaLexeme>> All() {
    while (is_plain_ && at_ < source_.size()) Next();
    if (!is_plain_) return std::nullopt;
    return std::move(lexemes_);
  }

 private:
  void Next() {
    const char c = source_[at_];
    if (c == '\n') begins_line_ = true;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at_;
    } else if (StartsWith("//")) {
      const size_t end = EndOfLine();
      is_plain_ = !GoesOn(end);
      at_ = end;
    } else if (StartsWith("/*")) {
      SkipBlockComment();
    } else if (c == '#' && begins_line_) {
      Add(CudaLexemeKind::kDirective, EndOfDirective());
      begins_line_ = true;
    } else if (c == '"' || c == '\'') {
      AddLiteral(c);
    } else if (IsWordPart(c)) {
      AddWord();
    } else {
      is_plain_ = c > 0 && c != '\\' && c != '`' && c != '@' && c != '$';
      Add(CudaLexemeKind::kSign, at_ + 1);
    }
  }

  bool StartsWith(std::string_view text) const { return source_.substr(at_, text.size()) == text; }

  size_t EndOfLine() const { return std::min(source_.find('\n', at_), source_.size()); }

  void SkipBlockComment() {
    const size_t end = source_.find("*/", at_ + 2);
    is_plain_ = end != std::string_view::npos;
    if (is_plain_) at_ = end + 2;
  }

  // Whether the line that ends there goes on in the next one. For g++ it does with blanks behind the backslash, too.
  bool GoesOn(size_t end) const {
    const size_t last = source_.substr(at_, end - at_).find_last_not_of(" \t\r\v\f");
    return last != std::string_view::npos && source_[at_ + last] == '\\';
  }

  // Not behind a comment that goes on in the next line.
  size_t EndOfDirective() {
    size_t end = EndOfLine();
    while (end < source_.size() && source_[end - 1] == '\\')
      end = std::min(source_.find('\n', end + 1), source_.size());
    is_plain_ = source_.substr(at_, end - at_).find("/*") == std::string_view::npos && !GoesOn(end);
    return end;
  }

  void AddLiteral(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote && source_[end] != '\n')
      end += source_[end] == '\\' ? 2 : 1;
    is_plain_ = end < source_.size() && source_[end] == quote;
    Add(CudaLexemeKind::kLiteral, end + 1);
  }

  // A number's separators and exponents are parts of it.
  void AddWord() {
    const bool is_number = std::isdigit(static_cast<unsigned char>(source_[at_])) != 0;
    size_t end = at_;
    while (end < source_.size() && (IsWordPart(source_[end]) || (is_number && IsOfNumber(end)))) ++end;
    // A raw string, whose text is read otherwise.
    const std::string_view word = source_.substr(at_, end - at_);
    is_plain_ = word.back() != 'R' || end == source_.size() || source_[end] != '"';
    Add(CudaLexemeKind::kWord, end);
  }

  bool IsOfNumber(size_t at) const {
    const char c = source_[at];
    if (c == '.' || c == '\'') return true;
    const char before = source_[at - 1];
    return (c == '+' || c == '-') && (before == 'e' || before == 'E' || before == 'p' || before == 'P');
  }

  void Add(CudaLexemeKind kind, size_t end) {
    lexemes_.push_back({kind, source_.substr(at_, end - at_)});
    at_ = end;
    begins_line_ = false;
  }

  const std::string_view source_;
  size_t at_ = 0;
  bool begins_line_ = true;
  bool is_plain_ = true;
  std::vector<CudaLexeme> lexemes_;
};

}  // namespace

bool IsWordPart(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::optional<std::vector<CudaLexeme>> LexCuda(std::string_view source) {
  for (const std::string_view sign : kOtherwise) {
    if (source.find(sign) != std::string_view::npos) return std::nullopt;
  }
  return Lexer(source).All();
}

}  // namespace warpsmith
