#include "rollout_workers/serving/completion_service.h"

#include <map>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "core/rpc/status.h"
#include "rollout_workers/weights.h"
#include "tests/support/catch.h"
#include "tests/support/served_model_fixture.h"

namespace warpsmith::serving {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

// What one job was told. Outlives the service, which tells it.
struct Told {
  absl::Mutex mutex;
  std::map<int, std::vector<int32_t>> tokens;
  std::map<int, std::vector<std::vector<TokenLogProb>>> tops;
  std::map<int, FinishReason> ends;
  std::vector<absl::Status> failures;
  size_t tokens_max = 1000;  // a choice ends itself with so many

  CompletionEvents Events() {
    return {.on_token =
                [this](int choice, const ChosenToken& token) {
                  absl::MutexLock lock(&mutex);
                  tokens[choice].push_back(token.token_id);
                  tops[choice].push_back(token.top_tokens);
                  return tokens[choice].size() < tokens_max;
                },
            .on_end =
                [this](int choice, FinishReason reason) {
                  absl::MutexLock lock(&mutex);
                  ends.emplace(choice, reason);
                },
            .on_failure =
                [this](const absl::Status& status) {
                  absl::MutexLock lock(&mutex);
                  failures.push_back(status);
                }};
  }
  template <class Predicate>
  bool Await(const Predicate& arrived) {
    absl::MutexLock lock(&mutex);
    return mutex.AwaitWithTimeout(absl::Condition(&arrived), kPatience);
  }
  bool AwaitEnds(size_t count) {
    return Await([this, count] { return ends.size() >= count; });
  }
};

std::unique_ptr<CompletionService> MakeService(int num_slots = 8, int samples_max = 64) {
  const EngineOptions options{.num_slots = num_slots, .context_tokens_max = 512, .samples_max = samples_max};
  auto service = std::make_unique<CompletionService>(ServedConfig(), options,
                                                     MakeBatch(ServedConfig(), options).value());
  REQUIRE(service->engine().SwapWeights(RandomWeights(ServedConfig(), 1), absl::InfiniteFuture()).ok());
  return service;
}

CompletionJob Job(int num_choices, int tokens_max, bool reports_tokens) {
  return {.prompts = {{5, 6, 7}},
          .num_choices = num_choices,
          .seed = 3,
          .sampling = {.answer_tokens_max = tokens_max},
          .reports_tokens = reports_tokens};
}

bool AwaitIdle(CompletionService* service) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (absl::Now() < deadline) {
    const EngineStatus status = service->engine().status();
    if (status.num_active_samples + status.num_waiting_samples == 0) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace

TEST_CASE("the same tokens come one by one and all at the end") {
  Told one_by_one, at_end;
  const auto service = MakeService();
  REQUIRE(service->Start(Job(3, 20, true), one_by_one.Events()).ok());
  REQUIRE(service->Start(Job(3, 20, false), at_end.Events()).ok());
  REQUIRE(one_by_one.AwaitEnds(3));
  REQUIRE(at_end.AwaitEnds(3));
  CHECK(one_by_one.tokens == at_end.tokens);
  CHECK(at_end.tokens[0].size() == 20);
  CHECK(at_end.tokens[0] != at_end.tokens[1]);
  CHECK(at_end.ends[0] == FinishReason::kLength);
}

TEST_CASE("choices are numbered prompt by prompt; a seed decides each prompt as if it were alone") {
  Told both, alone;
  const auto service = MakeService();
  CompletionJob job = Job(2, 10, false);
  job.prompts = {{9}, {5, 6, 7}};
  REQUIRE(service->Start(job, both.Events()).ok());
  REQUIRE(service->Start(Job(2, 10, false), alone.Events()).ok());
  REQUIRE(both.AwaitEnds(4));
  REQUIRE(alone.AwaitEnds(2));
  CHECK(both.tokens[2] == alone.tokens[0]);
  CHECK(both.tokens[3] == alone.tokens[1]);
}

TEST_CASE("without a seed every choice of equal prompts is another") {
  Told told;
  const auto service = MakeService();
  CompletionJob job = Job(2, 20, false);
  job.prompts = {{5, 6, 7}, {5, 6, 7}};
  job.seed.reset();
  REQUIRE(service->Start(job, told.Events()).ok());
  REQUIRE(told.AwaitEnds(4));
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < a; ++b) CHECK(told.tokens[a] != told.tokens[b]);
  }
}

TEST_CASE("a choice that ends itself is told nothing more, and its slot is free") {
  for (const bool reports_tokens : {true, false}) {
    Told told;
    const auto service = MakeService();
    told.tokens_max = 4;
    REQUIRE(service->Start(Job(2, 400, reports_tokens), told.Events()).ok());
    REQUIRE(told.Await([&] { return told.tokens[0].size() == 4 && told.tokens[1].size() == 4; }));
    CHECK(AwaitIdle(service.get()));
    absl::MutexLock lock(&told.mutex);
    CHECK(told.ends.empty());
    CHECK(told.tokens[0].size() == 4);
  }
}

TEST_CASE("a cancelled job frees the engine") {
  Told told;
  Told next;
  const auto service = MakeService(2);
  const absl::StatusOr<int64_t> id = service->Start(Job(6, 500, true), told.Events());
  REQUIRE(id.ok());
  service->Cancel(*id);
  service->Cancel(*id);
  service->Cancel(12345);
  CHECK(AwaitIdle(service.get()));
  REQUIRE(service->Start(Job(1, 3, false), next.Events()).ok());
  CHECK(next.AwaitEnds(1));
}

TEST_CASE("more choices than may wait are told when to come again, or to ask for fewer") {
  Told told;
  absl::Notification done;
  const auto service = MakeService(8, 64);
  // More tokens than fit the queue of events, which nobody takes: the engine is busy until the notification.
  CompletionEvents busy{.on_token =
                            [&](int, const ChosenToken&) {
                              done.WaitForNotification();
                              return true;
                            },
                        .on_end = [](int, FinishReason) {},
                        .on_failure = [](const absl::Status&) {}};
  const absl::StatusOr<int64_t> id = service->Start(Job(64, 500, true), busy);
  REQUIRE(id.ok());
  const absl::Status refused = service->Start(Job(1, 3, false), told.Events()).status();
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(GetRetryDelay(refused).has_value());
  CHECK(absl::IsInvalidArgument(service->Start(Job(65, 3, false), told.Events()).status()));
  service->Cancel(*id);
  done.Notify();
}

TEST_CASE("draining lets work end, refuses more, and fails what is late") {
  Told late;
  const auto service = MakeService(1);
  REQUIRE(service->Start(Job(64, 509, true), late.Events()).ok());
  CHECK(service->Drain(absl::ZeroDuration()) == 1);
  REQUIRE(late.failures.size() == 1);
  CHECK(absl::IsUnavailable(late.failures[0]));
  CHECK(absl::IsUnavailable(service->Start(Job(1, 3, false), late.Events()).status()));

  Told ended;
  const auto patient = MakeService();
  REQUIRE(patient->Start(Job(2, 30, true), ended.Events()).ok());
  CHECK(patient->Drain(kPatience) == 0);
  CHECK(ended.ends.size() == 2);
}

TEST_CASE("a service ends while its engine decodes") {
  Told told;
  const auto service = MakeService();
  REQUIRE(service->Start(Job(8, 500, true), told.Events()).ok());
}

}  // namespace warpsmith::serving
