#include "reward_service/referee/libraries/emptied_libraries.h"

#include <string>
#include <utility>

#include "core/base/memory_file.h"
#include "core/base/status_macros.h"
#include "reward_service/cubin/cubin.h"

namespace warpsmith {
namespace {

constexpr int64_t kLibraryBytesMax = int64_t{64} << 20;  // as compilers may write

}  // namespace

absl::StatusOr<std::vector<UniqueFd>> EmptiedLibraries(const JudgeRequest& request) {
  const bool is_native = request.kind == CandidateKind::kNative;
  std::vector<UniqueFd> emptied;
  for (const int fd : is_native ? std::vector{request.library_fd} : request.extension_fds) {
    absl::StatusOr<std::string> bytes = ReadMemoryFile(fd, kLibraryBytesMax);
    if (!bytes.ok()) return absl::InternalError(bytes.status().message());  // and no task's fault
    EmptyKernels(&*bytes);
    ASSIGN_OR_RETURN(UniqueFd library, SealedMemoryFile(*bytes));
    emptied.push_back(std::move(library));
  }
  return emptied;
}

}  // namespace warpsmith
