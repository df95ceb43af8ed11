#include "reward_service/sandbox/confinement.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace warpsmith {
namespace {

// Landlock's first version (Linux 5.13); later rights are handled where the kernel knows them.
constexpr uint64_t kReadRights =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kFileRights =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
constexpr uint64_t kAllRights = (uint64_t{1} << 13) - 1;
constexpr uint64_t kRename = uint64_t{1} << 13;  // LANDLOCK_ACCESS_FS_REFER, of the second version
// Of a private /tmp: compilers that keep what they make have some ten files for each kernel.
constexpr int kDataFilesMax = 4096;
constexpr int kProgramFilesMax = 65536;

absl::Status Failed(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::Status Limit(decltype(RLIMIT_AS) resource, int64_t soft, int64_t hard, const char* name) {
  const rlimit limit{static_cast<rlim_t>(soft), static_cast<rlim_t>(hard)};
  return setrlimit(resource, &limit) == 0 ? absl::OkStatus() : Failed(name);
}

absl::Status ApplyLimits(const Confinement& c) {
  const int64_t address_bytes = c.address_bytes_max > 0 ? c.address_bytes_max : c.memory_bytes_max;
  // A driver maps as much of a GPU's memory as is used.
  if (c.open_gpu == nullptr) RETURN_IF_ERROR(Limit(RLIMIT_AS, address_bytes, address_bytes, "RLIMIT_AS"));
  RETURN_IF_ERROR(Limit(RLIMIT_DATA, c.memory_bytes_max, c.memory_bytes_max, "RLIMIT_DATA"));
  RETURN_IF_ERROR(Limit(RLIMIT_FSIZE, c.file_bytes_max, c.file_bytes_max, "RLIMIT_FSIZE"));
  RETURN_IF_ERROR(Limit(RLIMIT_CPU, c.cpu_seconds_max, c.cpu_seconds_max + 1, "RLIMIT_CPU"));
  RETURN_IF_ERROR(Limit(RLIMIT_NPROC, c.num_processes_max, c.num_processes_max, "RLIMIT_NPROC"));
  RETURN_IF_ERROR(Limit(RLIMIT_NOFILE, c.num_open_files_max, c.num_open_files_max, "RLIMIT_NOFILE"));
  RETURN_IF_ERROR(Limit(RLIMIT_MEMLOCK, 0, 0, "RLIMIT_MEMLOCK"));
  return Limit(RLIMIT_CORE, 0, 0, "RLIMIT_CORE");
}

// Where the host runs out of memory, which no limit counts with a GPU, this process is among the first to end.
absl::Status OfferForMemory() {
  const UniqueFd fd(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  return fd.valid() && write(fd.get(), "1000", 4) == 4 ? absl::OkStatus() : Failed("oom_score_adj");
}

// RLIMIT_NPROC does not bind root, and root owns the files that are visible read-only.
absl::Status TakePrivateUid(uid_t uid) {
  if (geteuid() != 0) return absl::OkStatus();
  // Fails with EPERM in a user namespace that maps one uid only: there root has no power outside.
  if (setgroups(0, nullptr) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0) {
    if (errno != EPERM && errno != EINVAL) return Failed("taking on a private uid");
  }
  return absl::OkStatus();
}

absl::Status AllowBeneath(int ruleset, const std::string& path, uint64_t rights) {
  const UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd.valid()) return Failed(path.c_str());
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return Failed(path.c_str());
  landlock_path_beneath_attr rule{};
  rule.allowed_access = S_ISDIR(info.st_mode) ? rights : rights & kFileRights;
  rule.parent_fd = fd.get();
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
    return Failed("landlock_add_rule");
  }
  return absl::OkStatus();
}

absl::Status RestrictFiles(const Confinement& c) {
  if (LandlockVersion() == 0) return absl::OkStatus();
  const bool renames = c.rights == ProcessRights::kToolchainWithGpu && LandlockVersion() >= 2;
  const uint64_t all_rights = renames ? kAllRights | kRename : kAllRights;
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = all_rights;
  const UniqueFd ruleset(
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0)));
  if (!ruleset.valid()) return Failed("landlock_create_ruleset");
  if (c.readable_paths.empty()) RETURN_IF_ERROR(AllowBeneath(ruleset.get(), "/", kReadRights));
  for (const std::string& path : c.readable_paths) {
    RETURN_IF_ERROR(AllowBeneath(ruleset.get(), path, kReadRights));
  }
  for (const std::string& path : c.writable_paths) {
    RETURN_IF_ERROR(AllowBeneath(ruleset.get(), path, all_rights));
  }
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) return Failed("landlock_restrict_self");
  return absl::OkStatus();
}

}  // namespace

