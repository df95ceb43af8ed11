// Native programs in sealed jails: no code but their own, the C, C++, mathematics and OpenMP libraries.
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/candidate_library.h"
#include "tests/support/catch.h"
#include "tests/support/sealed_jail.h"

namespace warpsmith {
namespace {

const char* const kWork = "for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];";
const char* const kHead = R"(
#include <dlfcn.h>
#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <algorithm>
#include <vector>
)";

SealedRun Run(const std::string& statements, const std::string& head = "", SealedOptions options = {}) {
  return RunNative(CompileCandidate(CandidateBody(statements, kHead + head)), options);
}

std::string Told(const SealedRun& run) { return run.fault ? run.fault->reason : "no fault"; }

void CheckReturns(int value, const std::string& statements) {
  const SealedRun run = Run(statements);
  INFO(statements << ": " << Told(run));
  REQUIRE(run.fault);
  CHECK(run.fault->reason == absl::StrCat("run() returned ", value));
}

TEST_CASE("a native program does its own work in a sealed jail") {
  const SealedRun run = Run(kWork);
  INFO(Told(run));
  REQUIRE_FALSE(run.fault);
  CHECK(run.num_calls == 2);
  CHECK(run.output[5] == 2 * run.input[5]);
}

TEST_CASE("OpenMP, vector mathematics and C++ run in a sealed jail") {
  const SealedRun run = Run(R"(
    std::vector<float> sorted(x, x + n); std::sort(sorted.begin(), sorted.end());
    int threads = 0;
    #pragma omp parallel
    {
      #pragma omp single
      threads = omp_get_num_threads();
      #pragma omp for
      for (int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i]) + std::tanh(x[i]) + sorted[0];
    }
    if (threads != 3) return 10 + threads;)",
                            "", {.sealed = true, .withhold = true, .num_threads = 3});
  INFO(Told(run));
  CHECK_FALSE(run.fault);
  CHECK(run.num_calls == 2);
}

TEST_CASE("a native program cannot make code") {
  CheckReturns(3,
               "return mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == "
               "MAP_FAILED ? 3 : 0;");
  CheckReturns(3,
               "void* p = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);"
               "return mprotect(p, 4096, PROT_READ | PROT_EXEC) != 0 ? 3 : 0;");
  CheckReturns(3,
               "return syscall(SYS_pkey_mprotect, (long)run & ~4095L, 4096, PROT_READ | PROT_WRITE | "
               "PROT_EXEC, -1) != 0 ? 3 : 0;");
  CheckReturns(
      3,
      "int f = open(\"/tmp/code\", O_RDWR | O_CREAT, 0700); if (f < 0 || ftruncate(f, 4096) != 0) return 4;"
      "return mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, f, 0) == MAP_FAILED ? 3 : 0;");
  CheckReturns(3, "return syscall(SYS_memfd_create, \"code\", 0) < 0 ? 3 : 0;");
  CheckReturns(3, "return syscall(SYS_shmget, 0, 4096, 01777) < 0 ? 3 : 0;");
}

TEST_CASE("a program's own file is mapped as code, but not to be changed") {
  const std::string open_own =
      "int f = open(\"/candidate/candidate.so\", O_RDONLY); if (f < 0) return 4;"
      "auto map = [&](int protection, int flags) { return mmap(nullptr, 4096, protection, flags, f, 0) != "
      "MAP_FAILED; };";
  CheckReturns(3, open_own + "return map(PROT_READ | PROT_EXEC, MAP_PRIVATE) ? 3 : 0;");
  CheckReturns(3, open_own + "return map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE) ? 0 : 3;");
  CheckReturns(3, open_own + "return map(PROT_WRITE | PROT_EXEC, MAP_SHARED) ? 0 : 3;");
  CheckReturns(3, open_own + "return open(\"/candidate/candidate.so\", O_RDWR) < 0 ? 3 : 0;");
}

