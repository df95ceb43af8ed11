// What a process gives up before it runs code of others. Called inside the process itself, by trusted code.
#ifndef WARPSMITH_REWARD_SERVICE_SANDBOX_CONFINEMENT_H_
#define WARPSMITH_REWARD_SERVICE_SANDBOX_CONFINEMENT_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"
#include "reward_service/sandbox/system_call_filter.h"

namespace warpsmith {

struct Confinement {
  ProcessRights rights = ProcessRights::kOneProcess;
  uid_t uid = 64000;              // taken on when we are root
  int64_t memory_bytes_max = 0;   // private writable memory
  int64_t address_bytes_max = 0;  // all mappings; 0: memory_bytes_max. With a GPU it is not limited
  int64_t file_bytes_max = 0;     // largest file
  int cpu_seconds_max = 0;        // SIGXCPU there, SIGKILL a second later
  int num_processes_max = 0;      // threads included
  int num_open_files_max = 0;
  bool die_with_parent = false;  // SIGKILL when the present parent ends
  bool sealed = false;           // RefuseNewCode()
  // Landlock, where the kernel has it: files and folders that can be written and read, and those that can be
  // read and executed; empty: everything. Only toolchains rename files from one folder to another.
  std::vector<std::string> writable_paths;
  std::vector<std::string> readable_paths;
  // Where a GPU is to be used: opens it, when limits and identity hold, but neither Landlock nor the filter, which have
  // no room for what that takes. The driver's own threads, which begin here, have the filter and no Landlock. Memory of
  // the host that a driver shares or pins is in no limit: where the host runs out of it, such processes are killed
  // before others.
  std::function<absl::Status()> open_gpu = nullptr;
};

// Resource limits, private uid without capabilities or groups, no_new_privs, Landlock, system call filter.
// After an error the process must end: a part may have been applied.
absl::Status Confine(const Confinement& confinement);

// Puts the next child of this process into pid, mount and ipc namespaces of its own. Needs CAP_SYS_ADMIN.
absl::Status SeparateNextChild();

// In the calling process's own mount namespace: no file that is visible now can be run or mapped as code any
// more, except `code_files`. What is mapped already stays. Needs CAP_SYS_ADMIN.
absl::Status ForbidCodeFiles(const std::vector<std::string>& code_files);

// The calling process's own pid namespace at /proc, where a driver looks for itself. Needs CAP_SYS_ADMIN.
absl::Status MountOwnProcesses();

// Whether what lies in a folder can be run or mapped as code.
enum class FolderUse { kData, kPrograms };

// A fresh private tmpfs at /tmp, in the calling process's own mount namespace. Needs CAP_SYS_ADMIN.
absl::Status MountPrivateTmp(int64_t bytes_max, FolderUse use = FolderUse::kData);

// The only folder of a jail whose files are candidates' code: those that were compiled from their sources.
inline constexpr char kLibraryFolder[] = "/candidate";

// A fresh private tmpfs at kLibraryFolder, which must exist, read-only by that name. Files are made in it by
// openat() in the descriptor that is returned, until that is closed: afterwards nobody can. Needs
// CAP_SYS_ADMIN.
absl::StatusOr<UniqueFd> MountLibraryFolder(int64_t bytes_max);

// 0 when this kernel has no Landlock.
int LandlockVersion();

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SANDBOX_CONFINEMENT_H_
