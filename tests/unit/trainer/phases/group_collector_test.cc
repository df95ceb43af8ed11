#include "trainer/phases/group_collector.h"

#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"
#include "tests/unit/trainer/fake_generator.h"
#include "tests/unit/trainer/groups.h"
#include "trainer/data/seeds.h"

namespace warpsmith {
namespace {

std::vector<Task> ImportedTasks(int count) {
  std::vector<Task> tasks;
  for (int i = 0; i < count; ++i) {
    tasks.push_back({.id = absl::StrCat("imported", i), .skill = Skill::kOptimise, .previous_source = "p"});
  }
  return tasks;
}

GrpoSection Options() { return {.num_tasks = 4, .num_samples = 3, .optimise_share = 0.0, .num_refills = 2}; }

std::vector<std::string> IdsOf(const std::vector<TransitionGroup>& groups) {
  std::vector<std::string> ids;
  for (const TransitionGroup& group : groups) ids.push_back(group.task.id);
  return ids;
}

}  // namespace

TEST_CASE("no request names a task twice, also where one pass over the tasks ends and the next begins") {
  FakeGenerator generator([](const Task&, int sample) { return 0.5 * sample; });
  std::vector<Task> few = ManyTasks();
  few.resize(6);  // three requests of four are two passes
  GroupCollector collector(few, Options(), 7, &generator);
  for (int step = 1; step <= 60; ++step) REQUIRE(collector.Collect(step, 0).ok());
  for (const GenerateRequest& request : generator.requests) {
    std::set<std::string> ids;
    for (const Task& task : request.tasks) ids.insert(task.id);
    CHECK(ids.size() == request.tasks.size());
    CHECK(ids.size() == 4);
  }
}

TEST_CASE("groups are used in the order of their tasks and the same seed draws the same") {
  FakeGenerator generator([](const Task&, int sample) { return 0.5 * sample; });
  GroupCollector first(ManyTasks(), Options(), 7, &generator), second(ManyTasks(), Options(), 7, &generator);
  const auto a = first.Collect(1, 0), b = second.Collect(1, 0);
  REQUIRE(a.ok());
  CHECK(a->used.size() == 4);
  CHECK(a->num_rounds == 1);
  CHECK(IdsOf(a->used) == IdsOf(b->used));
  CHECK(generator.requests[0].seed == generator.requests[1].seed);
}

TEST_CASE("a request names its step, counted from 1, and its seeds are those of all runs so far") {
  FakeGenerator generator([](const Task&, int sample) { return 0.5 * sample; });
  GroupCollector collector(ManyTasks(), Options(), 7, &generator);
  for (int step = 1; step <= 2; ++step) REQUIRE(collector.Collect(step, step - 1).ok());
  CHECK(generator.requests[0].id == "run-7-step-1-round-0");
  CHECK(generator.requests[1].id == "run-7-step-2-round-0");
  CHECK(generator.requests[0].seed == DeriveSeed(7, SeedPurpose::kRollout, 0));
  CHECK(generator.requests[1].seed == DeriveSeed(7, SeedPurpose::kRollout, 1024));
}

TEST_CASE("whoever waits is told of the groups of all rounds together") {
  FakeGenerator never([](const Task&, int) { return 1.0; });
  std::vector<std::pair<int, int>> told;
  const auto on_group = [&](int num_arrived, int num_wanted) { told.emplace_back(num_arrived, num_wanted); };
  GroupCollector collector(ManyTasks(), Options(), 7, &never);
  REQUIRE(collector.Collect(1, 0, on_group).ok());
  REQUIRE(told.size() == 12);  // three rounds of four, all equal
  CHECK(told[0] == std::pair(1, 4));
  CHECK(told[3] == std::pair(4, 4));
  CHECK(told[4] == std::pair(5, 8));
  CHECK(told[11] == std::pair(12, 12));
}

TEST_CASE("groups are asked for with the formula of the configuration") {
  FakeGenerator generator([](const Task&, int sample) { return 0.5 * sample; });
  GrpoSection options = Options();
  options.formula = "kevin-v1";
  GroupCollector collector(ManyTasks(), options, 7, &generator);
  REQUIRE(collector.Collect(1, 0).ok());
  CHECK(generator.requests[0].formula == "kevin-v1");
}

TEST_CASE("equal groups are dropped and replaced, a bounded number of times") {
  FakeGenerator half([](const Task& task, int sample) { return HashOf(task.id) % 2 ? 1.0 : 0.5 * sample; });
  GroupCollector collector(ManyTasks(), Options(), 7, &half);
  const auto collected = collector.Collect(1, 0);
  REQUIRE(collected.ok());
  CHECK(collected->used.size() + collected->equal.size() > 4);
  std::set<uint64_t> seeds;
  for (const GenerateRequest& request : half.requests) seeds.insert(request.seed);
  CHECK(seeds.size() == half.requests.size());

  FakeGenerator never([](const Task&, int) { return 1.0; });
  GroupCollector hopeless(ManyTasks(), Options(), 7, &never);
  const auto nothing = hopeless.Collect(1, 0);
  REQUIRE(nothing.ok());
  CHECK(nothing->used.empty());
  CHECK(nothing->num_rounds == 3);
}

TEST_CASE("graded answers come back as tasks of skill 2 at the share that is asked for") {
  FakeGenerator generator([](const Task&, int sample) { return 0.5 * sample; });
  GrpoSection options = Options();
  options.optimise_share = 0.5;
  GroupCollector collector(ManyTasks(), options, 7, &generator);
  for (int step = 1; step <= 10; ++step) REQUIRE(collector.Collect(step, step - 1).ok());
  int num_optimise = 0, num_tasks = 0;
  for (size_t i = 1; i < generator.requests.size(); ++i) {  // the first finds an empty pool
    for (const Task& task : generator.requests[i].tasks) {
      num_optimise += task.skill == Skill::kOptimise;
      ++num_tasks;
    }
  }
  CHECK(num_tasks == 36);
  CHECK(num_optimise == 18);
}

TEST_CASE("tasks of skill 2 come from the file and from graded answers in turn") {
  FakeGenerator generator([](const Task&, int sample) { return 0.5 * sample; });
  GrpoSection options = Options();
  options.optimise_share = 0.5;
  GroupCollector collector(ManyTasks(), options, 7, &generator, ImportedTasks(30));
  for (int step = 1; step <= 10; ++step) REQUIRE(collector.Collect(step, step - 1).ok());
  int num_imported = 0, num_graded = 0, num_generate = 0;
  for (size_t i = 1; i < generator.requests.size(); ++i) {  // the first finds an empty pool
    for (const Task& task : generator.requests[i].tasks) {
      const bool imported = task.id.rfind("imported", 0) == 0;
      num_imported += imported;
      num_graded += !imported && task.skill == Skill::kOptimise;
      num_generate += task.skill == Skill::kGenerate;
    }
  }
  CHECK(num_imported == 9);
  CHECK(num_graded == 9);
  CHECK(num_generate == 18);
}

TEST_CASE("a file of one task of skill 2 leaves no request short") {
  FakeGenerator generator([](const Task&, int sample) { return 0.5 * sample; });
  GrpoSection options = Options();
  options.optimise_share = 1.0;
  GroupCollector collector(ManyTasks(), options, 7, &generator, ImportedTasks(1));
  for (int step = 1; step <= 5; ++step) {
    const auto collected = collector.Collect(step, step - 1);
    REQUIRE(collected.ok());
    CHECK(collected->used.size() == 4);
  }
}

TEST_CASE("a restored collector goes on as the one that was saved") {
  FakeGenerator generator([](const Task&, int sample) { return 0.5 * sample; });
  GrpoSection options = Options();
  options.optimise_share = 0.3;
  GroupCollector whole(ManyTasks(), options, 7, &generator, ImportedTasks(9));
  GroupCollector resumed(ManyTasks(), options, 7, &generator, ImportedTasks(9));
  for (int step = 1; step <= 3; ++step) REQUIRE(whole.Collect(step, step - 1).ok());
  GrpoProgress progress;
  whole.Save(progress);
  resumed.Restore(progress);
  for (int step = 4; step <= 6; ++step) {
    CHECK(IdsOf(whole.Collect(step, step - 1)->used) == IdsOf(resumed.Collect(step, step - 1)->used));
  }
}

TEST_CASE("a scored transition becomes its prompt, its answer and its advantage") {
  FakeGenerator generator(
      [](const Task&, int sample) { return sample == 1 ? std::nullopt : std::optional(1.0 * sample); });
  const auto groups = generator.Generate({.tasks = {{.id = "a"}}, .num_samples = 3});
  std::vector<std::optional<double>> advantages;
  const auto sequences = SequencesOf(groups->front(), Options(), 1, advantages);
  REQUIRE(sequences.size() == 2);
  CHECK(sequences[0].tokens == std::vector<int32_t>{1, 2, 3, 4, 5});
  CHECK(sequences[0].num_prompt_tokens == 2);
  CHECK(sequences[0].advantage < 0);
  CHECK(sequences[1].advantage == *advantages[2]);
  CHECK_FALSE(advantages[1].has_value());
}

TEST_CASE("permuted rewards are the same rewards in other places") {
  const TransitionGroup group = GroupOf({0.1, 0.4, 0.9, 1.6, 2.5, std::nullopt});
  GrpoSection options = Options();
  options.advantage = AdvantageKind::kDrGrpo;
  std::vector<std::optional<double>> plain, permuted;
  SequencesOf(group, options, 1, plain);
  options.permute_rewards = true;
  SequencesOf(group, options, 1, permuted);
  CHECK(plain != permuted);
  CHECK_FALSE(permuted[5].has_value());
  CHECK(std::multiset<std::optional<double>>(plain.begin(), plain.end()) ==
        std::multiset<std::optional<double>>(permuted.begin(), permuted.end()));
}

}  // namespace warpsmith
