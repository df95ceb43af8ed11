#include "core/checkpoint/safetensors_writer.h"

#include <sys/resource.h>

#include <csignal>

#include "core/checkpoint/safetensors_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/core/checkpoint/tensor_bytes.h"

namespace warpsmith {
namespace {

const std::vector<TensorInfo> kTensors = {
    {"a", TensorType::kU8, {4}}, {"empty", TensorType::kF32, {0}}, {"b", TensorType::kU8, {2}}};

std::vector<std::byte> Bytes(size_t size) { return std::vector<std::byte>(size, std::byte{1}); }

bool IsEmpty(const std::filesystem::path& directory) { return std::filesystem::is_empty(directory); }

}  // namespace

TEST_CASE("tensors are written in turn, in parts, without those that have no bytes") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "x.safetensors";
  SafetensorsWriter writer = SafetensorsWriter::Create(path, kTensors).value();
  CHECK(writer.Write("a", Bytes(3)).ok());
  CHECK(writer.Write("a", Bytes(1)).ok());
  CHECK(writer.Write("b", Bytes(2)).ok());
  CHECK_FALSE(std::filesystem::exists(path));
  REQUIRE(writer.Finish().ok());
  CHECK(SafetensorsFile::Open(path).value().tensors().size() == 3);
}

TEST_CASE("a tensor out of turn, too many bytes and too few are refused") {
  TemporaryDirectory directory;
  SafetensorsWriter writer = SafetensorsWriter::Create(directory.path() / "x", kTensors).value();
  CHECK(absl::IsInvalidArgument(writer.Write("b", Bytes(2))));
  CHECK(absl::IsInvalidArgument(writer.Write("a", Bytes(5))));
  CHECK(writer.Write("a", Bytes(3)).ok());
  const absl::Status status = writer.Finish();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(status.message() == "tensor \"a\" still wants 1 bytes");
}

TEST_CASE("a writer that is given up leaves nothing behind, and the file before as it was") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "x";
  { SafetensorsWriter::Create(path, kTensors).value(); }
  CHECK(IsEmpty(directory.path()));
  REQUIRE(WriteSafetensors(path, kTensors, {}, MakeBytesInParts).ok());
  { SafetensorsWriter::Create(path, {{"other", TensorType::kU8, {1}}}).value(); }
  CHECK(SafetensorsFile::Open(path).value().Find("a") != nullptr);
}

TEST_CASE("an error of the source is passed on and nothing is left") {
  TemporaryDirectory directory;
  const auto fail = [](const TensorInfo&, const ByteSink&) { return absl::InternalError("no bytes"); };
  CHECK(absl::IsInternal(WriteSafetensors(directory.path() / "x", kTensors, {}, fail)));
  CHECK(IsEmpty(directory.path()));
}

TEST_CASE("a full disk is RESOURCE_EXHAUSTED or an error that names the file, and nothing is left") {
  // The size limit of a process stands in for a full disk: writing beyond it fails with EFBIG.
  TemporaryDirectory directory;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{4096, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const absl::Status status =
      WriteSafetensors(directory.path() / "x", {{"large", TensorType::kU8, {100000}}}, {}, MakeBytesInParts);
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK_FALSE(status.ok());
  CHECK(status.message().find("cannot write") == 0);
  CHECK(IsEmpty(directory.path()));
}

}  // namespace warpsmith
