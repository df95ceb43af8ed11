#include "rollout_workers/serving/served_model.h"

#include "prompting/prompts.h"
#include "rollout_workers/openai_api/api_error.h"
#include "tests/support/served_model_fixture.h"

namespace warpsmith::serving {
namespace {

openai::CompletionRequest Chat(const std::string& fields = "") {
  return openai::ParseCompletionRequest(
             openai::ApiKind::kChat,
             R"({"model": "tiny", "messages": [{"role": "user", "content": "relu"}])" + fields + "}")
      .value();
}

openai::CompletionRequest Text(const std::string& prompt, const std::string& fields = "") {
  return openai::ParseCompletionRequest(openai::ApiKind::kText,
                                        R"({"model": "tiny", "prompt": )" + prompt + fields + "}")
      .value();
}

}  // namespace

TEST_CASE("a checkpoint's folder says how it is served") {
  const TemporaryDirectory folder;
  WriteServedFolder(
      folder.path(),
      R"({"temperature": 0.6, "top_p": 0.9, "top_k": 20, "min_p": 0.05, "repetition_penalty": 1.3,
          "eos_token_id": [2, 0]})");
  const ServedModel model = LoadServedModel(folder.path(), "coder", 0).value();
  CHECK(model.name == "coder");
  CHECK(model.context_tokens_max == 512);
  CHECK(model.stop_token_ids == TokenIds{2, 0});
  CHECK(model.chat_template.value().name() == "ChatML");
  CHECK(model.defaults.temperature == 0.6);
  CHECK(model.defaults.top_p == 0.9);
  CHECK(model.defaults.top_k == 20);
  CHECK(model.defaults.min_p == 0.05);
  CHECK(model.not_applied == std::vector<std::string>{"repetition_penalty 1.3"});
}

TEST_CASE("a folder that cannot be served is refused with the reason") {
  const TemporaryDirectory folder;
  CHECK(absl::IsNotFound(LoadServedModel(folder.path(), "coder", 0).status()));
  WriteServedFolder(folder.path(), R"({"temperature": -1})");
  CHECK_THAT(std::string(LoadServedModel(folder.path(), "coder", 0).status().message()),
             Catch::Contains("generation_config.json"));
  const TemporaryDirectory other;
  WriteServedFolder(other.path());
  CHECK_THAT(std::string(LoadServedModel(other.path(), "coder", 513).status().message()),
             Catch::Contains("--context is 513"));
}

TEST_CASE("what a request does not say, the checkpoint does, and the API where it does not either") {
  const ServedModel model = TinyServedModel();
  const CompletionJob chat = MakeCompletionJob(model, Chat(), "").value();
  REQUIRE(chat.prompts.size() == 1);
  CHECK(chat.sampling.answer_tokens_max == 512 - std::ssize(chat.prompts[0]));
  CHECK(chat.sampling.temperature == 1);
  CHECK_FALSE(chat.reports_tokens);
  CHECK(MakeCompletionJob(model, Text("\"relu\""), "")->sampling.answer_tokens_max == 16);
  const CompletionJob said =
      MakeCompletionJob(
          model,
          Chat(R"(, "temperature": 0, "top_p": 0.5, "top_k": 3, "min_p": 0.2, "max_tokens": 5, "seed": 9,
                                        "stop": "x", "n": 2)"),
          "")
          .value();
  CHECK(said.sampling.temperature == 0);
  CHECK(said.sampling.top_p == 0.5);
  CHECK(said.sampling.top_k == 3);
  CHECK(said.sampling.min_p == 0.2);
  CHECK(said.sampling.answer_tokens_max == 5);
  CHECK(said.seed == 9);
  CHECK(said.num_choices == 2);
  CHECK(said.reports_tokens);
}

TEST_CASE("a temperature that is next to nothing is greedy, and other tokens' log-probs are passed on") {
  const ServedModel model = TinyServedModel();
  for (const char* const tiny : {"1e-6", "1e-39", "1e-320", "0"}) {
    const CompletionJob job =
        MakeCompletionJob(model, Chat(std::string(", \"temperature\": ") + tiny), "").value();
    CHECK(job.sampling.temperature == 0);
    CHECK(job.num_top_tokens == 0);
  }
  const CompletionJob job =
      MakeCompletionJob(model, Chat(R"(, "temperature": 1e-5, "logprobs": true, "top_logprobs": 4)"), "")
          .value();
  CHECK(job.sampling.temperature == 1e-5);
  CHECK(job.num_top_tokens == 4);
}

TEST_CASE("a chat has the ids of the prompts that a Coder was trained on") {
  const ServedModel model = TinyServedModel();
  const Prompts prompts = Prompts::Load("datasets/tokenizer/small", "datasets/prompts/small", {}).value();
  const std::string reference = "def forward(self, x):\n    return torch.relu(x)\n";
  openai::CompletionRequest request = Chat();
  request.messages[0].content = reference;
  CHECK(MakeCompletionJob(model, request, "")->prompts[0] ==
        prompts.Generate({.reference = reference}).value());

  const Prompts coder = Prompts::Load("datasets/tokenizer/small", "datasets/prompts/coder", {}).value();
  const std::string text = PromptTemplate::Load("datasets/prompts/coder/generate.txt")
                               .value()
                               .RenderText({{"reference", reference}})
                               .value();
  const auto between = [&](const std::string& begin, const std::string& end) {
    const size_t at = text.find(begin) + begin.size();
    return text.substr(at, text.find(end, at) - at);
  };
  request.messages = {
      {"system", between("<|im_start|>system\n", "<|im_end|>"), std::nullopt},
      {"user", between("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant"), std::nullopt}};
  ServedModel large = TinyServedModel();
  large.context_tokens_max = 1 << 20;
  CHECK(MakeCompletionJob(large, request, "")->prompts[0] ==
        coder.Generate({.reference = reference}).value());
}

TEST_CASE("in the text of a prompt the marks of a format are tokens; ids are taken as they are") {
  const ServedModel model = TinyServedModel();
  const auto ids = MakeCompletionJob(model, Text(R"("<|im_start|>user\nx<|im_end|>")"), "")->prompts[0];
  CHECK(ids.front() == model.tokenizer.TokenId("<|im_start|>"));
  CHECK(ids.back() == model.tokenizer.TokenId("<|im_end|>"));
  CHECK(MakeCompletionJob(model, Text("[[1, 5], [7]]"), "")->prompts ==
        std::vector<std::vector<int32_t>>{{1, 5}, {7}});
}

TEST_CASE("what does not fit the context or the vocabulary is refused") {
  const ServedModel model = TinyServedModel(64);
  const absl::Status status = MakeCompletionJob(model, Chat(R"(, "max_tokens": 64)"), "").status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(openai::ApiErrorBody(status), Catch::Contains("context_length_exceeded"));
  CHECK_FALSE(MakeCompletionJob(model, Text("[[1], [1536]]"), "").ok());
  openai::CompletionRequest long_prompt = Text("[1]");
  long_prompt.prompts = {std::vector<int32_t>(64, 1)};
  CHECK(absl::IsInvalidArgument(MakeCompletionJob(model, long_prompt, "").status()));
}

TEST_CASE("a conversation whose format is not known is refused, and prompts of texts are not") {
  ServedModel model = TinyServedModel();
  model.chat_template = absl::UnimplementedError("no such format");
  const absl::Status status = MakeCompletionJob(model, Chat(), "").status();
  CHECK(absl::IsUnimplemented(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("/v1/completions"));
  CHECK(MakeCompletionJob(model, Text("\"relu\""), "").ok());
}

}  // namespace warpsmith::serving