int LandlockVersion() {
  const long version =
      syscall(SYS_landlock_create_ruleset, nullptr, size_t{0}, uint32_t{LANDLOCK_CREATE_RULESET_VERSION});
  return version < 0 ? 0 : static_cast<int>(version);
}

absl::Status Confine(const Confinement& confinement) {
  RETURN_IF_ERROR(ApplyLimits(confinement));
  if (confinement.open_gpu != nullptr) RETURN_IF_ERROR(OfferForMemory());
  RETURN_IF_ERROR(TakePrivateUid(confinement.uid));
  // After the change of uid, which clears it.
  if (confinement.die_with_parent && prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Failed("PR_SET_PDEATHSIG");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failed("PR_SET_NO_NEW_PRIVS");
  if (confinement.sealed) RETURN_IF_ERROR(RefuseNewCode());
  if (confinement.open_gpu != nullptr) RETURN_IF_ERROR(confinement.open_gpu());
  RETURN_IF_ERROR(RestrictFiles(confinement));
  return LoadSystemCallFilter(confinement.rights);
}

absl::Status SeparateNextChild() {
  if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC) != 0) return Failed("unshare");
  return absl::OkStatus();
}

absl::Status ForbidCodeFiles(const std::vector<std::string>& code_files) {
  mount_attr forbid{};
  forbid.attr_set = MOUNT_ATTR_NOEXEC;
  if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &forbid, sizeof(forbid)) != 0)
    return Failed("forbid code in files");
  mount_attr allow{};
  allow.attr_clr = MOUNT_ATTR_NOEXEC;
  for (const std::string& file : code_files) {
    if (mount(file.c_str(), file.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
        mount_setattr(AT_FDCWD, file.c_str(), 0, &allow, sizeof(allow)) != 0) {
      return Failed(file.c_str());
    }
  }
  return absl::OkStatus();
}

absl::Status MountOwnProcesses() {
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return Failed("mount /proc");
  return absl::OkStatus();
}

absl::Status MountPrivateTmp(int64_t bytes_max, FolderUse use) {
  const bool is_data = use == FolderUse::kData;
  const std::string options = absl::StrCat(
      "size=", bytes_max, ",nr_inodes=", is_data ? kDataFilesMax : kProgramFilesMax, ",mode=1777");
  const unsigned long flags = MS_NOSUID | MS_NODEV | (is_data ? MS_NOEXEC : 0);
  if (mount("tmpfs", "/tmp", "tmpfs", flags, options.c_str()) != 0) return Failed("mount /tmp");
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> MountLibraryFolder(int64_t bytes_max) {
  const std::string options = absl::StrCat("size=", bytes_max, ",nr_inodes=128,mode=1777");
  if (mount("tmpfs", kLibraryFolder, "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return Failed("mount the folder of libraries");
  UniqueFd writable(open(kLibraryFolder, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!writable.valid()) return Failed(kLibraryFolder);
  // A second mount of the same files hides the first one, which only the descriptor still reaches.
  if (mount(kLibraryFolder, kLibraryFolder, nullptr, MS_BIND, nullptr) != 0 ||
      mount(nullptr, kLibraryFolder, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV,
            nullptr) != 0) {
    return Failed("make the folder of libraries read-only");
  }
  return writable;
}

}  // namespace warpsmith
