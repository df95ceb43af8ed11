#include "core/model/training/token_scoring.h"

#include <algorithm>

#include "core/model/training/weight_gradient.h"

namespace warpsmith {
namespace {

constexpr int64_t kBlockRows = 48;                  // rows a task
constexpr int64_t kChunkBytes = int64_t{32} << 20;  // of logits that exist at a time in backward

int64_t NumBlocks(int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

template <typename T>
int64_t ChunkRows(const ScoringInput<T>& input) {
  const int64_t rows = kChunkBytes / static_cast<int64_t>(sizeof(T)) / input.num_token_ids;
  return std::max(kBlockRows, rows / kBlockRows * kBlockRows);
}

template <typename T>
T* Grow(std::vector<T>& memory, int64_t size) {
  if (static_cast<int64_t>(memory.size()) < size) memory.resize(size);
  return memory.data();
}

}  // namespace

template <typename T>
void TokenScoring<T>::Logits(const ScoringInput<T>& input, int64_t first, int64_t count, T* hidden,
                             T* logits) const {
  const int64_t d = input.hidden_size;
  for (int64_t i = 0; i < count; ++i)
    std::copy_n(input.hidden + input.rows[first + i] * d, d, hidden + i * d);
  head_.Apply(hidden, d, count, logits, input.num_token_ids, ProductMode::kStore);
}

template <typename T>
void TokenScoring<T>::Forward(const ScoringInput<T>& input, T* log_probs, T* entropy, T* log_sum_exp) {
  const int64_t num_rows = static_cast<int64_t>(input.rows.size()), v = input.num_token_ids;
  head_.Pack(input.head, v, input.hidden_size, pool_);
  ParallelFor(pool_, NumBlocks(num_rows), [&](int64_t block, int worker) {
    const int64_t first = block * kBlockRows, count = std::min(kBlockRows, num_rows - first);
    T* hidden = Grow(scratch_[worker], kBlockRows * (v + input.hidden_size));
    T* logits = hidden + kBlockRows * input.hidden_size;
    Logits(input, first, count, hidden, logits);
    for (int64_t i = first; i < first + count; ++i) {
      const TokenScore<T> score =
          ScoreToken(logits + (i - first) * v, v, input.targets[i], input.temperature);
      log_probs[input.rows[i]] = score.log_prob;
      entropy[input.rows[i]] = score.entropy;
      log_sum_exp[i] = score.log_sum_exp;
    }
  });
}

template <typename T>
void TokenScoring<T>::BackwardBlock(const ScoringInput<T>& input, int64_t first, int64_t count,
                                    const T* log_sum_exp, const T* log_prob_grad, T* hidden, T* logits,
                                    T* block_grad, T* hidden_grad) const {
  const int64_t v = input.num_token_ids, d = input.hidden_size;
  Logits(input, first, count, hidden, logits);
  for (int64_t i = 0; i < count; ++i) {
    Kernels<T>().score_row_gradient(logits + i * v, v, input.targets[first + i], T(1) / input.temperature,
                                    log_sum_exp[first + i], log_prob_grad[input.rows[first + i]]);
  }
  Product<T> p;
  p.rows = count;
  p.columns = d;
  p.depth = v;
  p.a = logits;
  p.a_row_stride = v;
  p.b = input.head;
  p.b_depth_stride = d;
  p.c = block_grad;
  p.c_row_stride = d;
  Kernels<T>().multiply(p);
  for (int64_t i = 0; i < count; ++i) {
    Kernels<T>().add(block_grad + i * d, d, hidden_grad + input.rows[first + i] * d);
  }
}

template <typename T>
void TokenScoring<T>::Backward(const ScoringInput<T>& input, const T* log_sum_exp, const T* log_prob_grad,
                               T* hidden_grad, T* head_grad) {
  const int64_t num_rows = static_cast<int64_t>(input.rows.size());
  const int64_t v = input.num_token_ids, d = input.hidden_size;
  head_.Pack(input.head, v, d, pool_);
  const int64_t chunk_rows = std::min(ChunkRows(input), num_rows);
  T* hidden = Grow(chunk_, chunk_rows * (v + d));
  T* logits = hidden + chunk_rows * d;
  for (int64_t begin = 0; begin < num_rows; begin += chunk_rows) {
    const int64_t rows = std::min(chunk_rows, num_rows - begin);
    ParallelFor(pool_, NumBlocks(rows), [&](int64_t block, int worker) {
      const int64_t first = block * kBlockRows;
      BackwardBlock(input, begin + first, std::min(kBlockRows, rows - first), log_sum_exp, log_prob_grad,
                    hidden + first * d, logits + first * v, Grow(scratch_[worker], kBlockRows * d),
                    hidden_grad);
    });
    AddWeightGradients<T>({{logits, v, hidden, d, head_grad}}, rows, pool_);
  }
}

template class TokenScoring<float>;
template class TokenScoring<double>;

}  // namespace warpsmith
