#include "core/model/training/layer_training.h"

#include <algorithm>
#include <cmath>

#include "core/model/training/weight_gradient.h"

namespace warpsmith {
namespace {

constexpr int64_t kBlockRows =
    48;  // tokens a task: 8 register tiles, activations within the second-level cache
static_assert(kBlockRows <= kAttentionRowsMax);

int64_t NumBlocks(int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

// Calls body(first row, number of rows, block, worker) for every block of rows.
template <typename Body>
void ForBlocks(ThreadPool* pool, int64_t num_rows, Body body) {
  ParallelFor(pool, NumBlocks(num_rows), [&](int64_t block, int worker) {
    const int64_t row = block * kBlockRows;
    body(row, std::min(kBlockRows, num_rows - row), block, worker);
  });
}

// grad += sum of `count` partial sums, in order.
template <typename T>
void AddPartials(const T* partials, int64_t count, int64_t size, int64_t stride, T* grad) {
  if (grad == nullptr) return;  // the model has no such weight
  for (int64_t i = 0; i < count; ++i) Kernels<T>().add(partials + i * stride, size, grad);
}

// x[rows, depth] W with W [depth, columns] row-major: how gradients go back through a projection.
template <typename T>
void MultiplyByRows(const T* x, int64_t rows, const T* weight, int64_t depth, int64_t columns, T* y) {
  Product<T> p;
  p.rows = rows;
  p.columns = columns;
  p.depth = depth;
  p.a = x;
  p.a_row_stride = depth;
  p.b = weight;
  p.b_depth_stride = columns;
  p.c = y;
  p.c_row_stride = columns;
  Kernels<T>().multiply(p);
}

}  // namespace

template <typename T>
LayerTraining<T>::LayerTraining(const ParameterLayout& layout, ThreadPool* pool)
    : layout_(layout),
      config_(layout.config()),
      kernels_(Kernels<T>()),
      pool_(pool),
      eps_(static_cast<T>(config_.rms_norm_eps)),
      rotary_(config_.head_dim, config_.rope_theta, config_.rope_scaling),
      scratch_(NumThreads(pool)) {}

template <typename T>
T* LayerTraining<T>::Scratch(int worker, int64_t size) {
  std::vector<T>& scratch = scratch_[worker];
  if (static_cast<int64_t>(scratch.size()) < size) scratch.resize(size);
  return scratch.data();
}

template <typename T>
T* LayerTraining<T>::Partials(int64_t size) {
  partials_.assign(size, T(0));
  return partials_.data();
}

template <typename T>
typename LayerTraining<T>::BackwardMemory LayerTraining<T>::BindBackward(int64_t n) {
  const int64_t d = config_.hidden_size, q = config_.query_size(), p = config_.qkv_size();
  const int64_t i = config_.intermediate_size, total = n * (3 * d + q + 2 * p + 3 * i);
  if (static_cast<int64_t>(shared_.size()) < total) shared_.resize(total);
  BackwardMemory memory;
  memory.input_normed = shared_.data();
  memory.middle_normed = memory.input_normed + n * d;
  memory.middle_grad = memory.middle_normed + n * d;
  memory.attended_grad = memory.middle_grad + n * d;
  memory.qkv_grad = memory.attended_grad + n * q;
  memory.rotated = memory.qkv_grad + n * p;
  memory.activated = memory.rotated + n * p;
  memory.gate_up_grad = memory.activated + n * i;
  return memory;
}

template <typename T>
void LayerTraining<T>::RotateHeads(const PackedBatch& batch, const T* qkv, int64_t token, int64_t first_group,
                                   int64_t num_groups) {
  const int64_t h = config_.head_dim, heads = config_.group_size() + 2;
  const T* cosine = rotary_.cosine(batch.positions[token]);
  const T* sine = rotary_.sine(batch.positions[token]);
  for (int64_t group = first_group; group < first_group + num_groups; ++group) {
    for (int64_t head = 0; head < heads - 1; ++head) {
      const int64_t offset = token * config_.qkv_size() + (group * heads + head) * h;
      const T* norm = head < heads - 2 ? packed_.weights.query_norm : packed_.weights.key_norm;
      kernels_.norm_rotate(qkv + offset, norm, cosine, sine, h, eps_, memory_.rotated + offset);
    }
  }
}

template <typename T>
void LayerTraining<T>::QkvRows(const T* x, const PackedBatch& batch, const LayerActivations<T>& a,
                               int64_t row, int64_t rows, int worker) {
  const int64_t d = config_.hidden_size, p = config_.qkv_size();
  T* normed = Scratch(worker, kBlockRows * d);
  for (int64_t r = 0; r < rows; ++r) {
    kernels_.rms_norm(x + (row + r) * d, packed_.weights.input_norm, d, eps_, normed + r * d);
  }
  packed_.ApplyQkv(normed, rows, a.qkv + row * p);
  for (int64_t r = row; r < row + rows; ++r) RotateHeads(batch, a.qkv, r, 0, config_.num_key_value_heads);
}

template <typename T>
void LayerTraining<T>::AttendGroup(const PackedBatch& batch, const LayerActivations<T>& a, int64_t sequence,
                                   int64_t group, int worker) {
  const int64_t first = batch.cu_seqlens[sequence], length = batch.cu_seqlens[sequence + 1] - first;
  const int64_t h = config_.head_dim, p = config_.qkv_size(), q = config_.query_size(),
                heads = config_.group_size();
  const int64_t padded = RoundUp(length, kPanelColumns);
  T* key_panels = Scratch(worker, padded * (h + kBlockRows));
  const int64_t group_offset = first * p + group * (heads + 2) * h;
  kernels_.pack_panels(memory_.rotated + group_offset + heads * h, length, h, p, key_panels);
  Attention<T> attention;
  attention.head_dim = h;
  attention.visible_step = 1;
  attention.scale = T(1) / std::sqrt(static_cast<T>(h));
  attention.query_stride = p;
  attention.key_panels = key_panels;
  attention.value = a.qkv + group_offset + (heads + 1) * h;
  attention.value_stride = p;
  attention.scores = key_panels + padded * h;
  attention.out_stride = q;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t row = 0; row < length; row += kBlockRows) {
      attention.rows = std::min(kBlockRows, length - row);
      attention.visible_first = row + 1;
      attention.query = memory_.rotated + group_offset + row * p + head * h;
      attention.out = a.attended + (first + row) * q + (group * heads + head) * h;
      attention.log_sum_exp = a.log_sum_exp + (group * heads + head) * batch.num_tokens() + first + row;
      kernels_.attention(attention);
    }
  }
}

