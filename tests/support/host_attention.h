// Attention of training on the GPU made of the host: by LibTorch's operators in float32, with autograd.
#ifndef WARPSMITH_TESTS_SUPPORT_HOST_ATTENTION_H_
#define WARPSMITH_TESTS_SUPPORT_HOST_ATTENTION_H_

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/model/operator_model.h"
#include "core/model/training/training_attention.h"
#include "tests/support/host_floats.h"

namespace warpsmith {

template <typename T>
class HostAttention final : public TrainingAttention<T> {
 public:
  using typename TrainingAttention<T>::Result;
  using typename TrainingAttention<T>::Gradients;

  absl::StatusOr<Result> Forward(const AttentionShape& shape, const AttentionHeads<T>& heads,
                                 cudaStream_t) override {
    auto kept = std::make_shared<Kept>();
    kept->queries = Leaf(heads.queries, shape, shape.num_query_heads);
    kept->keys = Leaf(heads.keys, shape, shape.num_kv_heads);
    kept->values = Leaf(heads.values, shape, shape.num_kv_heads);
    std::vector<at::Tensor> attended;
    const std::vector<int64_t>& offsets = shape.batch->cu_seqlens;
    for (size_t b = 1; b < offsets.size(); ++b) {
      const auto part = [&](const at::Tensor& all) { return all.slice(0, offsets[b - 1], offsets[b]); };
      attended.push_back(OperatorAttention(part(kept->queries), part(kept->keys), part(kept->values)));
    }
    kept->attended = at::cat(attended);
    kept->stored = Stored(kept->attended);
    const T* const stored = kept->stored.data();
    return Result{std::move(kept), stored};
  }

  absl::StatusOr<Gradients> Backward(const AttentionShape& shape, const AttentionHeads<T>&,
                                     const Result& forward, const T* attended_gradient,
                                     cudaStream_t) override {
    const auto& kept = *static_cast<const Kept*>(forward.memory.get());
    kept.attended.backward(
        Leaf(attended_gradient, shape, shape.num_query_heads).detach().view(kept.attended.sizes()));
    auto stored = std::make_shared<std::vector<std::vector<T>>>();
    for (const at::Tensor* const leaf : {&kept.queries, &kept.keys, &kept.values}) {
      stored->push_back(Stored(leaf->grad()));
    }
    const AttentionHeads<T> heads = {(*stored)[0].data(), (*stored)[1].data(), (*stored)[2].data()};
    return Gradients{std::move(stored), heads};
  }

 private:
  struct Kept {
    at::Tensor queries, keys, values, attended;
    std::vector<T> stored;
  };

  static at::Tensor Leaf(const T* heads, const AttentionShape& shape, int64_t num_heads) {
    at::Tensor leaf = at::empty({shape.batch->num_tokens(), num_heads, shape.head_dim}, at::kFloat);
    for (int64_t i = 0; i < leaf.numel(); ++i) leaf.mutable_data_ptr<float>()[i] = Load(heads[i]);
    return leaf.requires_grad_(true);
  }
  static std::vector<T> Stored(const at::Tensor& tensor) {
    const at::Tensor dense = tensor.detach().contiguous();
    std::vector<T> stored(dense.numel());
    for (int64_t i = 0; i < dense.numel(); ++i) Store(dense.const_data_ptr<float>()[i], stored[i]);
    return stored;
  }
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_HOST_ATTENTION_H_
