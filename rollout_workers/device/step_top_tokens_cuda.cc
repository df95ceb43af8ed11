#include "rollout_workers/device/step_top_tokens_cuda.h"

#include <algorithm>

#include "core/base/status_macros.h"
#include "core/kernels/top_tokens_cuda.h"
#include "core/model/cuda_status.h"

namespace warpsmith::device {
namespace {

constexpr size_t kTopBytes = kTopTokensMax * sizeof(TokenLogProb);  // of a sample

}  // namespace

absl::StatusOr<StepTopTokens> StepTopTokens::Create(int num_steps, int samples_max) {
  StepTopTokens made;
  const auto samples = static_cast<size_t>(samples_max);
  ASSIGN_OR_RETURN(made.counts_, DeviceMemory::Zeros(static_cast<int64_t>(samples * sizeof(int32_t))));
  ASSIGN_OR_RETURN(made.tops_, DeviceMemory::Zeros(static_cast<int64_t>(samples * kTopBytes)));
  made.host_steps_.resize(num_steps);
  for (HostStep& step : made.host_steps_) {
    ASSIGN_OR_RETURN(step.counts, AllocatePinned(samples * sizeof(int32_t)));
    ASSIGN_OR_RETURN(step.tops, AllocatePinned(samples * kTopBytes));
  }
  return made;
}

absl::Status StepTopTokens::Launch(int turn, const paged::StepPlan& plan, int64_t num_token_ids,
                                   const StepMemory& memory, const DeviceDecoder& decoder,
                                   cudaStream_t stream) {
  HostStep& host = host_steps_.at(turn);
  host.wants = plan.wants_top_tokens;
  if (!host.wants) return absl::OkStatus();
  const auto num_samples = static_cast<size_t>(plan.num_samples);
  auto* const counts = reinterpret_cast<int32_t*>(host.counts.get());
  for (size_t i = 0; i < num_samples; ++i) {
    counts[i] = static_cast<int32_t>(std::min<int64_t>(plan.samples[i].num_top_tokens, num_token_ids));
  }
  RETURN_IF_ERROR(CudaStatus(
      cudaMemcpyAsync(counts_.get(), counts, num_samples * sizeof(int32_t), cudaMemcpyHostToDevice, stream),
      "Copying counts of top tokens"));
  const TopTokens top{.num_samples = plan.num_samples,
                      .num_token_ids = num_token_ids,
                      .logits_stride = decoder.logits_stride(),
                      .logits = decoder.logits(),
                      .logits_rows = memory.arrays.sample_rows,
                      .temperatures = memory.arrays.temperatures,
                      .counts = reinterpret_cast<const int32_t*>(counts_.get()),
                      .token_ids = memory.result_token_ids,
                      .log_probs = memory.result_log_probs,
                      .tops = reinterpret_cast<TokenLogProb*>(tops_.get())};
  RETURN_IF_ERROR(CudaStatus(LaunchTopTokens(top, stream), "Top tokens"));
  return CudaStatus(
      cudaMemcpyAsync(host.tops.get(), tops_.get(), num_samples * kTopBytes, cudaMemcpyDeviceToHost, stream),
      "Copying top tokens");
}

void StepTopTokens::AddTo(std::vector<paged::TokenResult>& results, int turn) const {
  const HostStep& host = host_steps_.at(turn);
  if (!host.wants) return;
  const auto* const counts = reinterpret_cast<const int32_t*>(host.counts.get());
  const auto* const tops = reinterpret_cast<const TokenLogProb*>(host.tops.get());
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].token_id == paged::kNoToken) continue;
    const TokenLogProb* const first = tops + i * kTopTokensMax;
    results[i].top_tokens.assign(first, first + counts[i]);
  }
}

}  // namespace warpsmith::device
