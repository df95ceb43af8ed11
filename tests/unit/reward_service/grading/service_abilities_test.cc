#include "reward_service/grading/service_abilities.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr v1::CandidateLanguage kCpp = v1::CANDIDATE_LANGUAGE_CPP;
constexpr v1::CandidateLanguage kPython = v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON;
constexpr v1::CandidateLanguage kCuda = v1::CANDIDATE_LANGUAGE_CUDA;

const ServiceAbilities kCpuOnly{.devices = {{v1::DEVICE_CPU, "cpu"}}};
const ServiceAbilities kGpuToo{.devices = {{v1::DEVICE_CPU, "cpu"}, {v1::DEVICE_CUDA, "gpu"}}};
const ServiceAbilities kGpuOnly{.devices = {{v1::DEVICE_CUDA, "gpu"}}};

absl::Status Refusal(v1::CandidateLanguage language, v1::Device wanted, const ServiceAbilities& abilities) {
  return ChooseDevice(language, wanted, abilities).status();
}

TEST_CASE("where a task does not say, the language and what the service has decide") {
  CHECK(ChooseDevice(kCpp, v1::DEVICE_UNSPECIFIED, kGpuToo).value() == v1::DEVICE_CPU);
  CHECK(ChooseDevice(kCuda, v1::DEVICE_UNSPECIFIED, kGpuToo).value() == v1::DEVICE_CUDA);
  CHECK(ChooseDevice(kPython, v1::DEVICE_UNSPECIFIED, kGpuToo).value() == v1::DEVICE_CUDA);
  CHECK(ChooseDevice(kPython, v1::DEVICE_UNSPECIFIED, kCpuOnly).value() == v1::DEVICE_CPU);
}

TEST_CASE("a task that says its device is graded there") {
  CHECK(ChooseDevice(kPython, v1::DEVICE_CPU, kGpuToo).value() == v1::DEVICE_CPU);
  CHECK(ChooseDevice(kPython, v1::DEVICE_CUDA, kGpuToo).value() == v1::DEVICE_CUDA);
  CHECK(ChooseDevice(kCpp, v1::DEVICE_CPU, kCpuOnly).value() == v1::DEVICE_CPU);
}

TEST_CASE("what this service cannot grade is FAILED_PRECONDITION, with what it can") {
  CHECK(Refusal(kCuda, v1::DEVICE_UNSPECIFIED, kCpuOnly) ==
        absl::FailedPreconditionError("candidate.language is CUDA, which needs a GPU; this service has none "
                                      "and grades cpp and kernelbench_python on cpu"));
  CHECK(Refusal(kPython, v1::DEVICE_CUDA, kCpuOnly) ==
        absl::FailedPreconditionError("task.device is CUDA, which needs a GPU; this service has none and "
                                      "grades cpp and kernelbench_python on cpu"));
  CHECK(Refusal(kCpp, v1::DEVICE_UNSPECIFIED, kGpuOnly) ==
        absl::FailedPreconditionError("candidate.language is CPP, which needs a CPU; this service has none "
                                      "and grades kernelbench_python and cuda on cuda"));
}

TEST_CASE("why a service has no GPU is told to whoever asks for one") {
  ServiceAbilities abilities = kCpuOnly;
  abilities.why_no_gpu = "there is no nvcc";
  CHECK(Refusal(kCuda, v1::DEVICE_UNSPECIFIED, abilities) ==
        absl::FailedPreconditionError(
            "candidate.language is CUDA, which needs a GPU; this service has none (there is no nvcc) "
            "and grades cpp and kernelbench_python on cpu"));
}

TEST_CASE("a pair that nobody grades is INVALID_ARGUMENT, whatever the service has") {
  for (const ServiceAbilities& abilities : {kCpuOnly, kGpuToo}) {
    CHECK(Refusal(kCpp, v1::DEVICE_CUDA, abilities) ==
          absl::InvalidArgumentError(
              "task.device is CUDA, and candidate.language is CPP, which runs on cpu alone"));
    CHECK(Refusal(kCuda, v1::DEVICE_CPU, abilities) ==
          absl::InvalidArgumentError(
              "task.device is CPU, and candidate.language is CUDA, which runs on cuda alone"));
  }
}

TEST_CASE("a value that is no language or no device is INVALID_ARGUMENT") {
  CHECK(Refusal(v1::CANDIDATE_LANGUAGE_UNSPECIFIED, v1::DEVICE_CPU, kCpuOnly) ==
        absl::InvalidArgumentError("candidate.language 0 is not known: CPP or KERNELBENCH_PYTHON"));
  CHECK(Refusal(kPython, static_cast<v1::Device>(9), kCpuOnly) ==
        absl::InvalidArgumentError("task.device 9 is not known: cpu or cuda"));
}

TEST_CASE("a service grades the languages of its devices") {
  CHECK(GradedLanguages(kCpuOnly) == std::vector<v1::CandidateLanguage>{kCpp, kPython});
  CHECK(GradedLanguages(kGpuToo) == std::vector<v1::CandidateLanguage>{kCpp, kPython, kCuda});
  CHECK(GradedLanguages(kGpuOnly) == std::vector<v1::CandidateLanguage>{kPython, kCuda});
}

}  // namespace
}  // namespace warpsmith
