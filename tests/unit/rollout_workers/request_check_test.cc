#include "rollout_workers/request_check.h"

#include "rollout_workers/engine.h"
#include "tests/support/catch.h"

namespace warpsmith {
namespace {

v1::GenerateGroupsRequest Request() {
  v1::GenerateGroupsRequest request;
  request.set_request_id("r");
  request.set_num_samples(2);
  request.add_tasks()->set_id("a");
  request.mutable_sampling()->set_top_p(1);
  request.mutable_sampling()->set_answer_tokens_max(8);
  return request;
}

std::string Fault(const v1::GenerateGroupsRequest& request, GenerateLimits limits = {}) {
  return std::string(CheckRequest(request, limits).message());
}

}  // namespace

TEST_CASE("an engine takes a request as large as clients make them") {
  CHECK(EngineOptions().samples_max == kRequestSamplesMax);
}

TEST_CASE("a request is refused for the first field that is wrong, by name and value") {
  CHECK(CheckRequest(Request(), {}).ok());
  v1::GenerateGroupsRequest request = Request();
  request.set_request_id(std::string(129, 'r'));
  CHECK_THAT(Fault(request), Catch::Contains("request_id has 129 bytes"));
  request = Request();
  CHECK_THAT(Fault(request, {.tasks_max = 0}), Catch::Contains("1 tasks"));
  request.set_num_samples(300);
  CHECK_THAT(Fault(request), Catch::Contains("num_samples is 300"));
  request = Request();
  request.add_tasks()->set_id("a");
  CHECK_THAT(Fault(request), Catch::Contains("\"a\" is there twice"));
  request.mutable_tasks(1)->clear_id();
  CHECK_THAT(Fault(request), Catch::Contains("no id"));
  request = Request();
  request.mutable_sampling()->set_temperature(-1);
  CHECK_THAT(Fault(request), Catch::Contains("temperature"));
}

TEST_CASE("the digest covers every setting, and neither id nor tasks") {
  const std::string digest = SettingsDigest(Request());
  v1::GenerateGroupsRequest request = Request();
  request.set_request_id("other");
  request.add_tasks()->set_id("b");
  CHECK(SettingsDigest(request) == digest);
  const auto differs = [&](auto change) {
    v1::GenerateGroupsRequest changed = Request();
    change(changed);
    return SettingsDigest(changed) != digest;
  };
  CHECK(differs([](auto& r) { r.set_seed(1); }));
  CHECK(differs([](auto& r) { r.set_num_samples(3); }));
  CHECK(differs([](auto& r) { r.set_policy_version(1); }));
  CHECK(differs([](auto& r) { r.set_formula("kevin-v1"); }));
  CHECK(differs([](auto& r) { r.mutable_sampling()->set_top_k(5); }));
  CHECK(differs([](auto& r) { r.mutable_sampling()->set_min_p(0.1); }));
}

}  // namespace warpsmith
