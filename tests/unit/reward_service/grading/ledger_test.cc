#include "reward_service/grading/ledger.h"

#include <memory>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("a recorded grade is counted and can be looked at") {
  PreparedRequest prepared;
  prepared.tenant = std::make_shared<const Tenant>(Tenant{"lab"});
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_NON_FINITE);
  Ledger ledger(int64_t{1} << 20);
  ledger.Record(std::make_shared<const PreparedRequest>(prepared), grade);
  CHECK(ledger.recent().List({.tenant = "lab"}).size() == 1);
  CHECK_THAT(ledger.metrics().Text({}), Catch::Contains("tenant=\"lab\",verdict=\"VERDICT_NON_FINITE\"} 1"));
}

}  // namespace
}  // namespace warpsmith
