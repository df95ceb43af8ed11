#include "reward_service/sandbox/system_call_filter.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

using Context = std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, decltype(&seccomp_release)>;

absl::Status AddRule(const Context& context, uint32_t action, const char* name,
                     const std::vector<scmp_arg_cmp>& conditions = {}) {
  const int number = seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) return absl::OkStatus();  // newer than this libseccomp
  const int result = seccomp_rule_add_array(context.get(), action, number,
                                            static_cast<unsigned>(conditions.size()), conditions.data());
  if (result != 0) return absl::InternalError(absl::StrCat("seccomp rule for ", name, ": error ", -result));
  return absl::OkStatus();
}

absl::Status Refuse(const Context& context, int error, const char* name,
                    const std::vector<scmp_arg_cmp>& conditions = {}) {
  return AddRule(context, SCMP_ACT_ERRNO(static_cast<uint32_t>(error)), name, conditions);
}

absl::Status Allow(const Context& context, const char* name,
                   const std::vector<scmp_arg_cmp>& conditions = {}) {
  return AddRule(context, SCMP_ACT_ALLOW, name, conditions);
}

// Of arguments that are an int the kernel sees the lower half alone.
scmp_arg_cmp IntIs(unsigned argument, int64_t value) {
  return SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, UINT32_MAX, static_cast<uint32_t>(value));
}

// `argument` has no bit but those of `value`, which it has all, and those of `optional`.
scmp_arg_cmp FlagsAre(unsigned argument, uint64_t value, uint64_t optional) {
  return SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, ~optional, value);
}

absl::Status AllowInts(const Context& context, const char* name, unsigned argument,
                       std::initializer_list<int64_t> values) {
  for (const int64_t value : values) RETURN_IF_ERROR(Allow(context, name, {IntIs(argument, value)}));
  return absl::OkStatus();
}

// --- Jails and oracles: what is not allowed here fails.

// Whatever their arguments are, these touch the process itself, files that its mounts let it touch, and
// descriptors that it holds. Not among them, and why:
//   mincore, cachestat, fadvise64, readahead, preadv2, getrusage: tell, or change, which pages of a file are
//     in memory, which outlives the process
//   sendmsg: passes descriptors
//   setsid, setpgid, timers, signals to others: by these the kernel continues a process that was stopped
//   statfs, flock, inotify: what others do on the same disk
constexpr const char* kAllowed[] = {
    // Files and descriptors.
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "open", "openat", "close",
    "close_range", "stat", "fstat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2",
    "lseek", "getdents64", "readlink", "readlinkat", "getcwd", "chdir", "fchdir", "mkdir", "mkdirat", "rmdir",
    "unlink", "unlinkat", "rename", "renameat", "renameat2", "truncate", "ftruncate", "chmod", "fchmod",
    "fchmodat", "utimensat", "umask", "dup", "dup2", "dup3", "pipe", "pipe2", "fsync", "fdatasync",
    "sendfile",
    // The channel to the referee.
    "poll", "ppoll", "select", "pselect6", "recvmsg", "recvfrom", "sendto", "getsockname", "getsockopt",
    // Memory; mmap and madvise are below. Not mremap: it makes a mapping of a file longer, with the rights that it has,
    // and so brings back what was taken from it. Where it is refused the C library copies.
    "brk", "munmap", "mprotect", "msync", "get_mempolicy",
    // Threads and time.
    "futex", "set_robust_list", "get_robust_list", "set_tid_address", "rseq", "arch_prctl", "sched_yield",
    "sched_getaffinity", "sched_getscheduler", "sched_getparam", "sched_getattr", "sched_get_priority_max",
    "sched_get_priority_min", "getcpu", "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres",
    "gettimeofday", "time", "times", "restart_syscall", "exit", "exit_group",
    // Signals, but for sending them.
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigsuspend", "rt_sigtimedwait",
    "sigaltstack", "pause",
    // Who and where it is.
    "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid",
    "getgroups", "getpgrp", "getpgid", "getsid", "capget", "getpriority", "getrlimit", "uname", "sysinfo",
    "getrandom"};

// The C library goes another way where the kernel does not know these.
constexpr const char* kUnknown[] = {"clone3", "openat2", "preadv2", "pwritev2", "fchmodat2"};

