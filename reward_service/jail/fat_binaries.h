// Taking away from a process the kernels that libraries carry for GPUs.
//
// They are data in a library's file: sections of fat binaries (CUDA Binary Utilities), from which the driver reads a
// kernel when it is first launched. Whoever can read the data can have it launched too, so no closed door will do: the
// data must not be in the process. Kernels that were launched before stay.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_FAT_BINARIES_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_FAT_BINARIES_H_

#include <cstdint>

#include "absl/status/status.h"

namespace warpsmith {

// In the zygote: takes down where the libraries that are loaded now have fat binaries. Later ones are not withheld.
// INTERNAL where the file of one cannot be read.
absl::Status FindFatBinaries();

int64_t NumFatBinaryBytes();  // that were found

// In a jail, before code of others runs: memory that nobody can use takes their place, whole pages of it. What is left
// at both ends of a section is less than a page, in which no kernel of a library has room.
absl::Status WithholdFatBinaries();

// Whether WithholdFatBinaries() took `address` away. For signal handlers, too.
bool IsInWithheldFatBinary(const void* address);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_FAT_BINARIES_H_
