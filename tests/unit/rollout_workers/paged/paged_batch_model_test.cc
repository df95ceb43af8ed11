// Thousands of requests through a PagedBatch and a fake device, with everything that may happen to them, at
// random. Whatever is wrong in sharing, copying, preempting or versions makes a row see what is not its own.
#include <algorithm>
#include <deque>
#include <set>
#include <string>

#include "core/base/counter_random.h"
#include "tests/support/catch.h"
#include "tests/support/fake_paged_device.h"

namespace warpsmith::paged {
namespace {

struct Scenario {
  std::string name;
  uint64_t seed = 0;
  int num_requests = 0;
  PagedBatchOptions options;
  EntriesOnChange entries = EntriesOnChange::kRecompute;
  // Chance in 1,000 of each in a round.
  int abort = 10, finish_early = 10, pause = 10, sleep = 2, change = 4;
  // Of prompts.
  int num_token_ids = 50;
  int prompt_tokens_max = 36;
};

// Prefixes that differ before the last block collide as well.
uint64_t CollidingHash(const PrefixBlock& block) {
  return HashBlock({.policy_version = block.policy_version, .token_ids = block.token_ids}) % 5;
}

class Drive {
 public:
  explicit Drive(const Scenario& scenario)
      : scenario_(scenario),
        device_(scenario.options, scenario.entries == EntriesOnChange::kKeep
                                      ? FakePagedDevice::VersionRule::kSinceStart
                                      : FakePagedDevice::VersionRule::kSame),
        batch_(*PagedBatch::Create(scenario.options, 1)) {}

  void Run() {
    while (num_submitted_ < scenario_.num_requests || !batch_->empty()) {
      INFO("round " << num_rounds_);
      Disturb();
      SubmitSome();
      Step();
      Check();
      // A round makes or completes a step, but for pauses and sleep, which end; so this bounds the work.
      REQUIRE(++num_rounds_ < scenario_.num_requests * 100);
    }
    while (batch_->num_steps_in_flight() > 0) CompleteOldest();
    Check();
    const PagedBatchStatus status = batch_->status();
    CHECK(status.num_free_pages + status.num_cached_pages == scenario_.options.num_pages - 1);
    CHECK(num_ended_ + num_dropped_ == num_samples_);
  }

  const PagedBatch& batch() const { return *batch_; }
  const FakePagedDevice& device() const { return device_; }
  int64_t num_ended() const { return num_ended_; }
  int num_refused() const { return num_refused_; }
  int num_changes() const { return static_cast<int>(version_) - 1; }

 private:
  struct Open {
    PagedRequest request;
    std::vector<std::vector<int32_t>> tokens;  // as they were read, by sample
    std::set<int> left;
    bool paused = false;
    uint64_t version = 0;
  };

  uint64_t Random(uint64_t bound) { return UniformWord(scenario_.seed, ++num_random_) % bound; }
  bool Happens(int per_mille) { return Random(1000) < static_cast<uint64_t>(per_mille); }

  // Prompts of a few families begin alike.
  PagedRequest SomeRequest() {
    PagedRequest request{.id = num_submitted_, .answer_tokens_max = 1 + static_cast<int>(Random(20))};
    const uint64_t family = Random(4);
    const uint64_t alike = Random(28);
    const uint64_t length = 1 + Random(scenario_.prompt_tokens_max);
    for (uint64_t i = 0; i < length; ++i) {
      request.prompt_token_ids.push_back(static_cast<int32_t>(
          (i < alike ? UniformWord(family, i) : Random(1000)) % scenario_.num_token_ids));
    }
    const int num_samples = 1 + static_cast<int>(Random(4));
    for (int i = 0; i < num_samples; ++i)
      request.seeds.push_back(UniformWord(scenario_.seed ^ 77, ++num_seeds_));
    return request;
  }

  void SubmitSome() {
    for (uint64_t n = Random(3); n > 0 && num_submitted_ < scenario_.num_requests; --n) {
      PagedRequest request = SomeRequest();
      const absl::Status status = batch_->Submit(request);
      if (absl::IsResourceExhausted(status)) {
        ++num_refused_;
        return;
      }
      REQUIRE(status.ok());
      device_.Expect(request);
      Open open{.request = request, .tokens = {}};
      open.tokens.resize(request.seeds.size());
      for (int i = 0; i < std::ssize(request.seeds); ++i) open.left.insert(i);
      num_samples_ += std::ssize(request.seeds);
      open_[num_submitted_++] = std::move(open);
    }
  }

  std::map<int64_t, Open>::iterator Someone() {
    return open_.empty() ? open_.end() : std::next(open_.begin(), Random(open_.size()));
  }

  void Disturb() {
    if (Happens(scenario_.abort)) AbortSomeone();
    if (Happens(scenario_.finish_early)) FinishSomeone();
    if (Happens(scenario_.pause)) PauseSomeone();
    if (Happens(30)) ResumeAll();
    if (Happens(2)) FailDevice();
    if (batch_->asleep() ? Happens(300) : Happens(scenario_.sleep)) ToggleSleep();
    ChangeWeights();
  }

