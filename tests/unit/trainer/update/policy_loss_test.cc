#include "trainer/update/policy_loss.h"

#include <cmath>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

// A token with ratio `ratio` to the old policy, which is the worker's.
TokenTerms TokenWith(double ratio, double advantage) {
  return {.log_prob = std::log(ratio) - 2, .old_log_prob = -2, .worker_log_prob = -2, .advantage = advantage};
}

struct Outcome {
  double loss;
  double gradient;
  PolicyLossSums sums;
};

Outcome Evaluate(const TokenTerms& token, const PolicyLossOptions& options = {}, int64_t num_tokens = 1) {
  PolicyLossSums sums;
  const double gradient = AddToken(token, options, num_tokens, sums);
  return {sums.loss, gradient, sums};
}

}  // namespace

TEST_CASE("on policy the gradient is minus the advantage over the global token count") {
  const Outcome outcome = Evaluate(TokenWith(1.0, 1.5), {}, 10);
  CHECK(outcome.loss == Approx(-0.15));
  CHECK(outcome.gradient == Approx(-0.15));
  CHECK(outcome.sums.num_clipped == 0);
}

TEST_CASE("clipping is higher above than below, and only where the surrogate would grow") {
  // Positive advantage: clipped above 1.28, never below.
  CHECK(Evaluate(TokenWith(1.27, 1)).gradient == Approx(-1.27));
  CHECK(Evaluate(TokenWith(1.29, 1)).gradient == 0.0);
  CHECK(Evaluate(TokenWith(1.29, 1)).loss == Approx(-1.28));
  CHECK(Evaluate(TokenWith(0.5, 1)).gradient == Approx(-0.5));
  // Negative advantage: clipped below 0.8, never above.
  CHECK(Evaluate(TokenWith(0.81, -1)).gradient == Approx(0.81));
  CHECK(Evaluate(TokenWith(0.79, -1)).gradient == 0.0);
  CHECK(Evaluate(TokenWith(0.79, -1)).loss == Approx(0.8));
  CHECK(Evaluate(TokenWith(2.0, -1)).gradient == Approx(2.0));
  CHECK(Evaluate(TokenWith(0.79, -1)).sums.num_clipped == 1);
}

TEST_CASE("the weight between worker and trainer is truncated at 2 and not below") {
  TokenTerms token = TokenWith(1.0, 1.0);
  token.worker_log_prob = token.old_log_prob - std::log(3.0);
  CHECK(Evaluate(token).gradient == Approx(-2.0));
  CHECK(Evaluate(token).sums.num_truncated == 1);
  token.worker_log_prob = token.old_log_prob + std::log(4.0);
  CHECK(Evaluate(token).gradient == Approx(-0.25));
  CHECK(Evaluate(token).sums.worker_difference_max == Approx(std::log(4.0)));
}

TEST_CASE("the difference of worker and trainer is summed, and 99 of 100 tokens are below its p99") {
  PolicyLossSums sums, none;
  CHECK(std::isnan(none.WorkerDifferenceP99()));
  for (int i = 1; i <= 200; ++i) {
    TokenTerms token = TokenWith(1.0, 1.0);
    token.worker_log_prob = token.old_log_prob - (i == 7 ? 0.0 : 1e-3 * i);
    PolicyLossSums part;
    AddToken(token, {}, 200, part);
    sums.Add(part);
  }
  CHECK(sums.worker_difference == Approx(1e-3 * (200 * 201 / 2 - 7)));
  CHECK(sums.worker_difference_max == Approx(0.2));
  CHECK(sums.WorkerDifferenceP99() >= 0.198);
  CHECK(sums.WorkerDifferenceP99() <= sums.worker_difference_max);
  for (int i = 0; i < 10; ++i) {
    TokenTerms token = TokenWith(1.0, 1.0);
    token.worker_log_prob -= 30.0;  // beyond the last bin
    AddToken(token, {}, 1, sums);
  }
  CHECK(sums.WorkerDifferenceP99() == sums.worker_difference_max);
}

TEST_CASE("the KL term is k3 and pulls towards the reference") {
  TokenTerms token = TokenWith(1.0, 0.0);
  token.reference_log_prob = token.log_prob + std::log(2.0);
  const Outcome outcome = Evaluate(token, {.kl_weight = 0.03});
  CHECK(outcome.loss == Approx(0.03 * (2 - std::log(2.0) - 1)));
  CHECK(outcome.gradient == Approx(0.03 * (1 - 2)));  // raising the log-prob lowers the loss
}

TEST_CASE("the gradient is the derivative of the loss") {
  const PolicyLossOptions options{.kl_weight = 0.1};
  for (const double advantage : {-1.3, 0.4, 2.0}) {
    for (const double ratio : {0.6, 0.9, 1.1, 1.5}) {
      TokenTerms token = TokenWith(ratio, advantage);
      token.worker_log_prob = -2.3;
      token.reference_log_prob = -1.8;
      const double gradient = Evaluate(token, options, 7).gradient;
      const double step = 1e-6;
      TokenTerms above = token, below = token;
      above.log_prob += step;
      below.log_prob -= step;
      const double slope = (Evaluate(above, options, 7).loss - Evaluate(below, options, 7).loss) / (2 * step);
      INFO("advantage " << advantage << " ratio " << ratio);
      CHECK(gradient == Approx(slope).epsilon(1e-6).margin(1e-9));
    }
  }
}

TEST_CASE("sums of parts are the sums of the whole") {
  PolicyLossSums whole, first, second;
  AddToken(TokenWith(1.1, 1), {}, 2, whole);
  AddToken(TokenWith(1.5, 1), {}, 2, whole);
  AddToken(TokenWith(1.1, 1), {}, 2, first);
  AddToken(TokenWith(1.5, 1), {}, 2, second);
  first.Add(second);
  CHECK(first.loss == Approx(whole.loss));
  CHECK(first.num_tokens == 2);
  CHECK(first.num_clipped == 1);
}

}  // namespace warpsmith
