#include "reward_service/grading/prepared_request.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

v1::GradeRequest Request() {
  v1::GradeRequest request;
  request.set_request_id("r1");
  request.mutable_task()->set_id("task");
  request.mutable_task()->set_reference_source("class Model: pass");
  request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_CPP);
  request.mutable_candidate()->set_answer("Here it is:\n```cpp\nint run;\n```\n");
  return request;
}

ServiceAbilities Machine(const std::string& name = "machine") {
  return {.devices = {{v1::DEVICE_CPU, name}}};
}

PreparedRequest Prepare(const v1::GradeRequest& request, const ServiceAbilities& abilities = Machine()) {
  const absl::StatusOr<PreparedRequest> prepared = PrepareRequest(request, abilities);
  REQUIRE(prepared.ok());
  return *prepared;
}

void CheckRefused(const v1::GradeRequest& request, const std::string& word) {
  const absl::Status status = PrepareRequest(request, Machine()).status();
  INFO(status.ToString());
  CHECK(absl::IsInvalidArgument(status));
  CHECK(std::string(status.message()).find(word) != std::string::npos);
}

TEST_CASE("a good request is prepared with its program") {
  const PreparedRequest prepared = Prepare(Request());
  CHECK(prepared.source == "int run;\n");
  CHECK(prepared.source_sha256.size() == 64);
}

TEST_CASE("a request that cannot be graded as it stands is refused, and told why") {
  v1::GradeRequest request = Request();
  request.clear_request_id();
  CheckRefused(request, "request_id");
  request = Request();
  request.set_request_id(std::string(129, 'x'));
  CheckRefused(request, "129");
  request = Request();
  request.clear_task();
  CheckRefused(request, "reference_source");
  request = Request();
  request.clear_candidate();
  CheckRefused(request, "language");
  request = Request();
  request.mutable_candidate()->clear_answer();
  CheckRefused(request, "neither");
  request = Request();
  request.set_formula("generous-v1");
  CheckRefused(request, "warpsmith-v3");
}

TEST_CASE("an answer of ten megabytes is refused with both numbers") {
  v1::GradeRequest request = Request();
  request.mutable_candidate()->set_answer(std::string(10 << 20, 'x'));
  CheckRefused(request, "10485760");
}

// A request whose task allows these libraries, on a service with both devices.
PreparedRequest PrepareAllowing(const std::vector<std::string>& libraries, v1::CandidateLanguage language,
                                v1::Device device, const std::string& source) {
  v1::GradeRequest request = Request();
  request.mutable_candidate()->set_language(language);
  request.mutable_candidate()->set_source(source);
  request.mutable_task()->set_device(device);
  for (const std::string& library : libraries) request.mutable_task()->add_allowed_libraries(library);
  return Prepare(request, {.devices = {{v1::DEVICE_CPU, "cpu"}, {v1::DEVICE_CUDA, "gpu"}}});
}

TEST_CASE("a native CUDA program that names cuBLAS or cuDNN has them where its task allows them, or all") {
  const auto prepare = [](const std::string& source, const std::vector<std::string>& libraries) {
    return PrepareAllowing(libraries, v1::CANDIDATE_LANGUAGE_CUDA, v1::DEVICE_CUDA, source);
  };
  for (const char* header : {"cublas_v2.h", "cublasLt.h", "cudnn.h"}) {
    const std::string source = "#include <" + std::string(header) + ">\nint run;\n";
    const PreparedRequest with = prepare(source, {"blas"}), without = prepare(source, {});
    CHECK(with.with_blas);
    CHECK(prepare(source, {"torch"}).with_blas);
    CHECK_FALSE(without.with_blas);
    CHECK(with.measurement_key != without.measurement_key);
    CHECK_FALSE(prepare(source, {"blas", "torch"}).with_torch);
  }
  const PreparedRequest plain = prepare("int run;\n", {"blas"});
  CHECK_FALSE(plain.with_blas);
  CHECK(plain.measurement_key == prepare("int run;\n", {}).measurement_key);
  CHECK_FALSE(PrepareAllowing({"blas"}, v1::CANDIDATE_LANGUAGE_CPP, v1::DEVICE_CPU, "// cublas").with_blas);
}

TEST_CASE("a Python program has the products, or all libraries, that its task allows, on any device") {
  for (const v1::Device device : {v1::DEVICE_CPU, v1::DEVICE_CUDA}) {
    const auto prepare = [&](const std::vector<std::string>& libraries) {
      return PrepareAllowing(libraries, v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON, device, "x = 1");
    };
    const PreparedRequest none = prepare({}), blas = prepare({"blas"}), torch = prepare({"torch"});
    CHECK_FALSE((none.with_blas || none.with_torch));
    CHECK((blas.with_blas && !blas.with_torch));
    CHECK((torch.with_torch && !torch.with_blas));
    CHECK(none.measurement_key != blas.measurement_key);
    CHECK(none.measurement_key != torch.measurement_key);
    CHECK(blas.measurement_key != torch.measurement_key);
    // Torch alone means all libraries.
    const PreparedRequest both = prepare({"blas", "torch"});
    CHECK((both.with_torch && !both.with_blas));
    CHECK(both.measurement_key == torch.measurement_key);
  }
}

