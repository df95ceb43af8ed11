#include "rollout_workers/engine.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "rollout_workers/weights.h"
#include "tests/support/catch.h"
#include "tests/support/engine_fixture.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

using Place = std::pair<int, int>;  // task_index, sample_index

// An engine and what it says.
class Bench {
 public:
  explicit Bench(Kind kind, EngineOptions options = {.num_slots = 64, .context_tokens_max = 256})
      : engine_(Tiny(), options,
                {.on_sample =
                     [this](FinishedSample sample) {
                       absl::MutexLock lock(&mutex_);
                       const Place place(sample.task_index, sample.sample_index);
                       samples_[place] = std::move(sample);
                     },
                 .on_failure =
                     [this](FailedJob job) {
                       absl::MutexLock lock(&mutex_);
                       failures_.push_back(std::move(job));
                     },
                 .on_token =
                     [this](DrawnToken token) {
                       absl::MutexLock lock(&mutex_);
                       const Place place(token.task_index, token.sample_index);
                       tokens_[place].push_back(token);
                       if (place == Place(0, 0) && tokens_[place].size() == cancels_first_at_) {
                         engine_.CancelSample(1, 0, 0);
                       }
                     }},
                MakeBatchOf(kind, options)) {}

  void Load(uint64_t seed, uint64_t version = 0) {
    LoadedWeights weights = RandomWeights(Tiny(), seed);
    weights.policy_version = version;
    REQUIRE(engine_.SwapWeights(std::move(weights), absl::Now() + kPatience).ok());
  }
  // Waits for `count` samples.
  std::map<Place, FinishedSample> Await(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto arrived = [&] { return samples_.size() >= count || !failures_.empty(); };
    CHECK(mutex_.AwaitWithTimeout(absl::Condition(&arrived), kPatience));
    return std::exchange(samples_, {});
  }
  std::vector<FailedJob> failures() {
    absl::MutexLock lock(&mutex_);
    return failures_;
  }
  // The tokens so far of each sample whose job reports them.
  std::map<Place, std::vector<DrawnToken>> tokens() {
    absl::MutexLock lock(&mutex_);
    return tokens_;
  }
  // Cancels sample 0 of task 0 of job 1 with its `count`-th token.
  void CancelFirstAt(size_t count) {
    absl::MutexLock lock(&mutex_);
    cancels_first_at_ = count;
  }
  Engine& engine() { return engine_; }

 private:
  absl::Mutex mutex_;
  std::map<Place, std::vector<DrawnToken>> tokens_;
  size_t cancels_first_at_ = 0;
  std::map<Place, FinishedSample> samples_;
  std::vector<FailedJob> failures_;
  Engine engine_;
};

}  // namespace

TEST_CASE("a sample decoded alone and among 63 others has the same tokens and log-probs to the bit") {
  const Kind kind = GENERATE(Kind::kCpu, Kind::kDevice);
  Bench crowd(kind, {.num_slots = 64, .context_tokens_max = 256, .num_threads = 2});
  crowd.Load(1);
  std::vector<GenerationGroup> groups;
  for (int task = 0; task < 8; ++task) groups.push_back(Group(task, 8, 3 + 17 * task));
  REQUIRE(crowd.engine().Submit(Job(1, groups)).ok());
  const std::map<Place, FinishedSample> among = crowd.Await(64);
  REQUIRE(among.size() == 64);

  Bench solitary(kind, {.num_slots = 1, .context_tokens_max = 256});
  solitary.Load(1);
  for (const Place& place : {Place{0, 0}, Place{3, 5}, Place{7, 7}}) {
    GenerationGroup one = groups[place.first];
    one.samples = {one.samples[place.second]};
    REQUIRE(solitary.engine().Submit(Job(2, {one})).ok());
    const FinishedSample alone = solitary.Await(1).begin()->second;
    CHECK(alone.answer_token_ids.size() == 30);
    CHECK(alone.answer_token_ids == among.at(place).answer_token_ids);
    CHECK(alone.log_probs == among.at(place).log_probs);
  }
}

