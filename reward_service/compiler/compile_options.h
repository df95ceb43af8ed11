// Which options of load_inline reach the compiler: those of an exact list.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_COMPILE_OPTIONS_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_COMPILE_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace warpsmith {

// The options of extra_cflags or extra_ldflags as the compiler is to get them. As in load_inline, one text may
// hold several, and an empty one means nothing. Options that mean nothing here are left out: warnings,
// link-time optimisation of a single file, Torch's own libraries. INVALID_ARGUMENT, naming the option and those
// that are allowed, for the first that is not on the list: whatever names a file, a program or a place.
absl::StatusOr<std::vector<std::string>> AllowedOptions(const std::vector<std::string>& texts);

// The part of `options`, in one fixed order, that headers must be precompiled with to serve a source with all of
// them: one of a few sets. None where an option has an influence that no set has: such a source compiles
// without precompiled headers.
std::optional<std::vector<std::string>> HeaderOptions(const std::vector<std::string>& options);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_COMPILE_OPTIONS_H_
