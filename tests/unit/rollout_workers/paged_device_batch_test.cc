#include "rollout_workers/paged_device_batch.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/counter_random.h"
#include "tests/support/catch.h"
#include "tests/support/fake_paged_device.h"
#include "tests/support/fake_step_device.h"
#include "tests/unit/rollout_workers/device_batch_rig.h"

namespace warpsmith {

TEST_CASE("a step is launched before the tokens of the one before it are read") {
  Rig rig;
  rig.batch->Add(Job(1, {9}, 1, 20));
  rig.Step();
  CHECK(rig.num_steps == 0);
  CHECK(rig.state->num_in_flight == 1);
  rig.Step();
  CHECK(rig.num_steps == 1);
  rig.RunToEnd();
  CHECK(rig.state->num_in_flight_max == 2);
  CHECK(rig.finished.size() == 1);
  CHECK(rig.num_steps == rig.state->num_launched);
}

TEST_CASE("samples of a device are those of each alone, with their names, seeds and reasons") {
  Rig rig;
  const GenerationJob job = Job(3, {9, 1, 16, 30}, 5, 8);
  rig.batch->Add(job);
  CHECK(rig.batch->num_waiting() == 20);
  rig.RunToEnd();
  REQUIRE(rig.finished.size() == 20);
  int num_tokens = 0;
  for (const auto& [place, sample] : rig.finished) {
    CHECK(IsAsAlone(sample, job, 1));
    CHECK(sample.seed == UniformWord(3, 100 * sample.task_index + sample.sample_index - 10));
    num_tokens += static_cast<int>(sample.answer_token_ids.size());
  }
  CHECK(rig.num_drawn == num_tokens);
  CHECK(rig.drawn.empty());
  CHECK(rig.AllPagesAreLeft());
}

TEST_CASE("tokens are told of jobs that report them, each before its sample") {
  Rig rig;
  GenerationJob job = Job(1, {9, 5}, 2, 8);
  job.reports_tokens = true;
  rig.batch->Add(job);
  rig.RunToEnd();
  REQUIRE(rig.drawn.size() == 4);
  for (const auto& [place, tokens] : rig.drawn) CHECK(tokens == rig.finished.at(place).answer_token_ids);
}

TEST_CASE("a launch that fails fails every job with the device's words, and the next job runs") {
  Rig rig;
  rig.state->failing_launch = 3;
  rig.batch->Add(Job(1, {9}, 4, 30));
  rig.batch->Add(Job(2, {9}, 40, 30));
  rig.RunToEnd();
  REQUIRE(rig.failed.size() == 2);
  CHECK_THAT(std::string(rig.failed.at(1).message()), Catch::Contains("the launch was refused"));
  CHECK(rig.failed.at(2).code() == absl::StatusCode::kInternal);
  CHECK(rig.AllPagesAreLeft());
  const size_t num_before = rig.finished.size();
  const GenerationJob job = Job(3, {9}, 4, 30);
  rig.batch->Add(job);
  rig.RunToEnd();
  CHECK(rig.finished.size() == num_before + 4);
  for (const auto& [place, sample] : rig.finished) {
    if (std::get<0>(place) == 3) CHECK(IsAsAlone(sample, job, 1));
  }
}

TEST_CASE("a device that is not done in time is lost: its jobs are for others, and so are later ones") {
  Rig rig;
  CHECK(rig.batch->lost().ok());
  rig.state->late_step = 2;
  rig.batch->Add(Job(1, {9}, 4, 30));
  rig.RunToEnd();
  REQUIRE(rig.failed.contains(1));
  CHECK(absl::IsUnavailable(rig.failed.at(1)));
  CHECK_THAT(std::string(rig.failed.at(1).message()), Catch::Contains("step 2"));
  CHECK(rig.batch->lost() == rig.failed.at(1));
  rig.batch->Add(Job(2, {9}, 4, 30));
  CHECK_FALSE(rig.batch->can_step());
  rig.Take(rig.batch->Settle());
  CHECK(rig.batch->empty());
  CHECK(absl::IsUnavailable(rig.failed.at(2)));
  CHECK_FALSE(rig.batch->SetWeights({.random_seed = 2}, paged::EntriesOnChange::kRequireNone).ok());
}

TEST_CASE("logits that are no numbers fail their job alone") {
  Rig rig;
  rig.state->broken_step = 2;
  const GenerationJob other = Job(2, {7}, 2, 6);
  rig.batch->Add(Job(1, {9, 8}, 2, 30));
  rig.batch->Add(other);
  rig.RunToEnd();
  REQUIRE(rig.failed.size() == 1);
  CHECK_THAT(std::string(rig.failed.at(1).message()), Catch::Contains("not finite"));
  CHECK(rig.finished.contains({2, 0, 10}));
  CHECK(rig.finished.contains({2, 0, 11}));
  CHECK(rig.AllPagesAreLeft());
}

TEST_CASE("a prompt with an id that no logit belongs to fails its job, and not the engine") {
  Rig rig;
  GenerationJob job = Job(1, {9, 4}, 2, 6);
  job.groups[1].prompt_token_ids[2] = kNumTokenIds;
  rig.batch->Add(job);
  CHECK_FALSE(rig.batch->empty());
  rig.RunToEnd();
  REQUIRE(rig.failed.contains(1));
  CHECK(absl::IsInvalidArgument(rig.failed.at(1)));
  CHECK(rig.finished.empty());
}

TEST_CASE("jobs and samples can go at any moment, and what is left is unchanged") {
  for (int num_steps = 0; num_steps < 12; ++num_steps) {
    Rig rig;
    GenerationJob stays = Job(1, {9, 3}, 4, 12);
    stays.reports_tokens = true;
    rig.batch->Add(stays);
    rig.batch->Add(Job(2, {9}, 4, 12));
    for (int i = 0; i < num_steps; ++i) rig.Step();
    const bool decodes = rig.drawn.contains({1, 0, 10}) && !rig.finished.contains({1, 0, 10});
    rig.batch->RemoveSample({.job_id = 1, .task_index = 0, .sample_index = 10});
    rig.batch->RemoveSample({.job_id = 1, .task_index = 0, .sample_index = 99});
    rig.batch->RemoveSample({.job_id = 9, .task_index = 0, .sample_index = 10});
    rig.batch->Remove(2);
    rig.batch->Remove(9);
    std::erase_if(rig.finished, [](const auto& sample) { return std::get<0>(sample.first) == 2; });
    rig.RunToEnd();
    CHECK(rig.finished.size() == (decodes ? 7 : 8));
    for (const auto& [place, sample] : rig.finished) CHECK(IsAsAlone(sample, stays, 1));
    CHECK(rig.AllPagesAreLeft());
  }
}

TEST_CASE("the last sample of a job can be taken while its step is under way") {
  Rig rig;
  rig.batch->Add(Job(1, {9}, 1, 12));
  rig.Step();
  rig.Step();
  rig.batch->RemoveSample({.job_id = 1, .task_index = 0, .sample_index = 10});
  CHECK_FALSE(rig.batch->empty());  // its step
  rig.RunToEnd();
  CHECK(rig.finished.empty());
  CHECK(rig.AllPagesAreLeft());
}

TEST_CASE("the same version can be loaded again, and nothing of the old weights is found as a prefix") {
  Rig rig;
  for (const uint64_t seed : {1, 2, 2, 3}) {
    rig.Load(seed);
    rig.finished.clear();
    const GenerationJob job = Job(1, {20}, 3, 8);
    rig.batch->Add(job);
    rig.RunToEnd();
    REQUIRE(rig.finished.size() == 3);
    for (const auto& [place, sample] : rig.finished) CHECK(IsAsAlone(sample, job, seed));
  }
}

TEST_CASE("weights that are named by nothing are refused") {
  Rig rig;
  const absl::Status status =
      rig.batch->SetWeights({.policy_version = 7}, paged::EntriesOnChange::kRequireNone);
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("Version 7"));
  CHECK(
      rig.batch->SetWeights(HuggingFaceDirectory("a/checkpoint"), paged::EntriesOnChange::kRequireNone).ok());
}

