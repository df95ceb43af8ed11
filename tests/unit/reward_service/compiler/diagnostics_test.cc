#include "reward_service/compiler/diagnostics.h"

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("only lines about the program are kept, errors first") {
  const std::string output =
      "<stdin>: In function 'int run()':\n"
      "<stdin>:3:7: warning: unused variable 'x' [-Wunused-variable]\n"
      "/usr/include/c++/12/bits/move.h:5:1: note: candidate\n"
      "<stdin>:9:3: error: expected ';' before 'float'\n";
  CHECK(TrimDiagnostics(output) ==
        "9:3: error: expected ';' before 'float'\n"
        " In function 'int run()':\n"
        "3:7: warning: unused variable 'x' [-Wunused-variable]\n");
}

TEST_CASE("a linker's message is kept where the program's own lines have no error") {
  CHECK(FirstError(TrimDiagnostics("mold: error: undefined symbol: foo\n")) ==
        "error: undefined symbol: foo");
}

TEST_CASE("diagnostics are bounded and hold no control characters") {
  std::string output;
  for (int i = 0; i < 10000; ++i) output += "<stdin>:1:1: error: \x1b[31mred\x01 text\n";
  const std::string trimmed = TrimDiagnostics(output);
  CHECK(trimmed.size() <= kDiagnosticsBytesMax);
  CHECK(trimmed.find('\x1b') == std::string::npos);
  CHECK(trimmed.find("\\x1b[31mred\\x01") != std::string::npos);
}

TEST_CASE("one endless line does not crowd out the others") {
  const std::string trimmed =
      TrimDiagnostics("<stdin>:1:1: error: " + std::string(100000, 'x') + "\n<stdin>:2:1: error: second\n");
  CHECK(trimmed.find("2:1: error: second") != std::string::npos);
}

// What nvcc 13.0.88 wrote of a candidate.cu, as it was.
std::string Kept(const char* name) { return *ReadFile(absl::StrCat("tests/data/nvcc/", name, ".txt")); }

TEST_CASE("nvcc's errors come with the program's own lines") {
  CHECK(TrimDiagnostics(Kept("syntax")) ==
        "3: error: expected a \";\"\n"
        "5: error: expected an expression\n"
        "5: error: expected a \"}\"\n"
        "5: error: expected a \")\"\n"
        "5: error: expected a declaration\n");
  CHECK(TrimDiagnostics(Kept("missing_header")) ==
        "1:10: fatal error: missing_header.h: No such file or directory\n");
  CHECK(TrimDiagnostics(Kept("arguments")) ==
        "2: error: too few arguments in function call\n"
        "2: error: argument of type \"const char *\" is incompatible with parameter of type \"int\"\n");
  CHECK(FirstError(TrimDiagnostics(Kept("recursion"))) ==
        "error: excessive recursion at instantiation of member \"A<N>::v [with N=200]\"");
  CHECK(FirstError(TrimDiagnostics(Kept("names"))) == "error: identifier \"undefined_name\" is undefined");
}

TEST_CASE("a bracket that nvcc misses at the end is the program's own error") {
  const std::string trimmed = TrimDiagnostics(Kept("unterminated"));
  CHECK(trimmed.find("2: error: missing closing quote\n") != std::string::npos);
  CHECK(trimmed.find("At end of source: error: expected a \"}\"\n") != std::string::npos);
}

TEST_CASE("what an assembler refuses is an error, without the place in a file that nobody sees") {
  CHECK(FirstError(TrimDiagnostics(Kept("assembler"))) == "error: Unknown modifier '.op'");
  CHECK(TrimDiagnostics(Kept("shared_memory")) ==
        "ptxas: error: Entry function '_Z1kPf' uses too much shared data (0x61a80 bytes, 0x38c00 max)\n");
  CHECK(TrimDiagnostics(Kept("unresolved")) == "ptxas: error: Unresolved extern function '_Z9elsewherev'\n");
  CHECK(FirstError(TrimDiagnostics(Kept("host_assembler"))) == "error: no such instruction: `nonsense'");
}

TEST_CASE("a warning of both passes of nvcc is shown once") {
  const std::string trimmed = TrimDiagnostics(Kept("warnings"));
  const std::string words = "1: warning #549-D: variable \"u2\" is used before its value is set\n";
  CHECK(trimmed.find(words) != std::string::npos);
  CHECK(trimmed.find(words) == trimmed.rfind(words));
  CHECK(FirstError(trimmed) == "");
}

TEST_CASE("the CUDA half of an inline program has its name before its lines") {
  CHECK(TrimDiagnostics("cuda.cu(3): error: expected a \";\"\n<stdin>:1:2: error: here\n"
                        "cuda.cu:4:5: error: there\n") ==
        "cuda.cu:3: error: expected a \";\"\n1:2: error: here\ncuda.cu:4:5: error: there\n");
}

TEST_CASE("lines that only look like nvcc's stay what they are") {
  for (const char* line :
       {"candidate.cu", "candidate.cu(", "candidate.cu(): error: x", "candidate.cu(1x): error: y",
        "candidate.cu(1) error: x", "candidate.cuh(1): error: x", "ptxas", "ptxas info : 1"}) {
    INFO(line);
    CHECK(TrimDiagnostics(line) == std::string(line) + "\n");
  }
}

TEST_CASE("the first error has neither place nor option") {
  CHECK(FirstError("3:7: warning: w\n9:3: error: invalid conversion from 'int' to 'int*' [-fpermissive]\n") ==
        "error: invalid conversion from 'int' to 'int*'");
  CHECK(FirstError("") == "");
}

}  // namespace
}  // namespace warpsmith
