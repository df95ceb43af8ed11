#include "reward_service/sandbox/system_call_filter.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr size_t kPage = 4096;

// The result of `attempt`, 0 to 99, in a process under the filter; -1 when it was ended by a signal. The
// attempt may neither wait for another process nor use Catch.
int Confined(ProcessRights rights, const std::function<int()>& attempt) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : {SIGABRT, SIGTERM}) signal(number, SIG_DFL);  // the test's own handlers report
    if (!LoadSystemCallFilter(rights).ok()) _exit(100);
    _exit(attempt());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int InJail(const std::function<int()>& attempt) { return Confined(ProcessRights::kOneProcess, attempt); }

// 0 where the call works, else its error.
int ErrorOf(long result) { return result == -1 ? errno : 0; }

int CallInJail(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  return InJail([=] { return ErrorOf(syscall(number, a, b, c, d, e, f)); });
}

// mmap, by which a long is a pointer.
int MapInJail(long flags, int fd = -1) {
  return CallInJail(SYS_mmap, 0, kPage, PROT_READ | PROT_WRITE, flags, fd, 0);
}

TEST_CASE("a jail computes: memory, threads, files, clocks, and a message to its referee") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
  const TemporaryDirectory folder;
  const std::string file = folder.path() / "file";
  CHECK(InJail([&] {
          std::string text(1 << 22, 'x');
          int sum = 0;
          std::thread([&] { sum = text[1]; }).join();
          const int fd = open(file.c_str(), O_RDWR | O_CREAT, 0600);
          if (write(fd, "abc", 3) != 3 || lseek(fd, 0, SEEK_SET) != 0 || close(fd) != 0) return 1;
          timespec now;
          if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) return 2;
          if (send(ends[1], "hello", 5, MSG_NOSIGNAL) != 5) return 3;
          pollfd readable{ends[1], POLLIN, 0};
          if (poll(&readable, 1, 0) != 0) return 4;
          const auto* start = static_cast<const char*>(
              mmap(nullptr, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE, open("/proc/self/exe", O_RDONLY), 0));
          return start != MAP_FAILED && sum == 'x' && getpid() > 0 ? 0 : 5;
        }) == 0);
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("an unknown system call fails and ends nothing") {
  CHECK(CallInJail(100000) == EPERM);
  CHECK(CallInJail(SYS_swapon) == EPERM);
}

TEST_CASE("a jail starts neither processes nor programs, and no thread of another kind") {
  CHECK(CallInJail(SYS_fork) == EPERM);
  CHECK(CallInJail(SYS_vfork) == EPERM);
  CHECK(CallInJail(SYS_execve) == EPERM);
  CHECK(CallInJail(SYS_clone, SIGCHLD) == EPERM);
  CHECK(CallInJail(SYS_clone, CLONE_NEWUSER | SIGCHLD) == EPERM);
  CHECK(CallInJail(SYS_clone, CLONE_THREAD | CLONE_SIGHAND | CLONE_VM | CLONE_UNTRACED) == EPERM);
  CHECK(CallInJail(SYS_clone3) == ENOSYS);
}

TEST_CASE("a jail can neither ask nor change which pages of a file are in memory") {
  const int fd = open("/proc/self/exe", O_RDONLY);
  void* mapped = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, fd, 0);
  REQUIRE(mapped != MAP_FAILED);
  const long start = reinterpret_cast<long>(mapped);
  unsigned char byte = 0;
  const long answer = reinterpret_cast<long>(&byte);
  CHECK(CallInJail(SYS_mincore, start, kPage, answer) == EPERM);
  CHECK(CallInJail(/*cachestat*/ 451, fd, answer, answer, 0) == EPERM);
  CHECK(CallInJail(SYS_fadvise64, fd, 0, kPage, POSIX_FADV_WILLNEED) == EPERM);
  CHECK(CallInJail(SYS_readahead, fd, 0, kPage) == EPERM);
  CHECK(InJail([&] {
          iovec part{&byte, 1};
          return ErrorOf(preadv2(fd, &part, 1, 0, RWF_NOWAIT));
        }) == EOPNOTSUPP);  // the C library's answer where the kernel has no preadv2
  constexpr int kPopulateRead = 22;
  for (const int advice : {MADV_WILLNEED, MADV_RANDOM, MADV_REMOVE, MADV_COLD, MADV_PAGEOUT, kPopulateRead}) {
    INFO(advice);
    CHECK(CallInJail(SYS_madvise, start, kPage, advice) == EPERM);
    CHECK(CallInJail(SYS_madvise, start, kPage, (1L << 32) | advice) == EPERM);
  }
  CHECK(CallInJail(SYS_madvise, start, kPage, MADV_DONTNEED) == 0);
  rusage usage;
  CHECK(CallInJail(SYS_getrusage, RUSAGE_SELF, reinterpret_cast<long>(&usage)) == EPERM);
  munmap(mapped, kPage);
  close(fd);
}