TEST_CASE("code that a program made writable stays without effect") {
  // The page loses its right to be executed with the first change, and does not get it back.
  CheckReturns(3,
               "void* p = (void*)((long)&std::qsort & ~4095L); if (mprotect(p, 4096, PROT_READ | PROT_WRITE) "
               "!= 0) return 4;"
               "return mprotect(p, 4096, PROT_READ | PROT_EXEC) != 0 ? 3 : 0;");
}

TEST_CASE("a native program loads no other library") {
  for (const char* library :
       {"libcrypt.so.1", "libcrypto.so.3", "libz.so.1", "libgfortran.so.5", "libblas.so.3"}) {
    for (const char* load : {"dlopen(NAME, RTLD_NOW)", "dlmopen(LM_ID_NEWLM, NAME, RTLD_NOW)"}) {
      const SealedRun run = Run(absl::StrCat("return ", load, " == nullptr ? 3 : 0;"),
                                absl::StrCat("#define NAME \"", library, "\"\n"));
      INFO(library << ": " << Told(run));
      REQUIRE(run.fault);
      CHECK(run.fault->reason == "run() returned 3");
    }
  }
}

TEST_CASE("an own handler that writes code into a page runs nothing") {
  const SealedRun run = Run("volatile char* page = (char*)1; ((int (*)())page)();", R"(
    void on_fault(int, siginfo_t*, void*) {
      void* p = mmap((void*)0x10000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      std::memset(p, 0xc3, 4096);
      if (mprotect(p, 4096, PROT_READ | PROT_EXEC) != 0) _exit(7);
    }
    __attribute__((constructor)) void install() {
      struct sigaction action {}; action.sa_sigaction = on_fault; action.sa_flags = SA_SIGINFO;
      sigaction(SIGSEGV, &action, nullptr);
    })");
  REQUIRE(run.fault);
  CHECK(run.fault->verdict == v1::VERDICT_RUNTIME_ERROR);
}

TEST_CASE("a native program with a segment of writable code does not load") {
  const SealedRun run =
      Run(kWork, "asm(\".pushsection .tricks, \\\"awx\\\"\\n.skip 8192\\n.popsection\");\n");
  INFO(Told(run));
  REQUIRE(run.fault);
  CHECK(run.fault->reason.find("the library does not load") != std::string::npos);
}

TEST_CASE("jails that are not sealed load libraries as before") {
  const SealedRun run =
      Run("if (dlopen(\"libcrypt.so.1\", RTLD_NOW) == nullptr) return 3;" + std::string(kWork), "",
          {.sealed = false, .withhold = false});
  INFO(Told(run));
  CHECK_FALSE(run.fault);
}

TEST_CASE("a jail that is not sealed is refused when its code is looked at") {
  const SealedRun run =
      Run(kWork, "void* library = dlopen(\"libcrypt.so.1\", RTLD_NOW);", {.sealed = false, .withhold = true});
  INFO(Told(run));
  REQUIRE(run.fault);
  CHECK(run.fault->hack_family == kWithheldCodeFamily);
  CHECK(run.fault->reason.find("libcrypt.so") != std::string::npos);
}

TEST_CASE("spares of sealed and of other jails are kept by turns") {
  const auto pid_of_next = [](bool sealed) {
    const auto child = TestNativeZygote().ForkWithSpare({"native", int64_t{1} << 30, 5, 1, sealed});
    REQUIRE(child.ok());
    REQUIRE((*child)->AwaitHello(absl::Now() + absl::Seconds(10)).ok());
    return (*child)->pid();
  };
  pid_of_next(true);
  const pid_t other = pid_of_next(false);
  // Made before the first of the other kind, though the numbers may have begun again from the lowest in between.
  int pid_max = 0;
  std::ifstream("/proc/sys/kernel/pid_max") >> pid_max;
  REQUIRE(pid_max > 0);
  CHECK((other - pid_of_next(true) + pid_max) % pid_max < pid_max / 2);
}

}  // namespace
}  // namespace warpsmith
