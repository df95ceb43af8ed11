#include "reward_service/server/batch_reactor.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/rpc/channel.h"
#include "reward_service/server/door.h"
#include "tests/support/catch.h"
#include "tests/support/in_process_server.h"
#include "tests/support/reception_fixture.h"

namespace warpsmith {
namespace {

// The door's streams before a fake referee, without sockets.
struct ServedStream : ReceptionFixture {
  explicit ServedStream(int queue_capacity = 256) : ReceptionFixture(queue_capacity) {}
  ~ServedStream() { grader->Drain(absl::ZeroDuration()); }

  RewardDoor door{reception.get()};
  InProcessServer server{&door};
  std::unique_ptr<v1::RewardService::Stub> stub = v1::RewardService::NewStub(server.channel());
};

v1::GradeRequest Numbered(int i) {
  return NativeRequest("r" + std::to_string(i), "int run" + std::to_string(i) + ";");
}

TEST_CASE("a stream answers every request by its id, refused ones included") {
  ServedStream served;
  grpc::ClientContext context;
  SetTimeout(&context, absl::Seconds(20));
  const auto stream = served.stub->GradeBatch(&context);
  constexpr int kNumRequests = 200;  // more than the stream has in flight at once
  std::thread writer([&] {
    for (int i = 0; i < kNumRequests; ++i) {
      v1::GradeRequest request = Numbered(i);
      if (i == 7) request.set_formula("unknown");
      if (i == 8) request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_CUDA);
      stream->Write(request);
    }
    stream->WritesDone();
  });
  std::map<std::string, v1::GradeResponse> responses;
  v1::GradeResponse response;
  while (stream->Read(&response)) responses[response.request_id()] = response;
  writer.join();
  CHECK(stream->Finish().ok());
  REQUIRE(responses.size() == kNumRequests);
  CHECK(responses["r6"].grade().verdict() == v1::VERDICT_CORRECT);
  CHECK_FALSE(responses["r7"].has_grade());
  CHECK(responses["r7"].error().code() == static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  CHECK_FALSE(responses["r8"].has_grade());
  CHECK(responses["r8"].error().code() == static_cast<int>(grpc::StatusCode::FAILED_PRECONDITION));
}

TEST_CASE("a stream that is cancelled in mid-work leaves nothing behind") {
  ServedStream served;
  absl::Notification go;
  served.script.judge = [&](const JudgeRequest&) {
    go.WaitForNotification();
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  {
    grpc::ClientContext context;
    const auto stream = served.stub->GradeBatch(&context);
    for (int i = 0; i < 20; ++i) {
      stream->Write(Numbered(i));
    }
    context.TryCancel();
    CHECK(stream->Finish().error_code() == grpc::StatusCode::CANCELLED);
  }
  go.Notify();
  grpc::ClientContext context;
  SetTimeout(&context, absl::Seconds(20));
  v1::GradeResponse response;
  CHECK(served.stub->Grade(&context, NativeRequest("after", "int after;"), &response).ok());
}

TEST_CASE("a stream without requests ends well") {
  ServedStream served;
  grpc::ClientContext context;
  const auto stream = served.stub->GradeBatch(&context);
  stream->WritesDone();
  v1::GradeResponse response;
  CHECK_FALSE(stream->Read(&response));
  CHECK(stream->Finish().ok());
}

TEST_CASE("a response is written when its grade is there, whatever was asked before it") {
  ServedStream served;
  absl::Notification go;
  served.script.judge = [&](const JudgeRequest&) {
    go.WaitForNotification();
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  grpc::ClientContext context;
  SetTimeout(&context, absl::Seconds(20));
  const auto stream = served.stub->GradeBatch(&context);
  stream->Write(NativeRequest("slow", "int run;"));
  stream->Write(NativeRequest("no code", ""));
  v1::GradeResponse response;
  REQUIRE(stream->Read(&response));
  CHECK(response.request_id() == "no code");
  CHECK(response.grade().verdict() == v1::VERDICT_NO_CODE);
  go.Notify();
  REQUIRE(stream->Read(&response));
  CHECK(response.request_id() == "slow");
  stream->WritesDone();
  CHECK_FALSE(stream->Read(&response));
  CHECK(stream->Finish().ok());
}

TEST_CASE("a stream holds back a client that sends faster than it is served") {
  constexpr int kInFlightMax = 64;
  ServedStream served;
  absl::Notification go;
  std::atomic<int> most{0};
  served.script.judge = [&](const JudgeRequest&) {
    go.WaitForNotification();
    most = std::max(most.load(), served.grader->backlog().num_requests);
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  grpc::ClientContext context;
  SetTimeout(&context, absl::Seconds(60));
  const auto stream = served.stub->GradeBatch(&context);
  constexpr int kNumRequests = 3 * kInFlightMax;
  std::thread writer([&] {
    for (int i = 0; i < kNumRequests; ++i) stream->Write(Numbered(i));
    stream->WritesDone();
  });
  while (served.grader->backlog().num_requests < kInFlightMax) std::this_thread::yield();
  go.Notify();
  int num_responses = 0;
  v1::GradeResponse response;
  while (stream->Read(&response)) ++num_responses;
  writer.join();
  CHECK(stream->Finish().ok());
  CHECK(num_responses == kNumRequests);
  CHECK(most == kInFlightMax);
}

TEST_CASE("a stream's refusal says when to ask again, and the stream goes on") {
  ServedStream served(0);
  grpc::ClientContext context;
  SetTimeout(&context, absl::Seconds(20));
  const auto stream = served.stub->GradeBatch(&context);
  v1::GradeResponse response;
  for (int i = 0; i < 2; ++i) {
    stream->Write(Numbered(i));
    REQUIRE(stream->Read(&response));
    CHECK(response.request_id() == "r" + std::to_string(i));
    CHECK(response.error().code() == static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED));
    CHECK(response.error().retry_delay_ms() > 0);
  }
  stream->WritesDone();
  CHECK(stream->Finish().ok());
}

}  // namespace
}  // namespace warpsmith
