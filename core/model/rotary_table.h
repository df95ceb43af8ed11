// Cosines and sines of rotary position embeddings.
#ifndef WARPSMITH_CORE_MODEL_ROTARY_TABLE_H_
#define WARPSMITH_CORE_MODEL_ROTARY_TABLE_H_

#include <cstdint>
#include <vector>

#include "core/model/rope_scaling.h"

namespace warpsmith {

// Angle of position p and pair i: p * theta^(-2i / head_dim), scaled as rope_scaling.h says, worked out in T as
// transformers does it in float32. Cosines and sines are times attention_factor. Rows are added as positions are
// asked for; a row never changes.
template <typename T>
class RotaryTable {
 public:
  RotaryTable(int64_t head_dim, double theta, const RopeScaling& scaling = {});

  // Makes the rows [0, num_positions) available; invalidates pointers.
  void Reserve(int64_t num_positions);

  // [head_dim / 2] of a position below the reserved number.
  const T* cosine(int64_t position) const { return cosines_.data() + position * half_; }
  const T* sine(int64_t position) const { return sines_.data() + position * half_; }

 private:
  int64_t half_;
  T magnitude_;
  int64_t num_positions_ = 0;
  std::vector<T> frequencies_;
  std::vector<T> cosines_;
  std::vector<T> sines_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_ROTARY_TABLE_H_
