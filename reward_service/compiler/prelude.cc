#include "reward_service/compiler/prelude.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// Sorted. Larger sets would serve more sources and slow each of them down by what they do not use.
std::vector<std::vector<std::string>> HeaderSets() {
  return {{"cmath", "dlpack/dlpack.h"}, {"cmath", "dlpack/dlpack.h", "vector"}};
}

// Programs that say one of these words take no prelude.
constexpr std::string_view kSpecialFunctions[] = {"assoc_",   "beta(",   "::beta", "betaf",     "betal",
                                                  "cyl_",     "ellint",  "expint", "hermite",   "laguerre",
                                                  "legendre", "riemann", "sph_",   "SPEC_FUNCS"};

constexpr std::string_view kSpace = " \t\r\n";

// Position of the next token, past white space and comments.
size_t SkipBlank(std::string_view text, size_t begin) {
  while (true) {
    begin = text.find_first_not_of(kSpace, begin);
    if (begin == std::string_view::npos) return text.size();
    std::string_view ends;
    if (text.substr(begin, 2) == "//") ends = "\n";
    if (text.substr(begin, 2) == "/*") ends = "*/";
    if (ends.empty()) return begin;
    const size_t end = text.find(ends, begin + 2);
    if (end == std::string_view::npos) return text.size();
    begin = end + ends.size();
  }
}

// The header of `#include <header>` at `begin`, moved past its line; empty when something else stands there.
std::string_view TakeInclude(std::string_view text, size_t* begin) {
  const size_t line_end = std::min(text.find('\n', *begin), text.size());
  std::string_view line = text.substr(*begin, line_end - *begin);
  if (line.empty() || line[0] != '#') return {};
  line.remove_prefix(std::min(line.find_first_not_of(" \t", 1), line.size()));
  if (line.substr(0, 7) != "include") return {};
  line.remove_prefix(std::min(line.find_first_not_of(" \t", 7), line.size()));
  const size_t close = line.find('>');
  if (line.empty() || line[0] != '<' || close == std::string_view::npos) return {};
  if (line.find_first_not_of(" \t\r", close + 1) != std::string_view::npos) return {};
  *begin = line_end;
  return line.substr(1, close - 1);
}

absl::StatusOr<Prelude> BuildPrelude(const Toolchain& toolchain, const std::filesystem::path& directory,
                                     const std::vector<std::string>& headers) {
  std::string text = kWithoutSpecialFunctions;
  for (const std::string& header : headers) absl::StrAppend(&text, "#include <", header, ">\n");
  const std::string name = Sha256Hex(absl::StrCat(toolchain.fingerprint, "\n", text)).substr(0, 16);
  Prelude prelude{directory / name, headers};
  std::vector<std::string> command = {toolchain.compiler};
  command.insert(command.end(), toolchain.flags.begin(), toolchain.flags.end());
  RETURN_IF_ERROR(PrecompileHeader(command, text, prelude.directory));
  return prelude;
}

}  // namespace

absl::Status PrecompileHeader(std::vector<std::string> command, const std::string& text,
                              const std::filesystem::path& folder, const std::atomic<bool>* cancelled) {
  std::error_code error;
  if (std::filesystem::exists(folder / "prelude.h.gch", error)) return absl::OkStatus();
  std::filesystem::create_directories(folder, error);
  if (error) return absl::InternalError(absl::StrCat("cannot make ", folder.string(), ": ", error.message()));
  RETURN_IF_ERROR(WriteFileAtomically(folder / "prelude.h", text));
  // Named by process, so that two services that start at once do not write the same file.
  const std::string unfinished = folder / absl::StrCat("unfinished-", getpid(), ".gch");
  const std::string header = folder / "prelude.h";
  for (const std::string& argument :
       {std::string("-x"), std::string("c++-header"), header, std::string("-o"), unfinished}) {
    command.push_back(argument);
  }
  const absl::Status compiled = OutputOf(command, cancelled).status();
  if (compiled.ok()) std::filesystem::rename(unfinished, folder / "prelude.h.gch", error);
  if (compiled.ok() && !error) return absl::OkStatus();
  std::error_code ignored;
  std::filesystem::remove(unfinished, ignored);
  RETURN_IF_ERROR(compiled);
  return absl::InternalError(absl::StrCat("cannot rename ", unfinished, ": ", error.message()));
}

absl::StatusOr<std::vector<Prelude>> BuildPreludes(const Toolchain& toolchain,
                                                   const std::filesystem::path& directory) {
  std::vector<Prelude> preludes;
  for (const std::vector<std::string>& headers : HeaderSets()) {
    ASSIGN_OR_RETURN(Prelude prelude, BuildPrelude(toolchain, directory, headers));
    preludes.push_back(std::move(prelude));
  }
  return preludes;
}

absl::Status CheckHeaders(const Toolchain& toolchain) {
  std::vector<std::string> command = {toolchain.compiler};
  command.insert(command.end(), toolchain.flags.begin(), toolchain.flags.end());
  command.push_back("-fsyntax-only");
  for (const std::vector<std::string>& headers : HeaderSets()) {
    for (const std::string& header : headers) command.insert(command.end(), {"-include", header});
  }
  command.insert(command.end(), {"-x", "c++", "/dev/null"});
  return OutputOf(command).status();
}

std::vector<std::string> LeadingHeaders(std::string_view source) {
  std::vector<std::string> headers;
  size_t position = SkipBlank(source, 0);
  for (std::string_view header = TakeInclude(source, &position); !header.empty();
       header = TakeInclude(source, &position)) {
    headers.emplace_back(header);
    position = SkipBlank(source, position);
  }
  std::sort(headers.begin(), headers.end());
  return headers;
}

const Prelude* ChoosePrelude(const std::vector<Prelude>& preludes, std::string_view source) {
  for (const std::string_view word : kSpecialFunctions) {
    if (source.find(word) != std::string_view::npos) return nullptr;
  }
  const std::vector<std::string> headers = LeadingHeaders(source);
  const Prelude* best = nullptr;
  for (const Prelude& prelude : preludes) {
    if (!std::includes(headers.begin(), headers.end(), prelude.headers.begin(), prelude.headers.end()))
      continue;
    if (best == nullptr || prelude.headers.size() > best->headers.size()) best = &prelude;
  }
  return best;
}

}  // namespace warpsmith
