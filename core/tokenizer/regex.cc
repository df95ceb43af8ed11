#include "core/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/tokenizer/regex_translation.h"

namespace warpsmith {

struct Regex::Code {
  pcre2_code* code = nullptr;

  Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
};

namespace {

struct FreePcre {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

std::string PcreMessage(int error) {
  PCRE2_UCHAR message[256];
  pcre2_get_error_message(error, message, sizeof(message));
  return reinterpret_cast<const char*>(message);
}

PCRE2_SPTR Units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

// What matching needs besides the code: made for one FindAll, so that nothing is shared between threads.
class Matcher {
 public:
  explicit Matcher(const pcre2_code* code)
      : code_(code),
        data_(pcre2_match_data_create_from_pattern(code, nullptr)),
        context_(pcre2_match_context_create(nullptr)) {}

  // The first match at or after `start`: 1 with its range, or 0, or a negative error of PCRE2.
  int Find(std::string_view text, size_t start, TextRange* match) {
    int found = Match(text, start);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT && stack_ == nullptr) {
      // The 32 KiB that JIT code takes from the machine's stack do not hold the backtracking of a long piece.
      stack_.reset(pcre2_jit_stack_create(kStackBytesMin, kStackBytesMax, nullptr));
      pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
      found = Match(text, start);
    }
    if (found == PCRE2_ERROR_NOMATCH) return 0;
    if (found < 0) return found;
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data_.get());
    *match = {ends[0], ends[1]};
    return 1;
  }

 private:
  static constexpr size_t kStackBytesMin = size_t{1} << 20;
  static constexpr size_t kStackBytesMax = size_t{512}
                                           << 20;  // address space; pages come as they are touched

  int Match(std::string_view text, size_t start) {
    return pcre2_match(code_, Units(text), text.size(), start, PCRE2_NO_UTF_CHECK, data_.get(),
                       context_.get());
  }

  const pcre2_code* const code_;
  std::unique_ptr<pcre2_match_data, FreePcre> data_;
  std::unique_ptr<pcre2_match_context, FreePcre> context_;
  std::unique_ptr<pcre2_jit_stack, FreePcre> stack_;
};

}  // namespace

absl::StatusOr<Regex> Regex::Compile(std::string_view pattern) {
  ASSIGN_OR_RETURN(const std::string translated, TranslateRegex(pattern));
  return CompilePcre(translated, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE);
}

absl::StatusOr<Regex> Regex::CompileLiteral(std::string_view text) {
  return CompilePcre(text, PCRE2_UTF | PCRE2_LITERAL);
}

absl::StatusOr<Regex> Regex::CompilePcre(std::string_view pattern, unsigned int options) {
  std::unique_ptr<pcre2_compile_context, FreePcre> context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE place = 0;
  auto compiled = std::make_shared<Code>();
  compiled->code = pcre2_compile(Units(pattern), pattern.size(), options, &error, &place, context.get());
  if (compiled->code == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("regular expression ", AbslView(pattern), ": ", PcreMessage(error), " at byte ", place));
  }
  uint32_t may_match_nothing = 0;
  pcre2_pattern_info(compiled->code, PCRE2_INFO_MATCHEMPTY, &may_match_nothing);
  if (may_match_nothing != 0) {
    return absl::InvalidArgumentError(absl::StrCat("regular expression ", AbslView(pattern),
                                                   " may match nothing, so it cannot split a text"));
  }
  // Without JIT (a hardened kernel may forbid it) the same matches come slower.
  pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE);
  return Regex(std::move(compiled));
}

absl::Status Regex::FindAll(std::string_view text, std::vector<TextRange>* matches) const {
  Matcher matcher(code_->code);
  TextRange match;
  for (size_t start = 0; start < text.size(); start = match.end) {
    const int found = matcher.Find(text, start, &match);
    if (found == 0) break;
    if (found < 0) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot split text of ", text.size(),
                                                       " bytes at byte ", start, ": ", PcreMessage(found)));
    }
    WS_CHECK(match.end > start) << "an empty match at " << start;
    matches->push_back(match);
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
