#include "reward_service/compiler/cuda_options.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Options = std::vector<std::string>;

TEST_CASE("options of nvcc that answers use pass, in both spellings, one by one or several in a text") {
  CHECK(AllowedCudaOptions({"-O3", "--use_fast_math", "-lineinfo", "-DN=4", "-UNDEBUG"}).value() ==
        Options{"-O3", "-use_fast_math", "-lineinfo", "-DN=4", "-UNDEBUG"});
  CHECK(AllowedCudaOptions({"-O3 -use_fast_math", " --extended-lambda\n", "-D", "M"}).value() ==
        Options{"-O3", "-use_fast_math", "-extended-lambda", "-DM"});
  const Options standard = {"-std=c++20"};
  for (const char* text : {"-std=c++20", "--std=c++20", "-std c++20", "--std c++20"}) {
    INFO(text);
    CHECK(AllowedCudaOptions({text}).value() == standard);
  }
  CHECK(AllowedCudaOptions({"--ftz=true", "-fmad", "false", "--maxrregcount=64"}).value() ==
        Options{"-ftz=true", "-fmad=false", "-maxrregcount=64"});
  CHECK(AllowedCudaOptions({"--default-stream=per-thread", "-extra-device-vectorization"}).value() ==
        Options{"-default-stream=per-thread", "-extra-device-vectorization"});
}

TEST_CASE("lists for the assembler and for the host's compiler are parted and checked") {
  CHECK(AllowedCudaOptions({"-Xptxas", "-O3,-v,-dlcm=ca"}).value() ==
        Options{"-Xptxas", "-O3", "-Xptxas", "-dlcm=ca"});
  CHECK(AllowedCudaOptions({"--ptxas-options=-v"}).value().empty());
  CHECK(AllowedCudaOptions({"-Xcompiler", "-O2,-fopenmp,-fPIC"}).value() ==
        Options{"-Xcompiler", "-O2", "-Xcompiler", "-fopenmp"});
  CHECK(AllowedCudaOptions({"--compiler-options", "'-fPIC'"}).value().empty());
  CHECK(AllowedCudaOptions({"--compiler-options='-march=native'"}).value() ==
        Options{"-Xcompiler", "-march=native"});
}

TEST_CASE("what the service chooses, and what changes messages alone, is left out of nvcc's options") {
  CHECK(AllowedCudaOptions({"", "-arch=sm_80", "-gencode", "arch=compute_80,code=sm_80",
                            "--generate-code=arch=compute_90,code=sm_90", "--threads", "4", "-t=2", "-w",
                            "-diag-suppress", "177,550", "-Xcudafe", "--diag_suppress=x", "-lcudart",
                            "-lcublas", "--resource-usage"})
            .value()
            .empty());
}

TEST_CASE("options of nvcc that name a file, a program or a place are refused, and what nobody has listed") {
  for (const char* option : {"-ccbin=/tmp/x",
                             "-ccbin",
                             "--compiler-bindir=/tmp",
                             "-include=x",
                             "-I/etc",
                             "-I",
                             "-isystem",
                             "-L/tmp",
                             "-lcusolver",
                             "-optf=x",
                             "--options-file",
                             "-Xlinker=-rpath",
                             "-Xnvlink",
                             "-run",
                             "--keep",
                             "--keep-dir=/x",
                             "-odir=/x",
                             "-o",
                             "--dryrun",
                             "-rdc=true",
                             "-dc",
                             "-ptx",
                             "-cubin",
                             "@file",
                             "file.cu",
                             "/etc/passwd",
                             "--input-drive-prefix=/",
                             "-std=c++23",
                             "-std",
                             "-O4",
                             "-O3=1",
                             "--use_fast_math=true",
                             "--ftz=maybe",
                             "-maxrregcount=1000",
                             "-maxrregcount=x",
                             "-Xcompiler=-fplugin=x",
                             "-Xcompiler=-O2,-I/etc",
                             "-Xptxas=-O3,--input-file",
                             "-Xptxas=-o",
                             "-Xptxas",
                             "-t=x",
                             "-DN=\"x\"",
                             "-D",
                             "-",
                             "--",
                             "---O3"}) {
    INFO(option);
    CHECK(absl::IsInvalidArgument(AllowedCudaOptions({option}).status()));
  }
  CHECK(absl::IsInvalidArgument(AllowedCudaOptions(Options(65, "-O3")).status()));
}

TEST_CASE("a refusal of nvcc's names the option and those that are allowed") {
  const std::string message(AllowedCudaOptions({"-ccbin", "/tmp/x"}).status().message());
  CHECK(message.find("nvcc option \"-ccbin\" is not allowed; allowed are") == 0);
  CHECK(message.find("--use_fast_math") != std::string::npos);
}

}  // namespace
}  // namespace warpsmith
