// The loop alone: groups come from a generator without a model, publications and evaluations are noted down.
#include "trainer/phases/grpo.h"

#include <memory>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/unit/trainer/fake_generator.h"
#include "tests/unit/trainer/tiny_run.h"

namespace warpsmith {
namespace {

double ByItsPlace(const Task&, int sample) { return 0.5 * sample; }
double AllEqual(const Task&, int) { return 1.0; }

Configuration SmallConfiguration(int64_t num_steps) {
  Configuration configuration;
  configuration.model.config = TinyModel();
  configuration.trainer.checkpoint_steps = 100;
  configuration.grpo = {.num_steps = num_steps,
                        .learning_rate = 1e-2,
                        .num_warmup_steps = 1,
                        .num_tasks = 2,
                        .num_samples = 3,
                        .optimise_share = 0.0,
                        .num_refills = 1};
  return configuration;
}

// A run of the loop with what it did to the outside.
class Loop {
 public:
  Loop(const std::filesystem::path& directory, const Configuration& configuration,
       FakeGenerator::Reward reward)
      : run(directory, configuration),
        generator(std::move(reward)),
        collector_(ManyTasks(), configuration.grpo, /*run_seed=*/7, &generator) {}

  absl::Status Run() {
    RunContext context = run.context();
    GrpoLeader leader{.collector = &collector_,
                      .publish =
                          [&] {
                            published.push_back(run.progress().policy_version);
                            return publish_status;
                          },
                      .evaluate =
                          [&](const std::string& name) {
                            evaluated.push_back(name);
                            if (name == stop_after) run.stop = true;
                            return evaluate_status;
                          }};
    return RunGrpo(context, &leader);
  }

  std::vector<int64_t> CheckpointSteps() const {
    std::vector<int64_t> steps;
    for (const RunProgress& progress : run.Checkpoints()) steps.push_back(progress.grpo.step);
    return steps;
  }

  // Of the tasks of request `index`.
  std::vector<std::string> TaskIds(size_t index) const {
    std::vector<std::string> ids;
    for (const Task& task : generator.requests.at(index).tasks) ids.push_back(task.id);
    return ids;
  }

  TinyRun run;
  FakeGenerator generator;
  std::vector<uint64_t> published;
  std::vector<std::string> evaluated;
  absl::Status publish_status, evaluate_status;
  std::string stop_after;  // the evaluation in which somebody asks the process to stop

