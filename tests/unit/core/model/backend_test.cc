#include "core/model/backend.h"

#include "core/model/decoder.h"
#include "core/model/training/training_model.h"
#include "tests/support/catch.h"
#include "tests/support/model_fixture.h"

namespace warpsmith {
namespace {

const at::Device kCpu(at::kCPU), kGpu(at::kCUDA, 0);

absl::Status Train(Backend backend, Placement placement, const ModelConfig& config = OddConfig()) {
  return TrainingModel::Create(config, backend, {.placement = placement}).status();
}

absl::Status Decode(Backend backend, Placement placement, const ModelConfig& config = OddConfig()) {
  return Decoder::Create(config, backend, {.placement = placement}).status();
}

TEST_CASE("kernels train float32 and float64 and decode float32 on a CPU") {
  CHECK(Train(Backend::kKernels, {at::kFloat, kCpu}).ok());
  CHECK(Train(Backend::kKernels, {at::kDouble, kCpu}).ok());
  CHECK(Decode(Backend::kKernels, {at::kFloat, kCpu}).ok());
}

TEST_CASE("a dtype without kernels is refused by name, with what there is") {
  const absl::Status training = Train(Backend::kKernels, {at::kBFloat16, kCpu});
  CHECK(training.code() == absl::StatusCode::kUnimplemented);
  CHECK(training.message() ==
        "model: the kernels do not compute BFloat16 on cpu, but Float or Double on cpu: convert the weights, "
        "or name the operators");
  const absl::Status decoding = Decode(Backend::kKernels, {at::kDouble, kCpu});
  CHECK(decoding.code() == absl::StatusCode::kUnimplemented);
  CHECK(decoding.message() ==
        "model: the kernels do not compute Double on cpu, but Float on cpu: convert the weights, or name the "
        "operators");
  CHECK(absl::IsUnimplemented(Decode(Backend::kKernels, {at::kBFloat16, kCpu})));
  CHECK(absl::IsUnimplemented(Train(Backend::kKernels, {at::kHalf, kCpu})));
}

TEST_CASE("kernels on a GPU are refused: there are none") {
  const absl::Status status = Train(Backend::kKernels, {at::kFloat, kGpu});
  CHECK(status.code() == absl::StatusCode::kUnimplemented);
  CHECK(status.message().find("do not compute Float on cuda:0, but") != std::string::npos);
  CHECK(absl::IsUnimplemented(Decode(Backend::kKernels, {at::kFloat, kGpu})));
}

TEST_CASE("operators compute what was tested against float64, and refuse other dtypes") {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    CHECK(Train(Backend::kOperators, {dtype, kCpu}).ok());
    CHECK(Decode(Backend::kOperators, {dtype, kCpu}).ok());
  }
  for (const at::ScalarType dtype : {at::kHalf, at::kLong}) {
    CHECK(absl::IsUnimplemented(Train(Backend::kOperators, {dtype, kCpu})));
    CHECK(absl::IsUnimplemented(Decode(Backend::kOperators, {dtype, kCpu})));
  }
  CHECK(Train(Backend::kOperators, {at::kHalf, kCpu}).message() ==
        "model: the operators do not compute Half on cpu, but Float or Double or BFloat16 on any device: "
        "convert the weights");
}

TEST_CASE("sizes that the kernels cannot take are refused before anything is computed") {
  ModelConfig wide = OddConfig(), ragged = OddConfig();
  wide.head_dim = 514;
  ragged.intermediate_size = 81;
  for (const ModelConfig& config : {wide, ragged}) {
    for (const Backend backend : {Backend::kKernels, Backend::kOperators}) {
      CHECK(absl::IsInvalidArgument(Train(backend, {}, config)));
      CHECK(absl::IsInvalidArgument(Decode(backend, {}, config)));
    }
  }
  CHECK(Train(Backend::kKernels, {}, wide).message() ==
        "model config: head_dim is 514, but must be even and at most 512");
}

}  // namespace
}  // namespace warpsmith
