// Groups of devices of numbers: what one promises of several holds without a GPU.
#include "rollout_workers/device/step_device_group.h"

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "rollout_workers/paged/paged_batch.h"
#include "tests/support/catch.h"
#include "tests/support/fake_step_device.h"

namespace warpsmith::device {
namespace {

paged::PagedBatchOptions Paged() {
  return {.num_pages = 41,
          .page_tokens = 4,
          .sequences_max = 4,
          .context_tokens_max = 40,
          .prefill_tokens_max = 16,
          .decode_buckets = {1, 2, 4},
          .num_token_ids = 50};
}

std::map<int, paged::FinishedAnswer> Answers(StepDevice& device) {
  const std::unique_ptr<paged::PagedBatch> batch = paged::PagedBatch::Create(Paged(), 0).value();
  REQUIRE(batch
              ->Submit(
                  {.id = 1, .prompt_token_ids = {3, 1, 4, 1, 5}, .seeds = {7, 8, 9}, .answer_tokens_max = 20})
              .ok());
  std::map<int, paged::FinishedAnswer> answers;
  for (int step = 0; !batch->empty(); ++step) {
    REQUIRE(step < 100);
    const paged::StepPlan plan = batch->Plan();
    REQUIRE(device.Launch(plan).ok());
    for (paged::FinishedAnswer& answer : batch->Complete(device.AwaitOldest().value()).finished) {
      answers[answer.sample_index] = std::move(answer);
    }
  }
  return answers;
}

// What members of a test wait in, as GPUs wait for each other's sums.
struct Collectives {
  explicit Collectives(int size) : meeting(size) {}

  RankMeeting meeting;
  absl::Notification aborted;
  std::atomic<int> num_aborts = 0;
};

// A member whose steps wait for those of the others until they are aborted.
class WaitingMember final : public StepDevice {
 public:
  WaitingMember(std::shared_ptr<Collectives> collectives, absl::Status launch, absl::Status awaited)
      : collectives_(std::move(collectives)), launch_(std::move(launch)), awaited_(std::move(awaited)) {}

  int num_pages() const override { return 5; }
  absl::Status lost() const override { return absl::OkStatus(); }
  absl::Status LoadHuggingFace(const std::filesystem::path& directory) override {
    return absl::NotFoundError(directory.string());
  }
  absl::Status SetParameters(const Parameters&) override { return absl::OkStatus(); }
  absl::Status FillRandom(uint64_t) override { return absl::OkStatus(); }
  absl::Status TakeWeights(WeightSource&) override { return absl::OkStatus(); }
  void FreeWeights() override {}
  absl::Status AllocateWeights() override { return absl::OkStatus(); }
  absl::Status Launch(const paged::StepPlan&) override { return launch_; }
  absl::StatusOr<std::vector<paged::TokenResult>> AwaitOldest() override {
    if (!awaited_.ok()) return awaited_;
    collectives_->aborted.WaitForNotification();
    return std::vector<paged::TokenResult>();
  }
  void DropSteps() override {}
  void FreePages() override {}
  absl::Status AllocatePages() override { return absl::OkStatus(); }