constexpr uint64_t kPlace = MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT;
constexpr uint64_t kHints = MAP_NORESERVE | MAP_STACK | MAP_POPULATE | MAP_DENYWRITE | MAP_EXECUTABLE;

// Memory of one's own, which RLIMIT_DATA counts, and files. Not MAP_SHARED | MAP_ANONYMOUS, MAP_GROWSDOWN and
// MAP_HUGETLB, which it does not count.
absl::Status AllowMapping(const Context& context) {
  RETURN_IF_ERROR(Allow(context, "mmap", {FlagsAre(3, MAP_PRIVATE, MAP_ANONYMOUS | kPlace | kHints)}));
  RETURN_IF_ERROR(Allow(context, "mmap", {FlagsAre(3, MAP_SHARED, kPlace | kHints)}));
  // Where the pages of inputs lie, a candidate shares with the reference that it is timed against: no advice
  // moves them, or asks for pages of files.
  return AllowInts(context, "madvise", 2,
                   {MADV_NORMAL, MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTFORK,
                    MADV_DONTDUMP, MADV_DODUMP});
}

// Threads as the C library makes them, and signals of a process to itself. SIGCONT would take a stop back.
absl::Status AllowThreads(const Context& context) {
  constexpr uint64_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                               CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  RETURN_IF_ERROR(Allow(context, "clone", {FlagsAre(0, kThread, 0)}));
  constexpr int kCancelThread = 32, kChangeIds = 33;  // of the C library's own
  for (const int signal : {SIGABRT, SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGTRAP, SIGINT, SIGTERM, SIGKILL,
                           SIGUSR1, SIGUSR2, kCancelThread, kChangeIds}) {
    RETURN_IF_ERROR(Allow(context, "tgkill", {IntIs(0, getpid()), IntIs(2, signal)}));
  }
  // The link to the parent's life must hold, and others must be able to look into the process.
  return AllowInts(context, "prctl", 0, {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE});
}

// No file that reports by signal, none that is locked for others.
absl::Status AllowDescriptors(const Context& context) {
  RETURN_IF_ERROR(
      AllowInts(context, "fcntl", 1, {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_GET_SEALS}));
  RETURN_IF_ERROR(Allow(context, "fcntl", {IntIs(1, F_SETFL), SCMP_CMP(2, SCMP_CMP_MASKED_EQ, O_ASYNC, 0)}));
  RETURN_IF_ERROR(AllowInts(context, "ioctl", 1, {FIOCLEX, FIONCLEX, FIONBIO, FIONREAD, TCGETS, TIOCGWINSZ}));
  // Asking for a limit, not setting one.
  return Allow(context, "prlimit64", {SCMP_CMP(2, SCMP_CMP_EQ, 0)});
}

// What NVIDIA's drivers are asked: of the resource manager by the letter F, of the unified memory by a bare number. A
// driver that loads kernels late shares memory of its own.
absl::Status AllowGpuDriver(const Context& context) {
  RETURN_IF_ERROR(Allow(context, "mmap", {FlagsAre(3, MAP_SHARED | MAP_ANONYMOUS, kPlace | kHints)}));
  constexpr scmp_datum_t kLetter = 0xFF00, kAllButNumber = 0xFFFFFF00;
  RETURN_IF_ERROR(
      Allow(context, "ioctl", {SCMP_CMP(1, SCMP_CMP_MASKED_EQ, kLetter, scmp_datum_t{'F'} << 8)}));
  return Allow(context, "ioctl", {SCMP_CMP(1, SCMP_CMP_MASKED_EQ, kAllButNumber, 0)});
}

absl::Status AddJailRules(const Context& context) {
  for (const char* name : kUnknown) RETURN_IF_ERROR(Refuse(context, ENOSYS, name));
  for (const char* name : kAllowed) RETURN_IF_ERROR(Allow(context, name));
  RETURN_IF_ERROR(AllowMapping(context));
  RETURN_IF_ERROR(AllowThreads(context));
  return AllowDescriptors(context);
}

// --- Compilers: what is refused here fails.

