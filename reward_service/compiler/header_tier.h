// What stands behind `#include <torch/extension.h>`: from headers that compile in no time to the real ones.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_HEADER_TIER_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_HEADER_TIER_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "reward_service/compiler/precompiled_headers.h"

namespace warpsmith {

// A program that does not compile on one tier is tried on the next, so that what load_inline accepts is
// accepted.
struct HeaderTier {
  std::string name;                // "facade", "light", "torch": Compile.headers in the proto
  std::vector<std::string> flags;  // where headers lie
  // Besides, of a CUDA half, which takes no precompiled headers: always, and where it names no more of the standard
  // library than kLeanNames.
  std::vector<std::string> cuda_flags;
  std::vector<std::string> lean_cuda_flags;
  std::string precompiled;  // text that is precompiled, once for each set of flags ...
  PrecompilePolicy policy;  // ... under this policy
  std::vector<std::string> link_flags;
  bool links_torch = false;     // Torch's own libraries, not the facade's alone
  std::filesystem::path names;  // every identifier of its headers, a line each; empty: not known
};

// Of the standard library, what the facade declares for CUDA halves that ask for no more: nvcc reads every header
// three times.
inline constexpr std::string_view kLeanNames[] = {
    "abs",     "array",         "ceil",    "conditional_t",  "enable_if_t", "exp",        "fabs",
    "floor",   "fmax",          "fmin",    "forward",        "get",         "int32_t",    "int64_t",
    "is_same", "is_same_v",     "isinf",   "isnan",          "log",         "make_tuple", "max",
    "min",     "move",          "nullopt", "numeric_limits", "optional",    "pair",       "pow",
    "round",   "runtime_error", "size_t",  "sqrt",           "string",      "swap",       "tanh",
    "tie",     "to_string",     "tuple",   "uint32_t",       "uint64_t",    "vector"};

// Where the tiers' files are.
struct HeaderPlaces {
  std::filesystem::path torch_dir;         // of the Python package
  std::filesystem::path python_include;    // with Python.h
  std::filesystem::path facade_directory;  // of reward_service/facade as built; empty: the real headers alone
  // With Torch's libraries by name. Of the facade they are empty ones: what is linked with a library is readable
  // to the program, and it needs no more of Torch's than their names.
  std::filesystem::path LinkDirectory() const {
    return facade_directory.empty() ? torch_dir / "lib" : facade_directory / "stubs";
  }
};

// In the order in which they are tried.
std::vector<HeaderTier> HeaderTiers(const HeaderPlaces& places);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_HEADER_TIER_H_
