#include "core/config/config_file.h"

#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

const std::vector<std::string> kSections = {"run", "trainer", "evaluation"};

std::unique_ptr<ConfigFile> Parse(const std::string& text) {
  auto file = ConfigFile::Parse(text, "run.yaml", kSections);
  REQUIRE(file.ok());
  return *std::move(file);
}

std::string ErrorOf(const std::string& text) {
  const auto file = ConfigFile::Parse(text, "run.yaml", kSections);
  REQUIRE(absl::IsInvalidArgument(file.status()));
  return std::string(file.status().message());
}

double ReadRate(ConfigFile& file) {
  double rate = 0.5;
  file.Section("trainer").Read("learning_rate", &rate, {.min = 0, .max = 1});
  return rate;
}

}  // namespace

TEST_CASE("a file is loaded from disk and names itself in errors") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "demo.yaml";
  REQUIRE(WriteFileAtomically(path, "trainer:\n  learning_rate: 2\n").ok());
  const auto file = ConfigFile::Load(path, kSections);
  REQUIRE(file.ok());
  ReadRate(**file);
  CHECK(std::string((*file)->Section("trainer").Finish().message()) ==
        path.string() +
            ":2:18: trainer.learning_rate: must be a number of at least 0 and of at most 1, but is 2");
}

TEST_CASE("a file is loaded with assignments on top, and without a path there are only these") {
  TemporaryDirectory directory;
  const auto path = directory.path() / "demo.yaml";
  REQUIRE(WriteFileAtomically(path, "trainer:\n  steps: 2\n  seed: 3\n").ok());
  for (const std::string& from : {path.string(), std::string()}) {
    const auto file = ConfigFile::Load(from, kSections, {"trainer.steps=5"});
    REQUIRE(file.ok());
    int steps = 0, seed = 0;
    (*file)->Section("trainer").Read("steps", &steps);
    (*file)->Section("trainer").Read("seed", &seed);
    CHECK(steps == 5);
    CHECK(seed == (from.empty() ? 0 : 3));
  }
  CHECK(absl::IsInvalidArgument(ConfigFile::Load(path, kSections, {"trianer.steps=5"}).status()));
}

TEST_CASE("a file that is not there, or too large, is refused") {
  TemporaryDirectory directory;
  CHECK(absl::IsNotFound(ConfigFile::Load(directory.path() / "none.yaml", kSections).status()));
  const auto path = directory.path() / "big.yaml";
  REQUIRE(WriteFileAtomically(path, std::string((1 << 20) + 1, '#')).ok());
  CHECK(absl::IsInvalidArgument(ConfigFile::Load(path, kSections).status()));
}

TEST_CASE("an empty file has every section, empty") {
  const auto file = Parse("");
  CHECK(ReadRate(*file) == 0.5);
  CHECK(file->Section("trainer").Finish().ok());
}

TEST_CASE("an unknown section is refused and the one that was meant is named") {
  CHECK(ErrorOf("trianer: {}\n") ==
        "run.yaml:1:1: trianer: is not a known section; did you mean \"trainer\"?");
}

TEST_CASE("a section that is a value, and a file that is a list, are refused") {
  CHECK(ErrorOf("trainer: 3\n") == "run.yaml:1:10: trainer: must be a section, but is 3");
  CHECK(ErrorOf("[a, b]\n").find("must hold sections") != std::string::npos);
}

TEST_CASE("an override replaces a value, adds one, and opens sections that are absent") {
  const auto file = Parse("trainer:\n  learning_rate: 0.1\n");
  REQUIRE(file->Override("trainer.learning_rate=1e-3").ok());
  REQUIRE(file->Override("trainer.optimizer.beta=0.9").ok());
  REQUIRE(file->Override("run.name=\"7\"").ok());
  REQUIRE(file->Override("run.tags=[a, b]").ok());
  double beta = 0;
  std::string name;
  std::vector<std::string> tags;
  CHECK(ReadRate(*file) == 1e-3);
  file->Section("trainer").Section("optimizer").Read("beta", &beta);
  file->Section("run").Read("name", &name);
  file->Section("run").Read("tags", &tags);
  CHECK(beta == 0.9);
  CHECK(name == "7");
  CHECK(tags == std::vector<std::string>{"a", "b"});
  CHECK(file->Section("trainer").Finish().ok());
  CHECK(file->Section("run").Finish().ok());
}

