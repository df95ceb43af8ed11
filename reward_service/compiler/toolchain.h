// Which compiler builds candidates, and how it is called.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_TOOLCHAIN_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_TOOLCHAIN_H_

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace warpsmith {

struct Toolchain {
  std::string compiler;     // absolute path
  std::string version;      // "g++ 12.2.0", for people
  std::string fingerprint;  // SHA-256, in hex, of version, flags and what -march=native means on this machine
  std::vector<std::string> flags;       // everything but input and output
  std::vector<std::string> link_flags;  // those of `flags` that choose the linker
  // All that compiling and linking a candidate reads of the system: the compiler's programs with their
  // libraries, the system's headers, and what libc, libm, OpenMP and C++ link with. No other library, for what
  // is readable can be put into a program.
  std::vector<std::filesystem::path> system_paths;
};

// Asks /usr/bin/g++ who it is. NOT_FOUND, with the package to install, when it is missing.
absl::StatusOr<Toolchain> ProbeToolchain();

// The shared libraries that these programs load, without links. INTERNAL when one of them is no program.
absl::StatusOr<std::vector<std::filesystem::path>> LibrariesOf(const std::vector<std::string>& programs);

// Standard output of a trusted command, at most 1 MiB; stderr joins it. Never with a candidate's text or
// options. INTERNAL with the output when the command fails; CANCELLED, with all its processes ended, soon after
// `cancelled` becomes true.
absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& command,
                                     const std::atomic<bool>* cancelled = nullptr);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_TOOLCHAIN_H_