template <typename T>
void LayerTraining<T>::MiddleRows(const T* x, const LayerActivations<T>& a, int64_t row, int64_t rows) {
  const int64_t d = config_.hidden_size, q = config_.query_size();
  std::copy_n(x + row * d, rows * d, a.middle + row * d);
  packed_.output.Apply(a.attended + row * q, q, rows, a.middle + row * d, d, ProductMode::kAdd);
}

// `normed` [kBlockRows, D] is overwritten.
template <typename T>
void LayerTraining<T>::GateUpRows(const LayerActivations<T>& a, int64_t row, int64_t rows, T* normed) {
  const int64_t d = config_.hidden_size, i = config_.intermediate_size;
  for (int64_t r = 0; r < rows; ++r) {
    kernels_.rms_norm(a.middle + (row + r) * d, packed_.weights.post_norm, d, eps_, normed + r * d);
  }
  packed_.gate_up.Apply(normed, d, rows, a.gate_up + row * 2 * i, 2 * i, ProductMode::kStore);
}

template <typename T>
void LayerTraining<T>::MlpRows(const T* x, const LayerActivations<T>& a, int64_t row, int64_t rows, T* y,
                               int worker) {
  const int64_t d = config_.hidden_size, i = config_.intermediate_size;
  T* normed = Scratch(worker, kBlockRows * (d + i));
  T* activated = normed + kBlockRows * d;
  MiddleRows(x, a, row, rows);
  GateUpRows(a, row, rows, normed);
  kernels_.swiglu(a.gate_up + row * 2 * i, rows * i, activated);
  std::copy_n(a.middle + row * d, rows * d, y + row * d);
  packed_.down.Apply(activated, i, rows, y + row * d, d, ProductMode::kAdd);
}