TEST_CASE("fewer pages than one context takes are refused") {
  paged::PagedBatchOptions options{
      .num_pages = 10, .page_tokens = 4, .context_tokens_max = 40, .num_token_ids = 5};
  const auto create = [&] {
    auto device = std::make_unique<FakeStepDevice>(options, std::make_shared<FakeStepDeviceState>());
    return PagedDeviceBatch::Create(options, std::move(device)).status();
  };
  CHECK(absl::IsFailedPrecondition(create()));
  options.num_pages = 11;
  CHECK(create().ok());
}

namespace {

// Two thousand jobs that come, are cancelled in part or whole, and break, over weights that change.
class Churn {
 public:
  explicit Churn(uint64_t seed) : seed_(seed) {}

  void Run() {
    while (std::ssize(jobs_) < 2000) {
      Submit();
      for (uint64_t i = 0; i < Draw(4); ++i) rig_.Step();
      if (Draw(4) == 0) CancelOne();
      if (Draw(8) == 0) CancelSample();
      if (Draw(100) == 0)
        rig_.state->failing_launch = rig_.state->num_launched + static_cast<int64_t>(Draw(5));
      if (Draw(50) == 0) rig_.state->broken_step = rig_.state->num_launched + static_cast<int64_t>(Draw(5));
      if (Draw(100) == 0) ChangeWeights();
    }
    rig_.RunToEnd();
  }

