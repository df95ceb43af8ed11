#include "rollout_workers/grade_client.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "core/rpc/channel.h"
#include "core/rpc/server.h"
#include "core/rpc/status.h"
#include "tests/support/catch.h"
#include "tests/support/said_lines.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

// Fails each request_id as often as told, then grades it.
class MoodyService final : public v1::RewardService::Service {
 public:
  MoodyService(int num_failures, absl::Status failure)
      : num_failures_(num_failures), failure_(std::move(failure)) {}

  grpc::Status Grade(grpc::ServerContext* context, const v1::GradeRequest* request,
                     v1::GradeResponse* response) override {
    absl::MutexLock lock(&mutex_);
    ++num_running_;
    num_running_max_ = std::max(num_running_max_, num_running_);
    const auto may_go_on = [&] { return open_ || context->IsCancelled(); };
    while (!may_go_on()) mutex_.AwaitWithTimeout(absl::Condition(&open_), absl::Milliseconds(10));
    --num_running_;
    if (attempts_[request->request_id()]++ < num_failures_) return ToGrpcStatus(failure_);
    response->mutable_grade()->set_request_id(request->request_id());
    if (request->request_id() != "no verdict") response->mutable_grade()->set_verdict(v1::VERDICT_CORRECT);
    return grpc::Status::OK;
  }

  grpc::Status GetCapabilities(grpc::ServerContext*, const v1::GetCapabilitiesRequest*,
                               v1::GetCapabilitiesResponse* response) override {
    response->mutable_capabilities()->add_formulas("warpsmith-v1");
    response->mutable_capabilities()->add_formulas("kevin-v1");
    response->mutable_capabilities()->set_default_formula("warpsmith-v1");
    for (const v1::CandidateLanguage language : languages) {
      response->mutable_capabilities()->add_languages(language);
    }
    for (const v1::Device device : devices) response->mutable_capabilities()->add_devices(device);
    return grpc::Status::OK;
  }

  // What it says that it grades. Before anybody asks.
  std::vector<v1::CandidateLanguage> languages = {v1::CANDIDATE_LANGUAGE_CPP,
                                                  v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON};
  std::vector<v1::Device> devices = {v1::DEVICE_CPU};

  void SetOpen(bool open) {
    absl::MutexLock lock(&mutex_);
    open_ = open;
  }
  int attempts(const std::string& id) {
    absl::MutexLock lock(&mutex_);
    return attempts_[id];
  }
  int num_running_max() {
    absl::MutexLock lock(&mutex_);
    return num_running_max_;
  }
  bool AwaitAttempts(const std::string& id, int count) {
    absl::MutexLock lock(&mutex_);
    const auto attempted = [&] { return attempts_[id] == count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&attempted), kPatience);
  }
  // Waits until as many calls are in the service together.
  bool AwaitRunning(int count) {
    absl::MutexLock lock(&mutex_);
    const auto running = [&] { return num_running_ == count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&running), kPatience);
  }

 private:
  const int num_failures_;
  const absl::Status failure_;
  absl::Mutex mutex_;
  std::map<std::string, int> attempts_;
  bool open_ = true;
  int num_running_ = 0;
  int num_running_max_ = 0;
};

GradeClientOptions Quick() {
  return {.in_flight_max = 4,
          .attempt_timeout = absl::Seconds(30),
          .retries = {.num_attempts_max = 5, .delay_initial = absl::Milliseconds(1)}};
}

class Rig {
 public:
  explicit Rig(int num_failures = 0, absl::Status failure = absl::OkStatus(),
               GradeClientOptions options = Quick())
      : service_(num_failures, std::move(failure)),
        server_(RpcServer::Start({}, {{.name = v1::RewardService::service_full_name(), .service = &service_}})
                    .value()),
        client_(std::make_unique<GradeClient>(CreateChannel(server_->address()), "moody", options)) {}

