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

// The product P of the polynomials a I + b A + c A^2 of all iterations, for the Gram matrix A = X^T X before
// each: X P is the result. As the polynomials commute, A becomes A B^2 after an iteration, so that nothing
// but [size, size] matrices is multiplied. `gram` is destroyed; `scratch` has three matrices. P is in one of
// the four.
const float* PolynomialOf(int64_t size, float* gram, float* scratch, ThreadPool* pool) {
  float* factor = scratch;
  float* product = scratch + size * size;
  float* next = product + size * size;
  const auto multiply = [&](const float* a, const float* b, float* c) {
    Multiply(size, size, size, {a, size, 1}, b, c, pool);
  };
  for (int iteration = 0; iteration < kNumIterations; ++iteration) {
    multiply(gram, gram, factor);
    for (int64_t i = 0; i < size * size; ++i) factor[i] = kB * gram[i] + kC * factor[i];
    for (int64_t i = 0; i < size; ++i) factor[i * size + i] += kA;
    if (iteration == 0) {
      std::copy_n(factor, size * size, product);
    } else {
      multiply(product, factor, next);
      std::swap(product, next);
    }
    if (iteration + 1 == kNumIterations) break;
    multiply(gram, factor, next);
    multiply(next, factor, gram);
  }
  return product;
}

}  // namespace

void Orthogonalise(int64_t rows, int64_t columns, float* matrix, std::vector<float>* scratch,
                   ThreadPool* pool) {
  const int64_t narrow = std::min(rows, columns), size = rows * columns;
  const auto norm = static_cast<float>(std::sqrt(SumOfSquares(size, matrix, pool)));
  if (!(norm > kTiny)) return;
  const auto needed = static_cast<size_t>(size + 4 * narrow * narrow);
  if (scratch->size() < needed) scratch->resize(needed);
  float* x = scratch->data();
  float* gram = x + size;
  float* rest = gram + narrow * narrow;
  if (rows >= columns) {
    for (int64_t i = 0; i < size; ++i) x[i] = matrix[i] / norm;
    Multiply(narrow, narrow, rows, {x, 1, narrow}, x, gram, pool);
    Multiply(rows, narrow, narrow, {x, narrow, 1}, PolynomialOf(narrow, gram, rest, pool), matrix, pool);
  } else {
    Transpose(rows, columns, 1 / norm, matrix, x);
    Multiply(narrow, narrow, columns, {x, 1, narrow}, x, gram, pool);
    const float* polynomial = PolynomialOf(narrow, gram, rest, pool);
    for (int64_t i = 0; i < size; ++i) x[i] = matrix[i] / norm;
    Multiply(rows, columns, narrow, {polynomial, narrow, 1}, x, matrix, pool);
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
