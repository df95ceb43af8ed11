#include "reward_service/compiler/diagnostics.h"

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

TEST_CASE("the first error has neither place nor option") {
  CHECK(FirstError("3:7: warning: w\n9:3: error: invalid conversion from 'int' to 'int*' [-fpermissive]\n") ==
        "error: invalid conversion from 'int' to 'int*'");
  CHECK(FirstError("") == "");
}

}  // namespace
}  // namespace warpsmith