  void Check() const {
    CHECK(rig_.AllPagesAreLeft());
    int num_wrong = 0, num_lost = 0;
    for (const auto& [id, job] : jobs_) {
      for (const GenerationGroup& group : job.groups) {
        for (const WantedSample& sample : group.samples) {
          const Place place(id, group.task_index, sample.sample_index);
          const auto found = rig_.finished.find(place);
          const bool may_lack =
              cancelled_.contains(id) || rig_.failed.contains(id) || cancelled_samples_.contains(place);
          if (found == rig_.finished.end()) num_lost += !may_lack;
          if (found != rig_.finished.end()) num_wrong += !IsAsAlone(found->second, job, job.policy_version);
        }
      }
    }
    CHECK(num_lost == 0);
    CHECK(num_wrong == 0);
    CHECK(rig_.finished.size() > 2000);
    CHECK(rig_.failed.size() > 5);
    CHECK(rig_.batch->paged_status().num_preemptions > 0);
  }

 private:
  uint64_t Draw(uint64_t below) { return UniformWord(seed_, num_draws_++) % below; }

  void Submit() {
    const auto id = static_cast<int64_t>(jobs_.size()) + 1;
    std::vector<int> lengths;
    for (uint64_t i = 0; i < 1 + Draw(2); ++i) lengths.push_back(1 + static_cast<int>(Draw(24)));
    GenerationJob job = Job(id, lengths, 1 + static_cast<int>(Draw(4)), 1 + static_cast<int>(Draw(16)));
    job.policy_version = weights_;
    if (rig_.batch->num_waiting() > 60) rig_.RunToEnd();
    rig_.batch->Add(job);
    jobs_.emplace(id, std::move(job));
  }
  void CancelOne() {
    const auto id = static_cast<int64_t>(jobs_.size() - Draw(std::min<uint64_t>(jobs_.size(), 10)));
    rig_.batch->Remove(id);
    cancelled_.insert(id);
  }
  void CancelSample() {
    const auto id = static_cast<int64_t>(jobs_.size() - Draw(std::min<uint64_t>(jobs_.size(), 4)));
    rig_.batch->RemoveSample({.job_id = id, .task_index = 0, .sample_index = 10});
    cancelled_samples_.insert({id, 0, 10});
  }
  void ChangeWeights() {
    rig_.RunToEnd();
    rig_.Load(++weights_);
  }

  static EngineOptions TightOptions() {
    EngineOptions options = Options();
    options.samples_max = 1000;
    return options;
  }

  const uint64_t seed_;
  uint64_t num_draws_ = 0;
  uint64_t weights_ = 1;
  Rig rig_{TightOptions(), 23};
  std::map<int64_t, GenerationJob> jobs_;
  std::set<int64_t> cancelled_;
  std::set<Place> cancelled_samples_;
};

}  // namespace

TEST_CASE("of two thousand jobs that come and go every sample is answered once, and all pages are left") {
  const uint64_t seed = GENERATE(1, 2);
  CAPTURE(seed);
  Churn churn(seed);
  churn.Run();
  churn.Check();
}

}  // namespace warpsmith