  void AbortSomeone() {
    const auto someone = Someone();
    if (someone == open_.end()) return;
    batch_->Abort(someone->first);
    num_dropped_ += std::ssize(someone->second.left);
    open_.erase(someone);
  }

  void FinishSomeone() {
    const auto someone = Someone();
    if (someone == open_.end()) return;
    Open& open = someone->second;
    const int sample = *std::next(open.left.begin(), Random(open.left.size()));
    const auto num_kept = static_cast<int>(Random(open.tokens[sample].size() + 1));
    const absl::StatusOr<FinishedAnswer> answer = batch_->FinishEarly(someone->first, sample, num_kept);
    REQUIRE(answer.ok());
    REQUIRE(std::ssize(answer->token_ids) == num_kept);
    End(*answer);
  }

  void PauseSomeone() {
    const auto someone = Someone();
    if (someone == open_.end()) return;
    REQUIRE(batch_->Pause(someone->first).ok());
    someone->second.paused = true;
  }

  void ResumeAll() {
    for (auto& [id, open] : open_) {
      REQUIRE(batch_->Resume(id).ok());
      open.paused = false;
    }
  }

  void FailDevice() {
    launched_.clear();
    device_.Fail();
    batch_->DropSteps();
    REQUIRE(batch_->num_steps_in_flight() == 0);
  }

  void ToggleSleep() {
    if (batch_->asleep()) return batch_->Wake();
    while (batch_->num_steps_in_flight() > 0) {
      REQUIRE_FALSE(batch_->Sleep().ok());
      CompleteOldest();
    }
    REQUIRE(batch_->Sleep().ok());
  }

  void ChangeWeights() {
    if (scenario_.entries != EntriesOnChange::kRequireNone) {
      if (Happens(scenario_.change)) REQUIRE(batch_->ChangeWeights(++version_, scenario_.entries).ok());
      return;
    }
    if (!holding_ && Happens(scenario_.change)) {
      holding_ = true;
      batch_->HoldNew();
    }
    if (!holding_) return;
    const absl::Status status = batch_->ChangeWeights(version_ + 1, EntriesOnChange::kRequireNone);
    REQUIRE(status.ok() == batch_->drained());
    if (!status.ok()) return;
    ++version_;
    holding_ = false;
    batch_->AdmitNew();
  }

  void Step() {
    StepPlan plan = batch_->Plan(std::move(reuse_));
    const bool empty = plan.empty();
    if (!empty) {
      REQUIRE(plan.policy_version == version_);
      launched_.push_back(std::move(plan));
    } else {
      reuse_ = std::move(plan);
    }
    // Steps run as late as they may: just before their results are read.
    const bool full = batch_->num_steps_in_flight() == scenario_.options.steps_in_flight_max;
    if (batch_->num_steps_in_flight() > 0 && (empty || full || Happens(300))) return CompleteOldest();
    if (!empty || batch_->asleep() || holding_) return;
    for (const auto& [id, open] : open_) {
      INFO("request " << id << " waits, and nothing is planned or in flight");
      REQUIRE(open.paused);
    }
  }

  void CompleteOldest() {
    const absl::StatusOr<std::vector<TokenResult>> results = device_.Run(launched_.front());
    INFO(results.status().message());
    REQUIRE(results.ok());
    const uint64_t version = launched_.front().policy_version;
    reuse_ = std::move(launched_.front());
    launched_.pop_front();
    const StepOutcome outcome = batch_->Complete(*results);
    REQUIRE(outcome.broken_request_ids.empty());
    for (const AnswerToken& token : outcome.tokens) {
      REQUIRE(token.policy_version == version);
      REQUIRE(token.log_prob == -static_cast<float>(token.token_id));
      open_.at(token.request_id).tokens[token.sample_index].push_back(token.token_id);
    }
    for (const FinishedAnswer& answer : outcome.finished) End(answer);
  }

  // Equal to what decoding it alone gives, under the versions that its tokens are labelled with.
  void End(const FinishedAnswer& answer) {
    Open& open = open_.at(answer.request_id);
    const int sample = answer.sample_index;
    REQUIRE(open.left.erase(sample) == 1);
    REQUIRE(answer.seed == open.request.seeds[sample]);
    REQUIRE(answer.policy_versions.size() == answer.token_ids.size());
    REQUIRE(answer.log_probs.size() == answer.token_ids.size());
    REQUIRE(std::is_sorted(answer.policy_versions.begin(), answer.policy_versions.end()));
    REQUIRE(answer.token_ids == AnswerAlone(open.request, sample, answer.policy_versions, scenario_.options));
    if (scenario_.entries == EntriesOnChange::kRequireNone && !answer.policy_versions.empty()) {
      if (open.version == 0) open.version = answer.policy_versions.front();
      REQUIRE(answer.policy_versions.front() == open.version);  // the whole group is of one version
      REQUIRE(answer.policy_versions.back() == open.version);
    }
    const bool stopped = !answer.token_ids.empty() && answer.token_ids.back() == 0;
    const bool whole = std::ssize(answer.token_ids) == open.request.answer_tokens_max;
    if (answer.end == AnswerEnd::kStopToken) REQUIRE(stopped);
    if (answer.end == AnswerEnd::kLength) REQUIRE((whole && !stopped));
    ++num_ended_;
    if (open.left.empty()) open_.erase(answer.request_id);
  }

