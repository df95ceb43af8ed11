#include "reward_service/sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/sandbox/confinement.h"

namespace warpsmith {
namespace {

constexpr char kBubblewrap[] = "/usr/bin/bwrap";
constexpr char kStubInside[] = "/run/warpsmith-confine";
// Where malloc looks whether the kernel has huge pages; without the file it asks for none.
constexpr char kHugePages[] = "/sys/kernel/mm/transparent_hugepage";
// Where Torch looks for the processor's vector units; without the file it runs scalar kernels, several times
// slower.
constexpr char kProcessorFacts[] = "/proc/cpuinfo";
constexpr int kDescriptorsMax = 64;
constexpr int kTemporaryDescriptorMin = 512;

void Append(std::vector<std::string>& to, std::initializer_list<std::string> more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Folders above `path` that everybody may enter: bubblewrap would make missing ones for its own uid alone.
void AppendParents(const std::filesystem::path& path, std::vector<std::string>& command) {
  std::filesystem::path parent = path.root_path();
  for (const std::filesystem::path& name : path.parent_path().relative_path()) {
    parent /= name;
    Append(command, {"--perms", "0755", "--dir", parent.string()});
  }
}

// No terminal, at whose end the kernel continues stopped processes, and for jails nothing that gives memory:
// what is mapped of /dev/zero together counts to no limit.
void AppendDevices(const SandboxOptions& options, std::vector<std::string>& command) {
  Append(command, {"--perms", "0755", "--dir", "/dev"});
  for (const std::string device : {"/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"}) {
    if (device == "/dev/zero" && options.kind == SandboxKind::kZygote) continue;
    Append(command, {"--dev-bind", device, device});
  }
  for (const std::filesystem::path& device : options.devices) {
    Append(command, {"--dev-bind", device.string(), device.string()});
  }
}

void AppendSystemFolders(std::vector<std::string>& command) {
  AppendParents("/etc/ld.so.cache", command);
  Append(command, {"--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache",
                   "--ro-bind-try", "/etc/alternatives", "/etc/alternatives"});
  // Merged-usr systems have links here, others folders.
  for (const char* path : {"/bin", "/lib", "/lib64"}) {
    std::error_code error;
    if (std::filesystem::is_symlink(path, error)) {
      Append(command, {"--symlink", std::filesystem::read_symlink(path, error).string(), path});
    } else if (std::filesystem::exists(path, error)) {
      Append(command, {"--ro-bind", path, path});
    }
  }
}

void AppendRights(const SandboxOptions& options, std::vector<std::string>& command) {
  Append(command, {"--unshare-ipc", "--unshare-net", "--unshare-uts", "--die-with-parent", "--new-session"});
  // The private uid is taken on inside, by the stub or by the zygote's children.
  const bool root = geteuid() == 0;
  if (!root) Append(command, {"--unshare-user"});
  Append(command, {"--cap-drop", "ALL"});
  if (root) Append(command, {"--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"});
  if (options.kind == SandboxKind::kZygote) {
    Append(command, {"--cap-add", "CAP_SYS_ADMIN"});
  } else {
    // Without process 1 of its own bubblewrap reaps what it started. With it, it ends first and leaves a
    // zombie to whoever adopts orphans: one a compilation.
    Append(command, {"--unshare-pid", "--as-pid-1"});
  }
}

// Empty: everything that is visible.
std::vector<std::string> ReadablePaths(const SandboxOptions& o) {
  std::vector<std::string> paths;
  if (o.system_paths.empty()) return paths;
  for (const auto& more : {o.system_paths, o.read_only_paths}) {
    for (const std::filesystem::path& path : more) paths.push_back(path.string());
  }
  return paths;
}

void AppendStub(const SandboxOptions& o, std::vector<std::string>& command) {
  Append(command, {kStubInside, absl::StrCat(o.uid), absl::StrCat(o.memory_bytes_max),
                   absl::StrCat(o.file_bytes_max), absl::StrCat(o.cpu_seconds_max),
                   absl::StrCat(o.num_processes_max), absl::StrCat(o.num_open_files_max)});
  std::string writable = "/tmp";
  for (const auto& [outside, inside] : o.writable_paths) absl::StrAppend(&writable, ":", inside.string());
  Append(command, {writable, absl::StrJoin(ReadablePaths(o), ":"), "--"});
}

std::vector<std::string> BubblewrapCommand(const SandboxOptions& options, const std::filesystem::path& stub) {
  std::vector<std::string> command{kBubblewrap};
  AppendRights(options, command);
  AppendSystemFolders(command);
  AppendDevices(options, command);
  Append(command, {"--size", absl::StrCat(options.tmp_bytes_max), "--perms", "1777", "--tmpfs", "/tmp"});
  Append(command, {"--ro-bind", stub.string(), kStubInside});
  if (options.kind == SandboxKind::kZygote) {
    Append(command, {"--perms", "0755", "--dir", kLibraryFolder});
    for (const char* path : {kHugePages, kProcessorFacts}) {
      AppendParents(path, command);
      Append(command, {"--ro-bind-try", path, path});
    }
  }
  for (const std::filesystem::path& path : options.read_only_paths) {
    AppendParents(path, command);
    Append(command, {"--ro-bind", path.string(), path.string()});
  }
  for (const auto& [outside, inside] : options.writable_paths) {
    AppendParents(inside, command);
    Append(command, {"--bind", outside.string(), inside.string()});
  }
  Append(command, {"--remount-ro", "/", "--chdir", options.working_directory.string(), "--"});
  if (options.kind == SandboxKind::kProgram) AppendStub(options, command);
  command.insert(command.end(), options.arguments.begin(), options.arguments.end());
  return command;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// File actions that leave exactly the named descriptors open in the child.
class DescriptorPlan {
 public:
  DescriptorPlan() { posix_spawn_file_actions_init(&actions_); }
  DescriptorPlan(const DescriptorPlan&) = delete;
  DescriptorPlan& operator=(const DescriptorPlan&) = delete;
  ~DescriptorPlan() { posix_spawn_file_actions_destroy(&actions_); }

  absl::Status Add(const std::vector<std::pair<int, int>>& descriptors) {
    std::map<int, int> temporary_of;
    for (const auto& [ours, inside] : descriptors) {
      if (inside < 0 || inside >= kDescriptorsMax) {
        return absl::InvalidArgumentError(absl::StrCat("descriptor ", inside, " inside: want 0 to 63"));
      }
      // Copies far away first: a target number may be another's source.
      copies_.emplace_back(fcntl(ours, F_DUPFD_CLOEXEC, kTemporaryDescriptorMin));
      if (!copies_.back().valid()) return ErrnoStatus("duplicate descriptor", absl::StrCat(ours));
      temporary_of[inside] = copies_.back().get();
    }
    for (int number = 0; number < kDescriptorsMax; ++number) {
      if (const auto found = temporary_of.find(number); found != temporary_of.end()) {
        posix_spawn_file_actions_adddup2(&actions_, found->second, number);
      } else if (number <= 2) {
        posix_spawn_file_actions_addopen(&actions_, number, "/dev/null", O_RDWR, 0);
      } else {
        posix_spawn_file_actions_addclose(&actions_, number);
      }
    }
    posix_spawn_file_actions_addclosefrom_np(&actions_, kDescriptorsMax);
    return absl::OkStatus();
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
  std::vector<UniqueFd> copies_;
};

absl::StatusOr<std::filesystem::path> FindStub() {
  const std::filesystem::path here = ExecutableDirectory();
  for (const std::filesystem::path& folder : {here, here.parent_path() / "bin"}) {
    std::error_code error;
    if (std::filesystem::exists(folder / "warpsmith-confine", error)) return folder / "warpsmith-confine";
  }
  return absl::FailedPreconditionError(
      absl::StrCat("warpsmith-confine is neither in ", here.string(), " nor in ../bin: build that target"));
}

// A new child starts with the default signal set-up, whatever ours is.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

// bubblewrap refuses to run with capabilities where it is not root. Ambient ones, with which systemd grants
// real-time scheduling, would be handed to it; this thread does without them for a moment.
class WithoutAmbientCapabilities {
 public:
  WithoutAmbientCapabilities() {
    if (geteuid() == 0) return;
    for (unsigned long capability = 0; capability <= CAP_LAST_CAP; ++capability) {
      if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, capability, 0, 0) == 1) held_.push_back(capability);
    }
    if (!held_.empty()) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  }
  WithoutAmbientCapabilities(const WithoutAmbientCapabilities&) = delete;
  WithoutAmbientCapabilities& operator=(const WithoutAmbientCapabilities&) = delete;
  ~WithoutAmbientCapabilities() {
    for (const unsigned long capability : held_)
      prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0);
  }

 private:
  std::vector<unsigned long> held_;
};

// What bubblewrap says when a machine forbids what it needs, and the cure.
absl::Status ExplainFailure(const std::string& message) {
  std::string cure = "run `bwrap --ro-bind / / --unshare-all true` by hand to see why";
  if (message.find("pivot_root") != std::string::npos) {
    cure = "a plain chroot cannot be confined further: enter it by unshare and pivot_root instead";
  } else if (message.find("amespace") != std::string::npos || message.find("uid map") != std::string::npos) {
    cure =
        "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 and, on Ubuntu 24.04, "
        "kernel.apparmor_restrict_unprivileged_userns=0; or run the service as root";
  }
  return absl::FailedPreconditionError(
      absl::StrCat("cannot confine a process: ", Escape(message, 300), "; ", cure));
}

}  // namespace

SandboxedProcess::SandboxedProcess(SandboxedProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)) {}

