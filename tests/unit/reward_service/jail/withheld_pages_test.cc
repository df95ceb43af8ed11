#include "reward_service/jail/withheld_pages.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

const char* const kText = "some text, the sum of which is asked for";

int Compress() {
  unsigned char out[100];
  uLongf size = sizeof(out);
  return compress(out, &size, reinterpret_cast<const Bytef*>(kText), 40);
}

int Sum() { return static_cast<int>(adler32(1, reinterpret_cast<const Bytef*>(kText), 40) % 100); }

// The exit status of a child that runs `work`; 128 + signal where one ended it.
template <typename Work>
int InChild(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);  // not Catch's
    _exit(work());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_CASE("libraries of the language and the interpreter are kept whole") {
  for (const char* path :
       {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/libm.so.6", "/lib64/ld-linux-x86-64.so.2",
        "/torch/lib/libgomp.so.1", "/torch/lib/libc10.so", "/torch/lib/libtorch_python.so",
        "/usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so",
        "/share/jail/libwarpsmith_confine.so", "/usr/lib/libstdc++.so.6.0.30", "/libc10_cuda.so",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159", "/nvidia/cu13/lib/libcudart.so.13",
        "/nvidia/cu13/lib/libcupti.so.13"}) {
    INFO(path);
    CHECK(IsKeptWhole(path));
  }
  for (const char* path :
       {"/torch/lib/libtorch_cpu.so", "/numpy.libs/libscipy_openblas64_-32a4b2a6.so", "/libmkl_core.so",
        "/torch/lib/libtorch.so", "/usr/lib/libblas.so.3", "/usr/lib/libcrypto.so.3",
        "/numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so", "/torch/lib/libtorch_cuda.so",
        "/nvidia/cu13/lib/libcublasLt.so.13"}) {
    INFO(path);
    CHECK_FALSE(IsKeptWhole(path));
  }
}

TEST_CASE("code that was learnt runs after the rest is withheld, and nothing else does") {
  const int expected = Sum();
  REQUIRE(PrepareLearning().ok());
  REQUIRE(InChild([] { return LearnPages().ok() ? Sum() : 99; }) == expected);
  const auto code = nlohmann::json::parse(FinishLearning()).at(0);
  CHECK(Sum() == expected);  // nothing is withheld here

  CHECK(InChild([] { return WithholdPages().ok() ? Sum() : 99; }) == expected);
  CHECK(InChild([] { return WithholdPages().ok() ? Compress() : 99; }) == 128 + SIGSEGV);
  const void* const compress_code = dlsym(RTLD_DEFAULT, "compress");
  const void* const adler32_code = dlsym(RTLD_DEFAULT, "adler32");
  CHECK_FALSE(IsWithheld(compress_code));
  CHECK(InChild([&] {
          return WithholdPages().ok() && IsWithheld(compress_code) && !IsWithheld(adler32_code) ? 7 : 8;
        }) == 7);

  bool has_zlib = false;
  for (const auto& [path, pages] : code.items()) {
    if (path.find("libz.so") == std::string::npos) continue;
    has_zlib = true;
    REQUIRE(pages.is_array());
    CHECK_FALSE(pages.empty());
  }
  CHECK(has_zlib);
}

TEST_CASE("code of copies runs where libraries may copy, and nowhere else") {
  const int expected = Sum();
  REQUIRE(Compress() == Z_OK);
  REQUIRE(PrepareLearning().ok());
  REQUIRE(InChild([] {
            if (!LearnPages().ok()) return 99;
            const int sum = Sum();
            LearnCopies();
            return Compress() == Z_OK ? sum : 98;
          }) == expected);
  const auto code = nlohmann::json::parse(FinishLearning());
  REQUIRE(code.size() == 2);
  CHECK(code.at(0) != code.at(1));
  const auto run = [](Copies copies, int (*work)()) {
    return InChild([&] { return WithholdPages(copies).ok() ? work() : 99; });
  };
  CHECK(run(Copies::kWithheld, Sum) == expected);
  CHECK(run(Copies::kByLibraries, Sum) == expected);
  CHECK(run(Copies::kByLibraries, Compress) == Z_OK);
  CHECK(run(Copies::kWithheld, Compress) == 128 + SIGSEGV);
}

TEST_CASE("all code of a library that is kept stays") {
  Dl_info zlib{};
  REQUIRE(dladdr(reinterpret_cast<const void*>(&adler32), &zlib) != 0);
  REQUIRE(PrepareLearning({zlib.dli_fname}).ok());
  REQUIRE(InChild([] { return LearnPages().ok() ? 0 : 99; }) == 0);
  FinishLearning();
  CHECK(InChild([] { return WithholdPages().ok() ? Compress() : 99; }) == Z_OK);
}

}  // namespace
}  // namespace warpsmith
