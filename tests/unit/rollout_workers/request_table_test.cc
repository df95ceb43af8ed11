#include "rollout_workers/request_table.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::shared_ptr<HeldRequest> Held(const std::string& id, size_t formula_bytes = 0) {
  v1::GenerateGroupsRequest request;
  request.set_request_id(id);
  request.set_formula(std::string(formula_bytes, 'f'));
  return std::make_shared<HeldRequest>(GroupAssembly(request, {}));
}

}  // namespace

TEST_CASE("idle requests beyond the limit are forgotten, the longest unused first") {
  RequestTable table({.num_idle_max = 2});
  for (const char* const id : {"a", "b"}) table.Insert(Held(id));
  CHECK(table.Find("a") != nullptr);
  table.Insert(Held("c"));
  CHECK(table.Find("b") == nullptr);
  CHECK(table.Find("a") != nullptr);
  CHECK(table.Find("c") != nullptr);
}

TEST_CASE("requests that run or are read are never forgotten") {
  RequestTable table({.num_idle_max = 0});
  const auto running = Held("running");
  running->job_id = 4;
  const auto read = Held("read");
  read->readers.emplace_back([] {});
  table.Insert(running);
  table.Insert(read);
  table.Insert(Held("idle"));
  CHECK(table.FindJob(4) == running);
  CHECK(table.Find("read") == read);
  CHECK(table.Find("idle") == nullptr);
  CHECK(table.num_running() == 1);
}

TEST_CASE("idle requests are bounded by their bytes") {
  RequestTable table({.num_idle_max = 100, .idle_bytes_max = 2500});
  for (const char* const id : {"a", "b", "c"}) table.Insert(Held(id, 1000));
  CHECK(table.Find("a") == nullptr);
  CHECK(table.Find("c") != nullptr);
}

TEST_CASE("a job that has ended is not found by its id") {
  RequestTable table({});
  const auto request = Held("a");
  table.Insert(request);
  CHECK(table.FindJob(0) == nullptr);
  table.Erase("a");
  CHECK(table.Find("a") == nullptr);
}

}  // namespace warpsmith
