#include "reward_service/sandbox/confinement.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// More memory than any sanitizer reserves.
Confinement Usual(const std::string& writable) {
  return {.memory_bytes_max = int64_t{1} << 50,
          .file_bytes_max = 1 << 20,
          .cpu_seconds_max = 10,
          .num_processes_max = 64,
          .num_open_files_max = 32,
          .writable_paths = {writable}};
}

// The result of `attempt`, 0 to 99, in a process of its own; -1 when it was ended by a signal. The attempt may
// not use Catch.
int InProcess(const std::function<int()>& attempt) {
  const pid_t child = fork();
  if (child == 0) _exit(attempt());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int Confined(const Confinement& confinement, const std::function<int()>& attempt) {
  return InProcess([&] { return Confine(confinement).ok() ? attempt() : 100; });
}

// 0 where the limits are those of Usual().
int LimitsHold() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max != 32) return 1;
  if (getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_cur != 10 || limit.rlim_max != 11) return 2;
  return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0 ? 0 : 3;
}

// 0 where `num_bytes` of memory of its own can be had.
int TakeMemory(size_t num_bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  return mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED ? 1 : 0;
}

TEST_CASE("limits hold, rights are gone, and there is no way back") {
  const TemporaryDirectory folder;
  CHECK(Confined(Usual(folder.path()), LimitsHold) == 0);
  CHECK(Confined(Usual(folder.path()), [] { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == -1 ? 0 : 1; }) ==
        0);
  CHECK(Confined(Usual(folder.path()), [] { return fork() == -1 ? 0 : 1; }) == 0);
}

TEST_CASE("memory that is written ends at its limit, within a larger one of all mappings") {
  const TemporaryDirectory folder;
  Confinement confinement = Usual(folder.path());
  CHECK(Confined(confinement, [] { return TakeMemory(size_t{512} << 20); }) == 0);
  confinement.memory_bytes_max = int64_t{256} << 20;
  confinement.address_bytes_max = int64_t{1} << 50;
  CHECK(Confined(confinement, [] { return TakeMemory(size_t{512} << 20); }) == 1);
}

TEST_CASE(
    "with a GPU addresses have no limit, memory of one's own has, and a host without memory ends the "
    "process") {
  const TemporaryDirectory folder;
  Confinement confinement = Usual(folder.path());
  confinement.open_gpu = [] { return absl::OkStatus(); };
  confinement.memory_bytes_max = int64_t{256} << 20;
  confinement.address_bytes_max = int64_t{512} << 20;
  CHECK(Confined(confinement, [] { return TakeMemory(size_t{512} << 20); }) == 1);
  CHECK(Confined(confinement, [] {
          constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
          return mmap(nullptr, size_t{1} << 40, PROT_NONE, kFlags, -1, 0) == MAP_FAILED ? 1 : 0;
        }) == 0);
  CHECK(Confined(confinement, [] {
          std::ifstream file("/proc/self/oom_score_adj");
          int score = 0;
          return file >> score && score == 1000 ? 0 : 1;
        }) == 0);
}

TEST_CASE("root takes on the private uid, for good") {
  if (geteuid() != 0) return;
  const TemporaryDirectory folder;
  Confinement confinement = Usual(folder.path());
  confinement.uid = 64123;
  CHECK(Confined(confinement,
                 [] { return getuid() == 64123 && geteuid() == 64123 && setuid(0) != 0 ? 0 : 1; }) == 0);
}

TEST_CASE("files are written in the named folder and nowhere else") {
  if (LandlockVersion() == 0) return;
  const TemporaryDirectory inside, outside;
  REQUIRE(chmod(inside.path().c_str(), 0777) == 0);
  REQUIRE(chmod(outside.path().c_str(), 0777) == 0);
  const auto make = [](const std::filesystem::path& folder) {
    return open((folder / "file").c_str(), O_WRONLY | O_CREAT, 0600) >= 0 ? 0 : 1;
  };
  CHECK(Confined(Usual(inside.path()), [&] { return make(inside.path()); }) == 0);
  CHECK(Confined(Usual(inside.path()), [&] { return make(outside.path()); }) == 1);
}

