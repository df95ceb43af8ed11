// The reward service's threads against each other: clients over an in-process channel, compile workers,
// lanes, and whoever looks at the metrics meanwhile. Such tests find most under ThreadSanitizer.
#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/base/bounded_queue.h"
#include "core/base/counter_random.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"
#include "reward_service/server/door.h"
#include "tests/support/in_process_server.h"
#include "tests/support/reception_fixture.h"
#include "tests/support/run_together.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

constexpr uint64_t kSeed = 20240607;
constexpr int kNumClients = 8;
constexpr int kNumLanes = 3;
constexpr absl::Duration kPatience = absl::Seconds(60);
const std::vector<std::string> kTenants = {"lab", "farm"};

std::string TokenOf(const std::string& tenant) { return tenant + "-token-0123456789"; }

// Files of tokens, and the options that name them. Each tenant may have 24 requests waiting.
struct TenantFiles {
  TenantFiles() {
    for (const std::string& name : kTenants) {
      std::ofstream(directory.path() / name) << TokenOf(name);
      options.push_back({.name = name, .token_file = directory.path() / name, .requests_max = 24});
    }
  }

  TemporaryDirectory directory;
  std::vector<TenantOptions> options;
};

v1::GradeRequest RequestOf(int source) {
  return NativeRequest(absl::StrCat("r", source), absl::StrCat("int run", source, ";"));
}

struct Tally {
  int num_graded = 0;
  int num_given_up = 0;  // by the client, or for want of room
  int num_turned_away = 0;
  int num_wrong = 0;
};

// The service, and what its clients heard.
struct Service : TenantFiles, ReceptionFixture {
  explicit Service(int queue_capacity) : ReceptionFixture(queue_capacity, options, kNumLanes) {
    script.judge = [this](const JudgeRequest&) {
      absl::SleepFor(absl::Microseconds(UniformWord(kSeed, script.num_judged) % 500));
      return absl::StatusOr<v1::Measurement>(TwiceAsFast());
    };
  }

  // The end of one request.
  void Heard(const std::string& id, const absl::Status& status, const v1::Grade& grade) {
    absl::MutexLock lock(&mutex);
    if (status.ok()) {
      const bool right = grade.request_id() == id && grade.verdict() == v1::VERDICT_CORRECT;
      ++(right ? tally.num_graded : tally.num_wrong);
    } else if (absl::IsUnavailable(status)) {
      ++tally.num_turned_away;
    } else if (absl::IsResourceExhausted(status) || absl::IsCancelled(status) ||
               absl::IsDeadlineExceeded(status)) {
      ++tally.num_given_up;
    } else {
      ++tally.num_wrong;
    }
  }
  void CountWrong() {
    absl::MutexLock lock(&mutex);
    ++tally.num_wrong;
  }
  void AwaitGraded(int count) {
    absl::MutexLock lock(&mutex);
    const auto graded = [&] { return tally.num_graded >= count; };
    mutex.AwaitWithTimeout(absl::Condition(&graded), kPatience);
  }
  Tally Read() {
    absl::MutexLock lock(&mutex);
    return tally;
  }

  RewardDoor door{reception.get()};
  InProcessServer server{&door};
  absl::Mutex mutex;
  Tally tally ABSL_GUARDED_BY(mutex);
};

// One client's calls, of every kind; which one comes next is a function of seed, client and number alone.
class Client {
 public:
  // With few sources clients ask for each other's measurements.
  Client(Service* service, int index, int num_sources)
      : service_(service),
        num_sources_(num_sources),
        tenant_(kTenants[static_cast<size_t>(index) % kTenants.size()]),
        key_(UniformWord(kSeed, static_cast<uint64_t>(index))),
        stub_(v1::RewardService::NewStub(service->server.channel())) {}

  void Act() {
    switch (Draw(8)) {
      case 0:
      case 1:
      case 2:
        return GradeOne(kPatience);
      case 3:
        return GradeOne(absl::Microseconds(Draw(3000)));
      case 4:
        return CancelOne();
      case 5:
        return GradeMany(8);
      case 6:
        return GradeMany(Draw(8));
      default:
        return Look();
    }
  }

 private:
  int Draw(int bound) {
    return static_cast<int>(UniformWord(key_, num_draws_++) % static_cast<uint64_t>(bound));
  }

  void Prepare(grpc::ClientContext* context, absl::Duration timeout) const {
    context->AddMetadata("authorization", "Bearer " + TokenOf(tenant_));
    SetTimeout(context, timeout);
  }

  void GradeOne(absl::Duration timeout) {
    grpc::ClientContext context;
    Prepare(&context, timeout);
    const v1::GradeRequest request = RequestOf(Draw(num_sources_));
    v1::GradeResponse response;
    const grpc::Status status = stub_->Grade(&context, request, &response);
    service_->Heard(request.request_id(), FromGrpcStatus(status), response.grade());
  }

  // Asks, and hangs up from another thread than the one that hears of it.
  void CancelOne() {
    grpc::ClientContext context;
    Prepare(&context, kPatience);
    const v1::GradeRequest request = RequestOf(Draw(num_sources_));
    v1::GradeResponse response;
    absl::Notification ended;
    stub_->async()->Grade(&context, &request, &response, [&](grpc::Status status) {
      service_->Heard(request.request_id(), FromGrpcStatus(status), response.grade());
      ended.Notify();
    });
    absl::SleepFor(absl::Microseconds(Draw(1000)));
    context.TryCancel();
    ended.WaitForNotification();
  }

