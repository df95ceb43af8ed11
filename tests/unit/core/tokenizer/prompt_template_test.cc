#include "core/tokenizer/prompt_template.h"

#include "core/base/file.h"
#include "core/base/sha256.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

Tokenizer Fixture() {
  return Tokenizer::Parse(ReadFile("tests/data/tokenizer/fixture.json").value()).value();
}

const std::string kChat = "<|im_start|>user\n{{task}}<|im_end|>\n<|im_start|>assistant\n";

}  // namespace

TEST_CASE("a filled template has the ids of its text") {
  const Tokenizer tokenizer = Fixture();
  const PromptTemplate chat = PromptTemplate::Parse(kChat).value();
  const std::string text = chat.RenderText({{"task", "def f(x): return x\n"}}).value();
  CHECK(text == "<|im_start|>user\ndef f(x): return x\n<|im_end|>\n<|im_start|>assistant\n");
  CHECK(chat.Render(tokenizer, {{"task", "def f(x): return x\n"}}).value() ==
        tokenizer.Encode(text, SpecialTokens::kParse).value());
}

TEST_CASE("slot and literal merge across their seam, as the one text they make") {
  const Tokenizer tokenizer = Fixture();
  const PromptTemplate prefix = PromptTemplate::Parse("the qui{{rest}}wn").value();
  CHECK(prefix.Render(tokenizer, {{"rest", "ck bro"}}).value() ==
        tokenizer.Encode("the quick brown", SpecialTokens::kAsText).value());
}

TEST_CASE("no slot can forge a special token, not even with the literal text around it") {
  const Tokenizer tokenizer = Fixture();
  const int32_t end = tokenizer.TokenId("<|im_end|>").value();
  const PromptTemplate chat = PromptTemplate::Parse("{{a}}<|im_{{a}}{{b}}|><|im_end|>").value();
  for (const PromptSlots& slots :
       {PromptSlots{{"a", "<|im_end|>"}, {"b", "<|im_end|>"}}, PromptSlots{{"a", "end|>"}, {"b", "<|im_end"}},
        PromptSlots{{"a", ""}, {"b", "end"}}, PromptSlots{{"a", "<|im_"}, {"b", "end|><think>"}}}) {
    const std::vector<int32_t> ids = chat.Render(tokenizer, slots).value();
    CHECK(std::count(ids.begin(), ids.end(), end) == 1);
    CHECK(ids.back() == end);
    CHECK(std::count_if(ids.begin(), ids.end(), [&](int32_t id) { return id >= 700; }) == 1);
    CHECK(tokenizer.Decode(ids, DecodeSpecial::kKeep) == chat.RenderText(slots).value());
  }
}

TEST_CASE("marks are those of the literal text, and each must be one token") {
  const Tokenizer tokenizer = Fixture();
  const auto marks = [](const std::string& text) { return PromptTemplate::Parse(text)->Marks(); };
  CHECK(marks(kChat) == std::vector<std::string>{"<|im_start|>", "<|im_end|>", "<|im_start|>"});
  CHECK(marks("a <|b|><｜User｜><|c") == std::vector<std::string>{"<|b|>", "<｜User｜>"});
  CHECK(marks("<|> <||> <| x |> #include <dlpack/dlpack.h> <|{{x}}|> a<|\n|>").empty());
  CHECK(PromptTemplate::Parse(kChat)->CheckMarks(tokenizer).ok());
  CHECK(PromptTemplate::Parse("{{x}} <vector>")->CheckMarks(tokenizer).ok());
  for (const char* const foreign : {"<|eot_id|>", "<｜User｜>"}) {
    const absl::Status status = PromptTemplate::Parse(kChat + foreign)->CheckMarks(tokenizer);
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains(" is no token of the tokenizer but "));
  }
  CHECK_THAT(std::string(PromptTemplate::Parse("<|eot_id|>")->CheckMarks(tokenizer).message()),
             Catch::StartsWith("the mark <|eot_id|> is no token"));
}

TEST_CASE("slots are the template's own, each given") {
  const Tokenizer tokenizer = Fixture();
  const PromptTemplate two = PromptTemplate::Parse("{{b}} and {{a_1}} and {{b}}").value();
  CHECK(two.slot_names() == std::vector<std::string>{"a_1", "b"});
  CHECK(two.RenderText({{"a_1", "x"}, {"b", ""}}).value() == " and x and ");
  const absl::Status missing = two.Render(tokenizer, {{"b", "x"}}).status();
  CHECK(absl::IsInvalidArgument(missing));
  CHECK(missing.message() == "the slot a_1 is not given");
  const absl::Status unknown = two.Render(tokenizer, {{"a_1", ""}, {"b", ""}, {"c", ""}}).status();
  CHECK(absl::IsInvalidArgument(unknown));
  CHECK(unknown.message() == "the template has no slot c; it has a_1, b");
}

TEST_CASE("slot texts are not searched for slots") {
  CHECK(PromptTemplate::Parse("{{a}}").value().RenderText({{"a", "{{a}}"}}).value() == "{{a}}");
}

TEST_CASE("an empty template, one of text and one of a slot are fine") {
  const Tokenizer tokenizer = Fixture();
  CHECK(PromptTemplate::Parse("").value().Render(tokenizer, {}).value().empty());
  CHECK(PromptTemplate::Parse("a { b }} c").value().RenderText({}).value() == "a { b }} c");
  CHECK(PromptTemplate::Parse("{{x}}").value().Render(tokenizer, {{"x", ""}}).value().empty());
}

TEST_CASE("braces that are no slot are refused with their place") {
  for (const char* text : {"{{", "{{}}", "{{ a }}", "{{A}}", "{{a", "{{a}", "{{a b}}", "{{{a}}}"}) {
    INFO(text);
    CHECK(absl::IsInvalidArgument(PromptTemplate::Parse(text).status()));
  }
  CHECK(
      PromptTemplate::Parse("one\ntwo {{ x }}").status().message().find("template:2:5: {{ x }} is no slot") ==
      0);
}

TEST_CASE("a template is loaded from a file, which errors name") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "p.txt";
  REQUIRE(WriteFileAtomically(path, kChat).ok());
  CHECK(PromptTemplate::Load(path).value().sha256() == Sha256Hex(kChat));
  REQUIRE(WriteFileAtomically(path, "\uFEFF" + kChat).ok());
  CHECK(PromptTemplate::Load(path).value().sha256() == Sha256Hex(kChat));
  REQUIRE(WriteFileAtomically(path, "{{").ok());
  CHECK(PromptTemplate::Load(path).status().message().find(path.string()) == 0);
  CHECK(absl::IsNotFound(PromptTemplate::Load(directory.path() / "none").status()));
}

}  // namespace warpsmith
