#include "core/model/rotary_table.h"

#include <algorithm>
#include <cmath>

namespace warpsmith {

template <typename T>
RotaryTable<T>::RotaryTable(int64_t head_dim, double theta) : half_(head_dim / 2) {
  for (int64_t i = 0; i < half_; ++i) {
    const T exponent = static_cast<T>(2 * i) / static_cast<T>(head_dim);
    frequencies_.push_back(T(1) / std::pow(static_cast<T>(theta), exponent));
  }
}

template <typename T>
void RotaryTable<T>::Reserve(int64_t num_positions) {
  if (num_positions <= num_positions_) return;
  num_positions = std::max(num_positions, 2 * num_positions_);
  cosines_.resize(num_positions * half_);
  sines_.resize(num_positions * half_);
  for (int64_t p = num_positions_; p < num_positions; ++p) {
    for (int64_t i = 0; i < half_; ++i) {
      const T angle = static_cast<T>(p) * frequencies_[i];
      cosines_[p * half_ + i] = std::cos(angle);
      sines_[p * half_ + i] = std::sin(angle);
    }
  }
  num_positions_ = num_positions;
}

template class RotaryTable<float>;
template class RotaryTable<double>;

}  // namespace warpsmith
