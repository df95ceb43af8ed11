#include "core/model/layer_weights.h"

#include <algorithm>

namespace warpsmith {

template <typename T>
void PackedMatrix<T>::Pack(const T* matrix, int64_t rows, int64_t depth, ThreadPool* pool) {
  rows_ = rows;
  depth_ = depth;
  panels_.resize(RoundUp(rows, kPanelColumns) * depth);
  ParallelFor(pool, RoundUp(rows, kPanelColumns) / kPanelColumns, [&](int64_t panel, int) {
    const int64_t first = panel * kPanelColumns;
    Kernels<T>().pack_panels(matrix + first * depth, std::min(kPanelColumns, rows - first), depth, depth,
                             panels_.data() + first * depth);
  });
}

template <typename T>
void PackedMatrix<T>::Apply(const T* x, int64_t x_stride, int64_t num_rows, T* y, int64_t y_stride,
                            ProductMode mode) const {
  Product<T> p;
  p.rows = num_rows;
  p.columns = rows_;
  p.depth = depth_;
  p.a = x;
  p.a_row_stride = x_stride;
  p.b = panels_.data();
  p.b_depth_stride = kPanelColumns;
  p.b_panel_stride = depth_ * kPanelColumns;
  p.c = y;
  p.c_row_stride = y_stride;
  p.mode = mode;
  Kernels<T>().multiply(p);
}

template <typename T>
void PackedLayer<T>::Pack(const ParameterLayout& layout, const T* flat, ThreadPool* pool) {
  const ModelConfig& c = layout.config();
  weights = BindLayer(layout, flat);
  qkv.Pack(weights.qkv, c.qkv_size(), c.hidden_size, pool);
  output.Pack(weights.output, c.hidden_size, c.query_size(), pool);
  gate_up.Pack(weights.gate_up, 2 * c.intermediate_size, c.hidden_size, pool);
  down.Pack(weights.down, c.hidden_size, c.intermediate_size, pool);
}

template <typename T>
void PackedLayer<T>::ApplyQkv(const T* x, int64_t num_rows, T* y) const {
  const int64_t p = qkv.rows();
  qkv.Apply(x, qkv.depth(), num_rows, y, p, ProductMode::kStore);
  if (weights.qkv_bias == nullptr) return;
  for (int64_t r = 0; r < num_rows; ++r) Kernels<T>().add(weights.qkv_bias, p, y + r * p);
}

template class PackedMatrix<float>;
template class PackedMatrix<double>;
template struct PackedLayer<float>;
template struct PackedLayer<double>;

}  // namespace warpsmith
