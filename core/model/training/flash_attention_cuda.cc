#include "core/model/training/flash_attention_cuda.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_flash_attention_backward_cuda_dispatch.h>
#include <ATen/ops/_flash_attention_forward_cuda_dispatch.h>
#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDAGuard.h>

#include <tuple>
#include <utility>

#include "core/base/status_macros.h"
#include "core/model/training/run_torch.h"

namespace warpsmith {
namespace {

using Bfloat16 = __nv_bfloat16;

class FlashAttention final : public TrainingAttention<Bfloat16> {
 public:
  FlashAttention(int device, bool deterministic) : device_(at::kCUDA, static_cast<c10::DeviceIndex>(device)) {
    at::globalContext().setDeterministicAlgorithms(deterministic, /*warn_only=*/false);
  }

  absl::StatusOr<Result> Forward(const AttentionShape& shape, const AttentionHeads<Bfloat16>& heads,
                                 cudaStream_t stream) override {
    auto kept = std::make_shared<Kept>();
    RETURN_IF_ERROR(RunTorch("attention", /*keeps_graph=*/false, [&] {
      const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromExternal(stream, device_.index()));
      const at::Tensor offsets = Offsets(shape);
      at::Tensor debug;
      std::tie(kept->attended, kept->log_sum_exp, kept->rng_state, kept->unused, debug) =
          at::cuda::_flash_attention_forward(
              Queries(shape, heads.queries), KeysOrValues(shape, heads.keys),
              KeysOrValues(shape, heads.values), offsets, offsets, shape.longest, shape.longest,
              /*dropout_p=*/0.0, /*is_causal=*/true, /*return_debug_mask=*/false);
    }));
    const auto* const attended = static_cast<const Bfloat16*>(kept->attended.const_data_ptr());
    return Result{std::move(kept), attended};
  }

  absl::StatusOr<Gradients> Backward(const AttentionShape& shape, const AttentionHeads<Bfloat16>& heads,
                                     const Result& forward, const Bfloat16* attended_gradient,
                                     cudaStream_t stream) override {
    const auto& kept = *static_cast<const Kept*>(forward.memory.get());
    auto gradients = std::make_shared<HeadTensors>();
    RETURN_IF_ERROR(RunTorch("the gradient of attention", /*keeps_graph=*/false, [&] {
      const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromExternal(stream, device_.index()));
      const at::Tensor offsets = Offsets(shape);
      std::tie(gradients->queries, gradients->keys, gradients->values) = at::cuda::_flash_attention_backward(
          Queries(shape, attended_gradient), Queries(shape, heads.queries), KeysOrValues(shape, heads.keys),
          KeysOrValues(shape, heads.values), kept.attended, kept.log_sum_exp, offsets, offsets, shape.longest,
          shape.longest, /*dropout_p=*/0.0, /*is_causal=*/true, kept.rng_state, kept.unused);
      for (at::Tensor* const tensor : {&gradients->queries, &gradients->keys, &gradients->values}) {
        *tensor = tensor->contiguous();
      }
    }));
    const auto pointer = [](const at::Tensor& tensor) {
      return static_cast<const Bfloat16*>(tensor.const_data_ptr());
    };
    const AttentionHeads<Bfloat16> found = {pointer(gradients->queries), pointer(gradients->keys),
                                            pointer(gradients->values)};
    return Gradients{std::move(gradients), found};
  }

 private:
  struct Kept {
    at::Tensor attended, log_sum_exp, rng_state, unused;
  };
  struct HeadTensors {
    at::Tensor queries, keys, values;
  };

  at::Tensor View(const void* memory, at::IntArrayRef sizes, at::ScalarType type) const {
    return at::from_blob(const_cast<void*>(memory), sizes, at::TensorOptions(type).device(device_));
  }
  at::Tensor Offsets(const AttentionShape& shape) const {
    return View(shape.cu_seqlens, {shape.batch->num_sequences() + 1}, at::kInt);
  }
  at::Tensor Queries(const AttentionShape& shape, const Bfloat16* heads) const {
    return View(heads, {shape.batch->num_tokens(), shape.num_query_heads, shape.head_dim}, at::kBFloat16);
  }
  at::Tensor KeysOrValues(const AttentionShape& shape, const Bfloat16* heads) const {
    return View(heads, {shape.batch->num_tokens(), shape.num_kv_heads, shape.head_dim}, at::kBFloat16);
  }

  const at::Device device_;
};

}  // namespace

std::unique_ptr<TrainingAttention<Bfloat16>> MakeFlashAttention(int device, bool deterministic) {
  return std::make_unique<FlashAttention>(device, deterministic);
}

}  // namespace warpsmith
