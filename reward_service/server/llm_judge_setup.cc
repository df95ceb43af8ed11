#include "reward_service/server/llm_judge_setup.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr int64_t kKeyFileBytesMax = 4096;
constexpr int64_t kPromptBytesMax = 64 << 10;
constexpr size_t kNameBytesMax = 128;

// The same fault, with the key of the run file in front.
absl::Status At(const char* key, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat("reward_service.llm_judge.", key, ": ", status.message()));
}

absl::StatusOr<std::string> ReadKey(const std::filesystem::path& file) {
  if (file.empty()) return std::string();
  const absl::StatusOr<std::string> text = ReadFile(file, kKeyFileBytesMax);
  if (!text.ok()) return At("api_key_file", text.status());
  std::string key(absl::StripAsciiWhitespace(*text));
  if (!key.empty()) return key;
  return At("api_key_file", absl::InvalidArgumentError(absl::StrCat(file.string(), " holds no key")));
}

absl::StatusOr<LlmPrompt> ReadPrompt(const std::filesystem::path& file) {
  absl::StatusOr<std::string> text = ReadFile(file, kPromptBytesMax);
  if (!text.ok()) return At("prompt_file", text.status());
  absl::StatusOr<LlmPrompt> prompt = LlmPrompt::Parse(*std::move(text));
  if (!prompt.ok()) {
    return At("prompt_file",
              absl::InvalidArgumentError(absl::StrCat(file.string(), ": ", prompt.status().message())));
  }
  return prompt;
}

LlmReplyFormat FormatOf(const std::string& name) {
  if (name == "json_schema") return LlmReplyFormat::kJsonSchema;
  return name == "json_object" ? LlmReplyFormat::kJsonObject : LlmReplyFormat::kNone;
}

}  // namespace

absl::StatusOr<LlmJudgeMachinery> SetUpLlmJudge(const LlmJudgeOptions& options,
                                                const std::filesystem::path& shipped_prompt,
                                                Metrics* metrics) {
  LlmJudgeMachinery machinery;
  if (options.url.empty()) return machinery;
  ASSIGN_OR_RETURN(std::string key, ReadKey(options.api_key_file));
  ASSIGN_OR_RETURN(LlmPrompt prompt,
                   ReadPrompt(options.prompt_file.empty() ? shipped_prompt : options.prompt_file));
  absl::StatusOr<std::unique_ptr<LlmClient>> client =
      LlmClient::Create({.url = options.url, .api_key = std::move(key)});
  if (!client.ok()) return At("url", client.status());
  machinery.client = *std::move(client);
  const LlmStageOptions stage{.model = options.model,
                              .format = FormatOf(options.response_format),
                              .timeout = absl::Seconds(options.timeout_seconds)};
  machinery.name =
      absl::StrCat(Escape(options.model, kNameBytesMax), " ", LlmJudgeKey(options.url, stage, prompt));
  const auto post = [client = machinery.client.get()](const std::string& body, absl::Time deadline,
                                                      const std::function<bool()>& unwanted) {
    return client->Post(body, deadline, unwanted);
  };
  const auto observe = [metrics](const char* result) { metrics->CountLlmJudge(result); };
  machinery.stage = std::make_unique<LlmStage>(stage, std::move(prompt), post, observe);
  return machinery;
}

}  // namespace warpsmith
