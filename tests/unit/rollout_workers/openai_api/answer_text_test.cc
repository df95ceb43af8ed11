#include "rollout_workers/openai_api/answer_text.h"

#include "core/base/file.h"
#include "core/base/utf8.h"
#include "tests/support/catch.h"

namespace warpsmith::openai {
namespace {

const Tokenizer& Fixture() {
  static const Tokenizer tokenizer =
      Tokenizer::Parse(ReadFile("tests/data/tokenizer/fixture.json").value()).value();
  return tokenizer;
}

std::vector<int32_t> Ids(const std::string& text) {
  return Fixture().Encode(text, SpecialTokens::kParse).value();
}

}  // namespace

TEST_CASE("pieces make the whole text, and no piece cuts a character") {
  const std::string text = "Grüße, 世界 🎉 and a tail";
  AnswerText answer(&Fixture(), {});
  std::string pieces;
  int64_t num_tokens = 0;
  for (const int32_t id : Ids(text)) {
    answer.Push({id, -1});
    const AnswerPiece piece = answer.Take();
    CHECK(IsValidUtf8(piece.text));
    CHECK(piece.tokens.size() == 1);
    pieces += piece.text;
    ++num_tokens;
  }
  answer.Finish();
  pieces += answer.Take().text;
  CHECK(pieces == text);
  CHECK(answer.num_tokens() == num_tokens);
}

TEST_CASE("a character that never becomes complete comes at the end, as U+FFFD") {
  AnswerText answer(&Fixture(), {});
  const std::vector<int32_t> ids = Ids("🎉");
  REQUIRE(ids.size() > 1);
  answer.Push({ids[0], -1});
  CHECK_FALSE(answer.has_text());
  answer.Finish();
  CHECK(answer.Take().text == "\uFFFD");
}

TEST_CASE("the token that ends an answer is counted and shown, and is no text") {
  AnswerText answer(&Fixture(), {});
  answer.Push({Ids("ok")[0], -0.5F});
  answer.PushEnd({Ids("<|im_end|>")[0], -0.25F});
  answer.Finish();
  const AnswerPiece piece = answer.Take();
  CHECK_THAT(piece.text, !Catch::Contains("im_end"));
  REQUIRE(piece.tokens.size() == 2);
  CHECK(piece.tokens[1].bytes == "<|im_end|>");
  CHECK(piece.tokens[1].log_prob == -0.25F);
  CHECK(piece.tokens[1].text_offset == static_cast<int64_t>(piece.text.size()));
}

TEST_CASE("a stop string across tokens ends the answer with the token that completes it") {
  const std::vector<int32_t> ids = Ids("first;\n\nsecond\n\n");
  AnswerText answer(&Fixture(), {";\n\nsec"});
  size_t num_pushed = 0;
  while (num_pushed < ids.size() && !answer.stopped()) answer.Push({ids[num_pushed++], -1});
  CHECK(answer.stopped());
  CHECK(num_pushed < ids.size());
  answer.Push({ids[num_pushed], -1});
  answer.PushEnd({ids[num_pushed], -1});
  answer.Finish();
  const AnswerPiece piece = answer.Take();
  CHECK(piece.text == "first");
  CHECK(piece.tokens.size() == num_pushed);
}

TEST_CASE("what could have stood in a token's place is shown with it, and is no text") {
  AnswerText answer(&Fixture(), {});
  const int32_t ok = Ids("ok")[0], end = Ids("<|im_end|>")[0];
  const std::vector<TokenLogProb> top = {{end, -0.25F}, {ok, -0.5F}};
  answer.Push({ok, -0.5F}, top);
  answer.PushEnd({end, -0.25F}, top);
  answer.Finish();
  const AnswerPiece piece = answer.Take();
  REQUIRE(piece.tokens.size() == 2);
  for (const AnswerToken& token : piece.tokens) {
    REQUIRE(token.alternatives.size() == 2);
    CHECK(token.alternatives[0].bytes == "<|im_end|>");
    CHECK(token.alternatives[0].log_prob == -0.25F);
    CHECK(token.alternatives[1].bytes == piece.tokens[0].bytes);
  }
  CHECK_THAT(piece.text, !Catch::Contains("im_end"));
}

TEST_CASE("an offset says where in the text a token begins, in characters") {
  // A special token, which is no text, and characters of several tokens lie before the last tokens.
  std::vector<int32_t> ids = Ids("äb<|im_start|> 漢c 🎉d");
  AnswerText answer(&Fixture(), {});
  for (const int32_t id : ids) answer.Push({id, -1});
  answer.PushEnd({Ids("<|im_end|>")[0], -1});
  answer.Finish();
  const AnswerPiece piece = answer.Take();
  REQUIRE(piece.text == "äb 漢c 🎉d");
  std::vector<size_t> begins;  // of characters, in bytes, and the end
  for (size_t i = 0; i <= piece.text.size(); ++i) {
    if (i == piece.text.size() || (piece.text[i] & 0xc0) != 0x80) begins.push_back(i);
  }
  size_t num_cut = 0;
  for (const AnswerToken& token : piece.tokens) {
    const size_t begin = begins.at(static_cast<size_t>(token.text_offset));
    INFO(token.bytes << " at " << token.text_offset);
    if (!IsValidUtf8(token.bytes)) {
      ++num_cut;
    } else if (token.bytes[0] != '<') {
      CHECK(piece.text.substr(begin, token.bytes.size()) == token.bytes);
    }
  }
  CHECK(num_cut >= 4);
  CHECK(begins.at(static_cast<size_t>(piece.tokens.back().text_offset)) == piece.text.size());
}

TEST_CASE("behind a character that is cut short, which is U+FFFD, offsets go on") {
  const int32_t cut = Ids("🎉")[0], ok = Ids("ok")[0];
  AnswerText answer(&Fixture(), {});
  for (const int32_t id : {cut, ok, cut}) answer.Push({id, -1});
  answer.PushEnd({Ids("<|im_end|>")[0], -1});
  answer.Finish();
  const AnswerPiece piece = answer.Take();
  const std::string shown = Fixture().Decode({&ok, 1}, DecodeSpecial::kKeep);
  REQUIRE(piece.text == "\uFFFD" + shown + "\uFFFD");
  const auto length = static_cast<int64_t>(shown.size());
  const int64_t expected[] = {0, 1, 1 + length, 2 + length};
  for (size_t i = 0; i < 4; ++i) CHECK(piece.tokens.at(i).text_offset == expected[i]);
}

}  // namespace warpsmith::openai
