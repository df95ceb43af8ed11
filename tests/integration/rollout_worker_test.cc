// A rollout worker as a process, with a reward service whose grade is a hash of the answer.
#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"
#include "tests/integration/rollout_rig.h"
#include "tests/support/catch.h"
#include "tests/support/server_process.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/weights_file.h"
#include "warpsmith/v1/rollout_service.grpc.pb.h"

namespace warpsmith {
namespace {

v1::GenerateGroupsRequest Request(const std::string& id, int num_tasks, int num_samples,
                                  int answer_tokens_max = 20) {
  v1::GenerateGroupsRequest request;
  request.set_request_id(id);
  request.set_num_samples(num_samples);
  request.set_seed(11);
  request.mutable_sampling()->set_temperature(1);
  request.mutable_sampling()->set_top_p(1);
  request.mutable_sampling()->set_answer_tokens_max(answer_tokens_max);
  for (int t = 0; t < num_tasks; ++t) {
    v1::Task& task = *request.add_tasks();
    task.set_id(absl::StrCat("task-", t));
    task.set_skill(v1::SKILL_GENERATE);
    task.set_language(v1::CANDIDATE_LANGUAGE_CPP);
    task.set_reference_source(absl::StrCat("def forward(x):\n    return x + ", t, "\n"));
  }
  return request;
}

bool SameAnswer(const v1::Transition& a, const v1::Transition& b) {
  return a.answer_token_ids_size() > 0 &&
         std::equal(a.answer_token_ids().begin(), a.answer_token_ids().end(), b.answer_token_ids().begin(),
                    b.answer_token_ids().end()) &&
         std::equal(a.log_probs().begin(), a.log_probs().end(), b.log_probs().begin(), b.log_probs().end());
}

bool AreGraded(const Groups& groups) {
  for (const auto& [index, group] : groups)
    for (const v1::Transition& transition : group.transitions())
      if (!transition.grade().reward().has_value()) return false;
  return true;
}

void CheckComplete(const Groups& groups, const v1::GenerateGroupsRequest& request) {
  REQUIRE(static_cast<int>(groups.size()) == request.tasks_size());
  for (const auto& [index, group] : groups) {
    CHECK(group.task().id() == request.tasks(index).id());
    REQUIRE(group.transitions_size() == request.num_samples());
    for (int s = 0; s < group.transitions_size(); ++s) {
      const v1::Transition& transition = group.transitions(s);
      CHECK(transition.sample_index() == s);
      CHECK(transition.prompt_token_ids_size() > 0);
      CHECK(transition.answer_token_ids_size() > 0);
      CHECK(transition.log_probs_size() == transition.answer_token_ids_size());
      CHECK(transition.grade().task_id() == group.task().id());
      CHECK(transition.grade().reward().has_value());
    }
  }
}

TEST_CASE("every sample of every group comes once, decoded and graded") {
  Rig rig;
  rig.AwaitServing();
  const v1::GenerateGroupsRequest request = Request("r", 5, 4);
  Groups groups;
  REQUIRE(rig.Generate(request, &groups).ToString() == "OK");
  CheckComplete(groups, request);
  CHECK(!SameAnswer(groups[0].transitions(0), groups[0].transitions(1)));
}

TEST_CASE(
    "a formula, language or device that the reward service lacks is refused before anything is sampled") {
  Rig rig;
  rig.AwaitServing();
  const auto ask = [&](const std::string& formula,
                       v1::CandidateLanguage language = v1::CANDIDATE_LANGUAGE_CPP,
                       const std::vector<v1::Device>& devices = {}) {
    grpc::ClientContext context;
    SetTimeout(&context, absl::Seconds(30));
    v1::GetStatusRequest request;
    request.set_formula(formula);
    request.set_language(language);
    for (const v1::Device device : devices) request.add_devices(device);
    v1::GetStatusResponse response;
    const absl::Status status = FromGrpcStatus(rig.stub().GetStatus(&context, request, &response));
    return status.ok() ? absl::StatusOr<std::string>(response.formula()) : status;
  };
  CHECK(*ask("hash-of-answer") == "hash-of-answer");
  CHECK(*ask("") == "hash-of-answer");
  const v1::GetStatusResponse status = rig.Status();
  CHECK(status.formula() == "");
  CHECK(status.model_fields().at("rms_norm_eps") == "1e-06");
  CHECK(status.stop_token_ids_size() == 2);
  const absl::Status unknown = ask("kevin-v1").status();
  CHECK(absl::IsInvalidArgument(unknown));
  CHECK_THAT(std::string(unknown.message()), Catch::Contains("it has hash-of-answer"));
  CHECK(ask("", v1::CANDIDATE_LANGUAGE_CPP, {v1::DEVICE_CPU}).ok());
  CHECK(absl::IsFailedPrecondition(ask("", v1::CANDIDATE_LANGUAGE_CUDA).status()));
  const absl::Status lacks = ask("", v1::CANDIDATE_LANGUAGE_CPP, {v1::DEVICE_CUDA}).status();
  CHECK(absl::IsFailedPrecondition(lacks));
  CHECK_THAT(std::string(lacks.message()), Catch::Contains("it grades cpp, kernelbench_python, on cpu"));
}

TEST_CASE("a sample is the same to the bit alone, among others, and in another worker") {
  Groups alone, among;
  {
    Rig rig;
    rig.AwaitServing();
    v1::GenerateGroupsRequest request = Request("among", 8, 8, 60);
    REQUIRE(rig.Generate(request, &among).ok());
  }
  Rig rig(0, {"--set", "rollout.num_slots=1", "--set", "rollout.num_threads=1"});
  rig.AwaitServing();
  v1::GenerateGroupsRequest request = Request("alone", 8, 1, 60);
  request.mutable_tasks()->DeleteSubrange(0, 6);
  REQUIRE(rig.Generate(request, &alone).ok());
  CHECK(SameAnswer(alone[0].transitions(0), among[6].transitions(0)));
  CHECK(SameAnswer(alone[1].transitions(0), among[7].transitions(0)));
}

TEST_CASE("a repeated request_id gives the same groups without decoding again") {
  Rig rig;
  rig.AwaitServing();
  Groups first, second, part;
  REQUIRE(rig.Generate(Request("r", 4, 3), &first).ok());
  const int64_t num_decoded = rig.Status().num_tokens_decoded();
  CHECK(num_decoded > 0);
  REQUIRE(rig.Generate(Request("r", 4, 3), &second).ok());
  for (int i = 0; i < 4; ++i) CHECK(first[i].SerializeAsString() == second[i].SerializeAsString());

  v1::GenerateGroupsRequest fewer = Request("r", 4, 3);
  fewer.mutable_tasks()->DeleteSubrange(0, 2);
  REQUIRE(rig.Generate(fewer, &part).ok());
  for (int s = 0; s < 3; ++s) CHECK(SameAnswer(part[1].transitions(s), first[3].transitions(s)));
  CHECK(rig.Status().num_tokens_decoded() == num_decoded);
}

TEST_CASE("cancelling stops decoding, and the same request can be taken up again") {
  Rig rig;
  rig.AwaitServing();
  const v1::GenerateGroupsRequest request = Request("r", 30, 4, 200);
  {
    grpc::ClientContext context;
    const auto reader = rig.stub().GenerateGroups(&context, request);
    v1::GenerateGroupsResponse response;
    REQUIRE(reader->Read(&response));
    context.TryCancel();
    while (reader->Read(&response)) {
    }
    CHECK(reader->Finish().error_code() == grpc::StatusCode::CANCELLED);
  }
  REQUIRE(rig.AwaitIdle());
  const int64_t num_decoded = rig.Status().num_tokens_decoded();
  CHECK(num_decoded < 30 * 4 * 200);
  Groups groups;
  REQUIRE(rig.Generate(request, &groups).ok());
  CheckComplete(groups, request);
}

TEST_CASE("weights are swapped by version and checksum, and nothing half-right is taken") {
  Rig rig;
  rig.AwaitServing();
  const std::filesystem::path path = rig.directory() / "weights.bin";
  const OfferedWeights good = WriteWeightsFile(Shape(), 5, 1, path);

  OfferedWeights corrupt = good;
  corrupt.buffers[1].sha256[0] = corrupt.buffers[1].sha256[0] == '0' ? '1' : '0';
  CHECK(absl::IsDataLoss(rig.Prepare(corrupt)));
  OfferedWeights foreign = good;
  foreign.layout_sha256 = std::string(64, '0');
  CHECK(absl::IsFailedPrecondition(rig.Prepare(foreign)));
  OfferedWeights outside = good;
  outside.buffers.back().offset_bytes += 4;
  CHECK(absl::IsInvalidArgument(rig.Prepare(outside)));
  OfferedWeights absent = good;
  absent.path = rig.directory() / "absent.bin";
  CHECK(absl::IsNotFound(rig.Prepare(absent)));
  CHECK(absl::IsFailedPrecondition(rig.Commit(1)));
  CHECK(rig.Status().policy_version() == 0);

  CHECK(rig.Prepare(good).ToString() == "OK");
  CHECK(rig.Prepare(good).ToString() == "OK");
  CHECK(rig.Commit(1).ToString() == "OK");
  CHECK(rig.Commit(1).ToString() == "OK");
  CHECK(rig.Status().policy_version() == 1);

  Groups old_version, new_version;
  CHECK(absl::IsFailedPrecondition(rig.Generate(Request("old", 1, 1), &old_version)));
  v1::GenerateGroupsRequest request = Request("new", 1, 2);
  request.set_policy_version(1);
  REQUIRE(rig.Generate(request, &new_version).ok());
  CHECK(new_version[0].transitions(0).policy_version() == 1);
}

TEST_CASE("a commit does not wait for longer than its caller, and leaves the old weights in use") {
  Rig rig(0, {"--set", "rollout.num_slots=1"});  // seconds of work, then
  rig.AwaitServing();
  REQUIRE(rig.Prepare(WriteWeightsFile(Shape(), 5, 1, rig.directory() / "weights.bin")).ok());
  grpc::ClientContext context;
  const auto reader = rig.stub().GenerateGroups(&context, Request("long", 40, 8, 400));
  v1::GenerateGroupsResponse response;
  REQUIRE(reader->Read(&response));
  CHECK(absl::IsFailedPrecondition(rig.Commit(1, absl::Milliseconds(300))));
  CHECK(rig.Status().policy_version() == 0);
  context.TryCancel();
  CHECK(rig.Commit(1).ToString() == "OK");
}

TEST_CASE("a reward service killed in mid-step and started again costs no transition") {
  Rig rig(/*grade_delay_ms=*/50);
  rig.AwaitServing();
  const v1::GenerateGroupsRequest request = Request("r", 12, 4, 40);
  Groups groups;
  absl::Status status;
  std::thread trainer([&] { status = rig.Generate(request, &groups); });
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (rig.Status().num_tokens_decoded() < 200 && absl::Now() < deadline) {
  }
  CHECK(rig.grader().Stop(SIGKILL, absl::Seconds(10)) == 128 + SIGKILL);
  rig.StartGrader();
  trainer.join();
  REQUIRE(status.ToString() == "OK");
  CheckComplete(groups, request);
}

TEST_CASE(
    "without a reward service answers come back UNSCORABLE with the reason, and are graded when asked "
    "again") {
  Rig rig(0, {"--set", "rollout.grade_give_up_seconds=0.5"});
  rig.AwaitServing();
  rig.grader().Stop(SIGKILL, absl::Seconds(10));
  const v1::GenerateGroupsRequest request = Request("r", 2, 2);
  Groups groups, again;
  REQUIRE(rig.Generate(request, &groups).ok());
  REQUIRE(groups.size() == 2);
  for (const v1::Transition& transition : groups[1].transitions()) {
    CHECK(transition.grade().verdict() == v1::VERDICT_UNSCORABLE);
    CHECK_THAT(transition.grade().verdict_reason(), Catch::Contains("attempts"));
    CHECK_FALSE(transition.grade().reward().has_value());
  }
  const int64_t num_decoded = rig.Status().num_tokens_decoded();
  rig.StartGrader();
  // The worker's channel rests between attempts to connect, at times for longer than a grade is asked for here.
  const absl::Time end = absl::Now() + absl::Seconds(20);
  do {
    again.clear();
    REQUIRE(rig.Generate(request, &again).ok());
  } while (!AreGraded(again) && absl::Now() < end);
  CheckComplete(again, request);
  CHECK(rig.Status().num_tokens_decoded() == num_decoded);
}

TEST_CASE("a task at fault spoils its own group only") {
  Rig rig;
  rig.AwaitServing();
  v1::GenerateGroupsRequest request = Request("r", 3, 2);
  request.mutable_tasks(0)->set_reference_source(std::string(20000, 'x'));
  request.mutable_tasks(1)->set_skill(v1::SKILL_OPTIMISE);
  Groups groups;
  REQUIRE(rig.Generate(request, &groups).ok());
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].transitions(1).grade().verdict() == v1::VERDICT_INVALID_TASK);
  CHECK_THAT(groups[0].transitions(1).grade().verdict_reason(), Catch::Contains("tokens; at most 1004"));
  CHECK_THAT(groups[1].transitions(0).grade().verdict_reason(), Catch::Contains("no previous_source"));
  CHECK(groups[2].transitions(0).grade().reward().has_value());
}

