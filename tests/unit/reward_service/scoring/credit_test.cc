#include "reward_service/scoring/credit.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// Sets what the referee knows of the room where a program was right.
v1::Timing Withheld(double speedup) {
  v1::Timing timing;
  timing.set_speedup(speedup);
  timing.set_speedup_low(0.95 * speedup);
  timing.set_distinguishable(true);
  timing.set_libraries_withheld(true);
  return timing;
}

v1::Timing WithProducts(double speedup, double product_share) {
  v1::Timing timing = Withheld(speedup);
  timing.set_libraries_withheld(false);
  timing.set_products_alone(true);
  timing.set_library_share(product_share);
  return timing;
}

v1::Timing WithAll(double speedup) {
  v1::Timing timing = Withheld(speedup);
  timing.set_libraries_withheld(false);
  timing.set_library_share(1);
  return timing;
}

v1::Task Allowing(const std::vector<std::string>& libraries) {
  v1::Task task;
  for (const std::string& library : libraries) task.add_allowed_libraries(library);
  return task;
}

void CheckAllOwn(const v1::Credit& credit, const v1::Timing& timing, const std::string& condition) {
  CHECK(credit.library_share() == 0);
  CHECK(credit.speedup() == timing.speedup());
  CHECK(credit.own() == timing.speedup());
  CHECK(credit.condition() == condition);
  CHECK(IsAllOwn(credit, timing));
}

TEST_CASE("where libraries are withheld the whole speed-up is earned") {
  CheckAllOwn(ComputeCredit(Withheld(2.5), {}), Withheld(2.5), "no library could do the work");
}

TEST_CASE("where only products ran, their share of the reference's time earns what the program saves") {
  const v1::Timing timing = WithProducts(2, 0.4);
  const v1::Credit credit = ComputeCredit(timing, {});
  CHECK(credit.library_share() == 0.4);
  CHECK(credit.own() == 2);
  CHECK(credit.saved() == Approx(1 - 1 / 1.9));
  CHECK(credit.speedup() == Approx(0.6 * 2 + 0.4 * (1 - 1 / 1.9)));
  CHECK(credit.condition() == "libraries could do products and convolutions, 40 % of the reference's time");
  CHECK_FALSE(IsAllOwn(credit, timing));
}

TEST_CASE("where all libraries ran, a program earns the part of the reference's time that it saves") {
  const v1::Credit credit = ComputeCredit(WithAll(2), {});
  CHECK(credit.library_share() == 1);
  CHECK(credit.speedup() == Approx(1 - 1 / 1.9));
  CHECK(credit.condition() == "libraries could do all of the work");
  CHECK_FALSE(IsAllOwn(credit, WithAll(2)));
}

TEST_CASE("nothing is saved unless the lower bound of the speed-up is above 1") {
  for (const double speedup : {0.2, 0.9, 1.0, 1.05}) {
    const v1::Credit credit = ComputeCredit(WithAll(speedup), {});
    CHECK(credit.saved() == 0);
    CHECK(credit.speedup() == 0);
  }
  CHECK(ComputeCredit(WithAll(1.06), {}).saved() > 0);
  CHECK(ComputeCredit({}, {}).saved() == 0);  // no bound at all
}

TEST_CASE("a task that allows products counts them as own, and no other library") {
  const v1::Task task = Allowing({"blas"});
  const char* condition = "no library but those that the task allows could do the work";
  CheckAllOwn(ComputeCredit(WithProducts(2, 0.4), task), WithProducts(2, 0.4), condition);
  CheckAllOwn(ComputeCredit(Withheld(2), task), Withheld(2), condition);
  CHECK(ComputeCredit(WithAll(2), task).library_share() == 1);
}

TEST_CASE("a task that allows torch counts all libraries as own, also alone") {
  for (const v1::Task& task : {Allowing({"torch"}), Allowing({"blas", "torch"})}) {
    for (const v1::Timing& timing : {Withheld(2), WithProducts(2, 0.4), WithAll(2)}) {
      CheckAllOwn(ComputeCredit(timing, task), timing, "the task allows all libraries");
    }
  }
}

TEST_CASE(
    "a speed-up that cannot be told from 1 counts as 1 at most: a wide interval lifts no slow program") {
  const auto credited = [](double speedup) {
    v1::Timing timing = Withheld(speedup);
    timing.set_distinguishable(false);
    return ComputeCredit(timing, {}).speedup();
  };
  CHECK(credited(1.02) == 1);
  CHECK(credited(1) == 1);
  CHECK(credited(0.6) == 0.6);
}

TEST_CASE("parameters that cannot be set earn no speed-up, with libraries or without") {
  for (v1::Timing timing : {Withheld(2), WithProducts(2, 0.4), WithAll(2)}) {
    timing.set_parameters_fixed(true);
    const v1::Credit credit = ComputeCredit(timing, {});
    CHECK(credit.own() == 0);
    CHECK(credit.saved() == 0);
    CHECK(credit.speedup() == 0);
    CHECK(credit.library_share() == timing.library_share());
    CHECK(credit.condition().ends_with(", parameters cannot be set after construction"));
    CHECK_FALSE(IsAllOwn(credit, timing));
  }
}

TEST_CASE(
    "libraries earn less than the speed-up, the less the more they could do, and a faster program more") {
  for (const double share : {0.1, 0.4, 0.7, 0.95, 1.0}) {
    double former = -1;
    for (double speedup = 1.1; speedup < 10; speedup *= 1.2) {
      INFO(share << " " << speedup);
      const double credited = ComputeCredit(WithProducts(speedup, share), {}).speedup();
      CHECK(credited < speedup);
      CHECK(credited < ComputeCredit(WithProducts(speedup, share - 0.1), {}).speedup());
      CHECK(credited > former);
      former = credited;
    }
  }
}

}  // namespace
}  // namespace warpsmith