TEST_CASE("a wrong override is refused as strictly as the file") {
  const auto file = Parse("trainer:\n  optimizer: {beta: 1}\n  learning_rate: 0.1\n");
  for (const char* assignment :
       {"", "trainer", "trainer=1", "trainer.=1", ".x=1", "trainer..x=1", "=1", "trainre.learning_rate=1",
        "trainer.optimizer=1", "trainer.learning_rate.x=1", "trainer.learning_rate={a: 1}", "trainer.x=&a 1",
        "trainer.x=[1"}) {
    INFO(assignment);
    CHECK(absl::IsInvalidArgument(file->Override(assignment)));
  }
}

TEST_CASE("a misspelt or mistyped override is reported when its section is read") {
  const auto file = Parse("");
  REQUIRE(file->Override("trainer.learning_rat=1").ok());
  REQUIRE(file->Override("trainer.learning_rate=fast").ok());
  ReadRate(*file);
  const std::string error(file->Section("trainer").Finish().message());
  CHECK(error.find("--set trainer.learning_rat=1: trainer.learning_rat: is not a known key") !=
        std::string::npos);
  CHECK(error.find("--set trainer.learning_rate=fast: trainer.learning_rate: must be a number") !=
        std::string::npos);
}

TEST_CASE("the resolved configuration holds defaults, overrides and unread sections, and loads back") {
  const auto file = Parse("evaluation:\n  samples: 8\ntrainer:\n  names: [\"1\", two]\n");
  REQUIRE(file->Override("trainer.learning_rate=0.25").ok());
  int64_t steps = 12;
  std::vector<std::string> names;
  ReadRate(*file);
  file->Section("trainer").Section("schedule").Read("num_steps", &steps);
  file->Section("trainer").Read("names", &names);
  const std::string yaml = file->ResolvedYaml();

  const auto again = Parse(yaml);
  CHECK(ReadRate(*again) == 0.25);
  int64_t steps_again = 0, samples = 0;
  std::vector<std::string> names_again;
  again->Section("trainer").Section("schedule").Read("num_steps", &steps_again);
  again->Section("trainer").Read("names", &names_again);
  again->Section("evaluation").Read("samples", &samples);
  CHECK(steps_again == 12);
  CHECK(names_again == names);
  CHECK(samples == 8);
  CHECK(again->Section("trainer").Finish().ok());
}

TEST_CASE("the errors of all sections come together, in the order of the sections") {
  const auto file = Parse("trainer: {learning_rate: fast}\nrun: {nmae: x}\n");
  std::string name;
  file->Section("run").Read("name", &name);
  ReadRate(*file);
  const std::string error(file->Finish().message());
  const size_t run = error.find("run.nmae"), trainer = error.find("trainer.learning_rate");
  CHECK(run != std::string::npos);
  CHECK(trainer != std::string::npos);
  CHECK(run < trainer);
  CHECK(Parse("")->Finish().ok());
}

TEST_CASE("what an absent section lacks is named with the file") {
  const auto file = Parse("");
  file->Section("trainer").Section("grpo").Require("num_steps");
  CHECK(std::string(file->Finish().message()) ==
        "run.yaml: trainer.grpo.num_steps: is missing; it has no default");
}

TEST_CASE("some sections can be resolved and described without the others") {
  const auto file = Parse("evaluation:\n  samples: 8\nrun:\n  name: x\n");
  ReadRate(*file);
  CHECK(file->ResolvedYaml({"run"}) == "run:\n  name: x\n");
  CHECK(file->ResolvedYaml({"trainer"}).find("samples") == std::string::npos);
  CHECK(file->ResolvedValues({"run"}) == std::map<std::string, std::string>{{"run.name", "x"}});
  CHECK(file->ResolvedValues({"trainer"}).count("trainer.learning_rate") == 1);
  CHECK(file->Reference({"run"}).empty());  // nobody has read it
  CHECK(file->Reference({"trainer"}).find("trainer.learning_rate\t") == 0);
}

}  // namespace warpsmith
