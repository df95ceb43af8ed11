#include "core/tokenizer/tokenizer.h"

#include <thread>

#include "core/base/file.h"
#include "core/base/sha256.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

using Ids = std::vector<int32_t>;

Tokenizer Fixture() {
  return Tokenizer::Parse(ReadFile("tests/data/tokenizer/fixture.json").value()).value();
}

Ids Encode(const Tokenizer& tokenizer, const std::string& text,
           SpecialTokens special = SpecialTokens::kParse) {
  return tokenizer.Encode(text, special).value();
}

}  // namespace

TEST_CASE("text comes back from its ids") {
  const Tokenizer tokenizer = Fixture();
  for (const std::string text :
       {"", " ", "for (int i = 0; i < n; ++i) y[i] = x[i];\n", "\xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80",
        "<|im_start|>user\nhi<|im_end|>"}) {
    CHECK(tokenizer.Decode(Encode(tokenizer, text), DecodeSpecial::kKeep) == text);
    CHECK(tokenizer.Decode(Encode(tokenizer, text, SpecialTokens::kAsText), DecodeSpecial::kKeep) == text);
  }
}

TEST_CASE("special tokens are one id when parsed and many as text") {
  const Tokenizer tokenizer = Fixture();
  const int32_t end = tokenizer.TokenId("<|im_end|>").value();
  CHECK(Encode(tokenizer, "<|im_end|>") == Ids{end});
  const Ids as_text = Encode(tokenizer, "<|im_end|>", SpecialTokens::kAsText);
  CHECK(as_text.size() > 1);
  for (const int32_t id : as_text) CHECK_FALSE(tokenizer.IsSpecial(id));
  CHECK(Encode(tokenizer, "<think>", SpecialTokens::kAsText).size() > 1);
}

TEST_CASE("special tokens are left out of decoded text on request") {
  const Tokenizer tokenizer = Fixture();
  const Ids ids = Encode(tokenizer, "<|im_start|>a<think>b<|im_end|>");
  CHECK(tokenizer.Decode(ids, DecodeSpecial::kSkip) == "a<think>b");
  CHECK(tokenizer.Decode(ids, DecodeSpecial::kKeep) == "<|im_start|>a<think>b<|im_end|>");
}

TEST_CASE("the seams of parts change nothing but what is parsed") {
  const Tokenizer tokenizer = Fixture();
  const std::vector<TextPart> words = {{"Hel"}, {"lo wor"}, {"ld e"}, {"\xcc\x81t\xc3\xa9"}};
  CHECK(tokenizer.EncodeParts(words).value() == Encode(tokenizer, "Hello world e\xcc\x81t\xc3\xa9"));
  const std::vector<TextPart> across = {{"<|im_", SpecialTokens::kParse}, {"end|>", SpecialTokens::kParse}};
  CHECK(tokenizer.EncodeParts(across).value() == Encode(tokenizer, "<|im_end|>", SpecialTokens::kAsText));
  CHECK(tokenizer.EncodeParts({}).value().empty());
}

TEST_CASE("invalid UTF-8 is encoded as its replacement") {
  const Tokenizer tokenizer = Fixture();
  CHECK(Encode(tokenizer,
               "a\xff"
               "b") == Encode(tokenizer,
                              "a\xef\xbf\xbd"
                              "b"));
  CHECK(Encode(tokenizer, "\xed\xa0\x80", SpecialTokens::kAsText).size() > 0);
}

TEST_CASE("ids that are no token decode to nothing") {
  const Tokenizer tokenizer = Fixture();
  CHECK(tokenizer.Decode(Ids{-1, tokenizer.vocab_size(), 1 << 30}, DecodeSpecial::kKeep).empty());
  CHECK_FALSE(tokenizer.IsSpecial(-1));
  CHECK_FALSE(tokenizer.IsSpecial(tokenizer.vocab_size()));
}

TEST_CASE("bytes that are no text decode to replacement characters, as bytes to themselves") {
  const Tokenizer tokenizer = Fixture();
  const Ids ids = {tokenizer.TokenId("\xe2").value(), tokenizer.TokenId("a").value()};
  CHECK(tokenizer.DecodeBytes(ids, DecodeSpecial::kKeep) ==
        "\xe2"
        "a");
  CHECK(tokenizer.Decode(ids, DecodeSpecial::kKeep) ==
        "\xef\xbf\xbd"
        "a");
}

TEST_CASE("tokens are found by their text") {
  const Tokenizer tokenizer = Fixture();
  CHECK(tokenizer.TokenId("<|endoftext|>") == 700);
  CHECK(tokenizer.TokenId("\n").has_value());
  CHECK_FALSE(tokenizer.TokenId("no such token").has_value());
  CHECK(tokenizer.vocab_size() == 710);
}

TEST_CASE("text over the limit is refused") {
  const Tokenizer tokenizer = Fixture();
  const std::string text(Tokenizer::kTextBytesMax + 1, 'x');
  CHECK(absl::IsInvalidArgument(tokenizer.Encode(text, SpecialTokens::kParse).status()));
}

TEST_CASE("loading keeps the files of the tokenizer for whoever exports it") {
  TemporaryDirectory directory;
  const std::string json = ReadFile("tests/data/tokenizer/fixture.json").value();
  REQUIRE(WriteFileAtomically(directory.path() / "tokenizer.json", json).ok());
  REQUIRE(WriteFileAtomically(directory.path() / "tokenizer_config.json", "{}").ok());
  REQUIRE(WriteFileAtomically(directory.path() / "weights.bin", "no").ok());
  const Tokenizer tokenizer = Tokenizer::Load(directory.path()).value();
  REQUIRE(tokenizer.files().size() == 2);
  CHECK(tokenizer.files()[0].name == "tokenizer.json");
  CHECK(tokenizer.files()[0].content == json);
  CHECK(tokenizer.files()[1].name == "tokenizer_config.json");
  CHECK(tokenizer.sha256() == Sha256Hex(json));
}

TEST_CASE("a folder without tokenizer, and a tokenizer that is none, are errors that name the file") {
  TemporaryDirectory directory;
  CHECK(absl::IsNotFound(Tokenizer::Load(directory.path()).status()));
  REQUIRE(WriteFileAtomically(directory.path() / "tokenizer.json", "{}").ok());
  const auto loaded = Tokenizer::Load(directory.path());
  CHECK(absl::IsUnimplemented(loaded.status()));
  CHECK(loaded.status().message().find(directory.path().string()) != absl::string_view::npos);
}

TEST_CASE("threads may share a tokenizer") {
  const Tokenizer tokenizer = Fixture();
  const std::string text = "The quick brown fox <|im_end|> jumps, 1234 times; caf\xc3\xa9.\n";
  const Ids expected = Encode(tokenizer, text);
  std::vector<std::thread> threads;
  std::vector<int> num_equal(4, 0);
  for (size_t i = 0; i < num_equal.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 100; ++round) num_equal[i] += Encode(tokenizer, text) == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_equal == std::vector<int>(4, 100));
}

}  // namespace warpsmith
