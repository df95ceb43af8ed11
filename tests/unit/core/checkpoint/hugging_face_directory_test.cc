#include "core/checkpoint/hugging_face_directory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <string>

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

std::ptrdiff_t NumEntries(const std::filesystem::path& directory) {
  return std::distance(std::filesystem::directory_iterator(directory), {});
}

}  // namespace

TEST_CASE("all files and tensors are there, and no temporary folder") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "a" / "export";
  REQUIRE(WriteHuggingFaceDirectory(path, Contents(), MakeBytesInParts).ok());
  CHECK(ReadFile(path / "config.json").value() == "{}");
  CHECK(ReadFile(path / "tokenizer.json").value() == "[]");
  CHECK(TensorDirectory::Open(path).value().Find("w") != nullptr);
  CHECK(NumEntries(path.parent_path()) == 1);
}

TEST_CASE("what was there before is replaced as a whole, and removed") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "export";
  HuggingFaceContents older = Contents();
  older.files.push_back({"older.txt", "older"});
  REQUIRE(WriteHuggingFaceDirectory(path, older, MakeBytesInParts).ok());
  HuggingFaceContents newer = Contents();
  newer.files[0].content = "{\"newer\": 1}";
  REQUIRE(WriteHuggingFaceDirectory(path, newer, MakeBytesInParts).ok());
  CHECK(ReadFile(path / "config.json").value() == "{\"newer\": 1}");
  CHECK(TensorDirectory::Open(path).value().Find("w") != nullptr);
  CHECK_FALSE(std::filesystem::exists(path / "older.txt"));
  CHECK(NumEntries(directory.path()) == 1);
}

TEST_CASE("a folder that cannot be written leaves the one before it whole") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "export";
  REQUIRE(WriteHuggingFaceDirectory(path, Contents(), MakeBytesInParts).ok());
  const auto fail = [&](const TensorInfo&, const ByteSink&) {
    CHECK(TensorDirectory::Open(path).ok());  // all the while
    return absl::ResourceExhaustedError("full");
  };
  CHECK(absl::IsResourceExhausted(WriteHuggingFaceDirectory(path, Contents(), fail)));
  CHECK(ReadFile(path / "config.json").value() == "{}");
  CHECK(TensorDirectory::Open(path).value().Find("w") != nullptr);
  CHECK(NumEntries(directory.path()) == 1);
}

TEST_CASE("a process leaves alone what another one is writing for the same place") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "export";
  const pid_t child = fork();
  if (child == 0) {
    // Ends in the midst, as if killed.
    (void)WriteHuggingFaceDirectory(path, Contents(),
                                    [](const TensorInfo&, const ByteSink&) -> absl::Status { _exit(0); });
    _exit(1);
  }
  int end = 0;
  REQUIRE(waitpid(child, &end, 0) == child);
  REQUIRE(WEXITSTATUS(end) == 0);
  const auto of_child = directory.path() / ("export." + std::to_string(child) + ".tmp");
  REQUIRE(WriteHuggingFaceDirectory(path, Contents(), MakeBytesInParts).ok());
  CHECK(ReadFile(of_child / "config.json").value() == "{}");
  CHECK(NumEntries(directory.path()) == 2);
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
