// SFT on a pair or two, with a model that learns them within a few steps.
#include "trainer/phases/cold_start.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/support/catch.h"
#include "tests/unit/trainer/tiny_run.h"

namespace warpsmith {
namespace {

ColdStartPair PairOf(const std::string& reference, const std::string& answer) {
  return {.parts = {.reference = reference}, .answer = answer};
}

Configuration SmallConfiguration() {
  Configuration configuration;
  configuration.model.config = TinyModel();
  configuration.model.config.vocab_size = 1536;  // of the small tokenizer
  configuration.cold_start = {.tokens = 5'000,   // some eighty steps, should patience never end it
                              .learning_rate = 0.02,
                              .num_warmup_steps = 2,
                              .learning_rate_final = 1.0,
                              .num_sequences = 1,
                              .validation_steps = 1,
                              .patience = 2};
  return configuration;
}

// An attempt at the phase. What it trains on says little about what it is validated on, so that it soon
// learns too much.
struct Attempt {
  Attempt(const std::filesystem::path& directory, const Configuration& configuration)
      : run(directory, configuration),
        data(ColdStartData::Create({PairOf("def f(x): return x + 1", "int run() { return 1; }"),
                                    PairOf("def g(x): return x * 2", "int run() { return 2; }")},
                                   &run.prompts(), 512, /*seed=*/5)
                 .value()),
        validation(
            {TokenisePair(PairOf("def h(x): return x - 3", "int run() { while (true) {} }"), run.prompts())
                 .value()}) {}

  absl::Status Run() {
    RunContext context = run.context();
    ColdStart phase(&context, &data, validation);
    return phase.Run();
  }

  // Of the weights as they are.
  double ValidationLoss() {
    double sum = 0;
    WS_CHECK(
        ScoreTokens(run.policy(), PassWeights::kPresent, validation, {0}, {}, [&](const ScoredToken& token) {
          sum -= token.log_prob;
        }).ok());
    return sum / static_cast<double>(CountAnswerTokens(validation));
  }

  std::vector<double> LoggedValidationLosses() const {
    std::vector<double> losses;
    for (const auto& line : run.Lines("metrics.jsonl")) {
      if (line.contains("validation_loss")) losses.push_back(line["validation_loss"]);
    }
    return losses;
  }

  const ColdStartProgress& progress() { return run.progress().cold_start; }

