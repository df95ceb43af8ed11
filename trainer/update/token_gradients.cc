#include "trainer/update/token_gradients.h"

#include <ATen/ops/zeros_like.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <exception>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// Sequences laid end to end, with their answer tokens as targets.
struct PackedSequences {
  ScoredBatch batch;
  std::vector<ScoredToken> answers;  // by row of targets >= 0
  std::vector<int64_t> rows;         // of answers
};

PackedSequences Pack(const std::vector<TrainingSequence>& sequences, const SequenceIndices& indices,
                     double temperature) {
  PackedSequences packed{.batch = {.temperature = temperature}};
  std::vector<int64_t>& targets = packed.batch.targets;
  for (const int index : indices) {
    const TrainingSequence& sequence = sequences[index];
    const int64_t first_row = static_cast<int64_t>(targets.size());
    packed.batch.packed.Append({sequence.tokens.begin(), sequence.tokens.end()});
    targets.resize(first_row + sequence.num_tokens(), -1);
    for (int position = 0; position < sequence.num_answer_tokens(); ++position) {
      const int64_t row = first_row + sequence.num_prompt_tokens + position - 1;
      targets[row] = sequence.tokens[sequence.num_prompt_tokens + position];
      packed.answers.push_back({.sequence = index, .position = position});
      packed.rows.push_back(row);
    }
  }
  return packed;
}

// Fills in what the model said of each answer token.
void ReadScores(const RowScores& scores, PackedSequences& packed) {
  for (size_t i = 0; i < packed.answers.size(); ++i) {
    packed.answers[i].log_prob = scores.log_probs[packed.rows[i]];
    packed.answers[i].entropy = scores.entropies[packed.rows[i]];
  }
}

absl::Status RunMicroBatch(const TrainingModel& model, const Parameters& parameters, PackedSequences packed,
                           TokenGradient gradient) {
  return model.Accumulate(parameters, packed.batch, [&](const RowScores& scores) {
    ReadScores(scores, packed);
    std::vector<double> gradients(scores.log_probs.size());
    for (size_t i = 0; i < packed.answers.size(); ++i)
      gradients[packed.rows[i]] = gradient(packed.answers[i]);
    return gradients;
  });
}

std::vector<SequenceIndices> MicroBatches(const std::vector<TrainingSequence>& sequences,
                                          const SequenceIndices& indices, int64_t tokens_max) {
  std::vector<int64_t> lengths;
  for (const TrainingSequence& sequence : sequences) lengths.push_back(sequence.num_tokens());
  return PackMicroBatches(lengths, indices, tokens_max);
}

absl::Status WithWayOut(absl::Status status) {
  if (!absl::IsResourceExhausted(status)) return status;
  return absl::ResourceExhaustedError(
      absl::StrCat("a pass has not the memory of the GPU that it needs: lower trainer.micro_batch_tokens, or "
                   "leave it more (a "
                   "worker on the same GPU takes the share that rollout.device ends with). ",
                   status.message()));
}

// A copy of `parameters` on the GPU, whose gradients are gathered there.
Parameters OnGpu(const Parameters& parameters, const TrainingGpu& gpu) {
  Parameters copy(parameters.layout(), parameters.dtype(),
                  at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(gpu.index())));
  copy.CopyFrom(parameters);
  return copy;
}

void AddGradients(const Parameters& from, const Parameters& to) {
  for (int index = 0; index < to.num_buffers(); ++index) {
    const at::Tensor& gradient = from.buffer(index).grad();
    if (!gradient.defined()) continue;
    at::Tensor& sum = to.buffer(index).mutable_grad();
    const at::Tensor on_host = gradient.to(at::kCPU);
    sum = sum.defined() ? sum.add_(on_host) : on_host;
  }
}

// Runs `pass` on a GPU, with a copy of `parameters`, in a turn that begins with the copy and ends when nothing is left
// there.
absl::Status RunOnGpu(const Parameters& parameters, TrainingGpu& gpu, bool gathers,
                      absl::FunctionRef<absl::Status(const Parameters&)> pass) {
  ASSIGN_OR_RETURN(const TrainingGpu::Turn turn, gpu.Take());
  absl::Status status;
  try {
    {
      Parameters copy = OnGpu(parameters, gpu);
      copy.RequireGrad(gathers);
      status = pass(copy);
      if (status.ok() && gathers) AddGradients(copy, parameters);
    }
    c10::getDeviceAllocator(at::kCUDA)->emptyCache();
  } catch (const c10::OutOfMemoryError& error) {
    return WithWayOut(absl::ResourceExhaustedError(Escape(error.what(), 512)));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("a pass failed in LibTorch: ", Escape(error.what(), 2048)));
  }
  return WithWayOut(status);
}

absl::Status RunPass(const Parameters& parameters, const PassOptions& options, bool gathers,
                     absl::FunctionRef<absl::Status(const Parameters&)> pass) {
  return options.gpu == nullptr ? pass(parameters) : RunOnGpu(parameters, *options.gpu, gathers, pass);
}

}  // namespace

absl::Status AccumulateGradients(const TrainingModel& model, const Parameters& parameters,
                                 const std::vector<TrainingSequence>& sequences,
                                 const SequenceIndices& indices, const PassOptions& options,
                                 TokenGradient gradient) {
  return RunPass(parameters, options, /*gathers=*/true, [&](const Parameters& placed) {
    for (const SequenceIndices& batch : MicroBatches(sequences, indices, options.micro_batch_tokens)) {
      RETURN_IF_ERROR(RunMicroBatch(model, placed, Pack(sequences, batch, options.temperature), gradient));
    }
    return absl::OkStatus();
  });
}

absl::Status ScoreTokens(const TrainingModel& model, const Parameters& parameters,
                         const std::vector<TrainingSequence>& sequences, const SequenceIndices& indices,
                         const PassOptions& options, absl::FunctionRef<void(const ScoredToken&)> visit) {
  return RunPass(parameters, options, /*gathers=*/false, [&](const Parameters& placed) -> absl::Status {
    for (const SequenceIndices& batch : MicroBatches(sequences, indices, options.micro_batch_tokens)) {
      PackedSequences packed = Pack(sequences, batch, options.temperature);
      ASSIGN_OR_RETURN(const RowScores scores, model.Score(placed, packed.batch));
      ReadScores(scores, packed);
      for (const ScoredToken& token : packed.answers) visit(token);
    }
    return absl::OkStatus();
  });
}

absl::Status AllReduceGradients(const Parameters& parameters, Communicator& communicator) {
  for (int index = 0; index < parameters.num_buffers(); ++index) {
    at::Tensor& gradient = parameters.buffer(index).mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(parameters.buffer(index).detach());
    WS_CHECK(gradient.is_contiguous());
    const ElementType type =
        gradient.scalar_type() == at::kDouble ? ElementType::kFloat64 : ElementType::kFloat32;
    RETURN_IF_ERROR(communicator.AllReduceSum(gradient.mutable_data_ptr(), gradient.numel(), type,
                                              {"gradient", "update"}));
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