TEST_CASE("a jail maps no memory that its limits do not count") {
  const int fd = memfd_create("buffer", 0);
  REQUIRE(ftruncate(fd, kPage) == 0);
  CHECK(MapInJail(MAP_PRIVATE | MAP_ANONYMOUS) == 0);
  CHECK(MapInJail(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_POPULATE) == 0);
  CHECK(MapInJail(MAP_SHARED, fd) == 0);
  CHECK(MapInJail(MAP_SHARED | MAP_ANONYMOUS) == EPERM);
  CHECK(MapInJail(MAP_SHARED_VALIDATE | MAP_ANONYMOUS) == EPERM);
  CHECK(MapInJail(MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE) == EPERM);
  CHECK(MapInJail(MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN) == EPERM);
  CHECK(MapInJail(MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB) == EPERM);
  CHECK(MapInJail(MAP_PRIVATE | MAP_ANONYMOUS | (1L << 40)) == EPERM);
  CHECK(CallInJail(SYS_memfd_create, reinterpret_cast<long>("x"), 0) == EPERM);
  CHECK(CallInJail(SYS_shmget, 1, kPage, 01600) == EPERM);
  close(fd);
}

TEST_CASE("the driver of a GPU shares memory with itself, and makes none that has a name") {
  const auto with_gpu = [](const std::function<int()>& attempt) {
    return Confined(ProcessRights::kOneProcessWithGpu, attempt);
  };
  CHECK(with_gpu([] {
          const int flags = MAP_SHARED | MAP_ANONYMOUS;
          return ErrorOf(syscall(SYS_mmap, 0, kPage, PROT_READ | PROT_WRITE, flags, -1, 0));
        }) == 0);
  CHECK(with_gpu([] { return ErrorOf(syscall(SYS_memfd_create, reinterpret_cast<long>("x"), 0)); }) == EPERM);
  CHECK(with_gpu([] { return ErrorOf(syscall(SYS_shmget, 1, kPage, 01600)); }) == EPERM);
}

TEST_CASE("a jail moves no mapping, and makes none longer") {
  void* mapped = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const long start = reinterpret_cast<long>(mapped);
  CHECK(CallInJail(SYS_mremap, start, kPage, kPage, MREMAP_MAYMOVE) == EPERM);
  CHECK(CallInJail(SYS_mremap, start, kPage, kPage, 0) == EPERM);
  CHECK(CallInJail(SYS_mremap, start, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, 1 << 20) == EPERM);
  munmap(mapped, kPage);
}

TEST_CASE("a jail cannot have itself continued: no timer, session, foreign signal or reporting file") {
  for (const long number : {SYS_timer_create, SYS_setitimer, SYS_alarm, SYS_timerfd_create, SYS_setsid,
                            SYS_setpgid, SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo, SYS_pidfd_open}) {
    INFO(number);
    CHECK(CallInJail(number) == EPERM);
  }
  const int fd = open("/dev/null", O_RDWR);
  for (const long command :
       {F_SETOWN, F_SETSIG, F_NOTIFY, F_SETLEASE, F_SETLK, F_SETPIPE_SZ, 1036 /*hint*/}) {
    INFO(command);
    CHECK(CallInJail(SYS_fcntl, fd, command, 0) == EPERM);
  }
  CHECK(CallInJail(SYS_fcntl, fd, F_SETFL, O_ASYNC | O_NONBLOCK) == EPERM);
  CHECK(CallInJail(SYS_fcntl, fd, F_SETFL, O_NONBLOCK) == 0);
  for (const long request : {TIOCSTI, TIOCSCTTY, TIOCSPGRP, TIOCSETD, TIOCVHANGUP, FIOASYNC}) {
    INFO(request);
    CHECK(CallInJail(SYS_ioctl, fd, request, 0) == EPERM);
  }
  CHECK(InJail([] { return ErrorOf(syscall(SYS_tgkill, getpid(), getpid(), SIGCONT)); }) == EPERM);
  CHECK(InJail([] { return ErrorOf(syscall(SYS_tgkill, getppid(), getppid(), SIGUSR1)); }) == EPERM);
  CHECK(InJail([] {
          signal(SIGUSR1, SIG_IGN);
          return ErrorOf(raise(SIGUSR1));
        }) == 0);
  CHECK(InJail([]() -> int { std::abort(); }) == -1);
  close(fd);
}

