#include "core/model/training/cuda_trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/kernels/bfloat16.h"
#include "core/kernels/training/adamw_cuda.h"
#include "core/kernels/training/rounding_cuda.h"
#include "core/model/backend.h"
#include "core/model/cuda_status.h"

namespace warpsmith {
namespace {

// Longest wait for what was launched: the backward pass of a micro-batch, and an update.
constexpr absl::Duration kWorkTimeout = absl::Minutes(10);

template <typename T>
int64_t BytesOf(absl::Span<T> values) {
  return static_cast<int64_t>(values.size() * sizeof(T));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaTrainer>> CudaTrainer::Create(
    const ParameterLayout& layout, const ModelTrainerOptions& options, int device,
    std::unique_ptr<TrainingAttention<Bfloat16>> attention) {
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device), "choosing a GPU"));
  std::unique_ptr<CudaTrainer> trainer(new CudaTrainer(layout, options));
  trainer->attention_ = std::move(attention);
  ASSIGN_OR_RETURN(trainer->stream_, CreateStream());
  ASSIGN_OR_RETURN(
      trainer->layers_,
      CudaLayers<Bfloat16>::Create(layout.config(),
                                   {.num_token_ids = NumTokenIds(layout.config(), options.num_token_ids),
                                    .recomputation = options.recomputation},
                                   *trainer->attention_, trainer->stream_.get()));
  RETURN_IF_ERROR(trainer->Allocate(device));
  return trainer;
}

absl::Status CudaTrainer::Allocate(int device) {
  ASSIGN_OR_RETURN(weights_, SharedWeights::Create(layout().config(), device));
  ASSIGN_OR_RETURN(masters_, DeviceWeights::Allocate(layout().config(), device, {}, DeviceDtype::kFloat32));
  for (DeviceMemory* const memory : {&first_moment_, &second_moment_, &gradients_}) {
    ASSIGN_OR_RETURN(*memory, DeviceMemory::Zeros(num_bytes()));
  }
  ASSIGN_OR_RETURN(squares_, DeviceMemory::Zeros((1 + kSquareParts) * int64_t{sizeof(double)}));
  return absl::OkStatus();
}

// Waits, so that no kernel under way reads memory that is given back.
CudaTrainer::~CudaTrainer() {
  if (stream_ != nullptr) (void)Await();
}

absl::Status CudaTrainer::Await() { return AwaitStream(stream_.get(), absl::Now() + kWorkTimeout); }

float* CudaTrainer::At(const DeviceMemory& memory, int buffer, int64_t first) const {
  return reinterpret_cast<float*>(memory.get()) + weights_->buffer_offset(buffer) + first;
}

float* CudaTrainer::Of(StateSet set) const {
  if (set == StateSet::kWeights) return masters_->BaseAs<float>();
  return At(set == StateSet::kFirstMoment ? first_moment_ : second_moment_, 0);
}

// Passes.

void CudaTrainer::Bind(const Bfloat16* weights, bool gathers) {
  std::vector<const Bfloat16*> from;
  std::vector<float*> to;
  for (int buffer = 0; buffer < layout().num_buffers(); ++buffer) {
    from.push_back(weights + weights_->buffer_offset(buffer));
    if (gathers) to.push_back(At(gradients_, buffer));
  }
  layers_->Bind(std::move(from), std::move(to));
}

absl::StatusOr<RowScores> CudaTrainer::Score(PassWeights weights, const ScoredBatch& batch) {
  const bool present = weights == PassWeights::kPresent;
  WS_CHECK(present || has_reference()) << "no reference was kept";
  Bind(present ? weights_->base() : reference(), /*gathers=*/false);
  return ScoreBatch(*layers_, batch);
}

absl::Status CudaTrainer::Accumulate(const ScoredBatch& batch, LossGradient loss) {
  Bind(weights_->base(), /*gathers=*/true);
  return AccumulateGradient(*layers_, batch, loss);
}

absl::Status CudaTrainer::VisitGradients(absl::FunctionRef<absl::Status(at::Tensor&)>) {
  return absl::UnimplementedError("the gradient of a GPU's trainer does not leave the GPU");
}

// Updates.

absl::StatusOr<double> CudaTrainer::GradientNorm() {
  auto* const sum = reinterpret_cast<double*>(squares_.get());
  RETURN_IF_ERROR(CudaStatus(cudaMemsetAsync(sum, 0, sizeof(double), stream_.get()), "clearing a sum"));
  for (int buffer = 0; buffer < layout().num_buffers(); ++buffer) {
    RETURN_IF_ERROR(CudaStatus(LaunchSumOfSquares(At(gradients_, buffer), layout().buffers()[buffer].size,
                                                  sum + 1, sum, stream_.get()),
                               "the norm of the gradient"));
  }
  RETURN_IF_ERROR(Await());  // the copy itself has no deadline
  double squares = 0;
  RETURN_IF_ERROR(
      CudaStatus(cudaMemcpyAsync(&squares, sum, sizeof(squares), cudaMemcpyDeviceToHost, stream_.get()),
                 "reading a sum"));
  RETURN_IF_ERROR(Await());
  return std::sqrt(squares);
}