  // A stream of eight requests that is left after `num_read_max` responses.
  void GradeMany(int num_read_max) {
    grpc::ClientContext context;
    Prepare(&context, kPatience);
    const auto stream = stub_->GradeBatch(&context);
    bool open = true;
    for (int i = 0; i < 8 && open; ++i) open = stream->Write(RequestOf(Draw(num_sources_)));
    if (open) stream->WritesDone();
    v1::GradeResponse response;
    for (int i = 0; i < num_read_max && stream->Read(&response); ++i) {
      const absl::Status error(static_cast<absl::StatusCode>(response.error().code()),
                               response.error().message());
      service_->Heard(response.request_id(), response.has_grade() ? absl::OkStatus() : error,
                      response.grade());
    }
    if (num_read_max < 8) context.TryCancel();
    stream->Finish();
  }

  void Look() {
    const std::string text = service_->reception->MetricsText();
    const auto listed = service_->reception->recent().List({.tenant = tenant_});
    for (const auto& recent : listed) {
      const auto found = service_->reception->recent().Find(tenant_, recent->sequence);
      if (found != recent || recent->prepared->tenant->name != tenant_) service_->CountWrong();
    }
    if (text.find("warpsmith_reward_waiting") == std::string::npos) service_->CountWrong();
  }

  Service* const service_;
  const int num_sources_;
  const std::string tenant_;
  const uint64_t key_;
  uint64_t num_draws_ = 0;
  const std::unique_ptr<v1::RewardService::Stub> stub_;
};

}  // namespace

TEST_CASE("clients that ask, repeat, hang up and time out all at once get the right grades") {
  CAPTURE(kSeed);
  Service service(64);
  RunTogether(kNumClients, [&](int index) {
    Client client(&service, index, 60);
    for (int i = 0; i < 40; ++i) client.Act();
  });
  service.grader->Drain(kPatience);
  const Tally tally = service.Read();
  CHECK(tally.num_wrong == 0);
  CHECK(tally.num_turned_away == 0);
  CHECK(tally.num_graded > 100);
  CHECK(tally.num_given_up > 0);
  CHECK(service.reception->backlog().num_requests == 0);
  // Shared by all who asked at the same time, and kept afterwards.
  CHECK(service.script.num_judged < tally.num_graded);
}

TEST_CASE("draining in the midst of calls answers all of them") {
  CAPTURE(kSeed);
  Service service(64);
  std::thread drainer([&] {
    service.AwaitGraded(50);
    service.grader->Drain(absl::Microseconds(200));
  });
  RunTogether(kNumClients, [&](int index) {
    Client client(&service, index, 1 << 20);
    while (service.Read().num_turned_away == 0) client.Act();
  });
  drainer.join();
  CHECK(service.Read().num_wrong == 0);
  CHECK(service.reception->backlog().num_requests == 0);
}

TEST_CASE("a ticket that is cancelled while a lane ends it is answered once") {
  constexpr int kNumRequests = 400;
  Service service(kNumRequests);
  const auto tenant = std::make_shared<const Tenant>(Tenant{"lab", kNumRequests});
  std::vector<std::atomic<int>> num_answers(kNumRequests);
  BoundedQueue<uint64_t> tickets(kNumRequests);
  std::atomic<int> next{0};
  std::thread canceller([&] {
    while (const std::optional<uint64_t> ticket = tickets.Pop(kPatience)) service.reception->Cancel(*ticket);
  });
  RunTogether(4, [&](int) {
    for (int i = next++; i < kNumRequests; i = next++) {
      // Ids differ, sources repeat: cancelling one waiter of a flight leaves the others.
      v1::GradeRequest request = RequestOf(i / 3);
      request.set_request_id(absl::StrCat("request ", i));
      const uint64_t ticket = service.reception->Submit(
          tenant, request, [&num_answers, i](const absl::StatusOr<v1::Grade>&) { ++num_answers[i]; });
      if (i % 2 == 0) tickets.TryPush(uint64_t{ticket});
    }
  });
  tickets.Close();
  canceller.join();
  service.grader->Drain(kPatience);
  int num_once = 0;
  for (const std::atomic<int>& count : num_answers) num_once += count == 1;
  CHECK(num_once == kNumRequests);
}

TEST_CASE("however many ask at once, no tenant has more waiting than its part") {
  constexpr int kNumEach = 40;
  Service service(12);
  absl::Notification go;
  service.script.judge = [&](const JudgeRequest&) {
    go.WaitForNotification();
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  std::vector<std::shared_ptr<const Tenant>> tenants;
  for (const int requests_max : {3, 5, 20}) {
    tenants.push_back(
        std::make_shared<const Tenant>(Tenant{absl::StrCat("tenant ", requests_max), requests_max}));
  }
  std::vector<std::atomic<int>> num_graded(tenants.size());
  std::atomic<int> num_refused{0};
  const auto ask = [&](size_t tenant, int i) {
    service.reception->Submit(tenants[tenant], RequestOf(i),
                              [&, tenant](const absl::StatusOr<v1::Grade>& grade) {
                                ++(grade.ok() ? num_graded[tenant] : num_refused);
                              });
  };
  RunTogether(6, [&](int thread) {
    const size_t tenant = static_cast<size_t>(thread) % 2;  // the third asks last
    for (int i = thread / 2; i < kNumEach; i += 3) ask(tenant, i);
  });
  RunTogether(3, [&](int thread) {
    for (int i = thread; i < kNumEach; i += 3) ask(2, i);
  });
  CHECK(service.reception->backlog().num_requests == 12);
  go.Notify();
  service.grader->Drain(kPatience);
  CHECK(num_graded[0] == 3);
  CHECK(num_graded[1] == 5);
  CHECK(num_graded[2] == 4);  // what the queue had left
  CHECK(num_refused == 3 * kNumEach - 12);
  CHECK(service.reception->recent().VerdictCounts("tenant 5").at(v1::VERDICT_CORRECT) == 5);
}

}  // namespace warpsmith
