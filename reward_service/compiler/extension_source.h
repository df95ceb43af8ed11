// What torch.utils.cpp_extension.load_inline would write, as a pure function.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_EXTENSION_SOURCE_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_EXTENSION_SOURCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace warpsmith {

// The arguments of one load_inline call, as text.
struct ExtensionArguments {
  std::string name;
  std::vector<std::string> cpp_sources;
  std::vector<std::string> cuda_sources;
  std::vector<std::string> functions;
  std::vector<std::string> extra_cflags;
  std::vector<std::string> extra_ldflags;
};

// The file that load_inline writes: torch/extension.h, the sources, and a pybind module of `functions` unless
// the sources have their own. INVALID_ARGUMENT, in words for the candidate's author, for CUDA sources (there
// is no GPU here) and for a function that is no identifier.
absl::StatusOr<std::string> ExtensionSource(const ExtensionArguments& arguments);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_EXTENSION_SOURCE_H_
