#include "reward_service/server/door.h"

#include <grpcpp/grpcpp.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/rpc/channel.h"
#include "core/rpc/server.h"
#include "core/rpc/status.h"
#include "tests/support/catch.h"
#include "tests/support/reception_fixture.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test_certificates.h"

namespace warpsmith {
namespace {

// The door before a fake referee, served on a free port.
struct ServedDoor : ReceptionFixture {
  explicit ServedDoor(int queue_capacity = 256, const std::vector<TenantOptions>& tenants = {},
                      const TlsIdentity& tls = {})
      : ReceptionFixture(queue_capacity, tenants) {
    auto started = RpcServer::Start({.tls = tls}, {{v1::RewardService::service_full_name(), &door}});
    REQUIRE(started.ok());
    server = *std::move(started);
    stub = v1::RewardService::NewStub(CreateChannel(server->address()));
  }
  ~ServedDoor() {
    grader->Drain(absl::ZeroDuration());
    server->Shutdown(absl::ZeroDuration());
  }

  absl::StatusOr<v1::Grade> Grade(const v1::GradeRequest& request) {
    grpc::ClientContext context;
    SetTimeout(&context, absl::Seconds(20));
    v1::GradeResponse response;
    const grpc::Status status = stub->Grade(&context, request, &response);
    if (!status.ok()) return FromGrpcStatus(status);
    return response.grade();
  }

  absl::StatusOr<v1::Capabilities> GetCapabilities() {
    grpc::ClientContext context;
    SetTimeout(&context, absl::Seconds(20));
    v1::GetCapabilitiesResponse response;
    const grpc::Status status = stub->GetCapabilities(&context, v1::GetCapabilitiesRequest(), &response);
    if (!status.ok()) return FromGrpcStatus(status);
    return response.capabilities();
  }

  RewardDoor door{reception.get()};
  std::unique_ptr<RpcServer> server;
  std::unique_ptr<v1::RewardService::Stub> stub;
};

TEST_CASE("a grade comes back over gRPC") {
  ServedDoor served;
  const absl::StatusOr<v1::Grade> grade = served.Grade(NativeRequest("r1", "int run;"));
  REQUIRE(grade.ok());
  CHECK(grade->verdict() == v1::VERDICT_CORRECT);
  CHECK(grade->request_id() == "r1");
}

TEST_CASE("capabilities are there to be asked for") {
  ServedDoor served;
  CHECK(served.GetCapabilities()->default_formula() == "warpsmith-v3");
}

TEST_CASE("a request without a formula gets the service's, one with a formula its own") {
  const ReceptionFixture fixture(256, {}, 1, "kevin-v1");
  const auto grade = [&](const v1::GradeRequest& request) {
    absl::StatusOr<v1::Grade> answer = absl::UnknownError("none");
    absl::Notification answered;
    fixture.reception->Submit(*fixture.reception->Identify({}), request,
                              [&](absl::StatusOr<v1::Grade> grade) {
                                answer = std::move(grade);
                                answered.Notify();
                              });
    REQUIRE(answered.WaitForNotificationWithTimeout(absl::Seconds(60)));
    return *answer;
  };
  v1::GradeRequest request = NativeRequest("r1", "int run;");
  CHECK(grade(request).reward().formula() == "kevin-v1");
  request.set_request_id("r2");
  request.set_formula("stitchcuda-v1");
  CHECK(grade(request).reward().formula() == "stitchcuda-v1");
  fixture.grader->Drain(absl::ZeroDuration());
}

TEST_CASE("an answer of ten megabytes is refused by INVALID_ARGUMENT") {
  ServedDoor served;
  const absl::Status status = served.Grade(NativeRequest("r1", std::string(10 << 20, 'x'))).status();
  CHECK(absl::IsInvalidArgument(status));
}

TEST_CASE("a candidate for a device that the service lacks is FAILED_PRECONDITION, with what it grades") {
  ServedDoor served;
  v1::GradeRequest request = NativeRequest("r1", "int run;");
  request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_CUDA);
  const absl::Status status = served.Grade(request).status();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("grades cpp and kernelbench_python on cpu"));
  CHECK_FALSE(GetRetryDelay(status).has_value());
}

