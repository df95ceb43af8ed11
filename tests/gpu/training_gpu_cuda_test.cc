// A trainer's passes on a GPU beside those on the CPU.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/catch.h"
#include "tests/unit/trainer/policy_batch.h"
#include "trainer/update/policy_update.h"

namespace warpsmith {
namespace {

const std::vector<TrainingSequence>& Batch() {
  static const std::vector<TrainingSequence> batch = MakeBatch();
  return batch;
}

SequenceIndices All() { return SplitEvenly(static_cast<int>(Batch().size()), 1).front(); }

std::unique_ptr<TrainingGpu> OpenGpu() {
  auto gpu = TrainingGpu::Open(0);
  INFO(gpu.status());
  REQUIRE(gpu.ok());
  return *std::move(gpu);
}

Policy PolicyOn(at::Device device) {
  Policy policy(ParameterLayout(TinyModel()), /*num_token_ids=*/0, {}, nullptr, device);
  policy.parameters.RequireGrad(false);
  policy.parameters.InitRandom(3);
  policy.parameters.RequireGrad(true);
  return policy;
}

std::vector<float> GradientOn(at::Device device, TrainingGpu* gpu, int64_t micro_batch_tokens) {
  const Policy policy = PolicyOn(device);
  PolicyUpdateOptions options = MakeOptions();
  options.pass.gpu = gpu;
  options.pass.micro_batch_tokens = micro_batch_tokens;
  const auto sums = AccumulatePolicyGradient(policy, Batch(), All(), options, nullptr, nullptr);
  INFO(sums.status());
  REQUIRE(sums.ok());
  std::vector<float> values;
  for (int index = 0; index < policy.parameters.num_buffers(); ++index) {
    const at::Tensor gradient = policy.parameters.buffer(index).grad();
    REQUIRE(gradient.device().is_cpu());
    values.insert(values.end(), gradient.const_data_ptr<float>(),
                  gradient.const_data_ptr<float>() + gradient.numel());
  }
  return values;
}

// |a - b| / |b|.
double Error(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  REQUIRE(size > 0);
  return std::sqrt(difference / size);
}

// Float32 on both sides, sums in other orders.
constexpr double kErrorMax = 1e-5;

TEST_CASE("the gradient of a GPU's pass is that of the CPU's, in one pack and in micro-batches") {
  const auto gpu = OpenGpu();
  const std::vector<float> of_cpu = GradientOn(at::kCPU, nullptr, 1 << 20);
  for (const int64_t tokens : {1 << 20, 30}) {
    const double error = Error(GradientOn(at::Device(at::kCUDA, 0), gpu.get(), tokens), of_cpu);
    INFO(error);
    CHECK(error < kErrorMax);
  }
}

TEST_CASE("several updates on a GPU give the CPU's weights but for rounding, and log-probs of a reference") {
  const auto gpu = OpenGpu();
  const auto control = MakeLoneControlPlane();
  const auto communicator = MakeLoneCommunicator(*control);
  std::vector<std::vector<float>> weights;
  for (const bool on_gpu : {false, true}) {
    Policy policy = PolicyOn(on_gpu ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU));
    policy.reference.emplace(policy.parameters.Clone(at::kFloat));
    PolicyUpdateOptions options = MakeOptions();
    options.num_updates = 2;
    options.loss.kl_weight = 0.1;
    options.pass.gpu = on_gpu ? gpu.get() : nullptr;
    for (int step = 0; step < 3; ++step) {
      const auto result = UpdatePolicy(policy, Batch(), options, *communicator, *control);
      INFO(result.status());
      REQUIRE(result.ok());
      CHECK(result->num_taken == 2);
      CHECK((step == 0 || result->sums.kl > 0));
    }
    std::vector<float>& values = weights.emplace_back();
    for (int index = 0; index < policy.parameters.num_buffers(); ++index) {
      const at::Tensor buffer = policy.parameters.buffer(index).detach();
      values.insert(values.end(), buffer.const_data_ptr<float>(),
                    buffer.const_data_ptr<float>() + buffer.numel());
    }
  }
  CHECK(Error(weights[1], weights[0]) < 1e-3);  // AdamW divides by roots of small gradients
}

}  // namespace
}  // namespace warpsmith
