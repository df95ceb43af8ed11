#include "trainer/update/token_gradients.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <exception>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// Sequences laid end to end, and for each token the one it predicts where that is an answer token.
struct PackedSequences {
  PackedBatch batch;
  std::vector<int64_t> targets;      // [T]; -1: nothing to predict
  std::vector<ScoredToken> answers;  // by row of targets >= 0
  std::vector<int64_t> rows;         // of answers
};

PackedSequences Pack(const std::vector<TrainingSequence>& sequences, const SequenceIndices& indices) {
  PackedSequences packed;
  packed.batch.cu_seqlens = {0};
  for (const int index : indices) {
    const TrainingSequence& sequence = sequences[index];
    const int64_t first_row = static_cast<int64_t>(packed.targets.size());
    packed.batch.Append({sequence.tokens.begin(), sequence.tokens.end()});
    packed.targets.resize(first_row + sequence.num_tokens(), -1);
    for (int position = 0; position < sequence.num_answer_tokens(); ++position) {
      const int64_t row = first_row + sequence.num_prompt_tokens + position - 1;
      packed.targets[row] = sequence.tokens[sequence.num_prompt_tokens + position];
      packed.answers.push_back({.sequence = index, .position = position});
      packed.rows.push_back(row);
    }
  }
  return packed;
}

// Fills in what the model said of each answer token.
void ReadScores(const TokenScores& scores, PackedSequences& packed) {
  const at::Tensor log_probs = scores.log_probs.detach().to(at::kCPU, at::kDouble).contiguous();
  const at::Tensor entropy = scores.entropy.detach().to(at::kCPU, at::kDouble).contiguous();
  for (size_t i = 0; i < packed.answers.size(); ++i) {
    packed.answers[i].log_prob = log_probs.const_data_ptr<double>()[packed.rows[i]];
    packed.answers[i].entropy = entropy.const_data_ptr<double>()[packed.rows[i]];
  }
}

void RunMicroBatch(const TrainingModel& model, const Parameters& parameters, PackedSequences packed,
                   const PassOptions& options, TokenGradient gradient) {
  const at::Tensor hidden = model.Forward(parameters, packed.batch);
  const TokenScores scores = model.TokenLogProbs(parameters, hidden, packed.targets, options.temperature);
  ReadScores(scores, packed);
  at::Tensor seed = at::zeros_like(scores.log_probs.detach(), at::TensorOptions(at::kCPU).dtype(at::kDouble));
  for (size_t i = 0; i < packed.answers.size(); ++i) {
    seed.mutable_data_ptr<double>()[packed.rows[i]] = gradient(packed.answers[i]);
  }
  scores.log_probs.backward(seed.to(scores.log_probs.device(), scores.log_probs.scalar_type()));
}

std::vector<SequenceIndices> MicroBatches(const std::vector<TrainingSequence>& sequences,
                                          const SequenceIndices& indices, int64_t tokens_max) {
  std::vector<int64_t> lengths;
  for (const TrainingSequence& sequence : sequences) lengths.push_back(sequence.num_tokens());
  return PackMicroBatches(lengths, indices, tokens_max);
}

absl::Status TorchError(const char* what, const std::exception& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        what,
        " has not the memory of the GPU that it needs: lower trainer.micro_batch_tokens, or leave it more "
        "(a worker on the same GPU takes the share that rollout.device ends with). ",
        Escape(error.what(), 512)));
  }
  return absl::InternalError(absl::StrCat(what, " failed in LibTorch: ", Escape(error.what(), 2048)));
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

// Runs `pass` where `options` say: with `parameters` themselves on the CPU; on a GPU with their copy, in a turn that
// begins with the copy and ends when nothing is left there. Gradients are gathered where `gathers`.
absl::Status RunPass(const char* what, const Parameters& parameters, const PassOptions& options, bool gathers,
                     absl::FunctionRef<void(const Parameters&)> pass) {
  TrainingGpu::Turn turn;
  if (options.gpu != nullptr) {
    ASSIGN_OR_RETURN(turn, options.gpu->Take());
  }
  try {
    if (options.gpu == nullptr) {
      pass(parameters);
      return absl::OkStatus();
    }
    {
      Parameters copy = OnGpu(parameters, *options.gpu);
      copy.RequireGrad(gathers);
      pass(copy);
      if (gathers) AddGradients(copy, parameters);
    }
    c10::getDeviceAllocator(at::kCUDA)->emptyCache();
  } catch (const std::exception& error) {
    return TorchError(what, error);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AccumulateGradients(const TrainingModel& model, const Parameters& parameters,
                                 const std::vector<TrainingSequence>& sequences,
                                 const SequenceIndices& indices, const PassOptions& options,
                                 TokenGradient gradient) {
  return RunPass("the backward pass", parameters, options, /*gathers=*/true, [&](const Parameters& placed) {
    for (const SequenceIndices& batch : MicroBatches(sequences, indices, options.micro_batch_tokens)) {
      RunMicroBatch(model, placed, Pack(sequences, batch), options, gradient);
    }
  });
}

absl::Status ScoreTokens(const TrainingModel& model, const Parameters& parameters,
                         const std::vector<TrainingSequence>& sequences, const SequenceIndices& indices,
                         const PassOptions& options, absl::FunctionRef<void(const ScoredToken&)> visit) {
  return RunPass("the forward pass", parameters, options, /*gathers=*/false, [&](const Parameters& placed) {
    const c10::AutoGradMode no_gradient(false);
    for (const SequenceIndices& batch : MicroBatches(sequences, indices, options.micro_batch_tokens)) {
      PackedSequences packed = Pack(sequences, batch);
      const at::Tensor hidden = model.Forward(placed, packed.batch);
      ReadScores(model.TokenLogProbs(placed, hidden, packed.targets, options.temperature), packed);
      for (const ScoredToken& token : packed.answers) visit(token);
    }
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
