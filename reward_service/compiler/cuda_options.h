// Which options of load_inline reach nvcc: those of an exact list.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_CUDA_OPTIONS_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_CUDA_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace warpsmith {

// The options of extra_cuda_cflags as nvcc is to get them, each a word. Both spellings of nvcc are known, with one
// dash and with two, the value behind "=" or in the next word, lists with commas. What chooses the GPU, the
// number of threads or warnings is left out: the service knows better. Options for the host's compiler pass where
// AllowedOptions() lets them. INVALID_ARGUMENT, naming the option and those that are allowed, for the first that
// is not on the list: whatever names a file, a program or a place.
absl::StatusOr<std::vector<std::string>> AllowedCudaOptions(const std::vector<std::string>& texts);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_CUDA_OPTIONS_H_
