// An engine on the fake of a device whose weights change, and which sleeps, while samples are under way.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/model/weight_source.h"
#include "rollout_workers/engine.h"
#include "rollout_workers/weights.h"
#include "tests/support/catch.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/fake_paged_device.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr size_t kTokensBefore = 20;  // that sample 0 has when a test does something
constexpr int kAnswerTokens = 300;

using Place = std::pair<int64_t, int>;  // job, sample

// Weights by version v are of seed 100 + v.
uint64_t SeedOf(uint64_t version) { return 100 + version; }

LoadedWeights Weights(uint64_t version) {
  LoadedWeights weights{.policy_version = version};
  weights.random_seed = SeedOf(version);
  return weights;
}

class Bench {
 public:
  explicit Bench(absl::Duration hold_max = absl::Minutes(30))
      : engine_(Tiny(), Options(hold_max), Events(), MakeFakeDeviceBatch(Tiny(), Options(hold_max), state)) {
    Load(0);
  }
  ~Bench() {
    if (!hurried_.HasBeenNotified()) hurried_.Notify();
  }

  absl::Status Swap(const LoadedWeights& weights,
                    paged::EntriesOnChange entries = paged::EntriesOnChange::kRequireNone,
                    absl::Duration patience = kPatience) {
    return engine_.SwapWeights(weights, absl::Now() + patience, entries);
  }
  void Load(uint64_t version) { REQUIRE(Swap(Weights(version)).ok()); }

  // Submits job `id` of version 0 with samples of kAnswerTokens, which come slowly once sample 0 has kTokensBefore.
  void StartSlowly(int64_t id) {
    GenerationJob job = Job(id, {Group(static_cast<int>(id), 3, 5)}, kAnswerTokens);
    job.reports_tokens = true;
    REQUIRE(engine_.Submit(job).ok());
    jobs_[id] = job;
    REQUIRE(begun_.WaitForNotificationWithTimeout(kPatience));
  }
  void Hurry() { hurried_.Notify(); }

  std::map<Place, FinishedSample> Await(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto arrived = [&] { return samples_.size() >= count; };
    CHECK(mutex_.AwaitWithTimeout(absl::Condition(&arrived), kPatience));
    CHECK(failures_.empty());
    return std::exchange(samples_, {});
  }
  // Of an engine whose device is lost, once it has told so.
  std::vector<FailedJob> AwaitLoss() {
    absl::MutexLock lock(&mutex_);
    const auto lost = [&] { return num_losses_ > 0; };
    CHECK(mutex_.AwaitWithTimeout(absl::Condition(&lost), kPatience));
    return failures_;
  }
  int num_losses() {
    absl::MutexLock lock(&mutex_);
    return num_losses_;
  }
  std::vector<FailedJob> AwaitFailures(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto arrived = [&] { return failures_.size() >= count; };
    CHECK(mutex_.AwaitWithTimeout(absl::Condition(&arrived), kPatience));
    return std::exchange(failures_, {});
  }
  size_t num_tokens() {
    absl::MutexLock lock(&mutex_);
    return num_tokens_;
  }

  // Whether each token of `sample` is what the weights of its version draw after the tokens before it.
  bool IsOfItsVersions(const FinishedSample& sample) const {
    const GenerationJob& job = jobs_.at(sample.job_id);
    std::vector<int32_t> tokens = job.groups[0].prompt_token_ids;
    for (size_t i = 0; i < sample.answer_token_ids.size(); ++i) {
      const uint64_t version =
          sample.token_policy_versions.empty() ? sample.policy_version : sample.token_policy_versions.at(i);
      if (sample.log_probs[i] != HashedLogProb(tokens, sample.seed, i, SeedOf(version))) return false;
      tokens.push_back(HashedToken(tokens, sample.seed, i, SeedOf(version), 97));
      if (tokens.back() != sample.answer_token_ids[i]) return false;
    }
    return std::ssize(sample.answer_token_ids) == kAnswerTokens;
  }

  Engine& engine() { return engine_; }
  const std::shared_ptr<FakeStepDeviceState> state = std::make_shared<FakeStepDeviceState>();