  TinyRun run;
  ColdStartData data;
  const std::vector<TrainingSequence> validation;
};

// Some thirty steps, a validation and a checkpoint each.
Configuration LongConfiguration() {
  Configuration configuration = SmallConfiguration();
  configuration.cold_start.tokens = 2000;
  configuration.cold_start.patience = 1000;
  return configuration;
}

constexpr char kAttemptFolder[] = "WARPSMITH_ATTEMPT_FOLDER";

int64_t NumEntries(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::distance(std::filesystem::directory_iterator(folder, ignored), {});
}

// Kills an attempt in `folder` some milliseconds after it has as many checkpoints, or lets it end first.
void KillAttempt(const std::filesystem::path& folder, int64_t num_checkpoints, int milliseconds) {
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    setenv(kAttemptFolder, folder.c_str(), 1);
    execl("/proc/self/exe", "attempt", "[.attempt]", "-o", "/dev/null", nullptr);
    _exit(1);
  }
  const absl::Time deadline = absl::Now() + absl::Minutes(2);
  while (NumEntries(folder / "checkpoints") < num_checkpoints && waitpid(pid, nullptr, WNOHANG) == 0) {
    REQUIRE(absl::Now() < deadline);
    absl::SleepFor(absl::Milliseconds(1));
  }
  absl::SleepFor(absl::Milliseconds(milliseconds));
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

}  // namespace

TEST_CASE("SFT ends after as many validations without a better loss as its patience says") {
  for (const int patience : {1, 3}) {
    const TemporaryDirectory directory;
    Configuration configuration = SmallConfiguration();
    configuration.cold_start.learning_rate = 0;  // the first validation is the best
    configuration.cold_start.validation_steps = 2;
    configuration.cold_start.patience = patience;
    configuration.cold_start.tokens = 2000;  // some thirty steps, should patience never end
    Attempt attempt(directory.path(), configuration);
    REQUIRE(attempt.Run().ok());
    CHECK(attempt.progress().best_step == 2);
    CHECK(attempt.progress().num_without_gain == patience);
    CHECK(attempt.progress().step == 2 * (1 + patience));
    CHECK(attempt.progress().finished);
  }
}

TEST_CASE("a better loss gives SFT its whole patience again") {
  const TemporaryDirectory directory;
  Attempt attempt(directory.path(), SmallConfiguration());
  attempt.run.progress().cold_start.num_without_gain = 1;
  REQUIRE(attempt.Run().ok());
  const std::vector<double> losses = attempt.LoggedValidationLosses();
  REQUIRE(losses.size() > 4);
  const int best = static_cast<int>(std::min_element(losses.begin(), losses.end()) - losses.begin());
  CHECK(attempt.progress().best_step == best + 1);
  CHECK(static_cast<int>(losses.size()) == best + 1 + 2);  // the patience after the best
}

TEST_CASE("SFT leaves the weights of its best validation, not its last") {
  const TemporaryDirectory directory;
  Attempt attempt(directory.path(), SmallConfiguration());
  REQUIRE(attempt.Run().ok());
  REQUIRE(attempt.progress().best_step < attempt.progress().step);
  REQUIRE(attempt.LoggedValidationLosses().back() > attempt.progress().best_loss);
  CHECK(attempt.ValidationLoss() == Approx(attempt.progress().best_loss).epsilon(1e-6));
}

TEST_CASE("SFT ends at its limit of tokens, with a validation though none is due") {
  const TemporaryDirectory directory;
  Configuration configuration = SmallConfiguration();
  configuration.cold_start.validation_steps = 1000;
  configuration.cold_start.tokens = 100;
  Attempt attempt(directory.path(), configuration);
  REQUIRE(attempt.Run().ok());
  CHECK(attempt.progress().num_tokens >= 100);
  CHECK(attempt.LoggedValidationLosses().size() == 1);
  CHECK(attempt.progress().best_step == attempt.progress().step);
}

// A process of its own, for the case below.
TEST_CASE("an attempt at SFT in the folder that the environment names", "[.attempt]") {
  const char* const folder = std::getenv(kAttemptFolder);
  REQUIRE(folder != nullptr);
  REQUIRE(Attempt(folder, LongConfiguration()).Run().ok());
}

TEST_CASE("SFT that is killed at any moment and resumed has the weights of one that was not") {
  const TemporaryDirectory undisturbed;
  Attempt whole(undisturbed.path(), LongConfiguration());
  REQUIRE(whole.Run().ok());
  const int64_t num_checkpoints = std::ssize(whole.run.Checkpoints());
  REQUIRE(num_checkpoints > kNumKillMoments);
  for (int moment = 0; moment < kNumKillMoments; ++moment) {
    INFO("moment " << moment);
    const TemporaryDirectory folder;
    KillAttempt(folder.path(), moment * num_checkpoints / kNumKillMoments, moment);
    Attempt resumed(folder.path(), LongConfiguration());
    REQUIRE(resumed.Run().ok());
    CHECK(resumed.run.Weights() == whole.run.Weights());
    CHECK(resumed.LoggedValidationLosses() == whole.LoggedValidationLosses());
  }
}

TEST_CASE("SFT that is stopped after every step and resumed keeps its best weights and its patience") {
  const TemporaryDirectory undisturbed, disturbed;
  Attempt whole(undisturbed.path(), SmallConfiguration());
  REQUIRE(whole.Run().ok());
  const int64_t num_steps = whole.progress().step;
  REQUIRE(whole.progress().best_step < num_steps - 1);  // an attempt begins after the best

  absl::Status status = absl::CancelledError("not begun");
  int64_t attempts = 0;
  std::unique_ptr<Attempt> last;
  while (absl::IsCancelled(status) && attempts < 2 * num_steps) {
    last = std::make_unique<Attempt>(disturbed.path(), SmallConfiguration());
    last->run.stop = true;
    status = last->Run();
    ++attempts;
  }
  INFO(status.ToString());
  CHECK(attempts >= num_steps);
  CHECK(last->progress().step == num_steps);
  CHECK(last->progress().best_step == whole.progress().best_step);
  CHECK(last->run.Weights() == whole.run.Weights());
  CHECK(last->LoggedValidationLosses() == whole.LoggedValidationLosses());
}

}  // namespace warpsmith
