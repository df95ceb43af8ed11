// A tiny policy and a batch for it, the same wherever they are made.
#ifndef WARPSMITH_TESTS_UNIT_TRAINER_POLICY_BATCH_H_
#define WARPSMITH_TESTS_UNIT_TRAINER_POLICY_BATCH_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "core/distributed/tcp_communicator.h"
#include "core/model/training/cpu_trainer.h"
#include "trainer/data/training_sequence.h"
#include "trainer/update/policy_update.h"

namespace warpsmith {

inline ModelConfig TinyModel() {
  return {.vocab_size = 48,
          .hidden_size = 32,
          .intermediate_size = 48,
          .num_hidden_layers = 2,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .head_dim = 8,
          .max_position_embeddings = 128,
          .tie_word_embeddings = true};
}

// float64: for gradients alone.
inline std::unique_ptr<CpuTrainer> MakePolicy(at::ScalarType dtype = at::kFloat) {
  auto policy =
      std::make_unique<CpuTrainer>(ParameterLayout(TinyModel()), ModelTrainerOptions{}, nullptr, dtype);
  policy->weights().RequireGrad(false);
  policy->weights().InitRandom(3);
  policy->weights().RequireGrad(true);
  return policy;
}

inline std::string BytesOf(const Parameters& parameters) {
  std::string bytes;
  for (int i = 0; i < parameters.num_buffers(); ++i) bytes += parameters.BufferBytes(i);
  return bytes;
}

// Six sequences of unequal length; log-probs of the worker near, but not at, the policy's.
inline std::vector<TrainingSequence> MakeBatch() {
  std::vector<TrainingSequence> sequences;
  uint64_t draw = 0;
  for (const auto& [num_prompt, num_answer] : {std::pair(3, 9), {8, 1}, {5, 20}, {2, 7}, {11, 13}, {4, 4}}) {
    TrainingSequence& sequence = sequences.emplace_back();
    sequence.num_prompt_tokens = num_prompt;
    for (int i = 0; i < num_prompt + num_answer; ++i) {
      sequence.tokens.push_back(static_cast<int32_t>(UniformWord(7, draw++) % 48));
    }
    for (int i = 0; i < num_answer; ++i) {
      sequence.worker_log_probs.push_back(static_cast<float>(-3.9 + 0.4 * (UniformDouble(8, draw++) - 0.5)));
    }
    sequence.advantage = 2 * UniformDouble(9, draw++) - 1;
  }
  return sequences;
}

inline PolicyUpdateOptions MakeOptions() { return {.pass = {.temperature = 0.9}, .learning_rate = 1e-3}; }

inline std::vector<double> GradientsOf(const Parameters& parameters) {
  std::vector<double> values;
  for (int index = 0; index < parameters.num_buffers(); ++index) {
    const at::Tensor gradient = parameters.buffer(index).grad();
    WS_CHECK(gradient.defined()) << "buffer " << index;
    const double* data = gradient.const_data_ptr<double>();
    values.insert(values.end(), data, data + gradient.numel());
  }
  return values;
}

inline std::unique_ptr<ControlPlane> MakeLoneControlPlane() {
  auto control = ControlPlane::Create({});
  WS_CHECK(control.ok()) << control.status();
  return *std::move(control);
}

inline std::unique_ptr<Communicator> MakeLoneCommunicator(ControlPlane& control) {
  auto communicator = CreateTcpCommunicator({}, &control, {});
  WS_CHECK(communicator.ok()) << communicator.status();
  return *std::move(communicator);
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_TRAINER_POLICY_BATCH_H_
