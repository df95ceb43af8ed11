#include "core/tokenizer/tokenizer_json.h"

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

using Json = nlohmann::json;

Json Fixture() { return Json::parse(ReadFile("tests/data/tokenizer/fixture.json").value()); }

absl::Status StatusWith(const std::string& patch) {
  Json json = Fixture();
  json.merge_patch(Json::parse(patch));
  return ParseTokenizerJson(json.dump()).status();
}

}  // namespace

TEST_CASE("the fixture is read") {
  const TokenizerSpec spec = ParseTokenizerJson(Fixture().dump()).value();
  CHECK(spec.token_ids.size() == 700);
  CHECK(spec.token_bytes.size() == 710);
  CHECK(spec.added_tokens.size() == 10);
  CHECK(spec.normalization == Normalization::kNfc);
  CHECK(spec.merges.size() == 700 - 256);
}

TEST_CASE("merges may be written as text and mean the same") {
  Json json = Fixture();
  const TokenizerSpec pairs = ParseTokenizerJson(json.dump()).value();
  for (Json& merge : json["model"]["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  const TokenizerSpec texts = ParseTokenizerJson(json.dump()).value();
  REQUIRE(texts.merges.size() == pairs.merges.size());
  for (size_t i = 0; i < texts.merges.size(); ++i) CHECK(texts.merges[i].product == pairs.merges[i].product);
}

TEST_CASE("tokenizers of another kind are refused as such, naming the part") {
  for (const char* patch :
       {R"({"model": {"type": "WordPiece"}})", R"({"model": {"type": "Unigram"}})",
        R"({"model": {"dropout": 0.1}})", R"({"model": {"byte_fallback": true}})",
        R"({"model": {"continuing_subword_prefix": "##"}})", R"({"normalizer": {"type": "Lowercase"}})",
        R"({"pre_tokenizer": null})", R"({"pre_tokenizer": {"type": "Whitespace"}})",
        R"({"pre_tokenizer": {"type": "Sequence",
                             "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]}})",
        R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}]}})"}) {
    INFO(patch);
    const absl::Status status = StatusWith(patch);
    CHECK(absl::IsUnimplemented(status));
    CHECK(status.message().find("not supported") != absl::string_view::npos);
  }
}

TEST_CASE("files that contradict themselves or lack a part are refused") {
  for (const char* patch :
       {R"({"model": null})", R"({"model": {"vocab": null}})", R"({"model": {"vocab": {"zz": -1}}})",
        R"({"model": {"vocab": {"zz": 99999999999}}})", R"({"model": {"vocab": {"zz": 3}}})",
        R"({"model": {"vocab": {"zz": "3"}}})", R"({"model": {"merges": ["a b c"]}})",
        R"({"model": {"merges": ["ab"]}})", R"({"model": {"merges": [["q", "zzzz"]]}})",
        R"({"model": {"merges": [["q", "q"]]}})", R"({"model": {"merges": [3]}})",
        R"({"added_tokens": [{"id": 0, "content": "<x>"}]})",
        R"({"added_tokens": [{"id": 800, "content": ""}]})", R"({"added_tokens": [{"content": "<x>"}]})",
        R"({"pre_tokenizer": {"type": 7}})",
        R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
              {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"}]}})"}) {
    INFO(patch);
    CHECK(absl::IsInvalidArgument(StatusWith(patch)));
  }
}

TEST_CASE("a merge that makes a special token is refused: any text could forge it") {
  Json json = Fixture();
  const Json& merge = json["model"]["merges"][0];
  const std::string product = merge[0].get<std::string>() + merge[1].get<std::string>();
  json["added_tokens"].push_back(
      {{"id", json["model"]["vocab"][product]}, {"content", product}, {"special", true}});
  const absl::Status status = ParseTokenizerJson(json.dump()).status();
  CHECK(absl::IsInvalidArgument(status));
}

TEST_CASE("a file cut short at any of many places is refused") {
  const std::string whole = Fixture().dump();
  for (size_t size = 0; size < whole.size(); size += 97) {
    CHECK(absl::IsInvalidArgument(ParseTokenizerJson(whole.substr(0, size)).status()));
  }
}

TEST_CASE("nesting without end does no harm") {
  std::string normalizer = R"({"type": "NFC"})";
  for (int depth = 0; depth < 20; ++depth)
    normalizer = R"({"type": "Sequence", "normalizers": [)" + normalizer + "]}";
  CHECK(absl::IsUnimplemented(StatusWith(R"({"normalizer": )" + normalizer + "}")));
  CHECK(absl::IsInvalidArgument(ParseTokenizerJson(std::string(1'000'000, '[')).status()));
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  CHECK(absl::IsInvalidArgument(
      ParseTokenizerJson(R"({"normalizer": {"type": "NFD", "x": )" + deep + "}}").status()));
}

}  // namespace warpsmith
