#include "rollout_workers/weights.h"

#include <filesystem>

#include "core/base/file.h"
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

absl::StatusCode Code(const OfferedWeights& published) {
  return LoadOfferedWeights(Tiny(), published).status().code();
}

}  // namespace

TEST_CASE("published weights are those that were written, and say so") {
  const TemporaryDirectory directory;
  const OfferedWeights published = WriteWeightsFile(Tiny(), 5, 3, directory.path() / "w");
  const LoadedWeights loaded = LoadOfferedWeights(Tiny(), published).value();
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
  std::string content = ReadFile(published.path).value();
  content[content.size() / 2] ^= 1;
  REQUIRE(WriteFileAtomically(published.path, content).ok());
  CHECK(Code(published) == absl::StatusCode::kDataLoss);
  std::filesystem::resize_file(published.path, content.size() - 1);
  CHECK(Code(published) == absl::StatusCode::kInvalidArgument);
}

}  // namespace warpsmith
