// Compiler messages made fit to be shown: the candidate's own lines, escaped, bounded.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_DIAGNOSTICS_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_DIAGNOSTICS_H_

#include <string>
#include <string_view>

namespace warpsmith {

constexpr size_t kDiagnosticsBytesMax = 4096;

// What the CUDA half of an inline program is called in diagnostics: its C++ half has no name.
inline constexpr std::string_view kCudaHalf = "cuda.cu";

// Lines of `output` about the program itself (which compilers call "<stdin>", "candidate.cu" or kCudaHalf), as
// "line:column: message" of g++ and "line: message" of nvcc, with kCudaHalf's name before them, control
// characters escaped; errors before warnings and notes, each in their order and once, cut to 4 KiB. When none is an
// error, those of headers, linker and ptxas follow.
std::string TrimDiagnostics(std::string_view output);

// The first error of trimmed diagnostics without its place, e.g. "error: expected ';' before 'float'", of at
// most 160 bytes. Empty when there is none.
std::string FirstError(std::string_view diagnostics);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_DIAGNOSTICS_H_
