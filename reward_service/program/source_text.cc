#include "reward_service/program/source_text.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace warpsmith {
namespace {

constexpr size_t kRawDelimiterMax = 16;  // by the language

// What makes a program hang on its lines or blanks, as far as headers offer it: __LINE__ and what is like it, and
// macros that turn their arguments into text or join them. Also trigraphs, which some standards read.
constexpr std::string_view kLayoutWords[] = {
    "__LINE__", "__builtin_LINE", "source_location", "__has_include", "__has_embed",
    "__STRING", "__CONCAT",       "STRINGIZE",       "STRINGIFY",     "??"};

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// What identifiers and numbers are made of; a backslash begins a character of an identifier by its number.
bool IsWord(char c) {
  return c == '_' || c == '$' || c == '\\' || (c & 0x80) != 0 || IsDigit(c) ||
         ((c | 32) >= 'a' && (c | 32) <= 'z');
}

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

// Position after the literal that opens with the quote at `begin`; none where it is open at the line's end.
std::optional<size_t> AfterClosed(std::string_view text, size_t begin) {
  for (size_t i = begin + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == text[begin]) return i + 1;
    if (text[i] == '\\') ++i;
  }
  return std::nullopt;
}

// As above, or the line's end.
size_t AfterQuoted(std::string_view text, size_t begin) {
  const std::optional<size_t> closed = AfterClosed(text, begin);
  return closed ? *closed : std::min(text.find('\n', begin), text.size());
}

// Position after the number at `begin` [lex.ppnumber].
size_t AfterNumber(std::string_view text, size_t begin) {
  size_t end = begin + 1;
  while (end < text.size()) {
    const char next = end + 1 < text.size() ? text[end + 1] : '\0';
    if (std::string_view("eEpP").find(text[end]) != std::string_view::npos && (next == '+' || next == '-')) {
      end += 2;
    } else if (text[end] == '\'' && text[end] != next && IsWord(next) && next != '\\') {
      end += 2;
    } else if (text[end] == '.' || (IsWord(text[end]) && text[end] != '\\')) {
      ++end;
    } else {
      break;
    }
  }
  return end;
}

bool IsRawPrefix(std::string_view word) {
  return word == "R" || word == "u8R" || word == "uR" || word == "UR" || word == "LR";
}

// The text as the compiler joins its lines [lex.phases]: a backslash at a line's end takes both away.
std::string SpliceLines(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source.substr(i, 2) == "\\\n") {
      ++i;
    } else if (source.substr(i, 3) == "\\\r\n") {
      i += 2;
    } else {
      text.push_back(source[i]);
    }
  }
  return text;
}

// Where compilers do not agree: GCC joins lines also where blanks stand behind the backslash.
bool HasBlankAfterBackslash(std::string_view text) {
  for (size_t i = text.find('\\'); i != std::string_view::npos; i = text.find('\\', i + 1)) {
    const size_t next = text.find_first_not_of(" \t\v\f\r", i + 1);
    if (next != i + 1 && next != std::string_view::npos && text[next] == '\n') return true;
  }
  return false;
}

// GCC takes a carriage return alone for a line's end in some places.
bool HasLoneReturn(std::string_view text) {
  for (size_t i = text.find('\r'); i != std::string_view::npos; i = text.find('\r', i + 1)) {
    if (text.substr(i, 2) != "\r\n") return true;
  }
  return false;
}

// Whether lines or blanks may mean something of which this file knows nothing.
bool HangsOnLayout(std::string_view source, std::string_view spliced) {
  if (source.find('\0') != std::string_view::npos || HasLoneReturn(source)) return true;
  if (HasBlankAfterBackslash(spliced)) return true;
  // In a raw literal lines are not joined.
  if (spliced.size() != source.size() && spliced.find("R\"") != std::string_view::npos) return true;
  return std::any_of(std::begin(kLayoutWords), std::end(kLayoutWords),
                     [&](std::string_view word) { return spliced.find(word) != std::string_view::npos; });
}

// Walks C++ text of joined lines once and writes the normal form.
class CppNormaliser {
 public:
  explicit CppNormaliser(std::string_view text) : text_(text) {}

  // Nothing where a macro of the text's own turns its arguments into text, or joins them, or where a comment or
  // literal is open.
  std::optional<std::string> Run() {
    while (position_ < text_.size() && !hangs_on_layout_) Step();
    if (hangs_on_layout_) return std::nullopt;
    while (!out_.empty() && (out_.back() == ' ' || out_.back() == '\n')) out_.pop_back();
    return std::move(out_);
  }

 private:
  void Step() {
    const char c = text_[position_];
    if (c == '/' && Next() == '/') {
      position_ = std::min(text_.find('\n', position_), text_.size());
      gap_ = true;
    } else if (c == '/' && Next() == '*') {
      const size_t end = text_.find("*/", position_ + 2);
      hangs_on_layout_ |= end == std::string_view::npos;  // does not compile
      position_ = std::min(end, text_.size() - 2) + 2;
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
    const bool is_hash = c == '#' || (c == '%' && Next() == ':');
    if (line_is_empty_ && is_hash) {
      BreakLine();
      in_directive_ = true;
      is_include_ = false;
    } else if (in_directive_ && is_hash) {
      hangs_on_layout_ = true;
    }
    line_is_empty_ = false;
    if (gap_ && !out_.empty() && out_.back() != '\n' && (in_directive_ || GapMatters(out_.back(), c))) {
      out_.push_back(' ');
    }
    gap_ = false;
    const size_t begin = position_;
    position_ = AfterToken(c);
    out_.append(text_.substr(begin, position_ - begin));
  }

  size_t AfterToken(char c) {
    if (IsDigit(c) || (c == '.' && IsDigit(Next()))) return AfterNumber(text_, position_);
    if (c == '"' || c == '\'') {
      hangs_on_layout_ |= !AfterClosed(text_, position_);  // joined with the next line it would be another
      return AfterQuoted(text_, position_);
    }
    if (c == '<' && in_directive_ && is_include_) {
      return std::min(text_.find_first_of(">\n", position_), text_.size());
    }
    if (c == '%' && Next() == ':') return position_ + 2;
    if (!IsWord(c)) return position_ + 1;
    size_t end = position_ + 1;
    while (end < text_.size() && IsWord(text_[end]) && text_[end] != '\\') ++end;
    const std::string_view word = text_.substr(position_, end - position_);
    if (word == "include" || word == "include_next" || word == "import") is_include_ = true;
    return IsRawPrefix(word) && end < text_.size() && text_[end] == '"' ? AfterRaw(end) : end;
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
  bool is_include_ = false;  // of the directive
  bool line_is_empty_ = true;
  bool hangs_on_layout_ = false;
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

int NumJoinedLines(std::string_view text) {
  int number = 0;
  for (size_t at = text.find("\\\n"); at != text.npos; at = text.find("\\\n", at + 1)) ++number;
  return number;
}

}  // namespace

std::string NormaliseCpp(std::string_view source) {
  const std::string spliced = SpliceLines(source);
  if (HangsOnLayout(source, spliced)) return std::string(source);
  std::optional<std::string> normal = CppNormaliser(spliced).Run();
  // A comment that is gone from behind a backslash must not leave it to join two lines.
  if (!normal || NumJoinedLines(*normal) > NumJoinedLines(spliced)) return std::string(source);
  return *std::move(normal);
}

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
