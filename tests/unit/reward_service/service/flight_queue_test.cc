#include "reward_service/service/flight_queue.h"

#include <string>
#include <thread>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::shared_ptr<Flight> FlightOf(const std::string& task, const std::string& source = "") {
  PreparedRequest prepared;
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
  CHECK(recent.run_length == 2);
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

TEST_CASE("the next task is another one than the present") {
  FlightQueue queue({});
  CHECK_FALSE(queue.NextTask("a").has_value());
  queue.Push(FlightOf("a"));
  CHECK_FALSE(queue.NextTask("a").has_value());
  queue.Push(FlightOf("b"));
  REQUIRE(queue.NextTask("a").has_value());
  CHECK(queue.NextTask("a")->reference_source == "reference of b");
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

}  // namespace
}  // namespace warpsmith