TEST_CASE("a CUDA program that names streams, graphs or contexts may have kernels run beside each other") {
  v1::GradeRequest request = Request();
  const ServiceAbilities abilities{.devices = {{v1::DEVICE_CPU, "cpu"}, {v1::DEVICE_CUDA, "gpu"}}};
  const auto may_overlap = [&](v1::CandidateLanguage language, v1::Device device, const char* source) {
    request.mutable_candidate()->set_language(language);
    request.mutable_candidate()->set_source(source);
    request.mutable_task()->set_device(device);
    return Prepare(request, abilities).with_streams;
  };
  const auto of_cuda = [&](const char* source) {
    return may_overlap(v1::CANDIDATE_LANGUAGE_CUDA, v1::DEVICE_CUDA, source);
  };
  CHECK_FALSE(of_cuda("void run(cudaStream_t stream) { work<<<1, 1, 0, stream>>>(); }"));
  CHECK(of_cuda("cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);"));
  CHECK(of_cuda("cudaGraphLaunch(exec, stream);"));
  CHECK(of_cuda("cuCtxCreate(&other, 0, 0);"));
  CHECK(may_overlap(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON, v1::DEVICE_CUDA, "torch.cuda.Stream()"));
  CHECK_FALSE(may_overlap(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON, v1::DEVICE_CUDA,
                          "x = 1  # torch.cuda.Stream()"));
  CHECK_FALSE(may_overlap(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON, v1::DEVICE_CPU, "torch.cuda.Stream()"));
}

TEST_CASE("formula, skill and id do not change what is measured") {
  v1::GradeRequest request = Request();
  const PreparedRequest first = Prepare(request);
  request.set_formula("kevin-v1");
  request.set_request_id("r2");
  request.mutable_task()->set_skill(v1::SKILL_OPTIMISE);
  const PreparedRequest second = Prepare(request);
  CHECK(first.measurement_key == second.measurement_key);
  CHECK(first.content_sha256 != second.content_sha256);
}

TEST_CASE("reference, program, language and machine change what is measured") {
  const PreparedRequest first = Prepare(Request());
  v1::GradeRequest request = Request();
  request.mutable_task()->set_reference_source("class Model: ...");
  CHECK(Prepare(request).measurement_key != first.measurement_key);
  request = Request();
  request.mutable_candidate()->set_answer("```\nint runs;\n```");
  CHECK(Prepare(request).measurement_key != first.measurement_key);
  request = Request();
  request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON);
  CHECK(Prepare(request).measurement_key != first.measurement_key);
  CHECK(Prepare(Request(), Machine("another")).measurement_key != first.measurement_key);
}

TEST_CASE("a request is prepared for its device, and measured anew on another, even of the same name") {
  const ServiceAbilities both{.devices = {{v1::DEVICE_CPU, "machine"}, {v1::DEVICE_CUDA, "machine"}}};
  v1::GradeRequest request = Request();
  CHECK(Prepare(request, both).device == v1::DEVICE_CPU);
  request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_KERNELBENCH_PYTHON);
  const PreparedRequest chosen = Prepare(request, both);
  CHECK(chosen.device == v1::DEVICE_CUDA);
  request.mutable_task()->set_device(v1::DEVICE_CPU);
  const PreparedRequest asked = Prepare(request, both);
  CHECK(asked.device == v1::DEVICE_CPU);
  CHECK(asked.measurement_key != chosen.measurement_key);
}

TEST_CASE("what this service lacks the device for is FAILED_PRECONDITION") {
  v1::GradeRequest request = Request();
  request.mutable_candidate()->set_language(v1::CANDIDATE_LANGUAGE_CUDA);
  CHECK(absl::IsFailedPrecondition(PrepareRequest(request, Machine()).status()));
}

TEST_CASE("an opinion depends on the measurement, skill, advice and previous program, not on formula or id") {
  v1::GradeRequest request = Request();
  const std::string first = Prepare(request).opinion_key;
  request.set_formula("kevin-v1");
  request.set_request_id("r2");
  request.mutable_task()->set_id("another");
  request.mutable_task()->mutable_feedback()->set_evidence("words");
  CHECK(Prepare(request).opinion_key == first);
  request.mutable_task()->set_skill(v1::SKILL_OPTIMISE);
  const std::string second = Prepare(request).opinion_key;
  CHECK(second != first);
  request.mutable_task()->mutable_feedback()->set_advice(v1::ADVICE_TILE);
  const std::string third = Prepare(request).opinion_key;
  CHECK(third != second);
  request.mutable_task()->set_previous_source("int before;");
  CHECK(Prepare(request).opinion_key != third);
  CHECK(Prepare(Request(), Machine("another")).opinion_key != first);
}

TEST_CASE("a program that asks for its line numbers is not the same with other lines") {
  v1::GradeRequest request = Request();
  request.mutable_candidate()->set_source("int a = __LINE__;");
  const PreparedRequest first = Prepare(request);
  request.mutable_candidate()->set_source("\nint a = __LINE__;");
  CHECK(Prepare(request).measurement_key != first.measurement_key);
}

}  // namespace
}  // namespace warpsmith
