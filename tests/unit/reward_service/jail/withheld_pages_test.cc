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
  const auto code = nlohmann::json::parse(FinishLearning());
  CHECK(Sum() == expected);  // nothing is withheld here

  CHECK(InChild([] { return WithholdPages().ok() ? Sum() : 99; }) == expected);
  CHECK(InChild([] {
          if (!WithholdPages().ok()) return 99;
          unsigned char out[100];
          uLongf size = sizeof(out);
          return compress(out, &size, reinterpret_cast<const Bytef*>(kText), 40);
        }) == 128 + SIGSEGV);
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

}  // namespace
}  // namespace warpsmith
