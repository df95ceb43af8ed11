#include "trainer/workers/rollout_wait.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/rpc/channel.h"
#include "core/rpc/server.h"
#include "tests/support/catch.h"
#include "tests/support/said_lines.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

// An address where nobody serves yet.
class Somewhere {
 public:
  const std::string& address() const { return address_; }
  std::unique_ptr<RpcServer> Serve() const { return RpcServer::Start({.address = address_}, {}).value(); }
  AwaitedWorker worker() const { return {.address = address_, .channel = CreateChannel(address_)}; }

 private:
  const TemporaryDirectory directory_;
  const std::string address_ = absl::StrCat("unix:", (directory_.path() / "worker.sock").string());
};

// A server that breaks off every call at once.
class BreakingHealth {
 public:
  explicit BreakingHealth(const std::string& address) {
    // Else gRPC answers the health check itself; RpcServer::Start enables that for all later servers.
    grpc::EnableDefaultHealthCheckService(false);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~BreakingHealth() { server_->Shutdown(std::chrono::system_clock::now()); }

 private:
  class Service : public grpc::CallbackGenericService {
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
      class Reactor : public grpc::ServerGenericBidiReactor {
       public:
        Reactor() { Finish({grpc::StatusCode::UNAVAILABLE, "broken off"}); }
        void OnDone() override { delete this; }
      };
      return new Reactor;
    }
  };

  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

TEST_CASE("a worker that is not there yet is waited for, and every so often that is said") {
  const Somewhere place;
  SaidLines lines;
  std::unique_ptr<RpcServer> late;
  std::thread starter([&] {
    lines.Await(3);
    late = place.Serve();
  });
  const auto found = AwaitAnyServing(
      {place.worker()}, {.timeout = absl::Seconds(60), .lines = lines.Options(absl::Milliseconds(100))},
      absl::Now());
  starter.join();
  INFO(found.status());
  REQUIRE(found.ok());
  CHECK(*found == 0);
  for (const std::string& line : lines.all()) {
    CHECK_THAT(line, Catch::StartsWith(
                         absl::StrCat("waiting for the rollout worker at ", place.address(), ", for ")) &&
                         Catch::EndsWith("s of at most 1m"));
  }
}

TEST_CASE("the first of several workers that serves is the one") {
  const Somewhere gone, there;
  const auto server = there.Serve();
  SaidLines lines;
  const auto found =
      AwaitAnyServing({gone.worker(), there.worker()},
                      {.timeout = absl::Hours(1), .lines = lines.Options(absl::Hours(1))}, absl::Now());
  REQUIRE(found.ok());
  CHECK(*found == 1);
  CHECK(lines.all().size() <= 1);
}

TEST_CASE("waiting ends at its bound, with the address, the bound, its key and what to do") {
  const Somewhere place;
  SaidLines lines;
  const absl::Status status =
      AwaitAnyServing({place.worker()},
                      {.timeout = absl::Milliseconds(1500), .lines = lines.Options(absl::Seconds(60))},
                      absl::Now())
          .status();
  INFO(status);
  CHECK(absl::IsDeadlineExceeded(status));
  for (const char* part :
       {place.address().c_str(), "after 1s", "trainer.rollout_wait_seconds", "--rollout-address"}) {
    CHECK_THAT(std::string(status.message()), Catch::Contains(part));
  }
  CHECK(lines.all().size() == 1);  // no flood
}

TEST_CASE("who is asked to stop while waiting ends with CANCELLED, soon, and says how to go on") {
  const Somewhere place, other;
  SaidLines lines;
  std::atomic<bool> stop = false;
  RolloutWaitOptions options = {.timeout = absl::Seconds(20), .lines = lines.Options(absl::Hours(1))};
  options.stop = &stop;
  absl::Time asked;
  std::thread asker([&] {
    lines.Await(1);
    asked = absl::Now();
    stop = true;
  });
  const absl::Status status =
      AwaitAnyServing({place.worker(), other.worker()}, options, absl::Now()).status();
  asker.join();
  INFO(status);
  CHECK(absl::Now() - asked < absl::Seconds(5));
  CHECK(absl::IsCancelled(status));
  for (const std::string& part : {place.address(), other.address(), std::string("--resume")}) {
    CHECK_THAT(std::string(status.message()), Catch::Contains(part));
  }
}

TEST_CASE("a worker whose streams break off is waited for") {
  const Somewhere place;
  auto server = std::make_unique<BreakingHealth>(place.address());
  SaidLines lines;
  std::unique_ptr<RpcServer> late;
  std::thread starter([&] {
    lines.Await(2);
    server.reset();
    late = place.Serve();
  });
  const RolloutWaitOptions options = {.timeout = absl::Seconds(60), .lines = lines.Options(absl::Seconds(2))};
  const auto found = AwaitAnyServing({place.worker()}, options, absl::Now());
  for (int i = 0; i < 2; ++i) options.lines.say("the starter may end");
  starter.join();
  INFO(found.status());
  CHECK(found.ok());
}

TEST_CASE("the bound counts from when the wait began, whoever was waited for before") {
  const Somewhere place;
  SaidLines lines;
  const auto found =
      AwaitAnyServing({place.worker()}, {.timeout = absl::Hours(1), .lines = lines.Options(absl::Hours(1))},
                      absl::Now() - absl::Hours(2));
  CHECK(absl::IsDeadlineExceeded(found.status()));
}

}  // namespace warpsmith