TEST_CASE("a jail passes no descriptor and opens no socket") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
  CHECK(CallInJail(SYS_sendmsg, ends[1], 0, 0) == EPERM);
  CHECK(CallInJail(SYS_sendmmsg, ends[1], 0, 0, 0) == EPERM);
  CHECK(CallInJail(SYS_socket, AF_UNIX, SOCK_STREAM, 0) == EPERM);
  CHECK(CallInJail(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0) == EPERM);
  CHECK(CallInJail(SYS_io_uring_setup, 1, 0) == EPERM);
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("a jail changes neither its limits nor its tie to its parent nor who may look into it") {
  rlimit limit;
  CHECK(CallInJail(SYS_prlimit64, 0, RLIMIT_STACK, 0, reinterpret_cast<long>(&limit)) == 0);
  CHECK(CallInJail(SYS_prlimit64, 0, RLIMIT_STACK, reinterpret_cast<long>(&limit), 0) == EPERM);
  CHECK(CallInJail(SYS_prctl, PR_SET_PDEATHSIG, 0) == EPERM);
  CHECK(CallInJail(SYS_prctl, PR_SET_DUMPABLE, 0) == EPERM);
  CHECK(CallInJail(SYS_prctl, PR_SET_NAME, reinterpret_cast<long>("worker")) == 0);
  CHECK(CallInJail(SYS_sched_setaffinity, 0, 8, 0) == EPERM);
  CHECK(CallInJail(SYS_seccomp, 0, 0, 0) == EPERM);
}

TEST_CASE("a compiler starts programs and ends them, and opens no socket, with a GPU as well") {
  for (const ProcessRights rights : {ProcessRights::kToolchain, ProcessRights::kToolchainWithGpu}) {
    CHECK(Confined(rights, [] {
            const pid_t child = fork();
            if (child == 0) {
              execl("/bin/sleep", "sleep", "100", nullptr);
              _exit(1);
            }
            int status = 0;
            return kill(child, SIGTERM) == 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status)
                       ? 0
                       : 1;
          }) == 0);
    CHECK(Confined(rights, [] { return ErrorOf(socket(AF_INET, SOCK_STREAM, 0)); }) == EPERM);
    CHECK(Confined(rights, [] { return ErrorOf(prctl(PR_SET_PDEATHSIG, 0)); }) == EPERM);
  }
}

TEST_CASE("a compiler makes no namespace, whatever call it asks by") {
  for (const ProcessRights rights : {ProcessRights::kToolchain, ProcessRights::kToolchainWithGpu}) {
    // The kernel itself refuses to share signal handlers without memory, with another error than the filter's.
    const auto clone_with = [&](long flags) {
      return Confined(rights, [=] { return ErrorOf(syscall(SYS_clone, CLONE_SIGHAND | flags, 0, 0, 0, 0)); });
    };
    CHECK(clone_with(SIGCHLD) == EINVAL);
    for (const long flag : {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC,
                            CLONE_NEWUTS, CLONE_NEWCGROUP, CLONE_NEWTIME}) {
      INFO(flag);
      CHECK(clone_with(flag) == EPERM);
      CHECK(clone_with(flag | CLONE_VFORK | SIGCHLD) == EPERM);
      CHECK(Confined(rights, [=] { return ErrorOf(unshare(static_cast<int>(flag))); }) == EPERM);
    }
    CHECK(Confined(rights, [] { return ErrorOf(syscall(SYS_clone3, 0, 0)); }) == ENOSYS);
  }
}

}  // namespace
}  // namespace warpsmith
