#include "core/distributed/flight_recorder.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("the flight recorder keeps the last records in order and forgets the first") {
  FlightRecorder recorder(2);
  for (const char* name : {"a", "b", "c"})
    recorder.End(recorder.Begin("all_reduce", name, "update", 8).sequence, false);
  const auto records = recorder.Records();
  REQUIRE(records.size() == 2);
  CHECK(records[0].name == "b");
  CHECK(records[1].name == "c");
  CHECK(records[1].sequence == 2);
}

TEST_CASE("the report of a hang shows the running collective last") {
  FlightRecorder recorder(8);
  recorder.End(recorder.Begin("broadcast", "batch", "collect", 100).sequence, false);
  recorder.Begin("all_reduce", "gradient", "update", 4096);
  const std::string report = recorder.Report();
  const size_t running = report.find("all_reduce \"gradient\" (#1, phase update, 4096 bytes): running for ");
  REQUIRE(running != std::string::npos);
  CHECK(report.find("broadcast \"batch\"") < running);
}

TEST_CASE("the end of a record that was overwritten is ignored") {
  FlightRecorder recorder(1);
  const int64_t first = recorder.Begin("barrier", "x", "p", 0).sequence;
  recorder.Begin("barrier", "y", "p", 0);
  recorder.End(first, true);
  CHECK_FALSE(recorder.Records().front().failed);
}

}  // namespace warpsmith
