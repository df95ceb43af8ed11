#include "rollout_workers/device/step_device_cuda.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/device_lease.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/model/buffer_checksums_cuda.h"
#include "core/model/cuda_device.h"
#include "core/model/device_weights_cuda.h"
#include "core/model/mapped_weights_cuda.h"
#include "core/model/received_weights_cuda.h"
#include "core/model/weight_source.h"
#include "rollout_workers/device/page_budget.h"
#include "rollout_workers/device/step_buckets.h"
#include "rollout_workers/device/step_device_group_cuda.h"

namespace warpsmith::device {
namespace {

constexpr int kStepsMax = 2;
// Of what all slots can fill: the rest holds prompts that come again.
constexpr int64_t kPagesForPrefixes = 2;

int64_t PagesOfContext(const CudaStepOptions& options) {
  return (options.context_tokens_max + options.page_tokens - 1) / options.page_tokens;
}

StepLimits LimitsOf(const CudaStepOptions& options) {
  return {.queries_max = options.sequences_max,
          .rows_max = options.sequences_max + options.prefill_tokens_max,
          .pages_of_query_max = PagesOfContext(options)};
}

DeviceDecoderOptions DecoderOptionsFrom(const CudaStepOptions& options, TensorShard shard, int64_t num_pages,
                                        std::vector<int64_t> row_buckets) {
  const StepLimits limits = LimitsOf(options);
  return {.device = options.devices.at(0),
          .dtype = options.dtype,
          .shard = shard,
          .num_pages = num_pages,
          .page_tokens = options.page_tokens,
          .rows_max = limits.rows_max,
          .logits_rows_max = limits.queries_max,
          .context_tokens_max = options.context_tokens_max,
          .num_token_ids = options.num_token_ids,
          .row_buckets = std::move(row_buckets)};
}

// With one algorithm for all row counts a step of few rows in float32 takes several times as long, and nothing asks for
// the bits of its samples.
bool IsBatchInvariant(const CudaStepOptions& options) {
  return options.batch_invariant && options.dtype != DeviceDtype::kFloat32;
}

}  // namespace

absl::StatusOr<int> FindPages(const ModelConfig& config, const CudaStepOptions& options, TensorShard shard) {
  const int64_t rows_max = LimitsOf(options).rows_max;
  ASSIGN_OR_RETURN(const DecoderMemory memory,
                   MeasureDecoderMemory(config, DecoderOptionsFrom(options, shard, 1, {rows_max})));
  const int64_t useful = kPagesForPrefixes * options.sequences_max * PagesOfContext(options);
  const int64_t addressable = std::numeric_limits<int32_t>::max() / options.page_tokens - 1;
  return PagesWithinShare({.total_bytes = memory.total_bytes,
                           .free_bytes = memory.free_bytes,
                           .fixed_bytes = memory.fixed_bytes,
                           .memory_share = options.memory_share,
                           .page_bytes = memory.page_bytes,
                           .pages_of_context = PagesOfContext(options),
                           .pages_useful = std::min(useful, addressable)});
}

absl::StatusOr<std::unique_ptr<StepDevice>> OpenCudaStepDevice(const ModelConfig& config,
                                                               const CudaStepOptions& options) {
  CudaStepOptions resolved = options;
  resolved.num_token_ids = NumTokenIds(config, options.num_token_ids);
  return OpenCudaStepGroup(config, resolved);
}

absl::StatusOr<DeviceTurns> OpenCudaTurns(const std::vector<int>& devices) {
  std::vector<std::string> names;
  for (const int device : devices) {
    ASSIGN_OR_RETURN(const CudaDevice found, UseCudaDevice(device, "rollout.device"));
    names.push_back(found.uuid);
  }
  std::sort(names.begin(), names.end());
  std::vector<DeviceLease> leases;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(DeviceLease lease, DeviceLease::Open(name));
    leases.push_back(std::move(lease));
  }
  RETURN_IF_ERROR(UseCudaDevice(devices.front(), "rollout.device").status());
  return DeviceTurns(std::move(leases));
}

absl::StatusOr<std::unique_ptr<WeightSource>> OpenCudaWeights(const ModelConfig& config,
                                                              const OfferedMemory& offered, int device,
                                                              absl::Time deadline) {
  return MappedWeights::Open(config, offered, device, deadline);
}

