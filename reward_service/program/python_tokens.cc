#include "reward_service/program/python_tokens.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "reward_service/program/neutral_text.h"

namespace warpsmith {
namespace {

constexpr char kBeyondAscii = '\xff';

bool IsWordByte(char c) {
  return c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c)) || (c & 0x80) != 0;
}

bool IsStringPrefix(std::string_view word) {
  static constexpr std::string_view kPrefixes[] = {"r", "u", "b", "f", "br", "rb", "fr", "rf"};
  const std::string lower = absl::AsciiStrToLower(absl::string_view(word.data(), word.size()));
  return std::find(std::begin(kPrefixes), std::end(kPrefixes), lower) != std::end(kPrefixes);
}

bool HasLetter(std::string_view prefix, char letter) {
  return std::any_of(prefix.begin(), prefix.end(), [letter](char c) { return (c | 32) == letter; });
}

// The value of up to `digits_max` digits of base 8 or 16 at `*position`, which is moved past them.
int ReadDigits(std::string_view text, int base, size_t digits_max, size_t* position) {
  int value = 0;
  for (size_t i = 0; i < digits_max && *position < text.size(); ++i, ++*position) {
    const char c = text[*position];
    const int digit =
        c >= '0' && c <= '9' ? c - '0' : ((c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99);
    if (digit >= base) break;
    value = value * base + digit;
  }
  return value;
}

char ToByte(int code) { return code > 0 && code < 128 ? static_cast<char>(code) : kBeyondAscii; }

// Appends what the escape at `position`, a backslash, means; returns the position past it.
size_t Unescape(std::string_view body, size_t position, std::string* out) {
  static constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
  if (++position == body.size()) return position;
  const char c = body[position];
  if (c == '\n') return position + 1;
  if (const size_t known = kLetters.find(c); known != std::string_view::npos) {
    out->push_back(kMeanings[known]);
    return position + 1;
  }
  if (c >= '0' && c <= '7') {
    out->push_back(ToByte(ReadDigits(body, 8, 3, &position)));
    return position;
  }
  const size_t digits = c == 'x' ? 2 : (c == 'u' ? 4 : (c == 'U' ? 6 : 0));
  if (digits > 0) {
    out->push_back(ToByte(ReadDigits(body, 16, digits, &++position)));
    return position;
  }
  out->push_back('\\');
  return position;
}

std::string Meaning(std::string_view prefix, std::string_view body) {
  std::string text;
  if (HasLetter(prefix, 'r')) {
    text = std::string(body);
  } else {
    for (size_t i = 0; i < body.size();) {
      if (body[i] == '\\') {
        i = Unescape(body, i, &text);
      } else {
        text.push_back(body[i++]);
      }
    }
  }
  if (!HasLetter(prefix, 'f')) return text;
  std::string undoubled;
  for (size_t i = 0; i < text.size(); ++i) {
    undoubled.push_back(text[i]);
    const bool doubled = (text[i] == '{' || text[i] == '}') && i + 1 < text.size() && text[i + 1] == text[i];
    if (doubled) ++i;
  }
  return undoubled;
}

class PythonTokenizer {
 public:
  explicit PythonTokenizer(std::string_view text) : text_(text) {}

  std::vector<PythonLexeme> Run() {
    while (position_ < text_.size()) {
      if (line_begins_) {
        BeginLine();
      } else {
        Step();
      }
    }
    return std::move(lexemes_);
  }

 private:
  // Measures indentation; blank lines and those with a comment alone do not count.
  void BeginLine() {
    constexpr int kTabColumns = 8;
    int columns = 0;
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (c == '\t') columns = (columns / kTabColumns + 1) * kTabColumns;
      if (c == ' ') ++columns;
      if (c != ' ' && c != '\t' && c != '\r' && c != '\f') break;
    }
    if (position_ == text_.size()) return;
    if (text_[position_] == '#') SkipComment();
    if (position_ == text_.size()) return;
    if (text_[position_] == '\n') {
      ++position_;
      return;
    }
    while (!indents_.empty() && indents_.back() > columns) indents_.pop_back();
    if (indents_.empty() || indents_.back() < columns) indents_.push_back(columns);
    lexemes_.push_back({PythonKind::kLine, {}, static_cast<int>(indents_.size()) - 1});
    line_begins_ = false;
  }

  void Step() {
    const char c = text_[position_];
    if (c == '\n') {
      line_begins_ = num_open_ == 0;
      ++position_;
    } else if (c == '#') {
      SkipComment();
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++position_;
    } else if (c == '\\') {
      position_ += position_ + 1 < text_.size() && text_[position_ + 1] == '\n' ? 2 : 1;
    } else if (c == '"' || c == '\'') {
      String({});
    } else if (const size_t number = NumberLength(text_.substr(position_)); number > 0) {
      Add(PythonKind::kWord, number);
    } else if (IsWordByte(c)) {
      Word();
    } else {
      Sign(c);
    }
  }

  void SkipComment() { position_ = std::min(text_.find('\n', position_), text_.size()); }

  void Add(PythonKind kind, size_t num_bytes) {
    lexemes_.push_back({kind, std::string(text_.substr(position_, num_bytes))});
    position_ += num_bytes;
  }

  void Word() {
    size_t end = position_;
    while (end < text_.size() && IsWordByte(text_[end])) ++end;
    const std::string_view word = text_.substr(position_, end - position_);
    if (end < text_.size() && (text_[end] == '"' || text_[end] == '\'') && IsStringPrefix(word)) {
      position_ = end;
      String(word);
    } else {
      Add(PythonKind::kWord, word.size());
    }
  }

  void Sign(char c) {
    if (c == '(' || c == '[' || c == '{') ++num_open_;
    if ((c == ')' || c == ']' || c == '}') && num_open_ > 0) --num_open_;
    Add(PythonKind::kSign, OperatorLength(text_.substr(position_)));
  }

  // The literal whose quote is at the position.
  void String(std::string_view prefix) {
    const char quote = text_[position_];
    const bool triple = text_.substr(position_, 3) == std::string(3, quote);
    const std::string mark(triple ? 3 : 1, quote);
    const size_t begin = position_ + mark.size();
    size_t end = begin;
    while (end < text_.size() && text_.substr(end, mark.size()) != mark && (triple || text_[end] != '\n')) {
      end += text_[end] == '\\' ? 2 : 1;
    }
    end = std::min(end, text_.size());
    std::string meaning = Meaning(prefix, text_.substr(begin, end - begin));
    position_ = text_.substr(end, mark.size()) == mark ? end + mark.size() : end;
    if (!lexemes_.empty() && lexemes_.back().kind == PythonKind::kString) {
      lexemes_.back().text += meaning;
    } else {
      lexemes_.push_back({PythonKind::kString, std::move(meaning)});
    }
  }

  const std::string_view text_;
  std::vector<PythonLexeme> lexemes_;
  std::vector<int> indents_;
  size_t position_ = 0;
  int num_open_ = 0;
  bool line_begins_ = true;
};

}  // namespace

std::vector<PythonLexeme> PythonLexemes(std::string_view source) { return PythonTokenizer(source).Run(); }

}  // namespace warpsmith