  void Check() {
    const absl::Status status = batch_->CheckInvariants();
    INFO(status.message());
    REQUIRE(status.ok());
    const PagedBatchStatus counts = batch_->status();
    int num_open = 0;
    for (const auto& [id, open] : open_) num_open += static_cast<int>(open.left.size());
    REQUIRE(counts.num_running + counts.num_waiting + counts.num_paused == num_open);
    REQUIRE(num_open <= scenario_.options.samples_max);
  }

  const Scenario scenario_;
  FakePagedDevice device_;
  std::unique_ptr<PagedBatch> batch_;
  std::deque<StepPlan> launched_;
  StepPlan reuse_;
  std::map<int64_t, Open> open_;
  uint64_t version_ = 1;
  bool holding_ = false;
  uint64_t num_random_ = 0, num_seeds_ = 0;
  int num_submitted_ = 0, num_rounds_ = 0, num_refused_ = 0;
  int64_t num_samples_ = 0, num_ended_ = 0, num_dropped_ = 0;
};

// 50 token ids, of which 0 ends an answer.
PagedBatchOptions SmallBatch(int num_pages, int page_tokens, int steps_in_flight_max) {
  return {.num_pages = num_pages,
          .page_tokens = page_tokens,
          .sequences_max = 12,
          .samples_max = 48,
          .context_tokens_max = 64,
          .prefill_tokens_max = 24,
          .steps_in_flight_max = steps_in_flight_max,
          .decode_buckets = {1, 2, 4, 8},
          .stop_token_ids = {0},
          .num_token_ids = 50};
}

}  // namespace

TEST_CASE("20,000 requests lose no page and no token, whatever happens to them") {
  const uint64_t seed = 20;
  std::vector<Scenario> scenarios = {
      {.name = "plenty of pages, one step ahead", .options = SmallBatch(400, 4, 2)},
      {.name = "few pages, one step ahead", .options = SmallBatch(40, 4, 2)},
      {.name = "few pages, entries kept", .options = SmallBatch(40, 4, 2), .entries = EntriesOnChange::kKeep},
      {.name = "pages for one sequence", .options = SmallBatch(15, 4, 2), .entries = EntriesOnChange::kKeep},
      {.name = "drained before weights change",
       .options = SmallBatch(30, 5, 2),
       .entries = EntriesOnChange::kRequireNone},
      {.name = "pages of one token, two steps ahead", .options = SmallBatch(80, 1, 3)},
      {.name = "large pages, nothing ahead", .options = SmallBatch(14, 16, 1)},
      {.name = "short prompts, entries kept",
       .options = SmallBatch(13, 8, 2),
       .entries = EntriesOnChange::kKeep,
       .pause = 60,
       .sleep = 0,
       .change = 30,
       .prompt_tokens_max = 8},
      {.name = "small chunks", .options = SmallBatch(18, 4, 2), .finish_early = 40},
      {.name = "hashes collide", .options = SmallBatch(60, 2, 2), .num_token_ids = 2},
  };
  scenarios.back().options.block_hash = CollidingHash;
  scenarios[scenarios.size() - 2].options.prefill_tokens_max = 3;
  int64_t num_preemptions = 0, num_copies = 0, num_dropped = 0, num_reused = 0;
  int num_refused = 0, num_changes = 0;
  for (Scenario& scenario : scenarios) {
    scenario.num_requests = 2000;
    scenario.seed = seed + (&scenario - scenarios.data());
    INFO(scenario.name << ", seed " << scenario.seed);
    Drive drive(scenario);
    drive.Run();
    const PagedBatchStatus status = drive.batch().status();
    CHECK(drive.num_ended() > scenario.num_requests);
    CHECK(drive.device().num_rows_max() <=
          scenario.options.sequences_max + scenario.options.prefill_tokens_max);
    num_preemptions += status.num_preemptions;
    num_copies += drive.device().num_copies();
    num_dropped += status.num_tokens_dropped;
    num_reused += status.num_tokens_reused;
    num_refused += drive.num_refused();
    num_changes += drive.num_changes();
  }
  // Everything that the test is about has happened, and often.
  INFO("seed " << seed);
  CHECK(num_preemptions > 1000);
  CHECK(num_copies > 1000);
  CHECK(num_dropped > 1000);
  CHECK(num_reused > 10000);
  CHECK(num_refused > 100);
  CHECK(num_changes > 100);
}

}  // namespace warpsmith::paged
