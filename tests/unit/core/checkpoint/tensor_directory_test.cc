#include "core/checkpoint/tensor_directory.h"

#include "core/base/file.h"
#include "core/checkpoint/safetensors_writer.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/core/checkpoint/tensor_bytes.h"

namespace warpsmith {
namespace {

const std::vector<TensorInfo> kTensors = {{"a", TensorType::kU8, {100}},
                                          {"b", TensorType::kF32, {50}},
                                          {"c", TensorType::kU8, {900}},
                                          {"d", TensorType::kU8, {}},
                                          {"e", TensorType::kBF16, {0}}};

void CheckAll(const std::filesystem::path& directory) {
  const auto read = TensorDirectory::Open(directory);
  INFO(read.status().ToString());
  REQUIRE(read.ok());
  CHECK(read->tensors().size() == kTensors.size());
  for (const TensorInfo& tensor : kTensors) {
    REQUIRE(read->Find(tensor.name) != nullptr);
    CHECK(HasBytes(*read->Find(tensor.name), MakeBytes(tensor)));
  }
  CHECK(read->Find("f") == nullptr);
}

std::string OpenError(const std::filesystem::path& directory) {
  const auto read = TensorDirectory::Open(directory);
  REQUIRE(absl::IsInvalidArgument(read.status()));
  return std::string(read.status().message());
}

}  // namespace

TEST_CASE("what fits is one file without index") {
  TemporaryDirectory directory;
  REQUIRE(WriteTensorDirectory(directory.path(), kTensors, 1 << 20, MakeBytesInParts).ok());
  CHECK(std::filesystem::exists(directory.path() / "model.safetensors"));
  CHECK_FALSE(std::filesystem::exists(directory.path() / "model.safetensors.index.json"));
  CheckAll(directory.path());
}

TEST_CASE("what does not fit is cut into shards within the limit, a large tensor alone") {
  TemporaryDirectory directory;
  REQUIRE(WriteTensorDirectory(directory.path(), kTensors, 300, MakeBytesInParts).ok());
  CHECK(std::filesystem::exists(directory.path() / "model-00001-of-00003.safetensors"));
  CHECK(std::filesystem::exists(directory.path() / "model-00003-of-00003.safetensors"));
  CHECK(
      SafetensorsFile::Open(directory.path() / "model-00001-of-00003.safetensors").value().tensors().size() ==
      2);
  CHECK(
      SafetensorsFile::Open(directory.path() / "model-00002-of-00003.safetensors").value().tensors().size() ==
      1);
  CheckAll(directory.path());
}

TEST_CASE("no tensors, or the same twice") {
  TemporaryDirectory directory;
  CHECK(WriteTensorDirectory(directory.path(), {}, 100, MakeBytesInParts).ok());
  CHECK(TensorDirectory::Open(directory.path()).value().tensors().empty());
  CHECK(absl::IsInvalidArgument(WriteTensorDirectory(
      directory.path(), {kTensors[0], kTensors[1], kTensors[0]}, 100, MakeBytesInParts)));
}

TEST_CASE("a folder without weights, or with a shard missing, is NOT_FOUND") {
  TemporaryDirectory directory;
  CHECK(absl::IsNotFound(TensorDirectory::Open(directory.path()).status()));
  REQUIRE(WriteTensorDirectory(directory.path(), kTensors, 300, MakeBytesInParts).ok());
  std::filesystem::remove(directory.path() / "model-00002-of-00003.safetensors");
  CHECK(absl::IsNotFound(TensorDirectory::Open(directory.path()).status()));
}

TEST_CASE("an index that is broken, points elsewhere or disagrees with the shards is refused") {
  TemporaryDirectory directory;
  REQUIRE(WriteTensorDirectory(directory.path(), kTensors, 300, MakeBytesInParts).ok());
  const auto index = directory.path() / "model.safetensors.index.json";
  const std::string whole = ReadFile(index).value();
  const auto error_with = [&](const std::string& text) {
    REQUIRE(WriteFileAtomically(index, text).ok());
    return OpenError(directory.path());
  };
  CHECK(error_with(whole.substr(0, whole.size() / 2)).find("is not JSON") != std::string::npos);
  CHECK(error_with("{}").find("has no weight_map") != std::string::npos);
  CHECK(error_with(R"({"weight_map": {"a": "../a.safetensors"}})").find("no file of this folder") !=
        std::string::npos);
  CHECK(error_with(R"({"weight_map": {"a": 3}})").find("no file of this folder") != std::string::npos);
  CHECK(error_with(R"({"weight_map": {"a": "x", "a": "x"}})").find("twice") != std::string::npos);
  CHECK(error_with(R"({"weight_map": {"a": "model-00001-of-00003.safetensors"}})").find("does not have") !=
        std::string::npos);
  std::string moved = whole;
  moved.replace(moved.find("\"c\": \"model-00002"), 17, "\"c\": \"model-00001");
  CHECK(error_with(moved).find("model-00001") != std::string::npos);
}

}  // namespace warpsmith