  void Submit(int64_t owner, const std::string& id) {
    v1::GradeRequest request;
    request.set_request_id(id);
    request.mutable_task()->set_id("task");
    client_->Submit(owner, std::move(request), [this](v1::Grade grade) {
      absl::MutexLock lock(&mutex_);
      const std::string request_id = grade.request_id();
      CHECK(grades_.emplace(request_id, std::move(grade)).second);
    });
  }
  std::map<std::string, v1::Grade> Await(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto arrived = [&] { return grades_.size() >= count; };
    CHECK(mutex_.AwaitWithTimeout(absl::Condition(&arrived), kPatience));
    return grades_;
  }
  MoodyService& service() { return service_; }
  GradeClient& client() { return *client_; }
  void DestroyClient() { client_.reset(); }

 private:
  absl::Mutex mutex_;
  std::map<std::string, v1::Grade> grades_;
  MoodyService service_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<GradeClient> client_;
};

}  // namespace

TEST_CASE("a lost connection, a timed-out call and a broken service are asked again under the same id") {
  for (const absl::Status& failure :
       {absl::UnavailableError("gone"), absl::DeadlineExceededError("slow"), absl::InternalError("broken"),
        BackPressureError("full", absl::Milliseconds(5))}) {
    Rig rig(2, failure);
    rig.Submit(1, "a");
    CHECK(rig.Await(1).at("a").verdict() == v1::VERDICT_CORRECT);
    CHECK(rig.service().attempts("a") == 3);
  }
}

TEST_CASE("what asking again cannot mend is UNSCORABLE at once, with the reason") {
  for (const absl::Status& failure :
       {absl::InvalidArgumentError("answer of 10 MB"), absl::ResourceExhaustedError("message too large")}) {
    Rig rig(100, failure);
    rig.Submit(1, "a");
    const v1::Grade grade = rig.Await(1).at("a");
    CHECK(grade.verdict() == v1::VERDICT_UNSCORABLE);
    CHECK(grade.task_id() == "task");
    CHECK_THAT(grade.verdict_reason(), Catch::Contains(std::string(failure.message())));
    CHECK(rig.service().attempts("a") == 1);
  }
}

TEST_CASE(
    "a formula is known, the default, unknown with the names there are, or the service does not answer") {
  Rig rig;
  CHECK(*rig.client().CheckService({.formula = "kevin-v1"}, kPatience) == "kevin-v1");
  CHECK(*rig.client().CheckService({}, kPatience) == "warpsmith-v1");
  const absl::Status unknown = rig.client().CheckService({.formula = "kevin"}, kPatience).status();
  CHECK(absl::IsInvalidArgument(unknown));
  CHECK(std::string(unknown.message()) ==
        "the reward service at moody: it has no formula \"kevin\"; it has warpsmith-v1, kevin-v1");
  const GradeClient nobody(CreateChannel("unix:/nowhere.sock"), "nobody", Quick());
  const absl::Status silent = nobody.CheckService({.formula = "kevin-v1"}, absl::Milliseconds(50)).status();
  CHECK(absl::IsUnavailable(silent));
  CHECK_THAT(std::string(silent.message()), Catch::Contains("nobody does not answer"));
}

TEST_CASE("a check that waits for the service says so") {
  SaidLines said;
  GradeClientOptions options = Quick();
  options.lines = said.Options(absl::Milliseconds(10));
  const GradeClient nobody(CreateChannel("unix:/nowhere.sock"), "nobody", options);
  CHECK(absl::IsUnavailable(nobody.CheckService({}, absl::Milliseconds(200)).status()));
  REQUIRE_FALSE(said.all().empty());
  CHECK_THAT(said.all().front(), Catch::StartsWith("waiting for the reward service at nobody, for ") &&
                                     Catch::EndsWith("of at most 200ms"));
}

