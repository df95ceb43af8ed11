#include "reward_service/compiler/diagnostics.h"

#include <vector>

#include "core/base/log.h"

namespace warpsmith {
namespace {

constexpr std::string_view kOwnFile = "<stdin>:";
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

void Append(std::string_view line, std::string* out) {
  const std::string safe = Escape(line, kLineBytesMax);
  if (out->size() + safe.size() + 1 > kDiagnosticsBytesMax) return;
  out->append(safe).push_back('\n');
}

}  // namespace

std::string TrimDiagnostics(std::string_view output) {
  std::vector<std::string_view> errors, others, foreign;
  for (std::string_view line : Lines(output)) {
    if (line.substr(0, kOwnFile.size()) != kOwnFile) {
      foreign.push_back(line);
      continue;
    }
    line.remove_prefix(kOwnFile.size());
    (IsError(line) ? errors : others).push_back(line);
  }
  std::string out;
  for (const std::string_view line : errors) Append(line, &out);
  // Errors of headers and of the linker matter only where the program's own lines have none.
  if (errors.empty()) {
    for (const std::string_view line : foreign) Append(line, &out);
  }
  for (const std::string_view line : others) Append(line, &out);
  return out;
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