absl::StatusOr<std::unique_ptr<WeightSource>> ReceiveCudaWeights(const ModelConfig& config,
                                                                 OfferedBroadcast offered,
                                                                 const std::vector<int>& devices,
                                                                 absl::Time deadline) {
  return ReceivedWeights::Receive(config, std::move(offered), devices, deadline);
}

absl::StatusOr<std::unique_ptr<CudaStepDevice>> CudaStepDevice::Create(const ModelConfig& config,
                                                                       const CudaStepOptions& options,
                                                                       std::optional<StepShard> shard) {
  const TensorShard part = shard.has_value() ? shard->shard : TensorShard{};
  int num_pages = options.num_pages;
  if (num_pages == 0) {
    ASSIGN_OR_RETURN(num_pages, FindPages(config, options, part));
  }
  const StepLimits limits = LimitsOf(options);
  auto memory = std::make_unique<Memory>();
  ASSIGN_OR_RETURN(
      memory->decoder,
      DeviceDecoder::Create(config, DecoderOptionsFrom(options, part, num_pages,
                                                       RowBuckets(options.decode_buckets, limits.rows_max,
                                                                  IsBatchInvariant(options)))));
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(options.devices.at(0)), "Choosing the GPU"));
  const auto queries = static_cast<size_t>(limits.queries_max);
  const size_t block_bytes = StepBlock(limits).bytes(),
               results_bytes = queries * (sizeof(int32_t) + sizeof(float));
  ASSIGN_OR_RETURN(memory->block, DeviceMemory::Zeros(block_bytes));
  ASSIGN_OR_RETURN(memory->last_tokens, DeviceMemory::Zeros((queries + 1) * sizeof(int32_t)));
  ASSIGN_OR_RETURN(memory->results, DeviceMemory::Zeros(results_bytes));
  ASSIGN_OR_RETURN(memory->top_tokens, StepTopTokens::Create(kStepsMax, limits.queries_max));
  for (HostStep& step : memory->host_steps) {
    ASSIGN_OR_RETURN(step.block, AllocatePinned(block_bytes));
    ASSIGN_OR_RETURN(step.results, AllocatePinned(results_bytes));
    ASSIGN_OR_RETURN(step.done, CreateEvent());
  }
  ASSIGN_OR_RETURN(memory->drained, CreateEvent());
  ASSIGN_OR_RETURN(memory->stream, CreateStream());
  ASSIGN_OR_RETURN(EventArrival arrival, EventArrival::Create());
  // The stream does not wait for what cleared the memory.
  RETURN_IF_ERROR(CudaStatus(cudaDeviceSynchronize(), "Preparing memory"));
  LogInfo(absl::StrCat(CudaName(options.devices), " holds ", memory->decoder->weight_bytes() >> 20,
                       " MiB of ", DtypeName(options.dtype), " weights and ", num_pages, " pages of ",
                       options.page_tokens, " tokens, ",
                       (memory->decoder->entry_bytes() * options.page_tokens * num_pages) >> 20, " MiB"));
  return std::unique_ptr<CudaStepDevice>(new CudaStepDevice(
      options, num_pages, shard.has_value() ? std::optional(std::move(shard->peers)) : std::nullopt,
      std::move(memory), std::move(arrival)));
}

CudaStepDevice::CudaStepDevice(const CudaStepOptions& options, int num_pages, std::optional<StepPeers> peers,
                               std::unique_ptr<Memory> memory, EventArrival arrival)
    : options_(options),
      device_(options.devices.at(0)),
      num_pages_(num_pages),
      peers_(std::move(peers)),
      block_(LimitsOf(options)),
      memory_(std::move(memory)),
      arrival_(std::move(arrival)) {
  std::byte* const results = memory_->results.get();
  const size_t log_probs = static_cast<size_t>(options_.sequences_max) * sizeof(int32_t);
  step_memory_ = {.arrays = block_.ArraysAt(memory_->block.get()),
                  .last_tokens = reinterpret_cast<int32_t*>(memory_->last_tokens.get()),
                  .result_token_ids = reinterpret_cast<int32_t*>(results),
                  .result_log_probs = reinterpret_cast<float*>(results + log_probs)};
}

