// Tokenizers of Llama 3's and Qwen3's make against the `tokenizers` package, on random strings.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/build_info.h"
#include "core/base/file.h"
#include "core/tokenizer/tokenizer.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

constexpr int64_t kFileBytesMax = int64_t{1} << 30;
constexpr size_t kShownMax = 5;

// vocab.json and merges.txt of Qwen2; empty if they are not on this machine.
std::filesystem::path Qwen2Directory() {
  const char* const named = std::getenv("WARPSMITH_QWEN2_TOKENIZER_DIR");
  const std::filesystem::path directory =
      named != nullptr ? named : std::filesystem::path("..") / "shared" / "data" / "qwen2_tokenizer";
  return std::filesystem::exists(directory / "vocab.json") ? directory : std::filesystem::path();
}

std::vector<std::vector<int32_t>> ReadIds(const std::filesystem::path& path) {
  const std::string bytes = ReadFile(path, kFileBytesMax).value();
  std::vector<int32_t> numbers(bytes.size() / sizeof(int32_t));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  std::vector<std::vector<int32_t>> ids;
  for (size_t at = 0; at < numbers.size(); at += 1 + static_cast<size_t>(numbers[at])) {
    ids.emplace_back(numbers.begin() + at + 1, numbers.begin() + at + 1 + numbers[at]);
  }
  return ids;
}

std::string Shown(const std::string& text, const std::vector<int32_t>& ours,
                  const std::vector<int32_t>& theirs) {
  return Json(text).dump(-1, ' ', true) + " -> ours " + Json(ours).dump() + ", theirs " + Json(theirs).dump();
}

// Whether decoding gives a text back: not where it was normalised first.
enum class Decoding { kGivesBack, kGivesNormalized };

void CheckAgrees(const std::filesystem::path& folder, const std::string& name, Decoding decoding) {
  const auto tokenizer = Tokenizer::Parse(ReadFile(folder / (name + ".json"), kFileBytesMax).value());
  INFO(name << ": " << tokenizer.status().ToString());
  REQUIRE(tokenizer.ok());
  const std::vector<std::string> strings =
      Json::parse(ReadFile(folder / "strings.json", kFileBytesMax).value());
  const std::vector<std::vector<int32_t>> theirs = ReadIds(folder / (name + ".ids"));
  REQUIRE(theirs.size() == strings.size());
  size_t num_different = 0, num_lost = 0;
  for (size_t i = 0; i < strings.size(); ++i) {
    const std::vector<int32_t> ours = tokenizer->Encode(strings[i], SpecialTokens::kParse).value();
    if (ours != theirs[i] && num_different++ < kShownMax) UNSCOPED_INFO(Shown(strings[i], ours, theirs[i]));
    if (decoding == Decoding::kGivesNormalized) continue;
    num_lost += tokenizer->Decode(ours, DecodeSpecial::kKeep) == strings[i] ? 0 : 1;
  }
  CHECK(num_different == 0);
  CHECK(num_lost == 0);
}

void CheckStrings(int count) {
  const TemporaryDirectory folder;
  const std::filesystem::path qwen2 = Qwen2Directory();
  const std::string command = GetBuildInfo().python + " -B tests/integration/tokenizer_agreement.py " +
                              folder.path().string() + " " + std::to_string(count) + " " + qwen2.string();
  REQUIRE(std::system(command.c_str()) == 0);
  CheckAgrees(folder.path(), "llama3", Decoding::kGivesBack);
  if (qwen2.empty()) {
    WARN("Qwen3 skipped: Qwen2's vocab.json is not here; name its folder in WARPSMITH_QWEN2_TOKENIZER_DIR");
    return;
  }
  CheckAgrees(folder.path(), "qwen3", Decoding::kGivesNormalized);
}

}  // namespace

TEST_CASE(
    "ids of 100,000 random strings are those of the tokenizers package for Llama 3's and Qwen3's scheme") {
  CheckStrings(100000);
}

}  // namespace warpsmith
