#include "core/rpc/call_failure.h"

#include <string>

#include "core/rpc/channel.h"
#include "core/rpc/http_server.h"
#include "core/rpc/server.h"
#include "core/rpc/status.h"
#include "tests/support/catch.h"
#include "warpsmith/v1/reward_service.grpc.pb.h"
#include "warpsmith/v1/rollout_service.grpc.pb.h"

namespace warpsmith {
namespace {

struct BusyService : v1::RewardService::Service {
  grpc::Status Grade(grpc::ServerContext*, const v1::GradeRequest*, v1::GradeResponse*) override {
    return {grpc::StatusCode::UNAVAILABLE, "the service drains"};
  }
};

// What a user is told who has a candidate graded at `address`.
std::string GradeAt(const std::string& address) {
  const auto channel = CreateChannel(address);
  grpc::ClientContext context;
  SetTimeout(&context, absl::Seconds(20));
  v1::GradeResponse response;
  const grpc::Status end = v1::RewardService::NewStub(channel)->Grade(&context, {}, &response);
  const absl::Status told = ExplainCallFailure(FromGrpcStatus(end), channel,
                                               {.address = address,
                                                .kind = "reward service",
                                                .way_out = "start one",
                                                .other_service = v1::RolloutService::service_full_name(),
                                                .other_kind = "rollout worker"});
  return std::string(told.message());
}

}  // namespace

TEST_CASE("where nobody answers, the error names address, reason and way out") {
  CHECK(GradeAt("127.0.0.1:1") == "no reward service answers at 127.0.0.1:1 (Connection refused); start one");
  CHECK(GradeAt("unix:/nonexistent/socket") ==
        "no reward service answers at unix:/nonexistent/socket (No such file or directory); start one");
}

TEST_CASE("an HTTP server is told from a gRPC server") {
  auto door = HttpServer::Start({.address = "127.0.0.1:0"}, [](const std::shared_ptr<HttpExchange>&) {});
  REQUIRE(door.ok());
  const std::string address = (*door)->address();
  CHECK(GradeAt(address) == "no reward service answers at " + address +
                                " (HTTP/1 is spoken there, not gRPC: give the gRPC address); start one");
}

TEST_CASE("a server of another kind is named, also one that does not serve yet") {
  v1::RolloutService::Service worker;
  const auto server =
      RpcServer::Start({}, {{.name = v1::RolloutService::service_full_name(), .service = &worker}});
  REQUIRE(server.ok());
  const std::string address = (*server)->address();
  const std::string told = address + " is not a reward service (rollout worker): give the address of one";
  CHECK(GradeAt(address) == told);
  (*server)->SetServing(v1::RolloutService::service_full_name(), Serving::kYes);
  CHECK(GradeAt(address) == told);
}

TEST_CASE("what the server itself says stays as it is") {
  BusyService service;
  const auto server =
      RpcServer::Start({}, {{.name = v1::RewardService::service_full_name(), .service = &service}});
  REQUIRE(server.ok());
  CHECK(GradeAt((*server)->address()) == "the service drains");
}

}  // namespace warpsmith
