// A token and its log-probability.
#ifndef WARPSMITH_CORE_BASE_TOKEN_LOG_PROB_H_
#define WARPSMITH_CORE_BASE_TOKEN_LOG_PROB_H_

#include <cstdint>

namespace warpsmith {

// Two words of four bytes, as a device writes them.
struct TokenLogProb {
  int32_t token_id = 0;
  float log_prob = 0;
};

// Of a C++ that has no comparisons by default, for devices.
constexpr bool operator==(const TokenLogProb& a, const TokenLogProb& b) {
  return a.token_id == b.token_id && a.log_prob == b.log_prob;
}

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_TOKEN_LOG_PROB_H_