TEST_CASE("requests that cannot be served are refused by name") {
  Rig rig(0, {"--set", "rollout.num_slots=1"});
  rig.AwaitServing();
  Groups none;
  CHECK(absl::IsInvalidArgument(rig.Generate(Request("", 1, 1), &none)));
  CHECK(absl::IsInvalidArgument(rig.Generate(Request("r", 0, 1), &none)));
  CHECK(absl::IsInvalidArgument(rig.Generate(Request("r", 1, 0), &none)));
  CHECK(absl::IsInvalidArgument(rig.Generate(Request("r", 1, 1, 1024), &none)));
  v1::GenerateGroupsRequest twice = Request("r", 2, 1);
  *twice.mutable_tasks(1) = twice.tasks(0);
  CHECK(absl::IsInvalidArgument(rig.Generate(twice, &none)));
  CHECK(none.empty());
}

TEST_CASE("a worker without weights is not serving until some are committed") {
  Rig rig(0, {"--set", "rollout.waits_for_weights=true"});
  Groups none;
  CHECK(absl::IsFailedPrecondition(rig.Generate(Request("r", 1, 1), &none)));
  const auto channel = CreateChannel(rig.worker().address());
  const std::string name = v1::RolloutService::service_full_name();
  CHECK(absl::IsDeadlineExceeded(WaitUntilServing(channel, name, absl::Milliseconds(200))));
  REQUIRE(rig.Prepare(WriteWeightsFile(Shape(), 5, 7, rig.directory() / "weights.bin")).ok());
  REQUIRE(rig.Commit(7).ok());
  CHECK(WaitUntilServing(channel, name, absl::Seconds(10)).ok());
}

TEST_CASE("a draining worker says that neither it nor its service serves") {
  Rig rig;
  rig.AwaitServing();
  CHECK(rig.Serves(""));
  grpc::ClientContext context;
  v1::DrainResponse response;
  REQUIRE(rig.stub().Drain(&context, {}, &response).ok());
  CHECK_FALSE(rig.Serves(v1::RolloutService::service_full_name()));
  CHECK_FALSE(rig.Serves(""));
}

TEST_CASE("SIGTERM ends what is under way and exits with 0") {
  Rig rig;
  rig.AwaitServing();
  const v1::GenerateGroupsRequest request = Request("r", 6, 4, 60);
  Groups groups;
  absl::Status status;
  std::thread trainer([&] { status = rig.Generate(request, &groups); });
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  // A count that never falls: samples that have ended before the first look are waited for in vain.
  while (rig.Status().num_tokens_decoded() == 0 && absl::Now() < deadline) {
  }
  CHECK(rig.worker().Stop(SIGTERM, absl::Seconds(20)) == 0);
  trainer.join();
  REQUIRE(status.ToString() == "OK");
  CheckComplete(groups, request);
}

}  // namespace
}  // namespace warpsmith
