#include "rollout_workers/weights_file.h"

#include <filesystem>
#include <string>

#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/model/parameters.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/weights_file.h"

namespace warpsmith {
namespace {

ModelConfig Tiny() {
  return {.vocab_size = 97,
          .hidden_size = 32,
          .intermediate_size = 48,
          .num_hidden_layers = 1,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .head_dim = 8,
          .max_position_embeddings = 512,
          .tie_word_embeddings = true};
}

absl::StatusOr<LoadedWeights> Load(const OfferedWeights& published,
                                   DtypeInMemory dtype = DtypeInMemory::kFloat32) {
  return LoadWeightsFile(Tiny(), published, dtype, absl::Now() + absl::Seconds(60));
}

absl::StatusCode Code(const OfferedWeights& published) { return Load(published).status().code(); }

void ChangeOneByte(const std::filesystem::path& path) {
  std::string content = ReadFile(path).value();
  content[content.size() / 2] ^= 1;
  REQUIRE(WriteFileAtomically(path, content).ok());
}

}  // namespace

TEST_CASE("published weights are those that were written, and say so") {
  const TemporaryDirectory directory;
  const OfferedWeights published = WriteWeightsFile(Tiny(), 5, 3, directory.path() / "w");
  const LoadedWeights loaded = Load(published).value();
  CHECK(loaded.policy_version == 3);
  CHECK(loaded.sha256 == RandomWeights(Tiny(), 5).sha256);
  CHECK(loaded.sha256 == CombinedSha256(published));
  CHECK(loaded.sha256 != RandomWeights(Tiny(), 6).sha256);
}

TEST_CASE("a file that is not what its manifest says is refused as what is wrong with it") {
  const TemporaryDirectory directory;
  const OfferedWeights good = WriteWeightsFile(Tiny(), 5, 3, directory.path() / "w");
  const auto changed = [&](auto change) {
    OfferedWeights published = good;
    change(published);
    return Code(published);
  };
  CHECK(changed([](auto&) {}) == absl::StatusCode::kOk);
  CHECK(changed([](auto& w) { w.path += ".absent"; }) == absl::StatusCode::kNotFound);
  CHECK(changed([](auto& w) { w.layout_sha256 = "0"; }) == absl::StatusCode::kFailedPrecondition);
  CHECK(changed([](auto& w) { w.dtype = "int8"; }) == absl::StatusCode::kInvalidArgument);
  CHECK(changed([](auto& w) { w.buffers.pop_back(); }) == absl::StatusCode::kInvalidArgument);
  CHECK(changed([](auto& w) { w.buffers[0].name = "final"; }) == absl::StatusCode::kInvalidArgument);
  CHECK(changed([](auto& w) { w.buffers[0].length_bytes -= 4; }) == absl::StatusCode::kInvalidArgument);
  CHECK(changed([](auto& w) { w.buffers[0].offset_bytes = -4; }) == absl::StatusCode::kInvalidArgument);
  CHECK(changed([](auto& w) { w.buffers[0].offset_bytes = INT64_MAX; }) ==
        absl::StatusCode::kInvalidArgument);
  CHECK(changed([](auto& w) { w.buffers[0].sha256 = std::string(64, '0'); }) == absl::StatusCode::kDataLoss);
}

TEST_CASE("a file cut short or changed by one byte is refused") {
  const TemporaryDirectory directory;
  const OfferedWeights published = WriteWeightsFile(Tiny(), 5, 3, directory.path() / "w");
  ChangeOneByte(published.path);
  CHECK(Code(published) == absl::StatusCode::kDataLoss);
  std::filesystem::resize_file(published.path, std::filesystem::file_size(published.path) - 1);
  CHECK(Code(published) == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("a file in 16 bits is half as long, keeps its dtype for a GPU and becomes float32 for the CPU") {
  const auto [form, dtype] =
      GENERATE(std::pair{FileForm::kBfloat16, at::kBFloat16}, std::pair{FileForm::kFloat16, at::kHalf});
  const TemporaryDirectory directory;
  const OfferedWeights whole = WriteWeightsFile(Tiny(), 5, 3, directory.path() / "whole");
  const OfferedWeights half = WriteWeightsFile(Tiny(), 5, 3, directory.path() / "half", form);
  CHECK(std::filesystem::file_size(half.path) * 2 == std::filesystem::file_size(whole.path));
  const LoadedWeights kept = Load(half, DtypeInMemory::kAsInFile).value(), widened = Load(half).value();
  CHECK(kept.parameters->dtype() == dtype);
  CHECK(widened.parameters->dtype() == at::kFloat);
  CHECK(kept.sha256 == CombinedSha256(half));
  Parameters expected{ParameterLayout(Tiny())};
  expected.InitRandom(5);
  expected = expected.Clone(dtype);
  for (int i = 0; i < expected.num_buffers(); ++i) {
    CHECK(kept.parameters->BufferBytes(i) == expected.BufferBytes(i));
    CHECK(widened.parameters->BufferBytes(i) == expected.Clone(at::kFloat).BufferBytes(i));
  }
}

TEST_CASE("a file whose checksums are not the manifest's is refused with both") {
  const TemporaryDirectory directory;
  const OfferedWeights published =
      WriteWeightsFile(Tiny(), 5, 3, directory.path() / "w", FileForm::kBfloat16);
  ChangeOneByte(published.path);
  const absl::Status status = Load(published).status();
  CHECK(absl::IsDataLoss(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("has the checksum") && Catch::Contains("publish it again"));
}

TEST_CASE("a file that is not read in time is given up") {
  const TemporaryDirectory directory;
  const OfferedWeights published = WriteWeightsFile(Tiny(), 5, 3, directory.path() / "w");
  const absl::Status status =
      LoadWeightsFile(Tiny(), published, DtypeInMemory::kFloat32, absl::InfinitePast()).status();
  CHECK(absl::IsDeadlineExceeded(status));
}

}  // namespace warpsmith
