#include "reward_service/rubric/cpp_tokens.h"

#include <algorithm>

namespace warpsmith {
namespace {

bool IsWordCharacter(char c) {
  return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

// Walks the text once; each Skip function moves the position past what it names.
class Tokenizer {
 public:
  explicit Tokenizer(std::string_view text) : text_(text) {}

  std::vector<std::string_view> Run() {
    while (position_ < text_.size()) Step();
    return std::move(tokens_);
  }

 private:
  void Step() {
    const char c = text_[position_];
    if (c == '\n') {
      line_is_empty_ = true;
      ++position_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++position_;
    } else if (text_.substr(position_, 2) == "//") {
      SkipTo("\n", 0);
    } else if (text_.substr(position_, 2) == "/*") {
      SkipTo("*/", 2);
    } else if (c == '#' && line_is_empty_) {
      SkipDirective();
    } else {
      line_is_empty_ = false;
      Token(c);
    }
  }

  void Token(char c) {
    if (c == '"' || c == '\'') {
      SkipQuoted(c);
      return;
    }
    const size_t begin = position_++;
    if (IsWordCharacter(c)) {
      while (position_ < text_.size() && IsWordCharacter(text_[position_])) ++position_;
    }
    const std::string_view token = text_.substr(begin, position_ - begin);
    if (token.back() == 'R' && position_ < text_.size() && text_[position_] == '"') {
      SkipRaw();
    } else {
      tokens_.push_back(token);
    }
  }

  void SkipTo(std::string_view mark, size_t past) {
    const size_t found = text_.find(mark, position_);
    position_ = found == std::string_view::npos ? text_.size() : found + past;
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
    const size_t open = std::min(text_.find('(', position_), text_.size());
    const std::string_view delimiter = text_.substr(position_ + 1, open - position_ - 1);
    for (position_ = open; position_ < text_.size(); ++position_) {
      if (text_[position_] != ')' || text_.substr(position_ + 1, delimiter.size()) != delimiter) continue;
      position_ = std::min(position_ + 2 + delimiter.size(), text_.size());
      return;
    }
  }

  // A directive's line with its continuations; `#if 0` with everything to its #else, #elif or #endif.
  void SkipDirective() {
    const std::string_view line = DirectiveLine();
    if (line != "if 0" && line != "if false") return;
    int depth = 1;
    while (position_ < text_.size() && depth > 0) {
      const size_t begin = text_.find_first_not_of(" \t\n\r", position_);
      position_ = std::min(begin, text_.size());
      if (position_ == text_.size()) return;
      if (text_[position_] != '#') {
        SkipTo("\n", 1);
        continue;
      }
      const std::string_view inner = DirectiveLine();
      if (inner.substr(0, 2) == "if") ++depth;
      if (inner.substr(0, 5) == "endif") --depth;
      if (depth == 1 && inner.substr(0, 2) == "el") return;
    }
  }

  // Moves past the line and returns its text after '#', without white space at its ends.
  std::string_view DirectiveLine() {
    const size_t begin = ++position_;
    while (position_ < text_.size() && text_[position_] != '\n') {
      position_ += text_[position_] == '\\' ? 2 : 1;
    }
    position_ = std::min(position_, text_.size());
    std::string_view line = text_.substr(begin, position_ - begin);
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
  }

  const std::string_view text_;
  std::vector<std::string_view> tokens_;
  size_t position_ = 0;
  bool line_is_empty_ = true;
};

}  // namespace

std::vector<std::string_view> CppTokens(std::string_view source) { return Tokenizer(source).Run(); }

bool IsWord(std::string_view token) { return !token.empty() && IsWordCharacter(token.front()); }

}  // namespace warpsmith
