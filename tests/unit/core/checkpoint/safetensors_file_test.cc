#include "core/checkpoint/safetensors_file.h"

#include "core/base/file.h"
#include "core/checkpoint/safetensors_writer.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/core/checkpoint/tensor_bytes.h"

namespace warpsmith {
namespace {

const std::vector<TensorInfo> kTensors = {{"weight", TensorType::kF32, {5, 3}},
                                          {"bias", TensorType::kBF16, {7}}};

}  // namespace

TEST_CASE("what was written is read, by name and in order") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "x.safetensors";
  REQUIRE(WriteSafetensors(path, kTensors, {{"format", "pt"}}, MakeBytesInParts).ok());
  const SafetensorsFile file = SafetensorsFile::Open(path).value();
  REQUIRE(file.tensors().size() == 2);
  CHECK(file.metadata().at("format") == "pt");
  for (const TensorInfo& tensor : kTensors) {
    REQUIRE(file.Find(tensor.name) != nullptr);
    CHECK(file.Find(tensor.name)->info.shape == tensor.shape);
    CHECK(HasBytes(*file.Find(tensor.name), MakeBytes(tensor)));
  }
  CHECK(file.Find("weigh") == nullptr);
}

TEST_CASE("a file cut short at any byte is refused with its path") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "x.safetensors";
  REQUIRE(WriteSafetensors(path, kTensors, {}, MakeBytesInParts).ok());
  const std::string whole = ReadFile(path).value();
  for (size_t size = 0; size < whole.size(); ++size) {
    REQUIRE(WriteFileAtomically(path, whole.substr(0, size)).ok());
    const auto file = SafetensorsFile::Open(path);
    REQUIRE(absl::IsInvalidArgument(file.status()));
    CHECK(file.status().message().find(path.string()) == 0);
  }
}

TEST_CASE("a file that is not there, is a folder, or is no safetensors file, is refused") {
  TemporaryDirectory directory;
  CHECK(absl::IsNotFound(SafetensorsFile::Open(directory.path() / "none").status()));
  CHECK(absl::IsInvalidArgument(SafetensorsFile::Open(directory.path()).status()));
  const auto path = directory.path() / "text";
  REQUIRE(WriteFileAtomically(path, "this is a text, not a tensor").ok());
  const auto file = SafetensorsFile::Open(path);
  CHECK(absl::IsInvalidArgument(file.status()));
  CHECK(file.status().message().find("is it safetensors?") != absl::string_view::npos);
}

TEST_CASE("views stay when the file object moves") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "x.safetensors";
  REQUIRE(WriteSafetensors(path, kTensors, {}, MakeBytesInParts).ok());
  SafetensorsFile first = SafetensorsFile::Open(path).value();
  const TensorView view = *first.Find("bias");
  const SafetensorsFile second = std::move(first);
  CHECK(HasBytes(view, MakeBytes(kTensors[1])));
  CHECK(second.Find("bias")->bytes.data() == view.bytes.data());
}

}  // namespace warpsmith
