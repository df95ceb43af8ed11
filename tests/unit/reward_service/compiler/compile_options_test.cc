#include "reward_service/compiler/compile_options.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Options = std::vector<std::string>;

TEST_CASE("options that answers use pass, one by one or several in a text") {
  const Options usual = {"-O3",
                         "-march=native",
                         "-ffast-math",
                         "-fopenmp",
                         "-std=c++20",
                         "-funroll-loops",
                         "-mavx2",
                         "-mno-avx512f",
                         "-mfma",
                         "-mtune=skylake-avx512",
                         "-DN=4",
                         "-DTILE",
                         "-UNDEBUG",
                         "-pthread",
                         "-fno-math-errno",
                         "-lm",
                         "-lgomp",
                         "-mprefer-vector-width=512",
                         "-g"};
  CHECK(AllowedOptions(usual).value() == usual);
  CHECK(AllowedOptions({"-O3 -fopenmp", " -march=native\n"}).value() ==
        Options{"-O3", "-fopenmp", "-march=native"});
  CHECK(AllowedOptions({"-D", "N=4", "-D M"}).value() == Options{"-DN=4", "-DM"});
}

TEST_CASE("what means nothing here is left out") {
  CHECK(AllowedOptions({"", "-Wall", "-Wno-unused-variable", "-w", "-flto", "-fPIC", "-ltorch"})
            .value()
            .empty());
}

TEST_CASE("whatever names a file, a program or a place is refused, and so is what nobody has listed") {
  for (const char* option : {"@/etc/passwd",
                             "-o/tmp/x",
                             "-o",
                             "/tmp/x",
                             "-include",
                             "-I/etc",
                             "-B/tmp",
                             "-specs=x",
                             "-wrapper",
                             "-fplugin=x.so",
                             "-Wl,-rpath,/x",
                             "-Wp,-include,/etc/passwd",
                             "-Wa,-I/x",
                             "-x",
                             "-E",
                             "-S",
                             "-c",
                             "--help",
                             "-save-temps",
                             "-imacros",
                             "-Xlinker",
                             "-T",
                             "-fdump-tree-all",
                             "-fprofile-use=/x",
                             "-fuse-ld=gold",
                             "-foffload=nvptx-none",
                             "-fsanitize=address",
                             "-fmodules-ts",
                             "-fmodule-mapper=|/bin/sh",
                             "-l:libblas.a",
                             "-lblas",
                             "-lgfortran",
                             "-L/x",
                             "-mabi=ms",
                             "-march=",
                             "-march=a/b",
                             "-dumpspecs",
                             "-DN=\"x\"",
                             "-DN=f()",
                             "-D1=2",
                             "-D",
                             "-U",
                             "-UA=1",
                             "-O4",
                             "-fopenmp=x"}) {
    INFO(option);
    const auto options = AllowedOptions({option});
    CHECK(absl::IsInvalidArgument(options.status()));
  }
  CHECK(absl::IsInvalidArgument(AllowedOptions(Options(65, "-O3")).status()));
}

TEST_CASE("a refusal names the option and those that are allowed") {
  const std::string message(AllowedOptions({"-fmodule-mapper=|/bin/sh"}).status().message());
  CHECK(message.find("\"-fmodule-mapper=|/bin/sh\" is not allowed") != std::string::npos);
  CHECK(message.find("-ffast-math") != std::string::npos);
}

TEST_CASE("headers are precompiled for a few sets of options, whatever their order and number") {
  CHECK(HeaderOptions({}) == Options{});
  CHECK(HeaderOptions({"-march=native", "-O2", "-O3", "-march=native"}) == Options{"-O3", "-march=native"});
  CHECK(HeaderOptions({"-O3", "-march=native"}) == HeaderOptions({"-march=native", "-O3", "-DN=1", "-lm"}));
  CHECK(HeaderOptions({"-O0"}) == std::nullopt);
  CHECK(HeaderOptions({"-O3", "-funroll-loops"}) == std::nullopt);
  CHECK(HeaderOptions({"-march=skylake"}) == std::nullopt);
}

}  // namespace
}  // namespace warpsmith