 private:
  const std::shared_ptr<Collectives> collectives_;
  const absl::Status launch_, awaited_;
};

std::unique_ptr<StepDeviceGroup> GroupThatWaits(const std::shared_ptr<Collectives>& collectives,
                                                const absl::Status& launch, const absl::Status& awaited) {
  std::vector<StepDeviceGroup::Member> members;
  members.push_back(
      {"cuda:4", std::make_unique<WaitingMember>(collectives, absl::OkStatus(), absl::OkStatus())});
  members.push_back({"cuda:6", std::make_unique<WaitingMember>(collectives, launch, awaited)});
  return std::make_unique<StepDeviceGroup>(
      std::move(members),
      [collectives] {
        if (collectives->num_aborts++ == 0) collectives->aborted.Notify();
      },
      absl::Seconds(60));
}

}  // namespace

TEST_CASE("a group gives the answers of one device, from one member alone") {
  FakeStepDevice one(Paged(), std::make_shared<FakeStepDeviceState>());
  REQUIRE(one.FillRandom(5).ok());
  const std::map<int, paged::FinishedAnswer> expected = Answers(one);
  std::vector<StepDeviceGroup::Member> members;
  std::vector<std::shared_ptr<FakeStepDeviceState>> states;
  for (int rank = 0; rank < 3; ++rank) {
    states.push_back(std::make_shared<FakeStepDeviceState>());
    members.push_back(
        {absl::StrCat("cuda:", rank), std::make_unique<FakeStepDevice>(Paged(), states.back())});
  }
  StepDeviceGroup group(
      std::move(members), [] {}, absl::Seconds(60));
  CHECK(group.num_pages() == 41);
  REQUIRE(group.FillRandom(5).ok());
  const std::map<int, paged::FinishedAnswer> answers = Answers(group);
  REQUIRE(answers.size() == 3);
  for (const auto& [index, answer] : answers) {
    CHECK(answer.token_ids == expected.at(index).token_ids);
    CHECK(answer.log_probs == expected.at(index).log_probs);
  }
  for (const auto& state : states) {
    CHECK(state->weights == 5);
    CHECK(state->num_launched == states[0]->num_launched);
  }
}

TEST_CASE("a member that cannot launch ends the others' wait, and the group says who it was") {
  const auto collectives = std::make_shared<Collectives>(2);
  const auto group = GroupThatWaits(collectives, absl::InternalError("an illegal address"), absl::OkStatus());
  const absl::Status status = group->Launch({});
  CHECK(absl::IsInternal(status));
  CHECK(std::string(status.message()) ==
        "The group of GPUs is lost to this process, start it again: cuda:6: an illegal address");
  CHECK(collectives->num_aborts == 1);
  CHECK(group->Launch({}) == status);
  CHECK(group->FillRandom(1) == status);
  CHECK(group->AwaitOldest().status() == status);
  group->DropSteps();
}

TEST_CASE("a member whose step does not end in time ends the others', and is named") {
  const auto collectives = std::make_shared<Collectives>(2);
  const auto group = GroupThatWaits(collectives, absl::OkStatus(),
                                    absl::DeadlineExceededError("Step 3 of cuda:6, given 60s"));
  REQUIRE(group->Launch({}).ok());
  const absl::Status status = group->AwaitOldest().status();
  CHECK(absl::IsDeadlineExceeded(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("cuda:6: Step 3"));
  CHECK(collectives->num_aborts == 1);
}

TEST_CASE("a group whose member is lost while it takes weights is lost") {
  std::vector<StepDeviceGroup::Member> members;
  std::vector<std::shared_ptr<FakeStepDeviceState>> states;
  for (int rank = 0; rank < 2; ++rank) {
    states.push_back(std::make_shared<FakeStepDeviceState>());
    members.push_back(
        {absl::StrCat("cuda:", rank), std::make_unique<FakeStepDevice>(Paged(), states.back())});
  }
  StepDeviceGroup group(
      std::move(members), [] {}, absl::Seconds(60));
  REQUIRE(group.FillRandom(5).ok());
  CHECK(group.lost().ok());
  states[1]->loses_weights = true;
  const absl::Status status = group.FillRandom(6);
  CHECK_THAT(std::string(status.message()), Catch::Contains("cuda:1: "));
  CHECK(group.lost() == status);
}

// One device, whose thread is given up after `timeout`.
std::unique_ptr<StepDeviceGroup> OneDevice(const std::shared_ptr<FakeStepDeviceState>& state,
                                           absl::Duration timeout) {
  std::vector<StepDeviceGroup::Member> members;
  members.push_back({"cuda:3", std::make_unique<FakeStepDevice>(Paged(), state)});
  return std::make_unique<StepDeviceGroup>(std::move(members), nullptr, absl::ZeroDuration(), timeout);
}

TEST_CASE("one device gives its own answers and errors, and goes on after one that leaves it whole") {
  const auto state = std::make_shared<FakeStepDeviceState>();
  const auto device = OneDevice(state, absl::Seconds(60));
  REQUIRE(device->FillRandom(5).ok());
  FakeStepDevice plain(Paged(), std::make_shared<FakeStepDeviceState>());
  REQUIRE(plain.FillRandom(5).ok());
  const std::map<int, paged::FinishedAnswer> expected = Answers(plain), answers = Answers(*device);
  for (const auto& [index, answer] : expected) CHECK(answers.at(index).token_ids == answer.token_ids);
  state->failing_launch = state->num_launched.load();
  CHECK(std::string(device->Launch({}).message()) == "the launch was refused");
  CHECK(device->lost().ok());
  CHECK(Answers(*device).size() == 3);
  state->loses_weights = true;
  CHECK(std::string(device->FillRandom(6).message()) == "the copy did not end");
  CHECK(std::string(device->lost().message()) == "the copy did not end");
}

TEST_CASE("a device that hangs in a call that has no deadline of its own is lost") {
  const std::vector<std::function<void(StepDevice&)>> calls = {
      [](StepDevice& device) { device.FreePages(); }, [](StepDevice& device) { device.FreeWeights(); },
      [](StepDevice& device) { (void)device.AllocatePages(); },
      [](StepDevice& device) { (void)device.AllocateWeights(); },
      [](StepDevice& device) { (void)device.FillRandom(1); }};
  for (const auto& call : calls) {
    const auto go_on = std::make_shared<absl::Notification>();
    const auto state = std::make_shared<FakeStepDeviceState>();
    auto device = OneDevice(state, absl::Milliseconds(20));
    state->hangs_until = go_on;
    call(*device);
    CHECK(absl::IsDeadlineExceeded(device->lost()));
    CHECK_THAT(std::string(device->lost().message()),
               Catch::Contains("cuda:3 is lost to this process, start it again: not done within"));
    CHECK(device->Launch({}) == device->lost());
    device->DropSteps();
    device.reset();  // waits for nothing
    go_on->Notify();
  }
}

TEST_CASE("weights that cannot be loaded leave the group as it was") {
  const auto collectives = std::make_shared<Collectives>(2);
  const auto group = GroupThatWaits(collectives, absl::OkStatus(), absl::OkStatus());
  CHECK(absl::IsNotFound(group->LoadHuggingFace("/nowhere")));
  CHECK(group->lost().ok());
  CHECK(group->FillRandom(1).ok());
  CHECK(group->Launch({}).ok());
  CHECK(collectives->num_aborts == 0);
  collectives->aborted.Notify();
  CHECK(group->AwaitOldest().ok());
}

}  // namespace warpsmith::device
