#include "reward_service/program/neutral_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "reward_service/program/known_words.h"

namespace warpsmith {
namespace {

constexpr int kDepthMax = 12;
constexpr size_t kTaskWordBytesMax = 48;
constexpr std::string_view kSigns = "!#%&()*+,-./:;<=>?@[]^{|}~";
constexpr std::string_view kOperators[] = {
    "<<<", ">>>", "<<=", ">>=", "...", "->*", "**=", "//=", "::", "->", "++",
    "--",  "<<",  ">>",  "<=",  ">=",  "==",  "!=",  "&&",  "||", "+=", "-=",
    "*=",  "/=",  "%=",  "&=",  "|=",  "^=",  "##",  "**",  "//", ":=", "@="};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordByte(char c) {
  return c == '_' || IsDigit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z' && (c & 0x80) == 0);
}
bool IsOneOf(std::string_view sign, std::initializer_list<std::string_view> signs) {
  return std::find(signs.begin(), signs.end(), sign) != signs.end();
}

}  // namespace

std::string NeutralNames::NameOf(std::string_view word) {
  if (IsKnownWord(word)) return std::string(word);
  const bool is_ours = word.substr(0, 3) == "id_";
  if (!is_ours && word.size() <= kTaskWordBytesMax && task_words_.count(word) != 0) return std::string(word);
  const auto [found, is_new] = numbers_.try_emplace(std::string(word), numbers_.size() + 1);
  return absl::StrCat("id_", found->second);
}

void NeutralText::Append(std::string_view text, bool tight_before, bool tight_after) {
  if (!tight_ && !tight_before) line_.push_back(' ');
  line_.append(text);
  tight_ = tight_after;
  after_word_ = false;
}

void NeutralText::Word(std::string_view word) {
  if (word.empty()) return;
  if (IsDigit(word.front()) || word.front() == '.') {
    Append(IsPlainNumber(word) ? word : "0", false, false);
  } else {
    Append(names_->NameOf(word), false, false);
  }
  after_word_ = true;
}

void NeutralText::Sign(std::string_view sign) {
  const bool is_operator =
      std::find(std::begin(kOperators), std::end(kOperators), sign) != std::end(kOperators);
  if (!is_operator && (sign.size() != 1 || kSigns.find(sign) == std::string_view::npos)) return;
  const bool joins = IsOneOf(sign, {".", "::", "->"});
  const bool opens = IsOneOf(sign, {"(", "["});
  const bool closes = IsOneOf(sign, {")", "]", ",", ";", ":"});
  const bool prefix = IsOneOf(sign, {"!", "~"});
  Append(sign, joins || closes || (opens && after_word_), joins || opens || prefix);
  after_word_ = IsOneOf(sign, {")", "]"});
}

void NeutralText::Literal() { Append("\"...\"", false, false); }

void NeutralText::Block(std::string_view lines) {
  Append("\"\"\"", false, false);
  const int depth = depth_;
  EndLine(depth + 1);
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    line_.assign(lines.substr(0, end));
    EndLine(depth + 1);
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  depth_ = depth;
  Append("\"\"\"", true, false);
}

void NeutralText::EndLine(int depth) {
  if (!line_.empty()) {
    text_.append(4 * static_cast<size_t>(std::clamp(depth_, 0, kDepthMax)), ' ');
    text_.append(line_).push_back('\n');
  }
  line_.clear();
  depth_ = depth;
  tight_ = true;
  after_word_ = false;
}

std::string NeutralText::Take() {
  EndLine(0);
  return std::move(text_);
}

size_t OperatorLength(std::string_view text) {
  for (const std::string_view known : kOperators) {
    if (text.substr(0, known.size()) == known) return known.size();
  }
  return 1;
}

size_t NumberLength(std::string_view text) {
  const size_t first = !text.empty() && text[0] == '.' ? 1 : 0;
  if (first == text.size() || !IsDigit(text[first])) return 0;
  const bool hexadecimal = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
  size_t end = first;
  while (end < text.size()) {
    const char c = text[end];
    const char next = end + 1 < text.size() ? text[end + 1] : '\0';
    const char exponent = hexadecimal ? 'p' : 'e';
    if ((c | 32) == exponent && (next == '+' || next == '-')) {
      end += 2;
    } else if (IsWordByte(c) || c == '.' || (c == '\'' && IsWordByte(next))) {
      ++end;
    } else {
      break;
    }
  }
  return end;
}

}  // namespace warpsmith
