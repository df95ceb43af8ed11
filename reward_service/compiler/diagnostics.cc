#include "reward_service/compiler/diagnostics.h"

#include <optional>
#include <set>
#include <vector>

#include "core/base/log.h"

namespace warpsmith {
namespace {

constexpr std::string_view kUnnamedFiles[] = {"<stdin>", "candidate.cu"};
// Where nvcc finds a bracket missing.
constexpr std::string_view kEndOfSource = "At end of source: ";
constexpr std::string_view kAssembler = "ptxas";
constexpr size_t kErrorBytesMax = 160;
constexpr size_t kLineBytesMax = 400;

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

bool IsError(std::string_view line) { return line.find("error: ") != std::string_view::npos; }

// What stands behind the file in `rest`: ":3:7: message", or nvcc's "(3): message" as "3: message". None where
// `rest` does not begin so.
std::optional<std::string> BehindFile(std::string_view rest) {
  if (rest.starts_with(":")) return std::string(rest.substr(1));
  const size_t end = rest.find("): ");
  if (!rest.starts_with("(") || end == std::string_view::npos || end == 1) return std::nullopt;
  if (rest.find_first_not_of("0123456789", 1) != end) return std::nullopt;
  return std::string(rest.substr(1, end - 1)).append(rest.substr(end + 1));
}

// The line without its file where it is about the program; none where it is not.
std::optional<std::string> OwnLine(std::string_view line) {
  if (line.starts_with(kEndOfSource)) return std::string(line);
  for (const std::string_view file : kUnnamedFiles) {
    if (line.starts_with(file)) return BehindFile(line.substr(file.size()));
  }
  if (!line.starts_with(kCudaHalf)) return std::nullopt;
  const std::optional<std::string> behind = BehindFile(line.substr(kCudaHalf.size()));
  if (!behind) return std::nullopt;
  return std::string(kCudaHalf).append(":").append(*behind);
}

// GNU's assembler writes "Error: " behind a line's number.
std::string WithSmallError(std::string line) {
  const size_t begin = line.find(": Error: ");
  if (begin != std::string::npos) line[begin + 2] = 'e';
  return line;
}

// "ptxas /tmp/candidate.ptx, line 26; error   : text" as "ptxas: error: text", without the place in a file that
// nobody sees.
std::string ForeignLine(std::string_view line) {
  if (line.starts_with(kAssembler)) {
    for (const std::string_view words : {"error   : ", "fatal   : "}) {
      const size_t begin = line.find(words);
      if (begin == std::string_view::npos) continue;
      return std::string(kAssembler).append(": error: ").append(line.substr(begin + words.size()));
    }
  }
  return std::string(line);
}

// Lines to show, each once.
class Shown {
 public:
  void Append(const std::string& line) {
    if (!seen_.insert(line).second) return;
    const std::string safe = Escape(line, kLineBytesMax);
    if (text_.size() + safe.size() + 1 > kDiagnosticsBytesMax) return;
    text_.append(safe).push_back('\n');
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
  std::set<std::string> seen_;
};

}  // namespace

std::string TrimDiagnostics(std::string_view output) {
  std::vector<std::string> errors, others, foreign;
  for (const std::string_view line : Lines(output)) {
    std::optional<std::string> own = OwnLine(line);
    if (!own) {
      foreign.push_back(ForeignLine(line));
      continue;
    }
    const std::string shown = WithSmallError(*std::move(own));
    (IsError(shown) ? errors : others).push_back(shown);
  }
  Shown shown;
  for (const std::string& line : errors) shown.Append(line);
  // Errors of headers and of the linker matter only where the program's own lines have none.
  if (errors.empty()) {
    for (const std::string& line : foreign) shown.Append(line);
  }
  for (const std::string& line : others) shown.Append(line);
  return std::move(shown).text();
}

std::string FirstError(std::string_view diagnostics) {
  for (const std::string_view line : Lines(diagnostics)) {
    const size_t begin = line.find("error: ");
    if (begin == std::string_view::npos) continue;
    std::string error(line.substr(begin, kErrorBytesMax));
    // A trailing note of the option behind it, as in "[-fpermissive]".
    if (const size_t option = error.rfind(" [-"); option != std::string::npos && error.back() == ']') {
      error.resize(option);
    }
    return error;
  }
  return "";
}

}  // namespace warpsmith
