#include "reward_service/grading/flight_queue.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/run_together.h"

namespace warpsmith {
namespace {

std::shared_ptr<Flight> FlightOf(const std::string& task, const std::string& source = "",
                                 v1::Device device = v1::DEVICE_CPU) {
  PreparedRequest prepared;
  prepared.device = device;
  prepared.task_key = task;
  prepared.source = source;
  prepared.request.mutable_task()->set_reference_source("reference of " + task);
  auto flight = std::make_shared<Flight>();
  flight->prepared = std::make_shared<const PreparedRequest>(prepared);
  return flight;
}

TEST_CASE("flights of one task are taken together, and the taker remembers it") {
  FlightQueue queue({});
  for (const char* task : {"a", "b", "a", "b"}) queue.Push(FlightOf(task));
  RecentWork recent;
  std::string order;
  for (int i = 0; i < 4; ++i) order += queue.Take(&recent)->prepared->task_key;
  CHECK(order == "aabb");
  CHECK(recent.task_key == "b");
}

TEST_CASE("every flight is taken within its bound, whatever arrives") {
  FlightQueue queue({});
  RecentWork recent;
  // Hot tasks never run dry, and candidates of theirs are judged here already.
  const auto place_of = [](const std::string& task) {
    return task[0] == 'h' ? TaskPlace::kHere : TaskPlace::kNowhere;
  };
  const auto push_hot = [&] { queue.Push(FlightOf("hot " + std::to_string(queue.size() % 3))); };
  for (int i = 0; i < 20; ++i) push_hot();
  for (int i = 0; i < 5; ++i) queue.Push(FlightOf("cold " + std::to_string(i)));
  const int num_waiting = queue.size();
  int num_cold = 0, num_taken = 0;
  // The gate lets in the first alone, which came to an empty queue, and then all of these.
  for (; num_cold < 5 && num_taken < 1000; ++num_taken) {
    num_cold += queue.TakeNow(&recent, {}, place_of)->prepared->task_key[0] == 'c' ? 1 : 0;
    for (int i = 0; i < 2; ++i) push_hot();
  }
  CHECK(num_taken <= num_waiting + 2);
}

TEST_CASE("a flight that comes again waits like one that comes") {
  FlightQueue queue({});
  RecentWork recent;
  queue.Push(FlightOf("cold"));
  const std::shared_ptr<Flight> again = queue.Take(&recent);
  queue.Push(again);
  recent = {"hot"};
  for (int i = 0; i < 3; ++i) queue.Push(FlightOf("hot"));
  CHECK(queue.Take(&recent) == again);
}

TEST_CASE("tasks that a lane judges are done before another one is begun") {
  FlightQueue queue({});
  for (const char* task : {"first", "new", "begun", "new", "begun", "begun"}) queue.Push(FlightOf(task));
  const auto place_of = [](const std::string& task) {
    return task == "begun" ? TaskPlace::kHere : TaskPlace::kNowhere;
  };
  RecentWork recent;
  CHECK(queue.TakeNow(&recent, {}, place_of)->prepared->task_key == "first");  // it came alone
  CHECK(queue.NextTask({}, v1::DEVICE_CPU, place_of)->key == "begun");
  CHECK(queue.NextTask({"begun"}, v1::DEVICE_CPU, place_of)->key == "new");
  std::string order;
  for (int i = 0; i < 5; ++i) order += queue.TakeNow(&recent, {}, place_of)->prepared->task_key.front();
  CHECK(order == "bbbnn");
}

TEST_CASE("flights that nobody wants are not handed out") {
  FlightQueue queue({});
  queue.Push(FlightOf("a", "unwanted"));
  const auto unwanted = FlightOf("a", "also unwanted");
  queue.Push(unwanted);
  queue.Push(FlightOf("b", "wanted"));
  RecentWork recent;
  CHECK(queue.Take(&recent)->prepared->source == "unwanted");
  unwanted->cancelled = true;
  CHECK(queue.Take(&recent)->prepared->source == "wanted");
}

TEST_CASE("the next task is another one than those that are judged") {
  FlightQueue queue({});
  CHECK_FALSE(queue.NextTask({"a"}, v1::DEVICE_CPU).has_value());
  queue.Push(FlightOf("a"));
  CHECK_FALSE(queue.NextTask({"a"}, v1::DEVICE_CPU).has_value());
  queue.Push(FlightOf("b"));
  REQUIRE(queue.NextTask({"a"}, v1::DEVICE_CPU).has_value());
  CHECK(queue.NextTask({"a"}, v1::DEVICE_CPU)->reference_source == "reference of b");
  queue.Push(FlightOf("c"));
  CHECK(queue.NextTask({"b", "a"}, v1::DEVICE_CPU)->reference_source == "reference of c");
}

TEST_CASE("a task is there as long as one of its flights waits") {
  FlightQueue queue({});
  for (const char* task : {"a", "a", "b"}) queue.Push(FlightOf(task));
  RecentWork recent;
  CHECK(queue.Take(&recent)->prepared->task_key == "a");
  CHECK(queue.HasTask("a", v1::DEVICE_CPU));
  CHECK(queue.Take(&recent)->prepared->task_key == "a");
  CHECK_FALSE(queue.HasTask("a", v1::DEVICE_CPU));
  CHECK(queue.HasTask("b", v1::DEVICE_CPU));
}

TEST_CASE("what others have ready is left to them until it has waited for long") {
  const auto place_of = [](const std::string& task) {
    return task == "theirs" ? TaskPlace::kElsewhere : TaskPlace::kNowhere;
  };
  RecentWork recent;
  FlightQueue queue({});
  queue.Push(FlightOf("theirs"));
  CHECK(queue.TakeNow(&recent, {"ours"}, place_of, absl::Seconds(10)) == nullptr);
  CHECK(queue.size() == 1);
  queue.Push(FlightOf("ours"));
  CHECK(queue.TakeNow(&recent, {"ours"}, place_of, absl::Seconds(10))->prepared->task_key == "ours");
  CHECK(queue.TakeNow(&recent, {"ours"}, place_of)->prepared->task_key == "theirs");
}

TEST_CASE("a task that waits for another device is none for this one") {
  FlightQueue queue({});
  queue.Push(FlightOf("a", "", v1::DEVICE_CUDA));
  CHECK_FALSE(queue.HasTask("a", v1::DEVICE_CPU));
  CHECK(queue.HasTask("a", v1::DEVICE_CUDA));
  CHECK_FALSE(queue.NextTask({"b"}, v1::DEVICE_CPU).has_value());
  CHECK(queue.NextTask({"b"}, v1::DEVICE_CUDA)->reference_source == "reference of a");
}

TEST_CASE("closing wakes those who wait, and hands nothing out any more") {
  FlightQueue queue({});
  std::shared_ptr<Flight> taken = FlightOf("not yet");
  std::thread taker([&] {
    RecentWork recent;
    taken = queue.Take(&recent);
  });
  queue.Close();
  taker.join();
  CHECK(taken == nullptr);
  queue.Push(FlightOf("late"));
  RecentWork recent;
  CHECK(queue.Take(&recent) == nullptr);
}

TEST_CASE("what many push and some cancel, several takers get, each flight at most once") {
  constexpr int kNumFlights = 1200;
  constexpr int kNumTakers = 3;
  FlightQueue queue({});
  std::vector<std::shared_ptr<Flight>> flights;
  for (int i = 0; i < kNumFlights; ++i) {
    flights.push_back(FlightOf(std::to_string(i % 7), std::to_string(i)));
    flights.back()->priority = 1;
  }
  std::vector<std::atomic<int>> num_taken(kNumFlights);
  std::atomic<int> next{0}, num_pushing{3};
  const auto take = [&] {
    RecentWork recent;
    while (true) {
      const std::shared_ptr<Flight> flight = queue.Take(&recent);
      if (flight->prepared->source == "end") return;
      queue.Charge(*flight, absl::Milliseconds(1));
      queue.NextTask({recent.task_key}, v1::DEVICE_CPU);
      ++num_taken[std::stoul(flight->prepared->source)];
    }
  };
  const auto push = [&] {
    for (int i = next++; i < kNumFlights; i = next++) {
      queue.Push(flights[i]);
      if (i % 5 == 0) flights[i]->cancelled = true;
    }
    if (--num_pushing > 0) return;
    for (int i = 0; i < kNumTakers; ++i) queue.Push(FlightOf("end", "end"));  // of lower priority: taken last
  };
  RunTogether(3 + kNumTakers, [&](int thread) { return thread < kNumTakers ? take() : push(); });
  int num_wrong = 0;
  for (int i = 0; i < kNumFlights; ++i) {
    const int count = num_taken[i];
    num_wrong += count > 1 || (count == 0 && i % 5 != 0);
  }
  CHECK(num_wrong == 0);
  CHECK(queue.size() == 0);
}

}  // namespace
}  // namespace warpsmith
