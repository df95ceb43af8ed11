// What stands behind `#include <torch/extension.h>`: from headers that compile in no time to the real ones.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_HEADER_TIER_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_HEADER_TIER_H_

#include <filesystem>
#include <string>
#include <vector>

#include "reward_service/compiler/precompiled_headers.h"

namespace warpsmith {

// A program that does not compile on one tier is tried on the next, so that what load_inline accepts is
// accepted.
struct HeaderTier {
  std::string name;                // "facade", "light", "torch": Compile.headers in the proto
  std::vector<std::string> flags;  // where headers lie
  std::string precompiled;         // text that is precompiled, once for each set of flags ...
  PrecompilePolicy policy;         // ... under this policy
  std::vector<std::string> link_flags;
  bool links_torch = false;     // Torch's own libraries, not the facade's alone
  std::filesystem::path names;  // every identifier of its headers, a line each; empty: not known
};

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
