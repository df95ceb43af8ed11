#include "prompting/stop_tokens.h"

#include <nlohmann/json.hpp>
#include <string>

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// A model's directory with the files that are given text.
class Model {
 public:
  explicit Model(const std::string& generation_config, const std::string& config = "") {
    if (!generation_config.empty()) Write("generation_config.json", generation_config);
    if (!config.empty()) Write("config.json", config);
  }
  const std::filesystem::path& path() const { return directory_.path(); }

 private:
  void Write(const std::string& name, const std::string& text) {
    REQUIRE(WriteFileAtomically(directory_.path() / name, text).ok());
  }
  const TemporaryDirectory directory_;
};

Tokenizer Small() { return Tokenizer::Load("datasets/tokenizer/small").value(); }

TokenIds Stops(const std::filesystem::path& model) { return StopTokens(Small(), model).value(); }

std::string Refusal(const std::filesystem::path& model) {
  const absl::Status status = StopTokens(Small(), model).status();
  CHECK(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

}  // namespace

TEST_CASE("without a checkpoint, or one that says nothing, both known tokens end an answer") {
  const int32_t turn = Small().TokenId("<|im_end|>").value(), text = Small().TokenId("<|endoftext|>").value();
  CHECK(Stops("") == TokenIds{turn, text});
  CHECK(Stops(Model("").path()) == TokenIds{turn, text});
  CHECK(Stops(Model("{}", "{\"eos_token_id\": null}").path()) == TokenIds{turn, text});
}

TEST_CASE("what the checkpoint says comes first, in its order, a number or a list") {
  const int32_t turn = Small().TokenId("<|im_end|>").value(), text = Small().TokenId("<|endoftext|>").value();
  const std::string both = std::to_string(text) + ", " + std::to_string(turn);
  CHECK(Stops(Model("{\"eos_token_id\": [" + both + "]}").path()) == TokenIds{text, turn});
  CHECK(Stops(Model("{\"eos_token_id\": 77}").path()) == TokenIds{77, turn, text});
  CHECK(Stops(Model("{\"eos_token_id\": []}").path()) == TokenIds{turn, text});
  CHECK(CheckpointStopTokens(Model("{\"eos_token_id\": 77}").path()).value() == TokenIds{77});
}

TEST_CASE("config.json counts where generation_config.json says nothing") {
  CHECK(Stops(Model("", "{\"eos_token_id\": 5}").path())[0] == 5);
  CHECK(Stops(Model("{\"top_k\": 20}", "{\"eos_token_id\": 5}").path())[0] == 5);
  CHECK(Stops(Model("{\"eos_token_id\": 6}", "{\"eos_token_id\": 5}").path())[0] == 6);
}

TEST_CASE("a tokenizer without any token that ends an answer is refused, unless the checkpoint names one") {
  nlohmann::json json = nlohmann::json::parse(ReadFile("datasets/tokenizer/small/tokenizer.json").value());
  for (auto& token : json["added_tokens"]) {
    const std::string name = "<|other_" + token["content"].get<std::string>().substr(2);
    if (json["model"]["vocab"].contains(token["content"])) {
      json["model"]["vocab"][name] = json["model"]["vocab"][token["content"].get<std::string>()];
      json["model"]["vocab"].erase(token["content"].get<std::string>());
    }
    token["content"] = name;
  }
  const Tokenizer tokenizer = Tokenizer::Parse(json.dump()).value();
  const absl::Status status = StopTokens(tokenizer, "").status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("name another tokenizer as data.tokenizer"));
  CHECK(StopTokens(tokenizer, Model("{\"eos_token_id\": 9}").path()).value() == TokenIds{9});
}

TEST_CASE("what the tokenizer's own configuration says ends an answer, behind the known tokens") {
  const TemporaryDirectory folder;
  std::filesystem::copy_file("datasets/tokenizer/small/tokenizer.json", folder.path() / "tokenizer.json");
  const auto stops_with = [&](const std::string& eos) {
    REQUIRE(
        WriteFileAtomically(folder.path() / "tokenizer_config.json", "{\"eos_token\": " + eos + "}").ok());
    return StopTokens(Tokenizer::Load(folder.path()).value(), "").value();
  };
  const TokenIds known = Stops("");
  const int32_t other = Small().TokenId("</think>").value();
  CHECK(stops_with("\"</think>\"") == TokenIds{known[0], known[1], other});
  CHECK(stops_with("{\"content\": \"</think>\"}") == TokenIds{known[0], known[1], other});
  for (const char* const none : {"null", "\"<|im_end|>\"", "\"no such token\"", "7", "[]"})
    CHECK(stops_with(none) == known);
}

TEST_CASE("eos_token of a tokenizer's file is exchanged, and all else kept") {
  CHECK(WithEosToken(R"({"b": 1, "eos_token": "<|endoftext|>", "a": 2})", "<|im_end|>") ==
        "{\n  \"b\": 1,\n  \"eos_token\": \"<|im_end|>\",\n  \"a\": 2\n}\n");
  CHECK_THAT(WithEosToken(R"({"eos_token": null})", "<|im_end|>"), Catch::Contains("\"<|im_end|>\""));
  for (const char* const text :
       {R"({"eos_token": "<|im_end|>"})", R"({"eos_token": {"content": "<|im_end|>"}})",
        R"({"pad_token": "<|endoftext|>"})", "[]", "no JSON"}) {
    CHECK(WithEosToken(text, "<|im_end|>") == text);
  }
}

TEST_CASE("ids that are none, that the tokenizer lacks, and files that are no JSON are refused") {
  for (const char* value : {"-1", "1.5", "\"2\"", "[1, \"2\"]", "[[1]]", "4294967296", "true"}) {
    CHECK_THAT(Refusal(Model(std::string("{\"eos_token_id\": ") + value + "}").path()),
               Catch::Contains("generation_config.json: eos_token_id is "));
  }
  CHECK_THAT(Refusal(Model("{\"eos_token_id\": 151645}").path()),
             Catch::Contains("with token 151645") && Catch::Contains("data.tokenizer"));
  CHECK_THAT(Refusal(Model("{\"eos_token_id\": ").path()), Catch::Contains("is not a JSON object"));
}

}  // namespace warpsmith
