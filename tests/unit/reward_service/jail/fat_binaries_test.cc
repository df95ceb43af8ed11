#include "reward_service/jail/fat_binaries.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr size_t kPageBytes = 4096;

template <typename Function>
Function* Find(const char* name) {
  static void* const library = dlopen(LIBRARY_WITH_KERNELS, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

bool IsWholePage(const volatile char* start) { return reinterpret_cast<uintptr_t>(start) % kPageBytes == 0; }

// The exit status of a child for which libraries' kernels are withheld; 128 + signal where one ended it.
template <typename Work>
int InJail(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);  // not Catch's
    _exit(WithholdFatBinaries().ok() ? work() : 99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

volatile const char* At(const char* name) { return Find<const char*()>(name)(); }

TEST_CASE("a library's kernels are gone where they are withheld, and its code and other data stay") {
  const volatile char* const kernels = At("Kernels");
  const volatile char* const linked = At("LinkedKernels");
  const volatile char* const others = At("OtherKernels");
  int (*const answer)() = Find<int()>("Answer");
  REQUIRE(FindFatBinaries({}).ok());

  CHECK(InJail([&] { return answer(); }) == 42);
  CHECK(InJail([&] { return kernels[0]; }) == 128 + SIGSEGV);
  CHECK(InJail([&] { return linked[kPageBytes]; }) == 128 + SIGSEGV);
  CHECK(InJail([&] { return others[0] == 'k' ? 7 : 8; }) == 7);
  // Where a section begins and ends within a page.
  CHECK(InJail([&] { return linked[0] == 0 && linked[8] == 0 ? 7 : 8; }) ==
        (IsWholePage(linked) ? 128 + SIGSEGV : 7));
  CHECK(InJail([&] { return linked[3 * kPageBytes + 15] == 0 ? 7 : 8; }) == 7);
  CHECK(InJail([&] {
          return IsInWithheldFatBinary(const_cast<const char*>(kernels)) &&
                         !IsInWithheldFatBinary(const_cast<const char*>(others)) &&
                         !IsInWithheldFatBinary(reinterpret_cast<const void*>(answer))
                     ? 7
                     : 8;
        }) == 7);
  // Elsewhere nothing is withheld.
  CHECK_FALSE(IsInWithheldFatBinary(const_cast<const char*>(kernels)));
  CHECK((kernels[0] == 'k' && linked[0] == 'k'));
}

TEST_CASE("of a library that is not used nothing stays but what others read of it") {
  const volatile char* const others = At("OtherKernels");
  int (*const answer)() = Find<int()>("Answer");
  REQUIRE(FindFatBinaries({std::filesystem::canonical(LIBRARY_WITH_KERNELS)}).ok());
  CHECK(InJail([&] { return others[0]; }) == 128 + SIGSEGV);
  CHECK(InJail([&] {
          void* const library = dlopen(LIBRARY_WITH_KERNELS, RTLD_NOW | RTLD_LOCAL);
          return library != nullptr && dlsym(library, "Answer") == reinterpret_cast<void*>(answer) ? 7 : 8;
        }) == 7);
}

TEST_CASE("in the place of kernels that are withheld there is nothing to be read") {
  char* const kernels = const_cast<char*>(At("Kernels"));
  REQUIRE(FindFatBinaries({}).ok());
  CHECK(InJail([&] {
          if (mprotect(kernels, kPageBytes, PROT_READ) != 0) return 98;
          return static_cast<int>(kernels[0]);
        }) == 0);
  CHECK(InJail([&] {
          char* const part = const_cast<char*>(At("LinkedKernels")) + 3 * kPageBytes;
          char* const page = part - reinterpret_cast<uintptr_t>(part) % kPageBytes;
          madvise(page, kPageBytes, MADV_DONTNEED);
          return static_cast<int>(part[15]);
        }) == 0);
}

}  // namespace
}  // namespace warpsmith