TEST_CASE("only who compiles beside a GPU renames files from one folder to another") {
  if (LandlockVersion() < 2) return;
  const TemporaryDirectory folder;
  REQUIRE(chmod(folder.path().c_str(), 0777) == 0);
  const std::string part = folder.path() / "part", whole = folder.path() / "whole";
  const auto rename_across = [&] {
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return 2;
    if (open((part + "/file").c_str(), O_WRONLY | O_CREAT, 0600) < 0) return 3;
    return rename((part + "/file").c_str(), whole.c_str()) == 0 ? 0 : 1;
  };
  Confinement confinement = Usual(folder.path());
  CHECK(Confined(confinement, rename_across) == 1);
  confinement.rights = ProcessRights::kToolchainWithGpu;
  CHECK(Confined(confinement, rename_across) == 0);
}

TEST_CASE("files outside the named ones cannot be read, where some are named") {
  if (LandlockVersion() == 0) return;
  const TemporaryDirectory folder;
  REQUIRE(chmod(folder.path().c_str(), 0777) == 0);
  const auto read_program = [] { return open("/usr/bin/env", O_RDONLY) >= 0 ? 0 : 1; };
  Confinement confinement = Usual(folder.path());
  CHECK(Confined(confinement, read_program) == 0);
  confinement.readable_paths = {"/usr/include"};
  CHECK(Confined(confinement, read_program) == 1);
  CHECK(Confined(confinement, [] { return open("/usr/include/stdio.h", O_RDONLY) >= 0 ? 0 : 1; }) == 0);
}

TEST_CASE("a confined process may be told to end with its parent") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const TemporaryDirectory folder;
  Confinement confinement = Usual(folder.path());
  confinement.die_with_parent = true;
  CHECK(InProcess([&] {
          if (fork() != 0) {
            char byte = 0;
            return read(ends[0], &byte, 1) == 1 ? 0 : 1;
          }
          close(ends[0]);
          if (!Confine(confinement).ok() || write(ends[1], "c", 1) != 1) _exit(1);
          for (;;) pause();
        }) == 0);
  close(ends[1]);
  // Nobody holds the pipe's other end any more: the child has ended.
  char byte = 0;
  CHECK(read(ends[0], &byte, 1) == 0);
  close(ends[0]);
}

TEST_CASE("a private /tmp holds data, or programs too where that is asked for") {
  if (geteuid() != 0) return;
  const auto run_from_tmp = [](FolderUse use) {
    return InProcess([use] {
      if (!SeparateNextChild().ok() || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
        return 2;
      if (!MountPrivateTmp(16 << 20, use).ok()) return 3;
      std::filesystem::copy("/bin/true", "/tmp/true");
      return access("/tmp/true", X_OK) == 0 ? 0 : 1;
    });
  };
  CHECK(run_from_tmp(FolderUse::kData) == 1);
  CHECK(run_from_tmp(FolderUse::kPrograms) == 0);
}

TEST_CASE("a next child has namespaces, a /tmp and a folder of libraries of its own") {
  if (geteuid() != 0) return;
  struct stat ours;
  REQUIRE(stat("/tmp", &ours) == 0);
  CHECK(InProcess([&] {
          if (!SeparateNextChild().ok()) return 1;
          const pid_t child = fork();
          if (child == 0) {
            struct stat theirs;
            // Mounts of this child are not to reach the others: what systemd shares must not be.
            if (getpid() != 1 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(2);
            if (!MountPrivateTmp(1 << 20).ok() || stat("/tmp", &theirs) != 0) _exit(3);
            _exit(theirs.st_dev == ours.st_dev ? 4 : 0);
          }
          int status = 0;
          waitpid(child, &status, 0);
          return WEXITSTATUS(status);
        }) == 0);
}

}  // namespace
}  // namespace warpsmith
