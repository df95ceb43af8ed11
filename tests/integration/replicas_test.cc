// Two reward services behind one channel: calls go to both, and one that dies in mid-work costs no answer.
#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "core/rpc/channel.h"
#include "core/rpc/retry_policy.h"
#include "core/rpc/status.h"
#include "tests/support/catch.h"
#include "tests/support/reward_client.h"

namespace warpsmith {
namespace {

constexpr int kNumCallers = 6;
constexpr int kCallsEach = 5;

// A service on a port of its own, with its own caches. A busy machine shall not decide what is asked here.
struct Replica {
  TemporaryDirectory folder;
  ServerProcess process{
      "warpsmith-reward",
      {"--address", "127.0.0.1:0", "--log-level", "warning", "--set",
       "reward_service.compile_seconds_max=120", "--set",
       absl::StrCat("reward_service.cache_directory=", (folder.path() / "cache").string())}};
};

v1::GradeRequest RequestOf(int number) {
  v1::GradeRequest request =
      CppBody(ReluSquareReference(), absl::StrCat("const int number = ", number,
                                                  "; for (int64_t i = 0; i < n; ++i) { float v = 2 * x[i] + ",
                                                  "1; y[i] = v > 0 ? v * v : 0; } return number < 0;"));
  request.set_request_id(absl::StrCat("r", number));
  return request;
}

// What callers got, and from whom.
struct Answers {
  std::mutex mutex;
  std::set<std::string> peers;
  std::vector<std::string> failures;
  int num_correct = 0;
  absl::Notification both;  // replicas have answered something

  void Add(const std::string& peer, const absl::Status& status, const v1::Grade& grade) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!status.ok() || grade.verdict() != v1::VERDICT_CORRECT) {
      failures.push_back(absl::StrCat(status.ToString(), " ", grade.verdict_reason()));
      return;
    }
    ++num_correct;
    if (peers.insert(peer).second && peers.size() == 2) both.Notify();
  }
};

void Ask(const std::shared_ptr<grpc::Channel>& channel, int caller, Answers* answers) {
  const auto stub = v1::RewardService::NewStub(channel);
  const absl::Notification stop;
  SystemRetryClock clock(&stop);
  const RetryPolicy policy({.elapsed_max = absl::Minutes(8), .seed = static_cast<uint64_t>(caller)});
  for (int i = 0; i < kCallsEach; ++i) {
    v1::GradeResponse response;
    std::string peer;
    const absl::Status status = CallWithRetries(policy, clock, [&] {
      grpc::ClientContext context;
      SetTimeout(&context, absl::Minutes(2));
      const grpc::Status ended = stub->Grade(&context, RequestOf(caller * kCallsEach + i), &response);
      peer = context.peer();
      return FromGrpcStatus(ended);
    });
    answers->Add(peer, status, response.grade());
  }
}

TEST_CASE("calls go to both replicas, and when one is killed in mid-work all are answered by the other") {
  Replica first, second;
  REQUIRE(first.process.address() != "");
  REQUIRE(second.process.address() != "");
  const std::shared_ptr<grpc::Channel> channel =
      CreateChannel(absl::StrCat("ipv4:", first.process.address(), ",", second.process.address()));
  Answers answers;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kNumCallers; ++caller) {
    callers.emplace_back([&, caller] { Ask(channel, caller, &answers); });
  }
  CHECK(answers.both.WaitForNotificationWithTimeout(absl::Minutes(3)));
  first.process.Stop(SIGKILL, absl::Seconds(20));
  for (std::thread& caller : callers) caller.join();
  for (const std::string& failure : answers.failures) FAIL_CHECK(failure);
  CHECK(answers.num_correct == kNumCallers * kCallsEach);
  CHECK(answers.peers == std::set<std::string>{absl::StrCat("ipv4:", first.process.address()),
                                               absl::StrCat("ipv4:", second.process.address())});
}

}  // namespace
}  // namespace warpsmith