SandboxedProcess& SandboxedProcess::operator=(SandboxedProcess&& other) noexcept {
  if (this != &other) {
    Kill();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
  }
  return *this;
}

SandboxedProcess::~SandboxedProcess() { Kill(); }

// The first process of the confined program's pid namespace takes the others along, but bubblewrap does not
// take that one along at every moment of its start: a child that waits for its settings would wait for ever,
// and one that changes its uid has just lost its parent-death signal. So it is killed by number, which nobody
// else can have as long as bubblewrap, stopped, does not reap it.
void SandboxedProcess::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGSTOP);
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  std::ifstream children(absl::StrCat("/proc/", pid_, "/task/", pid_, "/children"));
  for (pid_t child = 0; children >> child;) kill(child, SIGKILL);
  kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

absl::StatusOr<int> SandboxedProcess::Wait(double timeout_seconds) {
  if (pid_ <= 0) return absl::FailedPreconditionError("the process has been reaped already");
  pollfd event{pidfd_.get(), POLLIN, 0};
  if (poll(&event, 1, static_cast<int>(timeout_seconds * 1000)) == 0) {
    return absl::DeadlineExceededError(
        absl::StrCat("process ", pid_, " still runs after ", timeout_seconds, " s"));
  }
  int status = 0;
  if (waitpid(pid_, &status, 0) < 0) return ErrnoStatus("wait for", absl::StrCat(pid_));
  pid_ = -1;
  return status;
}

