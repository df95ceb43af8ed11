#include "reward_service/program/cpp_tokens.h"

#include <algorithm>
#include <string>

namespace warpsmith {
namespace {

constexpr size_t kRawDelimiterMax = 16;  // by the language

bool IsWordCharacter(char c) {
  return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsRawPrefix(std::string_view word) {
  return word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R";
}

// Walks the text once; each Skip function moves the position past what it names.
class Tokenizer {
 public:
  Tokenizer(std::string_view text, bool in_directive) : text_(text), in_directive_(in_directive) {}

  std::vector<CppLexeme> Run() {
    while (position_ < text_.size()) Step();
    return std::move(lexemes_);
  }

 private:
  void Step() {
    const char c = text_[position_];
    if (c == '\n') {
      line_is_empty_ = true;
      ++position_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++position_;
    } else if (Follows("//")) {
      SkipLine();
    } else if (Follows("/*")) {
      SkipTo("*/", 2);
    } else if (c == '#' && line_is_empty_ && !in_directive_) {
      Directive();
    } else {
      line_is_empty_ = false;
      Token(c);
    }
  }

  void Token(char c) {
    if (c == '"' || c == '\'') {
      Quoted(position_);
      return;
    }
    const size_t begin = position_++;
    if (IsWordCharacter(c)) SkipWord(IsDigit(c));
    const std::string_view token = text_.substr(begin, position_ - begin);
    if (IsRawPrefix(token) && Follows("\"")) {
      SkipRaw();
      Add(CppKind::kString, begin);
    } else {
      Add(IsWordCharacter(c) ? CppKind::kWord : CppKind::kSign, begin);
    }
  }

  void Add(CppKind kind, size_t begin) { lexemes_.push_back({kind, text_.substr(begin, position_ - begin)}); }

  bool Follows(std::string_view mark) const { return text_.substr(position_, mark.size()) == mark; }

  // Numbers may have quotes between their digits.
  void SkipWord(bool is_number) {
    while (position_ < text_.size()) {
      const bool separator = is_number && text_[position_] == '\'' && position_ + 1 < text_.size() &&
                             IsWordCharacter(text_[position_ + 1]);
      if (!separator && !IsWordCharacter(text_[position_])) return;
      ++position_;
    }
  }

  void SkipTo(std::string_view mark, size_t past) {
    const size_t found = text_.find(mark, position_ + past);
    position_ = found == std::string_view::npos ? text_.size() : found + past;
  }

  // To the line's end, which a backslash moves one line on.
  void SkipLine() {
    while (position_ < text_.size() && text_[position_] != '\n') {
      position_ += text_[position_] == '\\' ? 2 : 1;
    }
    position_ = std::min(position_, text_.size());
  }

  void Quoted(size_t begin) {
    const char quote = text_[begin];
    SkipQuoted(quote);
    position_ = std::min(position_, text_.size());
    Add(quote == '"' ? CppKind::kString : CppKind::kCharacter, begin);
  }

  void SkipQuoted(char quote) {
    for (++position_; position_ < text_.size() && text_[position_] != '\n'; ++position_) {
      if (text_[position_] == '\\') {
        ++position_;
      } else if (text_[position_] == quote) {
        ++position_;
        return;
      }
    }
  }

  void SkipRaw() {
    // One with a longer delimiter does not compile, and would make the search for its end a product of two
    // lengths.
    const size_t open = text_.substr(0, position_ + 2 + kRawDelimiterMax).find('(', position_);
    if (open == std::string_view::npos) return SkipQuoted('"');
    std::string mark(")");
    mark.append(text_.substr(position_ + 1, open - position_ - 1)).push_back('"');
    const size_t found = text_.find(mark, open);
    position_ = found == std::string_view::npos ? text_.size() : found + mark.size();
  }

  // A directive's line with its continuations; `#if 0` with everything to its #else, #elif or #endif.
  void Directive() {
    const size_t begin = position_;
    const std::vector<CppLexeme> inner = Tokenizer(DirectiveLine(), /*in_directive=*/true).Run();
    if (inner.size() == 2 && inner[0].text == "if" && (inner[1].text == "0" || inner[1].text == "false")) {
      SkipDisabled();
      return;
    }
    lexemes_.push_back({CppKind::kDirectiveBegin, text_.substr(begin, 1)});
    lexemes_.insert(lexemes_.end(), inner.begin(), inner.end());
    lexemes_.push_back({CppKind::kDirectiveEnd, text_.substr(position_, 0)});
  }

  void SkipDisabled() {
    int depth = 1;
    while (position_ < text_.size() && depth > 0) {
      const size_t begin = text_.find_first_not_of(" \t\n\r", position_);
      position_ = std::min(begin, text_.size());
      if (position_ == text_.size()) return;
      if (text_[position_] != '#') {
        SkipLine();
        continue;
      }
      const std::string_view inner = DirectiveLine();
      if (inner.substr(0, 2) == "if") ++depth;
      if (inner.substr(0, 5) == "endif") --depth;
      if (depth == 1 && inner.substr(0, 2) == "el") return;
    }
  }

  // Moves past the line, and past a comment that it opens, and returns its text after '#', without white
  // space at its ends.
  std::string_view DirectiveLine() {
    const size_t begin = ++position_;
    while (position_ < text_.size() && text_[position_] != '\n') {
      if (Follows("/*")) {
        SkipTo("*/", 2);
      } else if (Follows("//")) {
        SkipLine();
      } else if (text_[position_] == '"') {
        SkipQuoted('"');
      } else {
        position_ += text_[position_] == '\\' ? 2 : 1;
      }
    }
    position_ = std::min(position_, text_.size());
    std::string_view line = text_.substr(begin, position_ - begin);
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
  }

  const std::string_view text_;
  const bool in_directive_;
  std::vector<CppLexeme> lexemes_;
  size_t position_ = 0;
  bool line_is_empty_ = true;
};

}  // namespace

std::vector<CppLexeme> CppLexemes(std::string_view source) {
  return Tokenizer(source, /*in_directive=*/false).Run();
}

std::vector<std::string_view> CppTokens(std::string_view source) {
  std::vector<std::string_view> tokens;
  bool in_directive = false;
  for (const CppLexeme& lexeme : CppLexemes(source)) {
    if (lexeme.kind == CppKind::kDirectiveBegin) in_directive = true;
    if (lexeme.kind == CppKind::kDirectiveEnd) in_directive = false;
    const bool counts = lexeme.kind == CppKind::kWord || lexeme.kind == CppKind::kSign;
    if (counts && !in_directive) tokens.push_back(lexeme.text);
  }
  return tokens;
}

bool IsWord(std::string_view token) { return !token.empty() && IsWordCharacter(token.front()); }

}  // namespace warpsmith
