#include "reward_service/server/reception.h"

#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "core/rpc/status.h"
#include "tests/support/catch.h"
#include "tests/support/reception_fixture.h"

namespace warpsmith {
namespace {

TEST_CASE("ids of two tenants have nothing to do with each other") {
  ReceptionFixture served(8);
  const auto tenant = [](const std::string& name) { return std::make_shared<const Tenant>(Tenant{name, 4}); };
  const auto grade = [&](const std::string& name, const std::string& source) {
    absl::StatusOr<v1::Grade> result;
    absl::Notification done;
    served.reception->Submit(tenant(name), NativeRequest("same", source), [&](absl::StatusOr<v1::Grade> got) {
      result = std::move(got);
      done.Notify();
    });
    done.WaitForNotification();
    return result;
  };
  REQUIRE(grade("lab", "int first;").ok());
  CHECK(grade("farm", "int second;").ok());
  CHECK(absl::IsInvalidArgument(grade("lab", "int second;").status()));
}

TEST_CASE("a tenant with its part of the queue full is refused, another is not") {
  ReceptionFixture served(8);
  absl::Notification go;
  served.script.judge = [&](const JudgeRequest&) {
    go.WaitForNotification();
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  const auto lab = std::make_shared<const Tenant>(Tenant{"lab", 2});
  const auto farm = std::make_shared<const Tenant>(Tenant{"farm", 2});
  const auto submit = [&](const std::shared_ptr<const Tenant>& tenant, int i) {
    const auto at_once = std::make_shared<absl::Status>();
    served.reception->Submit(
        tenant, NativeRequest("r" + std::to_string(i), "int run" + std::to_string(i) + ";"),
        [at_once](const absl::StatusOr<v1::Grade>& grade) { *at_once = grade.status(); });
    return *at_once;
  };
  CHECK(submit(lab, 1).ok());
  CHECK(submit(lab, 2).ok());
  const absl::Status third = submit(lab, 3);
  CHECK(absl::IsResourceExhausted(third));
  CHECK_THAT(std::string(third.message()), Catch::Contains("tenant lab has 2 requests waiting"));
  CHECK(GetRetryDelay(third).has_value());
  CHECK(submit(farm, 4).ok());
  go.Notify();
  served.grader->Drain(absl::Seconds(20));
}

TEST_CASE("a request that cannot be graded as it stands is refused before it waits, and counted") {
  ReceptionFixture served;
  absl::Status status;
  const uint64_t ticket =
      served.reception->Submit(*served.reception->Identify({}), v1::GradeRequest(),
                               [&](const absl::StatusOr<v1::Grade>& grade) { status = grade.status(); });
  CHECK(ticket == 0);
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(served.reception->MetricsText(),
             Catch::Contains("errors_total{status=\"INVALID_ARGUMENT\",tenant=\"default\"} 1"));
}

}  // namespace
}  // namespace warpsmith