 private:
  static EngineOptions Options(absl::Duration hold_max) {
    return {.num_slots = 4, .context_tokens_max = 512, .hold_max = hold_max};
  }
  EngineEvents Events() {
    return {.on_sample =
                [this](FinishedSample sample) {
                  absl::MutexLock lock(&mutex_);
                  const Place place(sample.job_id, sample.sample_index);
                  CHECK(samples_.emplace(place, std::move(sample)).second);
                },
            .on_failure =
                [this](FailedJob job) {
                  absl::MutexLock lock(&mutex_);
                  failures_.push_back(std::move(job));
                },
            .on_token = [this](const DrawnToken& token) { TakeToken(token); },
            .on_lost =
                [this] {
                  absl::MutexLock lock(&mutex_);
                  ++num_losses_;
                }};
  }
  void TakeToken(const DrawnToken& token) {
    {
      absl::MutexLock lock(&mutex_);
      ++num_tokens_;
      if (token.sample_index == 0) ++num_tokens_of_first_;
      if (num_tokens_of_first_ < kTokensBefore) return;
    }
    if (!begun_.HasBeenNotified()) begun_.Notify();
    hurried_.WaitForNotificationWithTimeout(absl::Milliseconds(2));
  }

  absl::Mutex mutex_;
  std::map<Place, FinishedSample> samples_;
  std::vector<FailedJob> failures_;
  int num_losses_ = 0;
  size_t num_tokens_ = 0, num_tokens_of_first_ = 0;
  absl::Notification begun_, hurried_;
  std::map<int64_t, GenerationJob> jobs_;
  Engine engine_;
};

// Some elements, of which the fake makes a hash.
class FakeSource final : public WeightSource {
 public:
  int64_t num_elements() const override { return 4; }
  absl::Status CopyTo(uint16_t* elements, int, absl::Time) override {
    for (int i = 0; i < 4; ++i) elements[i] = static_cast<uint16_t>(i);
    return absl::OkStatus();
  }
};

}  // namespace

TEST_CASE("samples go on with new weights, and each token says which drew it") {
  const paged::EntriesOnChange entries =
      GENERATE(paged::EntriesOnChange::kKeep, paged::EntriesOnChange::kRecompute);
  Bench bench;
  bench.StartSlowly(1);
  REQUIRE(bench.Swap(Weights(1), entries).ok());
  CHECK(bench.engine().status().policy_version == 1);
  bench.Hurry();
  for (const auto& [place, sample] : bench.Await(3)) {
    CHECK(sample.policy_version == 0);
    REQUIRE(sample.token_policy_versions.size() == sample.answer_token_ids.size());
    CHECK(sample.token_policy_versions.front() == 0);
    CHECK(sample.token_policy_versions.back() == 1);
    CHECK(std::is_sorted(sample.token_policy_versions.begin(), sample.token_policy_versions.end()));
    CHECK(bench.IsOfItsVersions(sample));
  }
}

TEST_CASE("samples of one version say nothing of their tokens'") {
  Bench bench;
  bench.Hurry();
  bench.StartSlowly(1);
  for (const auto& [place, sample] : bench.Await(3)) {
    CHECK(sample.token_policy_versions.empty());
    CHECK(bench.IsOfItsVersions(sample));
  }
}

