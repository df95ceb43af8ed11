#include "core/kernels/adamw.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/kernels/kernel_set.h"

namespace warpsmith {
namespace {

constexpr int64_t kRangeSize = 16384;  // elements a task

int64_t NumRanges(int64_t size) { return (size + kRangeSize - 1) / kRangeSize; }
int64_t RangeSize(int64_t size, int64_t range) { return std::min(kRangeSize, size - range * kRangeSize); }

}  // namespace

AdamWRange ConstantsOf(const AdamWOptions& options) {
  const double correction1 = 1.0 - std::pow(options.beta1, options.step);
  const double correction2 = 1.0 - std::pow(options.beta2, options.step);
  AdamWRange range{};
  range.gradient_scale = options.gradient_scale;
  range.beta1 = options.beta1;
  range.beta2 = options.beta2;
  range.decay_factor = 1.0f - options.learning_rate * options.weight_decay;
  range.step_size = static_cast<float>(options.learning_rate / correction1);
  range.inverse_sqrt_correction2 = static_cast<float>(1.0 / std::sqrt(correction2));
  range.epsilon = options.epsilon;
  return range;
}

void AdamWStep(const AdamWOptions& options, int64_t size, const float* gradient, float* parameter,
               float* first_moment, float* second_moment, ThreadPool* pool) {
  const AdamWRange whole = ConstantsOf(options);
  ParallelFor(pool, NumRanges(size), [&](int64_t index, int) {
    AdamWRange range = whole;
    const int64_t offset = index * kRangeSize;
    range.size = RangeSize(size, index);
    range.gradient = gradient + offset;
    range.parameter = parameter + offset;
    range.first_moment = first_moment + offset;
    range.second_moment = second_moment + offset;
    Kernels<float>().adamw(range);
  });
}

double SumOfSquares(int64_t size, const float* values, ThreadPool* pool) {
  std::vector<double> sums(NumRanges(size));
  ParallelFor(pool, NumRanges(size), [&](int64_t index, int) {
    double lanes[8] = {};
    const float* range = values + index * kRangeSize;
    for (int64_t i = 0; i < RangeSize(size, index); ++i)
      lanes[i % 8] += static_cast<double>(range[i]) * range[i];
    for (double lane : lanes) sums[index] += lane;
  });
  double total = 0;
  for (double sum : sums) total += sum;
  return total;
}

}  // namespace warpsmith