CudaStepDevice::~CudaStepDevice() {
  DropSteps();
  if (lost_.ok()) return;
  (void)memory_.release();               // to free it would wait for a device that may never be done
  new std::optional<StepPeers>(peers_);  // what it waits in, likewise
}

// A device is chosen a thread, and the engine's is not the one that made this.
absl::Status CudaStepDevice::Begin() {
  RETURN_IF_ERROR(lost_);
  return CudaStatus(cudaSetDevice(device_), "Choosing the GPU");
}

// After a deadline the device may still write to the weights. CUDA's errors of what ran stay: a query of the stream
// tells them again.
absl::Status CudaStepDevice::LoseIfBroken(const absl::Status& status) {
  if (status.ok()) return status;
  const cudaError_t queried = cudaStreamQuery(memory_->stream.get());
  const bool is_broken = queried != cudaSuccess && queried != cudaErrorNotReady;
  return absl::IsDeadlineExceeded(status) || is_broken ? Lose(status) : status;
}

absl::Status CudaStepDevice::LoadHuggingFace(const std::filesystem::path& directory) {
  RETURN_IF_ERROR(Begin());
  return LoseIfBroken(memory_->decoder->LoadHuggingFace(directory));
}

absl::Status CudaStepDevice::SetParameters(const Parameters& parameters) {
  RETURN_IF_ERROR(Begin());
  return LoseIfBroken(memory_->decoder->SetParameters(parameters));
}

absl::Status CudaStepDevice::FillRandom(uint64_t seed) {
  RETURN_IF_ERROR(Begin());
  return LoseIfBroken(memory_->decoder->FillRandom(seed));
}

absl::Status CudaStepDevice::TakeWeights(WeightSource& source) {
  RETURN_IF_ERROR(Begin());
  const DeviceWeights& weights = memory_->decoder->weights();
  if (weights.dtype() == DeviceDtype::kFloat32) {
    return absl::InvalidArgumentError(
        "New weights in a GPU's memory are bfloat16 or float16, and this GPU has float32: publish a file");
  }
  if (source.num_elements() != weights.size()) {
    return absl::InvalidArgumentError(absl::StrCat("New weights have ", source.num_elements(),
                                                   " elements and those of this model ", weights.size()));
  }
  const absl::Status copied = source.CopyTo(weights.bits(), device_, absl::Now() + options_.step_timeout);
  if (MayStillRun(copied)) return Lose(copied);
  RETURN_IF_ERROR(LoseIfBroken(copied));
  return LoseIfBroken(weights.CheckFinite(absl::Now() + options_.step_timeout));
}

size_t CudaStepDevice::results_bytes() const {
  return static_cast<size_t>(options_.sequences_max) * (sizeof(int32_t) + sizeof(float));
}

absl::Status CudaStepDevice::Launch(const paged::StepPlan& plan) {
  RETURN_IF_ERROR(Begin());
  WS_CHECK(num_launched_ - num_awaited_ < kStepsMax) << kStepsMax << " steps are in flight";
  // Its block was copied: the step that used it was awaited.
  HostStep& host = memory_->host_steps[static_cast<size_t>(num_launched_ % kStepsMax)];
  cudaStream_t const stream = memory_->stream.get();
  const size_t bytes = block_.Pack(plan, host.block.get());
  RETURN_IF_ERROR(CudaStatus(
      cudaMemcpyAsync(memory_->block.get(), host.block.get(), bytes, cudaMemcpyHostToDevice, stream),
      "Copying a plan"));
  RETURN_IF_ERROR(LaunchKernels(plan));
  RETURN_IF_ERROR(CudaStatus(cudaMemcpyAsync(host.results.get(), memory_->results.get(), results_bytes(),
                                             cudaMemcpyDeviceToHost, stream),
                             "Copying results"));
  RETURN_IF_ERROR(CudaStatus(cudaEventRecord(host.done.get(), stream), "Recording a step"));
  RETURN_IF_ERROR(arrival_.Follow(host.done.get()));
  host.arrival = ++num_followed_;
  host.step = plan.step;
  host.num_samples = plan.num_samples;
  ++num_launched_;
  return absl::OkStatus();
}

