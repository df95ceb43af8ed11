// The executable mappings of a process, read from outside.
#ifndef WARPSMITH_REWARD_SERVICE_SANDBOX_MAPPED_CODE_H_
#define WARPSMITH_REWARD_SERVICE_SANDBOX_MAPPED_CODE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace warpsmith {

constexpr uint64_t kCodePageBytes = 4096;

struct MappedCode {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;  // in bytes
  bool writable = false;
  std::string path;  // as the process names it; empty or in brackets where it is no file
};

// From the text of /proc/PID/maps (proc(5)). A file that was replaced since is still called by its name.
// INVALID_ARGUMENT for a text of another form.
absl::StatusOr<std::vector<MappedCode>> ParseMappedCode(absl::string_view maps);

// UNAVAILABLE when the process is gone.
absl::StatusOr<std::vector<MappedCode>> ReadMappedCode(pid_t pid);

// The first of these mappings of files that has pages of the process's own: it has written to them, even if it
// wrote the same again. Null where there is none, or where the kernel does not tell.
const MappedCode* FindWritten(pid_t pid, const std::vector<MappedCode>& mappings);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SANDBOX_MAPPED_CODE_H_