TEST_CASE("a service that grades neither language nor device of a run says what it does grade") {
  for (const bool is_older : {false, true}) {  // an older service says nothing of devices
    INFO(is_older);
    Rig rig;
    if (is_older) rig.service().devices.clear();
    const auto refusal = [&](ServiceNeeds needs) {
      return rig.client().CheckService(std::move(needs), kPatience).status();
    };
    CHECK(refusal({.language = v1::CANDIDATE_LANGUAGE_CPP, .devices = {v1::DEVICE_CPU}}).ok());
    CHECK(refusal({.language = v1::CANDIDATE_LANGUAGE_CUDA}) ==
          absl::FailedPreconditionError("the reward service at moody: it grades no cuda; it grades cpp, "
                                        "kernelbench_python, on cpu"));
    CHECK(refusal({.language = v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON,
                   .devices = {v1::DEVICE_CPU, v1::DEVICE_CUDA}}) ==
          absl::FailedPreconditionError("the reward service at moody: it grades nothing on cuda; it grades "
                                        "cpp, kernelbench_python, on cpu"));
  }
}

TEST_CASE("a service with a GPU grades what needs one") {
  Rig rig;
  rig.service().languages.push_back(v1::CANDIDATE_LANGUAGE_CUDA);
  rig.service().devices.push_back(v1::DEVICE_CUDA);
  CHECK(rig.client()
            .CheckService({.language = v1::CANDIDATE_LANGUAGE_CUDA, .devices = {v1::DEVICE_CUDA}}, kPatience)
            .ok());
}

TEST_CASE("retries are bounded") {
  Rig rig(100, absl::UnavailableError("gone"));
  rig.Submit(1, "a");
  const v1::Grade grade = rig.Await(1).at("a");
  CHECK(grade.verdict() == v1::VERDICT_UNSCORABLE);
  CHECK_THAT(grade.verdict_reason(), Catch::Contains("failed 5 attempts"));
  CHECK(rig.service().attempts("a") == 5);
}

TEST_CASE("a service that is full costs no attempt, only time") {
  Rig rig(20, BackPressureError("full", absl::Milliseconds(1)));
  rig.Submit(1, "a");
  CHECK(rig.Await(1).at("a").verdict() == v1::VERDICT_CORRECT);
  CHECK(rig.service().attempts("a") == 21);

  GradeClientOptions hasty = Quick();
  hasty.retries.elapsed_max = absl::Milliseconds(300);
  Rig full(1000, BackPressureError("full", absl::Milliseconds(50)), hasty);
  full.Submit(1, "a");
  const v1::Grade grade = full.Await(1).at("a");
  CHECK(grade.verdict() == v1::VERDICT_UNSCORABLE);
  CHECK_THAT(grade.verdict_reason(), Catch::Contains("failed 0 attempts and was full at"));
}

TEST_CASE("a grade without a verdict is no grade") {
  Rig rig;
  rig.Submit(1, "no verdict");
  CHECK(rig.Await(1).at("no verdict").verdict() == v1::VERDICT_UNSCORABLE);
}

TEST_CASE("no more grades are asked for together than allowed, and all come") {
  Rig rig;
  rig.service().SetOpen(false);
  for (int i = 0; i < 20; ++i) rig.Submit(1, std::to_string(i));
  CHECK(rig.service().AwaitRunning(4));
  rig.service().SetOpen(true);
  CHECK(rig.Await(20).size() == 20);
  CHECK(rig.service().num_running_max() == 4);
}

TEST_CASE("cancelling an owner forgets its grades and lets the others in") {
  Rig rig;
  rig.service().SetOpen(false);
  for (int i = 0; i < 6; ++i) rig.Submit(1, "dropped " + std::to_string(i));
  rig.Submit(2, "kept");
  CHECK(rig.service().AwaitRunning(4));
  rig.client().Cancel(1);
  rig.service().SetOpen(true);
  const auto grades = rig.Await(1);
  CHECK(grades.size() == 1);
  CHECK(grades.count("kept") == 1);
}

TEST_CASE("a client that goes away in mid-call, or while it waits to try again, calls nobody") {
  Rig rig(100, BackPressureError("full", absl::Minutes(1)));
  rig.Submit(1, "waits to try again");
  REQUIRE(rig.service().AwaitAttempts("waits to try again", 1));
  rig.service().SetOpen(false);
  rig.Submit(1, "in mid-call");
  CHECK(rig.service().AwaitRunning(1));
  rig.DestroyClient();
  CHECK(rig.Await(0).empty());
}

}  // namespace warpsmith
