#include "core/tokenizer/regex_translation.h"

#include <cctype>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/status_macros.h"
#include "core/tokenizer/unicode_additions.h"

namespace warpsmith {
namespace {

// Unicode's White_Space, as the inside of a class.
constexpr std::string_view kSpaces =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

// Walks over the pattern once, one construct at a time.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  absl::StatusOr<std::string> Run() {
    while (at_ < pattern_.size()) RETURN_IF_ERROR(Step());
    if (in_class_) return Refuse("a class that is not closed");
    return std::move(out_);
  }

 private:
  absl::Status Step() {
    if (pattern_[at_] == '\\') return Escape();
    if (in_class_) return StepInClass();
    if (StartsWith("(?")) return Group();
    if (pattern_[at_] == '[') return OpenClass();
    if (pattern_[at_] == '{') return Interval();
    return Copy(1);
  }

  absl::Status Escape() {
    if (at_ + 1 >= pattern_.size()) return Refuse("a backslash at the end");
    const char letter = pattern_[at_ + 1];
    switch (letter) {
      case 's':
        return Replace(2, in_class_ ? std::string(kSpaces) : absl::StrCat("[", AbslView(kSpaces), "]"));
      case 'S':
        return Replace(2, in_class_ ? R"(\S\x{180e})" : absl::StrCat("[^", AbslView(kSpaces), "]"));
      case 'd':
        return Replace(
            2, absl::StrCat(in_class_ ? "" : "[", R"(\d)", AbslView(kDigitsSince15), in_class_ ? "" : "]"));
      case 'D':
        if (in_class_) return Refuse("this escape within a class");
        return Replace(2, absl::StrCat(R"([^\d)", AbslView(kDigitsSince15), "]"));
      case 'v':
        return Replace(2, R"(\x{b})");
      case 'u':
        return UnicodeEscape();
      case 'p':
      case 'P':
      case 'x':
        return EscapeWithBraces();
      case 'n':
      case 'r':
      case 't':
      case 'f':
        return Copy(2);
      default:
        if (std::isalnum(static_cast<unsigned char>(letter))) return Refuse("this escape");
        return Copy(2);
    }
  }

  // \p{L}, \x{2028}: these braces are no interval.
  absl::Status EscapeWithBraces() {
    if (pattern_.substr(at_ + 2, 1) != "{") return Copy(2);
    const size_t end = pattern_.find('}', at_);
    if (end == std::string_view::npos) return Refuse("this escape");
    const size_t length = end + 1 - at_;
    const std::string additions = AdditionsTo(pattern_.substr(at_ + 2, length - 2));
    const bool is_negated = pattern_[at_ + 1] == 'P';
    if (additions.empty() || pattern_[at_ + 1] == 'x') return Copy(length);
    if (in_class_ && is_negated) return Refuse("this escape within a class");
    const std::string members =
        absl::StrCat("\\p", AbslView(pattern_.substr(at_ + 2, length - 2)), additions);
    return Replace(length, in_class_ ? members : absl::StrCat(is_negated ? "[^" : "[", members, "]"));
  }

  // What the general category, in braces, has that PCRE2's lacks. Subcategories of letters are left as they
  // are.
  static std::string AdditionsTo(std::string_view category) {
    if (category == "{L}") return std::string(kLettersSince15);
    if (category == "{Nd}") return std::string(kDigitsSince15);
    if (category == "{N}") return absl::StrCat(AbslView(kDigitsSince15), AbslView(kOtherNumbersSince15));
    return "";
  }

  absl::Status UnicodeEscape() {
    constexpr size_t kNumDigits = 4;
    const std::string_view digits = pattern_.substr(at_ + 2, kNumDigits);
    for (const char digit : digits) {
      if (!std::isxdigit(static_cast<unsigned char>(digit))) return Refuse("this escape");
    }
    if (digits.size() != kNumDigits) return Refuse("this escape");
    return Replace(2 + kNumDigits, absl::StrCat("\\x{", AbslView(digits), "}"));
  }

  absl::Status OpenClass() {
    in_class_ = true;
    size_t length = 1;
    if (pattern_.substr(at_ + length, 1) == "^") ++length;
    if (pattern_.substr(at_ + length, 1) == "]") ++length;  // first in a class it stands for itself
    return Copy(length);
  }

  absl::Status StepInClass() {
    if (pattern_[at_] == '[') return Refuse("a class within a class");
    if (StartsWith("&&")) return Refuse("an intersection of classes");
    if (pattern_[at_] == ']') in_class_ = false;
    return Copy(1);
  }

  absl::Status Group() {
    for (const std::string_view opening : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"}) {
      if (StartsWith(opening)) return Copy(opening.size());
    }
    return Refuse("this kind of group");
  }

  // Ruby reads {,n} as {0,n}, and {n,m}+ as a repetition of a repetition where PCRE2 sees a possessive one.
  absl::Status Interval() {
    const size_t end = pattern_.find('}', at_);
    if (end == std::string_view::npos || StartsWith("{,")) return Refuse("this interval");
    if (pattern_.substr(end + 1, 1) == "+") return Refuse("an interval followed by +");
    return Copy(end + 1 - at_);
  }

  bool StartsWith(std::string_view prefix) const { return pattern_.substr(at_, prefix.size()) == prefix; }

  absl::Status Copy(size_t length) { return Replace(length, std::string(pattern_.substr(at_, length))); }

  absl::Status Replace(size_t length, const std::string& by) {
    out_ += by;
    at_ += length;
    return absl::OkStatus();
  }

  absl::Status Refuse(const std::string& what) const {
    return absl::UnimplementedError(absl::StrCat("regular expression ", AbslView(pattern_), ": ", what,
                                                 " at byte ", at_, " is not supported"));
  }

  const std::string_view pattern_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::string> TranslateRegex(std::string_view pattern) { return Translator(pattern).Run(); }

}  // namespace warpsmith
