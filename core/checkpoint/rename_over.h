// Puts a folder that was written beside its place into that place.
#ifndef WARPSMITH_CORE_CHECKPOINT_RENAME_OVER_H_
#define WARPSMITH_CORE_CHECKPOINT_RENAME_OVER_H_

#include <filesystem>

#include "absl/status/status.h"

namespace warpsmith {

// Renames folder `from` to a name that may be taken, by an exchange, so that at no moment neither is there;
// then removes what had the name before. Where the file system cannot exchange, it moves that aside first, to
// "<from>.older", and a process that is killed between leaves it there. The errors of the file system: what
// had the name has it again.
absl::Status RenameOver(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_CHECKPOINT_RENAME_OVER_H_
