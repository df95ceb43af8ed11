#include "core/model/rotary_table.h"

#include <algorithm>
#include <cmath>

namespace warpsmith {

namespace {

constexpr double kTwoPi = 6.283185307179586;

// s of rope_scaling.h: 1 where turns are fast, and angles stay as they are.
template <typename T>
T Llama3Share(T frequency, const RopeScaling& scaling) {
  const T wavelength = T(1) / frequency * static_cast<T>(kTwoPi);
  const T turns = T(1) / wavelength * static_cast<T>(scaling.original_max_position_embeddings);
  const T low = static_cast<T>(scaling.low_freq_factor);
  return std::clamp((turns - low) / static_cast<T>(scaling.high_freq_factor - scaling.low_freq_factor), T(0),
                    T(1));
}

// 1 - r of rope_scaling.h, for pair `i`.
template <typename T>
T YarnShare(int64_t i, const YarnRamp& ramp) {
  const T rise = (static_cast<T>(i) - static_cast<T>(ramp.first)) / static_cast<T>(ramp.last - ramp.first);
  return T(1) - std::clamp(rise, T(0), T(1));
}

// Of 1 / `wavelength`, the angle of pair `i` a position, in the order in which transformers rounds.
template <typename T>
T ScaledFrequency(T wavelength, int64_t i, const YarnRamp& ramp, const RopeScaling& scaling) {
  const T frequency = T(1) / wavelength, factor = static_cast<T>(scaling.factor);
  switch (scaling.type) {
    case RopeType::kDefault:
      return frequency;
    case RopeType::kLinear:
      return frequency / factor;
    case RopeType::kLlama3: {
      const T kept = Llama3Share(frequency, scaling);
      return (T(1) - kept) * frequency / factor + kept * frequency;
    }
    case RopeType::kYarn: {
      const T kept = YarnShare<T>(i, ramp);
      return T(1) / (factor * wavelength) * (T(1) - kept) + frequency * kept;
    }
  }
  return frequency;
}

}  // namespace

template <typename T>
RotaryTable<T>::RotaryTable(int64_t head_dim, double theta, const RopeScaling& scaling)
    : half_(head_dim / 2), magnitude_(static_cast<T>(scaling.attention_factor)) {
  const YarnRamp ramp = scaling.type == RopeType::kYarn ? YarnRampOf(scaling, head_dim, theta) : YarnRamp{};
  for (int64_t i = 0; i < half_; ++i) {
    const T exponent = static_cast<T>(2 * i) / static_cast<T>(head_dim);
    frequencies_.push_back(ScaledFrequency(std::pow(static_cast<T>(theta), exponent), i, ramp, scaling));
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
      cosines_[p * half_ + i] = std::cos(angle) * magnitude_;
      sines_[p * half_ + i] = std::sin(angle) * magnitude_;
    }
  }
  num_positions_ = num_positions;
}

template class RotaryTable<float>;
template class RotaryTable<double>;

}  // namespace warpsmith
