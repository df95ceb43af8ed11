#include "core/model/training/weight_gradient.h"

#include <algorithm>

#include "core/kernels/kernel_set.h"

namespace warpsmith {
namespace {

constexpr int64_t kTaskRows = 48;      // rows of dW a task: 8 register tiles
constexpr int64_t kBlockTokens = 256;  // tokens whose x stays in the second-level cache

// Copies y_grad[tokens, rows of the task] so that a tile reads it without jumps of a whole row.
template <typename T>
void CopyBlock(const T* from, int64_t stride, int64_t num_tokens, int64_t rows, T* to) {
  for (int64_t token = 0; token < num_tokens; ++token) {
    std::copy_n(from + token * stride, rows, to + token * rows);
  }
}

template <typename T>
void AddRows(const WeightGradient<T>& g, int64_t row, int64_t num_tokens) {
  const int64_t rows = std::min(kTaskRows, g.rows - row);
  T block[kTaskRows * kBlockTokens];
  for (int64_t token = 0; token < num_tokens; token += kBlockTokens) {
    const int64_t tokens = std::min(kBlockTokens, num_tokens - token);
    CopyBlock(g.y_grad + token * g.rows + row, g.rows, tokens, rows, block);
    Product<T> p;
    p.rows = rows;
    p.columns = g.columns;
    p.depth = tokens;
    p.a = block;
    p.a_row_stride = 1;
    p.a_depth_stride = rows;
    p.b = g.x + token * g.columns;
    p.b_depth_stride = g.columns;
    p.c = g.weight_grad + row * g.columns;
    p.c_row_stride = g.columns;
    p.mode = ProductMode::kAccumulate;
    Kernels<T>().multiply(p);
  }
}

template <typename T>
int64_t NumTasks(const WeightGradient<T>& g) {
  return (g.rows + kTaskRows - 1) / kTaskRows;
}

}  // namespace

template <typename T>
void AddWeightGradients(const std::vector<WeightGradient<T>>& gradients, int64_t num_tokens,
                        ThreadPool* pool) {
  int64_t num_tasks = 0;
  for (const WeightGradient<T>& g : gradients) num_tasks += NumTasks(g);
  ParallelFor(pool, num_tasks, [&](int64_t task, int) {
    size_t i = 0;
    for (; task >= NumTasks(gradients[i]); ++i) task -= NumTasks(gradients[i]);
    AddRows(gradients[i], task * kTaskRows, num_tokens);
  });
}

template void AddWeightGradients(const std::vector<WeightGradient<float>>&, int64_t, ThreadPool*);
template void AddWeightGradients(const std::vector<WeightGradient<double>>&, int64_t, ThreadPool*);

}  // namespace warpsmith
