#include "reward_service/sandbox/system_call_filter.h"

#include <asm/sockios.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

using Context = std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, decltype(&seccomp_release)>;

constexpr const char* kAlwaysRefused[] = {
    // Other machines and processes.
    "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "ptrace", "process_vm_readv",
    "process_vm_writev", "process_madvise", "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "kill", "tkill",
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

absl::Status Refuse(const Context& context, int error, const char* name) {
  const int number = seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) return absl::OkStatus();  // newer than this libseccomp
  const int result = seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(error), number, 0);
  if (result != 0) return absl::InternalError(absl::StrCat("seccomp rule for ", name, ": error ", -result));
  return absl::OkStatus();
}

absl::Status RefuseWhen(const Context& context, const char* name, scmp_arg_cmp condition) {
  const int number = seccomp_syscall_resolve_name(name);
  const int result = seccomp_rule_add_array(context.get(), SCMP_ACT_ERRNO(EPERM), number, 1, &condition);
  if (result != 0) return absl::InternalError(absl::StrCat("seccomp rule for ", name, ": error ", -result));
  return absl::OkStatus();
}

// Threads share the signal handlers and the thread group; anything else is a new process.
absl::Status RefuseNewProcesses(const Context& context) {
  for (const char* name : {"execve", "execveat", "fork", "vfork"}) {
    if (absl::Status status = Refuse(context, EPERM, name); !status.ok()) return status;
  }
  return RefuseWhen(context, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
}

// The kernel sends signals on a process's behalf, and a SIGCONT starts a stopped process again, or takes back
// a stop that is on its way: no timers, no files that report by signal, no SIGCONT of one's own.
absl::Status RefuseStarting(const Context& context) {
  for (const char* name : {"timer_create", "timer_settime", "setitimer", "alarm", "timerfd_create",
                           "timerfd_settime", "mq_notify"}) {
    RETURN_IF_ERROR(Refuse(context, EPERM, name));
  }
  // Of arguments that are an int the kernel sees the lower half alone.
  RETURN_IF_ERROR(RefuseWhen(context, "tgkill", SCMP_A2(SCMP_CMP_MASKED_EQ, UINT32_MAX, SIGCONT)));
  for (const scmp_datum_t command : {F_SETOWN, F_SETOWN_EX, F_SETSIG, F_NOTIFY}) {
    RETURN_IF_ERROR(RefuseWhen(context, "fcntl", SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, command)));
  }
  for (const scmp_datum_t request : {FIOASYNC, FIOSETOWN, SIOCSPGRP}) {
    RETURN_IF_ERROR(RefuseWhen(context, "ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, request)));
  }
  const scmp_arg_cmp sets_flags_async[] = {SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, F_SETFL),
                                           SCMP_A2(SCMP_CMP_MASKED_EQ, O_ASYNC, O_ASYNC)};
  const int result = seccomp_rule_add_array(context.get(), SCMP_ACT_ERRNO(EPERM),
                                            seccomp_syscall_resolve_name("fcntl"), 2, sets_flags_async);
  if (result != 0) return absl::InternalError(absl::StrCat("seccomp rule for O_ASYNC: error ", -result));
  return absl::OkStatus();
}

// Where the pages of inputs lie, a candidate shares with the reference that it is timed against: whoever
// takes them out of the page tables makes the next call of both slow, and picks which one that is.
absl::Status RefuseMovingPages(const Context& context) {
  RETURN_IF_ERROR(Refuse(context, EPERM, "fallocate"));
  constexpr int kCold = 20, kPageOut = 21, kCollapse = 25;  // as in newer headers
  for (const scmp_datum_t advice : {MADV_REMOVE, kCold, kPageOut, kCollapse}) {
    RETURN_IF_ERROR(RefuseWhen(context, "madvise", SCMP_A2(SCMP_CMP_MASKED_EQ, UINT32_MAX, advice)));
  }
  return absl::OkStatus();
}

absl::Status AddRefusalsOfNewCode(const Context& context) {
  // Pages of a shared mapping in another order; segments that are attached as code.
  for (const char* name : {"remap_file_pages", "shmat"}) RETURN_IF_ERROR(Refuse(context, EPERM, name));
  const scmp_arg_cmp is_code = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC);
  for (const char* name : {"mprotect", "pkey_mprotect"}) RETURN_IF_ERROR(RefuseWhen(context, name, is_code));
  const scmp_arg_cmp maps_no_file[] = {is_code, SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS)};
  const int result = seccomp_rule_add_array(context.get(), SCMP_ACT_ERRNO(EPERM),
                                            seccomp_syscall_resolve_name("mmap"), 2, maps_no_file);
  if (result != 0) return absl::InternalError(absl::StrCat("seccomp rule for mmap: error ", -result));
  // A file's own copy to write to: code of any kind, behind the name of that file.
  constexpr scmp_datum_t kWritableCode = PROT_WRITE | PROT_EXEC;
  return RefuseWhen(context, "mmap", SCMP_A2(SCMP_CMP_MASKED_EQ, kWritableCode, kWritableCode));
}

absl::Status AddRules(const Context& context, ProcessRights rights) {
  for (const char* name : kAlwaysRefused) {
    // A compiler driver stops its children by kill.
    if (rights == ProcessRights::kToolchain && std::string(name) == "kill") continue;
    if (absl::Status status = Refuse(context, EPERM, name); !status.ok()) return status;
  }
  if (absl::Status status = Refuse(context, ENOSYS, "clone3"); !status.ok()) return status;
  // The link to the parent's life must hold.
  if (absl::Status status =
          RefuseWhen(context, "prctl", SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, PR_SET_PDEATHSIG));
      !status.ok()) {
    return status;
  }
  if (rights == ProcessRights::kToolchain) return absl::OkStatus();
  RETURN_IF_ERROR(RefuseStarting(context));
  // Code that changes places while it is sampled would be taken for somebody else's.
  RETURN_IF_ERROR(RefuseWhen(context, "mremap", SCMP_A3(SCMP_CMP_MASKED_EQ, MREMAP_FIXED, MREMAP_FIXED)));
  RETURN_IF_ERROR(RefuseMovingPages(context));
  if (absl::Status status = RefuseNewProcesses(context); !status.ok()) return status;
  return RefuseWhen(context, "tgkill", SCMP_A0(SCMP_CMP_NE, static_cast<scmp_datum_t>(getpid())));
}

}  // namespace

absl::Status LoadSystemCallFilter(ProcessRights rights) {
  const Context context(seccomp_init(SCMP_ACT_ALLOW), &seccomp_release);
  if (context == nullptr) return absl::InternalError("seccomp_init failed");
  if (absl::Status status = AddRules(context, rights); !status.ok()) return status;
  seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a binary tree instead of a list
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
