#include "reward_service/jail/fat_binaries.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

TEST_CASE("a library's kernels are gone where they are withheld, and its code stays") {
  const char* const kernels = Find<const char*()>("Kernels")();
  const char* const linked_kernels = Find<const char*()>("LinkedKernels")();
  int (*const answer)() = Find<int()>("Answer");
  const volatile char* const inside = linked_kernels + kPageBytes;
  REQUIRE(FindFatBinaries().ok());
  CHECK(NumFatBinaryBytes() >= static_cast<int64_t>(5 * kPageBytes));

  CHECK(InJail([&] { return answer(); }) == 42);
  CHECK(InJail([&] { return static_cast<const volatile char*>(kernels)[0]; }) == 128 + SIGSEGV);
  CHECK(InJail([&] { return inside[0]; }) == 128 + SIGSEGV);
  CHECK(InJail([&] {
          return IsInWithheldFatBinary(kernels) && IsInWithheldFatBinary(kernels + 3 * kPageBytes - 1) &&
                         !IsInWithheldFatBinary(reinterpret_cast<const void*>(answer))
                     ? 7
                     : 8;
        }) == 7);
  // Elsewhere nothing is withheld.
  CHECK_FALSE(IsInWithheldFatBinary(kernels));
  CHECK(kernels[0] == 'k');
}

TEST_CASE("opening the door again shows that nothing is behind it") {
  char* const kernels = const_cast<char*>(Find<const char*()>("Kernels")());
  REQUIRE(FindFatBinaries().ok());
  CHECK(InJail([&] {
          if (mprotect(kernels, kPageBytes, PROT_READ) != 0) return 98;
          return static_cast<int>(kernels[0]);
        }) == 0);
}

}  // namespace
}  // namespace warpsmith
