#include "rollout_workers/serving/serve_mode.h"

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {

TEST_CASE("a token is read without the white space around it, and a short one is refused") {
  const TemporaryDirectory folder;
  const std::filesystem::path path = folder.path() / "token";
  REQUIRE(WriteFileAtomically(path, "  0123456789abcdef\n").ok());
  CHECK(ReadTokenFile(path).value() == "0123456789abcdef");
  REQUIRE(WriteFileAtomically(path, "0123456789abcde\n").ok());
  CHECK_THAT(std::string(ReadTokenFile(path).status().message()), Catch::Contains("15 bytes"));
  CHECK(absl::IsNotFound(ReadTokenFile(folder.path() / "none").status()));
}

TEST_CASE("a folder names its model, however it is written") {
  CHECK(NameOfFolder("runs/demo/export") == "export");
  CHECK(NameOfFolder("runs/demo/export/") == "export");
  CHECK(NameOfFolder("runs/demo/./export/.") == "export");
  CHECK(NameOfFolder(".") == std::filesystem::current_path().filename().string());
}

}  // namespace warpsmith
