// Compiler messages made fit to be shown: the candidate's own lines, escaped, bounded.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_DIAGNOSTICS_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_DIAGNOSTICS_H_

#include <string>
#include <string_view>

namespace warpsmith {

constexpr size_t kDiagnosticsBytesMax = 4096;

// Lines of `output` about the program itself (which the compiler calls "<stdin>"), as "line:column: message",
// with control characters escaped; errors before warnings and notes, each in their order, cut to 4 KiB. When
// no line is about the program, the first lines as they are.
std::string TrimDiagnostics(std::string_view output);

// The first error of trimmed diagnostics without its place, e.g. "error: expected ';' before 'float'", of at
// most 160 bytes. Empty when there is none.
std::string FirstError(std::string_view diagnostics);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_DIAGNOSTICS_H_
