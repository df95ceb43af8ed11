#include "reward_service/compiler/prelude.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

using Headers = std::vector<std::string>;

TEST_CASE("leading headers are read past comments and blank lines, and sorted") {
  CHECK(LeadingHeaders(
            "// note\n\n#include <dlpack/dlpack.h>\n/* two\nlines */ #  include  <cmath>  \nint x;\n") ==
        Headers{"cmath", "dlpack/dlpack.h"});
}

TEST_CASE("any other token ends the leading headers") {
  CHECK(LeadingHeaders("#include <cmath>\n#define sin cos\n#include <vector>\n") == Headers{"cmath"});
  CHECK(LeadingHeaders("#define sin cos\n#include <cmath>\n").empty());
  CHECK(LeadingHeaders("#pragma GCC optimize(\"O0\")\n#include <cmath>\n").empty());
  CHECK(LeadingHeaders("#include \"cmath\"\n").empty());
  CHECK(LeadingHeaders("#include <cmath> int x;\n").empty());
  CHECK(LeadingHeaders("").empty());
  CHECK(LeadingHeaders("/* never closed").empty());
}

TEST_CASE("the largest prelude that the source includes anyway is chosen") {
  const std::vector<Prelude> preludes = {{"/a", {"cmath", "dlpack/dlpack.h"}},
                                         {"/b", {"cmath", "dlpack/dlpack.h", "vector"}}};
  CHECK(ChoosePrelude(preludes, "#include <cmath>\n#include <dlpack/dlpack.h>\n")->directory == "/a");
  CHECK(ChoosePrelude(preludes, "#include <vector>\n#include <cmath>\n#include <dlpack/dlpack.h>\n")
            ->directory == "/b");
  CHECK(ChoosePrelude(preludes, "#include <cmath>\n") == nullptr);
}

TEST_CASE("what cannot be precompiled leaves nothing unfinished") {
  const TemporaryDirectory folder;
  const Toolchain toolchain = *ProbeToolchain();
  const absl::Status status =
      PrecompileHeader({toolchain.compiler}, "#include <no/such/header.h>\n", folder.path() / "x");
  CHECK_THAT(std::string(status.message()), Catch::Contains("no/such/header.h"));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "x")) {
    CHECK(entry.path().filename() == "prelude.h");
  }
}

TEST_CASE("headers are checked without a folder, and a compiler without them is an error") {
  Toolchain toolchain = *ProbeToolchain();
  CHECK(CheckHeaders(toolchain).ok());
  toolchain.flags.push_back("-nostdinc");
  CHECK_FALSE(CheckHeaders(toolchain).ok());
}

TEST_CASE("a program that may use special functions takes no prelude") {
  const std::vector<Prelude> preludes = {{"/a", {"cmath", "dlpack/dlpack.h"}}};
  const std::string headers = "#include <cmath>\n#include <dlpack/dlpack.h>\n";
  CHECK(ChoosePrelude(preludes, headers + "double z = std::riemann_zeta(2.0);\n") == nullptr);
  CHECK(ChoosePrelude(preludes, headers + "double b = std::beta(2.0, 3.0);\n") == nullptr);
  CHECK(ChoosePrelude(preludes, headers + "const float* beta = nullptr;\n") != nullptr);
}

}  // namespace
}  // namespace warpsmith