TEST_CASE("samples do not depend on when they were admitted, beside a sibling or after all of them") {
  const Kind kind = GENERATE(Kind::kCpu, Kind::kDevice);
  std::vector<std::map<Place, FinishedSample>> runs;
  for (const int num_slots : {1, 3, 16}) {
    Bench bench(kind,
                {.num_slots = num_slots, .context_tokens_max = 256, .scheduler = {.prefill_tokens_max = 10}});
    bench.Load(1);
    GenerationJob job = Job(1, {Group(0, 7, 70), Group(1, 5, 1), Group(2, 4, 64)});
    REQUIRE(bench.engine().Submit(job).ok());
    runs.push_back(bench.Await(16));
  }
  REQUIRE(runs[0].size() == 16);
  for (const auto& [place, sample] : runs[0]) {
    for (const auto& run : runs) {
      CHECK(run.at(place).answer_token_ids == sample.answer_token_ids);
      CHECK(run.at(place).log_probs == sample.log_probs);
    }
  }
}

TEST_CASE("an answer ends with a stop token, which it keeps, or at its limit") {
  const Kind kind = GENERATE(Kind::kCpu, Kind::kDevice);
  EngineOptions options{.num_slots = 64, .context_tokens_max = 256};
  for (int token = 0; token < 12; ++token) options.stop_token_ids.push_back(token);
  Bench bench(kind, options);
  bench.Load(1);
  REQUIRE(bench.engine().Submit(Job(1, {Group(0, 64, 5)}, 6)).ok());
  int num_stopped = 0;
  for (const auto& [place, sample] : bench.Await(64)) {
    const auto stop = std::find_if(sample.answer_token_ids.begin(), sample.answer_token_ids.end(),
                                   [](int32_t token) { return token < 12; });
    const bool stopped = stop != sample.answer_token_ids.end();
    num_stopped += stopped;
    CHECK(sample.finish_reason == (stopped ? FinishReason::kStop : FinishReason::kLength));
    CHECK(stop - sample.answer_token_ids.begin() >= std::ssize(sample.answer_token_ids) - 1);
    CHECK(sample.log_probs.size() == sample.answer_token_ids.size());
    CHECK((stopped || sample.answer_token_ids.size() == 6));
  }
  CHECK(num_stopped > 0);
  CHECK(num_stopped < 64);
}

TEST_CASE("jobs that cannot run are refused with the values") {
  const Kind kind = GENERATE(Kind::kCpu, Kind::kDevice);
  Bench bench(kind, {.num_slots = 4, .context_tokens_max = 40, .samples_max = 8});
  CHECK(absl::IsFailedPrecondition(bench.engine().Submit(Job(1, {Group(0, 1, 4)}))));
  bench.Load(1);
  const auto code = [&](GenerationJob job) { return bench.engine().Submit(std::move(job)).code(); };
  CHECK(code(Job(1, {Group(0, 1, 0)})) == absl::StatusCode::kInvalidArgument);
  CHECK(code(Job(1, {Group(0, 1, 11)})) == absl::StatusCode::kInvalidArgument);
  CHECK(code(Job(1, {Group(0, 9, 4)})) == absl::StatusCode::kInvalidArgument);
  GenerationGroup foreign = Group(0, 1, 4);
  foreign.prompt_token_ids[2] = 97;
  CHECK(code(Job(1, {foreign})) == absl::StatusCode::kInvalidArgument);
  GenerationJob stale = Job(1, {Group(0, 1, 4)});
  stale.policy_version = 3;
  CHECK(code(stale) == absl::StatusCode::kFailedPrecondition);
  CHECK(code(Job(1, {Group(0, 1, 10)})) == absl::StatusCode::kOk);
  CHECK(bench.Await(1).size() == 1);
}