template <typename T>
void LayerTraining<T>::Forward(const T* flat, const PackedBatch& batch, const T* x,
                               const LayerActivations<T>& activations, T* y) {
  const int64_t num_tokens = batch.num_tokens(), groups = config_.num_key_value_heads;
  if (num_tokens == 0) return;
  rotary_.Reserve(1 + *std::max_element(batch.positions.begin(), batch.positions.end()));
  packed_.Pack(layout_, flat, pool_);
  memory_ = BindBackward(num_tokens);
  ForBlocks(pool_, num_tokens, [&](int64_t row, int64_t rows, int64_t, int worker) {
    QkvRows(x, batch, activations, row, rows, worker);
  });
  ParallelFor(pool_, batch.num_sequences() * groups, [&](int64_t task, int worker) {
    AttendGroup(batch, activations, task / groups, task % groups, worker);
  });
  ForBlocks(pool_, num_tokens, [&](int64_t row, int64_t rows, int64_t, int worker) {
    MlpRows(x, activations, row, rows, y, worker);
  });
}

template <typename T>
void LayerTraining<T>::Recompute(const T* flat, const PackedBatch& batch, const T* x,
                                 const LayerActivations<T>& activations, Recomputation recomputation) {
  const int64_t num_tokens = batch.num_tokens(), groups = config_.num_key_value_heads;
  if (num_tokens == 0 || recomputation == Recomputation::kNone) return;
  packed_.Pack(layout_, flat, pool_);
  memory_ = BindBackward(num_tokens);
  if (!KeepsInputs(recomputation)) {
    ForBlocks(pool_, num_tokens, [&](int64_t row, int64_t rows, int64_t, int worker) {
      QkvRows(x, batch, activations, row, rows, worker);
    });
  }
  if (!KeepsAttention(recomputation)) {
    ParallelFor(pool_, batch.num_sequences() * groups, [&](int64_t task, int worker) {
      AttendGroup(batch, activations, task / groups, task % groups, worker);
    });
  }
  ForBlocks(pool_, num_tokens, [&](int64_t row, int64_t rows, int64_t, int worker) {
    if (!KeepsInputs(recomputation)) MiddleRows(x, activations, row, rows);
    GateUpRows(activations, row, rows, Scratch(worker, kBlockRows * config_.hidden_size));
  });
}

template <typename T>
void LayerTraining<T>::MlpRowsBackward(const LayerActivations<T>& a, const T* y_grad, int64_t row,
                                       int64_t rows, T* norm_partial, int worker) {
  const int64_t d = config_.hidden_size, q = config_.query_size(), i = config_.intermediate_size;
  const LayerPointers<const T>& w = packed_.weights;
  T* activated_grad = Scratch(worker, kBlockRows * (d + i));
  T* normed_grad = activated_grad + kBlockRows * i;
  T* gate_up_grad = memory_.gate_up_grad + row * 2 * i;
  T* middle_grad = memory_.middle_grad + row * d;
  MultiplyByRows(y_grad + row * d, rows, w.down, d, i, activated_grad);
  kernels_.swiglu(a.gate_up + row * 2 * i, rows * i, memory_.activated + row * i);
  kernels_.swiglu_gradient(a.gate_up + row * 2 * i, activated_grad, rows * i, gate_up_grad);
  MultiplyByRows(gate_up_grad, rows, w.gate_up, 2 * i, d, normed_grad);
  std::copy_n(y_grad + row * d, rows * d, middle_grad);
  for (int64_t r = 0; r < rows; ++r) {
    const T* middle = a.middle + (row + r) * d;
    kernels_.rms_norm(middle, w.post_norm, d, eps_, memory_.middle_normed + (row + r) * d);
    kernels_.rms_norm_gradient(middle, w.post_norm, normed_grad + r * d, d, eps_, middle_grad + r * d,
                               norm_partial);
  }
  MultiplyByRows(middle_grad, rows, w.output, d, q, memory_.attended_grad + row * q);
}