TEST_CASE("samples on the CPU do not go on with new weights, and the old ones stay") {
  Engine engine(Tiny(), {.num_slots = 2, .context_tokens_max = 64},
                {.on_sample = [](const FinishedSample&) {}, .on_failure = [](const FailedJob&) {}});
  REQUIRE(engine.SwapWeights(RandomWeights(Tiny(), 1), absl::Now() + kPatience).ok());
  LoadedWeights next = RandomWeights(Tiny(), 2);
  next.policy_version = 1;
  const absl::Status status =
      engine.SwapWeights(next, absl::Now() + kPatience, paged::EntriesOnChange::kKeep);
  CHECK(absl::IsUnimplemented(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("CPU") && Catch::Contains("version 1"));
  CHECK(engine.status().loaded);
  CHECK(engine.status().policy_version == 0);
  CHECK(absl::IsUnimplemented(engine.Sleep(SleepDepth::kPages)));
  CHECK(absl::IsUnimplemented(engine.Wake()));
  CHECK_FALSE(engine.status().asleep);
}

TEST_CASE("an engine that sleeps gives its pages back, and loses no sample") {
  Bench bench;
  bench.StartSlowly(1);
  REQUIRE(bench.engine().Sleep(SleepDepth::kPages).ok());
  REQUIRE(bench.engine().Sleep(SleepDepth::kPages).ok());
  CHECK_FALSE(bench.state->has_pages);
  CHECK(bench.state->has_weight_memory);
  CHECK(bench.engine().status().asleep);
  CHECK(bench.engine().status().loaded);
  const size_t num_tokens = bench.num_tokens();
  bench.StartSlowly(2);  // waits with the others
  bench.Hurry();
  CHECK(bench.engine().status().num_waiting_samples > 0);
  CHECK(bench.num_tokens() == num_tokens);
  REQUIRE(bench.engine().Wake().ok());
  for (const auto& [place, sample] : bench.Await(6)) CHECK(bench.IsOfItsVersions(sample));
  CHECK_FALSE(bench.engine().status().asleep);
}

TEST_CASE("an engine whose memory others have taken sleeps on until they have given it back") {
  Bench bench;
  bench.StartSlowly(1);
  REQUIRE(bench.engine().Sleep(SleepDepth::kPages).ok());
  bench.state->memory_is_taken = true;
  CHECK(absl::IsResourceExhausted(bench.engine().Wake()));
  CHECK(bench.engine().status().asleep);
  bench.state->memory_is_taken = false;
  bench.Hurry();
  REQUIRE(bench.engine().Wake().ok());
  REQUIRE(bench.engine().Wake().ok());
  for (const auto& [place, sample] : bench.Await(3)) CHECK(bench.IsOfItsVersions(sample));
}

TEST_CASE("an engine that gave its weights back holds its samples until new ones come") {
  Bench bench;
  bench.StartSlowly(1);
  REQUIRE(bench.engine().Sleep(SleepDepth::kPagesAndWeights).ok());
  CHECK_FALSE(bench.state->has_pages);
  CHECK_FALSE(bench.state->has_weight_memory);
  CHECK_FALSE(bench.engine().status().loaded);
  CHECK(absl::IsFailedPrecondition(bench.engine().Submit(Job(2, {Group(0, 1, 5)}))));
  const absl::Status asleep = bench.Swap(Weights(1), paged::EntriesOnChange::kRecompute);
  CHECK(absl::IsFailedPrecondition(asleep));
  CHECK_THAT(std::string(asleep.message()), Catch::Contains("wake it first"));
  const size_t num_tokens = bench.num_tokens();
  bench.Hurry();
  REQUIRE(bench.engine().Wake().ok());
  CHECK(bench.state->has_pages);
  CHECK(bench.num_tokens() == num_tokens);
  REQUIRE(bench.Swap(Weights(1), paged::EntriesOnChange::kRecompute).ok());
  for (const auto& [place, sample] : bench.Await(3)) {
    CHECK(sample.token_policy_versions.back() == 1);
    CHECK(bench.IsOfItsVersions(sample));
  }
}

TEST_CASE("weights that arrive wrong leave none in use, and samples go on with the next") {
  Bench bench;
  bench.StartSlowly(1);
  LoadedWeights arriving{.policy_version = 1};
  arriving.source = std::make_shared<FakeSource>();
  bench.state->refuses_weights = true;
  CHECK(absl::IsDataLoss(bench.Swap(arriving, paged::EntriesOnChange::kKeep)));
  CHECK_FALSE(bench.engine().status().loaded);
  bench.Hurry();
  REQUIRE(bench.Swap(Weights(2), paged::EntriesOnChange::kKeep).ok());
  CHECK(bench.engine().status().loaded);
  for (const auto& [place, sample] : bench.Await(3)) {
    CHECK(sample.token_policy_versions.back() == 2);
    CHECK(bench.IsOfItsVersions(sample));
  }
  bench.state->refuses_weights = false;
  const uint64_t before = bench.state->weights;
  REQUIRE(bench.Swap(arriving).ok());
  CHECK(bench.state->weights != before);
}

TEST_CASE("an engine whose GPU is lost fails all its jobs, tells once, and takes no more") {
  Bench bench;
  bench.StartSlowly(1);
  REQUIRE(bench.engine().Submit(Job(2, {Group(0, 1, 5)}, kAnswerTokens)).ok());
  bench.state->late_step = bench.state->num_launched + 2;
  bench.Hurry();
  const std::vector<FailedJob> failures = bench.AwaitLoss();
  CHECK(failures.size() == 2);
  for (const FailedJob& failure : failures) CHECK(absl::IsUnavailable(failure.status));
  const EngineStatus status = bench.engine().status();
  CHECK(absl::IsUnavailable(status.lost));
  CHECK_FALSE(status.loaded);
  CHECK(status.num_active_samples + status.num_waiting_samples == 0);
  CHECK(bench.engine().Submit(Job(3, {Group(0, 1, 5)}, kAnswerTokens)) == status.lost);
  CHECK_FALSE(bench.Swap(Weights(1)).ok());
  CHECK(bench.num_losses() == 1);
}

TEST_CASE("samples that are held when the GPU is lost fail too") {
  Bench bench;
  bench.StartSlowly(1);
  bench.state->refuses_weights = true;
  LoadedWeights arriving{.policy_version = 1};
  arriving.source = std::make_shared<FakeSource>();
  REQUIRE_FALSE(bench.Swap(arriving, paged::EntriesOnChange::kKeep).ok());
  bench.state->loses_weights = true;
  CHECK(absl::IsUnavailable(bench.Swap(arriving, paged::EntriesOnChange::kKeep)));
  CHECK(bench.AwaitLoss().size() == 1);
  bench.Hurry();
}

TEST_CASE(
    "after weights that arrived wrong, samples that should end first are given up, and new weights are "
    "taken") {
  Bench bench;
  bench.StartSlowly(1);
  LoadedWeights arriving{.policy_version = 1};
  arriving.source = std::make_shared<FakeSource>();
  bench.state->refuses_weights = true;
  REQUIRE(absl::IsDataLoss(bench.Swap(arriving, paged::EntriesOnChange::kKeep)));
  REQUIRE(bench.Swap(Weights(2)).ok());
  const std::vector<FailedJob> failures = bench.AwaitFailures(1);
  CHECK(failures[0].job_id == 1);
  CHECK(absl::IsAborted(failures[0].status));
  CHECK_THAT(std::string(failures[0].status.message()),
             Catch::Contains("version 2") && Catch::Contains("ask again"));
  CHECK(bench.engine().status().policy_version == 2);
  CHECK(bench.engine().status().num_active_samples == 0);
  CHECK(bench.Await(0).empty());
}

TEST_CASE("samples that are held too long fail, asleep or without weights, and the next ones do not") {
  const bool sleeps = GENERATE(true, false);
  Bench bench(absl::Milliseconds(50));
  bench.StartSlowly(1);
  if (sleeps) {
    REQUIRE(bench.engine().Sleep(SleepDepth::kPages).ok());
  } else {
    bench.state->refuses_weights = true;
    LoadedWeights arriving{.policy_version = 1};
    arriving.source = std::make_shared<FakeSource>();
    REQUIRE(absl::IsDataLoss(bench.Swap(arriving, paged::EntriesOnChange::kKeep)));
  }
  const std::vector<FailedJob> failures = bench.AwaitFailures(1);
  CHECK(absl::IsAborted(failures[0].status));
  CHECK_THAT(std::string(failures[0].status.message()),
             Catch::Contains("50ms") && Catch::Contains("ask again"));
  bench.Hurry();
  if (sleeps) {
    REQUIRE(bench.engine().Wake().ok());
  } else {
    bench.Load(0);
  }
  bench.StartSlowly(2);
  for (const auto& [place, sample] : bench.Await(3)) CHECK(bench.IsOfItsVersions(sample));
}

TEST_CASE(
    "weights in use are not taken twice, and others under their version not where tokens would not tell") {
  Bench bench;
  LoadedWeights one = Weights(1);
  one.sha256 = "one";
  REQUIRE(bench.Swap(one).ok());
  one.random_seed = 55;  // would be seen
  const paged::EntriesOnChange entries =
      GENERATE(paged::EntriesOnChange::kRequireNone, paged::EntriesOnChange::kKeep,
               paged::EntriesOnChange::kRecompute);
  CHECK(bench.Swap(one, entries).ok());
  CHECK(bench.state->weights == SeedOf(1));
  LoadedWeights other = Weights(1);
  other.sha256 = "other";
  for (const paged::EntriesOnChange goes_on :
       {paged::EntriesOnChange::kKeep, paged::EntriesOnChange::kRecompute}) {
    const absl::Status status = bench.Swap(other, goes_on);
    CHECK(absl::IsFailedPrecondition(status));
    CHECK_THAT(std::string(status.message()),
               Catch::Contains("Version 1") && Catch::Contains("under another version"));
  }
  CHECK(bench.engine().status().weights_sha256 == "one");
  REQUIRE(bench.Swap(other).ok());
  CHECK(bench.engine().status().weights_sha256 == "other");
}

TEST_CASE("an engine that does not come to it in time does not fall asleep") {
  Bench bench;
  bench.StartSlowly(1);
  CHECK(absl::IsDeadlineExceeded(bench.engine().Sleep(SleepDepth::kPages, absl::InfinitePast())));
  CHECK_FALSE(bench.engine().status().asleep);
  CHECK(absl::IsDeadlineExceeded(bench.engine().Wake(absl::InfinitePast())));
  bench.Hurry();
  CHECK(bench.Await(3).size() == 3);
}

}  // namespace warpsmith