 private:
  GroupCollector collector_;
};

}  // namespace

TEST_CASE("groups told apart by their rewards change the weights and publish a version each step") {
  const TemporaryDirectory directory;
  Loop loop(directory.path(), SmallConfiguration(3), ByItsPlace);
  const std::string before = loop.run.Weights();
  REQUIRE(loop.Run().ok());
  CHECK(loop.run.progress().grpo.step == 3);
  CHECK(loop.run.progress().policy_version == 3);
  CHECK(loop.published == std::vector<uint64_t>{1, 2, 3});
  CHECK(loop.run.Weights() != before);
  REQUIRE(loop.generator.requests.size() == 3);
  for (uint64_t step = 0; step < 3; ++step) CHECK(loop.generator.requests[step].policy_version == step);
  const auto metrics = loop.run.Lines("metrics.jsonl");
  REQUIRE(metrics.size() == 3);
  CHECK(metrics[2]["step"] == 3);
  CHECK(metrics[2]["policy_version"] == 3);
}

TEST_CASE("a step whose groups are all equal counts, but updates and publishes nothing") {
  const TemporaryDirectory directory;
  Loop loop(directory.path(), SmallConfiguration(3), AllEqual);
  const std::string before = loop.run.Weights();
  REQUIRE(loop.Run().ok());
  CHECK(loop.run.progress().grpo.step == 3);
  CHECK(loop.run.progress().policy_version == 0);
  CHECK(loop.published.empty());
  CHECK(loop.run.Weights() == before);
  CHECK(loop.run.policy().num_steps() == 0);
  CHECK(loop.generator.requests.size() == 6);  // each step asks once more for others
  CHECK(loop.run.Lines("metrics.jsonl").size() == 3);
  const auto transitions = loop.run.Lines("transitions.jsonl");
  REQUIRE(transitions.size() == 3 * 4 * 3);
  CHECK_FALSE(transitions[0].contains("advantage"));
}

TEST_CASE("groups without a token to learn from make no update either") {
  const TemporaryDirectory directory;
  Loop loop(directory.path(), SmallConfiguration(2), ByItsPlace);
  loop.generator.answer_token_ids.clear();
  const std::string before = loop.run.Weights();
  REQUIRE(loop.Run().ok());
  CHECK(loop.run.progress().grpo.step == 2);
  CHECK(loop.run.progress().policy_version == 0);
  CHECK(loop.published.empty());
  CHECK(loop.run.Weights() == before);
}

TEST_CASE("evaluations come every so many steps") {
  for (const auto& [every_steps, expected] :
       {std::pair<int, std::vector<std::string>>{0, {}}, {2, {"step_2", "step_4"}}, {5, {"step_5"}}}) {
    const TemporaryDirectory directory;
    Configuration configuration = SmallConfiguration(5);
    configuration.evaluation.every_steps = every_steps;
    Loop loop(directory.path(), configuration, ByItsPlace);
    REQUIRE(loop.Run().ok());
    CHECK(loop.evaluated == expected);
  }
}

TEST_CASE("a checkpoint comes every so many steps, and at the end") {
  const TemporaryDirectory directory;
  Configuration configuration = SmallConfiguration(5);
  configuration.trainer.checkpoint_steps = 2;
  Loop loop(directory.path(), configuration, ByItsPlace);
  REQUIRE(loop.Run().ok());
  CHECK(loop.CheckpointSteps() == std::vector<int64_t>{2, 4, 5});
  CHECK(loop.run.Checkpoints().back().policy_version == 5);
}

TEST_CASE("asked to stop, the loop ends after the step with a checkpoint, and goes on from it to the bit") {
  const TemporaryDirectory directory, undisturbed;
  Configuration configuration = SmallConfiguration(4);
  configuration.evaluation.every_steps = 1;
  Loop whole(undisturbed.path(), configuration, ByItsPlace);
  REQUIRE(whole.Run().ok());

  Loop stopped(directory.path(), configuration, ByItsPlace);
  stopped.stop_after = "step_2";
  CHECK(absl::IsCancelled(stopped.Run()));
  CHECK(stopped.generator.requests.size() == 2);
  CHECK(stopped.CheckpointSteps() == std::vector<int64_t>{2});

  Loop resumed(directory.path(), configuration, ByItsPlace);
  REQUIRE(resumed.Run().ok());
  CHECK(resumed.evaluated == std::vector<std::string>{"step_3", "step_4"});
  CHECK(resumed.published == std::vector<uint64_t>{3, 4});
  CHECK(resumed.TaskIds(0) == whole.TaskIds(2));
  CHECK(resumed.run.Weights() == whole.run.Weights());
}

TEST_CASE("the limit of time counts earlier attempts") {
  const TemporaryDirectory directory;
  Configuration configuration = SmallConfiguration(1000);
  configuration.grpo.seconds = 10;
  Loop loop(directory.path(), configuration, ByItsPlace);
  loop.run.progress().grpo.seconds = 10;
  REQUIRE(loop.Run().ok());
  CHECK(loop.run.progress().grpo.step == 0);
  CHECK(loop.generator.requests.empty());
}

TEST_CASE("what fails in a step ends the loop with its status") {
  const TemporaryDirectory directory;
  Configuration configuration = SmallConfiguration(3);
  configuration.evaluation.every_steps = 1;
  Loop unpublished(directory.path() / "a", configuration, ByItsPlace);
  unpublished.publish_status = absl::UnavailableError("no worker");
  CHECK(absl::IsUnavailable(unpublished.Run()));
  CHECK(unpublished.run.progress().grpo.step == 0);

  Loop unevaluated(directory.path() / "b", configuration, ByItsPlace);
  unevaluated.evaluate_status = absl::DeadlineExceededError("too slow");
  CHECK(absl::IsDeadlineExceeded(unevaluated.Run()));
  CHECK(unevaluated.evaluated.size() == 1);
}

}  // namespace warpsmith