TEST_CASE("tokens that are told as they are drawn are those of the samples") {
  const Kind kind = GENERATE(Kind::kCpu, Kind::kDevice);
  Bench bench(kind, {.num_slots = 3, .context_tokens_max = 256});
  bench.Load(1);
  GenerationJob job = Job(1, {Group(0, 4, 5), Group(1, 1, 9)});
  job.reports_tokens = true;
  REQUIRE(bench.engine().Submit(job).ok());
  const std::map<Place, FinishedSample> samples = bench.Await(5);
  const auto tokens = bench.tokens();
  REQUIRE(tokens.size() == 5);
  for (const auto& [place, drawn] : tokens) {
    std::vector<int32_t> ids;
    std::vector<float> log_probs;
    for (const DrawnToken& token : drawn) {
      CHECK(token.job_id == 1);
      ids.push_back(token.token_id);
      log_probs.push_back(token.log_prob);
    }
    CHECK(ids == samples.at(place).answer_token_ids);
    CHECK(log_probs == samples.at(place).log_probs);
  }
  REQUIRE(bench.engine().Submit(Job(2, {Group(5, 1, 5)})).ok());
  CHECK(bench.Await(1).size() == 1);
  CHECK(bench.tokens().size() == 5);
}

TEST_CASE("the most probable tokens are told beside each token, and change none") {
  const Kind kind = GENERATE(Kind::kCpu, Kind::kDevice);
  Bench bench(kind, {.num_slots = 3, .context_tokens_max = 256});
  bench.Load(1);
  GenerationJob job = Job(1, {Group(0, 2, 5), Group(1, 1, 9)});
  REQUIRE(bench.engine().Submit(job).ok());
  const std::map<Place, FinishedSample> without = bench.Await(3);
  job.id = 2;
  job.reports_tokens = true;
  job.num_top_tokens = 5;
  REQUIRE(bench.engine().Submit(job).ok());
  const std::map<Place, FinishedSample> samples = bench.Await(3);
  const auto tokens = bench.tokens();
  for (const auto& [place, sample] : samples) {
    CHECK(without.at(place).top_tokens.empty());
    CHECK(sample.answer_token_ids == without.at(place).answer_token_ids);
    CHECK(sample.log_probs == without.at(place).log_probs);
    REQUIRE(sample.top_tokens.size() == sample.answer_token_ids.size());
    for (size_t i = 0; i < sample.top_tokens.size(); ++i) {
      const std::vector<TokenLogProb>& top = sample.top_tokens[i];
      REQUIRE(top.size() == 5);
      CHECK(top == tokens.at(place)[i].top_tokens);
      for (size_t rank = 0; rank < top.size(); ++rank) {
        if (rank > 0) CHECK(top[rank].log_prob <= top[rank - 1].log_prob);
        if (top[rank].token_id == sample.answer_token_ids[i])
          CHECK(top[rank].log_prob == sample.log_probs[i]);
      }
    }
  }
  job.id = 3;
  job.num_top_tokens = 21;
  CHECK(absl::IsInvalidArgument(bench.engine().Submit(job)));
}

TEST_CASE("one sample of a job can be cancelled, and the others do not change") {
  const Kind kind = GENERATE(Kind::kCpu, Kind::kDevice);
  const auto run = [kind](bool cancels) {
    Bench bench(kind, {.num_slots = 2, .context_tokens_max = 256});
    bench.Load(1);
    if (cancels) bench.CancelFirstAt(3);
    GenerationJob job = Job(1, {Group(0, 4, 5)}, 250);
    job.reports_tokens = true;
    REQUIRE(bench.engine().Submit(job).ok());
    return bench.Await(cancels ? 3 : 4);
  };
  const std::map<Place, FinishedSample> all = run(false), rest = run(true);
  REQUIRE(rest.size() == 3);
  REQUIRE(all.size() == 4);
  CHECK(rest.count({0, 0}) == 0);
  for (const auto& [place, sample] : rest) {
    CHECK(sample.answer_token_ids == all.at(place).answer_token_ids);
    CHECK(sample.log_probs == all.at(place).log_probs);
  }
}

