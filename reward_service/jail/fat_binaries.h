// Taking away from a process the kernels that libraries carry for GPUs.
//
// They are data in a library's file: fat binaries (CUDA Binary Utilities), from which the driver reads a kernel when it
// is first launched. Most lie in sections of their own; some libraries keep others among their data, compressed too.
// Whoever can read the data can have it launched, so it must not be in the process. Kernels that were launched before
// stay.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_FAT_BINARIES_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_FAT_BINARIES_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"

namespace warpsmith {

// In the zygote: takes down where the libraries that are loaded now have kernels. Later ones are not withheld. Of those
// in `unused`, by the real paths of their files, all code and data is taken, if they have any kernels: what the
// dynamic linker and new threads read stays. Those in `kept`, by paths that lead to their files, keep their kernels.
// INTERNAL where the file of one cannot be read, or where nothing is found.
absl::Status FindFatBinaries(const std::set<std::string>& unused, const std::set<std::string>& kept = {});

// In a jail, before code of others runs: memory that nobody can use takes their place. At both ends of a section, where
// a page is shared with others, zeros do.
absl::Status WithholdFatBinaries();

// Whether WithholdFatBinaries() took the page of `address` away. For signal handlers, too.
bool IsInWithheldFatBinary(const void* address);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_FAT_BINARIES_H_