template <typename T>
void LayerTraining<T>::AttendGroupBackward(const PackedBatch& batch, const LayerActivations<T>& a,
                                           int64_t sequence, int64_t group, T* norm_partials, int worker) {
  const int64_t first = batch.cu_seqlens[sequence], length = batch.cu_seqlens[sequence + 1] - first;
  const int64_t h = config_.head_dim, p = config_.qkv_size(), q = config_.query_size(),
                heads = config_.group_size();
  const int64_t padded = RoundUp(length, kPanelColumns);
  T* key_panels = Scratch(worker, 2 * padded * (h + kBlockRows));
  T* value_panels = key_panels + padded * h;
  const int64_t group_offset = first * p + group * (heads + 2) * h;
  const int64_t key = group_offset + heads * h, value = key + h;
  for (int64_t token = first; token < first + length; ++token) {
    RotateHeads(batch, a.qkv, token, group, 1);
    std::fill_n(memory_.qkv_grad + key + (token - first) * p, 2 * h, T(0));
  }
  kernels_.pack_panels(memory_.rotated + key, length, h, p, key_panels);
  kernels_.pack_panels(a.qkv + value, length, h, p, value_panels);
  AttentionGradient<T> g;
  g.forward.head_dim = h;
  g.forward.visible_step = 1;
  g.forward.scale = T(1) / std::sqrt(static_cast<T>(h));
  g.forward.query_stride = p;
  g.forward.key_panels = key_panels;
  g.forward.scores = value_panels + padded * h;
  g.forward.out_stride = q;
  g.key = memory_.rotated + key;
  g.key_stride = p;
  g.value_panels = value_panels;
  g.score_grads = g.forward.scores + padded * kBlockRows;
  g.key_grad = memory_.qkv_grad + key;
  g.value_grad = memory_.qkv_grad + value;
  g.grad_stride = p;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t row = 0; row < length; row += kBlockRows) {
      const int64_t query = group_offset + row * p + head * h;
      const int64_t out = (first + row) * q + (group * heads + head) * h;
      g.forward.rows = std::min(kBlockRows, length - row);
      g.forward.visible_first = row + 1;
      g.forward.query = memory_.rotated + query;
      g.forward.out = a.attended + out;
      g.forward.log_sum_exp = a.log_sum_exp + (group * heads + head) * batch.num_tokens() + first + row;
      g.out_grad = memory_.attended_grad + out;
      g.query_grad = memory_.qkv_grad + query;
      kernels_.attention_gradient(g);
    }
  }
  for (int64_t token = first; token < first + length; ++token) {
    RotateBackward(batch, a.qkv, token, group, norm_partials);
  }
}

template <typename T>
void LayerTraining<T>::RotateBackward(const PackedBatch& batch, const T* qkv, int64_t token, int64_t group,
                                      T* norm_partials) {
  const int64_t h = config_.head_dim, heads = config_.group_size() + 2;
  for (int64_t head = 0; head < heads - 1; ++head) {
    const int64_t offset = token * config_.qkv_size() + (group * heads + head) * h;
    const bool is_query = head < heads - 2;
    const T* norm = is_query ? packed_.weights.query_norm : packed_.weights.key_norm;
    T* grad = memory_.qkv_grad + offset;
    kernels_.norm_rotate_gradient(qkv + offset, norm, rotary_.cosine(batch.positions[token]),
                                  rotary_.sine(batch.positions[token]), grad, h, eps_, grad,
                                  norm_partials + (is_query ? 0 : h));
  }
}

