#include "trainer/workers/weight_publisher.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/base/unique_fd.h"
#include "core/kernels/memory_checksum.h"
#include "core/model/model_fields.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/trainer/policy_batch.h"

namespace warpsmith {
namespace {

int NumFiles(const std::filesystem::path& directory) {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

// What a trainer that was killed would have left of `published`: the same name but for the process.
std::filesystem::path LeftBehind(const PublishedWeights& published) {
  const std::string path =
      absl::StrReplaceAll(published.path, {{absl::StrCat("_", getpid(), "_"), "_999999999_"}});
  REQUIRE(path != published.path);
  std::filesystem::copy_file(published.path, path);
  return path;
}

}  // namespace

TEST_CASE("published weights are the buffers one after the other, each with its digest") {
  const TemporaryDirectory directory;
  const auto policy = MakePolicy();
  WeightPublisher publisher(directory.path(), "runs/a");
  const auto published = publisher.Write(policy->weights(), 3);
  REQUIRE(published.ok());
  const std::string bytes = ReadFile(published->path).value();
  REQUIRE(static_cast<int>(published->buffers.size()) == policy->weights().num_buffers());
  for (const PublishedBuffer& buffer : published->buffers) {
    CHECK(Sha256Hex(bytes.substr(buffer.offset_bytes, buffer.length_bytes)) == buffer.sha256);
  }
  CHECK(published->model_fields == FieldsOf(policy->weights().config()));
  for (uint64_t version = 4; version < 8; ++version) {
    REQUIRE(publisher.Write(policy->weights(), version).ok());
  }
  CHECK(NumFiles(directory.path()) == 2);
}

TEST_CASE("weights in 16 bits are those of the trainer, rounded, each buffer with its checksum") {
  const bool is_float16 = GENERATE(false, true);
  const TemporaryDirectory directory;
  const auto policy = MakePolicy();
  WeightPublisher publisher(directory.path(), "runs/a");
  const auto published = publisher.Write(policy->weights(), 3,
                                         is_float16 ? PublishedDtype::kFloat16 : PublishedDtype::kBfloat16);
  REQUIRE(published.ok());
  CHECK(published->dtype == (is_float16 ? "float16" : "bfloat16"));
  const std::string bytes = ReadFile(published->path).value();
  const Parameters rounded = policy->weights().Clone(is_float16 ? at::kHalf : at::kBFloat16);
  for (int i = 0; i < rounded.num_buffers(); ++i) {
    const PublishedBuffer& buffer = published->buffers.at(i);
    const std::string part = bytes.substr(buffer.offset_bytes, buffer.length_bytes);
    CHECK(part == rounded.BufferBytes(i));
    CHECK(ToHex(ChecksumOf(part)) == buffer.checksum);
    CHECK(buffer.sha256.empty());
  }
}

TEST_CASE("a weight that float16 would make infinite is refused by name; bfloat16 takes it") {
  const TemporaryDirectory directory;
  const auto policy = MakePolicy();
  policy->weights().RequireGrad(false);
  WeightPublisher publisher(directory.path(), "runs/a");
  const auto write = [&](float value, PublishedDtype dtype) {
    policy->weights().View(2, "down")[0][1].fill_(value);
    return publisher.Write(policy->weights(), 3, dtype).status();
  };
  CHECK(write(65519, PublishedDtype::kFloat16).ok());  // rounds to the largest
  for (const PublishedDtype dtype : {PublishedDtype::kAsTrained, PublishedDtype::kBfloat16})
    CHECK(write(65520, dtype).ok());
  CHECK(write(65520, PublishedDtype::kFloat16).message() ==
        "cannot publish weights in float16: tensor model.layers.1.mlp.down_proj.weight has the value 65520; "
        "float16 ends at 65504; use bfloat16 workers");
  CHECK(write(std::numeric_limits<float>::quiet_NaN(), PublishedDtype::kFloat16).message() ==
        "cannot publish weights in float16: tensor model.layers.1.mlp.down_proj.weight has values that are "
        "not finite");
}

TEST_CASE("what a killed trainer left is removed by the next one of the same run, and nothing else") {
  const TemporaryDirectory directory;
  const auto policy = MakePolicy();
  WeightPublisher live(directory.path(), "runs/a");
  WeightPublisher other(directory.path(), "runs/b");
  const auto of_live = live.Write(policy->weights(), 1), of_other = other.Write(policy->weights(), 1);
  REQUIRE(of_live.ok());
  REQUIRE(of_other.ok());
  const std::filesystem::path left = LeftBehind(*of_live), left_by_other = LeftBehind(*of_other);
  const std::filesystem::path foreign = directory.path() / "weights.1.bin";
  std::ofstream(foreign) << "of somebody else";

  for (const char* same_run : {"runs/a/", "runs/../runs/a"}) {
    if (!std::filesystem::exists(left)) std::filesystem::copy_file(of_live->path, left);
    const WeightPublisher next(directory.path(), same_run);
    CHECK_FALSE(std::filesystem::exists(left));
    CHECK(std::filesystem::exists(of_live->path));  // its owner lives
    CHECK(std::filesystem::exists(of_other->path));
    CHECK(std::filesystem::exists(left_by_other));
    CHECK(std::filesystem::exists(foreign));
  }
}

TEST_CASE("a worker reads to its end what is removed or published again meanwhile") {
  const TemporaryDirectory directory;
  const auto policy = MakePolicy();
  WeightPublisher publisher(directory.path(), "runs/a");
  const auto published = publisher.Write(policy->weights(), 1);
  REQUIRE(published.ok());
  const std::string before = ReadFile(published->path).value();
  const std::filesystem::path left = LeftBehind(*published);
  const UniqueFd removed(open(left.c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd replaced(open(published->path.c_str(), O_RDONLY | O_CLOEXEC));
  const WeightPublisher next(directory.path(), "runs/a");
  CHECK_FALSE(std::filesystem::exists(left));
  policy->weights().RequireGrad(false);
  policy->weights().InitRandom(77);
  REQUIRE(publisher.Write(policy->weights(), 1).ok());
  CHECK(ReadFile(published->path).value() != before);
  for (const UniqueFd* file : {&removed, &replaced}) {
    std::string bytes(before.size(), '\0');
    CHECK(pread(file->get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(before.size()));
    CHECK(bytes == before);
  }
}

TEST_CASE("nothing is left when the publisher ends, also of a version that was published twice") {
  const TemporaryDirectory directory;
  const auto policy = MakePolicy();
  {
    WeightPublisher publisher(directory.path(), "runs/a");
    for (const uint64_t version : {1, 1, 2, 1}) REQUIRE(publisher.Write(policy->weights(), version).ok());
    CHECK(NumFiles(directory.path()) == 2);
  }
  CHECK(NumFiles(directory.path()) == 0);
}

}  // namespace warpsmith
