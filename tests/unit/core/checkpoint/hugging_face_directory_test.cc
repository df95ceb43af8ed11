#include "core/checkpoint/hugging_face_directory.h"

#include "core/base/file.h"
#include "core/checkpoint/tensor_directory.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/core/checkpoint/tensor_bytes.h"

namespace warpsmith {
namespace {

HuggingFaceContents Contents() {
  return {.files = {{"config.json", "{}"}, {"tokenizer.json", "[]"}},
          .tensors = {{"w", TensorType::kF32, {3}}}};
}

}  // namespace

TEST_CASE("all files and tensors are there, and no temporary folder") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "a" / "export";
  REQUIRE(WriteHuggingFaceDirectory(path, Contents(), MakeBytesInParts).ok());
  CHECK(ReadFile(path / "config.json").value() == "{}");
  CHECK(ReadFile(path / "tokenizer.json").value() == "[]");
  CHECK(TensorDirectory::Open(path).value().Find("w") != nullptr);
  CHECK_FALSE(std::filesystem::exists(path.string() + ".tmp"));
}

TEST_CASE("a folder that is there is not touched") {
  TemporaryDirectory directory;
  CHECK(absl::IsAlreadyExists(WriteHuggingFaceDirectory(directory.path(), Contents(), MakeBytesInParts)));
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("an error leaves nothing behind") {
  TemporaryDirectory directory;
  const auto fail = [](const TensorInfo&, const ByteSink&) { return absl::ResourceExhaustedError("full"); };
  CHECK(absl::IsResourceExhausted(WriteHuggingFaceDirectory(directory.path() / "export", Contents(), fail)));
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("file names with a folder, hidden, empty or given twice are refused") {
  TemporaryDirectory directory;
  for (const char* name : {"", "a/b", "../x", ".hidden", "config.json"}) {
    HuggingFaceContents contents = Contents();
    contents.files.push_back({name, ""});
    INFO(name);
    CHECK(absl::IsInvalidArgument(
        WriteHuggingFaceDirectory(directory.path() / "x", contents, MakeBytesInParts)));
  }
}

}  // namespace warpsmith