absl::Status CudaTrainer::Update(const OptimiserStep& step) {
  if (step.matrices != MatrixUpdate::kAdamW) {
    return absl::UnimplementedError("a GPU updates by AdamW alone; Muon runs on the CPU");
  }
  weights_->Withdraw();
  for (int buffer = 0; buffer < layout().num_buffers(); ++buffer) {
    for (const ParameterEntry& entry : layout().buffers()[buffer].entries) {
      const DeviceAdamW<Bfloat16> update = {
          .options = AdamWOf(options().optimiser, step, entry.decays),
          .size = entry.size(),
          .gradient = At(gradients_, buffer, entry.offset),
          .parameter = Of(StateSet::kWeights) + weights_->buffer_offset(buffer) + entry.offset,
          .first_moment = At(first_moment_, buffer, entry.offset),
          .second_moment = At(second_moment_, buffer, entry.offset),
          .stored = weights_->base() + weights_->buffer_offset(buffer) + entry.offset};
      RETURN_IF_ERROR(CudaStatus(LaunchAdamW(update, stream_.get()), "AdamW"));
    }
  }
  return Await();
}

absl::Status CudaTrainer::ClearGradients() {
  RETURN_IF_ERROR(
      CudaStatus(cudaMemsetAsync(gradients_.get(), 0, num_bytes(), stream_.get()), "clearing the gradient"));
  return Await();
}

absl::Status CudaTrainer::ClearMoments() {
  for (const DeviceMemory* const moment : {&first_moment_, &second_moment_}) {
    RETURN_IF_ERROR(
        CudaStatus(cudaMemsetAsync(moment->get(), 0, num_bytes(), stream_.get()), "clearing a moment"));
  }
  return Await();
}

// State.

absl::Status CudaTrainer::Read(StateSet set, int buffer, int64_t first, absl::Span<float> values) {
  RETURN_IF_ERROR(Await());  // the copy itself has no deadline
  if (set != StateSet::kReference) {
    RETURN_IF_ERROR(
        CudaStatus(cudaMemcpyAsync(values.data(), Of(set) + weights_->buffer_offset(buffer) + first,
                                   BytesOf(values), cudaMemcpyDeviceToHost, stream_.get()),
                   "reading state"));
    return Await();
  }
  WS_CHECK(has_reference()) << "no reference was kept";
  std::vector<uint16_t> bits(values.size());
  RETURN_IF_ERROR(
      CudaStatus(cudaMemcpyAsync(bits.data(), reference() + weights_->buffer_offset(buffer) + first,
                                 BytesOf(absl::MakeSpan(bits)), cudaMemcpyDeviceToHost, stream_.get()),
                 "reading the reference"));
  RETURN_IF_ERROR(Await());
  std::transform(bits.begin(), bits.end(), values.begin(), FloatOfBfloat16);
  return absl::OkStatus();
}

absl::Status CudaTrainer::Write(StateSet set, int buffer, int64_t first, absl::Span<const float> values) {
  const int64_t place = weights_->buffer_offset(buffer) + first;
  if (set == StateSet::kReference) return WriteReference(place, values);
  if (set == StateSet::kWeights) weights_->Withdraw();
  float* const to = Of(set) + place;
  RETURN_IF_ERROR(
      CudaStatus(cudaMemcpyAsync(to, values.data(), BytesOf(values), cudaMemcpyHostToDevice, stream_.get()),
                 "writing state"));
  if (set == StateSet::kWeights) {
    RETURN_IF_ERROR(CudaStatus(
        LaunchRounding(to, static_cast<int64_t>(values.size()), weights_->base() + place, stream_.get()),
        "rounding weights"));
  }
  return Await();
}

absl::Status CudaTrainer::WriteReference(int64_t place, absl::Span<const float> values) {
  WS_CHECK(has_reference()) << "no reference was kept";
  std::vector<uint16_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(), Bfloat16Bits);
  RETURN_IF_ERROR(CudaStatus(cudaMemcpyAsync(reference() + place, bits.data(), BytesOf(absl::MakeSpan(bits)),
                                             cudaMemcpyHostToDevice, stream_.get()),
                             "writing the reference"));
  return Await();
}

absl::Status CudaTrainer::LoadHuggingFace(const std::filesystem::path& directory) {
  weights_->Withdraw();
  RETURN_IF_ERROR(masters_->LoadHuggingFace(directory));
  RETURN_IF_ERROR(
      CudaStatus(LaunchRounding(Of(StateSet::kWeights), weights_->size(), weights_->base(), stream_.get()),
                 "rounding weights"));
  return Await();
}

absl::Status CudaTrainer::InitRandom(uint64_t seed) {
  Parameters weights(layout());
  weights.InitRandom(seed);
  return SetWeights(weights);
}

absl::StatusOr<Parameters> CudaTrainer::HostWeights() {
  Parameters weights(layout());
  for (int buffer = 0; buffer < weights.num_buffers(); ++buffer) {
    const at::Tensor& values = weights.buffer(buffer);
    RETURN_IF_ERROR(Read(StateSet::kWeights, buffer, 0,
                         {values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel())}));
  }
  return weights;
}

absl::Status CudaTrainer::KeepReference() {
  const int64_t bytes = weights_->size() * int64_t{sizeof(Bfloat16)};
  if (!has_reference()) {
    ASSIGN_OR_RETURN(reference_, DeviceMemory::Zeros(bytes));
  }
  RETURN_IF_ERROR(CudaStatus(
      cudaMemcpyAsync(reference_.get(), weights_->base(), bytes, cudaMemcpyDeviceToDevice, stream_.get()),
      "keeping the reference"));
  return Await();
}

absl::StatusOr<OfferedMemory> CudaTrainer::Offer(uint64_t version, const std::filesystem::path& socket_path,
                                                 absl::Time deadline) {
  return weights_->Offer(version, socket_path, deadline);
}

}  // namespace warpsmith
