// Precompiled headers for what nearly every candidate includes.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_PRELUDE_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_PRELUDE_H_

#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "reward_service/compiler/toolchain.h"

namespace warpsmith {

// Leaves out the special functions of C++17 [sf.cmath] in <cmath>, by the macro of libstdc++ that guards them. GCC
// instantiates all of them at the end of every program that begins with a precompiled <cmath>, used or not: half of a
// short compilation.
inline constexpr char kWithoutSpecialFunctions[] =
    "#include <bits/c++config.h>\n#undef _GLIBCXX_USE_STD_SPEC_FUNCS\n";

// One precompiled set of headers: `<directory>/prelude.h.gch`, used by `-include <directory>/prelude.h`.
struct Prelude {
  std::filesystem::path directory;
  std::vector<std::string> headers;  // sorted, without brackets
};

// Precompiles `text` to `<folder>/prelude.h.gch` with compiler and flags of `command`, unless it is there.
// The folder is made if it is missing. Errors are those of the compiler and of the disk; nothing unfinished
// is left then.
// CANCELLED soon after `cancelled` becomes true.
absl::Status PrecompileHeader(std::vector<std::string> command, const std::string& text,
                              const std::filesystem::path& folder,
                              const std::atomic<bool>* cancelled = nullptr);

// Builds the preludes under `directory`, which is made if it is missing and must be readable by everybody;
// one that is already there is kept. Takes a third of a second each. Errors are those of the disk and of the
// compiler.
absl::StatusOr<std::vector<Prelude>> BuildPreludes(const Toolchain& toolchain,
                                                   const std::filesystem::path& directory);

// Whether the headers of all preludes compile, writing nothing: INTERNAL with the compiler's words, else it
// was the disk that BuildPreludes failed at. A machine without them refuses every program, for no fault of
// it.
absl::Status CheckHeaders(const Toolchain& toolchain);

// The headers in angle brackets that `source` includes before anything else, sorted. Comments and blank lines
// may stand between; the first other token ends the list, for a macro could change what a later header means.
std::vector<std::string> LeadingHeaders(std::string_view source);

// The largest prelude all of whose headers `source` includes first anyway, so that putting it in front
// changes nothing but the time; null when there is none, or when `source` may use one of C++17's special
// functions, which preludes lack.
const Prelude* ChoosePrelude(const std::vector<Prelude>& preludes, std::string_view source);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_PRELUDE_H_