absl::StatusOr<SandboxedProcess> SpawnSandboxed(const SandboxOptions& options) {
  ASSIGN_OR_RETURN(const std::filesystem::path stub, FindStub());
  std::vector<std::string> command = BubblewrapCommand(options, stub);
  std::vector<std::string> environment = options.environment;
  DescriptorPlan plan;
  RETURN_IF_ERROR(plan.Add(options.descriptors));
  const SpawnAttributes attributes;
  pid_t pid = -1;
  const WithoutAmbientCapabilities without;
  const int error = posix_spawn(&pid, kBubblewrap, plan.actions(), attributes.get(), Pointers(command).data(),
                                Pointers(environment).data());
  if (error == ENOENT) {
    return absl::FailedPreconditionError(
        absl::StrCat(kBubblewrap, " is missing: install the package bubblewrap"));
  }
  if (error != 0) return absl::InternalError(absl::StrCat("start ", kBubblewrap, ": ", std::strerror(error)));
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  SandboxedProcess process(pid, std::move(pidfd));
  if (!process.pidfd_.valid()) return ErrnoStatus("pidfd_open", absl::StrCat(pid));
  return process;
}

absl::Status CheckSandbox() {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe", "");
  const UniqueFd reader(pipe_ends[0]);
  UniqueFd writer(pipe_ends[1]);
  SandboxOptions options;
  options.arguments = {"/bin/true"};
  options.descriptors = {{writer.get(), 2}};
  ASSIGN_OR_RETURN(SandboxedProcess process, SpawnSandboxed(options));
  writer.Reset();
  ASSIGN_OR_RETURN(const int status, process.Wait(10));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  char text[512] = {};
  const ssize_t num_bytes = read(reader.get(), text, sizeof(text) - 1);
  return ExplainFailure(num_bytes > 0 ? std::string(text, static_cast<size_t>(num_bytes)) : "no message");
}

}  // namespace warpsmith