absl::Status CudaStepDevice::LaunchKernels(const paged::StepPlan& plan) {
  DeviceDecoder& decoder = *memory_->decoder;
  cudaStream_t const stream = memory_->stream.get();
  RETURN_IF_ERROR(
      LaunchCopies(std::ssize(plan.page_copies), options_.page_tokens, step_memory_, decoder, stream));
  RETURN_IF_ERROR(LaunchLayers(plan));
  if (peers_.has_value() && !peers_->samples) return absl::OkStatus();
  return memory_->top_tokens.Launch(static_cast<int>(num_launched_ % kStepsMax), plan, options_.num_token_ids,
                                    step_memory_, decoder, stream);
}

absl::Status CudaStepDevice::LaunchLayers(const paged::StepPlan& plan) {
  DeviceDecoder& decoder = *memory_->decoder;
  cudaStream_t const stream = memory_->stream.get();
  const StepShape shape = ShapeOf(plan);
  const auto launch = [&] {
    return LaunchLayersAndSamples(shape, options_.num_token_ids, step_memory_, decoder, stream,
                                  peers_.has_value() ? &*peers_ : nullptr);
  };
  if (plan.decode_bucket == 0) return launch();
  if (!peers_.has_value()) return memory_->graphs.Launch(plan.decode_bucket, stream, launch);
  return memory_->graphs.Launch(plan.decode_bucket, stream, launch, peers_->meet);
}

absl::StatusOr<std::vector<paged::TokenResult>> CudaStepDevice::AwaitOldest() {
  RETURN_IF_ERROR(Begin());
  WS_CHECK(num_awaited_ < num_launched_) << "no step is in flight";
  const int turn = static_cast<int>(num_awaited_ % kStepsMax);
  const HostStep& host = memory_->host_steps[turn];
  const absl::Status status =
      arrival_.Await(host.arrival, host.done.get(), absl::Now() + options_.step_timeout);
  if (!status.ok()) {
    return Lose(absl::Status(status.code(), absl::StrCat("Step ", host.step, " of cuda:", device_, ", given ",
                                                         absl::FormatDuration(options_.step_timeout), ": ",
                                                         std::string(status.message()))));
  }
  ++num_awaited_;
  const auto* const token_ids = reinterpret_cast<const int32_t*>(host.results.get());
  const auto* const log_probs = reinterpret_cast<const float*>(token_ids + options_.sequences_max);
  std::vector<paged::TokenResult> results(static_cast<size_t>(host.num_samples));
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = {.token_id = token_ids[i], .log_prob = log_probs[i]};
  memory_->top_tokens.AddTo(results, turn);
  return results;
}

void CudaStepDevice::DropSteps() {
  num_awaited_ = num_launched_;
  absl::Status status = Begin();
  if (status.ok()) {
    status = CudaStatus(cudaEventRecord(memory_->drained.get(), memory_->stream.get()), "Draining the GPU");
  }
  if (status.ok()) status = arrival_.Follow(memory_->drained.get());
  if (status.ok()) {
    status = arrival_.Await(++num_followed_, memory_->drained.get(), absl::Now() + options_.step_timeout);
  }
  if (!status.ok() && lost_.ok()) (void)Lose(status);
}

// CUDA's errors of what runs stay, so nothing is tried again.
absl::Status CudaStepDevice::Lose(const absl::Status& status) {
  lost_ = absl::Status(status.code(), absl::StrCat("The GPU is lost to this process, start it again: ",
                                                   std::string(status.message())));
  return lost_;
}

void CudaStepDevice::FreePages() {
  if (!Begin().ok()) return;
  memory_->graphs.Clear();  // they name the pages
  memory_->decoder->FreePages();
}

absl::Status CudaStepDevice::AllocatePages() {
  RETURN_IF_ERROR(Begin());
  return LoseIfBroken(memory_->decoder->AllocatePages());
}

void CudaStepDevice::FreeWeights() {
  if (!Begin().ok()) return;
  memory_->graphs.Clear();  // they name the weights
  memory_->decoder->FreeWeights();
}

absl::Status CudaStepDevice::AllocateWeights() {
  RETURN_IF_ERROR(Begin());
  return LoseIfBroken(memory_->decoder->AllocateWeights());
}

}  // namespace warpsmith::device
