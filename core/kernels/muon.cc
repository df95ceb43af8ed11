#include "core/kernels/muon.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/kernels/adamw.h"
#include "core/kernels/kernel_set.h"

namespace warpsmith {
namespace {

constexpr int kNumIterations = 5;
constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;
constexpr int64_t kTaskRows = 24;  // of a product: 4 register tiles
constexpr float kTiny = 1e-12f;    // a norm that is no more than rounding

// A plain row-major matrix, or its transpose as it lies.
struct View {
  const float* values;
  int64_t row_stride;
  int64_t column_stride;
};

// c[rows, columns] = a[rows, depth] b[depth, columns]; b and c are plain.
void Multiply(int64_t rows, int64_t columns, int64_t depth, View a, const float* b, float* c,
              ThreadPool* pool) {
  ParallelFor(pool, (rows + kTaskRows - 1) / kTaskRows, [&](int64_t task, int) {
    const int64_t row = task * kTaskRows;
    Product<float> p;
    p.rows = std::min(kTaskRows, rows - row);
    p.columns = columns;
    p.depth = depth;
    p.a = a.values + row * a.row_stride;
    p.a_row_stride = a.row_stride;
    p.a_depth_stride = a.column_stride;
    p.b = b;
    p.b_depth_stride = columns;
    p.c = c + row * columns;
    p.c_row_stride = columns;
    Kernels<float>().multiply(p);
  });
}

// to[columns, rows] = from[rows, columns] transposed, times `factor`.
void Transpose(int64_t rows, int64_t columns, float factor, const float* from, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = factor * from[r * columns + c];
  }
}

// The iterations on x[tall, narrow], with tall >= narrow, whose norm is 1: the products are of the smaller
// side. `next` has the size of x; `gram` and `square` are [narrow, narrow]. The result is in one of the first
// two.
const float* Iterate(int64_t tall, int64_t narrow, float* x, float* next, float* gram, float* square,
                     ThreadPool* pool) {
  for (int iteration = 0; iteration < kNumIterations; ++iteration) {
    Multiply(narrow, narrow, tall, {x, 1, narrow}, x, gram, pool);
    Multiply(narrow, narrow, narrow, {gram, narrow, 1}, gram, square, pool);
    for (int64_t i = 0; i < narrow * narrow; ++i) square[i] = kB * gram[i] + kC * square[i];
    for (int64_t i = 0; i < narrow; ++i) square[i * narrow + i] += kA;
    Multiply(tall, narrow, narrow, {x, narrow, 1}, square, next, pool);
    std::swap(x, next);
  }
  return x;
}

}  // namespace

void Orthogonalise(int64_t rows, int64_t columns, float* matrix, std::vector<float>* scratch,
                   ThreadPool* pool) {
  const int64_t tall = std::max(rows, columns), narrow = std::min(rows, columns), size = rows * columns;
  const auto norm = static_cast<float>(std::sqrt(SumOfSquares(size, matrix, pool)));
  if (!(norm > kTiny)) return;
  const auto needed = static_cast<size_t>(2 * size + 2 * narrow * narrow);
  if (scratch->size() < needed) scratch->resize(needed);
  float* x = scratch->data();
  float* next = x + size;
  float* gram = next + size;
  if (rows >= columns) {
    for (int64_t i = 0; i < size; ++i) x[i] = matrix[i] / norm;
  } else {
    Transpose(rows, columns, 1 / norm, matrix, x);
  }
  const float* result = Iterate(tall, narrow, x, next, gram, gram + narrow * narrow, pool);
  if (rows >= columns) {
    std::copy_n(result, size, matrix);
  } else {
    Transpose(columns, rows, 1, result, matrix);
  }
}

void MuonStep(const MuonOptions& options, int64_t rows, int64_t columns, const float* gradient,
              float* parameter, float* moment, std::vector<float>* scratch, ThreadPool* pool) {
  const int64_t size = rows * columns;
  std::vector<float> step(static_cast<size_t>(size));
  const float momentum = options.momentum, rest = 1 - options.momentum;
  for (int64_t i = 0; i < size; ++i) {
    const float g = options.gradient_scale * gradient[i];
    moment[i] = momentum * moment[i] + rest * g;
    step[i] = momentum * moment[i] + rest * g;  // Nesterov's
  }
  Orthogonalise(rows, columns, step.data(), scratch, pool);
  const float decay = 1 - options.learning_rate * options.weight_decay;
  const float scale = options.learning_rate * 0.2f * std::sqrt(static_cast<float>(std::max(rows, columns)));
  for (int64_t i = 0; i < size; ++i) parameter[i] = decay * parameter[i] - scale * step[i];
}

}  // namespace warpsmith
