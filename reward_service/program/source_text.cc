#include "reward_service/program/source_text.h"

#include <algorithm>

namespace warpsmith {
namespace {

constexpr size_t kRawDelimiterMax = 16;  // by the language

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
bool IsWord(char c) { return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

bool IsSeparator(char c) { return std::string_view("(){};,").find(c) != std::string_view::npos; }

// Whether white space between two characters keeps them from becoming another token: between words (a number
// may hold a point), after an exponent's letter, before a quote (prefixes), between signs.
bool GapMatters(char before, char after) {
  if (IsSeparator(before) || IsSeparator(after)) return false;
  if (after == '"' || after == '\'' || before == '"' || before == '\'') return true;
  if ((after == '+' || after == '-') && std::string_view("eEpP").find(before) != std::string_view::npos)
    return true;
  const bool word_before = IsWord(before) || before == '.';
  const bool word_after = IsWord(after) || after == '.';
  return word_before == word_after;
}

// Position after `mark` in `text`, searched from `begin`; the end where it is missing.
size_t After(std::string_view text, std::string_view mark, size_t begin) {
  const size_t found = text.find(mark, begin);
  return found == std::string_view::npos ? text.size() : found + mark.size();
}

// Position after the literal that opens with the quote at `begin`; a literal does not cross a line.
size_t AfterQuoted(std::string_view text, size_t begin) {
  const char quote = text[begin];
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    } else if (text[i] == '\n') {
      return i;
    }
  }
  return text.size();
}

// Walks C++ text once and writes the normal form.
class CppNormaliser {
 public:
  explicit CppNormaliser(std::string_view source) : text_(source) {}

  std::string Run() {
    while (position_ < text_.size()) Step();
    while (!out_.empty() && (out_.back() == ' ' || out_.back() == '\n')) out_.pop_back();
    return std::move(out_);
  }

 private:
  void Step() {
    const char c = text_[position_];
    if (c == '/' && Next() == '/') {
      SkipLineComment();
    } else if (c == '/' && Next() == '*') {
      position_ = After(text_, "*/", position_ + 2);
      gap_ = true;
    } else if (c == '\\' && Next() == '\n') {
      position_ += 2;  // a spliced line
      gap_ = true;
    } else if (c == '\n') {
      EndLine();
    } else if (IsSpace(c)) {
      ++position_;
      gap_ = true;
    } else {
      Token(c);
    }
  }

  char Next() const { return position_ + 1 < text_.size() ? text_[position_ + 1] : '\0'; }

  void SkipLineComment() {
    while (position_ < text_.size() && text_[position_] != '\n') {
      position_ += text_[position_] == '\\' && Next() == '\n' ? 2 : 1;
    }
    position_ = std::min(position_, text_.size());
    gap_ = true;
  }

  void EndLine() {
    ++position_;
    gap_ = true;
    if (in_directive_) BreakLine();
    in_directive_ = false;
    line_is_empty_ = true;
  }

  void BreakLine() {
    if (!out_.empty() && out_.back() != '\n') out_.push_back('\n');
    gap_ = false;
  }

  void Token(char c) {
    if (line_is_empty_ && c == '#') {
      BreakLine();
      in_directive_ = true;
    }
    line_is_empty_ = false;
    if (gap_ && !out_.empty() && out_.back() != '\n' && (in_directive_ || GapMatters(out_.back(), c))) {
      out_.push_back(' ');
    }
    gap_ = false;
    const size_t begin = position_;
    if (c == '"' && IsRaw()) {
      position_ = AfterRaw(begin);
    } else if (c == '"' || (c == '\'' && !IsDigitSeparator())) {
      position_ = AfterQuoted(text_, begin);
    } else {
      ++position_;
    }
    out_.append(text_.substr(begin, position_ - begin));
  }

  // Whether the quote at position_ opens a raw literal: R, u8R, uR, UR or LR stands before it as a whole
  // word.
  bool IsRaw() const {
    size_t begin = position_;
    while (begin > 0 && IsWord(text_[begin - 1])) --begin;
    const std::string_view prefix = text_.substr(begin, position_ - begin);
    return prefix == "R" || prefix == "u8R" || prefix == "uR" || prefix == "UR" || prefix == "LR";
  }

  bool IsDigitSeparator() const {
    return position_ > 0 && text_[position_ - 1] >= '0' && text_[position_ - 1] <= '9' && IsWord(Next());
  }

  size_t AfterRaw(size_t quote) const {
    // One with a longer delimiter does not compile, and would make the search for its end a product of two
    // lengths.
    const size_t open = text_.substr(0, quote + 2 + kRawDelimiterMax).find('(', quote);
    if (open == std::string_view::npos) return AfterQuoted(text_, quote);
    std::string mark(1, ')');
    mark.append(text_.substr(quote + 1, open - quote - 1)).push_back('"');
    return After(text_, mark, open);
  }

  const std::string_view text_;
  std::string out_;
  size_t position_ = 0;
  bool gap_ = false;
  bool in_directive_ = false;
  bool line_is_empty_ = true;
};

// Position after the Python string literal whose quote is at `begin`.
size_t AfterPythonString(std::string_view text, size_t begin) {
  const std::string triple(3, text[begin]);
  if (text.substr(begin, 3) != triple) return AfterQuoted(text, begin);
  for (size_t i = begin + 3; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text.substr(i, 3) == triple) {
      return i + 3;
    }
  }
  return text.size();
}

void TrimLineEnd(size_t line_begin, std::string* out) {
  while (out->size() > line_begin && IsSpace(out->back())) out->pop_back();
}

}  // namespace

std::string NormaliseCpp(std::string_view source) { return CppNormaliser(source).Run(); }

std::string NormalisePython(std::string_view source) {
  std::string out;
  size_t line_begin = 0;
  for (size_t i = 0; i < source.size();) {
    const char c = source[i];
    if (c == '#') {
      i = std::min(source.find('\n', i), source.size());
    } else if (c == '"' || c == '\'') {
      const size_t end = AfterPythonString(source, i);
      out.append(source.substr(i, end - i));
      i = end;
    } else if (c == '\n') {
      TrimLineEnd(line_begin, &out);
      if (out.size() > line_begin) out.push_back('\n');
      line_begin = out.size();
      ++i;
    } else {
      out.push_back(c);
      ++i;
    }
  }
  TrimLineEnd(line_begin, &out);
  return out;
}

}  // namespace warpsmith
