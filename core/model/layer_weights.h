// The weights of one decoder layer as the CPU kernels take them.
#ifndef WARPSMITH_CORE_MODEL_LAYER_WEIGHTS_H_
#define WARPSMITH_CORE_MODEL_LAYER_WEIGHTS_H_

#include <cstdint>
#include <vector>

#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"
#include "core/model/parameter_layout.h"

namespace warpsmith {

// Pointers into a flat layer buffer; T is const for weights. Matrices are [out, in] row-major. Null: the model has
// no such entry.
template <typename T>
struct LayerPointers {
  T* input_norm;
  T* qkv;
  T* qkv_bias;    // may be null
  T* query_norm;  // may be null
  T* key_norm;    // may be null
  T* output;
  T* post_norm;
  T* gate_up;
  T* down;
};

// Where the entries of decoder layers (all alike) lie in `flat`.
template <typename T>
LayerPointers<T> BindLayer(const ParameterLayout& layout, T* flat) {
  const auto at = [&](const char* name) -> T* {
    const ParameterEntry* const entry = layout.FindEntry(layout.layer_buffer(0), name);
    return entry == nullptr ? nullptr : flat + entry->offset;
  };
  return {at("input_norm"), at("qkv"),       at("qkv_bias"), at("query_norm"), at("key_norm"),
          at("output"),     at("post_norm"), at("gate_up"),  at("down")};
}

// A matrix [rows, depth], transposed into panels of 64 columns for products x W^T.
template <typename T>
class PackedMatrix {
 public:
  // Packs anew; keeps its memory. `matrix` is row-major and dense.
  void Pack(const T* matrix, int64_t rows, int64_t depth, ThreadPool* pool);

  int64_t rows() const { return rows_; }
  int64_t depth() const { return depth_; }

  // y[r] = W x[r], or y[r] += W x[r] (the product rounded first) for `num_rows` rows.
  void Apply(const T* x, int64_t x_stride, int64_t num_rows, T* y, int64_t y_stride, ProductMode mode) const;

 private:
  int64_t rows_ = 0;
  int64_t depth_ = 0;
  std::vector<T> panels_;
};

// One layer's matrices packed, its norms by pointer.
template <typename T>
struct PackedLayer {
  LayerPointers<const T> weights;
  PackedMatrix<T> qkv, output, gate_up, down;

  // `flat` must outlive the use of `weights`.
  void Pack(const ParameterLayout& layout, const T* flat, ThreadPool* pool);

  // qkv[r] = W x[r] (+ bias) for `num_rows` dense rows; training and decoding give the same bits by sharing it.
  void ApplyQkv(const T* x, int64_t num_rows, T* y) const;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_MODEL_LAYER_WEIGHTS_H_
