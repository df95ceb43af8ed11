// A PagedBatch with its fake device, step by step.
#ifndef WARPSMITH_TESTS_SUPPORT_PAGED_FIXTURE_H_
#define WARPSMITH_TESTS_SUPPORT_PAGED_FIXTURE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/fake_paged_device.h"

namespace warpsmith {

// Pages of 4 for whole sequences of 64; token 0 ends an answer.
inline paged::PagedBatchOptions PagedFixtureOptions() {
  return {.num_pages = 200,
          .page_tokens = 4,
          .sequences_max = 8,
          .samples_max = 32,
          .context_tokens_max = 64,
          .prefill_tokens_max = 32,
          .steps_in_flight_max = 2,
          .decode_buckets = {1, 2, 4, 8},
          .stop_token_ids = {0},
          .num_token_ids = 1'000'000};
}

class PagedFixture {
 public:
  explicit PagedFixture(paged::PagedBatchOptions options = PagedFixtureOptions(),
                        FakePagedDevice::VersionRule rule = FakePagedDevice::VersionRule::kSame)
      : options_(std::move(options)),
        device_(options_, rule),
        batch_(*paged::PagedBatch::Create(options_, 1)) {}

  paged::PagedBatch& batch() { return *batch_; }
  const paged::PagedBatchOptions& options() const { return options_; }
  const std::vector<paged::FinishedAnswer>& finished() const { return finished_; }

  // A prompt of `num_tokens` that no other `family` shares.
  static paged::PagedRequest Request(int64_t id, int num_tokens, int num_samples, int answer_tokens_max,
                                     int family = 0) {
    paged::PagedRequest request{.id = id, .answer_tokens_max = answer_tokens_max};
    request.prompt_token_ids.resize(num_tokens);
    std::iota(request.prompt_token_ids.begin(), request.prompt_token_ids.end(), 1 + 1000 * family);
    for (int i = 0; i < num_samples; ++i) request.seeds.push_back(id * 100 + i);
    return request;
  }

  void Submit(paged::PagedRequest request) {
    device_.Expect(request);
    requests_[request.id] = request;
    REQUIRE(batch_->Submit(std::move(request)).ok());
  }

  // Plans a step and, if there is work, runs it.
  paged::StepPlan Plan() {
    paged::StepPlan plan = batch_->Plan();
    if (!plan.empty()) {
      absl::StatusOr<std::vector<paged::TokenResult>> results = device_.Run(plan);
      INFO(results.status().message());
      REQUIRE(results.ok());
      unread_.push_back(*std::move(results));
    }
    Check();
    return plan;
  }

  // Reads the results of the oldest step, which `change` may alter first.
  template <typename Change>
  paged::StepOutcome Complete(Change change) {
    REQUIRE_FALSE(unread_.empty());
    std::vector<paged::TokenResult> results = std::move(unread_.front());
    unread_.pop_front();
    change(results);
    paged::StepOutcome outcome = batch_->Complete(results);
    finished_.insert(finished_.end(), outcome.finished.begin(), outcome.finished.end());
    Check();
    return outcome;
  }
  paged::StepOutcome Complete() {
    return Complete([](std::vector<paged::TokenResult>&) {});
  }

  // One step, to its end.
  paged::StepPlan Step() {
    paged::StepPlan plan = Plan();
    if (!unread_.empty()) Complete();
    return plan;
  }

  void RunToEnd() {
    for (int i = 0; !batch_->empty() || batch_->num_steps_in_flight() > 0; ++i) {
      REQUIRE(i < 10'000);
      const bool planned = !Plan().empty();
      REQUIRE((planned || !unread_.empty()));
      if (!planned || batch_->num_steps_in_flight() == options_.steps_in_flight_max) Complete();
    }
  }

  // Every finished answer equals what decoding it alone gives.
  void CheckAnswers() const {
    for (const paged::FinishedAnswer& answer : finished_) {
      INFO("sample " << answer.sample_index << " of request " << answer.request_id);
      CHECK(answer.token_ids == AnswerAlone(requests_.at(answer.request_id), answer.sample_index,
                                            answer.policy_versions, options_));
    }
  }

  int num_pages_left() const { return batch_->status().num_free_pages + batch_->status().num_cached_pages; }

 private:
  void Check() const {
    const absl::Status status = batch_->CheckInvariants();
    INFO(status.message());
    REQUIRE(status.ok());
  }

  const paged::PagedBatchOptions options_;
  FakePagedDevice device_;
  std::unique_ptr<paged::PagedBatch> batch_;
  std::deque<std::vector<paged::TokenResult>> unread_;
  std::map<int64_t, paged::PagedRequest> requests_;
  std::vector<paged::FinishedAnswer> finished_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_PAGED_FIXTURE_H_
