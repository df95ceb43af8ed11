#include "reward_service/compiler/refusal.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr int64_t kNamesBytesMax = int64_t{64} << 20;

// Grammar that no declaration mends.
constexpr std::string_view kGrammar[] = {
    "expected ';'",
    "expected '}' at end of input",
    "missing terminating",
    "stray '",
    "unterminated",
    "'else' without a previous",
    // nvcc's words, and the rule that is broken without any header's part in it.
    "expected a \";\"",
    "expected a \"}\"",
    "unrecognized token",
    "missing closing quote",
    "error: calling a __device__ function(",
    // What the assembler refuses has passed all headers.
    "ptxas: error: ",
};

// What g++ says of a name that it has not seen, after the name in quotes.
constexpr std::string_view kUnknown[] = {"' was not declared in this scope", "' has not been declared",
                                         "' does not name a type", "' is not a member of"};

// What nvcc says before and after the name.
constexpr std::pair<std::string_view, std::string_view> kUnknownToCuda[] = {
    {"error: identifier \"", "\" is undefined"}, {"\" has no member \"", "\""}};

// The name that an error says is unknown; empty when it is about something else.
std::string_view UnknownName(std::string_view line) {
  for (const std::string_view words : kUnknown) {
    const size_t end = line.find(words);
    if (end == std::string_view::npos) continue;
    const size_t begin = line.rfind('\'', end == 0 ? 0 : end - 1);
    if (begin == std::string_view::npos) continue;
    const std::string_view name = line.substr(begin + 1, end - begin - 1);
    const size_t scope = name.rfind("::");
    return scope == std::string_view::npos ? name : name.substr(scope + 2);
  }
  for (const auto& [before, after] : kUnknownToCuda) {
    const size_t found = line.find(before);
    if (found == std::string_view::npos) continue;
    const size_t begin = found + before.size();
    const size_t end = line.find(after, begin);
    if (end != std::string_view::npos) return line.substr(begin, end - begin);
  }
  return {};
}

bool IsOwnFault(std::string_view line, const HeaderNames* names) {
  const std::string_view name = UnknownName(line);
  if (!name.empty()) return names != nullptr && !names->Contains(name);
  return std::any_of(std::begin(kGrammar), std::end(kGrammar),
                     [&](std::string_view words) { return line.find(words) != line.npos; });
}

// As where the source has a PYBIND11_MODULE and load_inline adds another one for its `functions`. No header
// defines the entry of a program's module, so none can mend that, whatever else is wrong.
bool DefinesModuleTwice(std::string_view line) {
  const size_t redefined = line.find("redefinition of '");
  return redefined != std::string_view::npos && line.find("* PyInit_", redefined) != std::string_view::npos;
}

std::vector<std::string_view> Errors(std::string_view diagnostics) {
  std::vector<std::string_view> errors;
  while (!diagnostics.empty()) {
    const std::string_view line = diagnostics.substr(0, diagnostics.find('\n'));
    diagnostics.remove_prefix(std::min(line.size() + 1, diagnostics.size()));
    if (line.find("error: ") != line.npos) errors.push_back(line);
  }
  return errors;
}

}  // namespace

absl::StatusOr<HeaderNames> HeaderNames::Load(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kNamesBytesMax));
  HeaderNames names;
  for (const absl::string_view name : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    names.names_.emplace(name);
  }
  return names;
}

bool MayNeedOtherHeaders(std::string_view diagnostics, const HeaderNames* names) {
  const std::vector<std::string_view> errors = Errors(diagnostics);
  if (std::any_of(errors.begin(), errors.end(), DefinesModuleTwice)) return false;
  return errors.empty() || !std::all_of(errors.begin(), errors.end(),
                                        [&](std::string_view line) { return IsOwnFault(line, names); });
}

std::string WithoutKnownNames(std::string_view diagnostics, const HeaderNames& names) {
  std::vector<absl::string_view> lines =
      absl::StrSplit(absl::string_view(diagnostics.data(), diagnostics.size()), '\n');
  const auto is_known = [&](absl::string_view line) {
    const std::string_view name = UnknownName({line.data(), line.size()});
    return !name.empty() && names.Contains(name);
  };
  lines.erase(std::remove_if(lines.begin(), lines.end(), is_known), lines.end());
  return absl::StrJoin(lines, "\n");
}

bool LacksAName(std::string_view diagnostics, const HeaderNames& names) {
  const std::vector<std::string_view> errors = Errors(diagnostics);
  return std::any_of(errors.begin(), errors.end(), [&](std::string_view line) {
    const std::string_view name = UnknownName(line);
    return !name.empty() && !names.Contains(name);
  });
}

}  // namespace warpsmith
