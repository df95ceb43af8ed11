#include <grpcpp/grpcpp.h>

#include <string>

#include "tests/support/catch.h"
#include "tests/support/hash_grade.h"
#include "tests/support/server_process.h"
#include "warpsmith/v1/reward_service.grpc.pb.h"

namespace warpsmith {
namespace {

v1::GradeRequest RequestFor(const std::string& id, const std::string& answer) {
  v1::GradeRequest request;
  request.set_request_id(id);
  request.mutable_task()->set_id("task-" + id);
  request.mutable_candidate()->set_answer(answer);
  return request;
}

TEST_CASE("the hash grader gives equal answers equal grades, and each response its request's ids") {
  ServerProcess server("warpsmith-hash-grader", {});
  REQUIRE(server.address() != "");
  const auto stub =
      v1::RewardService::NewStub(grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials()));
  v1::GradeResponse first, second;
  {
    grpc::ClientContext context;
    REQUIRE(stub->Grade(&context, RequestFor("a", "same answer"), &first).ok());
  }
  {
    grpc::ClientContext context;
    REQUIRE(stub->Grade(&context, RequestFor("b", "same answer"), &second).ok());
  }
  CHECK(first.grade().request_id() == "a");
  CHECK(second.grade().task_id() == "task-b");
  second.mutable_grade()->set_request_id("a");
  second.mutable_grade()->set_task_id("task-a");
  CHECK(first.SerializeAsString() == second.SerializeAsString());
}

TEST_CASE("hash grades spread over verdicts and rewards") {
  int num_compile_errors = 0, num_incorrect = 0, num_correct = 0;
  double reward_sum = 0.0;
  for (int i = 0; i < 400; ++i) {
    const v1::Grade grade = HashGrade("answer " + std::to_string(i));
    num_compile_errors += grade.verdict() == v1::VERDICT_COMPILE_ERROR;
    num_incorrect += grade.verdict() == v1::VERDICT_INCORRECT;
    num_correct += grade.verdict() == v1::VERDICT_CORRECT;
    reward_sum += grade.reward().value();
  }
  CHECK(num_compile_errors > 20);
  CHECK(num_incorrect > 20);
  CHECK(num_correct > 250);
  CHECK(reward_sum / 400 == Approx(0.75 * 1.65).margin(0.15));
}

}  // namespace
}  // namespace warpsmith
