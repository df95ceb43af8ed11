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
  std::vector<std::string> extra_cuda_cflags;
  bool with_cuda = false;  // as if there were CUDA sources: for C++ that calls CUDA or its libraries
};

// The two halves of an extension, compiled apart and linked.
struct ExtensionSources {
  std::string cpp;
  std::string cuda;  // empty: there are no CUDA sources
};

// The files that load_inline writes. For C++: torch/extension.h, the sources, and a pybind module of `functions`
// unless the sources have their own. For CUDA: torch/types.h, CUDA's headers and the sources, whose lines are
// those of kCudaHalf. INVALID_ARGUMENT, in words for the candidate's author, for a function that is no identifier.
absl::StatusOr<ExtensionSources> SourcesOf(const ExtensionArguments& arguments);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_EXTENSION_SOURCE_H_