TEST_CASE("a full queue is RESOURCE_EXHAUSTED with RetryInfo") {
  ServedDoor served(0);
  const absl::Status status = served.Grade(NativeRequest("r1", "int run;")).status();
  CHECK(absl::IsResourceExhausted(status));
  CHECK(GetRetryDelay(status).has_value());
}

TEST_CASE("a caller whose deadline passes frees its place in the queue") {
  ServedDoor served(1);
  absl::Notification go;
  served.script.judge = [&](const JudgeRequest&) {
    go.WaitForNotification();
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  grpc::ClientContext context;
  SetTimeout(&context, absl::Milliseconds(50));
  v1::GradeResponse response;
  const grpc::Status status = served.stub->Grade(&context, NativeRequest("r1", "int run;"), &response);
  CHECK(status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  go.Notify();
  absl::StatusOr<v1::Grade> next = absl::ResourceExhaustedError("");
  // The server hears of it a moment later than the caller.
  for (int attempt = 0; attempt < 1000 && absl::IsResourceExhausted(next.status()); ++attempt) {
    next = served.Grade(NativeRequest("r2", "int other;"));
  }
  CHECK(next.ok());
}

// A door with a certificate, and two tenants: "lab" with a token and "farm" with a certificate in its name.
struct TenantDoors {
  TenantDoors() {
    std::ofstream(directory.path() / "token") << kToken;
    const CertifiedKey pair = MakeCertificate("server", authority);
    served = std::make_unique<ServedDoor>(
        4,
        std::vector<TenantOptions>{{.name = "lab", .token_file = directory.path() / "token"},
                                   {.name = "farm"}},
        TlsIdentity{.certificate = pair.certificate, .key = pair.key});
  }

  void Connect(const ChannelOptions& channel) {
    connection = CreateChannel(served->server->address(), channel);
    served->stub = v1::RewardService::NewStub(connection);
  }
  absl::Status Grade(const ChannelOptions& channel, const std::string& id) {
    Connect(channel);
    return served->Grade(NativeRequest(id, "int run;")).status();
  }

  static constexpr char kToken[] = "0123456789abcdef";
  TemporaryDirectory directory;
  CertifiedKey authority = MakeAuthority("authority");
  std::unique_ptr<ServedDoor> served;
  std::shared_ptr<grpc::Channel> connection;
};

TEST_CASE("over gRPC a token names the tenant, and whoever shows none is refused, on a stream too") {
  TenantDoors doors;
  ChannelOptions channel{.encryption = Encryption::kTls,
                         .tls = {.authority = doors.authority.certificate},
                         .token = TenantDoors::kToken};
  CHECK(doors.Grade(channel, "r1").ok());
  channel.token = "wrong";
  CHECK(absl::IsUnauthenticated(doors.Grade(channel, "r2")));
  channel.token = "";
  CHECK(absl::IsUnauthenticated(doors.Grade(channel, "r3")));
  grpc::ClientContext context;
  SetTimeout(&context, absl::Seconds(20));
  const auto stream = doors.served->stub->GradeBatch(&context);
  v1::GradeResponse response;
  CHECK_FALSE(stream->Read(&response));
  CHECK(stream->Finish().error_code() == grpc::StatusCode::UNAUTHENTICATED);
}

TEST_CASE("what the machine can do is told to tenants alone, whether it serves to everybody") {
  TenantDoors doors;
  ChannelOptions channel{.encryption = Encryption::kTls, .tls = {.authority = doors.authority.certificate}};
  doors.Connect(channel);
  CHECK(absl::IsUnauthenticated(doors.served->GetCapabilities().status()));
  doors.served->server->SetServing("", Serving::kYes);
  CHECK(WaitUntilServing(doors.connection, "", absl::Seconds(20)).ok());
  channel.token = TenantDoors::kToken;
  doors.Connect(channel);
  CHECK(doors.served->GetCapabilities().ok());
}

}  // namespace
}  // namespace warpsmith
