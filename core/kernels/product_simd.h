// The product of kernel_set.h in register tiles of up to 6 rows. Included by variant.h only.
#ifndef WARPSMITH_CORE_KERNELS_PRODUCT_SIMD_H_
#define WARPSMITH_CORE_KERNELS_PRODUCT_SIMD_H_

namespace warpsmith {
namespace {

inline constexpr int kTileRows = 6;

// One tile: kRows x kVectors vectors. With kPartial the only vector has `count` columns.
template <typename T, int kRows, int kVectors, bool kPartial>
void MultiplyTile(const Product<T>& p, const T* a, const T* b, T* c, int count) {
  using V = Vec<T>;
  constexpr int kLanes = V::kLanes;
  const auto load = [count](const T* from) {
    if constexpr (kPartial) return V::LoadPartial(from, count);
    return V::Load(from);
  };
  V acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      acc[r][v] = p.mode == ProductMode::kAccumulate ? load(c + r * p.c_row_stride + v * kLanes) : V::Zero();
    }
  }
  for (int64_t k = 0; k < p.depth; ++k) {
    V row[kVectors];
    for (int v = 0; v < kVectors; ++v) row[v] = load(b + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const V scalar = V::Broadcast(a[r * p.a_row_stride]);
      for (int v = 0; v < kVectors; ++v) acc[r][v] = Fma(scalar, row[v], acc[r][v]);
    }
    a += p.a_depth_stride;
    b += p.b_depth_stride;
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      T* to = c + r * p.c_row_stride + v * kLanes;
      V result = acc[r][v];
      if (p.mode == ProductMode::kAdd) result = load(to) + result;
      if constexpr (kPartial) {
        result.StorePartial(to, count);
      } else {
        result.Store(to);
      }
    }
  }
}

// All rows of one strip of columns, in tiles of nearly equal height.
template <typename T, int kVectors, bool kPartial>
void MultiplyStrip(const Product<T>& p, const T* b, T* c, int count) {
  const int64_t num_tiles = (p.rows + kTileRows - 1) / kTileRows;
  for (int64_t tile = 0; tile < num_tiles; ++tile) {
    const int64_t row = p.rows * tile / num_tiles;
    const T* a = p.a + row * p.a_row_stride;
    T* c_tile = c + row * p.c_row_stride;
    switch (p.rows * (tile + 1) / num_tiles - row) {
      case 1:
        MultiplyTile<T, 1, kVectors, kPartial>(p, a, b, c_tile, count);
        break;
      case 2:
        MultiplyTile<T, 2, kVectors, kPartial>(p, a, b, c_tile, count);
        break;
      case 3:
        MultiplyTile<T, 3, kVectors, kPartial>(p, a, b, c_tile, count);
        break;
      case 4:
        MultiplyTile<T, 4, kVectors, kPartial>(p, a, b, c_tile, count);
        break;
      case 5:
        MultiplyTile<T, 5, kVectors, kPartial>(p, a, b, c_tile, count);
        break;
      default:
        MultiplyTile<T, 6, kVectors, kPartial>(p, a, b, c_tile, count);
    }
  }
}

template <typename T>
void Multiply(const Product<T>& p) {
  constexpr int kLanes = Vec<T>::kLanes;
  for (int64_t column = 0; column < p.columns;) {
    const T* b = p.b + column / kPanelColumns * p.b_panel_stride + column % kPanelColumns;
    T* c = p.c + column;
    const int64_t left = p.columns - column;
    const int64_t in_panel = (kPanelColumns - column % kPanelColumns) / kLanes;
    int64_t vectors = left / kLanes;
    if (vectors > in_panel) vectors = in_panel;
    if (vectors > kTileVectors) vectors = kTileVectors;
    switch (vectors) {
      case 0:
        MultiplyStrip<T, 1, true>(p, b, c, static_cast<int>(left));
        return;
      case 1:
        MultiplyStrip<T, 1, false>(p, b, c, 0);
        break;
      case 2:
        MultiplyStrip < T, kTileVectors<2 ? 1 : 2, false>(p, b, c, 0);
        break;
      case 3:
        MultiplyStrip < T, kTileVectors<3 ? 1 : 3, false>(p, b, c, 0);
        break;
      default:
        MultiplyStrip<T, kTileVectors, false>(p, b, c, 0);
    }
    column += vectors * kLanes;
  }
}

template <typename T>
void PackPanels(const T* matrix, int64_t rows, int64_t depth, int64_t row_stride, T* panels) {
  for (int64_t first = 0; first < rows; first += kPanelColumns, panels += depth * kPanelColumns) {
    const int64_t count = rows - first < kPanelColumns ? rows - first : kPanelColumns;
    if (count < kPanelColumns) memset(panels, 0, depth * kPanelColumns * sizeof(T));
    for (int64_t column = 0; column < count; ++column) {
      const T* from = matrix + (first + column) * row_stride;
      for (int64_t k = 0; k < depth; ++k) panels[k * kPanelColumns + column] = from[k];
    }
  }
}

}  // namespace
}  // namespace warpsmith

#endif  // WARPSMITH_CORE_KERNELS_PRODUCT_SIMD_H_
