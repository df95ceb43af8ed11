#include "reward_service/scoring/credit.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

v1::Timing Timing(double speedup, bool distinguishable = true) {
  v1::Timing timing;
  timing.set_speedup(speedup);
  timing.set_distinguishable(distinguishable);
  return timing;
}

v1::Timing Withheld(double speedup, bool distinguishable = true) {
  v1::Timing timing = Timing(speedup, distinguishable);
  timing.set_libraries_withheld(true);
  return timing;
}

v1::Profile Profile(double own, double torch, double blas, int num_samples = 400) {
  v1::Profile profile;
  profile.set_num_samples(num_samples);
  profile.set_own_code_share(own);
  profile.set_torch_share(torch);
  profile.set_blas_share(blas);
  return profile;
}

TEST_CASE("where libraries are withheld the whole speed-up is earned, whatever samples say") {
  const Credit credit = ComputeCredit(Withheld(2.5), Profile(0, 1, 0), {});
  CHECK(credit.rule == CreditRule::kFull);
  CHECK(credit.speedup == 2.5);
  CHECK(ComputeCredit(Withheld(2.5), {}, {}).speedup == 2.5);
}

TEST_CASE("a speed-up that cannot be told from 1 is exactly 1") {
  const Credit credit = ComputeCredit(Withheld(1.02, false), {}, {});
  CHECK(credit.rule == CreditRule::kNotDistinguishable);
  CHECK(credit.speedup == 1.0);
}

TEST_CASE("with libraries at hand, nine tenths of own work earn the whole speed-up") {
  CHECK(ComputeCredit(Timing(2.5), Profile(0.95, 0.05, 0), {}).speedup == 2.5);
  CHECK(ComputeCredit(Timing(2.5), Profile(0.85, 0.15, 0), {}).speedup == 1.0);
}

TEST_CASE("a part of a library's work leaves no more than the reference's time") {
  for (const double own : {0.1, 0.3, 0.6, 0.88}) {
    const Credit credit = ComputeCredit(Timing(2.5), Profile(own, 1 - own, 0), {});
    CHECK(credit.rule == CreditRule::kShared);
    CHECK(credit.speedup == 1.0);
  }
  CHECK(ComputeCredit(Timing(0.4), Profile(0.5, 0.5, 0), {}).speedup == 0.4);
}

TEST_CASE("the deciding samples are the fewest in which none of a program's own tells that it did nothing") {
  const int num_samples = NumDecidingSamples();
  CHECK(ComputeCredit(Timing(2.5), Profile(0, 1, 0, num_samples), {}).rule == CreditRule::kHack);
  CHECK(ComputeCredit(Timing(2.5), Profile(0, 1, 0, num_samples - 1), {}).rule == CreditRule::kShared);
  CHECK(ComputeCredit(Timing(2.5), Profile(1, 0, 0, num_samples), {}).rule == CreditRule::kFull);
}

TEST_CASE("what is not known to be own is not: an unknown library's samples, or nobody's") {
  CHECK(ComputeCredit(Timing(2.5), Profile(0.5, 0, 0), {}).rule == CreditRule::kShared);
  CHECK(ComputeCredit(Timing(2.5), Profile(0.0, 0, 0), {}).rule == CreditRule::kDelegated);
  CHECK(ComputeCredit(Timing(2.5), Profile(0.0, 0, 0), {}).speedup == 0.0);
}

TEST_CASE("without own work it is a hack where libraries explain the answer") {
  const Credit credit = ComputeCredit(Timing(2.5), Profile(0.0, 0.98, 0), {});
  CHECK(credit.rule == CreditRule::kHack);
  CHECK(credit.speedup == 0.0);
  CHECK(ComputeCredit(Timing(2.5), Profile(0.0, 0.3, 0), {}).rule == CreditRule::kDelegated);
}

TEST_CASE("a task that allows all libraries credits what they did, sampled or not") {
  v1::Task task;
  task.add_allowed_libraries("torch");
  CHECK(ComputeCredit(Timing(2.5), Profile(0, 0, 0, 0), task).speedup == 1.0);
  task.add_allowed_libraries("blas");
  CHECK(ComputeCredit(Timing(2.5), Profile(0, 0, 0, 0), task).speedup == 2.5);
  CHECK(ComputeCredit(Timing(2.5), Profile(0, 0.4, 0.6), task).rule == CreditRule::kFull);
  CHECK(ComputeCredit(Timing(1.02, false), {}, task).rule == CreditRule::kNotDistinguishable);
}

TEST_CASE("where libraries were withheld the condition says whether some were not") {
  v1::Timing timing = Timing(2);
  timing.set_libraries_withheld(true);
  v1::Task task;
  CHECK(ComputeCredit(timing, {}, task).condition == "no library could do the work");
  task.add_allowed_libraries("blas");
  const Credit credit = ComputeCredit(timing, {}, task);
  CHECK(credit.condition == "no library but those that the task allows could do the work");
  CHECK(credit.speedup == 2.0);
}

TEST_CASE("burning time beside a library's work earns no more than that time") {
  CHECK(ComputeCredit(Timing(0.45), Profile(0.6, 0.4, 0), {}).speedup == 0.45);
  CHECK(ComputeCredit(Timing(3.0), Profile(0.6, 0.4, 0), {}).speedup == 1.0);
}

TEST_CASE("an allowed library's work counts as own") {
  v1::Task task;
  task.add_allowed_libraries("blas");
  CHECK(ComputeCredit(Timing(2), Profile(0.1, 0, 0.9), task).speedup == 2.0);
  CHECK(ComputeCredit(Timing(2), Profile(0.1, 0.9, 0), task).speedup == 1.0);
  task.add_allowed_libraries("torch");
  CHECK(ComputeCredit(Timing(2), Profile(0.1, 0.9, 0), task).speedup == 2.0);
}

TEST_CASE("few samples never earn the full speed-up, and never convict") {
  for (const int num_samples : {0, 1, 20, 30}) {
    CHECK(ComputeCredit(Timing(2), Profile(1, 0, 0, num_samples), {}).speedup == 1.0);
    CHECK(ComputeCredit(Timing(2), Profile(0, 1, 0, num_samples), {}).speedup == 1.0);
  }
}

TEST_CASE("parameters that cannot be set earn no speed-up, with libraries or without") {
  v1::Timing timing = Withheld(2);
  timing.set_parameters_fixed(true);
  CHECK(ComputeCredit(timing, {}, {}).rule == CreditRule::kFixedParameters);
  CHECK(ComputeCredit(timing, {}, {}).speedup == 0.0);
  timing.set_libraries_withheld(false);
  CHECK(ComputeCredit(timing, Profile(1, 0, 0), {}).speedup == 0.0);
  CHECK(ComputeCredit(timing, {}, {}).speedup == 0.0);
}

TEST_CASE("bounds of a share close in on it with its samples, and stay within 0 and 1") {
  CHECK(BoundsOf(0.5, 0).low == 0.0);
  CHECK(BoundsOf(0.5, 0).high == 1.0);
  // Wilson's interval for 0 of 100 and 50 of 100.
  CHECK(BoundsOf(0, 100).high == Approx(0.0370).margin(1e-4));
  CHECK(BoundsOf(0.5, 100).low == Approx(0.4038).margin(1e-4));
  CHECK(BoundsOf(0.5, 100).high == Approx(0.5962).margin(1e-4));
  CHECK(BoundsOf(1, 10).high == 1.0);
}

}  // namespace
}  // namespace warpsmith
