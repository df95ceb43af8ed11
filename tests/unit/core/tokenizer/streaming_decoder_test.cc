#include "core/tokenizer/streaming_decoder.h"

#include "core/base/counter_random.h"
#include "core/base/file.h"
#include "core/base/utf8.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

Tokenizer Fixture() {
  return Tokenizer::Parse(ReadFile("tests/data/tokenizer/fixture.json").value()).value();
}

// The ids of single bytes.
std::vector<int32_t> IdsOfBytes(const Tokenizer& tokenizer, const std::string& bytes) {
  std::vector<int32_t> ids;
  for (const char byte : bytes) ids.push_back(tokenizer.TokenId(std::string(1, byte)).value());
  return ids;
}

}  // namespace

TEST_CASE("a character comes out when its last byte does") {
  const Tokenizer tokenizer = Fixture();
  StreamingDecoder decoder(&tokenizer, DecodeSpecial::kKeep);
  const std::vector<int32_t> ids = IdsOfBytes(tokenizer, "a\xf0\x9f\x98\x80");
  CHECK(decoder.Push(ids[0]) == "a");
  CHECK(decoder.Push(ids[1]).empty());
  CHECK(decoder.Push(ids[2]).empty());
  CHECK(decoder.Push(ids[3]).empty());
  CHECK(decoder.Push(ids[4]) == "\xf0\x9f\x98\x80");
  CHECK(decoder.Finish().empty());
}

TEST_CASE("what stays incomplete is replaced at the end, once") {
  const Tokenizer tokenizer = Fixture();
  StreamingDecoder decoder(&tokenizer, DecodeSpecial::kKeep);
  for (const int32_t id : IdsOfBytes(tokenizer, "\xe2\x82")) CHECK(decoder.Push(id).empty());
  CHECK(decoder.Finish() == "\xef\xbf\xbd");
  CHECK(decoder.Finish().empty());
}

TEST_CASE("special tokens may be left out") {
  const Tokenizer tokenizer = Fixture();
  StreamingDecoder decoder(&tokenizer, DecodeSpecial::kSkip);
  CHECK(decoder.Push(tokenizer.TokenId("<|im_end|>").value()).empty());
  CHECK(decoder.Push(tokenizer.TokenId("<think>").value()) == "<think>");
}

TEST_CASE("all pieces together are the decoded whole, for random ids, and each is valid") {
  const Tokenizer tokenizer = Fixture();
  for (uint64_t round = 0; round < 200; ++round) {
    StreamingDecoder decoder(&tokenizer, DecodeSpecial::kKeep);
    std::vector<int32_t> ids;
    std::string streamed;
    for (uint64_t i = 0; i < 40; ++i) {
      // Mostly bytes, so that characters are often broken.
      ids.push_back(static_cast<int32_t>(UniformWord(round, i) % 300));
      const std::string text = decoder.Push(ids.back());
      CHECK(IsValidUtf8(text));
      streamed += text;
    }
    streamed += decoder.Finish();
    CHECK(streamed == tokenizer.Decode(ids, DecodeSpecial::kKeep));
  }
}

}  // namespace warpsmith
