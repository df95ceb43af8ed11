// Whether outputs are right: element by element, in the referee's own code, on bytes that a jail cannot
// reach.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_COMPARISON_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_COMPARISON_H_

#include <cstdint>
#include <string>

#include "reward_service/referee/tensors/tensor_layout.h"

namespace warpsmith {

// An element's margin is absolute + relative |e|, or its own: a word whose upper half is the margin as bfloat16, and
// whose lower half says, in units of kResidual of the margin, what e has beyond the expected element. Elements that are
// off by more than `reach` margins are outliers: at most `outliers_max` may be, none by more than `outlier_error_max`.
// The mean of min(1, error / margin)^2 is at most `bulk_max`, over elements whose word has no sign. Numbers that are
// not finite are outliers beyond any error. The oracle chooses all this; oracle/tolerance.py says how.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
  double spread = 1;
  double reach = 1;
  int64_t outliers_max = 0;
  double outlier_error_max = 1e300;
  double bulk_max = 1;
  bool has_margins = false;
};

inline constexpr double kResidual = 0x1p-18;

// Holds an expected output: num_bytes of its TensorSpec, and a word an element; null without margins.
struct ExpectedBytes {
  const void* elements = nullptr;
  const uint32_t* margins = nullptr;
};

struct Comparison {
  int64_t num_elements = 0;
  int64_t num_wrong = 0;          // outliers; where they may be, those that make the mean too large
  int64_t num_non_finite = 0;     // NaN or infinity where the reference has none; counted as wrong, too
  int64_t num_unwritten = 0;      // still with the poison; counted as wrong, too
  double max_absolute_error = 0;  // over finite elements
  int64_t first_outlier = -1;     // its number; there may be some in what is right
  std::string first_difference;   // "[3, 17]: 0.25, expected 0.5"; empty when all are right

  bool right() const { return num_wrong == 0; }
};

// What unwritten memory is filled with: a NaN in every floating-point dtype.
constexpr unsigned char kPoisonByte = 0xFF;

// The byte with which an output is filled before a call. All bits of an integer would be -1, which may be the answer: a
// program that leaves such elements unwritten would be right. So integers have another byte, by lot for each call, and
// four of it are no small number.
unsigned char PoisonByteOf(const TensorSpec& spec, uint64_t lot);

// Compares one dense output with `actual`, spec.num_bytes bytes.
Comparison Compare(const TensorSpec& spec, const Tolerance& tolerance, const ExpectedBytes& expected,
                   const void* actual);

// Returns whether these are too many outliers, or too large ones, or the mean of so many squares is too large.
bool IsWrong(const Tolerance& tolerance, int64_t num_outliers, double outlier_error, double squares,
             int64_t num_squares);

// Returns "[3, 17]: 0.25, expected 0.5" for the element of this number, to which both pointers are.
std::string DescribeDifference(const TensorSpec& spec, int64_t index, const void* expected,
                               const void* actual);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_TENSORS_COMPARISON_H_
