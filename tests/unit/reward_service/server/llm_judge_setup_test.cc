#include "reward_service/server/llm_judge_setup.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr char kPrompt[] =
    "[system]\n{{nonce}}\n[user]\n{{nonce}}{{language}}{{task}}{{evidence}}{{reference}}{{previous}}{{"
    "candidate}}";

struct Files {
  TemporaryDirectory directory;
  Metrics metrics;
  std::filesystem::path prompt = Write("prompt.txt", kPrompt);

  std::filesystem::path Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = directory.path() / name;
    std::ofstream(path) << text;
    return path;
  }
  std::string Fault(const LlmJudgeOptions& options) {
    const absl::Status status = SetUpLlmJudge(options, prompt, &metrics).status();
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  }
};

TEST_CASE("without a url there is no judge") {
  Files files;
  const absl::StatusOr<LlmJudgeMachinery> machinery = SetUpLlmJudge({}, "/no/such/file", &files.metrics);
  REQUIRE(machinery.ok());
  CHECK(machinery->stage == nullptr);
  CHECK(machinery->name.empty());
}

TEST_CASE("a judge is named after its model, and after what its opinions depend on") {
  Files files;
  const LlmJudgeOptions options{.url = "http://127.0.0.1:8000/v1", .model = "small"};
  const auto shipped = SetUpLlmJudge(options, files.prompt, &files.metrics);
  REQUIRE(shipped.ok());
  CHECK(shipped->stage != nullptr);
  CHECK_THAT(shipped->name, Catch::StartsWith("small "));
  LlmJudgeOptions other = options;
  other.prompt_file = files.Write("other.txt", std::string(kPrompt) + "\nBe kind.");
  CHECK(SetUpLlmJudge(other, files.prompt, &files.metrics)->name != shipped->name);
}

TEST_CASE("what cannot be used is refused under its key of the run file") {
  Files files;
  LlmJudgeOptions options{.url = "ftp://host", .model = "m"};
  CHECK_THAT(files.Fault(options), Catch::StartsWith("reward_service.llm_judge.url: "));
  options.url = "http://127.0.0.1/v1";
  options.api_key_file = files.directory.path() / "absent";
  CHECK_THAT(files.Fault(options), Catch::StartsWith("reward_service.llm_judge.api_key_file: "));
  options.api_key_file = files.Write("blank", " \n");
  CHECK_THAT(files.Fault(options), Catch::Contains("holds no key"));
  options.api_key_file = files.Write("key", "  sk-1 \n");
  options.prompt_file = files.Write("bad.txt", "[system]\n");
  CHECK_THAT(files.Fault(options), Catch::StartsWith("reward_service.llm_judge.prompt_file: "));
}

}  // namespace
}  // namespace warpsmith