template <typename T>
void LayerTraining<T>::InputRowsBackward(const T* x, int64_t row, int64_t rows, T* x_grad, T* norm_partial,
                                         T* bias_partial, int worker) {
  const int64_t d = config_.hidden_size, p = config_.qkv_size();
  T* normed_grad = Scratch(worker, kBlockRows * d);
  MultiplyByRows(memory_.qkv_grad + row * p, rows, packed_.weights.qkv, p, d, normed_grad);
  std::copy_n(memory_.middle_grad + row * d, rows * d, x_grad + row * d);
  for (int64_t r = 0; r < rows; ++r) {
    const T* values = x + (row + r) * d;
    kernels_.rms_norm(values, packed_.weights.input_norm, d, eps_, memory_.input_normed + (row + r) * d);
    kernels_.rms_norm_gradient(values, packed_.weights.input_norm, normed_grad + r * d, d, eps_,
                               x_grad + (row + r) * d, norm_partial);
    if (packed_.weights.qkv_bias != nullptr) kernels_.add(memory_.qkv_grad + (row + r) * p, p, bias_partial);
  }
}

template <typename T>
void LayerTraining<T>::WeightGradients(const LayerActivations<T>& a, const T* y_grad, int64_t num_tokens,
                                       const LayerPointers<T>& grads) {
  const int64_t d = config_.hidden_size, q = config_.query_size(), p = config_.qkv_size();
  const int64_t i = config_.intermediate_size;
  AddWeightGradients<T>({{memory_.gate_up_grad, 2 * i, memory_.middle_normed, d, grads.gate_up},
                         {y_grad, d, memory_.activated, i, grads.down},
                         {memory_.qkv_grad, p, memory_.input_normed, d, grads.qkv},
                         {memory_.middle_grad, d, a.attended, q, grads.output}},
                        num_tokens, pool_);
}

template <typename T>
void LayerTraining<T>::Backward(const T* flat, const PackedBatch& batch, const T* x,
                                const LayerActivations<T>& activations, const T* y_grad, T* x_grad,
                                T* flat_grad) {
  const int64_t num_tokens = batch.num_tokens(), groups = config_.num_key_value_heads;
  const int64_t d = config_.hidden_size, h = config_.head_dim, blocks = NumBlocks(num_tokens);
  if (num_tokens == 0) return;
  packed_.weights = BindLayer(layout_, flat);
  const LayerPointers<T> grads = BindLayer(layout_, flat_grad);
  memory_ = BindBackward(num_tokens);

  T* partials = Partials(blocks * d);
  ForBlocks(pool_, num_tokens, [&](int64_t row, int64_t rows, int64_t block, int worker) {
    MlpRowsBackward(activations, y_grad, row, rows, partials + block * d, worker);
  });
  AddPartials(partials, blocks, d, d, grads.post_norm);

  const int64_t tasks = batch.num_sequences() * groups;
  partials = Partials(tasks * 2 * h);
  ParallelFor(pool_, tasks, [&](int64_t task, int worker) {
    AttendGroupBackward(batch, activations, task / groups, task % groups, partials + task * 2 * h, worker);
  });
  AddPartials(partials, tasks, h, 2 * h, grads.query_norm);
  AddPartials(partials + h, tasks, h, 2 * h, grads.key_norm);

  const int64_t p = grads.qkv_bias == nullptr ? 0 : config_.qkv_size();
  partials = Partials(blocks * (d + p));
  ForBlocks(pool_, num_tokens, [&](int64_t row, int64_t rows, int64_t block, int worker) {
    T* const partial = partials + block * (d + p);
    InputRowsBackward(x, row, rows, x_grad, partial, partial + d, worker);
  });
  AddPartials(partials, blocks, d, d + p, grads.input_norm);
  AddPartials(partials + d, blocks, p, d + p, grads.qkv_bias);
  WeightGradients(activations, y_grad, num_tokens, grads);
}

template class LayerTraining<float>;
template class LayerTraining<double>;

}  // namespace warpsmith