TEST_CASE("to cancel a sample that does not decode changes nothing") {
  const Kind kind = GENERATE(Kind::kCpu, Kind::kDevice);
  Bench bench(kind, {.num_slots = 1, .context_tokens_max = 256});
  bench.Load(1);
  REQUIRE(bench.engine().Submit(Job(1, {Group(0, 2, 5)})).ok());
  bench.engine().CancelSample(1, 7, 1);
  bench.engine().CancelSample(2, 0, 0);
  CHECK(bench.Await(2).size() == 2);
  bench.engine().CancelSample(1, 0, 0);
  REQUIRE(bench.engine().Submit(Job(1, {Group(0, 2, 5)})).ok());
  CHECK(bench.Await(2).size() == 2);
}

TEST_CASE("a cancelled job is forgotten and its slots serve others") {
  const Kind kind = GENERATE(Kind::kCpu, Kind::kDevice);
  Bench bench(kind, {.num_slots = 2, .context_tokens_max = 256});
  bench.Load(1);
  REQUIRE(bench.engine().Submit(Job(1, {Group(0, 50, 5)}, 250)).ok());
  bench.engine().Cancel(1);
  REQUIRE(bench.engine().Submit(Job(2, {Group(9, 2, 5)}, 3)).ok());
  // Some may end before they are cancelled; of jobs that are not, the first would end all of its samples first.
  std::map<int64_t, size_t> num_ended;
  while (num_ended[2] < 2 && num_ended[1] < 50) {
    for (const auto& [place, sample] : bench.Await(1)) ++num_ended[sample.job_id];
  }
  CHECK(num_ended[1] < 50);
}

TEST_CASE("new weights wait for the samples of the old ones, and change answers") {
  const Kind kind = GENERATE(Kind::kCpu, Kind::kDevice);
  Bench bench(kind);
  bench.Load(1);
  REQUIRE(bench.engine().Submit(Job(1, {Group(0, 4, 5)})).ok());
  bench.Load(2, 1);
  const std::map<Place, FinishedSample> before = bench.Await(4);
  GenerationJob job = Job(2, {Group(0, 4, 5)});
  CHECK(absl::IsFailedPrecondition(bench.engine().Submit(job)));
  job.policy_version = 1;
  REQUIRE(bench.engine().Submit(job).ok());
  const std::map<Place, FinishedSample> after = bench.Await(4);
  REQUIRE(after.size() == 4);
  CHECK(before.at({0, 0}).policy_version == 0);
  CHECK(after.at({0, 0}).policy_version == 1);
  CHECK(before.at({0, 0}).log_probs != after.at({0, 0}).log_probs);
}

TEST_CASE("a swap that finds no quiet moment in time leaves the old weights in use") {
  const Kind kind = GENERATE(Kind::kCpu, Kind::kDevice);
  Bench bench(kind, {.num_slots = 1, .context_tokens_max = 512});
  bench.Load(1);
  REQUIRE(bench.engine().Submit(Job(1, {Group(0, 60, 5)}, 500)).ok());
  LoadedWeights weights = RandomWeights(Tiny(), 2);
  weights.policy_version = 1;
  const absl::Status status = bench.engine().SwapWeights(weights, absl::Now());
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("Version 1 was not taken"));
  CHECK(bench.engine().status().policy_version == 0);
}

TEST_CASE("counters tell steps, tokens and occupancy") {
  const Kind kind = GENERATE(Kind::kCpu, Kind::kDevice);
  Bench bench(kind, {.num_slots = 8, .context_tokens_max = 256});
  bench.Load(1);
  REQUIRE(bench.engine().Submit(Job(1, {Group(0, 4, 50)}, 10)).ok());
  bench.Await(4);
  const EngineStatus status = bench.engine().status();
  CHECK(status.num_tokens_decoded == 40);
  CHECK(status.num_tokens_prefilled == 50);
  CHECK(status.num_steps == 10);
  CHECK(status.occupancy == Approx(0.5));
  CHECK(status.num_active_samples == 0);
}

}  // namespace warpsmith
