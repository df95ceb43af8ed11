// Whether outputs are right: element by element, in the referee's own code, on bytes that a jail cannot
// reach.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_COMPARISON_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_COMPARISON_H_

#include <cstdint>
#include <string>

#include "reward_service/referee/tensors/tensor_layout.h"

namespace warpsmith {

// An element c is right for e when |c - e| <= absolute + relative |e - centre| + rounding |e|; integers and
// booleans when they are equal. The oracle chooses the numbers; oracle/tolerance.py says how.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
  double rounding = 0;
  double centre = 0;
  double spread = 1;
};

struct Comparison {
  int64_t num_elements = 0;
  int64_t num_wrong = 0;
  int64_t num_non_finite = 0;     // NaN or infinity where the reference has none; counted as wrong, too
  int64_t num_unwritten = 0;      // still with the poison; counted as wrong, too
  double max_absolute_error = 0;  // over finite elements
  std::string first_difference;   // "[3, 17]: 0.25, expected 0.5"; empty when all are right

  bool right() const { return num_wrong == 0; }
};

// What unwritten memory is filled with: a NaN in every floating-point dtype.
constexpr unsigned char kPoisonByte = 0xFF;

// The byte with which an output is filled before a call. All bits of an integer would be -1, which may be the answer: a
// program that leaves such elements unwritten would be right. So integers have another byte, by lot for each call, and
// four of it are no small number.
unsigned char PoisonByteOf(const TensorSpec& spec, uint64_t lot);

// Compares one dense output. Both pointers are to spec.num_bytes bytes.
Comparison Compare(const TensorSpec& spec, const Tolerance& tolerance, const void* expected,
                   const void* actual);

// "[3, 17]: 0.25, expected 0.5": of the element of this number, to which both pointers are.
std::string DescribeDifference(const TensorSpec& spec, int64_t index, const void* expected,
                               const void* actual);

// True when every element is right: the fast way, for timed calls.
bool AllRight(const TensorSpec& spec, const Tolerance& tolerance, const void* expected, const void* actual);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_COMPARISON_H_
