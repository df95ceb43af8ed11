// Which compiler builds candidates, and how it is called.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_TOOLCHAIN_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_TOOLCHAIN_H_

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
};

// Asks /usr/bin/g++ who it is. NOT_FOUND, with the package to install, when it is missing.
absl::StatusOr<Toolchain> ProbeToolchain();

// Standard output of a short trusted command, at most 1 MiB; stderr joins it. Used at start only, never with
// a candidate's text. INTERNAL with the output when the command fails.
absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& command);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_TOOLCHAIN_H_
