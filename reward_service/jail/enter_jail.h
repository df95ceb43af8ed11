// From a zygote to a jail: the steps that make a child confined, shared by the native and the Python
// parent.
#ifndef WARPSMITH_REWARD_SERVICE_JAIL_ENTER_JAIL_H_
#define WARPSMITH_REWARD_SERVICE_JAIL_ENTER_JAIL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

struct JailRights {
  uint32_t uid = 64000;
  int64_t memory_bytes_max = 0;   // private writable memory
  int64_t address_bytes_max = 0;  // all mappings
  int64_t tmp_bytes_max = 0;
  int cpu_seconds_max = 0;
  int num_threads_max = 0;
  // The only code that can ever run there is what is mapped at this moment, what lies in kLibraryFolder, and
  // `code_files`.
  bool sealed = false;
  // Whether compilers may run there, and what they write to /tmp. Not with `sealed`.
  bool compiles = false;
  std::vector<std::string> code_files = {};
  // Files and folders that can be read in a sealed jail, where nothing else can if it has a GPU, or if there are any: a
  // library that can be read is a library whose kernels can be loaded.
  std::vector<std::string> importable_paths = {};
  // Opens the GPU that is to be used there; none: there is none. Called when limits and identity hold, before
  // Landlock and the filter of system calls: see Confinement.
  std::function<absl::Status()> open_gpu = nullptr;
};

// Called by the child of SeparateNextChild(), once its parent is the referee: private /tmp, death with the
// referee, then Confine() to one process. Returns the way into kLibraryFolder, to be closed before code of
// others runs. After an error the process must end.
absl::StatusOr<UniqueFd> EnterJail(const JailRights& rights);

// From now on a fatal signal is told to the referee, as evidence, before the process ends with 128 + signal.
// `socket` stays open for the process's life. Code of others may undo this: it harms only its own
// explanation.
void ReportCrashes(int socket);

// Names a buffer for crash reports: an address within it, or within a page of it, is told by name and offset.
// At most 8 buffers, from one thread; `name` must be a literal.
void NameBuffer(const char* name, const void* start, int64_t num_bytes);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_JAIL_ENTER_JAIL_H_
