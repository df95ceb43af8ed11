// Compares ids with those of the `tokenizers` package, made by tests/data/tokenizer/make_golden.py.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/tokenizer/tokenizer.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

constexpr char kDirectory[] = "tests/data/tokenizer/";
constexpr size_t kDigitsAString = 4;

Json ReadJson(const std::filesystem::path& path) { return Json::parse(ReadFile(path).value()); }

std::vector<std::string> StringsOf(const Json& golden) {
  std::vector<std::string> strings;
  for (const Json& entry : golden.at("strings")) {
    if (entry.is_string()) {
      strings.push_back(entry);
      continue;
    }
    const std::string hex = entry.at("hex");
    std::string bytes;
    for (size_t i = 0; i < hex.size(); i += 2) {
      bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    strings.push_back(std::move(bytes));
  }
  return strings;
}

std::string DigestOf(const std::vector<int32_t>& ids) {
  Sha256 sha;
  sha.Update(ids.data(), ids.size() * sizeof(int32_t));
  return sha.HexDigest().substr(0, kDigitsAString);
}

// The strings whose ids differ, with the ids we found, for the message of a failure.
std::vector<std::string> Differences(const Tokenizer& tokenizer, const std::vector<std::string>& strings,
                                     const std::string& digests) {
  std::vector<std::string> differences;
  for (size_t i = 0; i < strings.size(); ++i) {
    const std::vector<int32_t> ids = tokenizer.Encode(strings[i], SpecialTokens::kParse).value();
    if (DigestOf(ids) == digests.substr(i * kDigitsAString, kDigitsAString)) continue;
    std::string shown = Json(strings[i]).dump(-1, ' ', true, Json::error_handler_t::replace) + " ->";
    for (const int32_t id : ids) shown += " " + std::to_string(id);
    differences.push_back(std::move(shown));
  }
  return differences;
}

void CheckAgrees(const std::string& name, const Json& tokenizer_json, const Json& golden) {
  const auto tokenizer = Tokenizer::Parse(tokenizer_json.dump());
  INFO(name << ": " << tokenizer.status().ToString());
  REQUIRE(tokenizer.ok());
  const std::vector<std::string> strings = StringsOf(golden);
  const std::string digests = golden.at("digests").at(name);
  REQUIRE(strings.size() >= 2000);
  REQUIRE(digests.size() == strings.size() * kDigitsAString);
  const std::vector<std::string> differences = Differences(*tokenizer, strings, digests);
  for (size_t i = 0; i < std::min<size_t>(5, differences.size()); ++i) UNSCOPED_INFO(differences[i]);
  CHECK(differences.size() == 0);
}

// vocab.json and merges.txt of Qwen2; nothing if they are not on this machine.
std::optional<std::filesystem::path> Qwen2Directory() {
  const char* named = std::getenv("WARPSMITH_QWEN2_TOKENIZER_DIR");
  const auto directory = named != nullptr
                             ? std::filesystem::path(named)
                             : std::filesystem::path("..") / "shared" / "data" / "qwen2_tokenizer";
  if (!std::filesystem::exists(directory / "vocab.json")) return std::nullopt;
  return directory;
}

}  // namespace

TEST_CASE("the fixture's ids are those of the tokenizers package, in each of its variants") {
  const Json golden = ReadJson(std::string(kDirectory) + "golden.json");
  const Json fixture = ReadJson(std::string(kDirectory) + "fixture.json");
  CheckAgrees("fixture", fixture, golden);
  for (const auto& [name, patch] : golden.at("variants").items()) {
    Json variant = fixture;
    variant.merge_patch(patch);
    CheckAgrees(name, variant, golden);
  }
}

TEST_CASE("Qwen2's ids are those of the tokenizers package") {
  const std::optional<std::filesystem::path> directory = Qwen2Directory();
  if (!directory.has_value()) {
    WARN("skipped: Qwen2's vocab.json is not here; name its folder in WARPSMITH_QWEN2_TOKENIZER_DIR");
    return;
  }
  const Json golden = ReadJson(std::string(kDirectory) + "golden.json");
  Json qwen2 = golden.at("qwen2_frame");
  qwen2["model"]["vocab"] = ReadJson(*directory / "vocab.json");
  Json& merges = qwen2["model"]["merges"] = Json::array();
  std::ifstream lines(*directory / "merges.txt");
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) merges.push_back(line);
  }
  CheckAgrees("qwen2", qwen2, golden);
}

}  // namespace warpsmith
