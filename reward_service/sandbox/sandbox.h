// Starts a confined program: own mount, network, pid, ipc and uts namespaces, a private uid, resource limits,
// Landlock and a system call filter. Used for compilers, oracles and jails.
#ifndef WARPSMITH_REWARD_SERVICE_SANDBOX_SANDBOX_H_
#define WARPSMITH_REWARD_SERVICE_SANDBOX_SANDBOX_H_

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

enum class SandboxKind {
  kProgram,  // code of others, or a tool that reads it
  kZygote,   // trusted code only: keeps the rights to give its children jails of their own, which confine
             // themselves
};

struct SandboxOptions {
  SandboxKind kind = SandboxKind::kProgram;
  std::vector<std::string> arguments;    // program (absolute path inside) and its arguments
  std::vector<std::string> environment;  // "NAME=value"; nothing is inherited
  // Visible read-only beside /usr, /lib*, /bin and /etc/ld.so.cache, at the same path.
  std::vector<std::filesystem::path> read_only_paths;
  // kProgram only: the files and folders of the system that can be read and executed, of all that is visible,
  // where the kernel has Landlock. Empty: everything.
  std::vector<std::filesystem::path> system_paths;
  // Visible and writable: {outside, inside}. They must be writable by the private uid (see `uid`).
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> writable_paths;
  // kZygote only: devices that its children may open, in /dev.
  std::vector<std::filesystem::path> devices;
  std::filesystem::path working_directory = "/tmp";  // inside
  int64_t tmp_bytes_max = int64_t{64} << 20;         // private tmpfs at /tmp
  int64_t memory_bytes_max = int64_t{4} << 30;
  int64_t file_bytes_max = int64_t{256} << 20;
  int cpu_seconds_max = 30;
  int num_processes_max = 64;
  int num_open_files_max = 256;
  // Identity inside, when we are root; otherwise our own uid in a user namespace.
  uid_t uid = 64000;
  // Descriptors to install: {ours, number inside}; numbers must be distinct, 0 to 63. Others are closed; 0, 1
  // and 2 are /dev/null unless named.
  std::vector<std::pair<int, int>> descriptors;
};

// A confined program. Destroying it kills every process inside and reaps.
class SandboxedProcess {
 public:
  SandboxedProcess(SandboxedProcess&& other) noexcept;
  SandboxedProcess& operator=(SandboxedProcess&& other) noexcept;
  ~SandboxedProcess();

  pid_t pid() const { return pid_; }
  // Becomes readable when the program has ended.
  int pidfd() const { return pidfd_.get(); }

  // Waits for the end at most `timeout_seconds`: the wait status as of waitpid(2), with the program's exit
  // code or 128 + signal. DEADLINE_EXCEEDED when it still runs.
  absl::StatusOr<int> Wait(double timeout_seconds);
  void Kill();

 private:
  friend absl::StatusOr<SandboxedProcess> SpawnSandboxed(const SandboxOptions& options);
  SandboxedProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_ = -1;
  UniqueFd pidfd_;
};

// Returns as soon as the program is on its way (some 10 ms until it runs). FAILED_PRECONDITION when
// bubblewrap is missing. Thread-safe.
absl::StatusOr<SandboxedProcess> SpawnSandboxed(const SandboxOptions& options);

// Runs /bin/true confined: OK, or FAILED_PRECONDITION with the fix (package to install, sysctl of user
// namespaces, pivot_root in a chroot).
absl::Status CheckSandbox();

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SANDBOX_SANDBOX_H_
