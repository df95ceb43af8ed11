#include "rollout_workers/serving/serve_mode.h"

#include <filesystem>

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith::serving {

TEST_CASE("a token is read without the white space around it, and a short one is refused") {
  const TemporaryDirectory folder;
  const std::filesystem::path path = folder.path() / "token";
  REQUIRE(WriteFileAtomically(path, "  0123456789abcdef\n").ok());
  CHECK(ReadTokenFile(path).value() == "0123456789abcdef");
  REQUIRE(WriteFileAtomically(path, "0123456789abcde\n").ok());
  CHECK_THAT(std::string(ReadTokenFile(path).status().message()), Catch::Contains("15 bytes"));
  CHECK(absl::IsNotFound(ReadTokenFile(folder.path() / "none").status()));
}

TEST_CASE("a folder that lacks files of a checkpoint is told which, and how to come by one") {
  const TemporaryDirectory folder;
  const auto refusal = [&] { return std::string(CheckHoldsCheckpoint(folder.path()).message()); };
  CHECK_THAT(refusal(), Catch::Contains("lacks config.json, tokenizer.json, model.safetensors (or shards") &&
                            Catch::Contains("`warpsmith export CONFIG` writes one"));
  std::filesystem::create_directory(folder.path() / "export");
  REQUIRE(WriteFileAtomically(folder.path() / "export" / "config.json", "{}").ok());
  CHECK_THAT(refusal(), Catch::EndsWith("--model " + (folder.path() / "export").string()));
  for (const char* const name : {"config.json", "tokenizer.json", "model.safetensors.index.json"}) {
    REQUIRE(WriteFileAtomically(folder.path() / name, "{}").ok());
  }
  CHECK(CheckHoldsCheckpoint(folder.path()).ok());
  CHECK_THAT(std::string(CheckHoldsCheckpoint(folder.path() / "config.json").message()),
             Catch::EndsWith("config.json: it is no folder"));
}

TEST_CASE("a folder names its model, however it is written") {
  CHECK(NameOfFolder("runs/demo/export") == "export");
  CHECK(NameOfFolder("runs/demo/export/") == "export");
  CHECK(NameOfFolder("runs/demo/./export/.") == "export");
  CHECK(NameOfFolder(".") == std::filesystem::current_path().filename().string());
}

}  // namespace warpsmith::serving