constexpr const char* kRefused[] = {
    // Other machines and processes.
    "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "ptrace", "process_vm_readv",
    "process_vm_writev", "process_madvise", "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "tkill",
    "rt_sigqueueinfo", "rt_tgsigqueueinfo", "kcmp",
    // The kernel and its view of the world.
    "perf_event_open", "bpf", "userfaultfd", "io_uring_setup", "keyctl", "add_key", "request_key", "mount",
    "umount2", "pivot_root", "chroot", "setns", "unshare", "open_tree", "move_mount", "fsopen", "fsconfig",
    "fsmount", "fspick", "mount_setattr", "kexec_load", "kexec_file_load", "init_module", "finit_module",
    "delete_module", "personality", "reboot", "swapon", "swapoff", "acct", "quotactl", "syslog",
    "name_to_handle_at", "open_by_handle_at", "fanotify_init", "lookup_dcookie", "settimeofday",
    "clock_settime", "adjtimex", "clock_adjtime",
    // Memory that no limit counts, and the scheduler.
    "shmget", "msgget", "semget", "memfd_create", "memfd_secret", "mq_open", "sched_setscheduler",
    "sched_setparam", "sched_setattr", "sched_setaffinity", "setpriority", "ioprio_set", "mbind",
    "migrate_pages", "move_pages"};

// As unshare. CLONE_NEWTIME is none of clone's: the bit is of the signal at its end, and of no signal that there is.
constexpr uint64_t kNamespaces[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,    CLONE_NEWNET,
                                    CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP, CLONE_NEWTIME};

absl::Status AddToolchainRules(const Context& context) {
  for (const char* name : kRefused) RETURN_IF_ERROR(Refuse(context, EPERM, name));
  RETURN_IF_ERROR(Refuse(context, ENOSYS, "clone3"));
  for (const uint64_t flag : kNamespaces) {
    RETURN_IF_ERROR(Refuse(context, EPERM, "clone", {SCMP_CMP(0, SCMP_CMP_MASKED_EQ, flag, flag)}));
  }
  // The link to the parent's life must hold.
  return Refuse(context, EPERM, "prctl", {IntIs(0, PR_SET_PDEATHSIG)});
}

// --- Sealed jails, beside the rules above.

absl::Status AddRefusalsOfNewCode(const Context& context) {
  // Pages of a shared mapping in another order; segments that are attached as code.
  for (const char* name : {"remap_file_pages", "shmat"}) RETURN_IF_ERROR(Refuse(context, EPERM, name));
  const scmp_arg_cmp is_code = SCMP_CMP(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC);
  for (const char* name : {"mprotect", "pkey_mprotect"}) {
    RETURN_IF_ERROR(Refuse(context, EPERM, name, {is_code}));
  }
  const scmp_arg_cmp is_no_file = SCMP_CMP(3, SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS);
  RETURN_IF_ERROR(Refuse(context, EPERM, "mmap", {is_code, is_no_file}));
  // A file's own copy to write to: code of any kind, behind the name of that file.
  constexpr scmp_datum_t kWritableCode = PROT_WRITE | PROT_EXEC;
  return Refuse(context, EPERM, "mmap", {SCMP_CMP(2, SCMP_CMP_MASKED_EQ, kWritableCode, kWritableCode)});
}

}  // namespace

absl::Status LoadSystemCallFilter(ProcessRights rights) {
  const bool jail = rights == ProcessRights::kOneProcess || rights == ProcessRights::kOneProcessWithGpu;
  const bool with_gpu =
      rights == ProcessRights::kOneProcessWithGpu || rights == ProcessRights::kToolchainWithGpu;
  const Context context(seccomp_init(jail ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_ALLOW), &seccomp_release);
  if (context == nullptr) return absl::InternalError("seccomp_init failed");
  RETURN_IF_ERROR(jail ? AddJailRules(context) : AddToolchainRules(context));
  if (jail && with_gpu) RETURN_IF_ERROR(AllowGpuDriver(context));  // of a toolchain it is allowed already
  seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);    // a binary tree instead of a list
  if (with_gpu) seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_TSYNC, 1);
  const int result = seccomp_load(context.get());
  if (result != 0) return absl::InternalError(absl::StrCat("seccomp_load: error ", -result));
  return absl::OkStatus();
}

absl::Status RefuseNewCode() {
  const Context context(seccomp_init(SCMP_ACT_ALLOW), &seccomp_release);
  if (context == nullptr) return absl::InternalError("seccomp_init failed");
  RETURN_IF_ERROR(AddRefusalsOfNewCode(context));
  const int result = seccomp_load(context.get());
  if (result != 0) return absl::InternalError(absl::StrCat("seccomp_load: error ", -result));
  return absl::OkStatus();
}

}  // namespace warpsmith
