#include "reward_service/server/options.h"

#include <string>

#include "core/config/config_file.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

absl::StatusOr<ServiceOptions> Read(const std::string& text) {
  auto file = ConfigFile::Parse(text, "run.yaml", {"reward_service"});
  if (!file.ok()) return file.status();
  return ReadServiceOptions((*file)->Section("reward_service"));
}

TEST_CASE("an absent section gives the defaults") {
  const absl::StatusOr<ServiceOptions> options = Read("");
  REQUIRE(options.ok());
  CHECK(options->queue_capacity == 256);
  CHECK(options->cache_directory != "");
}

TEST_CASE("the section's keys are read") {
  const absl::StatusOr<ServiceOptions> options = Read(
      "reward_service:\n  address: unix:/tmp/reward\n  lane_cores: [2, 3]\n  queue_capacity: 7\n"
      "  cache_directory: /tmp/cache\n  call_seconds_max: 0.5\n  timing: {num_rounds_max: 1}\n");
  REQUIRE(options.ok());
  CHECK(options->address == "unix:/tmp/reward");
  CHECK(options->lane_cores == std::vector<int>{2, 3});
  CHECK(options->queue_capacity == 7);
  CHECK(options->cache_directory == "/tmp/cache");
  CHECK(options->judge.call_seconds_max == 0.5);
  CHECK(options->timing.num_rounds_max == 1);
}

TEST_CASE("forms of the reference to compare with are none, or those that are known, once each") {
  CHECK(Read("")->timing.baselines.empty());
  const auto asked = [](const std::string& keys) {
    return Read("reward_service:\n  timing: {baselines: [" + keys + "]}\n");
  };
  CHECK(asked("cuda_graph")->timing.baselines == std::vector<std::string>{"cuda_graph"});
  CHECK_THAT(std::string(asked("triton").status().message()),
             Catch::Contains("reward_service.timing.baselines: has triton, known are ") &&
                 Catch::Contains("cuda_graph"));
  CHECK_THAT(std::string(asked("cuda_graph, cuda_graph").status().message()),
             Catch::Contains("has cuda_graph twice"));
}

TEST_CASE("tenants, TLS files and lanes are read") {
  const absl::StatusOr<ServiceOptions> options = Read(
      "reward_service:\n  num_lanes: 2\n  tls: {certificate: README.md, key: README.md, authority: dev}\n"
      "  tenants:\n    lab: {token_file: README.md, share: 2.5}\n    farm: {requests_max: 9}\n");
  REQUIRE(options.ok());
  CHECK(options->num_lanes == 2);
  CHECK(options->tls.authority == "dev");
  REQUIRE(options->tenants.size() == 2);
  CHECK(options->tenants[0].name == "lab");
  CHECK(options->tenants[0].share == 2.5);
  CHECK(options->tenants[1].requests_max == 9);
  CHECK(absl::IsInvalidArgument(Read("reward_service:\n  tenants: {lab: {tokn_file: x}}\n").status()));
}

TEST_CASE("the LLM judge is off without a url, and needs a model with it") {
  CHECK(Read("")->llm_judge.url.empty());
  const absl::StatusOr<ServiceOptions> options = Read(
      "reward_service:\n  llm_judge: {url: 'http://[::1]:8000/v1', model: m, timeout_seconds: 5, "
      "max_concurrent: 2,\n"
      "    response_format: none, api_key_file: dev, prompt_file: dev}\n");
  REQUIRE(options.ok());
  CHECK(options->llm_judge.model == "m");
  CHECK(options->llm_judge.timeout_seconds == 5);
  CHECK(options->llm_judge.max_concurrent == 2);
  CHECK(options->llm_judge.response_format == "none");
  for (const char* wrong :
       {"{url: 'http://a/v1'}", "{model: m}", "{url: 'http://a', model: m, max_concurrent: 0}",
        "{url: 'http://a', model: m, timeout_seconds: 0}",
        "{url: 'http://a', model: m, response_format: xml}", "{uri: x}"}) {
    INFO(wrong);
    const absl::Status status = Read(std::string("reward_service:\n  llm_judge: ") + wrong + "\n").status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("llm_judge"));
  }
}

TEST_CASE("a misspelt key and a value out of range are named with their place") {
  const absl::Status misspelt = Read("reward_service:\n  queue_capcity: 7\n").status();
  CHECK(absl::IsInvalidArgument(misspelt));
  CHECK(std::string(misspelt.message()).find("run.yaml:2") != std::string::npos);
  CHECK(absl::IsInvalidArgument(Read("reward_service:\n  queue_capacity: 0\n").status()));
  CHECK(absl::IsInvalidArgument(Read("reward_service:\n  timing: {num_instances_min: 12}\n").status()));
  CHECK(
      absl::IsInvalidArgument(Read("reward_service:\n  queue_capacity: 1\n  queue_capacity: 2\n").status()));
}

TEST_CASE("files that are missing are named with their key, all at once") {
  const std::string faults(Read("reward_service:\n  tls: {certificate: a.pem, key: b.pem}\n"
                                "  tenants: {lab: {token_file: lab.token}}\n  llm_judge: {prompt_file: p}\n")
                               .status()
                               .message());
  CHECK_THAT(faults,
             Catch::Contains("run.yaml:2:22: reward_service.tls.certificate: there is no file a.pem"));
  CHECK_THAT(faults,
             Catch::Contains("run.yaml:3:31: reward_service.tenants.lab.token_file: there is no file"));
  CHECK_THAT(faults,
             Catch::Contains("run.yaml:4:28: reward_service.llm_judge.prompt_file: there is no file p"));
}

TEST_CASE("a default formula must be one that there is, and so must the one that the trainer asks for") {
  CHECK(Read("")->default_formula == "warpsmith-v3");
  CHECK(Read("reward_service: {formula: kevin-v1}\n")->default_formula == "kevin-v1");
  const std::string unknown(Read("reward_service: {formula: kevin}\n").status().message());
  CHECK_THAT(unknown, Catch::Contains("run.yaml:1:27: reward_service.formula: must be one of warpsmith-v3") &&
                          Catch::Contains("kevin-v1") && Catch::Contains("but is kevin"));

  const auto asked = [](const std::string& trainer) {
    const auto file = ConfigFile::Parse("trainer: " + trainer + "\n", "run.yaml", {"trainer"}).value();
    return std::string(CheckFormulaAskedFor(file->Section("trainer")).message());
  };
  CHECK(asked("{num_threads: 2, grpo: {formula: kevin-v1, num_steps: 3}}").empty());
  CHECK(asked("{}").empty());
  CHECK_THAT(
      asked("{grpo: {formula: kevin}}"),
      Catch::Contains("run.yaml:1:27: trainer.grpo.formula: no reward formula \"kevin\"; known: warp"));
}

}  // namespace
}  // namespace warpsmith
