#include "core/rpc/server.h"

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server_context.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "warpsmith/v1/reward_service.grpc.pb.h"

namespace warpsmith {
namespace {

// Grade answers as its request says: "wait" until cancelled, "refuse", else at once.
class FakeService : public v1::RewardService::Service {
 public:
  grpc::Status Grade(grpc::ServerContext* context, const v1::GradeRequest* request,
                     v1::GradeResponse* response) override {
    if (request->request_id() == "refuse")
      return ToGrpcStatus(BackPressureError("full", absl::Milliseconds(70)));
    if (request->request_id() == "wait") {
      entered_.Notify();
      absl::MutexLock lock(&mutex_);
      const auto cancelled = [context] { return context->IsCancelled(); };
      while (!mutex_.AwaitWithTimeout(absl::Condition(&cancelled), absl::Milliseconds(10))) {
      }
    }
    return grpc::Status::OK;
  }

  absl::Notification entered_;

 private:
  absl::Mutex mutex_;
};

const std::string kName = v1::RewardService::service_full_name();

struct Running {
  explicit Running(const std::string& address = "127.0.0.1:0") {
    auto started = RpcServer::Start({.address = address}, {{kName, &service}});
    REQUIRE(started.ok());
    server = *std::move(started);
  }

  FakeService service;
  std::unique_ptr<RpcServer> server;
};

absl::Status CallGrade(const std::string& address, const std::string& request_id,
                       const std::string& answer = "") {
  const auto stub = v1::RewardService::NewStub(CreateChannel(address));
  grpc::ClientContext context;
  SetTimeout(&context, absl::Seconds(20));
  v1::GradeRequest request;
  v1::GradeResponse response;
  request.set_request_id(request_id);
  request.mutable_candidate()->set_answer(answer);
  return FromGrpcStatus(stub->Grade(&context, request, &response));
}

// The answer of grpc.reflection.v1alpha to "list_services" (field 7 of its request), as bytes.
std::string ListServices(const std::string& address) {
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  SetTimeout(&context, absl::Seconds(20));
  grpc::GenericStub stub(CreateChannel(address));
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call =
      stub.PrepareCall(&context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  REQUIRE(next());
  const grpc::Slice request(std::string("\x3a\x00", 2));
  call->Write(grpc::ByteBuffer(&request, 1), nullptr);
  REQUIRE(next());
  grpc::ByteBuffer response;
  call->Read(&response, nullptr);
  REQUIRE(next());
  grpc::Slice bytes;
  REQUIRE(response.DumpToSingleSlice(&bytes).ok());
  return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

}  // namespace

TEST_CASE("a server on port 0 reports the port it got, and answers there") {
  Running running;
  CHECK(running.server->port() > 0);
  CHECK(running.server->address() == "127.0.0.1:" + std::to_string(running.server->port()));
  CHECK(CallGrade(running.server->address(), "now").ok());
}

TEST_CASE("a server on a Unix socket answers, and a second one there is refused") {
  TemporaryDirectory directory;
  const std::string address = "unix:" + (directory.path() / "s.sock").string();
  Running running(address);
  CHECK(running.server->port() == 0);
  CHECK(CallGrade(address, "now").ok());
  FakeService other;
  CHECK(absl::IsAlreadyExists(RpcServer::Start({.address = address}, {{kName, &other}}).status()));
  CHECK(CallGrade(address, "now").ok());
}

TEST_CASE("a port in use is refused") {
  Running running;
  FakeService other;
  const std::string address = running.server->address();
  const auto second =
      RpcServer::Start({.address = address, .address_key = "section.address"}, {{kName, &other}});
  CHECK(absl::IsAlreadyExists(second.status()));
  CHECK_THAT(std::string(second.status().message()),
             Catch::StartsWith("cannot listen at " + address + ": ") &&
                 Catch::EndsWith("; choose another by section.address"));
}

TEST_CASE("an address that cannot be bound is refused") {
  FakeService service;
  CHECK(absl::IsInvalidArgument(RpcServer::Start({.address = "nowhere"}, {{kName, &service}}).status()));
  CHECK_FALSE(RpcServer::Start({.address = "192.0.2.1:0"}, {{kName, &service}}).ok());
}

TEST_CASE("back-pressure reaches the client with its delay") {
  Running running;
  const absl::Status status = CallGrade(running.server->address(), "refuse");
  CHECK(absl::IsResourceExhausted(status));
  CHECK(GetRetryDelay(status) == absl::Milliseconds(70));
}

TEST_CASE("a message of 31 MiB passes and one over 32 MiB is refused") {
  Running running;
  CHECK(CallGrade(running.server->address(), "now", std::string(31 << 20, 'x')).ok());
  const absl::Status status = CallGrade(running.server->address(), "now", std::string(33 << 20, 'x'));
  CHECK(absl::IsResourceExhausted(status));
  CHECK_FALSE(GetRetryDelay(status).has_value());
}

TEST_CASE("health follows SetServing, and a waiting client sees the change") {
  Running running;
  const auto channel = CreateChannel(running.server->address());
  CHECK(absl::IsDeadlineExceeded(WaitUntilServing(channel, kName, absl::Milliseconds(100))));
  absl::Status waited = absl::UnknownError("");
  std::thread waiter([&] { waited = WaitUntilServing(channel, kName, absl::Seconds(20)); });
  running.server->SetServing(kName, Serving::kYes);
  waiter.join();
  CHECK(waited.ok());
  CHECK(WaitUntilServing(channel, "", absl::Seconds(20)).ok());
  CHECK(absl::IsNotFound(WaitUntilServing(channel, "no.such.Service", absl::Seconds(20))));
}

TEST_CASE("a service that the health check learns of while a client waits is no unknown one") {
  Running running;
  const auto channel = CreateChannel(running.server->address());
  absl::Status waited = absl::UnknownError("");
  std::thread waiter([&] { waited = WaitUntilServing(channel, "late.Service", absl::Seconds(20)); });
  // Long enough for the waiter to have been told that there is no such service.
  CHECK(absl::IsDeadlineExceeded(WaitUntilServing(channel, kName, absl::Milliseconds(150))));
  running.server->SetServing("late.Service", Serving::kYes);
  waiter.join();
  CHECK(waited.ok());
}

TEST_CASE("a client may wait for a server that starts later") {
  TemporaryDirectory directory;
  const std::string address = "unix:" + (directory.path() / "s.sock").string();
  absl::Status waited = absl::UnknownError("");
  std::thread waiter([&] { waited = WaitUntilServing(CreateChannel(address), kName, absl::Seconds(30)); });
  Running running(address);
  running.server->SetServing(kName, Serving::kYes);
  waiter.join();
  CHECK(waited.ok());
}

TEST_CASE("nobody at the address is DEADLINE_EXCEEDED after the time given") {
  TemporaryDirectory directory;
  const auto channel = CreateChannel("unix:" + (directory.path() / "none.sock").string());
  CHECK(absl::IsDeadlineExceeded(WaitUntilServing(channel, kName, absl::Milliseconds(200))));
}

TEST_CASE("shutdown cancels what is still running after the grace and then returns") {
  Running running;
  absl::Status status;
  std::thread client([&] { status = CallGrade(running.server->address(), "wait"); });
  running.service.entered_.WaitForNotification();
  running.server->Shutdown(absl::Milliseconds(50));
  client.join();
  CHECK_FALSE(status.ok());
  CHECK(absl::IsUnavailable(CallGrade(running.server->address(), "now")));
}

TEST_CASE("wait returns once another thread has shut the server down") {
  Running running;
  std::thread stopper([&] { running.server->Shutdown(absl::ZeroDuration()); });
  running.server->Wait();
  stopper.join();
}

TEST_CASE("reflection lists the services") {
  Running running;
  CHECK(ListServices(running.server->address()).find(kName) != std::string::npos);
}

}  // namespace warpsmith
